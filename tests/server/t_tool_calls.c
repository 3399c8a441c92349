/* tests/server/t_tool_calls.c - calls of tools: in texts that are cut anywhere, and in answers of the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/tool_calls.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static const struct row {
	enum tools_form form;
	const char *said, *text, *calls; /* calls: "name arguments;" for each */
} rows[] = {
	{ TOOLS_NONE, "<tool_call>{}</tool_call>", "<tool_call>{}</tool_call>", "" },
	{ TOOLS_TAGGED, "plain < text <tool", "plain < text <tool", "" },
	{ TOOLS_TAGGED, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", "", "f {\"x\":1};" },
	{ TOOLS_TAGGED,
	  "So. <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
	  "<tool_call>{\"name\":\"g\",\"arguments\":{\"a\":[\"</b>\"]}}</tool_call>\n",
	  "So. ", "f {};g {\"a\":[\"</b>\"]};" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\"}", "", "f {};" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":7}</tool_call>!", "<tool_call>{\"name\":7}</tool_call>!", "" },
	{ TOOLS_TAGGED, "<tool_call>not json</tool_call>", "<tool_call>not json</tool_call>", "" },
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=y>\na \"b\"\n</parameter>\n"
	  "</function>\n</tool_call>",
	  "", "f {\"x\":1,\"y\":\"a \\\"b\\\"\"};" },
	{ TOOLS_ELEMENTS, "<tool_call><function=f></function></tool_call>", "", "f {};" },
	{ TOOLS_BARE, " {\"name\": \"f\", \"parameters\": {\"x\": \"y\"}}", "", "f {\"x\":\"y\"};" },
	{ TOOLS_BARE, "{\"a\": 1}", "{\"a\": 1}", "" },
	{ TOOLS_BARE, "Hello {\"name\":\"f\"}", "Hello {\"name\":\"f\"}", "" },
};

/* In pieces of each size. */
static void test_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		for (size_t size = 1; size <= strlen(r->said); size++) {
			struct tool_calls t = { .form = r->form };
			char text[400] = "", calls[400] = "";
			for (size_t at = 0;; at += size) {
				size_t left = at < strlen(r->said) ? strlen(r->said) - at : 0;
				tool_calls_take(&t, left ? r->said + at : NULL, left < size ? left : size);
				strncat(text, t.text.n ? t.text.p : "", t.text.n);
				if (!left)
					break;
			}
			for (size_t k = 0; k < t.n; k++) {
				strcat(strcat(calls, t.call[k].name), " ");
				strcat(strcat(calls, t.call[k].arguments), ";");
			}
			assert_string_equal(text, r->text);
			assert_string_equal(calls, r->calls);
			assert_false(t.lost);
			tool_calls_free(&t);
		}
	}
}

static void test_forms(void **state)
{
	(void)state;
	assert_int_equal(tools_form_of("{{ '<tool_call>' }}"), TOOLS_TAGGED);
	assert_int_equal(tools_form_of("<tool_call>\\n<function=example>"), TOOLS_ELEMENTS);
	assert_int_equal(tools_form_of("{\"name\": function name, \"parameters\": dictionary}"), TOOLS_BARE);
	assert_int_equal(tools_form_of(NULL), TOOLS_TAGGED);
}

/* ---- of the server: what it says is forced by an expression */

#define ASK \
	"{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":200,\"tools\":[{\"type\":\"function\"," \
	"\"function\":{\"name\":\"get\",\"parameters\":{\"type\":\"object\"}}}],\"response_format\":{\"type\":" \
	"\"regex\"," \
	"\"pattern\":\"Yes\\\\. <tool_call>\\\\n\\\\{\\\"name\\\": \\\"get\\\", \\\"arguments\\\": \\\\{\\\"x\\\": " \
	"7\\\\}\\\\}\\\\n" \
	"</tool_call>\\\\n<tool_call>\\\\{\\\"name\\\": \\\"put\\\"\\\\}</tool_call>\"}"

static const char *text(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static void check_call(const json_t *call, const char *name, const char *arguments)
{
	const json_t *function = json_object_get(call, "function");

	assert_string_equal(text(call, "type"), "function");
	assert_int_equal(strncmp(text(call, "id"), "call_", 5), 0);
	assert_string_equal(text(function, "name"), name);
	assert_string_equal(text(function, "arguments"), arguments);
}

static void test_server(void **state)
{
	static const char *const arguments[] = { "--no-cache", NULL };
	struct child c = child_start(arguments);
	(void)state;

	json_t *o = client_json(&c, "/v1/chat/completions", ASK "}", 200);
	json_t *one = json_array_get(json_object_get(o, "choices"), 0), *message = json_object_get(one, "message");
	json_t *calls = json_object_get(message, "tool_calls");
	assert_string_equal(text(one, "finish_reason"), "tool_calls");
	assert_string_equal(text(message, "content"), "Yes. ");
	assert_int_equal(json_array_size(calls), 2);
	check_call(json_array_get(calls, 0), "get", "{\"x\":7}");
	check_call(json_array_get(calls, 1), "put", "{}");
	assert_string_not_equal(text(json_array_get(calls, 0), "id"), text(json_array_get(calls, 1), "id"));
	json_decref(o);
	struct answer a = client_ask(&c, "/v1/chat/completions", NULL, ASK ",\"stream\":true}");
	char content[100] = "", finish[20] = "";
	json_int_t seen = 0;
	for (const char *at = a.body; (at = strstr(at, "data: {")); at++) {
		json_t *e = json_loadb(at + 6, strcspn(at + 6, "\n"), 0, NULL);
		assert_non_null(e);
		one = json_array_get(json_object_get(e, "choices"), 0);
		json_t *delta = json_object_get(one, "delta"), *list = json_object_get(delta, "tool_calls"), *call;
		size_t i;
		if (text(delta, "content"))
			strcat(content, text(delta, "content"));
		if (text(one, "finish_reason"))
			strcpy(finish, text(one, "finish_reason"));
		json_array_foreach(list, i, call)
		{
			assert_int_equal(json_integer_value(json_object_get(call, "index")), seen);
			check_call(call, seen ? "put" : "get", seen ? "{}" : "{\"x\":7}");
			seen++;
		}
		json_decref(e);
	}
	assert_int_equal(seen, 2);
	assert_string_equal(content, "Yes. ");
	assert_string_equal(finish, "tool_calls");
	answer_free(&a);
	assert_int_equal(child_stop(&c), 0);
}

/* Whatever the model would say, a call of one of the tools, with arguments that its schema allows. */
static void test_required(void **state)
{
	static const char *const arguments[] = { "--no-cache", NULL };
	static const char *const choices[] = { "\"required\"",
		                               "{\"type\":\"function\",\"function\":{\"name\":\"put\"}}" };
	static const char *const wrong[] = { "\"perhaps\"", "{\"type\":\"function\",\"function\":{\"name\":\"x\"}}" };
	static const char tools[] =
		"{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":200,\"tools\":["
		"{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":{\"type\":\"object\","
		"\"properties\":"
		"{\"x\":{\"enum\":[\"a\",\"b\"]}},\"required\":[\"x\"],\"additionalProperties\":false}}},"
		"{\"type\":\"function\",\"function\":{\"name\":\"put\",\"parameters\":{\"type\":\"object\","
		"\"properties\":"
		"{},\"additionalProperties\":false}}}],\"seed\":%d,\"tool_choice\":%s}";
	struct child c = child_start(arguments);
	char body[2000];
	(void)state;

	for (int i = 0; i < 6; i++) {
		snprintf(body, sizeof body, tools, i, choices[i % 2]);
		json_t *o = client_json(&c, "/v1/chat/completions", body, 200);
		json_t *one = json_array_get(json_object_get(o, "choices"), 0);
		json_t *calls = json_object_get(json_object_get(one, "message"), "tool_calls");
		if (strcmp(text(one, "finish_reason"), "length") != 0) { /* white space without end is right, too */
			assert_int_equal(json_array_size(calls), 1);
			json_t *function = json_object_get(json_array_get(calls, 0), "function");
			const char *said = text(function, "arguments");
			bool put = strcmp(text(function, "name"), "put") == 0;
			assert_true(put || i % 2 == 0);
			if (put)
				assert_string_equal(said, "{}");
			else
				assert_true(strcmp(said, "{\"x\":\"a\"}") == 0 || strcmp(said, "{\"x\":\"b\"}") == 0);
		}
		json_decref(o);
		snprintf(body, sizeof body, tools, i, wrong[i % 2]);
		json_decref(client_json(&c, "/v1/chat/completions", body, 400));
	}
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_required),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
