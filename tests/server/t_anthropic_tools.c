/* tests/server/t_anthropic_tools.c - tools of Anthropic's API that have a type instead of a schema: those that a client
 * runs are called in the form that its library reads, and those of Anthropic's servers are left out, which is told.
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

static struct child server;

static const char template[] =
	"{% if tools %}Say <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call> for one of {{ tools | tojson }}"
	"{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
	"{% if add_generation_prompt %}assistant: {% endif %}";
static char template_path[64];

static int start(void **state)
{
	const char *const arguments[] = { "--no-cache", "--template", template_path, "--context", "2048", NULL };
	(void)state;

	snprintf(template_path, sizeof template_path, "t_anthropic_tools.%d.jinja", (int)getpid());
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

#define ASK "\"messages\":[{\"role\":\"user\",\"content\":\"A tale of a king.\"}],\"max_tokens\":200"
#define GET "{\"name\":\"get\",\"input_schema\":{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}}"

/* ---- tools that a client runs */

static bool is_in(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
			return true;
	return false;
}

/* What the library of that version has: the names of inputs, and the words of the one that says what is done. */
static const struct {
	const char *type, *name, *verb, *verbs, *inputs;
} typed[] = {
	{ "bash_20241022", "bash", NULL, "", "command restart" },
	{ "bash_20250124", "bash", NULL, "", "command restart" },
	{ "text_editor_20241022", "str_replace_editor", "command", "view create str_replace insert undo_edit",
	  "command path file_text old_str new_str insert_line view_range" },
	{ "text_editor_20250124", "str_replace_editor", "command", "view create str_replace insert undo_edit",
	  "command path file_text old_str new_str insert_line view_range" },
	{ "text_editor_20250429", "str_replace_based_edit_tool", "command", "view create str_replace insert",
	  "command path file_text old_str new_str insert_line insert_text view_range" },
	{ "text_editor_20250728", "str_replace_based_edit_tool", "command", "view create str_replace insert",
	  "command path file_text old_str new_str insert_line insert_text view_range" },
	{ "memory_20250818", "memory", "command", "view create str_replace insert delete rename",
	  "command path file_text old_str new_str insert_line insert_text old_path new_path view_range" },
	{ "computer_20241022", "computer", "action",
	  "key type mouse_move left_click left_click_drag right_click middle_click double_click screenshot "
	  "cursor_position",
	  "action coordinate text" },
	{ "computer_20250124", "computer", "action",
	  "key type mouse_move left_click left_click_drag right_click middle_click double_click screenshot "
	  "cursor_position left_mouse_down left_mouse_up scroll hold_key wait triple_click",
	  "action coordinate text start_coordinate scroll_direction scroll_amount duration" },
	{ "computer_20251124", "computer", "action",
	  "key type mouse_move left_click left_click_drag right_click middle_click double_click screenshot "
	  "cursor_position left_mouse_down left_mouse_up scroll hold_key wait triple_click zoom",
	  "action coordinate text start_coordinate scroll_direction scroll_amount duration region" },
};

static void check_call(size_t i, const json_t *answer, unsigned *verbs)
{
	const json_t *call = at(answer, "content.0"), *v;
	const char *key;

	assert_string_equal(text_at(call, "type"), "tool_use");
	assert_string_equal(text_at(call, "name"), typed[i].name);
	json_object_foreach((json_t *)(uintptr_t)at(call, "input"), key, v) if (!is_in(typed[i].inputs, key))
		fail_msg("%s: its input has %s", typed[i].type, key);
	if (!typed[i].verb)
		return;
	const char *verb = text_at(at(call, "input"), typed[i].verb);
	if (!is_in(typed[i].verbs, verb))
		fail_msg("%s: %s is %s", typed[i].type, typed[i].verb, verb);
	*verbs |= 1U << (strstr(typed[i].verbs, verb) - typed[i].verbs) % 32;
}

/* A call that must come, many times by different seeds. Whole ones alone are calls. */
static void test_typed(void **state)
{
	char with[1000];
	(void)state;

	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		unsigned verbs = 0, calls = 0;
		for (int seed = 0; seed < (test_quick() ? 6 : 40); seed++) {
			snprintf(with, sizeof with,
			         ASK ",\"seed\":%d,\"temperature\":1.5,\"logit_bias\":[[\"\\\"\",7],[\"}\",7],[\"\\\"}"
			             "\",7]],\"tools\":[" GET ",{\"type\":\"%s\",\"name\":\"%s\","
			             "\"display_width_px\":800,\"display_height_px\":600}],"
			             "\"tool_choice\":{\"type\":\"tool\",\"name\":\"%s\"}",
			         seed, typed[i].type, typed[i].name, typed[i].name);
			json_t *o = ask(&server, "/v1/messages", with, "");
			assert_null(at(o, "warnings"));
			if (strcmp(text_at(o, "stop_reason"), "tool_use") == 0) {
				check_call(i, o, &verbs);
				calls++;
			}
			json_decref(o);
		}
		assert_true(calls > 0);
		assert_true(!typed[i].verb || (verbs & (verbs - 1)));
	}
}

/* Each form is its own: the model is told of it, and of the screen's size. */
static void test_prompts(void **state)
{
	char with[1000];
	double n;
	(void)state;

	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		snprintf(with, sizeof with, ASK ",\"tools\":[{\"type\":\"%s\",\"name\":\"%s\"}]", typed[i].type,
		         typed[i].name);
		json_t *o = ask(&server, "/v1/messages/count_tokens", with, "");
		n = number_at(o, "input_tokens");
		json_decref(o);
		snprintf(with, sizeof with,
		         ASK ",\"tools\":[{\"type\":\"%s\",\"name\":\"%s\",\"display_width_px\":1024,\"display_height_"
		             "px\":768}]",
		         typed[i].type, typed[i].name);
		o = ask(&server, "/v1/messages/count_tokens", with, "");
		assert_true((number_at(o, "input_tokens") > n) == (strncmp(typed[i].type, "computer", 8) == 0));
		json_decref(o);
	}
}

/* ---- tools of Anthropic's servers */

static const char *const hosted[] = {
	"web_search_20250305",
	"web_search_20260209",
	"web_fetch_20250910",
	"code_execution_20250522",
	"code_execution_20250825",
	"tool_search_tool_bm25_20251119",
	"mcp_toolset",
	"advisor_20260301"
};

static void test_left_out(void **state)
{
	char with[1200], says[100];
	json_t *plain = ask(&server, "/v1/messages", ASK ",\"seed\":3,\"tools\":[" GET "]", "");
	(void)state;

	for (size_t i = 0; i < sizeof hosted / sizeof *hosted; i++) {
		snprintf(with, sizeof with,
		         ASK ",\"seed\":3,\"tools\":[{\"type\":\"%s\",\"name\":\"x\",\"max_uses\":5}," GET "]",
		         hosted[i]);
		snprintf(says, sizeof says, "tools[0] of type %s was left out: nothing here runs it", hosted[i]);
		json_t *o = ask(&server, "/v1/messages", with, "");
		assert_true(json_equal(at(o, "content"), at(plain, "content")));
		assert_int_equal(json_array_size(at(o, "warnings")), 1);
		assert_string_equal(text_at(o, "warnings.0"), says);
		json_decref(o);
		strcat(with, ",\"stream\":true");
		char *body = body_of(with, "");
		struct answer a = client_ask(&server, "/v1/messages", NULL, body);
		const char *begin = strstr(a.body, "data: ");
		assert_int_equal(a.status, 200);
		assert_true(begin && strstr(begin, says) && strstr(begin, says) < strstr(begin, "\n"));
		answer_free(&a);
		free(body);
		o = ask(&server, "/v1/messages/count_tokens", with, "");
		assert_int_equal((int)number_at(o, "input_tokens"),
		                 (int)(number_at(plain, "usage.input_tokens") +
		                       number_at(plain, "usage.cache_read_input_tokens")));
		json_decref(o);
	}
	assert_null(at(plain, "warnings"));
	json_decref(plain);
}

/* With none left there are no tools. */
static void test_none_left(void **state)
{
	json_t *a = ask(&server, "/v1/messages", ASK ",\"seed\":3", ""),
	       *b = ask(&server, "/v1/messages",
	                ASK ",\"seed\":3,\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}],"
	                    "\"tool_choice\":{\"type\":\"auto\"}",
	                "");
	(void)state;

	assert_true(json_equal(at(a, "content"), at(b, "content")));
	assert_int_equal(json_array_size(at(b, "warnings")), 1);
	json_decref(a);
	json_decref(b);
}

/* What such tools did elsewhere is passed over in a conversation. */
static void test_history(void **state)
{
	json_t *a = ask(&server, "/v1/messages",
	                "\"max_tokens\":9,\"seed\":3,\"messages\":[{\"role\":\"user\",\"content\":\"Who?\"},{\"role\":"
	                "\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"I look. A "
	                "king.\"}]},{\"role\":\"user\","
	                "\"content\":\"And?\"}]",
	                ""),
	       *b = ask(&server, "/v1/messages",
	                "\"max_tokens\":9,\"seed\":3,\"messages\":[{\"role\":\"user\",\"content\":\"Who?\"},{\"role\":"
	                "\"assistant\",\"content\":[{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\","
	                "\"input\":"
	                "{\"query\":\"king\"}},{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s\",\"content\":["
	                "]},"
	                "{\"type\":\"text\",\"text\":\"I look. A "
	                "king.\",\"citations\":[]}]},{\"role\":\"user\",\"content\":"
	                "\"And?\"}]",
	                "");
	(void)state;

	assert_true(json_equal(at(a, "content"), at(b, "content")));
	json_decref(a);
	json_decref(b);
}

/* ---- refusals */

static void test_refusals(void **state)
{
	static const struct {
		const char *with, *says;
	} rows[] = {
		{ "\"tools\":[{\"type\":\"bash_20250124\",\"name\":\"sh\"}]", "whose name is bash" },
		{ "\"tools\":[{\"type\":\"bash_20250124\",\"name\":7}]", "whose name is bash" },
		{ "\"tools\":[{\"type\":\"bash_2025\",\"name\":\"bash\"}]", "tools[0] is of type bash_2025" },
		{ "\"tools\":[{\"type\":\"bash_20200101\",\"name\":\"bash\"}]", "tools[0] is of type bash_20200101" },
		{ "\"tools\":[" GET ",{\"type\":\"computer_toolset_20260801\"}]",
		  "tools[1] is of type computer_toolset" },
		{ "\"tools\":[" GET ",{\"type\":\"browser_toolset_20260801\"}]",
		  "tools[1] is of type browser_toolset" },
		{ "\"tools\":[{\"type\":\"custom\",\"name\":\"x\"}]", "no input_schema" },
		{ "\"tools\":[{\"name\":\"x\"}]", "no input_schema" },
		{ "\"tools\":[{\"input_schema\":{}}]", "tools[0] has no text as its name" },
		{ "\"tools\":[7]", "tools[0] is an integer" },
		{ "\"tools\":[{\"type\":\"computer_20250124\",\"display_width_px\":-1}]", "display_width_px" },
		{ "\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}],\"tool_choice\":{\"type\":"
		  "\"any\"}",
		  "tool_choice requires a call" },
		{ "\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}," GET
		  "],\"tool_choice\":{\"type\":\"tool\",\"name\":\"web_search\"}",
		  "tool_choice names a function" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *body = body_of(ASK, rows[i].with);
		struct answer a = client_ask(&server, "/v1/messages", NULL, body);
		json_t *o = json_loads(a.body, 0, NULL);
		if (a.status != 400 || !strstr(text_at(o, "error.message"), rows[i].says))
			fail_msg("%s: %d %s", rows[i].with, a.status, a.body);
		assert_string_equal(text_at(o, "error.type"), "invalid_request_error");
		json_decref(o);
		answer_free(&a);
		free(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_typed),     cmocka_unit_test(test_prompts), cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_none_left), cmocka_unit_test(test_history), cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
