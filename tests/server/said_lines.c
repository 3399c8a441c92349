/* tests/server/said_lines.c - for the tests of ollama's API: requests, and what stands where in their answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server/said_lines.h"

const json_t *at(const json_t *o, const char *path)
{
	char name[80];

	for (; o && *path; path += strcspn(path, ".") + (strchr(path, '.') != NULL)) {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
		o = json_is_array(o) ? json_array_get(o, (size_t)atoi(name)) : json_object_get(o, name);
	}
	return o;
}

const char *text_at(const json_t *o, const char *path)
{
	const char *text = json_string_value(at(o, path));

	if (!text)
		fail_msg("no text at %s", path);
	return text;
}

double number_at(const json_t *o, const char *path)
{
	if (!json_is_number(at(o, path)))
		fail_msg("no number at %s", path);
	return json_number_value(at(o, path));
}

/* All lines of a stream, each an object, as an array. */
json_t *ask_lines(const struct child *c, const char *path, const char *body)
{
	struct answer a = client_ask(c, path, NULL, body);
	json_t *list = json_array();
	char *save = NULL;

	if (a.status != 200)
		fail_msg("%s: status %d, %s", body, a.status, a.body);
	assert_non_null(strstr(a.head, "application/x-ndjson"));
	assert_true(a.n_body && a.body[a.n_body - 1] == '\n');
	for (char *line = strtok_r(a.body, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *o = json_loads(line, 0, NULL);
		if (!json_is_object(o))
			fail_msg("no object: %s", line);
		json_array_append_new(list, o);
	}
	answer_free(&a);
	return list;
}

/* Of all lines together; free() it. */
char *joined(const json_t *lines, const char *path)
{
	char *all = calloc(1, 1 << 16);
	const json_t *line;
	size_t i;

	assert_non_null(all);
	json_array_foreach(lines, i, line)
	{
		const char *text = json_string_value(at(line, path));
		strcat(all, text ? text : "");
	}
	return all;
}

char *body_of(const char *members, const char *more)
{
	char *body = malloc(strlen(members) + strlen(more) + 8);

	assert_non_null(body);
	sprintf(body, "{%s%s%s}", members, *more ? "," : "", more);
	return body;
}

json_t *ask(const struct child *c, const char *path, const char *members, const char *more)
{
	char *body = body_of(members, more);
	json_t *o = client_json(c, path, body, 200);

	free(body);
	return o;
}
