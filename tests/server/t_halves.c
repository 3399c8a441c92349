/* tests/server/t_halves.c - texts that a client cut between the halves of a surrogate pair: refused with status 400
 * wherever they stand, by the name of the field. And what a refusal does not tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/request/refusal.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static struct child server;

static int start(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--slot-save", ".", NULL };
	(void)state;

	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&server);
}

#define HALF "\\ud83d"
#define USER "{\"role\":\"user\",\"content\":\"x\"}"
#define CHAT "\"max_tokens\":1,\"messages\":[" USER "],"

static const struct {
	const char *path, *body, *param, *prefix;
} rows[] = {
	{ "/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"a" HALF "\"}]}", "messages",
	  "messages[0].content" },
	{ "/v1/chat/completions", "{\"messages\":[{\"role\":\"" HALF "\",\"content\":\"a\"}]}", "messages",
	  "messages[0].role" },
	{ "/v1/chat/completions",
	  "{\"messages\":[" USER ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"" HALF "b\"}]}]}",
	  "messages", "messages[1].content[0].text" },
	{ "/v1/chat/completions",
	  "{" CHAT "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"" HALF "\"}}]}",
	  "tools", "tools[0].function.description" },
	{ "/v1/chat/completions",
	  "{" CHAT "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"properties\":{\"" HALF
	  "\":{}}}}}}",
	  "response_format", "response_format.json_schema.schema.properties" },
	{ "/v1/chat/completions", "{" CHAT "\"metadata\":{\"a\":\"" HALF "\"}}", "metadata", "metadata.a" },
	{ "/v1/chat/completions", "{" CHAT "\"user\":\"" HALF "\"}", "user", "user" },
	{ "/v1/chat/completions", "{" CHAT "\"stop\":[\"a\",\"\\udc00\"]}", "stop", "stop[1]" },
	{ "/v1/chat/completions", "{" CHAT "\"grammar\":\"root ::= \\\"" HALF "\\\"\"}", "grammar", "grammar" },
	{ "/v1/chat/completions", "{" CHAT "\"chat_template_kwargs\":{\"a\":[\"" HALF "\"]}}", "chat_template_kwargs",
	  "chat_template_kwargs.a[0]" },
	{ "/v1/chat/completions", "{" CHAT "\"model\":\"" HALF "\"}", "model", "model" },
	{ "/v1/chat/completions", "{" CHAT "\"" HALF "\":1}", NULL, "the body" },
	{ "/v1/chat/completions/input_tokens", "{\"messages\":[{\"role\":\"user\",\"content\":\"" HALF "\"}]}",
	  "messages", "messages[0].content" },
	{ "/v1/completions", "{\"prompt\":\"\\ude00\\ud83d\"}", "prompt", "prompt" },
	{ "/v1/completions", "{\"prompt\":[\"a\",\"" HALF " \"]}", "prompt", "prompt[1]" },
	{ "/v1/completions", "{\"prompt\":\"a\",\"logit_bias\":[[\"" HALF "\",1]]}", "logit_bias", "logit_bias[0][0]" },
	{ "/v1/completions", "{\"prompt\":\"a\",\"samplers\":[\"" HALF "\"]}", "samplers", "samplers[0]" },
	{ "/completion", "{\"prompt\":{\"prompt_string\":\"" HALF "\"}}", "prompt", "prompt.prompt_string" },
	{ "/completion", "{\"prompt\":\"a\",\"response_fields\":[\"" HALF "\"]}", "response_fields",
	  "response_fields[0]" },
	{ "/v1/messages", "{\"max_tokens\":1,\"system\":\"" HALF "\",\"messages\":[" USER "]}", "system", "system" },
	{ "/v1/messages",
	  "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
	  "\"1\",\"content\":\"" HALF "\"}]}]}",
	  "messages", "messages[0].content[0].content" },
	{ "/v1/messages/count_tokens", "{\"messages\":[{\"role\":\"user\",\"content\":\"" HALF "\"}]}", "messages",
	  "messages[0].content" },
	{ "/v1/responses", "{\"input\":\"a" HALF "\"}", "input", "input" },
	{ "/v1/responses", "{\"input\":[{\"role\":\"user\",\"content\":\"" HALF "\"}]}", "input", "input[0].content" },
	{ "/v1/responses", "{\"input\":\"a\",\"instructions\":\"" HALF "\"}", "instructions", "instructions" },
	{ "/v1/responses/input_tokens", "{\"input\":\"" HALF "\"}", "input", "input" },
	{ "/v1/embeddings", "{\"input\":[\"a\",\"b" HALF "\"]}", "input", "input[1]" },
	{ "/v1/rerank", "{\"query\":\"" HALF "\",\"documents\":[\"a\"]}", "query", "query" },
	{ "/tokenize", "{\"content\":\"" HALF "\"}", "content", "content" },
	{ "/detokenize", "{\"tokens\":[\"" HALF "\"]}", "tokens", "tokens[0]" },
	{ "/apply-template", "{\"messages\":[{\"role\":\"user\",\"content\":\"" HALF "\"}]}", "messages",
	  "messages[0].content" },
	{ "/slots/0?action=save", "{\"filename\":\"" HALF "\"}", "filename", "filename" },
};

static void test_halves(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *o = client_json(&server, rows[i].path, rows[i].body, 400), *e = json_object_get(o, "error");
		const char *param = json_string_value(json_object_get(e, "param"));
		const char *message = json_string_value(json_object_get(e, "message"));
		const size_t n = strlen(rows[i].prefix);
		assert_int_equal(strncmp(message, rows[i].prefix, n), 0);
		assert_int_equal(strncmp(message + n, " has half of a surrogate pair", 29), 0);
		if (!rows[i].param)
			assert_null(param);
		else if (param) /* Anthropic's form has none */
			assert_string_equal(param, rows[i].param);
		json_decref(o);
	}
}

/* NaN and Infinity are no JSON either, and nothing is made of them where nobody reads a number. */
static void test_not_finite(void **state)
{
	static const struct {
		const char *path, *body, *beginning;
	} numbers[] = {
		{ "/v1/responses", "{\"input\":\"a\",\"metadata\":{\"b\":NaN}}", "metadata.b is NaN" },
		{ "/v1/responses", "{\"input\":\"a\",\"metadata\":-Infinity}", "metadata is -Infinity" },
		{ "/v1/chat/completions", "{" CHAT "\"tools\":[NaN]}", "tools[0] is NaN" },
		{ "/v1/chat/completions", "{" CHAT "\"unknown\":Infinity}", "unknown is Infinity" },
		{ "/v1/chat/completions", "{" CHAT "\"temperature\":NaN}",
		  "temperature is NaN, which JSON does not have" },
		{ "/v1/responses", "{\"input\":1e999}", "input is Infinity, " },
		{ "/v1/responses/input_tokens", "{\"input\":-1e999}", "input is -Infinity, " },
		{ "/tokenize", "{\"content\":NaN}", "content is NaN, " },
		{ "/v1/embeddings", "{\"input\":NaN}", "input is NaN, " },
	};
	(void)state;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		json_t *o = client_json(&server, numbers[i].path, numbers[i].body, 400);
		const char *message = json_string_value(json_object_get(json_object_get(o, "error"), "message"));
		assert_int_equal(strncmp(message, numbers[i].beginning, strlen(numbers[i].beginning)), 0);
		json_decref(o);
	}
}

/* Arguments of calls are JSON in a text, which has escapes of its own. */
static void test_arguments(void **state)
{
	static const struct {
		const char *arguments;
		int status;
	} rows[] = {
		{ "{\\\"a\\\":\\\"\\\\ud83d\\\"}", 400 },
		{ "{\\\"a\\\":\\\"\\\\uDE00 x\\\"}", 400 },
		{ "{\\\"a\\\":\\\"\\\\ud83d\\\\ud83d\\\"}", 400 },
		{ "{'a': '\\\\ud83d'}", 400 },
		{ "{\\\"a\\\":\\\"\\\\ud83d\\\\ude00\\\"}", 200 },
		{ "{\\\"a\\\":\\\"\\\\\\\\ud83d\\\"}", 200 },
		{ "{\\\"a\\\":\\\"\\\\u00e9\\\"}", 200 },
		/* no JSON, as what else a model spells wrong */
		{ "{\\\"a\\\":NaN}", 200 },
		{ "{\\\"a\\\":[1e999]}", 200 },
	};
	char body[1000];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(body, sizeof body,
		         "{" CHAT "\"messages\":[" USER
		         ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"type\":"
		         "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"%s\"}}]},{\"role\":\"tool\","
		         "\"tool_call_id\":\"1\",\"content\":\"x\"}]}",
		         rows[i].arguments);
		json_decref(client_json(&server, "/v1/chat/completions", body, rows[i].status));
		snprintf(body, sizeof body,
		         "{\"max_output_tokens\":1,\"input\":[" USER ",{\"type\":\"function_call\",\"call_id\":\"1\","
		         "\"name\":\"f\",\"arguments\":\"%s\"},{\"type\":\"function_call_output\",\"call_id\":\"1\","
		         "\"output\":\"x\"}]}",
		         rows[i].arguments);
		json_decref(client_json(&server, "/v1/responses", body, rows[i].status));
	}
}

/* ---- paths in what is told */

static void test_paths(void **state)
{
	static const struct {
		const char *text, *of, *expected;
	} paths[] = {
		{ "/srv/models/x.gguf: cannot be opened", NULL, "x.gguf: cannot be opened" },
		{ "models/a/x.gguf: tensor \"a/b\" is short", "models/a/y.gguf", "x.gguf: tensor \"a/b\" is short" },
		{ "../m/dir/config.json: no", "../m/dir", "dir/config.json: no" },
		{ "see \"/etc/a b/c\" and (/x/y), /usr/lib/", NULL, "see \"a b/c\" and (y), lib/" },
		{ "no model at #/properties/a, 3/4 of /", "x.gguf", "no model at #/properties/a, 3/4 of " },
		{ "", "/a/b", "" },
	};
	char text[200];
	(void)state;

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		strcpy(text, paths[i].text);
		refusal_hide_paths(text, paths[i].of);
		assert_string_equal(text, paths[i].expected);
	}
}

/* Both halves are a character. */
static void test_pairs(void **state)
{
	(void)state;
	json_decref(client_json(&server, "/v1/chat/completions",
	                        "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"\\ud83d\\ude00\"}],"
	                        "\"metadata\":{\"\\ud83d\\ude00\":\"\\ud83d\\ude00\"}}",
	                        200));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_halves), cmocka_unit_test(test_pairs),
		                            cmocka_unit_test(test_not_finite), cmocka_unit_test(test_arguments),
		                            cmocka_unit_test(test_paths) };

	return cmocka_run_group_tests(tests, start, stop);
}
