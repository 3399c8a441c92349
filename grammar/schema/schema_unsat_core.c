/* grammar/schema/schema_unsat_core.c - the cause in a schema that no value satisfies (a part of an unsatisfiable core).
 *
 * Owns: the search. A keyword is the cause if some value satisfies the schema without it. A part of the keyword is
 * named instead if leaving out that part is enough.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"
#include "base/json_read.h"

/* Schemas tried, and bytes of one that is searched. */
enum { TRIES_MAX = 300, SEARCHED_MAX = 1 << 18 };

struct search {
	json_t *root;
	core_test *possible;
	void *user;
	unsigned tries;
	char *pointer;
	size_t room;
};

static bool try_now(struct search *s)
{
	char *text =
		++s->tries > TRIES_MAX || effort_over() ? NULL : json_dumps(s->root, JSON_ENCODE_ANY | JSON_COMPACT);
	bool possible = text && effort_take(strlen(text)) && s->possible(s->user, text, strlen(text));

	free(text);
	return possible;
}

/* A member or item without which there is a value; schemas, and what is made of them, are made empty instead. */
static bool relieves(struct search *s, json_t *in, const char *key, size_t index)
{
	json_t *was = json_incref(key ? json_object_get(in, key) : json_array_get(in, index));

	if (key && !json_is_object(was))
		json_object_del(in, key);
	else if (key)
		json_object_set_new(in, key, json_object());
	else
		json_array_set_new(in, index, json_object());
	bool possible = try_now(s);
	if (key)
		json_object_set_new(in, key, was);
	else
		json_array_set_new(in, index, was);
	return possible;
}

static void append(struct search *s, const char *key, size_t index)
{
	size_t at = strlen(s->pointer);
	char number[24];

	snprintf(number, sizeof number, "%zu", index);
	if (at + 4 < s->room)
		s->pointer[at++] = '/';
	for (const char *p = key ? key : number; *p && at + 4 < s->room; p++) {
		s->pointer[at++] = *p == '~' || *p == '/' ? '~' : *p;
		if (*p == '~' || *p == '/')
			s->pointer[at++] = *p == '~' ? '0' : '1';
	}
	s->pointer[at] = 0;
}

static void descend(struct search *s, json_t *in);

static void found(struct search *s, json_t *in, const char *key, size_t index)
{
	append(s, key, index);
	descend(s, key ? json_object_get(in, key) : json_array_get(in, index));
}

/* What is tried first: definitions, which others only refer to; last: what only says of which kind a value is. */
static int rank(const char *key)
{
	if (strcmp(key, "$defs") == 0 || strcmp(key, "definitions") == 0)
		return 0;
	return strcmp(key, "required") == 0 ? 2 : strcmp(key, "type") == 0 ? 3 : 1;
}

static bool descend_keys(struct search *s, json_t *in, char **key, size_t n)
{
	for (int wanted_rank = 0; wanted_rank < 4; wanted_rank++)
		for (size_t i = 0; i < n; i++) {
			json_t *value = json_object_get(in, key[i]), *one;
			const char *name;
			if (rank(key[i]) != wanted_rank)
				continue;
			if (wanted_rank == 0) {
				char *before = strdup(s->pointer);
				bool inside = false;
				append(s, key[i], 0);
				json_object_foreach(value, name, one)
				{
					inside = json_is_object(one) && relieves(s, value, name, 0);
					if (inside) {
						found(s, value, name, 0);
						break;
					}
				}
				if (!inside && before)
					strcpy(s->pointer, before);
				free(before);
				if (inside)
					return true;
			} else if (relieves(s, in, key[i], 0)) {
				found(s, in, key[i], 0);
				return true;
			}
		}
	return false;
}

/* Trying changes the order of members: their names are taken down before. */
static void descend_object(struct search *s, json_t *in)
{
	size_t n = json_object_size(in), k = 0;
	char **key = effort_calloc(n + 1, sizeof *key);
	const char *name;
	json_t *one;

	json_object_foreach(in, name, one) if (key && k < n) key[k++] = strdup(name);
	bool all = key != NULL;
	for (size_t i = 0; i < k; i++)
		all = all && key[i];
	if (all)
		descend_keys(s, in, key, k);
	for (size_t i = 0; i < k; i++)
		free(key[i]);
	free(key);
}

static void descend(struct search *s, json_t *in)
{
	if (json_is_object(in))
		descend_object(s, in);
	for (size_t i = 0; i < json_array_size(in); i++)
		if (json_is_object(json_array_get(in, i)) && relieves(s, in, NULL, i)) {
			found(s, in, NULL, i);
			return;
		}
}

bool schema_unsat_core(const char *text, size_t n, core_test *possible, void *user, char *pointer, size_t room)
{
	struct error ignored = { 0 };
	struct search s = { .possible = possible, .user = user, .pointer = pointer, .room = room };

	snprintf(pointer, room, "#");
	s.root = n <= SEARCHED_MAX ? json_read(text, n, SEARCHED_MAX, "the schema", &ignored) : NULL;
	if (s.root)
		descend(&s, s.root);
	json_decref(s.root);
	return pointer[1] != 0;
}
