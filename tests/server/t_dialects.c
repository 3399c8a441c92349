/* tests/server/t_dialects.c - what clients of several APIs read in answers: calls in the older form of functions, whole
 * and in streams; refusals as Anthropic's clients know them; limits of tokens and of reasoning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server/field_kinds.h"
#include "tests/server/json_at.h"

#define GET \
	"{\"name\":\"get\",\"parameters\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"," \
	"\"minimum\":1,\"maximum\":3}},\"required\":[\"n\"],\"additionalProperties\":false}}"
#define ASKS "{\"messages\":[" FIELDS_USER "],\"max_tokens\":60,\"functions\":[" GET "],"

/* ---- functions */

static void test_function_call(void **state)
{
	json_t *o =
		client_json(&fields_server, "/v1/chat/completions", ASKS "\"function_call\":{\"name\":\"get\"}}", 200);
	json_t *arguments = json_loads(text_at(o, "choices/0/message/function_call/arguments"), 0, NULL);
	(void)state;

	assert_string_equal(text_at(o, "choices/0/message/function_call/name"), "get");
	assert_true(json_integer_value(json_object_get(arguments, "n")) >= 1);
	assert_string_equal(text_at(o, "choices/0/finish_reason"), "function_call");
	assert_true(json_is_null(at(o, "choices/0/message/content")));
	assert_null(at(o, "choices/0/message/tool_calls"));
	json_decref(arguments);
	json_decref(o);
}

/* The parts of a stream put together are the whole call. */
static void test_function_stream(void **state)
{
	static const char body[] = ASKS "\"seed\":3,\"stream\":%s,\"function_call\":{\"name\":\"get\"}}";
	char text[2000], name[40] = "", arguments[400] = "", finish[40] = "";
	(void)state;

	snprintf(text, sizeof text, body, "false");
	json_t *whole = client_json(&fields_server, "/v1/chat/completions", text, 200);
	snprintf(text, sizeof text, body, "true");
	struct answer a = client_ask(&fields_server, "/v1/chat/completions", NULL, text);
	for (const char *line = a.body; (line = strstr(line, "data: {")); line++) {
		json_t *o = json_loads(line + 6, JSON_DISABLE_EOF_CHECK, NULL);
		assert_non_null(o);
		assert_null(at(o, "choices/0/delta/tool_calls"));
		strcat(name, text_at(o, "choices/0/delta/function_call/name"));
		strcat(arguments, text_at(o, "choices/0/delta/function_call/arguments"));
		strcat(finish, text_at(o, "choices/0/finish_reason"));
		json_decref(o);
	}
	assert_string_equal(name, "get");
	assert_string_equal(arguments, text_at(whole, "choices/0/message/function_call/arguments"));
	assert_string_equal(finish, "function_call");
	answer_free(&a);
	json_decref(whole);
}

/* A conversation that has them is the one that has tools. */
static void test_function_history(void **state)
{
	static const char old[] =
		"{\"messages\":[" FIELDS_USER ",{\"role\":\"assistant\",\"content\":null,\"function_call\":{\"name\":"
		"\"get\",\"arguments\":\"{\\\"n\\\":1}\"}},{\"role\":\"function\",\"name\":\"get\",\"content\":\"One."
		"\"}],\"functions\":[" GET "]}";
	static const char new[] =
		"{\"messages\":[" FIELDS_USER ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":"
		"\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"get\",\"arguments\":\"{\\\"n\\\":1}\"}}]},"
		"{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"name\":\"get\",\"content\":\"One.\"}],\"tools\":[{"
		"\"type\":\"function\",\"function\":" GET "}]}";
	json_t *a = client_json(&fields_server, "/apply-template", old, 200),
	       *b = client_json(&fields_server, "/apply-template", new, 200);
	(void)state;

	assert_string_equal(text_at(a, "prompt"), text_at(b, "prompt"));
	json_decref(a);
	json_decref(b);
}

static void test_functions_refused(void **state)
{
	static const struct {
		const char *more, *param;
	} cases[] = {
		{ "\"tools\":[{\"type\":\"function\",\"function\":" GET "}]", "functions" },
		{ "\"functions\":[7]", "functions" },
		{ "\"functions\":[{\"name\":7}]", "functions" },
		{ "\"functions\":7", "functions" },
		{ "\"function_call\":7", "function_call" },
		{ "\"function_call\":\"required\"", "function_call" },
		{ "\"functions\":[],\"function_call\":{\"name\":\"get\"}", "function_call" },
		{ "\"function_call\":{\"name\":\"other\"}", "tool_choice" },
		{ "\"messages\":[{\"role\":\"assistant\",\"function_call\":{}}]", "messages" },
		{ "\"messages\":[{\"role\":\"assistant\",\"function_call\":\"get\"}]", "messages" },
		{ "\"functions\":[{\"name\":\"get\",\"parameters\":{\"type\":\"nosuch\"}}],\"function_call\":{\"name\":"
		  "\"get\"}",
		  "functions[0].parameters" },
	};
	char body[2000];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(body, sizeof body, ASKS "%s}", cases[i].more);
		json_t *o = client_json(&fields_server, "/v1/chat/completions", body, 400);
		assert_string_equal(text_at(o, "error/param"), cases[i].param);
		json_decref(o);
	}
}

/* ---- refusals */

static void check_anthropic(struct answer *a, int status, const char *type)
{
	json_t *o = json_loads(a->body, 0, NULL);
	const char *id = answer_field(a, "request-id");

	assert_int_equal(a->status, status);
	assert_non_null(id);
	assert_memory_equal(id, "req_", 4);
	assert_string_equal(text_at(o, "request_id"), id);
	assert_string_equal(text_at(o, "type"), "error");
	assert_string_equal(text_at(o, "error/type"), type);
	assert_true(*text_at(o, "error/message"));
	json_decref(o);
	answer_free(a);
}

static void test_anthropic_refusals(void **state)
{
	static const char *const paths[] = { "/v1/messages", "//v1//messages", "/v1/messages/",
		                             "/v1/messages/count_tokens" };
	struct answer a;
	(void)state;

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		a = client_ask(&fields_server, paths[i], NULL, "{\"messages\":7,\"max_tokens\":5}");
		check_anthropic(&a, 400, "invalid_request_error");
	}
	a = client_ask(&fields_server, "/v1/messages", NULL, NULL);
	check_anthropic(&a, 405, "invalid_request_error");
	a = client_ask(&fields_two, "/v1/messages", NULL,
	               "{\"model\":\"nobody\",\"max_tokens\":5,\"messages\":[" FIELDS_USER "]}");
	check_anthropic(&a, 404, "not_found_error");
	a = client_ask(&fields_server, "/v1/nothing", "anthropic-version: 2023-06-01\r\n", "{}");
	check_anthropic(&a, 404, "not_found_error");
	a = client_ask(&fields_server, "/v1/messages", NULL,
	               "{\"max_tokens\":5,\"stream\":true,\"messages\":[" FIELDS_USER "]}");
	assert_int_equal(a.status, 200);
	assert_non_null(answer_field(&a, "request-id"));
	answer_free(&a);
	a = client_ask(&fields_server, "/v1/completions", NULL, "{\"prompt\":7}");
	assert_non_null(answer_field(&a, "X-Request-Id"));
	assert_null(answer_field(&a, "request-id"));
	assert_null(strstr(a.body, "request_id"));
	answer_free(&a);
}

/* ---- limits */

static char *completion(const char *more)
{
	char body[2000];

	snprintf(body, sizeof body, "{\"prompt\":\"A tale of\",\"temperature\":0,\"max_tokens\":40,%s}", more);
	json_t *o = client_json(&fields_server, "/v1/completions", body, 200);
	char *text = strdup(text_at(o, "choices/0/text"));
	json_decref(o);
	return text;
}

/* A text that ends an answer counts from min_tokens on. */
static void test_min(void **state)
{
	(void)state;
	for (int min = 0; min < 9; min++) {
		char more[300], expected[100] = "";
		json_t *o = client_json(&fields_server, "/tokenize", "{\"content\":\"x\"}", 200);
		const json_int_t id = json_integer_value(at(o, "tokens/0"));
		json_decref(o);
		snprintf(more, sizeof more,
		         "\"min_tokens\":%d,\"stop\":[\"x\"],\"grammar\":\"root ::= [x]+\","
		         "\"include_stop_str_in_output\":true,\"logit_bias\":{\"%d\":100},\"max_tokens\":30",
		         min, (int)id);
		char *text = completion(more);
		memset(expected, 'x', (size_t)min + 1);
		assert_string_equal(text, expected);
		free(text);
	}
	json_t *o = client_json(&fields_server, "/v1/completions",
	                        "{\"prompt\":\"A\",\"max_tokens\":4,\"min_tokens\":5}", 400);
	assert_string_equal(text_at(o, "error/param"), "min_tokens");
	json_decref(o);
}

/* What leaves no token is refused, and what a grammar completes ends. */
static void test_nothing_left(void **state)
{
	json_t *o = client_json(&fields_server, "/v1/completions",
	                        "{\"prompt\":\"A\",\"allowed_token_ids\":[60],\"logit_bias\":{\"60\":false}}", 400);
	(void)state;

	assert_string_equal(text_at(o, "error/message"),
	                    "logit_bias and allowed_token_ids leave no token that may follow here");
	json_decref(o);
	char *text = completion("\"min_tokens\":9,\"grammar\":\"root ::= \\\"ab\\\"\"");
	assert_string_equal(text, "ab");
	free(text);
}

/* What a model thinks, and its answer, whatever the name of the budget. */
static void test_budget(void **state)
{
	static const struct {
		const char *path, *body, *reasoning, *answer;
	} cases[] = {
		{ "/v1/chat/completions",
		  "{\"temperature\":0,\"max_tokens\":30,\"reasoning\":{\"max_tokens\":4},\"messages\":[" FIELDS_USER
		  ",{\"role\":\"assistant\",\"content\":\"<think>\"}]}",
		  "choices/0/message/reasoning_content", "choices/0/message/content" },
		{ "/v1/messages",
		  "{\"temperature\":0,\"max_tokens\":30,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":4},"
		  "\"chat_template_kwargs\":{},\"messages\":[" FIELDS_USER
		  ",{\"role\":\"assistant\",\"content\":\"<think>\"}]}",
		  "content/0/thinking", "content/1/text" },
		{ "/v1/responses",
		  "{\"temperature\":0,\"max_output_tokens\":30,\"reasoning_budget\":4,\"input\":[" FIELDS_USER
		  ",{\"role\":\"assistant\",\"content\":\"<think>\"}]}",
		  "output/0/content/0/text", "output/1/content/0/text" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *o = client_json(&fields_server, cases[i].path, cases[i].body, 200);
		const char *reasoning = text_at(o, cases[i].reasoning);
		assert_true(*reasoning && strlen(reasoning) < 40);
		assert_true(*text_at(o, cases[i].answer));
		json_decref(o);
	}
}

/* A form that asks for a member and names none: right only where an object may have others. */
static void test_additional(void **state)
{
#define OTHERS "{\"type\":\"object\",\"properties\":{},\"minProperties\":1,\"maxProperties\":1}"
#define FUNCTION "{\"name\":\"put\",\"description\":\"It puts.\",\"parameters\":" OTHERS "%s}"
	static const struct {
		const char *path, *body, *allowed, *other;
	} cases[] = {
		{ "/v1/chat/completions",
		  "\"messages\":[" FIELDS_USER "],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{"
		  "\"schema\":" OTHERS "%s}}",
		  ",\"strict\":true", ",\"strict\":false" },
		{ "/v1/responses",
		  "\"input\":\"A "
		  "tale\",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"x\",\"schema\":" OTHERS "%s}}",
		  ",\"strict\":true", ",\"strict\":false" },
		{ "/v1/chat/completions",
		  "\"messages\":[" FIELDS_USER "],\"tools\":[{\"type\":\"function\",\"function\":" FUNCTION
		  "}],\"tool_choice\":\"required\"",
		  ",\"strict\":true", ",\"strict\":false" },
		{ "/v1/completions", "\"prompt\":\"A\",\"structured_outputs\":{\"json\":" OTHERS "%s}",
		  ",\"disable_additional_properties\":false", ",\"disable_additional_properties\":true" },
		{ "/v1/completions",
		  "\"prompt\":\"A\",\"additional_properties\":true,\"structured_outputs\":{\"json\":" OTHERS "%s}", "",
		  ",\"disable_additional_properties\":true" },
	};
	char more[600], body[1200];
	(void)state;

	for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		snprintf(more, sizeof more, cases[i / 2].body, i % 2 ? cases[i / 2].other : cases[i / 2].allowed);
		snprintf(body, sizeof body, "{\"%s\":20,\"seed\":1,%s}",
		         strstr(more, "\"input\"") ? "max_output_tokens" : "max_tokens", more);
		struct answer a = client_ask(&fields_server, cases[i / 2].path, NULL, body);
		if (a.status != (i % 2 ? 400 : 200))
			fail_msg("%s: %d %s", body, a.status, a.body);
		answer_free(&a);
	}
}

/* Each token of a prompt is told with those that were likelier. */
static void test_prompt_logprobs(void **state)
{
	json_t *o = client_json(&fields_server, "/v1/completions",
	                        "{\"prompt\":[\"A tale of a king\",\"The\"],\"max_tokens\":1,\"prompt_logprobs\":3}",
	                        200),
	       *ids = client_json(&fields_server, "/tokenize",
	                          "{\"content\":\"A tale of a king\",\"add_special\":true}", 200);
	const json_t *list = at(o, "choices/0/prompt_logprobs"), *tokens = at(ids, "tokens");
	(void)state;

	assert_int_equal(json_array_size(list), json_array_size(tokens));
	assert_true(json_array_size(list) > 2);
	assert_true(json_is_null(json_array_get(list, 0)));
	for (size_t i = 1; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		char name[20];
		snprintf(name, sizeof name, "%d", (int)json_integer_value(json_array_get(tokens, i)));
		assert_true(json_real_value(at(json_object_get(one, name), "logprob")) < 0);
		assert_in_range(json_object_size(one), 3, 4);
	}
	assert_true(json_array_size(at(o, "choices/1/prompt_logprobs")) >= 1);
	json_decref(o);
	json_decref(ids);
	o = client_json(&fields_server, "/v1/completions", "{\"prompt\":\"A\",\"stream\":true,\"prompt_logprobs\":1}",
	                400);
	assert_string_equal(text_at(o, "error/param"), "prompt_logprobs");
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_call),      cmocka_unit_test(test_function_stream),
		cmocka_unit_test(test_function_history),   cmocka_unit_test(test_functions_refused),
		cmocka_unit_test(test_anthropic_refusals), cmocka_unit_test(test_min),
		cmocka_unit_test(test_nothing_left),       cmocka_unit_test(test_budget),
		cmocka_unit_test(test_prompt_logprobs),    cmocka_unit_test(test_additional),
	};

	return cmocka_run_group_tests(tests, fields_start, fields_stop);
}
