/* tests/server/json_at.h - values inside of answers by their paths: "choices/0/text"; behind cmocka.h. */
#ifndef TESTS_SERVER_JSON_AT_H
#define TESTS_SERVER_JSON_AT_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL: it is not there. */
static inline const json_t *at(const json_t *o, const char *path)
{
	char name[60];

	for (; o && *path; path += strcspn(path, "/"), path += *path == '/') {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "/"), path);
		o = json_is_array(o) ? json_array_get(o, (size_t)atoi(name)) : json_object_get(o, name);
	}
	return o;
}

/* "": there is no text. */
static inline const char *text_at(const json_t *o, const char *path)
{
	const char *text = json_string_value(at(o, path));

	return text ? text : "";
}

/* A file of the test's own. */
static inline void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

#endif
