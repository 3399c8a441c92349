/* tests/server/t_small_parts.c - single parts of requests and answers: what stands in the first and the last event of a
 * stream, texts that end answers and are kept with a model, reasoning that stays in the text, parameters of functions
 * that say little, series of /metrics, and what ollama's API makes of numbers, results of functions and raw prompts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/said_lines.h"
#include "tests/server/made_models.h"

#define SAYS(text) "\"grammar\":\"root ::= \\\"" text "\\\"\""

/* ---- events without text */

/* The events of a stream, but for "[DONE]". */
static json_t *events_of(const char *path, const char *members)
{
	char *body = body_of(members, "\"stream\":true");
	struct answer a = client_ask(&server, path, NULL, body);
	json_t *list = json_array();

	assert_int_equal(a.status, 200);
	for (const char *at = a.body; (at = strstr(at, "data: {")); at++) {
		json_t *o = json_loadb(at + 6, strcspn(at + 6, "\n"), 0, NULL);
		assert_non_null(o);
		json_array_append_new(list, o);
	}
	answer_free(&a);
	free(body);
	return list;
}

/* What says nothing has an empty piece, of the kind that pieces are of. */
static void check_empty(const json_t *event, bool chat)
{
	const json_t *part = at(event, chat ? "choices.0.delta" : "choices.0.text");

	if (chat ? !json_is_object(part) || json_object_size(part) != 0
	         : !json_is_string(part) || json_string_length(part) != 0)
		fail_msg("%s", json_dumps(event, 0));
}

static void test_empty_deltas(void **state)
{
	(void)state;
	for (int chat = 0; chat < 2; chat++) {
		json_t *list = events_of(chat ? "/v1/chat/completions" : "/v1/completions",
		                         chat ? "\"messages\":[" HI "],\"return_progress\":true,\"max_tokens\":3"
		                              : "\"prompt\":\"Hi\",\"return_progress\":true,\"max_tokens\":3");
		const json_t *event;
		size_t i, progress = 0, ends = 0;
		json_array_foreach(list, i, event)
		{
			const bool told = at(event, "prompt_progress") != NULL;
			const bool last = json_is_string(at(event, "choices.0.finish_reason"));
			progress += told;
			ends += last;
			if (told || last)
				check_empty(event, chat);
			else if (chat && i > 0 && at(event, "choices.0"))
				assert_true(json_object_size(at(event, "choices.0.delta")) == 1 ||
				            at(event, "choices.0.delta.role"));
		}
		assert_true(progress > 0);
		assert_int_equal(ends, 1);
		json_decref(list);
	}
}

/* ---- texts that end answers */

static void check_answer(const char *name, const char *more, const char *expected)
{
	char with[500];

	snprintf(with, sizeof with, "\"model\":\"%s\",\"messages\":[" HI "]," SAYS("one two three four") "%s", name,
	         more);
	json_t *o = ask(&server, "/v1/chat/completions", with, "");
	if (strcmp(text_at(o, "choices.0.message.content"), expected) != 0)
		fail_msg("%s: %s", with, json_dumps(o, 0));
	json_decref(o);
}

/* A request's own texts stand instead of those that are kept with the model, and none of its own are none at all. */
static void test_kept_stops(void **state)
{
	(void)state;
	make("stops", "\"from\":\"tale\",\"parameters\":{\"stop\":[\"three\",\"four\"]}");
	check_answer("stops", "", "one two ");
	check_answer("stops", ",\"stop\":null", "one two ");
	check_answer("stops", ",\"stop\":\"two\"", "one ");
	check_answer("stops", ",\"stop\":\"four\"", "one two three ");
	check_answer("stops", ",\"stop\":[\"seven\",\"eight\",\"nine\"]", "one two three four");
	check_answer("stops", ",\"stop\":[]", "one two three four");
	check_answer("tale", "", "one two three four");
	must_delete("stops", 200);
}

/* ---- reasoning */

#define THINKS SAYS("<think>so it is</think>done")

static void check_thoughts(const char *more, const char *thoughts, const char *text)
{
	char with[500];

	snprintf(with, sizeof with, "\"messages\":[" HI "]," THINKS "%s", more);
	json_t *o = ask(&server, "/v1/chat/completions", with, "");
	const json_t *told = at(o, "choices.0.message.reasoning_content");
	assert_string_equal(told ? json_string_value(told) : "", thoughts);
	assert_string_equal(text_at(o, "choices.0.message.content"), text);
	json_decref(o);
	if (*more)
		return;
	o = ask(&server, "/api/chat", with, "\"stream\":false");
	told = at(o, "message.thinking");
	assert_string_equal(told ? json_string_value(told) : "", thoughts);
	assert_string_equal(text_at(o, "message.content"), text);
	json_decref(o);
}

/* What --reasoning-format says counts where a request does not say. */
static void test_reasoning_format(void **state)
{
	static const char all[] = "<think>so it is</think>done";
	const struct child own = server;
	(void)state;

	check_thoughts("", "so it is", "done");
	check_thoughts(",\"reasoning_format\":\"none\"", "", all);
	check_thoughts(",\"reasoning_format\":\"deepseek\"", "so it is", "done");
	server = child_start((const char *[]){ "--no-cache", "--reasoning-format", "none", NULL });
	check_thoughts("", "", all);
	check_thoughts(",\"reasoning_format\":\"none\"", "", all);
	check_thoughts(",\"reasoning_format\":\"deepseek\"", "so it is", "done");
	assert_int_equal(child_stop(&server), 0);
	server = own;
}

/* ---- functions */

#define TOOL(function) "\"tools\":[" function "]"
#define WITH(parameters) TOOL("{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":" parameters "}}")

/* Arguments are an object, also where a schema takes other values: they are a call, whatever the model writes. */
static void test_any_parameters(void **state)
{
	static const char *const rows[][2] = {
		{ WITH("{\"maxProperties\":0}"), "{}" },
		{ WITH("{\"anyOf\":[{\"type\":\"string\"},{\"maxProperties\":0}],\"minLength\":1}"), "{}" },
		{ WITH("{\"enum\":[7,\"x\",{\"a\":1}]}"), "{\"a\":1}" },
		{ WITH("{\"type\":[\"object\",\"null\"],\"enum\":[null,{\"b\":2}]}"), "{\"b\":2}" },
		{ WITH("{\"properties\":{\"c\":{\"const\":3}},\"required\":[\"c\"]}"), "{\"c\":3}" },
		{ WITH("{\"$ref\":\"#/$defs/d\",\"$defs\":{\"d\":{\"enum\":[\"x\",{\"d\":4}]}}}"), "{\"d\":4}" },
		{ WITH("{}"), NULL },
		{ WITH("true"), NULL },
		{ WITH("null"), NULL },
		{ TOOL("{\"function\":{\"name\":\"f\"}}"), NULL },
	};
	char with[600];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(with, sizeof with,
		         "\"messages\":[" HI "],\"tool_choice\":\"required\",\"seed\":%zu,\"max_tokens\":60,%s", i,
		         rows[i][0]);
		json_t *o = ask(&server, "/v1/chat/completions", with, "");
		const char *said = text_at(o, "choices.0.message.tool_calls.0.function.arguments");
		assert_string_equal(text_at(o, "choices.0.message.content"), "");
		assert_true(rows[i][1] ? strcmp(said, rows[i][1]) == 0 : said[0] == '{');
		json_decref(o);
	}
}

/* What cannot be called, or has arguments without names, is no function. */
static void test_no_functions(void **state)
{
	static const struct {
		const char *tools, *choice, *says;
	} rows[] = {
		{ TOOL("{}"), "auto", "tools[0].function is absent" },
		{ TOOL("{\"type\":\"function\"}"), "auto", "tools[0].function is absent" },
		{ TOOL("{\"function\":7}"), "auto", "tools[0].function is an integer" },
		{ TOOL("{\"function\":{}}"), "auto", "tools[0] has a function whose name is absent" },
		{ TOOL("{\"function\":{\"name\":7}}"), "auto", "whose name is an integer" },
		{ TOOL("{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"\"}}"), "none",
		  "tools[1] has a function whose name is empty" },
		{ WITH("{\"type\":\"string\"}"), "required",
		  "tools[0].function.parameters has the type string, expected object" },
		{ WITH("7"), "required", "tools[0].function.parameters is an integer, expected a JSON Schema" },
	};
	char body[500];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(body, sizeof body, "{\"messages\":[" HI "],\"tool_choice\":\"%s\",%s}", rows[i].choice,
		         rows[i].tools);
		json_t *o = client_json(&server, "/v1/chat/completions", body, 400);
		if (!strstr(text_at(o, "error.message"), rows[i].says))
			fail_msg("%s: %s", body, text_at(o, "error.message"));
		json_decref(o);
	}
}

/* ---- metrics */

/* Each series once, also where a model was replaced; of models that are gone there is nothing. */
static void test_series(void **state)
{
	json_t *seen = json_object();
	char *save = NULL;
	(void)state;

	for (int i = 0; i < 3; i++) {
		make("again", "\"from\":\"tale\"");
		json_decref(talk("again", HI, "\"max_tokens\":1"));
	}
	make("gone", "\"from\":\"tale\"");
	must_delete("gone", 200);
	struct answer a = client_ask(&server, "/metrics", NULL, NULL);
	assert_int_equal(a.status, 200);
	for (char *line = strtok_r(a.body, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strrchr(line, ' ');
		if (*line == '#')
			continue;
		assert_non_null(value);
		*value = 0;
		if (json_object_get(seen, line) || strstr(line, "gone"))
			fail_msg("a series that is there already, or of a model that is not: %s", line);
		json_object_set_new(seen, line, json_true());
	}
	assert_non_null(json_object_get(seen, "jitserve_model_loads_total{model=\"again:latest\"}"));
	assert_non_null(json_object_get(seen, "jitserve_model_loaded{model=\"tale\"}"));
	json_decref(seen);
	answer_free(&a);
	must_delete("again", 200);
}

/* ---- ollama's API */

static void test_num_predict(void **state)
{
	static const struct {
		int max;
		bool whole;
	} rows[] = { { 0, true }, { -1, true }, { -2, true }, { -7, true }, { 1, false }, { 2, false } };
	char with[300];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(with, sizeof with,
		         "\"messages\":[" HI "]," SAYS("one two three four") ",\"options\":{\"num_predict\":%d}",
		         rows[i].max);
		json_t *o = ask(&server, "/api/chat", with, "\"stream\":false");
		assert_string_equal(text_at(o, "done_reason"), rows[i].whole ? "stop" : "length");
		assert_int_equal(strcmp(text_at(o, "message.content"), "one two three four") == 0, rows[i].whole);
		if (!rows[i].whole)
			assert_int_equal((int)number_at(o, "eval_count"), rows[i].max);
		json_decref(o);
	}
}

/* The time that is told, in microseconds of the clock here. */
static void test_created_at(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct timespec before, after;
		struct tm day = { 0 };
		clock_gettime(CLOCK_REALTIME, &before);
		json_t *o = ask(&server, "/api/chat", "\"messages\":[" HI "],\"max_tokens\":1", "\"stream\":false");
		clock_gettime(CLOCK_REALTIME, &after);
		char *end = strptime(text_at(o, "created_at"), "%Y-%m-%dT%H:%M:%S", &day);
		assert_non_null(end);
		const double told = (double)timegm(&day) + strtod(end, &end);
		assert_string_equal(end, "Z");
		if (told < (double)before.tv_sec + (double)before.tv_nsec / 1e9 - 2e-6 ||
		    told > (double)after.tv_sec + (double)after.tv_nsec / 1e9 + 2e-6)
			fail_msg("%s", text_at(o, "created_at"));
		json_decref(o);
	}
}

/* A raw prompt is the whole prompt. */
static void test_raw(void **state)
{
	static const char *const with[] = { "\"template\":\"{{ .Prompt }}\"", "\"system\":\"Be short.\"",
		                            "\"context\":[1,2]" };
	char body[300];
	(void)state;

	for (int i = 0; i < 3; i++) {
		snprintf(body, sizeof body, "{\"prompt\":\"Hi\",\"raw\":true,\"stream\":false,%s}", with[i]);
		json_t *o = client_json(&server, "/api/generate", body, 400);
		assert_string_equal(text_at(o, "error"), "raw mode does not support template, system, or context");
		json_decref(o);
		snprintf(body, sizeof body, "\"prompt\":\"Hi\",\"stream\":false,\"options\":{\"num_predict\":1},%s",
		         with[i]);
		json_decref(ask(&server, "/api/generate", body, "\"raw\":false"));
	}
	json_t *o = ask(&server, "/api/generate",
	                "\"prompt\":\"Hi\",\"raw\":true,\"template\":\"\",\"system\":\"\",\"context\":[],"
	                "\"options\":{\"num_predict\":1}",
	                "\"stream\":false");
	assert_null(at(o, "context"));
	json_decref(o);
}

static const char calls_template[] =
	"{% for m in messages %}{{ m.role }}{% for c in m.tool_calls %}[{{ c.id }}{{ c.answered }}]{% endfor %}"
	"{{ m.tool_call_id }}={{ m.content }};{% endfor %}";

/* Each result belongs to the last call of its function that has none yet, and a template sees no mark of that. */
static void test_results(void **state)
{
	static const char ollama[] =
		"\"messages\":[" HI ",{\"role\":\"assistant\",\"tool_calls\":["
		"{\"function\":{\"name\":\"get\",\"arguments\":{}}},{\"function\":{\"name\":\"get\",\"arguments\":{}}},"
		"{\"function\":{\"name\":\"put\",\"arguments\":{}}}]},"
		"{\"role\":\"tool\",\"tool_name\":\"get\",\"content\":\"a\"},"
		"{\"role\":\"tool\",\"tool_name\":\"put\",\"content\":\"b\"},"
		"{\"role\":\"tool\",\"tool_name\":\"get\",\"content\":\"c\"},"
		"{\"role\":\"tool\",\"tool_name\":\"get\",\"content\":\"d\"}]";
	static const char openai[] =
		"\"messages\":[" HI ",{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
		"{\"id\":\"call_1_0\",\"type\":\"function\",\"function\":{\"name\":\"get\",\"arguments\":\"{}\"}},"
		"{\"id\":\"call_1_1\",\"type\":\"function\",\"function\":{\"name\":\"get\",\"arguments\":\"{}\"}},"
		"{\"id\":\"call_1_2\",\"type\":\"function\",\"function\":{\"name\":\"put\",\"arguments\":\"{}\"}}]},"
		"{\"role\":\"tool\",\"tool_call_id\":\"call_1_0\",\"content\":\"a\"},"
		"{\"role\":\"tool\",\"tool_call_id\":\"call_1_2\",\"content\":\"b\"},"
		"{\"role\":\"tool\",\"tool_call_id\":\"call_1_1\",\"content\":\"c\"},"
		"{\"role\":\"tool\",\"content\":\"d\"}]";
	static const char more[] = "\"max_tokens\":9,\"seed\":4,\"stream\":false";
	const struct child own = server;
	char path[80];
	(void)state;

	snprintf(path, sizeof path, "%s.jinja", folder);
	FILE *f = fopen(path, "w");
	assert_true(f && fputs(calls_template, f) >= 0 && fclose(f) == 0);
	server = child_start((const char *[]){ "--no-cache", "--template", path, NULL });
	json_t *a = ask(&server, "/api/chat", ollama, more), *b = ask(&server, "/v1/chat/completions", openai, more);
	assert_string_equal(text_at(a, "message.content"), text_at(b, "choices.0.message.content"));
	assert_int_equal((int)number_at(a, "prompt_eval_count"), (int)number_at(b, "usage.prompt_tokens"));
	json_decref(a);
	json_decref(b);
	assert_int_equal(child_stop(&server), 0);
	assert_int_equal(unlink(path), 0);
	server = own;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_deltas),     cmocka_unit_test(test_kept_stops),
		cmocka_unit_test(test_reasoning_format), cmocka_unit_test(test_num_predict),
		cmocka_unit_test(test_series),           cmocka_unit_test(test_any_parameters),
		cmocka_unit_test(test_no_functions),     cmocka_unit_test(test_raw),
		cmocka_unit_test(test_created_at),       cmocka_unit_test(test_results),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
