/* tests/server/t_conversation.c - how a conversation becomes a prompt: what templates know beside the messages, whether
 * the model shall reason, answers that go on, and what answers say of it and of their tokens.
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

#include "tests/server/client.h"
#include "tests/support/shared.h"

static char template_file[] = "/tmp/jitrun-template-XXXXXX";
static struct child server;

static int start(void **state)
{
	static const char text[] =
		"{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
		"({{ date_string }})({{ datetime }})({{ reasoning_effort }})({{ enable_thinking }})"
		"{% if add_generation_prompt %}[A]<think>\n{% endif %}";
	static const char *const arguments[] = {
		"--no-cache", "--template", template_file, "--reasoning", "on", "--no-slots", "--batch", "64",
		/* no piece of a prompt is cut shorter where the machine is busy */
		"--max-pass-ms", "60000", NULL
	};
	int fd = mkstemp(template_file);
	(void)state;

	if (fd < 0 || write(fd, text, sizeof text - 1) != sizeof text - 1 || close(fd))
		return 1;
	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	unlink(template_file);
	return child_stop(&server);
}

static const char *text(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

#define USER "{\"role\":\"user\",\"content\":\"a\"}"
#define BEGUN "{\"role\":\"assistant\",\"content\":\"So\"}"

/* The prompt of these messages and fields begins, and ends, like this. */
static void check(const char *messages, const char *fields, const char *begins, const char *ends)
{
	char body[1000];

	snprintf(body, sizeof body, "{\"messages\":[%s]%s}", messages, fields);
	json_t *o = client_json(&server, "/apply-template", body, 200);
	const char *prompt = text(o, "prompt");
	size_t n = strlen(prompt), e = strlen(ends);
	if (strncmp(prompt, begins, strlen(begins)) != 0 || n < e || strcmp(prompt + n - e, ends) != 0)
		fail_msg("%s: the prompt is %s, expected %s...%s", body, prompt, begins, ends);
	json_decref(o);
}

static void test_reasoning(void **state)
{
	(void)state;
	check(USER, "", "[user]a(", ")()(True)[A]<think>\n");
	check(USER, ",\"chat_template_kwargs\":{\"enable_thinking\":true}", "", "(True)[A]<think>\n");
	check(USER, ",\"chat_template_kwargs\":{\"enable_thinking\":false}", "", "(False)[A]<think>\n</think>");
	check(USER, ",\"reasoning_effort\":\"low\"", "", "(low)(True)[A]<think>\n");
	check(USER, ",\"reasoning_effort\":\"none\"", "", "(none)(False)[A]<think>\n</think>");
	check(USER, ",\"reasoning_effort\":\"low\",\"chat_template_kwargs\":{\"reasoning_effort\":\"high\"}", "",
	      "(high)(True)[A]<think>\n");
	check(USER, ",\"reasoning_effort\":\"none\",\"add_generation_prompt\":false", "", "(none)(False)");
}

static void test_day(void **state)
{
	char begins[200] = "";
	(void)state;

	/* The day may change between two requests, but not twice. */
	for (int round = 0; round < 2; round++) {
		time_t now = time(NULL);
		strftime(begins, sizeof begins, "[user]a(%d %b %Y)(%b %d %Y)(", gmtime(&now));
		if (time(NULL) / 86400 == now / 86400)
			break;
	}
	check(USER, "", begins, "");
	check(USER, ",\"chat_template_kwargs\":{\"date_string\":\"May\"}", "[user]a(May)(", "");
}

static void test_ending(void **state)
{
	(void)state;
	check(USER "," BEGUN, "", "[user]a(", "[A]<think>\nSo");
	check(USER "," BEGUN, ",\"continue_final_message\":true", "[user]a(", "[A]<think>\nSo");
	check(USER "," BEGUN, ",\"continue_final_message\":true,\"add_generation_prompt\":false", "[user]a(",
	      "[A]<think>\nSo");
	check(USER "," BEGUN, ",\"continue_final_message\":false", "[user]a[assistant]So(", "[A]<think>\n");
	check(USER "," BEGUN, ",\"add_generation_prompt\":false", "[user]a[assistant]So(", "(True)");
	static const char *const wrong[] = {
		"{\"messages\":[" USER "," BEGUN "],\"continue_final_message\":true,\"add_generation_prompt\":true}",
		"{\"messages\":[" USER "],\"continue_final_message\":true}",
		"{\"messages\":[" USER "," BEGUN "," BEGUN "]}",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		json_t *o = client_json(&server, "/apply-template", wrong[i], 400);
		assert_non_null(text(json_object_get(o, "error"), "message"));
		json_decref(o);
	}
}

static void test_verbose(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/v1/chat/completions",
	                        "{\"messages\":[" USER "],\"max_tokens\":3,\"verbose\":true,\"top_k\":7}", 200);
	const json_t *v = json_object_get(o, "__verbose"), *set = json_object_get(v, "generation_settings");
	assert_non_null(strstr(text(v, "prompt"), "[user]a("));
	assert_int_equal(json_integer_value(json_object_get(set, "top_k")), 7);
	assert_int_equal(json_integer_value(json_object_get(v, "tokens_predicted")), 3);
	json_decref(o);
	o = client_json(&server, "/v1/chat/completions", "{\"messages\":[" USER "],\"max_tokens\":3}", 200);
	assert_null(json_object_get(o, "__verbose"));
	json_decref(o);
}

/* A tokenizer that puts a space before texts puts none between the prompt and what goes on behind it. */
static void test_no_space_between(void **state)
{
	char path[1024];
	(void)state;

	if (!shared_path(path, "data/stories260K/stories260K.gguf"))
		skip();
	const char *const arguments[] = { "--no-cache", "--no-replay", "--template", template_file, path, NULL };
	struct child c = child_start(arguments);
	json_t *o = client_json(
		&c, "/v1/chat/completions",
		"{\"model\":\"stories260K\",\"messages\":[" USER "," BEGUN "],\"max_tokens\":1,\"verbose\":true}", 200);
	const char *prompt = text(json_object_get(o, "__verbose"), "prompt");
	assert_non_null(strstr(prompt, "[A]<think>\nSo"));
	json_decref(o);
	assert_int_equal(child_stop(&c), 0);
}

static void test_anthropic(void **state)
{
	static const char *const thinking[] = { "enabled", "disabled" };
	json_int_t count[2];
	char body[400];
	(void)state;

	for (int i = 0; i < 2; i++) {
		snprintf(body, sizeof body, "{\"messages\":[" USER "],\"max_tokens\":1,\"thinking\":{\"type\":\"%s\"}}",
		         thinking[i]);
		json_t *o = client_json(&server, "/v1/messages/count_tokens", body, 200);
		count[i] = json_integer_value(json_object_get(o, "input_tokens"));
		json_decref(o);
	}
	assert_true(count[1] > count[0]); /* the mark that ends the reasoning */
}

struct told {
	int prompts, tokens; /* events that tell of them */
	json_int_t total, cache, processed, generated;
};

/* Each event says more than the one before. */
static void take_event(struct told *t, const json_t *event)
{
	const json_t *p = json_object_get(event, "prompt_progress"), *n = json_object_get(event, "timings");

	if (p) {
		json_int_t done = json_integer_value(json_object_get(p, "processed"));
		t->total = json_integer_value(json_object_get(p, "total"));
		t->cache = json_integer_value(json_object_get(p, "cache"));
		assert_true(t->prompts ? done > t->processed : done == t->cache);
		assert_int_equal(t->tokens, 0);
		t->processed = done;
		t->prompts++;
	}
	if (n) {
		json_int_t made = json_integer_value(json_object_get(n, "predicted_n"));
		assert_true(made >= t->generated);
		t->generated = made;
		t->tokens++;
	}
}

static struct told ask_told(const char *path, const char *words, const char *max)
{
	struct told t = { 0 };
	char body[4000];

	snprintf(body, sizeof body,
	         "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"prompt\":\"%s\",\"input\":\"%s\","
	         "\"%s\":12,\"temperature\":0,\"stream\":true,\"return_progress\":true,\"timings_per_token\":true}",
	         words, words, words, max);
	struct answer a = client_ask(&server, path, NULL, body);
	assert_int_equal(a.status, 200);
	for (const char *at = a.body; (at = strstr(at, "data: {")); at++) {
		json_t *o = json_loadb(at + 6, strcspn(at + 6, "\n"), 0, NULL);
		assert_non_null(o);
		take_event(&t, o);
		json_decref(o);
	}
	answer_free(&a);
	return t;
}

static void test_told_on_the_way(void **state)
{
	static const char *const path[] = { "/v1/chat/completions", "/v1/completions", "/completion", "/v1/responses" };
	char words[1000] = "";
	(void)state;

	for (int i = 0; i < 4; i++) {
		snprintf(words, sizeof words, "%d: ", i); /* none begins like another */
		for (int k = 0; k < 40; k++)
			strcat(words, "the king said ");
		const char *max = i == 3 ? "max_output_tokens" : "max_tokens";
		struct told t = ask_told(path[i], words, max);
		if (t.total < 100 || t.processed != t.total || t.prompts != 1 + (t.total - t.cache + 63) / 64)
			fail_msg("%s: %d reports of %lld tokens, %lld of them known", path[i], t.prompts,
			         (long long)t.total, (long long)t.cache);
		assert_int_equal(t.generated, 12);
		assert_true(t.tokens > 3);
		t = ask_told(path[i], words, max);
		assert_true(t.cache > 0 && t.prompts == 2 && t.processed == t.total);
	}
}

/* ---- what a token was drawn from */

static void test_sampled_probabilities(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/completion",
	                        "{\"prompt\":\"Once upon\",\"n_predict\":3,\"temperature\":1,\"top_k\":4,\"top_p\":1,"
	                        "\"min_p\":0,\"n_probs\":9,\"post_sampling_probs\":true}",
	                        200);
	for (size_t i = 0; i < 3; i++) {
		const json_t *one = json_array_get(json_object_get(o, "completion_probabilities"), i),
			     *list = json_object_get(one, "top_probs");
		double sum = 0;
		assert_true(json_number_value(json_object_get(one, "prob")) > 0 && !json_object_get(one, "logprob"));
		assert_int_equal(json_array_size(list), 4);
		for (size_t k = 0; k < 4; k++)
			sum += json_number_value(json_object_get(json_array_get(list, k), "prob"));
		assert_true(sum > 0.999999 && sum < 1.000001);
	}
	json_decref(o);
}

static void test_slots(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/slots", NULL, 501);
	assert_non_null(json_object_get(o, "error"));
	json_decref(o);
}

/* ---- which field a grammar's error is of */

#define FAR "{\"$ref\":\"http://x/y\"}"
#define PART "{\"properties\":{\"a\":" FAR "}}"
#define TOOL(name, schema) "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"parameters\":" schema "}}"
#define TOOLS(one, two) "\"tools\":[" TOOL("f", one) "," TOOL("g", two) "],\"tool_choice\":"
#define NAMED "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}"
#define SCHEMA "\"type\":\"json_schema\",\"schema\":" FAR

static void test_fields_of_grammars(void **state)
{
	static const struct {
		const char *fields, *param, *said;
	} rows[] = {
		{ "\"response_format\":{" SCHEMA "}", "response_format", "the schema at #/$ref: " },
		{ "\"response_format\":{\"type\":\"regex\",\"pattern\":\"(\"}", "response_format", "expression" },
		{ TOOLS("{}", PART) "\"required\"", "tools[1].function.parameters",
		  "the schema at #/properties/a/$ref: " },
		{ TOOLS("{}", FAR) "\"required\"", "tools[1].function.parameters", "the schema at #/$ref: " },
		{ TOOLS(FAR, "{}") "\"required\"", "tools[0].function.parameters", "the schema at #/$ref: " },
		{ TOOLS(PART, FAR) NAMED, "tools[1].function.parameters", "the schema at #/$ref: " },
		{ "\"json_schema\":" FAR ",\"stream\":true", "json_schema", "the schema at #/$ref: " },
	};
	char body[1000];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(body, sizeof body, "{\"messages\":[" USER "],%s}", rows[i].fields);
		json_t *o = client_json(&server, "/v1/chat/completions", body, 400), *e = json_object_get(o, "error");
		if (!text(e, "param") || strcmp(text(e, "param"), rows[i].param) != 0 ||
		    !strstr(text(e, "message"), rows[i].said))
			fail_msg("%s: \"%s\" of %s, expected \"%s\" of %s", body, text(e, "message"), text(e, "param"),
			         rows[i].said, rows[i].param);
		json_decref(o);
	}
	json_t *o = client_json(&server, "/v1/responses", "{\"input\":\"x\",\"text\":{\"format\":{" SCHEMA "}}}", 400);
	assert_string_equal(text(json_object_get(o, "error"), "param"), "text.format");
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_of_grammars),
		cmocka_unit_test(test_reasoning),
		cmocka_unit_test(test_day),
		cmocka_unit_test(test_ending),
		cmocka_unit_test(test_verbose),
		cmocka_unit_test(test_anthropic),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_no_space_between),
		cmocka_unit_test(test_sampled_probabilities),
		cmocka_unit_test(test_told_on_the_way),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
