/* tests/server/t_reasoned_forms.c - answers of a form behind reasoning, by a whole server: in each dialect, whole and
 * as events, with the reasoning opened by the template, by the model, or not wanted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/server/json_at.h"
#include "tests/support/shared.h"

#define SCHEMA \
	"{\"type\":\"object\",\"properties\":{\"x\":{\"const\":7}},\"required\":[\"x\"],\"additionalProperties\":" \
	"false}"
#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"A tale of a king.\"}],\"seed\":3,"
#define INPUT "\"input\":\"A tale of a king.\",\"seed\":3,"
#define FORMAT "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":" SCHEMA "}},"
#define FUNCTION "\"name\":\"put\",\"description\":\"It puts.\""
#define TOOL "{\"type\":\"function\",\"function\":{" FUNCTION ",\"parameters\":" SCHEMA "}}"
#define LENGTH "\"max_tokens\":200,\"reasoning_budget\":5"
/* The model may open the reasoning; it shall; it shall not. */
#define HYBRID ",\"chat_template_kwargs\":{\"mode\":\"hybrid\"}"
#define OPENS HYBRID ",\"logit_bias\":{\"<\":90}"
#define OFF ",\"enable_thinking\":false"
#define CLOSED ",\"chat_template_kwargs\":{\"mode\":\"closed\"}"

static char template_file[] = "/tmp/jitrun-template-XXXXXX";
static struct child server;

static int start(void **state)
{
	static const char text[] =
		"{# <think>, then <tool_call>\n{\"name\": ..., \"arguments\": ...}</tool_call> #}"
		"{% for m in messages %}{{ m.content }} {% endfor %}{% if add_generation_prompt %}"
		"{% if mode == 'closed' %}<think>\n\n</think>\n\n{% elif mode != 'hybrid' %}<think>\n{% endif %}"
		"{% endif %}";
	static const char *const arguments[] = { "--no-cache", "--template", template_file, NULL };
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

#define CHOICE "choices/0/"
/* Of an answer: where its reasoning, its text and why it ended stand, and the word for a whole one. */
struct paths {
	const char *reasoning, *text, *end, *word;
};
static const struct paths chat = { CHOICE "message/reasoning_content", CHOICE "message/content", CHOICE "finish_reason",
	                           "stop" },
			  messages = { "content/0/thinking", "content/1/text", "stop_reason", "end_turn" },
			  responses = { "output/0/content/0/text", "output/1/content/0/text", "status", "completed" },
			  ollama = { "message/thinking", "message/content", "done_reason", "stop" },
			  generate = { "thinking", "response", "done_reason", "stop" };

static const struct way {
	const char *name, *path, *body;
	const struct paths *at;
} ways[] = {
	{ "response_format", "/v1/chat/completions", "{" MESSAGES FORMAT LENGTH "%s}", &chat },
	{ "json_schema", "/v1/chat/completions", "{" MESSAGES "\"json_schema\":" SCHEMA "," LENGTH "%s}", &chat },
	{ "guided_json", "/v1/chat/completions", "{" MESSAGES "\"guided_json\":" SCHEMA "," LENGTH "%s}", &chat },
	{ "guided_regex", "/v1/chat/completions",
	  "{" MESSAGES "\"guided_regex\":\"\\\\{\\\"x\\\": ?7\\\\}\"," LENGTH "%s}", &chat },
	{ "guided_choice", "/v1/chat/completions",
	  "{" MESSAGES "\"guided_choice\":[\"{\\\"x\\\":7}\",\"{\\\"x\\\": 7}\"]," LENGTH "%s}", &chat },
	{ "grammar", "/v1/chat/completions",
	  "{" MESSAGES "\"grammar\":\"root ::= \\\"{\\\\\\\"x\\\\\\\":\\\" \\\"7}\\\"\"," LENGTH "%s}", &chat },
	{ "structured_outputs", "/v1/chat/completions",
	  "{" MESSAGES "\"structured_outputs\":{\"json\":" SCHEMA "}," LENGTH "%s}", &chat },
	{ "output_config", "/v1/messages",
	  "{" MESSAGES "\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":" SCHEMA "}}," LENGTH "%s}",
	  &messages },
	{ "text.format", "/v1/responses",
	  "{" INPUT "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"x\",\"schema\":" SCHEMA
	  "}},\"max_output_tokens\":200,\"reasoning_budget\":5%s}",
	  &responses },
	{ "format", "/api/chat", "{" MESSAGES "\"stream\":false,\"format\":" SCHEMA "," LENGTH "%s}", &ollama },
	{ "format", "/api/generate",
	  "{\"prompt\":\"A tale of a king.\",\"seed\":3,\"stream\":false,\"format\":" SCHEMA "," LENGTH "%s}",
	  &generate },
};
enum { WAYS = sizeof ways / sizeof *ways };

static json_t *ask(const struct way *w, const char *more)
{
	char body[2000];

	assert_true(snprintf(body, sizeof body, w->body, more) < (int)sizeof body);
	return client_json(&server, w->path, body, 200);
}

static void check_form(const char *text, const char *what)
{
	json_t *o = json_loads(text, 0, NULL);

	if (!o || json_object_size(o) != 1 || json_integer_value(json_object_get(o, "x")) != 7)
		fail_msg("%s: \"%s\" is not of the form", what, text);
	json_decref(o);
}

/* The reasoning is free and as long as its budget, and the form holds behind it. */
static void check_reasoned(const struct way *w, const char *more)
{
	json_t *o = ask(w, more);
	const char *reasoning = text_at(o, w->at->reasoning);

	if (!*reasoning || strchr(reasoning, '{') || strlen(reasoning) > 60)
		fail_msg("%s%s: the reasoning is \"%s\"", w->name, more, reasoning);
	check_form(text_at(o, w->at->text), w->name);
	assert_string_equal(text_at(o, w->at->end), w->at->word);
	json_decref(o);
}

static void test_opened(void **state)
{
	(void)state;
	for (size_t i = 0; i < WAYS; i++)
		check_reasoned(&ways[i], "");
}

/* Where the model may begin it, it may also answer. */
static void test_hybrid(void **state)
{
	(void)state;
	for (size_t i = 0; i < WAYS; i++) {
		if (ways[i].at != &chat)
			continue;
		check_reasoned(&ways[i], OPENS);
		json_t *o = ask(&ways[i], HYBRID ",\"logit_bias\":{\"<\":-90}");
		assert_string_equal(text_at(o, ways[i].at->reasoning), "");
		check_form(text_at(o, ways[i].at->text), ways[i].name);
		json_decref(o);
	}
}

/* Then the form holds from the first token on, as ever. */
static void test_not_wanted(void **state)
{
	static const char *const by[] = { OFF, CLOSED };
	(void)state;

	for (size_t i = 0; i < 2 * WAYS; i++) {
		const struct way *w = &ways[i / 2];
		if (w->at == &ollama || w->at == &generate || (w->at != &chat && i % 2))
			continue;
		json_t *o = ask(w, by[i % 2]);
		const char *text = text_at(o, w->at == &messages    ? "content/0/text"
		                              : w->at == &responses ? "output/0/content/0/text"
		                                                    : w->at->text);
		check_form(text, w->name);
		json_decref(o);
	}
	for (size_t i = WAYS - 2; i < WAYS; i++) {
		json_t *o = ask(&ways[i], ",\"think\":false");
		check_form(text_at(o, ways[i].at->text), ways[i].name);
		assert_string_equal(text_at(o, ways[i].at->reasoning), "");
		json_decref(o);
	}
}

/* An answer that is cut in its reasoning says so, and is none. */
static void test_cut(void **state)
{
	json_t *o = client_json(&server, "/v1/chat/completions",
	                        "{" MESSAGES FORMAT "\"max_tokens\":9,\"logit_bias\":[[\"</\",false]]}", 200);
	(void)state;

	assert_true(*text_at(o, chat.reasoning));
	assert_string_equal(text_at(o, chat.text), "");
	assert_string_equal(text_at(o, chat.end), "length");
	assert_int_equal(json_integer_value(at(o, "usage/completion_tokens")), 9);
	json_decref(o);
}

/* Rules that have the marks are about the whole answer, and prompts without a template are as they come. */
static void test_rules(void **state)
{
	json_t *o = client_json(&server, "/v1/chat/completions",
	                        "{" MESSAGES LENGTH ",\"grammar\":\"root ::= \\\"ab</think>cd\\\"\"}", 200);
	(void)state;

	assert_string_equal(text_at(o, chat.reasoning), "ab");
	assert_string_equal(text_at(o, chat.text), "cd");
	json_decref(o);
	o = client_json(&server, "/completion", "{\"prompt\":\"A<think>\",\"json_schema\":" SCHEMA "," LENGTH "}", 200);
	check_form(text_at(o, "content"), "/completion");
	json_decref(o);
	o = client_json(&server, "/v1/completions", "{\"prompt\":\"A<think>\"," FORMAT LENGTH "}", 200);
	check_form(text_at(o, "choices/0/text"), "/v1/completions");
	json_decref(o);
}

/* ---- calls that must be */

#define CHAT_CALL "{" MESSAGES "\"tools\":[" TOOL "],\"parallel_tool_calls\":false,\"tool_choice\":%s," LENGTH "%s}"

static void check_call(const char *choice, const char *more, bool reasons)
{
	char body[2000];

	assert_true(snprintf(body, sizeof body, CHAT_CALL, choice, more) < (int)sizeof body);
	json_t *o = client_json(&server, "/v1/chat/completions", body, 200);
	const char *reasoning = text_at(o, chat.reasoning);
	assert_string_equal(text_at(o, "choices/0/message/tool_calls/0/function/name"), "put");
	check_form(text_at(o, "choices/0/message/tool_calls/0/function/arguments"), body);
	assert_string_equal(text_at(o, chat.text), "");
	assert_string_equal(text_at(o, chat.end), "tool_calls");
	if ((*reasoning != 0) != reasons || strlen(reasoning) > 60)
		fail_msg("%s: the reasoning is \"%s\"", body, reasoning);
	json_decref(o);
}

static void test_calls(void **state)
{
	static const char *const choices[] = { "\"required\"",
		                               "{\"type\":\"function\",\"function\":{\"name\":\"put\"}}" };
	(void)state;

	for (int i = 0; i < 2; i++) {
		check_call(choices[i], "", true);
		check_call(choices[i], OPENS, true);
		check_call(choices[i], HYBRID ",\"logit_bias\":{\"<\":-2,\"th\":-90}", false);
		check_call(choices[i], OFF, false);
		check_call(choices[i], CLOSED, false);
	}
	json_t *o = client_json(&server, "/v1/messages",
	                        "{" MESSAGES "\"tools\":[{" FUNCTION ",\"input_schema\":" SCHEMA
	                        "}],\"tool_choice\":{\"type\":\"any\",\"disable_parallel_tool_use\":true}," LENGTH "}",
	                        200);
	assert_true(*text_at(o, "content/0/thinking"));
	assert_string_equal(text_at(o, "content/1/name"), "put");
	assert_int_equal(json_integer_value(at(o, "content/1/input/x")), 7);
	assert_string_equal(text_at(o, "stop_reason"), "tool_use");
	json_decref(o);
	o = client_json(&server, "/v1/responses",
	                "{" INPUT "\"tools\":[{\"type\":\"function\"," FUNCTION ",\"parameters\":" SCHEMA
	                "}],\"tool_choice\":\"required\",\"parallel_tool_calls\":false,\"max_output_tokens\":200,"
	                "\"reasoning_budget\":5}",
	                200);
	assert_true(*text_at(o, "output/0/content/0/text"));
	assert_string_equal(text_at(o, "output/1/name"), "put");
	check_form(text_at(o, "output/1/arguments"), "responses");
	json_decref(o);
}

/* ---- events */

/* All texts of a member in the events, one behind the other. */
static void join(const char *events, const char *member, char *out, size_t room)
{
	char key[64];
	const size_t n = (size_t)snprintf(key, sizeof key, "\"%s\":\"", member);
	size_t have = 0;

	for (const char *p = events; (p = strstr(p, key));) {
		for (p += n; *p && *p != '"' && have + 2 < room; p++) {
			if (*p == '\\')
				p++;
			out[have++] = *p == 'n' && p[-1] == '\\' ? '\n' : *p;
		}
	}
	out[have] = 0;
}

static void test_events(void **state)
{
	static const char *const bodies[] = { "{\"stream\":true," MESSAGES FORMAT LENGTH "}",
		                              "{\"stream\":true," MESSAGES "\"tools\":[" TOOL "],\"tool_choice\":"
		                              "\"required\",\"parallel_tool_calls\":false," LENGTH "}" };
	char text[4000], reasoning[4000];
	(void)state;

	for (int i = 0; i < 2; i++) {
		struct answer a = client_ask(&server, "/v1/chat/completions", NULL, bodies[i]);
		assert_int_equal(a.status, 200);
		join(a.body, "reasoning_content", reasoning, sizeof reasoning);
		join(a.body, i ? "arguments" : "content", text, sizeof text);
		if (!*reasoning || strchr(reasoning, '{'))
			fail_msg("the reasoning is \"%s\": %s", reasoning, a.body);
		check_form(text, a.body);
		answer_free(&a);
	}
	struct answer a = client_ask(&server, "/v1/messages", NULL,
	                             "{\"stream\":true," MESSAGES "\"output_config\":{\"format\":{\"type\":"
	                             "\"json_schema\",\"schema\":" SCHEMA "}}," LENGTH "}");
	join(a.body, "thinking", reasoning, sizeof reasoning);
	join(a.body, "text", text, sizeof text);
	assert_non_null(strstr(a.body, "thinking_delta"));
	assert_non_null(strstr(a.body, "text_delta"));
	answer_free(&a);
}

/* Each choice has reasoning and an answer of its own. */
static void test_choices(void **state)
{
	json_t *o = client_json(&server, "/v1/chat/completions",
	                        "{" MESSAGES FORMAT "\"n\":3,\"temperature\":1.5," LENGTH "}", 200);
	(void)state;

	for (int i = 0; i < 3; i++) {
		char path[80];
		snprintf(path, sizeof path, "choices/%d/message/reasoning_content", i);
		assert_true(*text_at(o, path));
		snprintf(path, sizeof path, "choices/%d/message/content", i);
		check_form(text_at(o, path), path);
	}
	json_decref(o);
}

/* An answer can be made again, where its form means the same. */
static void test_replay(void **state)
{
	static const char body[] = "{" MESSAGES FORMAT LENGTH "}";
	char kept[] = "/tmp/jitrun-replay-XXXXXX", arguments[200], said[4000];
	int fd = mkstemp(kept);
	(void)state;

	assert_true(fd >= 0 && close(fd) == 0);
	struct answer a = client_ask(&server, "/v1/chat/completions", NULL, body);
	assert_int_equal(a.status, 200);
	json_t *o =
		json_pack("{s:s, s:o, s:s, s:o}", "path", "/v1/chat/completions", "request", json_loads(body, 0, NULL),
	                  "replay", answer_field(&a, "X-Jitrun-Replay"), "answer", json_loads(a.body, 0, NULL));
	assert_non_null(o);
	assert_int_equal(json_dump_file(o, kept, 0), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(arguments, sizeof arguments, "--no-cache --template %s%s --replay %s", template_file,
		         i ? " --additional-properties" : "", kept);
		if (child_says(true, arguments, said, sizeof said) != i)
			fail_msg("%s: %s", arguments, said);
		assert_true(!i == !strstr(said, "the request means other tokens or another sampling here"));
	}
	unlink(kept);
	json_decref(o);
	answer_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opened), cmocka_unit_test(test_hybrid),  cmocka_unit_test(test_not_wanted),
		cmocka_unit_test(test_cut),    cmocka_unit_test(test_rules),   cmocka_unit_test(test_calls),
		cmocka_unit_test(test_events), cmocka_unit_test(test_choices), cmocka_unit_test(test_replay),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
