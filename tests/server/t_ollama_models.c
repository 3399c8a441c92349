/* tests/server/t_ollama_models.c - ollama's API: lists of models, what their files say, loading, times that add up, and
 * sentences of refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/host/system.h"
#include "tests/server/said_lines.h"

static struct child two;

static int start(void **state)
{
	char other[1024];
	(void)state;

	two = child_start((const char *[]){ source_path(other, "models/tale-q8_0.gguf"), "--alias", "one:8b", "--alias",
	                                    "two", "--no-cache", NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&two);
}

#define USER "{\"role\":\"user\",\"content\":\"A tale.\"}"

/* ---- times */

static void check_times(const json_t *o, double seconds)
{
	const double total = number_at(o, "total_duration"), load = number_at(o, "load_duration"),
		     prompt = number_at(o, "prompt_eval_duration"), eval = number_at(o, "eval_duration");

	assert_true(json_is_integer(at(o, "total_duration")) && json_is_integer(at(o, "eval_duration")));
	assert_true(prompt > 0 && eval > 0 && load >= 0);
	assert_true(load + prompt + eval <= total + 4);
	assert_true(total <= seconds * 1e9);
}

/* What is told of times is within what the client measures; a model that must be loaded first counts. */
static void test_times(void **state)
{
	char body[300];
	(void)state;

	for (int i = 0; i < 4; i++) {
		snprintf(body, sizeof body,
		         "{\"model\":\"two\",\"prompt\":\"A tale of %d kings\",\"raw\":true,\"stream\":%s,"
		         "\"options\":{\"num_predict\":30,\"seed\":5}}",
		         i, i % 2 ? "false" : "true");
		const double began = system_seconds();
		struct answer a = client_ask(&two, "/api/generate", NULL, body);
		const double took = system_seconds() - began;
		assert_int_equal(a.status, 200);
		char *last = a.body + a.n_body - 1;
		while (last > a.body && last[-1] != '\n')
			last--;
		json_t *o = json_loads(last, 0, NULL);
		check_times(o, took);
		assert_true((number_at(o, "load_duration") > 0) == (i == 0));
		json_decref(o);
		answer_free(&a);
	}
}

static void test_load(void **state)
{
	static const struct {
		const char *path, *body, *reason;
	} rows[] = { { "/api/chat", "{\"model\":\"two\",\"messages\":[]}", "load" },
		     { "/api/chat", "{\"model\":\"two\"}", "load" },
		     { "/api/generate", "{\"model\":\"two\",\"keep_alive\":\"1h30m\"}", "load" },
		     { "/api/generate", "{\"model\":\"two\",\"prompt\":\"\",\"keep_alive\":-1}", "load" },
		     { "/api/generate", "{\"model\":\"two\",\"keep_alive\":0}", "unload" },
		     { "/api/chat", "{\"model\":\"two\",\"messages\":[],\"keep_alive\":\"0s\"}", "unload" } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *o = client_json(&two, rows[i].path, rows[i].body, 200);
		assert_string_equal(text_at(o, "done_reason"), rows[i].reason);
		assert_true(json_is_true(at(o, "done")));
		assert_string_equal(text_at(o, rows[i].path[5] == 'c' ? "message.content" : "response"), "");
		json_decref(o);
	}
}

/* ---- models */

static void test_models(void **state)
{
	json_t *version = client_json(&two, "/api/version", NULL, 200),
	       *tags = client_json(&two, "/api/tags", NULL, 200);
	static const char *const names[] = { "one:8b", "two:latest" };
	int major = 0, minor = 0;
	char body[100];
	(void)state;

	/* Copilot of VS Code wants 0.6.4 at least. */
	assert_int_equal(sscanf(text_at(version, "version"), "%d.%d", &major, &minor), 2);
	assert_true(major > 0 || minor >= 7);
	assert_int_equal(json_array_size(at(tags, "models")), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *m = json_array_get(at(tags, "models"), i);
		assert_string_equal(text_at(m, "name"), names[i]);
		assert_string_equal(text_at(m, "model"), names[i]);
		assert_int_equal(strlen(text_at(m, "digest")), 64);
		assert_true(number_at(m, "size") > 1e6);
		assert_string_equal(text_at(m, "details.family"), "qwen3");
		assert_string_equal(text_at(m, "details.format"), "gguf");
		assert_string_equal(text_at(m, "details.quantization_level"), "Q8_0");
		assert_string_equal(text_at(m, "details.parameter_size"), "5.77M");
		snprintf(body, sizeof body, "{\"model\":\"%s\"}", names[i]);
		json_t *show = client_json(&two, "/api/show", body, 200);
		assert_true(json_equal(at(show, "details"), at(m, "details")));
		const json_t *info = at(show, "model_info");
		assert_string_equal(json_string_value(json_object_get(info, "general.architecture")), "qwen3");
		assert_int_equal(json_integer_value(json_object_get(info, "qwen3.context_length")), 1024);
		assert_int_equal(json_integer_value(json_object_get(info, "qwen3.embedding_length")), 256);
		assert_true(json_is_null(json_object_get(info, "tokenizer.ggml.tokens")));
		assert_string_equal(text_at(show, "capabilities.0"), "completion");
		json_decref(show);
	}
	json_t *show = client_json(&two, "/api/show", "{\"name\":\"two\",\"verbose\":true}", 200);
	const json_t *tokens = json_object_get(at(show, "model_info"), "tokenizer.ggml.tokens");
	assert_int_equal(json_array_size(tokens), 4096);
	assert_string_equal(json_string_value(json_array_get(tokens, 0)), "<|begin_of_text|>");
	json_decref(show);
	json_decref(version);
	json_decref(tags);
}

static bool is_running(const char *name, char end[64])
{
	json_t *ps = client_json(&two, "/api/ps", NULL, 200);
	const json_t *one;
	size_t i;
	bool there = false;

	json_array_foreach(at(ps, "models"), i, one) if (strcmp(text_at(one, "name"), name) == 0)
	{
		there = true;
		snprintf(end, 64, "%s", text_at(one, "expires_at"));
	}
	json_decref(ps);
	return there;
}

static void must_leave(const char *name)
{
	char end[64];

	for (double last = system_seconds() + 20; is_running(name, end); usleep(10000))
		assert_true(system_seconds() < last);
}

/* How long a model stays is what the last request says; looking at it is no use of it. */
static void test_keep_alive(void **state)
{
	static const char load[] = "{\"model\":\"two\",\"keep_alive\":%s}";
	char body[200], end[64], soon[64], later[64];
	(void)state;

	snprintf(body, sizeof body, load, "\"10m\"");
	json_decref(client_json(&two, "/api/generate", body, 200));
	assert_true(is_running("two:latest", soon));
	snprintf(body, sizeof body, load, "3600");
	json_decref(client_json(&two, "/api/chat", body, 200));
	assert_true(is_running("two:latest", later) && strcmp(later, soon) > 0);
	snprintf(body, sizeof body, load, "\"-1m\"");
	json_decref(client_json(&two, "/api/chat", body, 200));
	assert_true(is_running("two:latest", end) && strcmp(end, "2300") > 0);
	snprintf(body, sizeof body, load, "0");
	json_decref(client_json(&two, "/api/chat", body, 200));
	must_leave("two:latest");
	/* An answer, and the model leaves behind it. */
	json_decref(client_json(
		&two, "/api/generate",
		"{\"model\":\"two\",\"prompt\":\"a\",\"stream\":false,\"max_tokens\":3,\"keep_alive\":0}", 200));
	must_leave("two:latest");
	json_decref(
		client_json(&two, "/api/embed", "{\"model\":\"two\",\"input\":\"a\",\"keep_alive\":\"300ms\"}", 200));
	json_decref(client_json(&two, "/api/show", "{\"model\":\"two\"}", 200));
	must_leave("two:latest");
	/* One that is away is not loaded in order to leave. */
	snprintf(body, sizeof body, load, "0");
	json_t *o = client_json(&two, "/api/generate", body, 200);
	assert_string_equal(text_at(o, "done_reason"), "unload");
	json_decref(o);
	assert_false(is_running("two:latest", end));
}

/* Browsers get the page, others the words that clients of ollama look for. */
static void test_root(void **state)
{
	static const struct {
		const char *accept;
		bool page;
	} rows[] = { { NULL, true },
		     { "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n", true },
		     { "Accept: */*\r\n", false },
		     { "Accept: application/json\r\n", false } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct answer a = client_ask(&two, "/", rows[i].accept, NULL);
		assert_int_equal(a.status, 200);
		assert_int_equal(strstr(a.body, "<html") != NULL, rows[i].page);
		assert_int_equal(strcmp(a.body, "Ollama is running") == 0, !rows[i].page);
		answer_free(&a);
	}
}

/* ---- refusals */

static void test_refusals(void **state)
{
	static const struct {
		int status;
		const char *path, *body, *says;
	} rows[] = {
		{ 404, "/api/chat", "{\"model\":\"three\",\"messages\":[" USER "]}", "model 'three' not found" },
		{ 404, "/api/generate", "{\"model\":\"one\",\"prompt\":\"a\"}", "model 'one' not found" },
		{ 404, "/api/show", "{\"model\":\"three\"}", "model 'three' not found" },
		{ 400, "/api/show", "{}", "model is missing" },
		{ 400, "/api/show", "{\"model\":7}", "model is" },
		{ 400, "/api/chat", "{\"messages\":7}", "messages is" },
		{ 400, "/api/chat", "{\"messages\":[7]}", "messages[0] is" },
		{ 400, "/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"images\":[\"aGk=\"]}]}",
		  "cannot see" },
		{ 400, "/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}",
		  "cannot see" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"images\":[\"aGk=\"]}", "cannot see" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"template\":\"{{ range .Messages }}\"}",
		  "line 1: {{ range }} has no {{ end }}" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"template\":\"{{ .Prompt }}{{ trim .Prompt }}\"}",
		  "\"trim\" is no function" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"template\":\"a {{ .Prompt\"}", "without }}" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"suffix\":\"b\"}", "suffix" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"think\":true}", "does not support thinking" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"think\":\"low\"}", "does not support thinking" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"raw\":true,\"system\":\"b\"}",
		  "raw mode does not support" },
		{ 400, "/api/generate", "{\"prompt\":\"a\",\"context\":[99999]}", "context[0]" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"think\":\"much\"}", "think is \"much\"" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"options\":7}", "options is" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"options\":{\"num_ctx\":2}}", "raise num_ctx" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"options\":{\"grammar\":\"root ::= \\\"a\\\"\"}}",
		  "grammar is no option" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"options\":{\"temperature\":NaN}}",
		  "options.temperature" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"keep_alive\":\"1e3s\"}", "keep_alive" },
		{ 400, "/api/chat", "{\"messages\":[" USER "],\"keep_alive\":\"5\\u0000m\"}", "keep_alive" },
		{ 404, "/api/copy", "{\"source\":\"three\",\"destination\":\"b\"}", "not found" },
		{ 403, "/api/copy", "{\"source\":\"two\",\"destination\":\"b\"}", "--presets-dir" },
		{ 403, "/api/create", "{\"model\":\"a\",\"from\":\"two\"}", "makes no models" },
		{ 403, "/api/pull", "{\"model\":\"a/b\"}", "fetches no models" },
		{ 403, "/api/push", "{\"model\":\"two\"}", "nowhere" },
		{ 501, "/api/blobs/sha256:00", "x", "no blobs" },
		{ 404, "/api/blobs/sha256:00", NULL, "no blob sha256:00" },
		{ 404, "/api/nothing", "{}", "There is nothing" },
		{ 405, "/api/tags", "{}", "not answered with POST" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct answer a = client_ask(&two, rows[i].path, NULL, rows[i].body);
		json_t *o = json_loads(a.body ? a.body : "", 0, NULL);
		const char *text = json_string_value(json_object_get(o, "error"));
		if (a.status != rows[i].status || !text || !strstr(text, rows[i].says))
			fail_msg("%s %s: %d %s", rows[i].path, rows[i].body, a.status, a.body);
		json_decref(o);
		answer_free(&a);
	}
}

static void test_delete(void **state)
{
	static const struct {
		const char *name;
		int status;
	} rows[] = { { "two", 403 }, { "three", 404 } };
	char text[300], body[60];
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		snprintf(body, sizeof body, "{\"model\":\"%s\"}", rows[i].name);
		snprintf(text, sizeof text,
		         "DELETE /api/delete HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
		         strlen(body), body);
		int fd = client_connect(&two, false);
		client_send(fd, text, strlen(text));
		struct answer a = client_read(fd, 10);
		assert_int_equal(a.status, rows[i].status);
		assert_non_null(strstr(a.body, "{\"error\":\""));
		answer_free(&a);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),   cmocka_unit_test(test_times), /* the second model is not loaded yet */
		cmocka_unit_test(test_load),     cmocka_unit_test(test_keep_alive), cmocka_unit_test(test_root),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_delete),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
