/* tests/chat/marks.h - conversations whose every text is a given one, rendered, and which bytes of what comes out are
 * the users'; behind cmocka.h. */
#ifndef TESTS_CHAT_MARKS_H
#define TESTS_CHAT_MARKS_H

#include "tests/chat/golden.h"

static inline json_t *said(const char *role, const char *text)
{
	return json_pack("{s:s, s:s}", "role", role, "content", text);
}

static inline json_t *tools_with(const char *text)
{
	return json_pack("[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}}]", "type", "function", "function",
	                 "name", "look", "description", text, "parameters", "type", "object", "properties", "where",
	                 "type", "string", "description", text, "required", "where");
}

static inline json_t *call_with(const char *text)
{
	return json_pack("{s:s, s:s, s:[{s:s, s:s, s:{s:s, s:{s:s}}}]}", "role", "assistant", "content", "",
	                 "tool_calls", "id", "abcdefghi", "type", "function", "function", "name", "look", "arguments",
	                 "where", text);
}

enum { SHAPES = 4 };

/* Not every template takes every shape; all take the first but those made for tools alone. */
static inline json_t *conversation(unsigned shape, const char *text, json_t **tools)
{
	json_t *messages = json_array();

	*tools = NULL;
	if (shape == 1 || shape == 3)
		json_array_append_new(messages, said("system", text));
	json_array_append_new(messages, said("user", text));
	if (shape == 1 || shape == 2) {
		json_array_append_new(messages, said("assistant", text));
		json_array_append_new(messages, said("user", text));
	} else if (shape == 3) {
		*tools = tools_with(text);
		json_array_append_new(messages, call_with(text));
		json_t *result = said("tool", text);
		json_object_set_new(result, "tool_call_id", json_string("abcdefghi"));
		json_object_set_new(result, "name", json_string("look"));
		json_array_append_new(messages, result);
	}
	return messages;
}

static inline bool render(const struct chat_template *t, json_t *row, unsigned shape, const char *text,
                          struct chat_text *out)
{
	struct error err = { 0 };
	struct variables vars;
	json_t *tools, *messages = conversation(shape, text, &tools);

	variables_of(&vars, row, messages, tools, true);
	bool ok = chat_render(t, &(struct chat_request){ vars.v, vars.n, &golden_time, false }, out, NULL, &err);
	variables_free(&vars);
	json_decref(messages);
	json_decref(tools);
	return ok;
}

/* 1 for each byte that a user wrote; free() it. */
static inline uint8_t *marks_of(const struct chat_text *t)
{
	uint8_t *mark = calloc(t->n + 1, 1);

	assert_non_null(mark);
	for (size_t i = 0; i < t->n_spans; i++)
		memset(mark + t->span[i].begin, t->span[i].user, t->span[i].end - t->span[i].begin);
	return mark;
}

#endif
