/* tests/chat/go_cases.c - templates in Go's language from lines of JSON, rendered by chat/: for t_go_template.sh.
 *
 * A line is {"template", "messages", "tools", "think", "effort", "prompt", "suffix"}; its answer is {"text", "user"} or
 * {"error"}. user: which bytes are the user's, as beginnings and ends.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"

enum { MAX = 1 << 24 };

static size_t add(struct chat_variable *v, size_t n, const json_t *line, const char *member, const char *name,
                  enum chat_source source)
{
	const json_t *value = json_object_get(line, member);

	if (!value)
		return n;
	char *json = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
	v[n] = (struct chat_variable){ name, json, strlen(json), source };
	return n + 1;
}

static json_t *answer(const json_t *line)
{
	static const struct tm now = { .tm_year = 124, .tm_mon = 2, .tm_mday = 1 };
	const char *template = json_string_value(json_object_get(line, "template"));
	struct chat_variable v[8];
	struct error err = { 0 };
	struct chat_text out;
	size_t n = 0;

	n = add(v, n, line, "messages", "messages", CHAT_MESSAGES);
	n = add(v, n, line, "tools", "tools", CHAT_USER);
	n = add(v, n, line, "think", "enable_thinking", CHAT_USER);
	n = add(v, n, line, "effort", "reasoning_effort", CHAT_USER);
	n = add(v, n, line, "prompt", "prompt", CHAT_USER);
	n = add(v, n, line, "suffix", "suffix", CHAT_USER);
	struct chat_template *t =
		chat_template_parse(template, json_string_length(json_object_get(line, "template")), "template", &err);
	json_t *o = NULL;
	if (t && !chat_template_facts(t).go)
		o = json_pack("{s:s}", "error", "it was taken for Jinja");
	else if (t && chat_render(t, &(struct chat_request){ v, n, &now, false }, &out, NULL, &err)) {
		json_t *user = json_array();
		for (size_t i = 0; i < out.n_spans; i++)
			if (out.span[i].user) {
				json_array_append_new(user, json_integer((json_int_t)out.span[i].begin));
				json_array_append_new(user, json_integer((json_int_t)out.span[i].end));
			}
		o = json_pack("{s:o, s:o}", "text", json_stringn(out.p, out.n), "user", user);
		chat_text_free(&out);
	} else {
		o = json_pack("{s:s}", "error", err.text);
	}
	chat_template_free(t);
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)v[i].json);
	return o;
}

int main(void)
{
	char *line = malloc(MAX);

	while (line && fgets(line, MAX, stdin)) {
		json_error_t e;
		json_t *o = json_loads(line, JSON_ALLOW_NUL, &e);
		if (!o) {
			fprintf(stderr, "go_cases: %s\n", e.text);
			return 1;
		}
		json_t *a = answer(o);
		json_dumpf(a, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(a);
		json_decref(o);
	}
	free(line);
	return 0;
}
