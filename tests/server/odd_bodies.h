/* tests/server/odd_bodies.h - requests that are whole and right, and values that nobody would send in them.
 *
 * Behind cmocka.h.
 */
#ifndef TESTS_SERVER_ODD_BODIES_H
#define TESTS_SERVER_ODD_BODIES_H

#include <jansson.h>
#include <stddef.h>

/* A request with members of every form in it, at every depth, which is answered with status 200. */
struct whole_request {
	const char *method, *path, *body;
};
extern const struct whole_request whole_requests[];
extern const size_t n_whole_requests;

/* Texts of values, right JSON or not; some are made at the first call. p: n bytes, which may have a 0 among them. */
struct odd_value {
	const char *name; /* what is said of it */
	const char *p;
	size_t n;
};
const struct odd_value *odd_values(size_t *count);

/* Nodes of a JSON text: the values of its members and elements, at all depths, in their order. */
struct odd_node {
	char path[300]; /* "messages[0].content" */
	char field[80]; /* the member of the whole that it is, or is in */
};
/* How many there are. at: what becomes of one of them, an index and malloc'ed texts around its value. */
struct odd_cut {
	struct odd_node node;
	char *before, *value, *after;
	const char *key; /* in before: what its member is called; NULL: an element */
};
size_t odd_nodes(const char *body);
void odd_cut(struct odd_cut *c, const char *body, size_t at);
void odd_cut_free(struct odd_cut *c);

#endif
