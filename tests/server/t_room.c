/* tests/server/t_room.c - texts for which the context is too small: which messages and tokens are left out where a
 * request allows that, and how an answer goes on. Judges: a plain loop over all cuts of a conversation, and an answer
 * that is put together by hand from several.
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

#include "tests/server/said_lines.h"

/* A conversation must not begin with what a tool says, as some templates have it. */
static const char template[] =
	"{% for m in messages %}{% if m.role == 'tool' and (loop.first or loop.previtem.role == 'user' or "
	"loop.previtem.role == 'system') %}{{ raise_exception('no call') }}{% endif %}"
	"{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}{{ c.function.name }}{% endfor %}\n{% endfor %}"
	"{% if add_generation_prompt %}assistant: {% endif %}";
static char template_path[64];
static struct child server;

enum { CONTEXT = 400, MESSAGES = 14 };

static int start(void **state)
{
	const char *arguments[] = { "--no-cache",  "--alias",   "tale", "--template",
		                    template_path, "--context", "400",  NULL };
	(void)state;

	snprintf(template_path, sizeof template_path, "t_room.%d.jinja", (int)getpid());
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

/* ---- conversations */

static uint32_t dice = 1;
static unsigned draw(unsigned n)
{
	dice = dice * 1664525u + 1013904223u;
	return (dice >> 10) % n;
}

/* Turns of all roles; a tool speaks behind its call. */
static json_t *some_messages(void)
{
	json_t *list = json_array();
	const char *before = "";

	for (unsigned i = 0; i < MESSAGES; i++) {
		char text[400] = "";
		const bool calls = strcmp(before, "calls") == 0;
		const char *role =
			i == MESSAGES - 1   ? "user"
			: calls             ? "tool"
			: i == 0 && draw(2) ? "system"
			: i && draw(7) == 0 ? "system"
			: draw(2)           ? "user"
					    : "assistant";
		for (unsigned n = 1 + draw(12); n; n--)
			snprintf(text + strlen(text), sizeof text - strlen(text), "the king number %u ", draw(90));
		json_t *m = json_pack("{s:s, s:s}", "role", role, "content", text);
		before = role;
		if (strcmp(role, "assistant") == 0 && draw(2)) {
			json_object_set_new(m, "tool_calls",
			                    json_pack("[{s:{s:s, s:{}}}]", "function", "name", "get", "arguments"));
			before = "calls";
		}
		json_array_append_new(list, m);
	}
	return list;
}

static json_t *cut(const json_t *messages, size_t first)
{
	json_t *left = json_array(), *one;
	size_t i;

	json_array_foreach(messages, i, one) if (i >= first || strcmp(text_at(one, "role"), "system") == 0)
		json_array_append(left, one);
	return left;
}

/* messages with options, and more. */
static struct answer talk(const char *path, const json_t *messages, const char *more)
{
	char *text = json_dumps(messages, JSON_COMPACT), *body = malloc(strlen(text) + strlen(more) + 200);

	sprintf(body, "{\"messages\":%s,\"stream\":false,%s}", text, more);
	struct answer a = client_ask(&server, path, NULL, body);
	free(text);
	free(body);
	return a;
}

/* Tokens of the prompt, as the server counts them; 0: the template refuses it. */
static size_t tokens_of(const json_t *messages)
{
	struct answer a = talk("/api/chat", messages, "\"options\":{\"num_predict\":1}");
	size_t n = 0;

	if (a.status == 200) {
		json_t *o = json_loads(a.body, 0, NULL);
		n = (size_t)number_at(o, "prompt_eval_count");
		json_decref(o);
	} else {
		assert_int_equal(a.status, 400);
		n = strstr(a.body, "exceeds") ? CONTEXT + 1 : 0;
	}
	answer_free(&a);
	return n;
}

static void check_like(struct answer a, struct answer b, const char *what)
{
	json_t *x = json_loads(a.body, 0, NULL), *y = json_loads(b.body, 0, NULL);

	if (a.status != 200 || b.status != 200)
		fail_msg("%s: %s and %s", what, a.body, b.body);
	assert_int_equal((int)number_at(x, "prompt_eval_count"), (int)number_at(y, "prompt_eval_count"));
	assert_string_equal(text_at(x, "message.content"), text_at(y, "message.content"));
	json_decref(x);
	json_decref(y);
	answer_free(&a);
	answer_free(&b);
}

/* Every room: the cut that a loop over all of them finds first is the one that is answered. */
static void test_oldest_go(void **state)
{
	unsigned cuts = 0;
	(void)state;

	for (unsigned round = 0; round < (test_quick() ? 4 : 20); round++) {
		json_t *all = some_messages();
		size_t n[MESSAGES];
		for (size_t i = 0; i < MESSAGES; i++) {
			json_t *left = cut(all, i);
			n[i] = strcmp(text_at(json_array_get(all, i), "role"), "tool") ? tokens_of(left) : 0;
			json_decref(left);
		}
		for (size_t room = n[MESSAGES - 1]; room <= CONTEXT; room += 20 + draw(60)) {
			char more[100], with[140];
			size_t first = 0;
			while (n[first] == 0 || n[first] > room)
				first++;
			snprintf(more, sizeof more, "\"options\":{\"num_predict\":4,\"temperature\":0,\"num_ctx\":%zu}",
			         room);
			snprintf(with, sizeof with, "\"truncate\":true,%s", more);
			json_t *left = cut(all, first);
			check_like(talk("/api/chat", all, with), talk("/api/chat", left, more), more);
			json_decref(left);
			cuts += first > 0;
			if (first == 0)
				continue;
			struct answer a = talk("/api/chat", all, more);
			assert_int_equal(a.status, 400);
			assert_non_null(strstr(a.body, "exceeds the available context size"));
			answer_free(&a);
		}
		json_decref(all);
	}
	assert_true(cuts > 10);
}

/* The same by OpenAI's name for it. */
static void test_responses(void **state)
{
	json_t *all = json_pack("[{s:s, s:s}]", "role", "system", "content", "Be short.");
	char body[9000], *text;
	(void)state;

	for (int i = 0; i < 30; i++) {
		snprintf(body, sizeof body, "Tell me of the king number %d and of his sons and his horses.", i);
		json_array_append_new(all,
		                      json_pack("{s:s, s:s}", "role", i % 2 ? "assistant" : "user", "content", body));
	}
	json_array_append_new(all, json_pack("{s:s, s:s}", "role", "user", "content", "And then?"));
	text = json_dumps(all, JSON_COMPACT);
	snprintf(body, sizeof body, "{\"input\":%s,\"max_output_tokens\":2}", text);
	json_decref(client_json(&server, "/v1/responses", body, 400));
	snprintf(body, sizeof body, "{\"input\":%s,\"truncation\":\"disabled\",\"max_output_tokens\":2}", text);
	json_decref(client_json(&server, "/v1/responses", body, 400));
	snprintf(body, sizeof body, "{\"input\":%s,\"truncation\":\"auto\",\"max_output_tokens\":2}", text);
	json_t *o = client_json(&server, "/v1/responses", body, 200);
	const size_t told = (size_t)number_at(o, "usage.input_tokens");
	size_t first = 1, n = CONTEXT + 1;
	for (; n > CONTEXT; first++) {
		json_t *left = cut(all, first);
		n = tokens_of(left);
		json_decref(left);
	}
	assert_int_equal(told, n);
	assert_string_equal(text_at(o, "truncation"), "auto");
	json_decref(o);
	free(text);
	json_decref(all);
}

/* ---- tokens */

static json_t *tokens(const char *text)
{
	char body[4000];

	snprintf(body, sizeof body, "\"content\":\"%s\",\"add_special\":true", text);
	json_t *o = ask(&server, "/tokenize", body, ""), *list = json_incref(json_object_get(o, "tokens"));
	json_decref(o);
	return list;
}

/* Where they are more than the room: the first ones, and the last. */
static json_t *cut_tokens(const json_t *list, size_t keep, size_t gone)
{
	json_t *left = json_array(), *one;
	size_t i;

	json_array_foreach(list, i, one) if (i < keep || i >= keep + gone) json_array_append(left, one);
	return left;
}

static json_t *complete(const json_t *list, size_t n)
{
	char *text = json_dumps(list, JSON_COMPACT), *body = malloc(strlen(text) + 200);

	sprintf(body, "\"prompt\":%s,\"temperature\":0,\"n_predict\":%zu,\"ignore_eos\":true,\"return_tokens\":true",
	        text, n);
	json_t *o = ask(&server, "/completion", body, "");
	free(text);
	free(body);
	return o;
}

static const char long_text[] =
	"Once upon a time there was a king who had three sons and a daughter, and the king was old and had many "
	"horses and a castle on a hill by the sea, where the wind blew day and night, and ships came from the far "
	"end of the world with gold and silk and stories of giants.";

/* A text of no conversation loses tokens behind the first; one that begins all texts counts apart. */
static void test_texts(void **state)
{
	static const struct {
		const char *keep;
		size_t n; /* of the text's */
	} rows[] = { { "", 4 },
		     { ",\"num_keep\":0", 0 },
		     { ",\"num_keep\":11", 11 },
		     { ",\"num_keep\":-1", 31 },
		     { ",\"num_keep\":31", 31 },
		     { ",\"num_keep\":30", 30 } };
	json_t *all = tokens(long_text), *none = tokens("");
	const size_t n = json_array_size(all), room = 32;
	char body[2000];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t keep = rows[i].n + json_array_size(none);
		keep = keep < room ? keep : room - 1;
		json_t *left = cut_tokens(all, keep, n - room), *expected = complete(left, 1);
		snprintf(
			body, sizeof body,
			"\"prompt\":\"%s\",\"raw\":true,\"truncate\":true,\"stream\":false,\"options\":{\"num_ctx\":32,"
			"\"temperature\":0%s}",
			long_text, rows[i].keep);
		json_t *o = ask(&server, "/api/generate", body, "");
		assert_int_equal((int)number_at(o, "prompt_eval_count"), room);
		assert_int_equal((int)number_at(o, "eval_count"), 1);
		assert_string_equal(text_at(o, "done_reason"), "length");
		assert_string_equal(text_at(o, "response"), text_at(expected, "content"));
		json_decref(o);
		json_decref(left);
		json_decref(expected);
	}
	json_decref(all);
	json_decref(none);
}

/* An answer longer than its context, piece by piece: each piece fills the context, then half goes. */
static void check_shift(size_t room, size_t keep, const char *option, size_t wanted)
{
	char body[1000];
	json_t *none = tokens("");

	snprintf(body, sizeof body,
	         "\"prompt\":\"A "
	         "king\",\"shift\":true,\"stream\":false,\"ignore_eos\":true,\"options\":{\"num_ctx\":%zu,"
	         "\"temperature\":0,\"num_predict\":%zu%s}",
	         room, wanted, option);
	json_t *o = ask(&server, "/api/generate", body, ""), *said = json_deep_copy(at(o, "context")),
	       *text = json_array();
	const size_t n = (size_t)number_at(o, "prompt_eval_count");
	assert_int_equal(json_array_size(said), n + wanted);
	assert_string_equal(text_at(o, "done_reason"), "length");
	for (size_t i = 0; i < n; i++)
		json_array_append(text, json_array_get(said, i));
	keep += json_array_size(none);
	for (size_t at_token = n; at_token < n + wanted;) {
		json_t *part = complete(text, room + 1 - json_array_size(text));
		const json_t *ids = at(part, "tokens");
		for (size_t i = 0; i < json_array_size(ids) && at_token < n + wanted; i++)
			assert_int_equal(json_integer_value(json_array_get(ids, i)),
			                 json_integer_value(json_array_get(said, at_token++)));
		json_array_extend(text, (json_t *)(uintptr_t)ids);
		assert_int_equal(json_array_size(text), room + 1);
		json_t *left = cut_tokens(text, keep, (room - keep) / 2 ? (room - keep) / 2 : 1);
		json_decref(text);
		json_decref(part);
		text = left;
	}
	json_decref(text);
	json_decref(said);
	json_decref(none);
	json_decref(o);
}

static void test_shift(void **state)
{
	(void)state;
	check_shift(40, 4, "", 150);
	check_shift(33, 0, ",\"num_keep\":0", 90);
	check_shift(40, 20, ",\"num_keep\":20", 90);
	check_shift(40, 39 - 1, ",\"num_keep\":100", 12);
	check_shift(300, 4, "", 500);
}

/* What ends an answer ends it; one that nothing ends has ten contexts. */
static void test_ends(void **state)
{
	const char *base = "\"prompt\":\"A king\",\"shift\":true,\"stream\":false,\"options\":{\"num_ctx\":20,"
			   "\"temperature\":0,\"num_keep\":2}";
	(void)state;

	json_t *o = ask(&server, "/api/generate", base, "\"ignore_eos\":true");
	assert_int_equal((int)number_at(o, "eval_count"), 200);
	assert_string_equal(text_at(o, "done_reason"), "length");
	json_decref(o);
	o = ask(&server, "/api/generate", base,
	        "\"grammar\":\"root ::= ([0-9] [0-9] [0-9] \\\",\\\"){30} \\\"end\\\"\"");
	const char *text = text_at(o, "response");
	assert_int_equal(strlen(text), 123);
	assert_string_equal(text + 120, "end");
	assert_string_equal(text_at(o, "done_reason"), "stop");
	json_decref(o);
	o = ask(&server, "/api/generate", base, "\"ignore_eos\":true,\"shift\":false");
	assert_true(number_at(o, "eval_count") < 20);
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_go), cmocka_unit_test(test_responses), cmocka_unit_test(test_texts),
		cmocka_unit_test(test_shift),     cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
