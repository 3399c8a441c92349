/* tests/server/t_history.c - conversations as clients send them, in every published chat template: each is written, or
 * refused for a reason of its own; nothing that was said is lost; and what a template takes as it comes is written so.
 */
#include <dirent.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "server/talk/conversation.h"
#include "server/talk/history.h"
#include "tests/support/shared.h"

static jit_model *model;

static int open_model(void **state)
{
	char path[4096];
	jit_error err = { 0 };
	(void)state;

	source_path(path, "models/tale-q8_0.gguf");
	model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	return model ? 0 : -1;
}

static int close_model(void **state)
{
	(void)state;
	jit_model_close(model);
	return 0;
}

#define CALL_AS(id, arguments) \
	"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id \
	"\",\"type\":\"function\",\"function\":{\"name\":\"w_call\",\"arguments\":" arguments "}}]}"
#define CALL(arguments) CALL_AS("call_1", arguments)
#define RESULT "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"w_result\"}"
#define USER "{\"role\":\"user\",\"content\":\"w_user\"}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"w_system\"}"
#define ANSWER "{\"role\":\"assistant\",\"content\":\"w_answer\"}"

static const struct history {
	const char *name, *messages, *words[6];
} histories[] = {
	{ "plain", "[" USER "]", { "w_user" } },
	{ "system", "[" SYSTEM "," USER "]", { "w_system", "w_user" } },
	{ "turns",
	  "[" USER "," ANSWER ",{\"role\":\"user\",\"content\":\"w_more\"}]",
	  { "w_user", "w_answer", "w_more" } },
	{ "codex",
	  "[" SYSTEM ",{\"role\":\"developer\",\"content\":\"w_later\"}," USER "]",
	  { "w_system", "w_later", "w_user" } },
	{ "developer alone", "[{\"role\":\"developer\",\"content\":\"w_later\"}," USER "]", { "w_later", "w_user" } },
	{ "reminder",
	  "[" SYSTEM "," USER ",{\"role\":\"system\",\"content\":\"w_later\"}," ANSWER
	  ",{\"role\":\"user\",\"content\":"
	  "\"w_more\"}]",
	  { "w_system", "w_user", "w_later", "w_answer", "w_more" } },
	{ "system last", "[" USER ",{\"role\":\"system\",\"content\":\"w_later\"}]", { "w_user", "w_later" } },
	{ "two of the user", "[" USER ",{\"role\":\"user\",\"content\":\"w_more\"}]", { "w_user", "w_more" } },
	{ "greeting", "[" ANSWER "," USER "]", { "w_answer", "w_user" } },
	{ "call", "[" USER "," CALL("\"{\\\"w_key\\\": \\\"w_value\\\"}\"") "," RESULT "]", { "w_user" } },
	{ "call of an object", "[" USER "," CALL("{\"w_key\":\"w_value\"}") "," RESULT "]", { "w_user" } },
	{ "empty arguments", "[" USER "," CALL("\"\"") "," RESULT "]", { "w_user" } },
	{ "no arguments", "[" USER "," CALL("null") "," RESULT "]", { "w_user" } },
	{ "python", "[" USER "," CALL("\"{'w_key': True}\"") "," RESULT "]", { "w_user" } },
	{ "cut", "[" USER "," CALL("\"{\\\"w_key\\\": \\\"w_val\"") "," RESULT "]", { "w_user" } },
	{ "text", "[" USER "," CALL("\"w_value\"") "," RESULT "]", { "w_user" } },
	{ "list", "[" USER "," CALL("\"[1]\"") "," RESULT "]", { "w_user" } },
	{ "empty", "[" USER "," CALL("\"{}\"") "," RESULT "]", { "w_user" } },
	{ "beside",
	  "[" USER ",{\"role\":\"assistant\",\"content\":\"w_beside\",\"tool_calls\":[{\"id\":\"call_1\",\"type\":"
	  "\"function\",\"function\":{\"name\":\"w_call\",\"arguments\":\"{}\"}}]}," RESULT "]",
	  { "w_user" } },
	{ "two calls",
	  "[" USER ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\","
	  "\"function\":{\"name\":\"w_call\",\"arguments\":\"{}\"}},{\"id\":\"call_2\",\"type\":\"function\","
	  "\"function\":{"
	  "\"name\":\"w_second\",\"arguments\":\"{}\"}}]}," RESULT
	  ",{\"role\":\"tool\",\"tool_call_id\":\"call_2\",\"content\":\"w_last\"}]",
	  { "w_user" } },
	{ "interrupted",
	  "[" USER "," CALL("\"{}\"") "," RESULT ",{\"role\":\"user\",\"content\":\"w_more\"}]",
	  { "w_user", "w_more" } },
	{ "without ids",
	  "[" USER ",{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"w_call\","
	  "\"arguments\":{}}}]},{\"role\":\"tool\",\"content\":\"w_result\"}]",
	  { "w_user" } },
	{ "steps",
	  "[" SYSTEM "," USER "," CALL("\"{}\"") "," RESULT "," CALL_AS(
		  "call_2", "\"{}\"") ",{\"role\":\"tool\",\"tool_call_id\":\"call_2\",\"content\":\"w_last\"},{"
	                              "\"role\":\"assistant\",\"content\":"
	                              "\"w_answer\"},{\"role\":\"user\",\"content\":\"w_more\"}]",
	  { "w_system", "w_user", "w_answer", "w_more" } },
	{ "system alone", "[" SYSTEM "]", { "w_system" } },
};

static const char *const tools[] = {
	NULL,
	"[{\"type\":\"function\",\"function\":{\"name\":\"w_call\",\"description\":\"d\",\"parameters\":{\"type\":"
	"\"object\","
	"\"properties\":{\"w_key\":{\"type\":\"string\",\"description\":\"\"}},\"required\":[\"w_key\"]}}}]",
	"[{\"type\":\"function\",\"function\":{\"name\":\"w_call\",\"parameters\":{\"type\":\"object\",\"properties\":{"
	"\"a\":{\"type\":\"integer\"}}}}}]",
	"[{\"type\":\"function\",\"function\":{\"name\":\"w_call\"}}]",
	"[{\"type\":\"function\",\"function\":{\"name\":\"w_call\",\"description\":\"d\",\"parameters\":{\"type\":"
	"\"object\","
	"\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},\"b\":{\"$ref\":\"#/$defs/c\"},"
	"\"c\":{\"enum\":[\"x\"]}},\"$defs\":{\"c\":{\"type\":\"object\"}}}}}]",
};

struct counts {
	unsigned templates, written, refused, lost, changed;
};

/* As it comes, but for what is no matter of templates. NULL: refused so. */
static char *as_it_comes(const struct served *m, const json_t *body)
{
	json_t *messages = history_messages(json_object_get(body, "messages"), 0), *message;
	const json_t *list = json_object_get(body, "tools");
	jit_chat chat = JIT_CHAT();
	size_t i;

	json_array_foreach(messages, i, message)
	{
		const char *role = json_string_value(json_object_get(message, "role"));
		if (strcmp(role, "developer") == 0)
			json_object_set_new(message, "role", json_string("system"));
		if (!json_is_string(json_object_get(message, "content")))
			json_object_set_new(message, "content", json_string(""));
	}
	char *text = json_dumps(messages, 0), *told = list ? json_dumps(list, 0) : NULL;
	jit_chat_options o =
		JIT_CHAT_OPTIONS(.messages = text, .tools = told, .has_now = 1, .now = 951782400,
	                         .template_text = m->template_text,
	                         .variables = "{\"date_string\":\"29 Feb 2000\",\"datetime\":\"Feb 29 2000\"}");
	char *written = jit_chat_render(m->model, &o, &chat, NULL) == JIT_OK ? strdup(chat.text) : NULL;
	jit_chat_free(&chat);
	free(text);
	free(told);
	json_decref(messages);
	return written;
}

static bool has_all(const char *text, const struct history *h)
{
	bool all = true;

	for (size_t i = 0; i < 6 && h->words[i]; i++)
		all = all && strstr(text, h->words[i]);
	return all;
}

static void try_one(const struct served *m, const char *file, const struct history *h, const char *told,
                    struct counts *c)
{
	json_t *body = json_pack("{s:o}", "messages", json_loads(h->messages, 0, NULL));
	struct conversation made = { 0 };
	struct refusal r = { 0 };

	if (told)
		json_object_set_new(body, "tools", json_loads(told, 0, NULL));
	bool ok = conversation_read(&made, body, m, 951782400, &r);
	c->written += ok;
	/* One template wants its tools as a message of a role of their own, which no client sends. */
	const bool own = strstr(file, "firefunction-v1") != NULL;
	if (!ok && !own)
		printf("# %s: %s%s: %s\n", file, h->name, told ? " with tools" : "", r.message);
	c->refused += !ok && !own;
	for (size_t i = 0; ok && i < 6 && h->words[i]; i++)
		if (!strstr(made.text, h->words[i])) {
			printf("# %s: %s%s: %s is lost\n", file, h->name, told ? " with tools" : "", h->words[i]);
			c->lost++;
		}
	/* What loses nothing as it comes goes so. */
	char *before = m->repairs[told != NULL] ? NULL : as_it_comes(m, body);
	if (ok && before && has_all(before, h) && strcmp(before, made.text) != 0) {
		printf("# %s: %s%s: changed:\n%s\n---\n%s\n", file, h->name, told ? " with tools" : "", before,
		       made.text);
		c->changed++;
	}
	free(before);
	conversation_free(&made);
	json_decref(body);
}

static void try_folder(const char *relative, struct counts *c)
{
	char path[1024], file[2048];
	DIR *d = shared_path(path, relative) ? opendir(path) : NULL;

	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		if (test_quick() && e->d_name[0] % 4 == 1)
			continue;
		if (n < 7 || strcmp(e->d_name + n - 6, ".jinja") != 0)
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		char *text = (char *)file_bytes(file, &n), *template = strndup(text, n);
		if (!strchr(template, '{')) { /* a link, as text */
			free(text);
			free(template);
			continue;
		}
		struct served m = { .model = model, .template_text = template, .tools = (int)tools_form_of(template) };
		history_probe(&m);
		for (size_t i = 0; i < sizeof histories / sizeof *histories; i++)
			for (size_t k = 0; k < sizeof tools / sizeof *tools; k++)
				try_one(&m, e->d_name, &histories[i], tools[k], c);
		c->templates++;
		free(text);
		free(template);
	}
	if (d)
		closedir(d);
}

static void test_published(void **state)
{
	static const char *const folders[] = { "llama.cpp", "huggingface.js", "mistral.rs", "configs" };
	struct counts c = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char relative[200];
		snprintf(relative, sizeof relative, "data/chat-templates/%s", folders[i]);
		try_folder(relative, &c);
	}
	if (c.templates == 0)
		skip();
	printf("# %u templates: %u written, %u refused, %u words lost, %u changed\n", c.templates, c.written, c.refused,
	       c.lost, c.changed);
	assert_int_equal(c.refused, 0);
	assert_int_equal(c.lost, 0);
	assert_int_equal(c.changed, 0);
}

#define PLAIN_CALL CALL("\"{\\\"a\\\": 1}\"")
#define PYTHON_CALL CALL("\"{'a': True, 'b': [None, 'it\\\\'s']}\"")
#define CUT_CALL CALL("\"{\\\"a\\\": {\\\"b\\\": \\\"te\"")
#define CUT_WORD CALL("\"{\\\"a\\\": 1, \\\"b\\\": tr\"")

/* Of templates in short, what becomes of a conversation. */
static const struct {
	const char *template, *messages, *tools, *text;
} cases[] = {
	/* A template that adds arguments to a text gets them as one: as they were sent, or spelled. */
	{ "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name + ':' + c.function.arguments }}"
	  "{% endfor %}{{ m.content }};{% endfor %}",
	  "[" USER "," CALL("\"{\\\"a\\\":  1}\"") "," CALL("{\"b\":2}") "," CALL("\"\"") "]", NULL,
	  "w_user;w_call:{\"a\":  1};w_call:{\"b\": 2};w_call:{};" },
	/* One that walks through them gets objects, whatever was sent. */
	{ "{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments.items() %}{{ k "
	  "}}="
	  "{{ v }},{% endfor %}{% endfor %}{{ m.content }};{% endfor %}",
	  "[" USER "," PLAIN_CALL "," CALL("\" \"") "," PYTHON_CALL "," CUT_CALL "," CUT_WORD "," CALL("\"go\"") "]",
	  NULL, "w_user;a=1,;;a=True,b=[None, \"it's\"],;a={'b': 'te'},;a=1,;arguments=go,;" },
	/* System messages where the template wants them, and in their place where it takes them. */
	{ "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('first') }}{% endif "
	  "%}"
	  "{{ m.role[0] }}:{{ m.content }};{% endfor %}",
	  "[" SYSTEM "," USER ",{\"role\":\"developer\",\"content\":\"b\"}," ANSWER "," USER "]", NULL,
	  "s:w_system\n\nb;u:w_user;a:w_answer;u:w_user;" },
	{ "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}",
	  "[" SYSTEM "," USER ",{\"role\":\"developer\",\"content\":\"b\"}," ANSWER "," USER "]", NULL,
	  "s:w_system;u:w_user;s:b;a:w_answer;u:w_user;" },
	{ "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}"
	  "{% endif %}{{ m.role[0] }}:{{ m.content }};{% endfor %}",
	  "[" SYSTEM "," USER "," USER "," ANSWER "," SYSTEM "," USER "]", NULL,
	  "u:w_system\n\nw_system\n\nw_user\n\nw_user;a:w_answer;u:w_user;" },
	/* What is null, or an empty list of calls, is not there. */
	{ "{% for m in messages %}{{ m.role[0] }}{% if m.tool_calls is defined %}{{ m.tool_calls[0].id }}{% endif %}"
	  "{% if m.name is defined %}{{ m.name }}{% endif %}:{{ m.content }};{% endfor %}",
	  "[{\"role\":\"user\",\"content\":\"a\",\"name\":null},{\"role\":\"assistant\",\"content\":\"b\",\"tool_"
	  "calls\":[],"
	  "\"refusal\":null},{\"role\":\"user\",\"content\":\"c\",\"tool_calls\":null}]",
	  NULL, "u:a;a:b;u:c;" },
	/* Joined texts are whole, whatever is in them. */
	{ "{% for m in messages %}{% if not loop.first %}{{ raise_exception('one') }}{% endif %}{{ m.content | "
	  "replace('\\0', '0') "
	  "}}{% endfor %}",
	  "[{\"role\":\"user\",\"content\":\"a\\u0000b\"},{\"role\":\"user\",\"content\":\"c\\u0000d\"}]", NULL,
	  "a0b\n\nc0d" },
	/* Tools without what may be left out. */
	{ "{% for t in tools %}{{ t.function.description + t.function.name }}{{ t.function.parameters.properties | "
	  "length }}"
	  "{% endfor %}{{ messages[0].content }}",
	  "[" USER "]", "[{\"type\":\"function\",\"function\":{\"name\":\"w_call\"}}]", "w_call0w_user" },
	/* A call in each message, with its own result. */
	{ "{% for m in messages %}{% if (m.tool_calls or []) | length > 1 %}{{ raise_exception('one') }}{% endif %}"
	  "{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{{ m.content }};{% endfor %}",
	  "[" USER
	  ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{"
	  "\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"g\","
	  "\"arguments\":"
	  "\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"of "
	  "b\"},{\"role\":\"tool\",\"tool_call_id\":\"a\","
	  "\"content\":\"of a\"}]",
	  NULL, "w_user;f;of a;g;of b;" },
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct served m = { .model = model, .template_text = cases[i].template };
		json_t *body = json_pack("{s:o}", "messages", json_loads(cases[i].messages, JSON_ALLOW_NUL, NULL));
		struct conversation made = { 0 };
		struct refusal r = { 0 };
		assert_non_null(body);
		if (cases[i].tools)
			json_object_set_new(body, "tools", json_loads(cases[i].tools, 0, NULL));
		history_probe(&m);
		if (!conversation_read(&made, body, &m, 951782400, &r))
			fail_msg("%zu: %s", i, r.message);
		assert_string_equal(made.text, cases[i].text);
		conversation_free(&made);
		json_decref(body);
	}
}

/* Documents of a request stand where the template writes them, or are refused. */
static void test_documents(void **state)
{
	static const struct {
		const char *template, *documents, *says;
	} rows[] = {
		{ "{% for d in documents %}[{{ d.title }}|{{ d.text }}]{% endfor %}{{ messages[0].content }}",
		  "[{\"title\":\"a\",\"text\":\"b\"},\"c\"]", "[a|b][|c]w_user" },
		{ "{{ messages[0].content }}", "[\"c\"]", "documents is given, and" },
		{ "{{ messages[0].content }}", "[]", "w_user" },
		{ "{% for d in documents %}{{ d.text }}{% endfor %}{{ messages[0].content }}", "[1]",
		  "documents has an integer" },
		{ "{% for d in documents %}{{ d.text }}{% endfor %}{{ messages[0].content }}", "\"a\"",
		  "documents is a string" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct served m = { .model = model, .template_text = rows[i].template };
		json_t *body = json_pack("{s:o, s:o}", "messages", json_loads("[" USER "]", 0, NULL), "documents",
		                         json_loads(rows[i].documents, JSON_DECODE_ANY, NULL));
		struct conversation made = { 0 };
		struct refusal r = { 0 };
		history_probe(&m);
		bool ok = conversation_read(&made, body, &m, 951782400, &r);
		if (!strstr(ok ? made.text : r.message, rows[i].says))
			fail_msg("%zu: %s", i, ok ? made.text : r.message);
		assert_int_equal(r.status, ok ? 0 : 400);
		conversation_free(&made);
		json_decref(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_published),
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}
