/* tests/mutate/json_tree.h - a JSON text as a tree of spellings: what is no object or array stays as it was written, so
 * that a changed tree may hold what no parser takes. */
#ifndef TESTS_MUTATE_JSON_TREE_H
#define TESTS_MUTATE_JSON_TREE_H

#include "tests/mutate/mutate.h"

struct json_node {
	char type;        /* '{', '[', or 0: text is the value */
	char *key, *text; /* as written, keys with their quotes; key NULL: not in an object */
	struct json_node **child;
	size_t n;
};

/* Of a text that is well formed; anything else ends the test program. */
struct json_node *json_tree(const char *text);
void json_tree_free(struct json_node *j);
void json_tree_write(const struct json_node *j, struct bytes *out);
/* The member of this name, NULL: there is none. */
struct json_node *json_member(struct json_node *j, const char *name);
/* Makes it this text. */
void json_set(struct json_node *j, const char *text);
/* One change anywhere; says which. */
void json_mutate(struct mutant *m, struct json_node *root);

#endif
