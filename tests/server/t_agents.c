/* tests/server/t_agents.c - what programs send that docs/clients.md names: bodies in the manner of each, turns with
 * tools, histories and streams, to one server. None of them is refused.
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
#include "tests/support/fim_model.h"
#include "tests/support/shared.h"

#define READ_SCHEMA \
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"limit\":{\"type\":[\"integer\"," \
	"\"null\"]}},\"required\":[\"path\"],\"additionalProperties\":false,\"$schema\":" \
	"\"http://json-schema.org/draft-07/schema#\"}"
#define TOOL(name) \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name \
	"\",\"description\":\"Reads.\",\"parameters\":" READ_SCHEMA ",\"strict\":false}}"
#define CALL \
	"{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\"," \
	"\"function\":{" \
	"\"name\":\"read\",\"arguments\":\"{\\\"path\\\": \\\"a.c\\\"}\"}}]}"
#define RESULT "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"int main(void);\"}"
#define EPHEMERAL "\"cache_control\":{\"type\":\"ephemeral\"}"

static const struct {
	const char *program, *path, *fields, *body;
	bool stream;
} requests[] = {
	{ "Claude Code: a turn", "/v1/messages?beta=true",
	  "anthropic-version: 2023-06-01\r\nanthropic-beta: claude-code-20250219,interleaved-thinking-2025-05-14\r\n"
	  "x-api-key: none\r\nX-Stainless-Lang: js\r\n",
	  "{\"model\":\"local\",\"max_tokens\":12,\"stream\":true,\"system\":[{\"type\":\"text\",\"text\":"
	  "\"x-anthropic-billing-header: cc_version=2\"},{\"type\":\"text\",\"text\":\"You help.\"," EPHEMERAL
	  "}],\"metadata\":{\"user_id\":\"u\"},\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{\"effort\":"
	  "\"medium\"},\"context_management\":{\"edits\":[]},\"tools\":[{\"name\":\"Read\",\"description\":\"Reads.\","
	  "\"input_schema\":" READ_SCHEMA
	  "}],\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Read a.c\"," EPHEMERAL
	  "}]},{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"\"},{"
	  "\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Read\",\"input\":{\"path\":\"a.c\"}}]},{\"role\":\"user\","
	  "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":[{\"type\":\"text\",\"text\":"
	  "\"int x;"
	  "\"}],\"is_error\":false},"
	  "{\"type\":\"text\",\"text\":\"<system-reminder>Go on.</system-reminder>\"}]}]}",
	  true },
	{ "Claude Code: a title", "/v1/messages?beta=true", "anthropic-version: 2023-06-01\r\n",
	  "{\"model\":\"local\",\"max_tokens\":40,\"system\":[{\"type\":\"text\",\"text\":\"Give a "
	  "title.\"}],\"tools\":[],"
	  "\"temperature\":1,\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\","
	  "\"properties\":{\"title\":{\"enum\":[\"a\",\"b\"]}},\"required\":[\"title\"],\"additionalProperties\":false}"
	  "}},"
	  "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}",
	  false },
	{ "Claude Code: counting", "/v1/messages/count_tokens?beta=true", "anthropic-version: 2023-06-01\r\n",
	  "{\"model\":\"local\",\"messages\":[{\"role\":\"user\",\"content\":\"foo\"}],\"tools\":[{\"name\":\"Read\","
	  "\"description\":\"Reads.\",\"input_schema\":" READ_SCHEMA "}]}",
	  false },
	{ "Codex", "/v1/responses", "originator: codex_cli_rs\r\nAccept: text/event-stream\r\n",
	  "{\"model\":\"local\",\"instructions\":\"You code.\",\"input\":[{\"type\":\"message\",\"role\":\"developer\","
	  "\"content\":[{\"type\":\"input_text\",\"text\":\"<permissions>\"}]},{\"type\":\"message\",\"role\":\"user\","
	  "\"content\":[{\"type\":\"input_text\",\"text\":\"Fix "
	  "a.c\"}]},{\"type\":\"reasoning\",\"summary\":[],\"content\":"
	  "null,\"encrypted_content\":\"x\"},{\"type\":\"custom_tool_call\",\"status\":\"completed\",\"call_id\":\"c\","
	  "\"name\":\"apply_patch\",\"input\":\"*** Begin Patch\\n*** End "
	  "Patch\"},{\"type\":\"custom_tool_call_output\","
	  "\"call_id\":\"c\",\"output\":\"{\\\"output\\\":\\\"Success\\\"}\"}],\"tools\":[{\"type\":\"function\","
	  "\"name\":"
	  "\"exec_command\",\"description\":\"Runs.\",\"strict\":false,\"parameters\":{\"type\":\"object\","
	  "\"properties\":{"
	  "\"cmd\":{\"type\":\"string\"}},\"required\":[\"cmd\"],\"additionalProperties\":false}},{\"type\":\"custom\","
	  "\"name\":\"apply_patch\",\"description\":\"Patches.\",\"format\":{\"type\":\"grammar\",\"syntax\":\"lark\","
	  "\"definition\":\"start: /.+/\"}},{\"type\":\"namespace\",\"name\":\"mcp__git__\",\"description\":\"Git.\","
	  "\"tools\":[{\"type\":\"function\",\"name\":\"log\",\"strict\":false,\"parameters\":" READ_SCHEMA
	  "}]},{\"type\":\"web_search\",\"external_web_access\":false}],\"tool_choice\":\"auto\",\"parallel_tool_"
	  "calls\":"
	  "false,\"reasoning\":{\"effort\":\"medium\",\"summary\":\"auto\"},\"store\":false,\"stream\":true,"
	  "\"include\":["
	  "\"reasoning.encrypted_content\"],\"prompt_cache_key\":\"k\",\"text\":{\"verbosity\":\"medium\"},"
	  "\"max_output_tokens\":12}",
	  true },
	{ "Continue: a question", "/v1/chat/completions", NULL,
	  "{\"messages\":[{\"role\":\"system\",\"content\":\"Help.\"},{\"role\":\"user\",\"content\":[{\"type\":"
	  "\"text\","
	  "\"text\":\"Why?\"}]}],\"model\":\"local\",\"max_tokens\":12,\"stream\":true,\"stream_options\":{"
	  "\"include_usage\":true},\"tools\":[" TOOL("read_file") "],\"parallel_tool_calls\":false}",
	  true },
	{ "Continue: completing code", "/infill", NULL,
	  "{\"model\":\"t_agents\",\"input_prefix\":\"int "
	  "a\",\"input_suffix\":\";\\n\",\"n_predict\":12,\"stream\":true,"
	  "\"temperature\":0.01,\"stop\":[\"\\n\\n\"],\"prompt\":\"\"}",
	  true },
	{ "Cline", "/v1/chat/completions", "HTTP-Referer: https://cline.bot\r\nX-Title: Cline\r\n",
	  "{\"model\":\"local\",\"messages\":[{\"role\":\"system\",\"content\":\"Act.\"},{\"role\":\"user\","
	  "\"content\":[{"
	  "\"type\":\"text\",\"text\":\"<task>Do</task>\"},{\"type\":\"text\",\"text\":\"<environment_details>\"}]},{"
	  "\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"<read_file>\"}]},{\"role\":\"user\","
	  "\"content\":[{\"type\":\"text\",\"text\":\"[read_file] Result:\"}]}],\"temperature\":0,\"max_tokens\":12,"
	  "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
	  true },
	{ "aider", "/v1/chat/completions", "X-Stainless-Raw-Response: true\r\n",
	  "{\"messages\":[{\"role\":\"system\",\"content\":\"Edit.\"},{\"role\":\"user\",\"content\":\"Change.\"},{"
	  "\"role\":"
	  "\"assistant\",\"content\":\"Ok.\"},{\"role\":\"user\",\"content\":\"a.c\"}],\"model\":\"local\","
	  "\"temperature\":0,"
	  "\"max_tokens\":12,\"stream\":true}",
	  true },
	{ "Zed", "/v1/chat/completions", NULL,
	  "{\"model\":\"local\",\"messages\":[{\"role\":\"system\",\"content\":\"Help.\"},{\"role\":\"user\","
	  "\"content\":["
	  "{\"type\":\"text\",\"text\":\"Read\"}]}," CALL "," RESULT
	  "],\"stream\":true,\"stop\":[],\"temperature\":1.0,"
	  "\"max_completion_tokens\":12,\"parallel_tool_calls\":false,\"tools\":[" TOOL(
		  "read") "],\"tool_choice\":\"auto\","
	                  "\"prompt_cache_key\":\"k\"}",
	  true },
	{ "Open WebUI: an answer", "/v1/chat/completions", "X-OpenWebUI-User-Name: a\r\n",
	  "{\"stream\":true,\"model\":\"local\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"max_"
	  "tokens\":12,"
	  "\"stream_options\":{\"include_usage\":true},\"tools\":[" TOOL("search") "]}",
	  true },
	{ "Open WebUI: a title", "/v1/chat/completions", NULL,
	  "{\"model\":\"local\",\"messages\":[{\"role\":\"user\",\"content\":\"### Task: a title\"}],\"stream\":false,"
	  "\"max_completion_tokens\":12,\"max_tokens\":12,\"temperature\":0.1}",
	  false },
	{ "LangChain: structured output", "/v1/chat/completions", NULL,
	  "{\"messages\":[{\"content\":\"Who?\",\"role\":\"user\"}],\"model\":\"local\",\"n\":1,\"stream\":false,"
	  "\"temperature\":0,\"max_completion_tokens\":40,\"response_format\":{\"type\":\"json_schema\",\"json_"
	  "schema\":{"
	  "\"name\":\"who\",\"strict\":true,\"schema\":{\"type\":\"object\",\"properties\":{\"name\":{\"enum\":[\"a\","
	  "\"b\"]}},\"required\":[\"name\"],\"additionalProperties\":false}}}}",
	  false },
	{ "LangChain: tools", "/v1/chat/completions", NULL,
	  "{\"messages\":[{\"content\":\"Read\",\"role\":\"user\"},{\"role\":\"assistant\",\"content\":null,\"tool_"
	  "calls\":["
	  "{\"type\":\"function\",\"id\":\"call_1\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}]}," RESULT
	  "],"
	  "\"model\":\"local\",\"max_tokens\":12,\"tools\":[" TOOL(
		  "read") "],\"tool_choice\":\"auto\",\"stream\":false}",
	  false },
	{ "LangChain: vectors", "/v1/embeddings", NULL,
	  "{\"input\":[[60,61],[62]],\"model\":\"local\",\"encoding_format\":\"base64\"}", false },
	{ "Vercel AI SDK: an object", "/v1/chat/completions", NULL,
	  "{\"model\":\"local\",\"messages\":[{\"role\":\"user\",\"content\":\"Who?\"}],\"max_tokens\":40,"
	  "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"$schema\":"
	  "\"http://json-schema.org/draft-07/schema#\",\"type\":\"object\",\"properties\":{\"n\":{\"enum\":[1]}},"
	  "\"required\":[\"n\"],\"additionalProperties\":false},\"strict\":true,\"name\":\"response\"}}}",
	  false },
	{ "Vercel AI SDK: a step with tools", "/v1/chat/completions", NULL,
	  "{\"model\":\"local\",\"max_tokens\":12,\"temperature\":0,\"messages\":[{\"role\":\"user\",\"content\":"
	  "\"Read\"}," CALL "," RESULT
	  "],\"tools\":[" TOOL("read") "],\"tool_choice\":\"auto\",\"stream\":true,\"stream_options\":{"
	                               "\"include_usage\":true}}",
	  true },
};

static struct child server;

static int start(void **state)
{
	(void)state;
	fim_model("t_agents.gguf");
	server = child_start((const char *[]){
		"t_agents.gguf", "--alias", "local", "--alias", "t_agents", "--no-cache", "--context", "2048", NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	const int status = child_stop(&server);

	unlink("t_agents.gguf");
	return status;
}

/* Every event is JSON, none is an error, and the stream has an end. */
static void check_stream(const struct answer *a, const char *program)
{
	static const char *const ends[] = { "data: [DONE]", "event: message_stop", "event: response.completed",
		                            "event: response.incomplete", "\"stop\":true" };
	bool ended = false;
	unsigned events = 0;

	for (const char *line = a->body; (line = strstr(line, "data: {")); line++) {
		json_t *o = json_loads(line + 6, JSON_DISABLE_EOF_CHECK, NULL);
		if (!o || at(o, "error/message"))
			fail_msg("%s: %.300s", program, line);
		json_decref(o);
		events++;
	}
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		ended = ended || strstr(a->body, ends[i]);
	if (!ended || events < 2)
		fail_msg("%s: %u events, %.500s", program, events, a->body);
}

static void test_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		struct answer a = client_ask(&server, requests[i].path, requests[i].fields, requests[i].body);
		if (a.status != 200)
			fail_msg("%s: status %d, %s", requests[i].program, a.status, a.body);
		if (requests[i].stream) {
			check_stream(&a, requests[i].program);
		} else {
			json_t *o = json_loads(a.body, 0, NULL);
			assert_non_null(o);
			json_decref(o);
		}
		answer_free(&a);
	}
}

/* What was asked for as an object is one. */
static void test_objects(void **state)
{
	static const struct {
		const char *program, *text, *member;
	} rows[] = { { "Claude Code: a title", "content/0/text", "title" },
		     { "LangChain: structured output", "choices/0/message/content", "name" },
		     { "Vercel AI SDK: an object", "choices/0/message/content", "n" } };
	unsigned seen = 0;
	(void)state;

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
			if (strcmp(requests[i].program, rows[k].program) != 0)
				continue;
			struct answer a = client_ask(&server, requests[i].path, requests[i].fields, requests[i].body);
			json_t *o = json_loads(a.body, 0, NULL), *made = json_loads(text_at(o, rows[k].text), 0, NULL);
			if (!json_object_get(made, rows[k].member))
				fail_msg("%s: %s", requests[i].program, a.body);
			seen++;
			json_decref(o);
			json_decref(made);
			answer_free(&a);
		}
	assert_int_equal(seen, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_objects),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
