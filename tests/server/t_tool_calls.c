/* tests/server/t_tool_calls.c - calls of tools: in texts that are cut anywhere, and in answers of the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers/tool_calls.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

#define SIGN(words) "<\xef\xbd\x9ctool\xe2\x96\x81" words "\xef\xbd\x9c>"
#define DSML \
	"\xef\xbd\x9c" \
	"DSML" \
	"\xef\xbd\x9c"
#define UNDER "\xe2\x96\x81"

static const struct row {
	enum tools_form form;
	const char *said, *text, *calls; /* calls: "name arguments;" for each */
} rows[] = {
	{ TOOLS_NONE, "<tool_call>{}</tool_call>", "<tool_call>{}</tool_call>", "" },
	{ TOOLS_TAGGED, "plain < text <tool", "plain < text <tool", "" },
	{ TOOLS_TAGGED, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", "", "f {\"x\":1};" },
	{ TOOLS_TAGGED,
	  "So. <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
	  "<tool_call>{\"name\":\"g\",\"arguments\":{\"a\":[\"</b>\"]}}</tool_call>\n",
	  "So. ", "f {};g {\"a\":[\"</b>\"]};" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\"}", "", "f {};" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":7}</tool_call>!", "<tool_call>{\"name\":7}</tool_call>!", "" },
	{ TOOLS_TAGGED, "<tool_call>not json</tool_call>", "<tool_call>not json</tool_call>", "" },
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=y>\na \"b\"\n</parameter>\n"
	  "</function>\n</tool_call>",
	  "", "f {\"x\":1,\"y\":\"a \\\"b\\\"\"};" },
	{ TOOLS_ELEMENTS, "<tool_call><function=f></function></tool_call>", "", "f {};" },
	{ TOOLS_LIST,
	  "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"x\": \"[TOOL\"}, \"id\": \"a\"}, {\"name\":\"g\"}]", "",
	  "f {\"x\":\"[TOOL\"};g {};" },
	{ TOOLS_LIST, "Yes [TOOL_CALLS] {\"name\":\"f\",\"arguments\":{}}", "Yes ", "f {};" },
	{ TOOLS_LIST, "[TOOL_CALLS][1]", "[TOOL_CALLS][1]", "" },
	{ TOOLS_LIST, "[TOOL_CALLS][{\"name\":\"f\"},7]", "7]", "f {};" },
	{ TOOLS_LIST, "[TOOL_CALLS][]", "[TOOL_CALLS][]", "" },
	{ TOOLS_ARGS, "[TOOL_CALLS]f[ARGS]{\"x\": 1}", "", "f {\"x\":1};" },
	{ TOOLS_ARGS, "So.[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{\"x\": {}}[TOOL_CALLS] g [ARGS] {}", "So.",
	  "f {\"x\":{}};g {};" },
	{ TOOLS_ARGS, "[TOOL_CALLS]f{\"x\": 1}", "[TOOL_CALLS]f{\"x\": 1}", "" },
	{ TOOLS_ARGS, "[TOOL_CALLS]f[ARGS]{\"x\": }", "", "f {\"x\":}..." },
	{ TOOLS_ARGS, "[TOOL_CALLS]f[ARGS]{x: 1}", "[TOOL_CALLS]f[ARGS]{x: 1}", "" },
	{ TOOLS_ARGS, "[TOOL_CALLS][ARGS]{}", "[TOOL_CALLS][ARGS]{}", "" },
	{ TOOLS_ARGS, "}[ARGS]{", "}[ARGS]{", "" },
	{ TOOLS_NEMOTRON, "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]</TOOLCALL>\n", "", "f {\"x\":1};" },
	{ TOOLS_GRANITE, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]", "", "f {};" },
	{ TOOLS_GRANITE, "<|tool_calls|>", "<|tool_calls|>", "" },
	{ TOOLS_ACTION,
	  "<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"x\": "
	  "1}}\n]<|END_ACTION|>",
	  "", "f {\"x\":1};" },
	{ TOOLS_DEEPSEEK,
	  SIGN("calls" UNDER "begin") SIGN("call" UNDER "begin") "f" SIGN("sep") "{\"x\":1}" SIGN("call" UNDER "end")
	          SIGN("call" UNDER "begin") "g" SIGN("sep") "{}" SIGN("call" UNDER "end") SIGN("calls" UNDER "end"),
	  "", "f {\"x\":1};g {};" },
	{ TOOLS_DEEPSEEK,
	  "Well" SIGN("call" UNDER
	              "begin") "function" SIGN("sep") "f\n```json\n{\"x\": \"}\"}\n```" SIGN("call" UNDER "end"),
	  "Well", "f {\"x\":\"}\"};" },
	{ TOOLS_KIMI,
	  "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"x\":1}"
	  "<|tool_call_end|><|tool_calls_section_end|>",
	  "", "f {\"x\":1};" },
	{ TOOLS_GLM,
	  "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n<arg_key>y</arg_key>\n<arg_value>a "
	  "b</arg_value>"
	  "\n</tool_call>\n<tool_call>g</tool_call>",
	  "", "f {\"x\":1,\"y\":\"a b\"};g {};" },
	{ TOOLS_GLM, "<tool_call>\n</tool_call>", "<tool_call>\n</tool_call>", "" },
	{ TOOLS_FUNCTOOLS, " functools[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]", "", "f {\"x\":1};" },
	{ TOOLS_FUNCTOOLS, "Use functools here.", "Use functools here.", "" },
	{ TOOLS_SEED, "<seed:tool_call>\n<function=f>\n<parameter=x>1</parameter>\n</function>\n</seed:tool_call>", "",
	  "f {\"x\":1};" },
	{ TOOLS_CALLS, "Hm <tool_calls>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]</tool_calls>", "Hm ",
	  "f {};g {};" },
	{ TOOLS_PYTHON,
	  "<|tool_call_start|>[f(x=1, y='it\\'s', z=[True, None, -0.5], d={'k': \"v, )\"}), g()]<|tool_call_end|>Now",
	  "Now", "f {\"x\":1,\"y\":\"it's\",\"z\":[true,null,-0.5],\"d\":{\"k\":\"v, )\"}};g {};" },
	{ TOOLS_PYTHON, "Well <|tool_call_start|>\n```python\nf(x='a\\nb')\ng(y=2)\n```\n<|tool_call_end|>\n", "Well ",
	  "f {\"x\":\"a\\nb\"};g {\"y\":2};" },
	{ TOOLS_PYTHON, "<|tool_call_start|>[{\"name\":\"f\",\"arguments\":{\"x\":1}}]<|tool_call_end|>", "",
	  "f {\"x\":1};" },
	{ TOOLS_PYTHON, "<|tool_call_start|>f(x=<|tool_call_end|>", "<|tool_call_start|>f(x=<|tool_call_end|>", "" },
	{ TOOLS_PREFIX, "<|tools_prefix|>[{\"f\": {\"x\": 1}}, {\"g\": {}}]<|tools_suffix|>", "", "f {\"x\":1};g {};" },
	{ TOOLS_PREFIX, "<|tools_prefix|>[{\"f\": 1}]", "<|tools_prefix|>[{\"f\": 1}]", "" },
	{ TOOLS_INVOKE,
	  "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"x\">1</parameter>\n<parameter name=\"y\">a <b> "
	  "c</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
	  "", "f {\"x\":1,\"y\":\"a <b> c\"};g {};" },
	{ TOOLS_INVOKE, "<invoke name=\"f", "<invoke name=\"f", "" },
	{ TOOLS_DSML,
	  "So\n\n<" DSML "function_calls>\n<" DSML "invoke name=\"f\">\n<" DSML
	  "parameter name=\"x\" string=\"true\">1</" DSML "parameter>\n<" DSML
	  "parameter name=\"y\" string=\"false\">[1]</" DSML "parameter>\n</" DSML "invoke>\n</" DSML "function_calls>",
	  "So\n\n", "f {\"x\":\"1\",\"y\":[1]};" },
	{ TOOLS_DSML_4, "<" DSML "tool_calls>\n<" DSML "invoke name=\"f\">\n</" DSML "invoke>\n</" DSML "tool_calls>",
	  "", "f {};" },
	{ TOOLS_PARAM,
	  "<function name=\"f\"><param name=\"x\"><![CDATA[1 < 2]]></param><param name=\"y\">2</param></function>", "",
	  "f {\"x\":\"1 < 2\",\"y\":2};" },
	{ TOOLS_SOLAR,
	  "<|tool_calls|><|tool_call:begin|>abc<|tool_call:name|>f<|tool_call:args|>{\"x\": 1}<|tool_call:end|>"
	  "<|tool_call:begin|>def<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|>",
	  "", "f {\"x\":1};g {};" },
	{ TOOLS_HY,
	  "Hm<tool_calls:opensource>\n<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>x</"
	  "arg_key:opensource>\n"
	  "<arg_value:opensource>1</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
	  "Hm", "f {\"x\":1};" },
	{ TOOLS_CALL_1, "<functioncall>{\"name\": \"f\", \"arguments\": {\"x\": 1}}", "", "f {\"x\":1};" },
	{ TOOLS_GIGA, "<|function_call|>{\"name\": \"f\", \"arguments\": {}}", "", "f {};" },
	{ TOOLS_GIGA_3, "Yes<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {}}", "Yes",
	  "f {};" },
	{ TOOLS_BRACES,
	  "<|tool_call>call:f{a:<|\"|>x, {y}<|\"|>,b:[1,<|\"|>z<|\"|>,{<|\"|>k<|\"|>:null}],c:true}<tool_call|>"
	  "<|tool_call>call:g{}<tool_call|>",
	  "", "f {\"a\":\"x, {y}\",\"b\":[1,\"z\",{\"k\":null}],\"c\":true};g {};" },
	{ TOOLS_BRACES, "Just text.", "Just text.", "" },
	{ TOOLS_FUNCTION, "So <function=f>{\"x\": 1}</function><function=g>{}</function>", "So ", "f {\"x\":1};g {};" },
	{ TOOLS_RECIPIENT, "all\nHello, all\nof you", "Hello, all\nof you", "" },
	{ TOOLS_RECIPIENT, "f\n{\"x\": 1}>>>g\n{}", "", "f {\"x\":1};g {};" },
	{ TOOLS_RECIPIENT, "all\nSo:>>>f\n{\"x\": 1}", "So:", "f {\"x\":1};" },
	{ TOOLS_CONTENT, "all\n<|content|>Hi\n<|from|>assistant\n<|recipient|>f\n<|content|>{\"x\": 1}", "Hi",
	  "f {\"x\":1};" },
	{ TOOLS_CONTENT, "f\n<|content|>{}\n<|from|>assistant\n<|recipient|>g\n<|content|>{}", "", "f {};g {};" },
	{ TOOLS_ANSWER, "```\n[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]\n```", "", "f {\"x\":1};" },
	{ TOOLS_ANSWER, "[]", "[]", "" },
	{ TOOLS_JSON, "Action:\n```json\n[{\"tool_name\": \"f\", \"parameters\": {\"x\": 1}}]\n```", "",
	  "f {\"x\":1};" },
	{ TOOLS_HARMONY, "<|channel|>final<|message|>Hello.", "Hello.", "" },
	{ TOOLS_HARMONY,
	  "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\":1}<|call|>", "",
	  "f {\"x\":1};" },
	{ TOOLS_HARMONY,
	  "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.f<|channel|>commentary "
	  "json<|message|>{\"x\":1}",
	  "I look.", "f {\"x\":1};" },
	{ TOOLS_BARE, " {\"name\": \"f\", \"parameters\": {\"x\": \"y\"}}", "", "f {\"x\":\"y\"};" },
	{ TOOLS_BARE, "{\"a\": 1}", "{\"a\": 1}", "" },
	{ TOOLS_BARE, "Hello {\"name\":\"f\"}", "Hello {\"name\":\"f\"}", "" },
};

/* In pieces of each size. */
static void test_deltas(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		for (size_t size = 1; size <= strlen(r->said); size++) {
			struct tool_calls t = { 0 };
			tool_calls_begin(&t, r->form, NULL, NULL);
			char text[400] = "", calls[400] = "";
			for (size_t at = 0;; at += size) {
				size_t left = at < strlen(r->said) ? strlen(r->said) - at : 0;
				if (left)
					tool_calls_take(&t, r->said + at, left < size ? left : size);
				else
					tool_calls_end(&t, false);
				strncat(text, t.found.text.n ? t.found.text.p : "", t.found.text.n);
				if (!left)
					break;
			}
			for (size_t k = 0; k < t.found.n; k++) {
				const struct tool_call *call = &t.found.call[k];
				strcat(strcat(calls, call->name), " ");
				strncat(calls, call->arguments.p, call->arguments.n);
				strcat(calls, call->whole ? ";" : "...");
			}
			assert_string_equal(text, r->text);
			assert_string_equal(calls, r->calls);
			assert_false(t.lost);
			tool_calls_free(&t);
		}
	}
}

static void test_forms(void **state)
{
	(void)state;
	assert_int_equal(tools_form_of("{{ '<tool_call>' }}"), TOOLS_TAGGED);
	assert_int_equal(tools_form_of("<tool_call>\\n<function=example>"), TOOLS_ELEMENTS);
	assert_int_equal(tools_form_of("{\"name\": function name, \"parameters\": dictionary}"), TOOLS_BARE);
	assert_int_equal(tools_form_of(NULL), TOOLS_TAGGED);
	for (int form = TOOLS_LIST; form < TOOLS_FORMS; form++)
		assert_int_equal(tools_form_of(tools_rows[form].taught), form);
}

/* The templates that model makers publish. */
static const struct {
	const char *file;
	enum tools_form form;
} published[] = {
	{ "mistralai-Mistral-Nemo-Instruct-2407", TOOLS_LIST },
	{ "Mistral-Small-3.2-24B-Instruct-2506", TOOLS_ARGS },
	{ "mistralai-Ministral-3-14B-Reasoning-2512", TOOLS_ARGS },
	{ "unsloth-mistral-Devstral-Small-2507", TOOLS_ARGS },
	{ "NVIDIA-Nemotron-Nano-v2", TOOLS_NEMOTRON },
	{ "ibm-granite-granite-3.3-2B-Instruct", TOOLS_GRANITE },
	{ "CohereForAI-c4ai-command-r7b-12-2024-tool_use", TOOLS_ACTION },
	{ "deepseek-ai-DeepSeek-V3.1", TOOLS_DEEPSEEK },
	{ "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", TOOLS_DEEPSEEK },
	{ "moonshotai-Kimi-K2", TOOLS_KIMI },
	{ "Kimi-K2-Thinking", TOOLS_KIMI },
	{ "GLM-4.6", TOOLS_GLM },
	{ "GLM-4.7-Flash", TOOLS_GLM },
	{ "fireworks-ai-llama-3-firefunction-v2", TOOLS_FUNCTOOLS },
	{ "ByteDance-Seed-OSS", TOOLS_SEED },
	{ "Apriel-1.6-15b-Thinker-fixed", TOOLS_CALLS },
	{ "LFM2-8B-A1B", TOOLS_PYTHON },
	{ "LFM2.5-8B-A1B", TOOLS_PYTHON },
	{ "LFM2.5-Instruct", TOOLS_PYTHON },
	{ "Apertus-8B-Instruct", TOOLS_PREFIX },
	{ "MiniMax-M2", TOOLS_INVOKE },
	{ "deepseek-ai-DeepSeek-V3.2", TOOLS_DSML },
	{ "deepseek-ai-DeepSeek-V4", TOOLS_DSML_4 },
	{ "deepseek-ai-DeepSeek-V4-Flash-0731", TOOLS_DSML_4 },
	{ "openbmb-MiniCPM5-1B", TOOLS_PARAM },
	{ "upstage-Solar-Open-100B", TOOLS_SOLAR },
	{ "tencent-Hy3", TOOLS_HY },
	{ "GigaChat3.1-10B-A1.8B", TOOLS_GIGA },
	{ "GigaChat3-10B-A1.8B", TOOLS_GIGA_3 },
	{ "google-gemma-4-31B-it", TOOLS_BRACES },
	{ "google-gemma-4-31B-it-interleaved", TOOLS_BRACES },
	{ "meetkai-functionary-medium-v3.1", TOOLS_FUNCTION },
	{ "meetkai-functionary-medium-v3.2", TOOLS_RECIPIENT },
	{ "CohereForAI-c4ai-command-r-plus-tool_use", TOOLS_JSON },
	{ "openai-gpt-oss-120b", TOOLS_HARMONY },
	{ "Qwen-Qwen3-0.6B", TOOLS_TAGGED },
	{ "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", TOOLS_TAGGED },
	{ "Qwen3-Coder", TOOLS_ELEMENTS },
	{ "meta-llama-Llama-3.1-8B-Instruct", TOOLS_BARE },
	{ "meta-llama-Llama-3.2-3B-Instruct", TOOLS_BARE },
};

static void test_published(void **state)
{
	char path[1024], name[200];
	(void)state;

	for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
		size_t n = 0;
		snprintf(name, sizeof name, "data/chat-templates/llama.cpp/%s.jinja", published[i].file);
		uint8_t *text = shared_path(path, name) ? file_bytes(path, &n) : NULL;
		if (!text)
			skip();
		char *whole = strndup((const char *)text, n);
		if (tools_form_of(whole) != published[i].form)
			fail_msg("%s: form %d, expected %d", name, tools_form_of(whole), published[i].form);
		free(whole);
		free(text);
	}
}

/* What in a template shows its form. */
static bool shows(const char *text, enum tools_form form)
{
	const struct tools_row *row = &tools_rows[form];

	switch (form) {
	case TOOLS_TAGGED: return strstr(text, "<tool_call>") != NULL;
	case TOOLS_ELEMENTS:
	case TOOLS_FUNCTION: return strstr(text, "<function=") != NULL;
	case TOOLS_BARE: return strstr(text, "\"parameters\"") != NULL;
	default: return strstr(text, row->taught) || (row->or_this && strstr(text, row->or_this));
	}
}

static unsigned templates, with_tools, without_form;

/* Each template that writes tools has a form that can be seen in it. */
static void try_template(const char *path, const char *name)
{
	size_t n = 0;
	uint8_t *bytes = file_bytes(path, &n);
	char *text = strndup((const char *)bytes, n);
	enum tools_form form = tools_form_of(text);
	bool tools = strstr(text, "tools") != NULL || strstr(text, "tool_calls") != NULL;

	templates++;
	with_tools += tools;
	if (tools && !shows(text, form)) {
		printf("# without a form: %s\n", name);
		without_form++;
	}
	free(text);
	free(bytes);
}

static void test_all_templates(void **state)
{
	static const char *const folders[] = { "llama.cpp", "huggingface.js", "mistral.rs", "configs" };
	char path[1024], file[2048], name[100];
	(void)state;

	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "data/chat-templates/%s", folders[i]);
		DIR *d = shared_path(path, name) ? opendir(path) : NULL;
		if (!d)
			skip();
		for (struct dirent *e; (e = readdir(d));)
			if (strstr(e->d_name, ".jinja")) {
				snprintf(file, sizeof file, "%s/%s", path, e->d_name);
				try_template(file, e->d_name);
			}
		closedir(d);
	}
	printf("# %u templates, %u of them with tools, %u without a form\n", templates, with_tools, without_form);
	assert_true(templates > 100);
	assert_int_equal(without_form, 0);
}

/* ---- of the server: what it says is forced by an expression */

#define ASK \
	"{\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"max_tokens\":200,\"tools\":[{\"type\":\"function\"," \
	"\"function\":{\"name\":\"get\",\"parameters\":{\"type\":\"object\"}}},{\"type\":\"function\",\"function\":{" \
	"\"name\":\"put\"}}],\"response_format\":{\"type\":" \
	"\"regex\"," \
	"\"pattern\":\"Yes\\\\. <tool_call>\\\\n\\\\{\\\"name\\\": \\\"get\\\", \\\"arguments\\\": \\\\{\\\"x\\\": " \
	"7\\\\}\\\\}\\\\n" \
	"</tool_call>\\\\n<tool_call>\\\\{\\\"name\\\": \\\"put\\\"\\\\}</tool_call>\"}"

static const char *text(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static void check_call(const json_t *call, const char *name, const char *arguments)
{
	const json_t *function = json_object_get(call, "function");

	assert_string_equal(text(call, "type"), "function");
	assert_int_equal(strncmp(text(call, "id"), "call_", 5), 0);
	assert_string_equal(text(function, "name"), name);
	assert_string_equal(text(function, "arguments"), arguments);
}

static void test_server(void **state)
{
	static const char *const arguments[] = { "--no-cache", NULL };
	struct child c = child_start(arguments);
	(void)state;

	json_t *o = client_json(&c, "/v1/chat/completions", ASK "}", 200);
	json_t *one = json_array_get(json_object_get(o, "choices"), 0), *message = json_object_get(one, "message");
	json_t *calls = json_object_get(message, "tool_calls");
	assert_string_equal(text(one, "finish_reason"), "tool_calls");
	assert_string_equal(text(message, "content"), "Yes. ");
	assert_int_equal(json_array_size(calls), 2);
	check_call(json_array_get(calls, 0), "get", "{\"x\":7}");
	check_call(json_array_get(calls, 1), "put", "{}");
	assert_string_not_equal(text(json_array_get(calls, 0), "id"), text(json_array_get(calls, 1), "id"));
	json_decref(o);
	struct answer a = client_ask(&c, "/v1/chat/completions", NULL, ASK ",\"stream\":true}");
	char content[100] = "", finish[20] = "", said[2][100] = { "", "" };
	json_int_t seen = 0;
	unsigned parts = 0;
	for (const char *at = a.body; (at = strstr(at, "data: {")); at++) {
		json_t *e = json_loadb(at + 6, strcspn(at + 6, "\n"), 0, NULL);
		assert_non_null(e);
		one = json_array_get(json_object_get(e, "choices"), 0);
		json_t *delta = json_object_get(one, "delta"), *list = json_object_get(delta, "tool_calls"), *call;
		size_t i;
		if (text(delta, "content"))
			strcat(content, text(delta, "content"));
		if (text(one, "finish_reason"))
			strcpy(finish, text(one, "finish_reason"));
		json_array_foreach(list, i, call)
		{
			const char *part = text(json_object_get(call, "function"), "arguments");
			if (json_object_get(call, "id")) { /* it begins */
				assert_int_equal(json_integer_value(json_object_get(call, "index")), seen);
				check_call(call, seen ? "put" : "get", part);
				seen++;
			}
			assert_int_equal(json_integer_value(json_object_get(call, "index")), seen - 1);
			strcat(said[seen - 1], part);
			parts++;
		}
		json_decref(e);
	}
	assert_int_equal(seen, 2);
	assert_string_equal(said[0], "{\"x\":7}");
	assert_string_equal(said[1], "{}");
	assert_true(parts > 2);
	assert_string_equal(content, "Yes. ");
	assert_string_equal(finish, "tool_calls");
	answer_free(&a);
	assert_int_equal(child_stop(&c), 0);
}

/* What is no whole call is what the model wrote: one that is longer than the answer, however it is cut into tokens. */
static void check_cut_call(const struct child *c)
{
	char body[4000], tale[2001];
	for (size_t i = 0; i < 2000; i++)
		tale[i] = "a king "[i % 7];
	tale[2000] = 0;
	snprintf(body, sizeof body,
	         "{\"messages\":"
	         "[{\"role\":\"user\",\"content\":\"?\"}]"
	         ",\"max_tokens\":60,\"tools\":[{\"name\":\"get\",\"input_schema\":{}}],\"grammar\":"
	         "\"root ::= \\\"<tool_call>{\\\\\\\"name\\\\\\\": \\\\\\\"get\\\\\\\", \\\\\\\"arguments\\\\\\\": "
	         "{\\\\\\\"x\\\\\\\": "
	         "\\\\\\\"%s\\\\\\\"}}</tool_call>\\\"\"}",
	         tale);
	json_t *o = client_json(c, "/v1/messages", body, 200);
	const json_t *content = json_object_get(o, "content"), *block = json_array_get(content, 0);
	assert_int_equal(json_array_size(content), 1);
	assert_string_equal(text(block, "type"), "text");
	assert_non_null(strstr(text(block, "text"), "<tool_call>{\"name\": \"get\", \"arguments\""));
	json_decref(o);
}

/* An answer of one call that is cut inside of a second one has called all the same, and was not cut short. */
static void test_one_call_cut(void **state)
{
#define GET "\"name\":\"get\",\"%s\":{\"type\":\"object\"}"
#define USER "[{\"role\":\"user\",\"content\":\"?\"}]"
#define CALLS \
	"\"grammar\":\"root ::= \\\"<tool_call>{\\\\\\\"name\\\\\\\": \\\\\\\"get\\\\\\\", " \
	"\\\\\\\"arguments\\\\\\\": {}}" \
	"</tool_call><tool_call>{\\\\\\\"name\\\\\\\": \\\\\\\"get\\\\\\\", \\\\\\\"arguments\\\\\\\": " \
	"{}}</tool_call>\\\"\""
	static const struct {
		const char *path, *tool, *schema, *body, *max, *one_only, *called, *cut;
	} ways[] = {
		{ "/v1/chat/completions", "{\"type\":\"function\",\"function\":{" GET "}}", "parameters",
		  "\"messages\":" USER, "max_tokens", "\"parallel_tool_calls\":false",
		  "\"finish_reason\":\"tool_calls\"", "\"finish_reason\":\"length\"" },
		{ "/v1/messages", "{" GET "}", "input_schema", "\"messages\":" USER, "max_tokens",
		  "\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true}",
		  "\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"max_tokens\"" },
		{ "/v1/responses", "{\"type\":\"function\"," GET "}", "parameters", "\"input\":" USER,
		  "max_output_tokens", "\"parallel_tool_calls\":false", "\"status\":\"completed\"",
		  "\"status\":\"incomplete\"" },
	};
	static const char *const arguments[] = { "--no-cache", NULL };
	struct child c = child_start(arguments);
	json_t *tokens = client_json(
		&c, "/tokenize",
		"{\"content\":\"<tool_call>{\\\"name\\\": \\\"get\\\", \\\"arguments\\\": {}}</tool_call>\"}", 200);
	const size_t first = json_array_size(json_object_get(tokens, "tokens"));
	(void)state;

	assert_true(first > 10);
	for (size_t i = 0; i < 4 * sizeof ways / sizeof *ways; i++) {
		const bool one_only = i & 1, streams = i & 2;
		char tool[200], body[1000];
		snprintf(tool, sizeof tool, ways[i / 4].tool, ways[i / 4].schema);
		snprintf(body, sizeof body, "{%s,\"tools\":[%s],\"%s\":%zu,\"stream\":%s,%s%s%s}", ways[i / 4].body,
		         tool, ways[i / 4].max, first + 4, streams ? "true" : "false", CALLS, one_only ? "," : "",
		         one_only ? ways[i / 4].one_only : "");
		struct answer a = client_ask(&c, ways[i / 4].path, NULL, body);
		if (a.status != 200 || !strstr(a.body, one_only ? ways[i / 4].called : ways[i / 4].cut) ||
		    (one_only && strstr(a.body, ways[i / 4].cut)))
			fail_msg("%s: %s", body, a.body);
		answer_free(&a);
	}
	json_decref(tokens);
	check_cut_call(&c);
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deltas),    cmocka_unit_test(test_forms),
		cmocka_unit_test(test_server),    cmocka_unit_test(test_one_call_cut),
		cmocka_unit_test(test_published), cmocka_unit_test(test_all_templates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
