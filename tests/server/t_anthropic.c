/* tests/server/t_anthropic.c - conversations in the form of Anthropic's API: the same texts as in the other form, and
 * the order of events.
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

#include "tests/server/client.h"
#include "tests/support/shared.h"

static struct child server;

static int start(void **state)
{
	static const char *const arguments[] = { "--no-cache", NULL };
	(void)state;

	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&server);
}

static const char *text(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static json_int_t integer(const json_t *o, const char *name) { return json_integer_value(json_object_get(o, name)); }

#define TAIL "\"max_tokens\":20,\"seed\":5"
#define ASK \
	"{\"system\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: " \
	"1\"},{\"type\":\"text\",\"text\":\"Be brief.\"}]," \
	"\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"A tale.\"}]}]," TAIL

/* The names of events, one behind the other; deltas that follow each other count once. */
static void names_of(const struct answer *a, char out[1000], char said[1000])
{
	char last[100] = "";

	out[0] = said[0] = 0;
	for (const char *at = a->body; (at = strstr(at, "event: ")); at++) {
		char name[100];
		assert_int_equal(sscanf(at, "event: %99s", name), 1);
		const char *data = strstr(at, "data: ");
		json_t *o = json_loadb(data + 6, strcspn(data + 6, "\n"), 0, NULL);
		assert_non_null(o);
		assert_string_equal(text(o, "type"), name);
		const json_t *delta = json_object_get(o, "delta");
		if (text(delta, "text"))
			strcat(said, text(delta, "text"));
		if (text(delta, "partial_json"))
			strcat(said, text(delta, "partial_json"));
		json_decref(o);
		if (strcmp(name, last) != 0)
			strcat(strcat(out, name), " ");
		strcpy(last, name);
	}
}

static void test_text(void **state)
{
	char names[1000], said[1000];
	(void)state;

	json_t *o = client_json(
		&server, "/v1/chat/completions",
		"{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":"
		"\"A tale.\"}]," TAIL "}",
		200);
	json_t *other = json_object_get(json_array_get(json_object_get(o, "choices"), 0), "message");
	json_t *m = client_json(&server, "/v1/messages", ASK "}", 200), *usage = json_object_get(m, "usage");
	assert_string_equal(text(m, "stop_reason"), "max_tokens");
	assert_string_equal(text(json_array_get(json_object_get(m, "content"), 0), "text"), text(other, "content"));
	json_t *count = client_json(&server, "/v1/messages/count_tokens", ASK "}", 200);
	assert_int_equal(integer(count, "input_tokens"),
	                 integer(usage, "input_tokens") + integer(usage, "cache_read_input_tokens"));
	assert_int_equal(integer(usage, "output_tokens"), 20);
	struct answer a = client_ask(&server, "/v1/messages", NULL, ASK ",\"stream\":true}");
	names_of(&a, names, said);
	assert_string_equal(names,
	                    "message_start content_block_start content_block_delta content_block_stop message_delta "
	                    "message_stop ");
	assert_string_equal(said, text(other, "content"));
	answer_free(&a);
	json_decref(count);
	json_decref(m);
	json_decref(o);
}

#define TOOL \
	"{\"messages\":[{\"role\":\"user\",\"content\":\"?\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_" \
	"use\",\"id\":" \
	"\"a\",\"name\":\"get\",\"input\":{\"x\":1}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"," \
	"\"tool_use_id\":" \
	"\"a\",\"content\":\"7\"},{\"type\":\"text\",\"text\":\"So?\"}]}],\"max_tokens\":300,\"temperature\":1.5," \
	"\"seed\":2," \
	"\"tools\":[{\"name\":\"get\",\"input_schema\":{\"type\":\"object\",\"properties\":{}," \
	"\"additionalProperties\":false}}]," \
	"\"tool_choice\":{\"type\":\"any\"}"

static void test_tools(void **state)
{
	char names[1000], said[1000];
	(void)state;

	json_t *m = client_json(&server, "/v1/messages", TOOL "}", 200);
	json_t *block = json_array_get(json_object_get(m, "content"), 0);
	assert_string_equal(text(m, "stop_reason"), "tool_use");
	assert_string_equal(text(block, "type"), "tool_use");
	assert_string_equal(text(block, "name"), "get");
	assert_int_equal(strncmp(text(block, "id"), "toolu_", 6), 0);
	assert_int_equal(json_object_size(json_object_get(block, "input")), 0);
	json_decref(m);
	struct answer a = client_ask(&server, "/v1/messages", NULL, TOOL ",\"stream\":true}");
	names_of(&a, names, said);
	assert_string_equal(names,
	                    "message_start content_block_start content_block_delta content_block_stop message_delta "
	                    "message_stop ");
	assert_string_equal(said, "{}");
	answer_free(&a);
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {
		"{}",
		"{\"messages\":[{\"role\":\"user\"}]}",
		"{\"messages\":7}",
		"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tool_choice\":{\"type\":\"any\"}}",
	};
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		json_decref(client_json(&server, "/v1/messages", wrong[i], 400));
}

/* Refusals are in Anthropic's form, whatever their source: the endpoint, the router, a prompt that is too long, events.
 */
static void test_errors(void **state)
{
	static char longer[20000];
	static const struct {
		const char *path, *body, *type, *message;
		int status;
	} rows[] = {
		{ "/v1/messages", "{}", "invalid_request_error", "messages", 400 },
		{ "/v1/messages", "{", "invalid_request_error", "", 400 },
		{ "/v1/messages/count_tokens", "{\"messages\":7}", "invalid_request_error", "messages is no array",
		  400 },
		{ "/v1/messages/nothing", "{}", "not_found_error", "There is nothing at", 404 },
		{ "/v1/messages", longer, "invalid_request_error", "prompt is too long: ", 400 },
	};
	(void)state;

	strcpy(longer, "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"");
	for (size_t i = strlen(longer); i < sizeof longer - 10; i += 2)
		strcpy(longer + i, "a ");
	strcat(longer, "\"}]}");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *o = client_json(&server, rows[i].path, rows[i].body, rows[i].status);
		const json_t *e = json_object_get(o, "error");
		const char *message = json_string_value(json_object_get(e, "message"));
		assert_string_equal(json_string_value(json_object_get(o, "type")), "error");
		assert_string_equal(json_string_value(json_object_get(e, "type")), rows[i].type);
		assert_int_equal(strncmp(message, rows[i].message, strlen(rows[i].message)), 0);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_tools),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
