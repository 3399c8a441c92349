/* tests/server/t_completions.c - what the server generates: the same texts as jitrun, whole or as a stream, alone or
 * beside others; where answers end; and requests that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

static struct child server;

static int start(void **state)
{
	static const char *const arguments[] = { "--parallel", "16", "--no-cache", NULL };
	(void)state;

	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&server);
}

static const json_t *choice(const json_t *o, size_t i) { return json_array_get(json_object_get(o, "choices"), i); }

static const char *text_of(const json_t *o, size_t i)
{
	const char *text = json_string_value(json_object_get(choice(o, i), "text"));

	assert_non_null(text);
	return text;
}

static const char *finish_of(const json_t *o, size_t i)
{
	return json_string_value(json_object_get(choice(o, i), "finish_reason"));
}

/* The program's own answer; free() it. */
static char *said_by_jitrun(const char *arguments)
{
	char command[2048], model[1024];
	char *text = calloc(1, 65536);

	snprintf(command, sizeof command, "./jitrun %s -q --no-cache %s 2>/dev/null",
	         source_path(model, "models/tale-q8_0.gguf"), arguments);
	FILE *f = popen(command, "r");
	assert_true(f && text);
	size_t n = fread(text, 1, 65535, f);
	assert_int_equal(pclose(f), 0);
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	return text;
}

static void test_as_jitrun(void **state)
{
	static const struct {
		const char *arguments, *body;
	} rows[] = {
		{ "--prompt 'Once upon a time' -n 40 --temp 0",
		  "{\"prompt\":\"Once upon a time\",\"max_tokens\":40,\"temperature\":0}" },
		{ "--prompt 'The king said' -n 30 --temp 0.9 --top-k 20 --top-p 0.9 --min-p 0 --seed 7",
		  "{\"prompt\":\"The king said\",\"max_tokens\":30,\"temperature\":0.9,\"top_k\":20,\"top_p\":0.9,"
		  "\"min_p\":0,\"seed\":7}" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *expected = said_by_jitrun(rows[i].arguments);
		json_t *o = client_json(&server, "/v1/completions", rows[i].body, 200);
		assert_string_equal(text_of(o, 0), expected);
		assert_string_equal(finish_of(o, 0), "length");
		json_t *usage = json_object_get(o, "usage");
		assert_true(json_integer_value(json_object_get(usage, "prompt_tokens")) > 2);
		assert_int_equal(json_integer_value(json_object_get(usage, "completion_tokens")), i ? 30 : 40);
		assert_true(json_is_object(json_object_get(o, "timings")));
		assert_int_equal(json_string_value(json_object_get(o, "system_fingerprint"))[0], 'b');
		json_decref(o);
		free(expected);
	}
}

/* ---- streams */

struct events {
	json_t *list; /* all but [DONE] */
	bool done;
};

static struct events events_of(const struct answer *a)
{
	struct events e = { .list = json_array() };

	for (const char *at = a->body; (at = strstr(at, "data: "));) {
		at += 6;
		const char *end = strstr(at, "\n\n");
		assert_non_null(end);
		assert_false(e.done);
		if (strncmp(at, "[DONE]", 6) == 0) {
			e.done = true;
		} else {
			json_t *o = json_loadb(at, (size_t)(end - at), 0, NULL);
			assert_non_null(o);
			json_array_append_new(e.list, o);
		}
		at = end;
	}
	return e;
}

/* The text of all chunks of a choice; free() it. chat: of content. */
static char *joined(const struct events *e, bool chat, json_int_t number)
{
	char *text = calloc(1, 65536);
	json_t *o;
	size_t i;

	json_array_foreach(e->list, i, o)
	{
		const json_t *c = choice(o, 0);
		if (!c || json_integer_value(json_object_get(c, "index")) != number)
			continue;
		const json_t *part =
			chat ? json_object_get(json_object_get(c, "delta"), "content") : json_object_get(c, "text");
		if (json_is_string(part))
			strcat(text, json_string_value(part));
	}
	return text;
}

#define CHAT "\"messages\":[{\"role\":\"user\",\"content\":\"Tell me of the king.\"}],\"max_tokens\":24,\"seed\":3"

static void test_stream(void **state)
{
	(void)state;
	json_t *whole = client_json(&server, "/v1/chat/completions", "{" CHAT "}", 200);
	const json_t *message = json_object_get(choice(whole, 0), "message");
	for (int usage = 0; usage < 2; usage++) {
		struct answer a =
			client_ask(&server, "/v1/chat/completions", NULL,
		                   usage ? "{" CHAT ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
		                         : "{" CHAT ",\"stream\":true}");
		assert_int_equal(a.status, 200);
		assert_non_null(strstr(answer_field(&a, "Content-Type"), "text/event-stream"));
		struct events e = events_of(&a);
		assert_true(e.done);
		json_t *first = json_array_get(e.list, 0), *delta = json_object_get(choice(first, 0), "delta"), *o;
		assert_string_equal(json_string_value(json_object_get(delta, "role")), "assistant");
		assert_true(json_is_null(json_object_get(delta, "content")));
		size_t i, n = json_array_size(e.list);
		json_array_foreach(e.list, i, o)
		{
			assert_string_equal(json_string_value(json_object_get(o, "id")),
			                    json_string_value(json_object_get(first, "id")));
			bool last = usage && i == n - 1;
			assert_int_equal(json_is_object(json_object_get(o, "usage")), last);
			assert_int_equal(json_array_size(json_object_get(o, "choices")), last ? 0 : 1);
		}
		assert_string_equal(finish_of(json_array_get(e.list, n - 1 - (size_t)usage), 0), "length");
		char *text = joined(&e, true, 0);
		assert_string_equal(text, json_string_value(json_object_get(message, "content")));
		free(text);
		json_decref(e.list);
		answer_free(&a);
	}
	json_decref(whole);
}

/* ---- many at once */

enum { CLIENTS = 12 };

struct client {
	pthread_t thread;
	char body[400];
	struct answer answer;
};

static void *ask(void *user)
{
	struct client *c = user;

	c->answer = client_ask(&server, "/v1/completions", NULL, c->body);
	return NULL;
}

static void test_many_at_once(void **state)
{
	static const char *const prompts[] = { "Once upon a time", "The king said", "In the forest there lived a fox",
		                               "Once upon a time there was" };
	struct client c[CLIENTS];
	(void)state;

	memset(c, 0, sizeof c);
	for (int i = 0; i < CLIENTS; i++)
		snprintf(c[i].body, sizeof c[i].body,
		         "{\"prompt\":\"%s\",\"max_tokens\":%d,\"temperature\":%s,\"seed\":%d,\"stream\":%s}",
		         prompts[i % 4], 20 + i * 3, i % 3 ? "0.8" : "0", i, i % 2 ? "true" : "false");
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&c[i].thread, NULL, ask, &c[i]), 0);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(c[i].thread, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		char *at = strstr(c[i].body, ",\"stream\"");
		assert_int_equal(c[i].answer.status, 200);
		strcpy(at, "}");
		json_t *alone = client_json(&server, "/v1/completions", c[i].body, 200), *o = NULL;
		char *text;
		if (i % 2) {
			struct events e = events_of(&c[i].answer);
			text = joined(&e, false, 0);
			json_decref(e.list);
		} else {
			o = json_loads(c[i].answer.body, 0, NULL);
			text = strdup(text_of(o, 0));
		}
		assert_string_equal(text, text_of(alone, 0));
		free(text);
		json_decref(o);
		json_decref(alone);
		answer_free(&c[i].answer);
	}
}

static void test_choices(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/v1/completions",
	                        "{\"prompt\":[\"Once upon\",\"The\"],\"max_tokens\":8,\"seed\":40,\"n\":2}", 200);
	assert_int_equal(json_array_size(json_object_get(o, "choices")), 4);
	for (size_t i = 0; i < 4; i++) {
		char body[200];
		snprintf(body, sizeof body, "{\"prompt\":\"%s\",\"max_tokens\":8,\"seed\":%zu}",
		         i < 2 ? "Once upon" : "The", 40 + i % 2);
		json_t *alone = client_json(&server, "/v1/completions", body, 200);
		assert_int_equal(json_integer_value(json_object_get(choice(o, i), "index")), i);
		assert_string_equal(text_of(o, i), text_of(alone, 0));
		json_decref(alone);
	}
	json_t *usage = json_object_get(o, "usage");
	assert_int_equal(json_integer_value(json_object_get(usage, "completion_tokens")), 32);
	json_decref(o);
}

/* ---- where answers end */

/* A stop text that lies across tokens, in a stream and not: nothing of it is sent. */
static void test_stop(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/v1/completions",
	                        "{\"prompt\":\"Once upon a time\",\"max_tokens\":40,\"temperature\":0}", 200);
	char *text = strdup(text_of(o, 0)), word[8] = "", body[400];
	json_decref(o);
	size_t at = strlen(text) / 2;
	while (text[at] != ' ' || strchr(text + at, '"') == text + at)
		at++;
	memcpy(word, text + at - 2, 5);
	assert_true(strlen(word) == 5 && !strpbrk(word, "\"\\\n"));
	for (int stream = 0; stream < 2; stream++) {
		snprintf(body, sizeof body,
		         "{\"prompt\":\"Once upon a "
		         "time\",\"max_tokens\":40,\"temperature\":0,\"stop\":[\"%s\",\"zzz\"],"
		         "\"stream\":%s}",
		         word, stream ? "true" : "false");
		struct answer a = client_ask(&server, "/v1/completions", NULL, body);
		struct events e = { 0 };
		char *got;
		if (stream) {
			e = events_of(&a);
			got = joined(&e, false, 0);
			o = json_incref(json_array_get(e.list, json_array_size(e.list) - 1));
		} else {
			o = json_loads(a.body, 0, NULL);
			got = strdup(text_of(o, 0));
		}
		assert_string_equal(finish_of(o, 0), "stop");
		assert_int_equal(strlen(got), strstr(text, word) - text);
		assert_memory_equal(got, text, strlen(got));
		free(got);
		json_decref(o);
		json_decref(e.list);
		answer_free(&a);
	}
	free(text);
}

static void test_lengths(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/v1/completions", "{\"prompt\":\"The\",\"max_tokens\":0}", 200);
	assert_string_equal(text_of(o, 0), "");
	assert_string_equal(finish_of(o, 0), "length");
	json_decref(o);
	/* until the context of 1024 is full: one more is chosen, from the last one's logits */
	o = client_json(&server, "/v1/completions", "{\"prompt\":[5,6,7],\"ignore_eos\":true,\"temperature\":0}", 200);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "usage"), "completion_tokens")), 1022);
	assert_string_equal(finish_of(o, 0), "length");
	json_decref(o);
	char *body = malloc(8000);
	strcpy(body, "{\"prompt\":[5");
	for (int i = 0; i < 1024; i++)
		strcat(body, ",6");
	strcat(body, "]}");
	o = client_json(&server, "/v1/completions", body, 400);
	assert_string_equal(json_string_value(json_object_get(json_object_get(o, "error"), "type")),
	                    "exceed_context_size_error");
	json_decref(o);
	free(body);
}

static void test_logprobs(void **state)
{
	(void)state;
	json_t *o = client_json(&server, "/v1/chat/completions",
	                        "{" CHAT ",\"temperature\":0,\"logprobs\":true,\"top_logprobs\":4}", 200);
	const json_t *list = json_object_get(json_object_get(choice(o, 0), "logprobs"), "content");
	char text[2000] = "";
	json_t *e;
	size_t i;
	assert_int_equal(json_array_size(list), 24);
	json_array_foreach(list, i, e)
	{
		const json_t *top = json_object_get(e, "top_logprobs"), *best = json_array_get(top, 0);
		assert_int_equal(json_array_size(top), 4);
		assert_true(json_equal(json_object_get(best, "id"), json_object_get(e, "id")));
		assert_true(json_equal(json_object_get(best, "logprob"), json_object_get(e, "logprob")));
		assert_true(json_real_value(json_object_get(e, "logprob")) <= 0);
		strcat(text, json_string_value(json_object_get(e, "token")));
	}
	assert_string_equal(text,
	                    json_string_value(json_object_get(json_object_get(choice(o, 0), "message"), "content")));
	json_decref(o);
	o = client_json(&server, "/v1/completions", "{\"prompt\":\"The\",\"max_tokens\":3,\"logprobs\":2}", 200);
	list = json_object_get(json_object_get(choice(o, 0), "logprobs"), "text_offset");
	assert_int_equal(json_array_size(list), 3);
	assert_int_equal(json_integer_value(json_array_get(list, 0)), 0);
	json_decref(o);
}

/* What is forced: a choice that no other token can take part in. */
static void test_bias(void **state)
{
	(void)state;
	json_t *o =
		client_json(&server, "/v1/completions",
	                    "{\"prompt\":\"The\",\"max_tokens\":3,\"logit_bias\":{\"300\":1000},\"logprobs\":0}", 200);
	const json_t *list = json_object_get(json_object_get(choice(o, 0), "logprobs"), "content");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(json_integer_value(json_object_get(json_array_get(list, i), "id")), 300);
	json_decref(o);
}

static void test_schema(void **state)
{
	(void)state;
	for (int seed = 0; seed < 4; seed++) {
		char body[800];
		snprintf(body, sizeof body,
		         "{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":60,\"seed\":%d,"
		         "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"type\":"
		         "\"object\","
		         "\"properties\":{\"a\":{\"enum\":[1,2]},\"b\":{\"type\":\"boolean\"}},\"required\":[\"a\","
		         "\"b\"],"
		         "\"additionalProperties\":false}}}}",
		         seed);
		json_t *o = client_json(&server, "/v1/chat/completions", body, 200);
		const char *text =
			json_string_value(json_object_get(json_object_get(choice(o, 0), "message"), "content"));
		json_t *inner = json_loads(text, 0, NULL);
		if (strcmp(finish_of(o, 0), "stop") == 0) {
			assert_non_null(inner);
			assert_true(json_is_boolean(json_object_get(inner, "b")));
			double a = json_number_value(json_object_get(inner, "a")); /* 1.0 equals 1 */
			assert_true(a == 1 || a == 2);
		}
		json_decref(inner);
		json_decref(o);
	}
}

static void test_rules(void **state)
{
	json_t *o = client_json(&server, "/v1/completions",
	                        "{\"prompt\":\"The\",\"max_tokens\":40,\"grammar\":\"root ::= word{2}\\nword ::= "
	                        "(\\\"cat\\\" | \\\"dog\\\") \\\".\\\"\"}",
	                        200);
	const char *text = json_string_value(json_object_get(choice(o, 0), "text"));
	(void)state;

	assert_string_equal(finish_of(o, 0), "stop");
	assert_int_equal(strlen(text), 8);
	for (int i = 0; i < 8; i += 4)
		assert_true(memcmp(text + i, "cat.", 4) == 0 || memcmp(text + i, "dog.", 4) == 0);
	json_decref(o);
}

/* ---- refused */

static void test_refused(void **state)
{
	static const struct {
		const char *path, *body, *param, *said;
	} rows[] = {
#define C "/v1/completions"
#define M "/v1/chat/completions"
		{ C, "", NULL, "the body" },
		{ C, "{", NULL, "the body" },
		{ C, "[]", NULL, "an array, expected an object" },
		{ C, "{\"prompt\":\"x\"} x", NULL, "the body" },
		{ C, "{}", "prompt", "missing" },
		{ C, "{\"prompt\":[]}", "prompt", "empty" },
		{ C, "{\"prompt\":7}", "prompt", "expected a string or an array" },
		{ C, "{\"prompt\":[1,4096]}", "prompt", "expected 0 to 4095" },
		{ C, "{\"prompt\":[1,true]}", "prompt", "expected integers or strings" },
		{ C, "{\"prompt\":\"x\",\"temperature\":\"hot\"}", "temperature", "expected a number" },
		{ C, "{\"prompt\":\"x\",\"temperature\":NaN}", "temperature", "which JSON does not have" },
		{ C, "{\"prompt\":\"x\",\"top_p\":-1}", "top_p", "expected a number from 0" },
		{ C, "{\"prompt\":\"x\",\"max_tokens\":1.5}", "max_tokens", "expected an integer" },
		{ C, "{\"prompt\":\"x\",\"max_tokens\":-2}", "max_tokens", "expected an integer from -1" },
		{ C, "{\"prompt\":\"x\",\"n\":0}", "n", "from 1" },
		{ C, "{\"prompt\":\"x\",\"n\":1000000}", "n", "to 128" },
		{ C, "{\"prompt\":\"x\",\"stop\":[1]}", "stop", "no text" },
		{ C, "{\"prompt\":\"x\",\"stream\":1}", "stream", "expected true or false" },
		{ C, "{\"prompt\":\"x\",\"logit_bias\":{\"x\":\"1\"}}", "logit_bias", "is no number" },
		{ C, "{\"prompt\":\"x\",\"logit_bias\":{\"4096\":1}}", "logit_bias", "expected 0 to 4095" },
		{ C, "{\"prompt\":\"x\",\"samplers\":[\"nonsense\"]}", NULL, "nonsense" },
		{ C, "{\"prompt\":\"x\",\"grammar\":\"root ::= [a\"}", "grammar", "column 12: a set of characters" },
		{ M, "{}", "messages", "missing or empty" },
		{ M, "{\"messages\":[]}", "messages", "missing or empty" },
		{ M, "{\"messages\":[7]}", "messages", "message 0 is no object with a role" },
		{ M, "{\"messages\":[{\"role\":\"user\"}]}", "messages", "neither content nor tool_calls" },
		{ M, "{\"messages\":[{\"role\":\"user\",\"content\":7}]}", "messages",
		  "expected a string or an array" },
		{ M, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", "messages",
		  "cannot see" },
		{ M, "{" CHAT ",\"top_logprobs\":3}", "top_logprobs", "requires logprobs" },
		{ M, "{" CHAT ",\"response_format\":{\"type\":\"xml\"}}", "response_format", "of type xml" },
		{ M, "{" CHAT ",\"response_format\":{\"type\":\"json_schema\"}}", "response_format", "no json_schema" },
		{ M, "{" CHAT ",\"json_schema\":{\"properties\":{\"a\":{\"$ref\":\"http://x/y\"}}}}", "json_schema",
		  "/properties/a" },
		{ M, "{" CHAT ",\"json_schema\":{\"$ref\":\"http://x/y\"},\"stream\":true}", "json_schema", "$ref" },
#undef C
#undef M
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *o = client_json(&server, rows[i].path, rows[i].body, 400), *e = json_object_get(o, "error");
		const char *message = json_string_value(json_object_get(e, "message"));
		const char *param = json_string_value(json_object_get(e, "param"));
		if (!message || !strstr(message, rows[i].said))
			fail_msg("%s: \"%s\", expected \"%s\"", rows[i].body, message, rows[i].said);
		if (rows[i].param && (!param || strcmp(param, rows[i].param) != 0))
			fail_msg("%s: param %s, expected %s", rows[i].body, param, rows[i].param);
		assert_int_equal(json_integer_value(json_object_get(e, "code")), 400);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_jitrun), cmocka_unit_test(test_stream),  cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_choices),   cmocka_unit_test(test_stop),    cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_logprobs),  cmocka_unit_test(test_bias),    cmocka_unit_test(test_schema),
		cmocka_unit_test(test_rules),     cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
