/* tests/server/t_held_calls_asked.c - requests whose tool_choice leaves it to the model to call: a model that always
 * begins a call, where nothing forbids it, keeps to what its tools say. */
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
#include "tests/support/call_model.h"
#include "tests/support/shared.h"

#define CHAT "/v1/chat/completions"
#define RESPONSES "/v1/responses"
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"Go.\"}]"
#define BIAS "\"logit_bias\":{\"4085\":100}"
#define AB \
	"{\"type\":\"object\",\"properties\":{\"x\":{\"enum\":[\"a\",\"b\"]}},\"required\":[\"x\"]," \
	"\"additionalProperties\":false}"
#define GRAMMAR(syntax, definition) "\"syntax\":\"" syntax "\",\"definition\":\"" definition "\""
#define CUSTOM(name, syntax, definition) \
	"{\"type\":\"custom\",\"custom\":{\"name\":\"" name \
	"\",\"format\":{\"type\":\"grammar\",\"grammar\":{" GRAMMAR(syntax, definition) "}}}}"
#define FLAT(name, syntax, definition) \
	"{\"type\":\"custom\",\"name\":\"" name \
	"\",\"format\":{\"type\":\"grammar\"," GRAMMAR(syntax, definition) "}" \
									   "}"
#define FUNCTION(name, more) \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name "\"" more ",\"parameters\":" AB "}}"
#define FUNCTION_FLAT(name, more) "{\"type\":\"function\",\"name\":\"" name "\"" more ",\"parameters\":" AB "}"
#define STRICT ",\"strict\":true"
#define WORDS "start: \\\"x\\\"~2..3 \\\"!\\\""

#define SAYS \
	"{% if tools %}Say <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>.{% endif %}" \
	"{% for t in tools %}{{ t.function.name }}{% endfor %}{% for m in messages %}[{{ m.role }}|{{ m.content }}]" \
	"{% endfor %}{% if add_generation_prompt %}[assistant|"
static const char template[] = SAYS "{% endif %}", thinking[] = SAYS "<think>{% endif %}";
static struct child server;
static char model[64];

static struct child serve(const char *text)
{
	write_file("t_held_calls_asked.jinja", text);
	return child_start_without((const char *[]){
		model, "--template", "t_held_calls_asked.jinja", "--no-cache", "--context", "1024", NULL });
}

static int start(void **state)
{
	(void)state;
	snprintf(model, sizeof model, "t_held_calls_asked.%d.gguf", (int)getpid());
	call_model(model);
	server = serve(template);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	const int status = child_stop(&server);

	unlink("t_held_calls_asked.jinja");
	unlink(model);
	return status;
}

static unsigned seeds(void) { return test_quick() ? 2 : 8; }

static json_t *ask(const char *path, int status, const char *format, ...)
{
	char body[12000];
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(body, sizeof body, format, args), 1, sizeof body - 1);
	va_end(args);
	return client_json(&server, path, body, status);
}

static const char *said(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

/* ---- the calls of an answer, whatever its API */

struct call {
	char name[40], arguments[400];
};

static void put_call(struct call *c, const char *name, const char *arguments)
{
	snprintf(c->name, sizeof c->name, "%s", name);
	snprintf(c->arguments, sizeof c->arguments, "%s", arguments);
}

static size_t calls_of(const json_t *o, struct call c[40])
{
	const json_t *list = at(o, "choices/0/message/tool_calls"), *one;
	size_t n = 0, i;

	list = list ? list : json_object_get(o, "output");
	list = list ? list : json_object_get(o, "content");
	list = list ? list : json_object_get(json_object_get(o, "message"), "tool_calls");
	json_array_foreach(list, i, one)
	{
		const json_t *function = json_object_get(one, "function"), *custom = json_object_get(one, "custom");
		const char *type = said(one, "type");
		const json_t *given = json_object_get(function ? function : one, "arguments");
		char *text = NULL;
		given = given ? given : json_object_get(one, "input");
		text = json_is_object(given) ? json_dumps(given, JSON_COMPACT) : NULL;
		assert_true(n < 40);
		if (custom)
			put_call(&c[n++], said(custom, "name"), said(custom, "input"));
		else if (function || strcmp(type, "function_call") == 0 || strcmp(type, "tool_use") == 0 ||
		         strcmp(type, "custom_tool_call") == 0)
			put_call(&c[n++], said(function ? function : one, "name"),
			         text ? text : json_string_value(given));
		free(text);
	}
	return n;
}

/* The last one may have been cut. */
static void check_calls(json_t *o, const char *only, bool (*is_right)(const struct call *c))
{
	struct call c[40];
	const size_t n = calls_of(o, c);
	char *all = json_dumps(o, JSON_COMPACT);
	const bool cut = strstr(all, "\"length\"") || strstr(all, "\"max_tokens\"") || strstr(all, "\"incomplete\"");

	if (n < 1u + cut)
		fail_msg("%zu calls in %s", n, all);
	for (size_t i = 0; i + cut < n; i++)
		if ((only && strcmp(c[i].name, only) != 0) || !is_right(&c[i]))
			fail_msg("%s %s", c[i].name, c[i].arguments);
	free(all);
	json_decref(o);
}

static bool is_words(const struct call *c)
{
	return strcmp(c->arguments, "xx!") == 0 || strcmp(c->arguments, "xxx!") == 0;
}

static bool is_letters(const struct call *c)
{
	const size_t n = strlen(c->arguments);

	return n >= 3 && n <= 5 && strspn(c->arguments, "ab") == n;
}

static bool is_ab(const struct call *c)
{
	json_t *o = json_loads(c->arguments, 0, NULL);
	const char *x = said(o, "x");
	const bool right = json_object_size(o) == 1 && (strcmp(x, "a") == 0 || strcmp(x, "b") == 0);

	json_decref(o);
	return right;
}

static bool is_either(const struct call *c)
{
	return strcmp(c->name, "one") == 0 ? is_letters(c) : strcmp(c->name, "two") == 0 ? is_words(c) : is_ab(c);
}

static void assert_some(const json_t *o, struct call c[40])
{
	char *all = json_dumps(o, JSON_COMPACT);

	if (calls_of(o, c) == 0)
		fail_msg("no call in %s", all);
	free(all);
}

/* ---- what holds calls */

static void test_custom(void **state)
{
	static const char *const choices[] = { "", ",\"tool_choice\":\"auto\"" };
	(void)state;

	for (unsigned seed = 0; seed < seeds(); seed++) {
		json_t *o = ask(CHAT, 200,
		                "{" USER "," BIAS
		                ",\"seed\":%u,\"max_tokens\":250,\"tools\":[" FUNCTION("get", "") "," CUSTOM(
					"one", "regex", "[ab]{3,5}") "," CUSTOM("two", "lark", WORDS) "]%s}",
		                seed, choices[seed % 2]);
		assert_null(json_object_get(o, "warnings"));
		check_calls(o, NULL, is_either);
		o = ask(RESPONSES, 200,
		        "{\"input\":\"Go.\"," BIAS
		        ",\"seed\":%u,\"max_output_tokens\":250,\"tools\":[{\"type\":\"mcp\"}," FLAT(
				"one", "regex", "[ab]{3,5}") "," FLAT("two", "lark", WORDS) "]%s}",
		        seed, choices[seed % 2]);
		assert_int_equal(json_array_size(json_object_get(o, "warnings")), 1); /* of the other tool */
		check_calls(o, NULL, is_either);
	}
	/* In a stream, too: names and texts come as they do whole. */
	struct answer a =
		client_ask(&server, CHAT, NULL,
	                   "{" USER "," BIAS
	                   ",\"max_tokens\":120,\"stream\":true,\"tools\":[" CUSTOM("two", "lark", WORDS) "]}");
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(a.body, "\"name\":\"two\""));
	assert_non_null(strstr(a.body, "xx"));
	assert_null(strstr(a.body, "\"content\":\"<"));
	answer_free(&a);
}

/* strict: true of a function is held in all APIs. */
static void test_strict(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < seeds(); seed++) {
		check_calls(ask(CHAT, 200,
		                "{" USER "," BIAS
		                ",\"seed\":%u,\"max_tokens\":200,\"tools\":[" FUNCTION("get", STRICT) "]}",
		                seed),
		            "get", is_ab);
		check_calls(ask(RESPONSES, 200,
		                "{\"input\":\"Go.\"," BIAS
		                ",\"seed\":%u,\"max_output_tokens\":200,\"tools\":[" FUNCTION_FLAT("get", STRICT) "]}",
		                seed),
		            "get", is_ab);
		check_calls(ask("/v1/messages", 200,
		                "{" USER "," BIAS ",\"seed\":%u,\"max_tokens\":200,\"tools\":[{\"name\":\"get\"" STRICT
		                ",\"input_schema\":" AB "}]}",
		                seed),
		            "get", is_ab);
		check_calls(ask("/api/chat", 200,
		                "{" USER "," BIAS
		                ",\"stream\":false,\"options\":{\"seed\":%u,\"num_predict\":200},\"tools\":[" FUNCTION(
					"get", STRICT) "]}",
		                seed),
		            "get", is_ab);
	}
}

/* What no tool asks for is free; and what cannot be held is said, and answered all the same. */
static void test_not_held(void **state)
{
	struct call c[40];
	(void)state;

	json_t *o = ask(CHAT, 200, "{" USER "," BIAS ",\"max_tokens\":20,\"tools\":[" FUNCTION("get", "") "]}");
	assert_int_equal(calls_of(o, c), 0);
	json_decref(o);
	o = ask(CHAT, 200,
	        "{" USER "," BIAS
	        ",\"max_tokens\":20,\"tools\":[" FUNCTION("get", STRICT) "],\"tool_choice\":\"none\"}");
	assert_int_equal(calls_of(o, c), 0);
	json_decref(o);
	o = ask(CHAT, 200, "{" USER "," BIAS ",\"max_tokens\":20,\"tools\":[" CUSTOM("one", "lark", "start: a") "]}");
	assert_non_null(strstr(text_at(o, "warnings/0"), "tools[0].custom.format.grammar.definition is told to"));
	json_decref(o);
	o = ask(CHAT, 200, "{" USER "," BIAS ",\"max_tokens\":20,\"tools\":[" CUSTOM("one", "regex", "(?<=a)b") "]}");
	assert_non_null(strstr(text_at(o, "warnings/0"), "looking behind"));
	json_decref(o);
	o = ask(CHAT, 200,
	        "{" USER ",\"max_tokens\":20,\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get\"" STRICT
	        ",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"nosuch\"}}}}}]}");
	assert_non_null(strstr(text_at(o, "warnings/0"), "tools[0].function.parameters is told to the model"));
	json_decref(o);
	/* A form of the whole answer goes before. */
	o = ask(CHAT, 200,
	        "{" USER "," BIAS
	        ",\"max_tokens\":40,\"tools\":[" FUNCTION("get", STRICT) "],\"guided_choice\":[\"ab\"]}");
	assert_string_equal(text_at(o, "choices/0/message/content"), "ab");
	json_decref(o);
	/* Control tokens stay free outside of calls, and so do tokens that end the answer. */
	o = ask(CHAT, 200,
	        "{" USER ",\"logit_bias\":{\"0\":100},\"max_tokens\":5,\"tools\":[" FUNCTION("get", STRICT) "]}");
	assert_string_equal(text_at(o, "choices/0/message/content"), "");
	assert_int_equal(json_integer_value(at(o, "usage/completion_tokens")), 5);
	json_decref(o);
	o = ask(CHAT, 200,
	        "{" USER ",\"logit_bias\":{\"1\":100},\"max_tokens\":5,\"tools\":[" FUNCTION("get", STRICT) "]}");
	assert_string_equal(text_at(o, "choices/0/finish_reason"), "stop");
	json_decref(o);
}

/* In reasoning nothing is a call, and the text may end there. */
static void test_reasoning(void **state)
{
#define BODY(bias) "{" USER ",\"max_tokens\":12,\"tools\":[" FUNCTION("get", STRICT) "]," bias "}"
	struct child c = serve(thinking);
	struct call call[40];
	(void)state;

	json_t *o = client_json(&c, CHAT, BODY(BIAS), 200);
	assert_int_equal(calls_of(o, call), 0);
	assert_non_null(strstr(text_at(o, "choices/0/message/reasoning_content"), "<tool_call>"));
	json_decref(o);
	o = client_json(&c, CHAT, BODY("\"logit_bias\":{\"1\":100}"), 200);
	assert_string_equal(text_at(o, "choices/0/finish_reason"), "stop");
	json_decref(o);
	assert_int_equal(child_stop(&c), 0);
}

/* A text that calls nothing is the same with held calls and without. */
static void test_same_text(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < seeds(); seed++) {
		static const char body[] =
			"{" USER ",\"seed\":%u,\"max_tokens\":40,\"tools\":[" FUNCTION("get", "%s") "]}";
		json_t *held = ask(CHAT, 200, body, seed, ",\"strict\":true "),
		       *plain = ask(CHAT, 200, body, seed, ",\"strict\":false");
		const char *text = text_at(held, "choices/0/message/content");
		assert_true(*text);
		assert_string_equal(text, text_at(plain, "choices/0/message/content"));
		json_decref(held);
		json_decref(plain);
	}
}

/* ---- allowed_tools */

#define ALLOWED(mode, tools) \
	",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"" mode "\",\"tools\":[" tools "]}" \
	"}"
#define ALLOWED_FLAT(mode, tools) \
	",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"" mode "\",\"tools\":[" tools "]}"
#define THE_TOOL "{\"type\":\"function\",\"function\":{\"name\":\"get\"}}"
#define THE_FLAT "{\"type\":\"function\",\"name\":\"get\"}"

static void test_allowed(void **state)
{
	static const char *const chat[] = { ALLOWED("auto", THE_TOOL), ALLOWED("required", THE_TOOL),
		                            ALLOWED_FLAT("auto", THE_FLAT), ALLOWED_FLAT("required", THE_TOOL) };
	static const char *const flat[] = {
		ALLOWED_FLAT("auto", THE_FLAT), ALLOWED_FLAT("required", THE_FLAT), ALLOWED("auto", THE_FLAT),
		ALLOWED_FLAT("auto", "{\"type\":\"mcp\",\"server_label\":\"a\"}," THE_FLAT)
	};
	struct call c[40];
	(void)state;

	for (unsigned i = 0; i < 4 * seeds() / 2; i++) {
		const bool required = strstr(chat[i % 4], "required") != NULL;
		json_t *o = ask(CHAT, 200,
		                "{" USER "," BIAS ",\"seed\":%u,\"max_tokens\":200,\"tools\":[" FUNCTION(
					"put", "") "," CUSTOM("two", "lark", WORDS) "," FUNCTION("get", "") "]%s}",
		                i, chat[i % 4]);
		if (required) {
			assert_some(o, c);
			assert_string_equal(c[0].name, "get");
			json_decref(o);
		} else {
			check_calls(o, "get", is_ab);
		}
		o = ask(RESPONSES, 200,
		        "{\"input\":\"Go.\"," BIAS ",\"seed\":%u,\"max_output_tokens\":200,\"tools\":[" FUNCTION_FLAT(
				"put", "") ",{\"type\":\"mcp\"}," FUNCTION_FLAT("get", "") "]%s}",
		        i, flat[i % 4]);
		assert_some(o, c);
		assert_string_equal(c[0].name, "get");
		assert_string_equal(text_at(o, "tool_choice/type"), "allowed_tools"); /* as it was asked */
		json_decref(o);
	}
}

static void test_allowed_of_spaces(void **state)
{
	struct call c[40];
	(void)state;

	/* Of a namespace, and one that has a type of its own; a call that is required is never another one's. */
	for (unsigned seed = 0; seed < seeds(); seed++) {
		json_t *o =
			ask(RESPONSES, 200,
		            "{\"input\":\"Go.\"," BIAS ",\"seed\":%u,\"max_output_tokens\":200,\"tools\":[{\"type\":"
		            "\"namespace\",\"name\":\"s\",\"tools\":[" FUNCTION_FLAT("get", "") "," FUNCTION_FLAT(
				    "put", "") "]},{\"type\":\"apply_patch\"}]" ALLOWED_FLAT("required",
		                                                                             "{\"type\":\"function\","
		                                                                             "\"namespace\":\"s\","
		                                                                             "\"name\":\"put\"}") "}",
		            seed);
		assert_some(o, c);
		assert_string_equal(c[0].name, "put");
		json_decref(o);
		o = ask(RESPONSES, 200,
		        "{\"input\":\"Go.\"," BIAS ",\"seed\":%u,\"max_output_tokens\":200,\"tools\":[" FUNCTION_FLAT(
				"get",
				"") ",{\"type\":\"apply_patch\"}]" ALLOWED_FLAT("required",
		                                                                "{\"type\":\"apply_patch\"}") "}",
		        seed);
		assert_string_equal(text_at(o, "output/0/type"), "apply_patch_call");
		json_decref(o);
	}
	/* None may be called. */
	json_t *o =
		ask(CHAT, 200,
	            "{" USER "," BIAS ",\"max_tokens\":20,\"tools\":[" FUNCTION("get", "") "]" ALLOWED("auto", "") "}");
	assert_int_equal(calls_of(o, c), 0);
	json_decref(o);
}

static void test_refused(void **state)
{
	static const struct {
		const char *choice, *says;
	} cases[] = {
		{ ",\"tool_choice\":{\"type\":\"allowed_tools\"}", "its mode is missing, expected auto or required" },
		{ ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":7}", "its mode is an integer" },
		{ ALLOWED_FLAT("none", THE_FLAT), "its mode is none, expected auto or required" },
		{ ALLOWED("never", THE_TOOL), "its mode is never" },
		{ ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\"}", "its tools are missing" },
		{ ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":{}}",
		  "its tools are an object, expected an array" },
		{ ALLOWED_FLAT("auto", THE_FLAT ",{\"type\":\"function\"}"), "tool_choice.tools[1] has no text" },
		{ ALLOWED_FLAT("auto", "{\"type\":\"function\",\"name\":\"no\"}"),
		  "tool_choice.tools[0] names a function that tools does not have" },
		{ ALLOWED_FLAT("required", ""), "tool_choice requires a call, and allows none of the tools" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *o = ask(CHAT, 400, "{" USER ",\"tools\":[" FUNCTION("get", "") "]%s}", cases[i].choice);
		if (!strstr(text_at(o, "error/message"), cases[i].says))
			fail_msg("%s: %s", cases[i].choice, text_at(o, "error/message"));
		assert_string_equal(text_at(o, "error/param"), "tool_choice");
		json_decref(o);
		o = ask(RESPONSES, 400, "{\"input\":\"Go.\",\"tools\":[" FUNCTION_FLAT("get", "") "]%s}",
		        cases[i].choice);
		if (!strstr(text_at(o, "error/message"), "tool_choice"))
			fail_msg("%s: %s", cases[i].choice, text_at(o, "error/message"));
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_custom),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_not_held),
		cmocka_unit_test(test_same_text),
		cmocka_unit_test(test_reasoning),
		cmocka_unit_test(test_allowed),
		cmocka_unit_test(test_allowed_of_spaces),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
