/* tests/chat/golden.h - the shared data's chat templates and golden texts, and variables made of jansson trees; behind
 * cmocka.h. */
#ifndef TESTS_CHAT_GOLDEN_H
#define TESTS_CHAT_GOLDEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"
#include "tests/support/shared.h"

#define CHAT_DATA "data/chat-templates/"

/* The time that the golden texts show. */
static const struct tm golden_time = {
	.tm_year = 126, .tm_mon = 0, .tm_mday = 2, .tm_hour = 3, .tm_min = 4, .tm_sec = 5, .tm_wday = 5, .tm_yday = 1
};

static inline char *slurp(FILE *f, size_t *n)
{
	size_t capacity = 1 << 20;
	char *p = malloc(capacity);

	assert_non_null(p);
	*n = 0;
	for (size_t got; (got = fread(p + *n, 1, capacity - *n, f)) > 0;) {
		*n += got;
		if (*n == capacity)
			assert_non_null(p = realloc(p, capacity *= 2));
	}
	return p;
}

/* NULL: it is not there, or there is no gzip for it. */
static inline json_t *golden_load(const char *relative)
{
	char path[1024], command[1200];
	bool packed = strcmp(relative + strlen(relative) - 3, ".gz") == 0;
	size_t n;

	if (!shared_path(path, relative))
		return NULL;
	snprintf(command, sizeof command, "gzip -dc '%s'", path);
	FILE *f = packed ? popen(command, "r") : fopen(path, "rb");
	assert_non_null(f);
	char *text = slurp(f, &n);
	json_t *root = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
	free(text);
	if ((packed ? pclose(f) : fclose(f)) != 0 && !root) {
		printf("# skipped: %s cannot be unpacked\n", relative);
		return NULL;
	}
	assert_non_null(root);
	return root;
}

static inline struct chat_template *golden_template(const char *name)
{
	char path[1024], relative[600];
	struct error err = { 0 };
	size_t n;

	snprintf(relative, sizeof relative, CHAT_DATA "%s", name);
	if (!shared_path(path, relative))
		return NULL;
	char *text = (char *)file_bytes(path, &n);
	struct chat_template *t = chat_template_parse(text, n, name, &err);
	free(text);
	if (!t)
		fail_msg("%s", err.text);
	return t;
}

enum { MAX_VARIABLES = 32 };
struct variables {
	struct chat_variable v[MAX_VARIABLES];
	size_t n;
};

static inline void variable_add(struct variables *vars, const char *name, const json_t *value, enum chat_source source)
{
	assert_true(vars->n < MAX_VARIABLES);
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	vars->v[vars->n++] = (struct chat_variable){ name, text, text ? strlen(text) : 0, source };
}

static inline void variable_add_all(struct variables *vars, json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value) variable_add(vars, name, value, CHAT_MODEL);
}

/* What transformers hands to a template; row: of the golden file, with the model's special tokens. */
static inline void variables_of(struct variables *vars, json_t *row, json_t *messages, json_t *tools, bool goes_on)
{
	json_t *none = json_null();

	vars->n = 0;
	variable_add(vars, "messages", messages, CHAT_MESSAGES);
	variable_add(vars, "tools", tools ? tools : none, CHAT_USER);
	variable_add(vars, "documents", none, CHAT_USER);
	variable_add(vars, "add_generation_prompt", goes_on ? json_true() : json_false(), CHAT_MODEL);
	variable_add_all(vars, json_object_get(row, "special_tokens"));
}

static inline void variables_free(struct variables *vars)
{
	for (size_t i = 0; i < vars->n; i++)
		free((void *)(uintptr_t)vars->v[i].json);
	vars->n = 0;
}

#endif
