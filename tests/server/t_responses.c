/* tests/server/t_responses.c - responses that go on from others, and tools that are no plain functions: custom ones, in
 * namespaces, shells and patches, as agents send them, whole and in streams.
 */
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

#include "tests/server/client.h"
#include "tests/server/json_at.h"
#include "tests/support/shared.h"

#define PATH "/v1/responses"
#define SHORT "\"temperature\":0,\"max_output_tokens\":8,"
#define CUSTOM \
	"{\"type\":\"custom\",\"name\":\"write\",\"description\":\"Writes.\",\"format\":{\"type\":\"grammar\"," \
	"\"syntax\":" \
	"\"regex\",\"definition\":\"[ab]{3,5}\"}}"
#define SPACE \
	"{\"type\":\"namespace\",\"name\":\"mcp__files\",\"description\":\"Files.\",\"tools\":[{\"type\":" \
	"\"function\"," \
	"\"name\":\"read\",\"parameters\":{\"type\":\"object\",\"properties\":{\"n\":{\"enum\":[1,2]}},\"required\":[" \
	"\"n\"],\"additionalProperties\":false}}]}"

static const char template[] =
	"{% for t in tools %}<{{ t.function.name }}>{{ t.function.description }}{% endfor %}"
	"{% for m in messages %}[{{ m.role }}|{{ m.reasoning_content }}|{{ m.content }}"
	"{% for c in m.tool_calls %}|{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}]"
	"{% endfor %}{% if add_generation_prompt %}[assistant|{% endif %}";
static struct child server;

static int start(void **state)
{
	(void)state;
	write_file("t_responses.jinja", template);
	server = child_start((const char *[]){
		"--template", "t_responses.jinja", "--no-cache", "--keep-responses", "3", "--context", "1024", NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	const int status = child_stop(&server);

	unlink("t_responses.jinja");
	return status;
}

static json_t *ask(int status, const char *format, ...)
{
	char body[12000];
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(body, sizeof body, format, args), 1, sizeof body - 1);
	va_end(args);
	return client_json(&server, PATH, body, status);
}

static struct answer request(const struct child *c, const char *method, const char *path, const char *fields)
{
	char text[1000];
	const int fd = client_connect(c, false);

	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: 0\r\n\r\n", method, path,
	         fields);
	client_send(fd, text, strlen(text));
	struct answer a = client_read(fd, 60);
	close(fd);
	return a;
}

/* ---- what is kept */

/* The conversation that goes on is the one that is sent whole. */
static void test_goes_on(void **state)
{
	json_t *a = ask(200, "{" SHORT "\"instructions\":\"Be short.\",\"input\":\"Once upon\"}");
	char *first = strdup(text_at(a, "output/0/content/0/text")), id[100];
	(void)state;

	snprintf(id, sizeof id, "%s", text_at(a, "id"));
	assert_true(json_is_true(at(a, "store")));
	json_t *spelled = json_string(first);
	char *quoted = json_dumps(spelled, JSON_ENCODE_ANY);
	json_t *b = ask(200, "{" SHORT "\"previous_response_id\":\"%s\",\"input\":\"And then?\"}", id);
	json_t *whole =
		ask(200,
	            "{" SHORT "\"store\":false,\"input\":[{\"role\":\"user\",\"content\":\"Once upon\"},{\"role\":"
	            "\"assistant\",\"content\":%s},{\"role\":\"user\",\"content\":\"And then?\"}]}",
	            quoted);
	assert_string_equal(text_at(b, "previous_response_id"), id);
	assert_string_equal(text_at(b, "output/0/content/0/text"), text_at(whole, "output/0/content/0/text"));
	assert_true(json_equal(at(b, "usage/input_tokens"), at(whole, "usage/input_tokens")));
	/* ... and on, from a stream. */
	json_t *c =
		ask(200,
	            "{" SHORT "\"previous_response_id\":\"%s\",\"input\":[{\"role\":\"user\",\"content\":\"More.\"},"
	            "{\"type\":\"item_reference\",\"id\":\"%s\"}]}",
	            text_at(b, "id"), text_at(b, "output/0/id"));
	assert_true(json_integer_value(at(c, "usage/input_tokens")) > json_integer_value(at(b, "usage/input_tokens")));
	assert_true(json_is_false(at(whole, "store")));
	json_decref(ask(400, "{\"previous_response_id\":\"%s\",\"input\":\"a\"}", text_at(whole, "id")));
	json_decref(a);
	json_decref(b);
	json_decref(c);
	json_decref(whole);
	json_decref(spelled);
	free(quoted);
	free(first);
}

static void test_stored(void **state)
{
	json_t *a =
		ask(200, "{" SHORT "\"input\":[{\"role\":\"user\",\"content\":\"One\"}],\"metadata\":{\"a\":\"b\"}}");
	char path[200], id[100];
	(void)state;

	snprintf(id, sizeof id, "%s", text_at(a, "id"));
	snprintf(path, sizeof path, PATH "/%s", id);
	json_t *b = client_json(&server, path, NULL, 200);
	assert_string_equal(text_at(b, "id"), id);
	assert_true(json_equal(at(a, "output"), at(b, "output")));
	assert_true(json_equal(at(a, "usage"), at(b, "usage")));
	assert_true(json_equal(at(a, "metadata"), at(b, "metadata")));
	snprintf(path, sizeof path, PATH "/%s/input_items", id);
	json_t *items = client_json(&server, path, NULL, 200);
	assert_int_equal(json_array_size(at(items, "data")), 1);
	assert_string_equal(text_at(items, "data/0/content"), "One");
	assert_string_equal(text_at(items, "first_id"), text_at(items, "data/0/id"));
	snprintf(path, sizeof path, PATH "/%s/cancel", id);
	struct answer done = request(&server, "POST", path, "Content-Type: application/json\r\n");
	assert_int_equal(done.status, 400);
	answer_free(&done);
	snprintf(path, sizeof path, PATH "/%s", id);
	done = request(&server, "DELETE", path, "");
	assert_int_equal(done.status, 200);
	assert_non_null(strstr(done.body, "\"deleted\":true"));
	answer_free(&done);
	done = request(&server, "DELETE", path, "");
	assert_int_equal(done.status, 404);
	answer_free(&done);
	json_decref(client_json(&server, path, NULL, 404));
	json_t *gone = ask(400, "{\"previous_response_id\":\"%s\",\"input\":\"a\"}", id);
	assert_string_equal(text_at(gone, "error/param"), "previous_response_id");
	json_decref(gone);
	json_decref(items);
	json_decref(a);
	json_decref(b);
}

/* More than are kept: the one that nobody asked for goes first. */
static void test_bounds(void **state)
{
	char id[4][100], path[200];
	(void)state;

	for (int i = 0; i < 4; i++) {
		json_t *o = ask(200, "{" SHORT "\"input\":\"%d\"}", i);
		snprintf(id[i], sizeof id[i], "%s", text_at(o, "id"));
		json_decref(o);
		snprintf(path, sizeof path, PATH "/%.99s", id[0]);
		if (i == 2)
			json_decref(client_json(&server, path, NULL, 200));
	}
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, PATH "/%.99s", id[i]);
		json_decref(client_json(&server, path, NULL, i == 1 ? 404 : 200));
	}
}

/* A key's responses are not another one's; a server that keeps none says so. */
static void test_owners(void **state)
{
	static const char body[] = "{" SHORT "\"input\":\"a\"}";
	char path[200];
	(void)state;

	write_file("t_responses.keys", "first-key-of-this-test\nsecond-key-of-this-test\n");
	struct child c = child_start((const char *[]){ "--api-key-file", "t_responses.keys", "--no-cache", NULL });
	struct answer a = client_ask(&c, PATH, "Authorization: Bearer first-key-of-this-test\r\n", body);
	json_t *o = json_loads(a.body, 0, NULL);
	assert_int_equal(a.status, 200);
	snprintf(path, sizeof path, PATH "/%.99s", text_at(o, "id"));
	answer_free(&a);
	a = client_ask(&c, path, "Authorization: Bearer second-key-of-this-test\r\n", NULL);
	assert_int_equal(a.status, 404);
	answer_free(&a);
	a = client_ask(&c, path, "Authorization: Bearer first-key-of-this-test\r\n", NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	json_decref(o);
	assert_int_equal(child_stop(&c), 0);
	unlink("t_responses.keys");
	c = child_start((const char *[]){ "--keep-responses", "0", "--no-cache", NULL });
	a = client_ask(&c, PATH, NULL, body);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(a.body, "\"store\":false"));
	answer_free(&a);
	assert_int_equal(child_stop(&c), 0);
}

/* ---- tools */

static void test_custom(void **state)
{
	static const char body[] =
		"{\"input\":\"Go.\",\"seed\":2,\"max_output_tokens\":60,\"stream\":%s,\"tools\":[" CUSTOM
		"],\"tool_choice\":{\"type\":\"custom\",\"name\":\"write\"}}";
	char text[1000], input[200] = "";
	(void)state;

	json_t *o = ask(200, body, "false");
	assert_string_equal(text_at(o, "output/0/type"), "custom_tool_call");
	assert_string_equal(text_at(o, "output/0/name"), "write");
	const char *given = text_at(o, "output/0/input");
	assert_in_range(strlen(given), 3, 5);
	assert_int_equal(strspn(given, "ab"), strlen(given));
	snprintf(text, sizeof text, body, "true");
	struct answer a = client_ask(&server, PATH, NULL, text);
	for (const char *line = a.body; (line = strstr(line, "data: {")); line++) {
		json_t *e = json_loads(line + 6, JSON_DISABLE_EOF_CHECK, NULL);
		const char *type = text_at(e, "type");
		assert_null(strstr(type, "function_call"));
		if (strcmp(type, "response.custom_tool_call_input.delta") == 0)
			strncat(input, text_at(e, "delta"), 100);
		if (strcmp(type, "response.custom_tool_call_input.done") == 0)
			assert_string_equal(text_at(e, "input"), input);
		json_decref(e);
	}
	assert_string_equal(input, given);
	answer_free(&a);
	/* It goes on with what the tool gave. */
	json_t *next = ask(200,
	                   "{" SHORT "\"tools\":[" CUSTOM "],\"previous_response_id\":\"%s\",\"input\":[{\"type\":"
	                   "\"custom_tool_call_output\",\"call_id\":\"%s\",\"output\":\"Done.\"}]}",
	                   text_at(o, "id"), text_at(o, "output/0/call_id"));
	json_decref(next);
	json_decref(o);
}

static void test_namespace(void **state)
{
	json_t *o = ask(200, "{\"input\":\"Go.\",\"max_output_tokens\":60,\"tools\":[" SPACE
	                     "],\"tool_choice\":\"required\"}");
	(void)state;

	assert_string_equal(text_at(o, "output/0/type"), "function_call");
	assert_string_equal(text_at(o, "output/0/namespace"), "mcp__files");
	assert_string_equal(text_at(o, "output/0/name"), "read");
	json_decref(o);
	o = ask(200, "{\"input\":\"Go.\",\"max_output_tokens\":60,\"tools\":[" SPACE
	             "],\"tool_choice\":{\"type\":\"function\",\"namespace\":\"mcp__files\",\"name\":\"read\"}}");
	assert_string_equal(text_at(o, "output/0/name"), "read");
	json_decref(o);
}

static void test_typed(void **state)
{
	static const struct {
		const char *type, *call, *member;
	} cases[] = { { "local_shell", "local_shell_call", "action/command" },
		      { "shell", "shell_call", "action/commands" },
		      { "apply_patch", "apply_patch_call", "operation/path" } };
	(void)state;

	for (size_t i = 0; i < 3; i++) {
		json_t *o = NULL;
		for (int seed = 0; seed < 12 && !o; seed++) { /* until the call is whole */
			o = ask(200,
			        "{\"input\":\"Go.\",\"seed\":%d,\"max_output_tokens\":120,\"tools\":[{\"type\":\"%s\"}]"
			        ","
			        "\"tool_choice\":{\"type\":\"%s\"}}",
			        seed, cases[i].type, cases[i].type);
			assert_string_equal(text_at(o, "output/0/type"), cases[i].call);
			if (strcmp(text_at(o, "output/0/status"), "completed") != 0) {
				json_decref(o);
				o = NULL;
			}
		}
		if (!o)
			continue;
		char path[60];
		snprintf(path, sizeof path, "output/0/%s", cases[i].member);
		assert_non_null(at(o, path));
		if (i == 0)
			assert_string_equal(text_at(o, "output/0/action/type"), "exec");
		json_decref(o);
	}
}

/* What other servers run is left out, and told. */
static void test_hosted(void **state)
{
	static const char *const types[] = { "web_search",          "web_search_preview", "mcp",
		                             "file_search",         "code_interpreter",   "image_generation",
		                             "computer_use_preview" };
	char tools[1000] = "";
	(void)state;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		sprintf(tools + strlen(tools), "%s{\"type\":\"%s\"}", i ? "," : "", types[i]);
	json_t *plain = ask(200, "{" SHORT "\"input\":\"Go.\"}"),
	       *o = ask(200, "{" SHORT "\"input\":\"Go.\",\"tools\":[%s]}", tools);
	assert_int_equal(json_array_size(at(o, "warnings")), sizeof types / sizeof *types);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		assert_non_null(strstr(json_string_value(json_array_get(at(o, "warnings"), i)), types[i]));
	assert_null(at(plain, "warnings"));
	assert_true(json_equal(at(o, "usage/input_tokens"), at(plain, "usage/input_tokens")));
	json_decref(plain);
	json_decref(o);
}

/* Everything that an agent's conversation holds. */
static const char items[] =
	"{\"type\":\"message\",\"role\":\"developer\",\"content\":[{\"type\":\"input_text\",\"text\":\"Rules\"}"
	"]},"
	"{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Fix it\"}]},"
	"{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"jitrun-1:SGlkZGVuIHRob3VnaHQ=\"},"
	"{\"type\":\"function_call\",\"call_id\":\"c1\",\"namespace\":\"mcp__files\",\"name\":\"read\","
	"\"arguments\":"
	"\"{\\\"n\\\":1}\"},"
	"{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":[{\"type\":\"input_text\",\"text\":"
	"\"ONE"
	"\"}]},"
	"{\"type\":\"custom_tool_call\",\"status\":\"completed\",\"call_id\":\"c2\",\"name\":\"apply_patch\","
	"\"input\":\"*** Begin Patch\"},"
	"{\"type\":\"custom_tool_call_output\",\"call_id\":\"c2\",\"output\":\"TWO\"},"
	"{\"type\":\"local_shell_call\",\"call_id\":\"c3\",\"status\":\"completed\",\"action\":{\"type\":"
	"\"exec\","
	"\"command\":[\"ls\"]}},"
	"{\"type\":\"local_shell_call_output\",\"call_id\":\"c3\",\"output\":\"THREE\"},"
	"{\"type\":\"shell_call\",\"call_id\":\"c4\",\"action\":{\"commands\":[\"pwd\"]}},"
	"{\"type\":\"shell_call_output\",\"call_id\":\"c4\",\"output\":[{\"stdout\":\"FOUR\",\"outcome\":{"
	"\"type\":"
	"\"exit\",\"exit_code\":0}}]},"
	"{\"type\":\"apply_patch_call\",\"call_id\":\"c5\",\"status\":\"completed\",\"operation\":{\"type\":"
	"\"delete_file\",\"path\":\"a.c\"}},"
	"{\"type\":\"apply_patch_call_output\",\"call_id\":\"c5\",\"status\":\"completed\",\"output\":\"FIVE\"}"
	","
	"{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":\"completed\",\"action\":{}},"
	"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"content\":[{\"type\":\"reasoning_text\","
	"\"text\":"
	"\"Plain thought\"}],\"encrypted_content\":\"gAAAA\"},"
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Done\","
	"\"annotations\":[]}]},"
	"{\"role\":\"user\",\"content\":\"Thanks\"}";

static json_int_t count(const char *all)
{
	json_t *o =
		ask(200, "{" SHORT "\"tools\":[" SPACE "," CUSTOM ",{\"type\":\"local_shell\"}],\"input\":[%s]}", all);
	const json_int_t n = json_integer_value(at(o, "usage/input_tokens"));

	json_decref(o);
	return n;
}

/* Each part is read: with another one the prompt is another. */
static void test_history(void **state)
{
	static const char *const parts[] = {
		"Rules",
		"Fix it",
		"SGlkZGVuIHRob3VnaHQ=",
		"mcp__files",
		"ONE",
		"*** Begin Patch",
		"TWO",
		"ls",
		"THREE",
		"pwd",
		"FOUR",
		"a.c",
		"FIVE",
		"Plain thought",
		"Done",
		"Thanks"
	};
	const json_int_t all = count(items);
	char more[6000];
	(void)state;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const char *found = strstr(items, parts[i]);
		assert_non_null(found);
		while (strcmp(parts[i], "ls") == 0 && found[-1] != '"')
			found = strstr(found + 1, parts[i]);
		snprintf(more, sizeof more, "%.*s%s%s", (int)(found - items), items,
		         strchr(parts[i], '=') ? "" : "another text altogether, which is long",
		         found + strlen(parts[i]));
		if (count(more) == all)
			fail_msg("\"%s\" is not read", parts[i]);
	}
}

/* Reasoning comes with what it may be sent back as, where that is asked for. */
static void test_sealed(void **state)
{
	json_t *o =
		ask(200,
	            "{\"temperature\":0,\"max_output_tokens\":20,\"reasoning_budget\":4,\"include\":["
	            "\"reasoning.encrypted_content\"],\"input\":[{\"role\":\"user\",\"content\":\"A tale\"},{\"role\":"
	            "\"assistant\",\"content\":\"<think>\"}]}");
	const char *sealed = text_at(o, "output/0/encrypted_content"), *text = text_at(o, "output/0/content/0/text");
	(void)state;

	assert_true(*sealed && *text);
	json_t *spelled = json_string(text);
	char *quoted = json_dumps(spelled, JSON_ENCODE_ANY);
	json_t *a = ask(200,
	                "{" SHORT
	                "\"input\":[{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"%s\"},{\"role\":"
	                "\"assistant\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}]}",
	                sealed),
	       *b = ask(200,
	                "{" SHORT "\"input\":[{\"type\":\"reasoning\",\"summary\":[],\"content\":[{\"type\":"
	                "\"reasoning_text\",\"text\":%s}]},{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":"
	                "\"user\","
	                "\"content\":\"b\"}]}",
	                quoted),
	       *c = ask(200, "{" SHORT
	                     "\"input\":[{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"user\",\"content\":"
	                     "\"b\"}]}");
	assert_true(json_equal(at(a, "usage/input_tokens"), at(b, "usage/input_tokens")));
	assert_false(json_equal(at(a, "usage/input_tokens"), at(c, "usage/input_tokens")));
	json_decref(a);
	json_decref(b);
	json_decref(c);
	json_decref(spelled);
	free(quoted);
	json_decref(o);
}

static void test_refused(void **state)
{
	static const struct {
		const char *more, *param;
	} cases[] = {
		{ "\"tools\":[{\"type\":\"no_such\"}]", "tools" },
		{ "\"tools\":[{}]", "tools" },
		{ "\"tools\":[7]", "tools" },
		{ "\"tools\":[{\"type\":7}]", "tools" },
		{ "\"tools\":[{\"type\":\"custom\"}]", "tools" },
		{ "\"tools\":[{\"type\":\"custom\",\"name\":\"a\",\"format\":{\"type\":\"grammar\",\"syntax\":\"bnf\","
		  "\"definition\":\"a\"}}]",
		  "tools" },
		{ "\"tools\":[{\"type\":\"custom\",\"name\":\"a\",\"format\":{\"type\":\"other\"}}]", "tools" },
		{ "\"tools\":[{\"type\":\"custom\",\"name\":\"a\",\"format\":7}]", "tools" },
		{ "\"tools\":[{\"type\":\"namespace\",\"name\":\"a\",\"tools\":7}]", "tools" },
		{ "\"tools\":[{\"type\":\"namespace\",\"tools\":[]}]", "tools" },
		{ "\"tools\":[{\"type\":\"namespace\",\"name\":\"a\",\"tools\":[{\"type\":\"namespace\",\"name\":\"b\"}"
		  "]}]",
		  "tools" },
		{ "\"tool_choice\":{\"type\":\"web_search\"}", "tool_choice" },
		{ "\"tool_choice\":{\"type\":\"custom\"}", "tool_choice" },
		{ "\"tool_choice\":\"required\",\"tools\":[{\"type\":\"web_search\"}]", "tool_choice" },
		{ "\"input\":[{\"type\":\"custom_tool_call\",\"name\":\"a\",\"input\":\"b\"}]", "input" },
		{ "\"input\":[{\"type\":\"custom_tool_call\",\"call_id\":\"a\",\"input\":\"b\"}]", "input" },
		{ "\"input\":[{\"type\":\"custom_tool_call\",\"call_id\":\"a\",\"name\":\"b\"}]", "input" },
		{ "\"input\":[{\"type\":\"local_shell_call\",\"call_id\":\"a\",\"action\":7}]", "input" },
		{ "\"input\":[{\"type\":\"custom_tool_call_output\",\"output\":\"a\"}]", "input" },
		{ "\"input\":[{\"type\":\"item_reference\",\"id\":\"msg_none_0\"}]", "input" },
		{ "\"input\":[{\"type\":\"item_reference\"}]", "input" },
		{ "\"input\":[{\"type\":\"no_such\"}]", "input" },
		{ "\"input\":[{\"type\":\"web_search_call\"}]", "input" },
		{ "\"previous_response_id\":7", "previous_response_id" },
		{ "\"store\":7", "store" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *o = ask(400, "{\"input\":\"a\",%s}", cases[i].more);
		if (strcmp(text_at(o, "error/param"), cases[i].param) != 0)
			fail_msg("%s: %s: %s", cases[i].more, text_at(o, "error/param"), text_at(o, "error/message"));
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on), cmocka_unit_test(test_stored),  cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_owners),  cmocka_unit_test(test_custom),  cmocka_unit_test(test_namespace),
		cmocka_unit_test(test_typed),   cmocka_unit_test(test_hosted),  cmocka_unit_test(test_history),
		cmocka_unit_test(test_sealed),  cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
