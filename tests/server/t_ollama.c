/* tests/server/t_ollama.c - answers of ollama's API: the same tokens as by OpenAI's, lines of JSON and one object,
 * calls and reasoning, tokens of earlier answers, log probabilities and vectors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/said_lines.h"

static const char template[] =
	"{% if tools %}Say <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call> for one of {{ tools | tojson }}"
	"{% endif %}{% if enable_thinking is defined %}It thinks: {{ enable_thinking }}.{% endif %}"
	"{% for m in messages %}{{ m.role }}: {{ m.reasoning_content }}{{ m.content }}"
	"{% for c in m.tool_calls %}{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}"
	"{% if m.name %}of {{ m.name }} {{ m.tool_call_id }}{% endif %}\n{% endfor %}"
	"{% if add_generation_prompt %}assistant: {% endif %}";
static char template_path[64];
static struct child server;

static int start(void **state)
{
	const char *arguments[] = { "--no-cache",  "--alias",   "tale", "--template",
		                    template_path, "--context", "512",  NULL };
	(void)state;

	snprintf(template_path, sizeof template_path, "t_ollama.%d.jinja", (int)getpid());
	FILE *f = fopen(template_path, "w");
	if (!f || fputs(template, f) < 0 || fclose(f))
		return 1;
	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	unlink(template_path);
	return child_stop(&server);
}

/* ---- the same tokens */

#define USER "{\"role\":\"user\",\"content\":\"A tale of a \\u00fcber king.\"}"
#define TOOLS \
	"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"description\":\"gets\",\"parameters\":{" \
	"\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}}}]"

static void check_same(const char *path, const char *with, const char *where, const char *thinking, const char *other,
                       const char *as)
{
	json_t *whole = ask(&server, path, with, "\"stream\":false"), *reference = ask(&server, other, as, "");
	char *body = body_of(with, "");
	json_t *lines = ask_lines(&server, path, body);
	char *text = joined(lines, where), *thoughts = joined(lines, thinking);
	const bool chat = at(reference, "choices.0.message") != NULL;
	const char *expected = text_at(reference, chat ? "choices.0.message.content" : "choices.0.text");
	const char *reasoning = json_string_value(at(reference, "choices.0.message.reasoning_content"));
	const char *told = json_string_value(at(whole, thinking));

	assert_true(strlen(expected) > 0);
	assert_string_equal(text_at(whole, where), expected);
	assert_string_equal(text, expected);
	assert_string_equal(told ? told : "", reasoning ? reasoning : "");
	assert_string_equal(thoughts, reasoning ? reasoning : "");
	assert_int_equal((int)number_at(whole, "eval_count"), (int)number_at(reference, "usage.completion_tokens"));
	assert_int_equal((int)number_at(whole, "prompt_eval_count"), (int)number_at(reference, "usage.prompt_tokens"));
	assert_string_equal(text_at(whole, "done_reason"), text_at(reference, "choices.0.finish_reason"));
	json_decref(whole);
	json_decref(reference);
	json_decref(lines);
	free(body);
	free(text);
	free(thoughts);
}

static void test_same_tokens(void **state)
{
	static const struct {
		const char *ollama, *openai;
	} chats[] = {
		{ "\"options\":{\"num_predict\":20,\"seed\":5}", "\"max_tokens\":20,\"seed\":5" },
		{ "\"options\":{\"num_predict\":20,\"seed\":5,\"temperature\":1.4,\"top_k\":0,\"top_p\":0.9,\"min_p\":"
		  "0,"
		  "\"repeat_penalty\":1.2,\"repeat_last_n\":9,\"stop\":[\"the\"]}",
		  "\"max_tokens\":20,\"seed\":5,\"temperature\":1.4,\"top_k\":0,\"top_p\":0.9,\"min_p\":0,"
		  "\"repeat_penalty\":1.2,\"repeat_last_n\":9,\"stop\":[\"the\"]" },
		{ "\"options\":{\"num_predict\":60,\"temperature\":0},\"format\":{\"type\":\"object\",\"properties\":{"
		  "\"a\":{\"type\":\"boolean\"}},\"required\":[\"a\"],\"additionalProperties\":false}",
		  "\"max_tokens\":60,\"temperature\":0,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{"
		  "\"name\":\"n\",\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"}},"
		  "\"required\":[\"a\"],\"additionalProperties\":false}}}" },
		{ "\"options\":{\"num_predict\":20,\"seed\":8},\"think\":false,\"tools\":[]",
		  "\"max_tokens\":20,\"seed\":8,\"enable_thinking\":false" },
		{ "\"options\":{\"num_predict\":20,\"seed\":8},\"think\":true," TOOLS,
		  "\"max_tokens\":20,\"seed\":8,\"enable_thinking\":true," TOOLS },
		/* fields of chat completions beside ollama's */
		{ "\"max_tokens\":40,\"seed\":4,\"grammar\":\"root ::= \\\"<think>a b</think>\\\" [a-z ]+\"",
		  "\"max_tokens\":40,\"seed\":4,\"grammar\":\"root ::= \\\"<think>a b</think>\\\" [a-z ]+\"" },
	};
	char with[2000], as[2000];
	(void)state;

	for (size_t i = 0; i < sizeof chats / sizeof *chats; i++) {
		snprintf(with, sizeof with, "\"model\":\"tale\",\"messages\":[" USER "],%s", chats[i].ollama);
		snprintf(as, sizeof as, "\"model\":\"tale\",\"messages\":[" USER "],%s", chats[i].openai);
		check_same("/api/chat", with, "message.content", "message.thinking", "/v1/chat/completions", as);
		if (strstr(with, "tools"))
			continue;
		snprintf(with, sizeof with, "\"model\":\"tale:latest\",\"prompt\":\"A tale of a \\u00fcber king.\",%s",
		         chats[i].ollama);
		check_same("/api/generate", with, "response", "thinking", "/v1/chat/completions", as);
	}
	check_same("/api/generate", "\"prompt\":\"Once upon\",\"raw\":true,\"options\":{\"num_predict\":20,\"seed\":5}",
	           "response", "thinking", "/v1/completions", "\"prompt\":\"Once upon\",\"max_tokens\":20,\"seed\":5");
	check_same("/api/generate",
	           "\"prompt\":\"A king\",\"system\":\"Be short.\",\"options\":{\"num_predict\":20,\"seed\":5}",
	           "response", "thinking", "/v1/chat/completions",
	           "\"messages\":[{\"role\":\"system\",\"content\":\"Be short.\"},{\"role\":\"user\",\"content\":\"A "
	           "king\"}],\"max_tokens\":20,\"seed\":5");
}

/* ---- the form of answers */

static void test_lines(void **state)
{
	json_t *lines = ask_lines(&server, "/api/chat",
	                          "{\"model\":\"tale:latest\",\"messages\":[" USER
	                          "],\"options\":{\"num_predict\":6,\"seed\":5}}");
	const size_t n = json_array_size(lines);
	const char *before = "";
	(void)state;

	assert_true(n > 3);
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(lines, i);
		const char *time = text_at(o, "created_at");
		assert_string_equal(text_at(o, "model"), "tale:latest");
		assert_string_equal(text_at(o, "message.role"), "assistant");
		assert_int_equal(json_is_true(at(o, "done")), i == n - 1);
		assert_true((at(o, "done_reason") != NULL) == (i == n - 1));
		assert_int_equal(strlen(time), strlen("2026-11-28T23:04:49.123456Z"));
		assert_true(time[10] == 'T' && time[26] == 'Z' && strcmp(before, time) <= 0);
		before = time;
	}
	assert_string_equal(text_at(json_array_get(lines, n - 1), "message.content"), "");
	assert_string_equal(text_at(json_array_get(lines, n - 1), "done_reason"), "length");
	json_decref(lines);
}

/* ---- what stands in answers */

#define CALL(arguments) \
	"<tool_call>{\\\\\\\"name\\\\\\\": \\\\\\\"get\\\\\\\", \\\\\\\"arguments\\\\\\\": " arguments "}</tool_call>"
#define SAYS(text) "\"grammar\":\"root ::= \\\"" text "\\\"\""

static void check_call(const json_t *call, int x)
{
	assert_string_equal(text_at(call, "function.name"), "get");
	assert_true(json_is_object(at(call, "function.arguments")));
	assert_int_equal((int)number_at(call, "function.arguments.x"), x);
	assert_int_equal((int)number_at(call, "function.index"), x - 3);
	assert_true(strlen(text_at(call, "id")) > 0);
}

static void test_calls(void **state)
{
	const char *with = "\"messages\":[" USER "]," TOOLS
			   "," SAYS("Well. " CALL("{\\\\\\\"x\\\\\\\": 3}") CALL("{\\\\\\\"x\\\\\\\": 4}"));
	char *body = body_of(with, "");
	json_t *whole = ask(&server, "/api/chat", with, "\"stream\":false"),
	       *lines = ask_lines(&server, "/api/chat", body);
	size_t n = 0;
	(void)state;

	assert_string_equal(text_at(whole, "message.content"), "Well. ");
	assert_int_equal(json_array_size(at(whole, "message.tool_calls")), 2);
	check_call(at(whole, "message.tool_calls.0"), 3);
	check_call(at(whole, "message.tool_calls.1"), 4);
	assert_string_equal(text_at(whole, "done_reason"), "stop");
	for (size_t i = 0; i < json_array_size(lines); i++) {
		const json_t *calls = at(json_array_get(lines, i), "message.tool_calls");
		for (size_t k = 0; k < json_array_size(calls); k++)
			check_call(json_array_get(calls, k), 3 + (int)n++);
	}
	assert_int_equal(n, 2);
	json_decref(whole);
	json_decref(lines);
	free(body);
	/* What is no object is no call. */
	whole = ask(&server, "/api/chat", "\"messages\":[" USER "]," TOOLS "," SAYS(CALL("7")), "\"stream\":false");
	assert_null(at(whole, "message.tool_calls"));
	assert_non_null(strstr(text_at(whole, "message.content"), "\"arguments\": 7"));
	json_decref(whole);
}

/* A history as ollama's clients send it is the one that OpenAI's send. */
static void test_history(void **state)
{
	static const char ollama[] =
		"\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hm.\",\"tool_calls\":["
		"{\"function\":{\"name\":\"get\",\"arguments\":{\"x\":1}}},{\"function\":{\"name\":\"put\","
		"\"arguments\":{}}}]},"
		"{\"role\":\"tool\",\"tool_name\":\"put\",\"content\":\"done\"},"
		"{\"role\":\"tool\",\"tool_name\":\"get\",\"content\":\"7\",\"images\":[]}],"
		"\"max_tokens\":12,\"seed\":3,\"stream\":false";
	static const char openai[] =
		"\"messages\":[" USER
		",{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"Hm.\",\"tool_calls\":["
		"{\"id\":\"call_1_0\",\"type\":\"function\",\"function\":{\"name\":\"get\",\"arguments\":\"{\\\"x\\\":"
		"1}\"}},"
		"{\"id\":\"call_1_1\",\"type\":\"function\",\"function\":{\"name\":\"put\",\"arguments\":\"{}\"}}]},"
		"{\"role\":\"tool\",\"name\":\"put\",\"tool_call_id\":\"call_1_1\",\"content\":\"done\"},"
		"{\"role\":\"tool\",\"name\":\"get\",\"tool_call_id\":\"call_1_0\",\"content\":\"7\"}],"
		"\"max_tokens\":12,\"seed\":3";
	json_t *a = ask(&server, "/api/chat", ollama, ""), *b = ask(&server, "/v1/chat/completions", openai, "");
	(void)state;

	assert_int_equal((int)number_at(a, "prompt_eval_count"), (int)number_at(b, "usage.prompt_tokens"));
	assert_string_equal(text_at(a, "message.content"), text_at(b, "choices.0.message.content"));
	json_decref(a);
	json_decref(b);
}

/* Of a prompt without those that begin a text. */
static json_t *tokens_of(const char *prompt)
{
	char body[200];

	snprintf(body, sizeof body, "\"prompt\":\"%s\",\"max_tokens\":1,\"stream\":false", prompt);
	json_t *o = ask(&server, "/api/generate", body, ""), *list = json_copy((json_t *)(uintptr_t)at(o, "context"));
	const size_t n = (size_t)number_at(o, "prompt_eval_count");

	while (json_array_size(list) > n)
		json_array_remove(list, n);
	assert_int_equal(json_integer_value(json_array_get(list, 0)), 0);
	json_array_remove(list, 0);
	json_decref(o);
	return list;
}

/* What an answer gave goes on: its tokens are the prompt's and its own, and stand before those of the next prompt. */
static void test_context(void **state)
{
	json_t *a = ask(&server, "/api/generate",
	                "\"prompt\":\"A king\",\"stream\":false,\"options\":{\"num_predict\":7,\"seed\":2}", "");
	const json_t *context = at(a, "context");
	const size_t n = json_array_size(context);
	char *spelled = json_dumps(context, JSON_COMPACT), *body = malloc(4 * n + 4096);
	(void)state;

	assert_true(spelled && body);
	assert_int_equal(n, (size_t)number_at(a, "prompt_eval_count") + (size_t)number_at(a, "eval_count"));
	sprintf(body,
	        "\"prompt\":\"And then?\",\"stream\":false,\"context\":%s,\"options\":{\"num_predict\":7,\"seed\":2}",
	        spelled);
	json_t *b = ask(&server, "/api/generate", body, "");
	json_t *more = tokens_of("And then?"), *all = json_deep_copy(context);
	json_array_extend(all, more);
	char *prompt = json_dumps(all, JSON_COMPACT);
	sprintf(body, "\"prompt\":%s,\"max_tokens\":7,\"seed\":2", prompt);
	json_t *reference = ask(&server, "/v1/completions", body, "");
	assert_string_equal(text_at(b, "response"), text_at(reference, "choices.0.text"));
	assert_int_equal((int)number_at(b, "prompt_eval_count"), (int)number_at(reference, "usage.prompt_tokens"));
	json_decref(a);
	json_decref(b);
	json_decref(more);
	json_decref(all);
	json_decref(reference);
	free(spelled);
	free(prompt);
	free(body);
}

/* A template of the request's own writes the prompt; what looks like a control token in it is one, and in the user's
 * text it is not. */
static void test_template(void **state)
{
	static const struct {
		const char *template, *more, *text;
	} rows[] = {
		{ "Say {{ .Prompt }} {{ .Response }}unseen", "\"prompt\":\"it\"", "Say it " },
		{ "{{ if .System }}S {{ .System }}{{ else }}none{{ end }}|{{.Prompt}}", "\"prompt\":\"it\"",
		  "none|it" },
		{ "{{ if .System }}S {{ .System }}{{ else }}none{{ end }}|{{.Prompt}}",
		  "\"prompt\":\"it\",\"system\":\"be\"", "S be|it" },
		{ "a \\n {{- if .Suffix -}} \\n b {{ end -}} \\n c{{/* no */}}", "\"prompt\":\"it\"", "ac" },
		{ "a{{ if .Suffix }}b{{ else if .Prompt }}{{ if .First }}c{{ end }}d{{ else }}e{{ end }}",
		  "\"prompt\":\"it\"", "ad" },
		{ "{{ range .Messages }}<{{ .Role }}>{{ .Content }}{{ end }}", "\"prompt\":\"it\",\"system\":\"be\"",
		  "<system>be<user>it" },
		{ "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}", "\"prompt\":\"it\"", "<user>it" },
		{ "{{ if .Suffix }}P {{ .Prompt }} S {{ .Suffix }} M{{ end }}", "\"prompt\":\"it\",\"suffix\":\"end\"",
		  "P it S end M" },
	};
	char body[600];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(body, sizeof body, "\"template\":\"%s\",%s,\"max_tokens\":8,\"seed\":2,\"stream\":false",
		         rows[i].template, rows[i].more);
		json_t *a = ask(&server, "/api/generate", body, "");
		snprintf(body, sizeof body, "\"prompt\":\"%s\",\"max_tokens\":8,\"seed\":2", rows[i].text);
		json_t *b = ask(&server, "/v1/completions", body, "");
		assert_string_equal(text_at(a, "response"), text_at(b, "choices.0.text"));
		json_decref(a);
		json_decref(b);
	}
	json_t *a = ask(&server, "/api/generate",
	                "\"template\":\"<|begin_of_text|>{{ .Prompt "
	                "}}\",\"prompt\":\"a\",\"max_tokens\":1,\"stream\":false",
	                ""),
	       *b = ask(&server, "/api/generate",
	                "\"template\":\"{{ .Prompt "
	                "}}\",\"prompt\":\"<|begin_of_text|>a\",\"max_tokens\":1,\"stream\":false",
	                "");
	assert_int_equal((int)number_at(a, "prompt_eval_count"), 2);
	assert_true(number_at(b, "prompt_eval_count") > 6);
	json_decref(a);
	json_decref(b);
}

static void test_log_probabilities(void **state)
{
	const char *with = "\"messages\":[" USER "],\"max_tokens\":5,\"seed\":5,\"logprobs\":true,\"top_logprobs\":2";
	json_t *whole = ask(&server, "/api/chat", with, "\"stream\":false"),
	       *reference = ask(&server, "/v1/chat/completions", with, "");
	char *body = body_of(with, "");
	json_t *lines = ask_lines(&server, "/api/chat", body);
	const json_t *list = at(whole, "logprobs"), *entry, *line;
	size_t n = 0, i, k;
	(void)state;

	assert_int_equal(json_array_size(list), 5);
	assert_true(json_equal(list, at(reference, "choices.0.logprobs.content")));
	json_array_foreach(lines, i, line) json_array_foreach(at(line, "logprobs"), k, entry)
		assert_true(json_equal(entry, json_array_get(list, n++)));
	assert_int_equal(n, 5);
	json_decref(whole);
	json_decref(reference);
	json_decref(lines);
	free(body);
	whole = client_json(&server, "/api/chat", "{\"messages\":[" USER "],\"top_logprobs\":2}", 400);
	assert_string_equal(text_at(whole, "error"), "top_logprobs requires logprobs to be true");
	json_decref(whole);
}

/* ---- vectors */

static void test_vectors(void **state)
{
	json_t *a = ask(&server, "/api/embed", "\"model\":\"tale\",\"input\":[\"a king\",\"the sea\"]", ""),
	       *b = ask(&server, "/v1/embeddings", "\"model\":\"tale\",\"input\":[\"a king\",\"the sea\"]", ""),
	       *one = ask(&server, "/api/embeddings", "\"model\":\"tale\",\"prompt\":\"the sea\"", ""),
	       *small = ask(&server, "/api/embed", "\"model\":\"tale\",\"input\":\"the sea\",\"dimensions\":16", "");
	double sum = 0, scale = 0;
	(void)state;

	assert_true(json_equal(at(a, "embeddings.0"), at(b, "data.0.embedding")));
	assert_true(json_equal(at(a, "embeddings.1"), at(b, "data.1.embedding")));
	assert_true(json_equal(at(one, "embedding"), at(b, "data.1.embedding")));
	assert_int_equal((int)number_at(a, "prompt_eval_count"), (int)number_at(b, "usage.prompt_tokens"));
	assert_true(number_at(a, "total_duration") > 0);
	assert_int_equal(json_array_size(at(small, "embeddings.0")), 16);
	for (size_t i = 0; i < 16; i++) {
		const double x = json_number_value(json_array_get(at(small, "embeddings.0"), i)),
			     y = json_number_value(json_array_get(at(one, "embedding"), i));
		sum += x * x;
		scale = i ? scale : x / y;
		assert_true(fabs(x - y * scale) < 1e-6);
	}
	assert_true(fabs(sum - 1) < 1e-6);
	json_decref(a);
	json_decref(b);
	json_decref(one);
	json_decref(small);
	/* A text that is too long loses its end. */
	char *body = calloc(1, 8000);
	strcpy(body, "\"input\":\"a king");
	for (int i = 0; i < 600; i++)
		strcat(body, " a king");
	strcat(body, "\"");
	a = ask(&server, "/api/embed", body, "");
	assert_int_equal((int)number_at(a, "prompt_eval_count"), 512);
	json_decref(a);
	strcat(body, ",\"truncate\":false");
	char *refused = body_of(body, "");
	json_decref(client_json(&server, "/api/embed", refused, 400));
	free(refused);
	free(body);
	a = ask(&server, "/api/embed", "\"model\":\"tale\",\"input\":[]", "");
	assert_int_equal(json_array_size(at(a, "embeddings")), 0);
	json_decref(a);
}

/* What is told of a model that is in memory. */
static void test_told(void **state)
{
	json_t *show;
	(void)state;

	show = client_json(&server, "/api/show", "{\"model\":\"tale\"}", 200);
	assert_non_null(strstr(text_at(show, "template"), "It thinks"));
	assert_non_null(strstr(text_at(show, "parameters"), "num_ctx 512"));
	assert_string_equal(text_at(show, "capabilities.1"), "tools");
	assert_string_equal(text_at(show, "capabilities.2"), "thinking");
	json_decref(show);
	json_t *ps = client_json(&server, "/api/ps", NULL, 200);
	assert_string_equal(text_at(ps, "models.0.name"), "tale:latest");
	assert_int_equal((int)number_at(ps, "models.0.context_length"), 512);
	assert_int_equal((int)number_at(ps, "models.0.size_vram"), 0);
	assert_true(number_at(ps, "models.0.size") > 1e6);
	assert_true(strlen(text_at(ps, "models.0.expires_at")) > 20);
	json_decref(ps);
}

/* A client that leaves in the middle of an answer takes nothing from others. */
static void test_leaving(void **state)
{
	static const char body[] = "{\"messages\":[" USER "],\"options\":{\"seed\":3},\"ignore_eos\":true}";
	char text[600], part[200];
	(void)state;

	for (int i = 0; i < 6; i++) {
		int fd = client_connect(&server, false);
		snprintf(text, sizeof text,
		         "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
		         body);
		client_send(fd, text, strlen(text));
		if (i % 2)
			assert_true(read(fd, part, sizeof part) > 0);
		close(fd);
	}
	json_t *o = ask(&server, "/api/chat", "\"messages\":[" USER "],\"options\":{\"num_predict\":5}",
	                "\"stream\":false");
	assert_int_equal((int)number_at(o, "eval_count"), 5);
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_tokens),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_template),
		cmocka_unit_test(test_log_probabilities),
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_leaving),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
