/* tests/server/t_forced_calls.c - answers that tool_choice makes calls of tools, by a whole server and in each form
 * that a template may teach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers/tool_forms.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static const char *text(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static void check_call(const json_t *call, const char *name, const char *arguments)
{
	const json_t *function = json_object_get(call, "function");

	assert_string_equal(text(function, "name"), name);
	assert_string_equal(text(function, "arguments"), arguments);
}

/* Whatever the model would say, a call of one of the tools, with arguments that its schema allows. */
static void test_required(void **state)
{
	static const char *const arguments[] = { "--no-cache", NULL };
	static const char *const choices[] = { "\"required\"",
		                               "{\"type\":\"function\",\"function\":{\"name\":\"put\"}}" };
	static const char *const wrong[] = { "\"perhaps\"", "{\"type\":\"function\",\"function\":{\"name\":\"x\"}}" };
	static const char tools[] =
		"{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":200,\"tools\":["
		"{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":{\"type\":\"object\","
		"\"properties\":"
		"{\"x\":{\"enum\":[\"a\",\"b\"]}},\"required\":[\"x\"],\"additionalProperties\":false}}},"
		"{\"type\":\"function\",\"function\":{\"name\":\"put\",\"parameters\":{\"type\":\"object\","
		"\"properties\":"
		"{},\"additionalProperties\":false}}}],\"seed\":%d,\"tool_choice\":%s}";
	struct child c = child_start(arguments);
	char body[2000];
	(void)state;

	for (int i = 0; i < 6; i++) {
		snprintf(body, sizeof body, tools, i, choices[i % 2]);
		json_t *o = client_json(&c, "/v1/chat/completions", body, 200);
		json_t *one = json_array_get(json_object_get(o, "choices"), 0);
		json_t *calls = json_object_get(json_object_get(one, "message"), "tool_calls");
		if (strcmp(text(one, "finish_reason"), "length") != 0) { /* white space without end is right, too */
			assert_int_equal(json_array_size(calls), 1);
			json_t *function = json_object_get(json_array_get(calls, 0), "function");
			const char *said = text(function, "arguments");
			bool put = strcmp(text(function, "name"), "put") == 0;
			assert_true(put || i % 2 == 0);
			if (put)
				assert_string_equal(said, "{}");
			else
				assert_true(strcmp(said, "{\"x\":\"a\"}") == 0 || strcmp(said, "{\"x\":\"b\"}") == 0);
		}
		json_decref(o);
		snprintf(body, sizeof body, tools, i, wrong[i % 2]);
		json_decref(client_json(&c, "/v1/chat/completions", body, 400));
	}
	assert_int_equal(child_stop(&c), 0);
}

/* What parameters refer to is in them, however the request says that a call must be: one value that a reference allows,
 * and objects in objects as the whole of them is. */
static void test_references(void **state)
{
	static const char
		item[] = "{\"type\":\"object\",\"$defs\":{\"Item\":{\"const\":7}},\"properties\":{\"x\":{"
			 "\"$ref\":\"#/$defs/Item\"}},\"required\":[\"x\"],\"additionalProperties\":false}",
		self[] = "{\"type\":\"object\",\"definitions\":{\"Item\":{\"const\":8}},\"properties\":{\"x\":{"
			 "\"const\":8},\"k\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"minItems\":1,"
			 "\"maxItems\":1}},\"oneOf\":[{\"required\":[\"x\"]},{\"required\":[\"k\"]}],"
			 "\"additionalProperties\":false,\"$id\":\"http://localhost/same\"}";
	static const struct {
		const char *path, *form, *tool, *choice;
	} ways[] = {
		{ "/v1/chat/completions",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":200,\"seed\":%d,\"tools\":[%s],"
		  "\"tool_choice\":%s}",
		  "{\"type\":\"function\",\"function\":{\"name\":\"%s\",\"parameters\":%s}}", "\"required\"" },
		{ "/v1/chat/completions",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":200,\"seed\":%d,\"tools\":[%s],"
		  "\"tool_choice\":%s}",
		  "{\"type\":\"function\",\"function\":{\"name\":\"%s\",\"parameters\":%s}}",
		  "{\"type\":\"function\",\"function\":{\"name\":\"item\"}}" },
		{ "/v1/messages",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":200,\"seed\":%d,\"tools\":[%s],"
		  "\"tool_choice\":%s}",
		  "{\"name\":\"%s\",\"input_schema\":%s}", "{\"type\":\"any\"}" },
		{ "/v1/responses",
		  "{\"input\":\"?\",\"max_output_tokens\":200,\"seed\":%d,\"tools\":[%s],\"tool_choice\":%s}",
		  "{\"type\":\"function\",\"name\":\"%s\",\"parameters\":%s}", "\"required\"" },
	};
	static const char *const arguments[] = { "--no-cache", NULL };
	struct child c = child_start(arguments);
	char body[4000], tools[3000], tool[1000];
	unsigned ended = 0;
	(void)state;

	for (unsigned i = 0; i < 4 * sizeof ways / sizeof *ways; i++) {
		snprintf(tool, sizeof tool, ways[i / 4].tool, "item", item);
		size_t n = (size_t)snprintf(tools, sizeof tools, "%s,", tool);
		snprintf(tool, sizeof tool, ways[i / 4].tool, "self", self);
		snprintf(tools + n, sizeof tools - n, "%s", tool);
		snprintf(body, sizeof body, ways[i / 4].form, (int)i, tools, ways[i / 4].choice);
		struct answer a = client_ask(&c, ways[i / 4].path, NULL, body);
		if (a.status != 200)
			fail_msg("%s: %d %s", body, a.status, a.body);
		/* As objects, or as JSON texts in which quotes are escaped. */
		bool item_called =
			strstr(a.body, "\"item\"") && (strstr(a.body, "\"x\":7}") || strstr(a.body, "\\\"x\\\":7}"));
		bool self_called =
			strstr(a.body, "\"self\"") && (strstr(a.body, "\"x\":8}") || strstr(a.body, "\\\"x\\\":8}"));
		bool cut =
			strstr(a.body, "\"length\"") || strstr(a.body, "max_tokens\"") || strstr(a.body, "incomplete");
		if (!item_called && !self_called && !cut)
			fail_msg("%s", a.body);
		ended += item_called || self_called;
		answer_free(&a);
	}
	assert_true(ended > 8);
	assert_int_equal(child_stop(&c), 0);
}

/* Arguments go on while they are generated, as the name comes before them whatever the model would like. */
static void check_streamed(const struct child *c, const char *body, enum tools_form form)
{
	char whole[1100];
	unsigned parts = 0;

	snprintf(whole, sizeof whole, "{\"stream\":true,%s", body + 1);
	struct answer a = client_ask(c, "/v1/chat/completions", NULL, whole);
	assert_int_equal(a.status, 200);
	for (const char *at = a.body; (at = strstr(at, "\"arguments\":\"")); at++)
		parts++;
	if (parts < 2 && strstr(a.body, "\"finish_reason\":\"tool_calls\""))
		fail_msg("form %d: a call in %u pieces: %s", form, parts, a.body);
	answer_free(&a);
}

/* The same in each form that a template may teach: the prompt opens the call, and the answer is read as one. With
 * `required` one of several functions is called. */
static void test_forced_forms(void **state)
{
	static const char tools[] =
		"{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":120,\"seed\":3,\"tools\":["
		"{\"type\":\"function\",\"function\":{\"name\":\"put\",\"parameters\":{\"type\":\"object\","
		"\"properties\":{\"x\":{\"$ref\":\"#/$defs/T\"}},\"required\":[\"x\"],\"additionalProperties\":false,"
		"\"$defs\":{\"T\":{\"const\":true}}}}},{\"type\":\"function\",\"function\":{\"name\":\"take\","
		"\"parameters\":{\"$ref\":\"#/$defs/"
		"T\",\"$defs\":{\"T\":false}}}}],\"tool_choice\":%s,\"reasoning_budget\":3,\"enable_thinking\":%s}";
	char path[] = "/tmp/jitrun-template-XXXXXX", body[1000], whole[1000];
	int fd = mkstemp(path), ended = 0;
	const char *const arguments[] = { "--no-cache", "--no-replay", "--template", path, NULL };
	(void)state;

	assert_true(fd >= 0);
	for (int form = TOOLS_LIST; form < TOOLS_FORMS; form++) {
		const struct tools_row *row = &tools_rows[form];
		int n = snprintf(whole, sizeof whole,
		                 "{%% for m in messages %%}{{ m.content }}{%% endfor %%}{# %s #}"
		                 "{%% if enable_thinking %%}<think>{%% endif %%}",
		                 row->taught);
		assert_true(ftruncate(fd, 0) == 0 && pwrite(fd, whole, (size_t)n, 0) == n);
		if (test_quick() && form % 6 != 4) /* a server each */
			continue;
		struct child c = child_start(arguments);
		for (int i = 0; i < 4; i++) {
			const bool named = i % 2, thinks = i > 1;
			snprintf(body, sizeof body, tools,
			         named ? "{\"type\":\"function\",\"function\":{\"name\":\"put\"}}" : "\"required\"",
			         thinks ? "true" : "false");
			json_t *o = client_json(&c, "/v1/chat/completions", body, 200);
			json_t *one = json_array_get(json_object_get(o, "choices"), 0);
			json_t *calls = json_object_get(json_object_get(one, "message"), "tool_calls");
			if (strcmp(text(one, "finish_reason"), "length") != 0) {
				if (json_array_size(calls) != 1 ||
				    thinks != !!text(json_object_get(one, "message"), "reasoning_content"))
					fail_msg("form %d: %s", form, json_dumps(one, 0));
				check_call(json_array_get(calls, 0), "put", "{\"x\":true}");
				ended++;
			}
			json_decref(o);
			if (row->body == BODY_JSON)
				check_streamed(&c, body, (enum tools_form)form);
		}
		assert_int_equal(child_stop(&c), 0);
	}
	assert_true(ended > 0);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_required),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_forced_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
