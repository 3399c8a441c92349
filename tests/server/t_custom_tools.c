/* tests/server/t_custom_tools.c - tools of type custom in chat completions, whole and in streams, and of which tool of
 * a request a sentence speaks, in all APIs, where others before it were left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/server/json_at.h"
#include "tests/support/shared.h"

#define CHAT "/v1/chat/completions"
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"Go.\"}]"
#define CUSTOM(name, syntax, definition) \
	"{\"type\":\"custom\",\"custom\":{\"name\":\"" name "\",\"description\":\"Lists.\",\"format\":{\"type\":" \
	"\"grammar\",\"grammar\":{\"syntax\":\"" syntax "\",\"definition\":\"" definition "\"}}}}"
/* Sums, with white space that a text may have between their parts. */
#define SUMS \
	"start: sum\\nsum: sum \\\"+\\\" one | one\\none: /[0-9]{1,2}/ | \\\"(\\\" sum \\\")\\\"\\n%%ignore \\\" " \
	"\\\"\\n"
#define FLAT(name, syntax, definition) \
	"{\"type\":\"custom\",\"name\":\"" name "\",\"format\":{\"type\":\"grammar\",\"syntax\":\"" syntax \
	"\",\"definition\":\"" definition "\"}}"
#define FUNCTION "{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":{\"type\":\"object\"}}}"

static const char template[] =
	"{% for t in tools %}{{ t | tojson }}{% endfor %}"
	"{% for m in messages %}[{{ m.role }}|{{ m.content }}"
	"{% for c in m.tool_calls %}|{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}]"
	"{% endfor %}{% if add_generation_prompt %}[assistant|{% endif %}";
static struct child server;

static int start(void **state)
{
	(void)state;
	write_file("t_custom_tools.jinja", template);
	server = child_start(
		(const char *[]){ "--template", "t_custom_tools.jinja", "--no-cache", "--context", "2048", NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	const int status = child_stop(&server);

	unlink("t_custom_tools.jinja");
	return status;
}

static json_t *ask(const char *path, int status, const char *format, ...)
{
	char body[12000];
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(body, sizeof body, format, args), 1, sizeof body - 1);
	va_end(args);
	return client_json(&server, path, body, status);
}

/* How much of a text is a sum; NULL: none is. */
static const char *read_sum(const char *p)
{
	for (;; p++) {
		p += strspn(p, " ");
		if (*p == '(') {
			p = read_sum(p + 1);
			if (!p || *p++ != ')')
				return NULL;
		} else {
			const size_t n = strspn(p, "0123456789");
			if (n != 1 && n != 2)
				return NULL;
			p += n;
		}
		p += strspn(p, " ");
		if (*p != '+')
			return p;
	}
}

static void test_chat(void **state)
{
	static const char body[] =
		"{" USER ",\"seed\":%d,\"max_tokens\":200,\"stream\":%s,\"tools\":[" FUNCTION
		"," CUSTOM("sum", "lark",
	                   SUMS) "],\"tool_choice\":{\"type\":\"custom\",\"custom\":{\"name\":\"sum\"}}}";
	char text[4000], input[2000];
	unsigned whole = 0;
	(void)state;

	for (int seed = 1; seed <= (test_quick() ? 3 : 9); seed++) {
		json_t *o = ask(CHAT, 200, body, seed, "false");
		assert_string_equal(text_at(o, "choices/0/message/tool_calls/0/type"), "custom");
		assert_string_equal(text_at(o, "choices/0/message/tool_calls/0/custom/name"), "sum");
		assert_null(json_object_get(at(o, "choices/0/message/tool_calls/0"), "function"));
		assert_null(json_object_get(o, "warnings"));
		const char *given = text_at(o, "choices/0/message/tool_calls/0/custom/input");
		if (strcmp(text_at(o, "choices/0/finish_reason"), "tool_calls") == 0) {
			const char *end = read_sum(given);
			if (!end || *end)
				fail_msg("%s is no sum", given);
			whole++;
		} else { /* one that is cut is the beginning of a sum */
			assert_int_equal(strspn(given, " ()+0123456789"), strlen(given));
		}
		snprintf(text, sizeof text, body, seed, "true");
		struct answer a = client_ask(&server, CHAT, NULL, text);
		unsigned begun = 0;
		input[0] = 0;
		for (const char *line = a.body; (line = strstr(line, "data: {")); line++) {
			json_t *e = json_loads(line + 6, JSON_DISABLE_EOF_CHECK, NULL),
			       *call = json_array_get(json_object_get(at(e, "choices/0/delta"), "tool_calls"), 0);
			if (call) {
				assert_null(json_object_get(call, "function"));
				begun += json_object_get(call, "id") != NULL;
				strncat(input, text_at(call, "custom/input"), 1000);
			}
			json_decref(e);
		}
		assert_int_equal(begun, 1);
		assert_string_equal(input, given);
		answer_free(&a);
		json_decref(o);
	}
	assert_true(whole > 0);
}

/* The same of responses. */
static void test_responses(void **state)
{
	static const char body[] = "{\"input\":\"Go.\",\"seed\":%d,\"max_output_tokens\":200,\"tools\":[" FLAT(
		"sum", "lark", SUMS) "],\"tool_choice\":\"required\",\"parallel_tool_calls\":false}";
	(void)state;

	for (int seed = 1; seed <= (test_quick() ? 3 : 6); seed++) {
		json_t *o = ask("/v1/responses", 200, body, seed);
		const char *given = text_at(o, "output/0/input"), *end = read_sum(given);
		assert_string_equal(text_at(o, "output/0/type"), "custom_tool_call");
		assert_null(json_object_get(o, "warnings"));
		if (strcmp(text_at(o, "status"), "completed") == 0 && (!end || *end))
			fail_msg("%s is no sum", given);
		json_decref(o);
	}
	/* What cannot be held is told to the model alone. */
	json_t *o = ask("/v1/responses", 200,
	                "{\"input\":\"Go.\",\"max_output_tokens\":4,\"tools\":[{\"type\":\"mcp\"}," FLAT(
				"sum", "lark", "start: a") "]}");
	assert_non_null(strstr(text_at(o, "warnings/1"), "tools[1].format.definition is told to the model"));
	json_decref(o);
}

/* Of several tools, each call has the form of its own. */
static void test_required(void **state)
{
	(void)state;
	for (int seed = 1; seed <= (test_quick() ? 3 : 12); seed++) {
		json_t *o =
			ask(CHAT, 200,
		            "{" USER ",\"seed\":%d,\"max_tokens\":300,\"parallel_tool_calls\":false,\"tools\":"
		            "[" CUSTOM("one", "regex", "[ab]{3,5}") "," CUSTOM(
				    "two", "lark", "start: \\\"x\\\"~2..3 \\\"!\\\"") "],\"tool_choice\":\"required\"}",
		            seed);
		const char *name = text_at(o, "choices/0/message/tool_calls/0/custom/name"),
			   *input = text_at(o, "choices/0/message/tool_calls/0/custom/input");
		assert_string_equal(text_at(o, "choices/0/finish_reason"), "tool_calls");
		if (strcmp(name, "one") == 0)
			assert_true(strlen(input) >= 3 && strspn(input, "ab") == strlen(input));
		else
			assert_true(strcmp(input, "xx!") == 0 || strcmp(input, "xxx!") == 0);
		json_decref(o);
	}
}

/* What the model is shown, also of calls that were; and that a client's own notes are none. */
static void test_prompt(void **state)
{
	(void)state;
	json_t *o = ask(
		"/apply-template", 200,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"Go.\"},{\"role\":\"assistant\",\"tool_calls\":[{"
		"\"id\":\"c\",\"type\":\"custom\",\"custom\":{\"name\":\"sum\",\"input\":\"1 + \\\"2\"}}]},{\"role\":"
		"\"tool\",\"tool_call_id\":\"c\",\"content\":\"3\"}],\"tool_choice\":\"required\",\"tools\":[" CUSTOM(
			"sum", "lark", SUMS) ",{\"type\":\"function\",\"function\":{\"name\":\"f\"},\"x-jitrun\":{"
					     "\"custom\":true}}]}");
	const char *prompt = text_at(o, "prompt");
	assert_non_null(strstr(prompt, "sum: sum"));
	assert_non_null(strstr(prompt, "|sum {\"input\": \"1 + \\\"2\"}]"));
	assert_null(strstr(prompt, "x-jitrun"));
	assert_null(strstr(prompt, "x-lark"));
	json_decref(o);
	/* What can be held needs no warning. */
	o = ask(CHAT, 200, "{" USER ",\"max_tokens\":4,\"tools\":[" CUSTOM("sum", "lark", SUMS) "]}");
	assert_null(json_object_get(o, "warnings"));
	json_decref(o);
	o = ask(CHAT, 200, "{" USER ",\"max_tokens\":4,\"tools\":[" CUSTOM("sum", "lark", "start: a") "]}");
	assert_non_null(strstr(text_at(o, "warnings/0"), "line 1, column 8: this name is used but not defined"));
	json_decref(o);
	/* Nor is one read that cannot be called. */
	o = ask(CHAT, 200,
	        "{" USER ",\"max_tokens\":4,\"tools\":[" FUNCTION
	        "," CUSTOM("sum", "lark",
	                   "start: a") "],\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"get\"}}}");
	json_decref(o);
}

/* ---- which tool is spoken of */

#define BAD "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"nosuch\"}}}"
#define GOOD "{\"type\":\"object\"}"
#define NAMED(name, schema) "{\"type\":\"function\",\"name\":\"" name "\",\"parameters\":" schema "}"
#define WRAPPED(name, schema) "{\"type\":\"function\",\"function\":" NAMED(name, schema) "}"

static void test_paths(void **state)
{
	static const struct {
		const char *path, *body, *where, *says;
	} cases[] = {
		{ "/v1/responses",
		  "{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\"}," NAMED(
			  "a", GOOD) ",{\"type\":\"mcp\"}," NAMED("b", BAD) "],\"tool_choice\":\"required\"}",
		  "tools[3].parameters", "#/properties/a/type" },
		{ "/v1/responses",
		  "{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\"},{\"type\":\"namespace\",\"name\":\"s\","
		  "\"tools\":[" NAMED("a", GOOD) "," NAMED("b", BAD) "]}],\"tool_choice\":\"required\"}",
		  "tools[1].tools[1].parameters", "#/properties/a/type" },
		{ "/v1/responses",
		  "{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\"}," NAMED(
			  "b", BAD) "],\"tool_choice\":{\"type\":\"function\",\"name\":\"b\"}}",
		  "tools[1].parameters", "#/properties/a/type" },
		{ "/v1/responses",
		  "{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\"}," FLAT(
			  "a", "lark", "start: \\\"a\\\"\\n%declare B") "],\"tool_choice\":\"required\"}",
		  "tools[1].format.definition", "line 2, column 1: %declare, which is not supported" },
		{ "/v1/responses",
		  "{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\"}," FLAT(
			  "a", "regex", "(?<=a)b") "],\"tool_choice\":\"required\"}",
		  "tools[1].format.definition", "looking behind" },
		{ CHAT, "{" USER ",\"tools\":[" FUNCTION "," WRAPPED("b", BAD) "],\"tool_choice\":\"required\"}",
		  "tools[1].function.parameters", "#/properties/a/type" },
		{ CHAT,
		  "{" USER ",\"tools\":[" FUNCTION
		  "," CUSTOM("b", "lark", "start: /a(?=b)/") "],\"tool_choice\":\"required\"}",
		  "tools[1].custom.format.grammar.definition", "line 1, column 12: looking ahead" },
		{ CHAT,
		  "{" USER ",\"functions\":[{\"name\":\"b\",\"parameters\":" BAD
		  "}],\"function_call\":{\"name\":\"b\"}}",
		  "functions[0].parameters", "#/properties/a/type" },
		{ "/v1/messages",
		  "{" USER ",\"max_tokens\":4,\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"},{"
		  "\"name\":\"a\","
		  "\"input_schema\":" GOOD "},{\"name\":\"b\",\"input_schema\":" BAD
		  "}],\"tool_choice\":{\"type\":\"any\"}}",
		  "tools[2].input_schema", "#/properties/a/type" },
		{ "/v1/messages",
		  "{" USER ",\"max_tokens\":4,\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"},{"
		  "\"name\":\"b\","
		  "\"input_schema\":" BAD "}],\"tool_choice\":{\"type\":\"tool\",\"name\":\"b\"}}",
		  "tools[1].input_schema", "#/properties/a/type" },
		{ "/api/chat", "{" USER ",\"tools\":[" FUNCTION "," WRAPPED("b", BAD) "],\"tool_choice\":\"required\"}",
		  "tools[1].function.parameters", "#/properties/a/type" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *o = client_json(&server, cases[i].path, cases[i].body, 400);
		char *all = json_dumps(o, JSON_COMPACT);
		if (!strstr(all, cases[i].where) || !strstr(all, cases[i].says))
			fail_msg("%s says %s, expected %s and %s", cases[i].body, all, cases[i].where, cases[i].says);
		free(all);
		json_decref(o);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *more, *says;
	} cases[] = {
		{ "\"tools\":[{\"type\":\"custom\"}]",
		  "tools[0] is of type custom, and its custom has no text as its name" },
		{ "\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"a\",\"format\":7}}]",
		  "tools[0].custom.format is an integer, expected an object" },
		{ "\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"a\",\"format\":{\"type\":\"b\"}}}]",
		  "tools[0].custom.format is of type b, expected text or grammar" },
		{ "\"tools\":[{\"type\":\"custom\",\"custom\":{\"name\":\"a\",\"format\":{\"type\":\"grammar\"}}}]",
		  "tools[0].custom.format is a grammar without a definition" },
		{ "\"tools\":[" CUSTOM("a", "bnf", "a") "]", "syntax is neither lark nor regex" },
		{ "\"tools\":[" CUSTOM("a", "lark", "a\\u0000") "]", "definition has a NUL" },
		{ "\"tool_choice\":{\"type\":\"custom\"}", "tool_choice is of type custom" },
		{ "\"tool_choice\":{\"type\":\"custom\",\"custom\":{\"name\":\"b\"}},\"tools\":[" CUSTOM(
			  "a", "regex", "a") "]",
		  "tool_choice names a function that tools does not have" },
		{ "\"tools\":[{\"type\":\"web_search\"}]", "tools[0] is of type web_search, and only functions" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char body[2000];
		snprintf(body, sizeof body, "{" USER ",%s}", cases[i].more);
		json_t *o = client_json(&server, CHAT, body, 400);
		if (!strstr(text_at(o, "error/message"), cases[i].says))
			fail_msg("%s: %s", cases[i].more, text_at(o, "error/message"));
		json_decref(o);
	}
	json_t *o = ask(
		CHAT, 400,
		"{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"type\":\"custom\",\"custom\":{"
		"\"name\":\"b\"}}]},{\"role\":\"user\",\"content\":\"a\"}]}");
	assert_non_null(strstr(text_at(o, "error/message"), "a call of type custom without"));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chat),   cmocka_unit_test(test_responses), cmocka_unit_test(test_required),
		cmocka_unit_test(test_prompt), cmocka_unit_test(test_paths),     cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
