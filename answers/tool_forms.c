/* answers/tool_forms.c - the forms in which model families write calls of tools. */
#include "answers/tool_forms.h"

#include <string.h>

#define DEEPSEEK(words) "<\xef\xbd\x9ctool\xe2\x96\x81" words "\xef\xbd\x9c>"
#define DSML \
	"\xef\xbd\x9c" \
	"DSML" \
	"\xef\xbd\x9c"
#define UNDER "\xe2\x96\x81"

const struct tools_row tools_rows[TOOLS_FORMS] = {
	[TOOLS_TAGGED] = { .mark = { "<tool_call>", "</tool_call>" }, .name = "name", .arguments = "arguments" },
	[TOOLS_ELEMENTS] = { .mark = { "<tool_call>", "</tool_call>" },
	                     .body = BODY_FUNCTIONS,
	                     .name = "name",
	                     .arguments = "arguments" },
	[TOOLS_BARE] = { .name = "name", .arguments = "parameters" },
	[TOOLS_LIST] = { .mark = { "[TOOL_CALLS]" },
	                 .name = "name",
	                 .arguments = "arguments",
	                 .list = true,
	                 .taught = "[TOOL_CALLS]" },
	[TOOLS_ARGS] = { .mark = { "[TOOL_CALLS]", NULL, "[ARGS]", "[CALL_ID]" },
	                 .body = BODY_NAMED,
	                 .taught = "[ARGS]" },
	[TOOLS_NEMOTRON] = { .mark = { "<TOOLCALL>", "</TOOLCALL>" },
	                     .name = "name",
	                     .arguments = "arguments",
	                     .list = true,
	                     .taught = "<TOOLCALL>" },
	[TOOLS_GRANITE] = { .mark = { "<|tool_call|>" },
	                    .name = "name",
	                    .arguments = "arguments",
	                    .list = true,
	                    .taught = "<|tool_call|>" },
	[TOOLS_ACTION] = { .mark = { "<|START_ACTION|>", "<|END_ACTION|>" },
	                   .name = "tool_name",
	                   .arguments = "parameters",
	                   .list = true,
	                   .taught = "<|START_ACTION|>" },
	[TOOLS_DEEPSEEK] = { .mark = { DEEPSEEK("call" UNDER "begin"), DEEPSEEK("call" UNDER "end"), DEEPSEEK("sep"),
	                               NULL, DEEPSEEK("calls" UNDER "begin"), DEEPSEEK("calls" UNDER "end") },
	                     .body = BODY_NAMED,
	                     .taught = DEEPSEEK("call" UNDER "begin") },
	[TOOLS_KIMI] = { .mark = { "<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>", NULL,
	                           "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>" },
	                 .body = BODY_NAMED,
	                 .taught = "<|tool_call_argument_begin|>" },
	[TOOLS_GLM] = { .mark = { "<tool_call>", "</tool_call>" }, .body = BODY_KEYS, .taught = "<arg_key>" },
	[TOOLS_FUNCTOOLS] = { .mark = { "functools" },
	                      .name = "name",
	                      .arguments = "arguments",
	                      .list = true,
	                      .taught = "functools[" },
	[TOOLS_SEED] = { .mark = { "<seed:tool_call>", "</seed:tool_call>" },
	                 .body = BODY_FUNCTIONS,
	                 .name = "name",
	                 .arguments = "arguments",
	                 .taught = "<seed:tool_call>" },
	[TOOLS_CALLS] = { .mark = { "<tool_calls>", "</tool_calls>" },
	                  .name = "name",
	                  .arguments = "arguments",
	                  .list = true,
	                  .taught = "<tool_calls>" },
	[TOOLS_PYTHON] = { .mark = { "<|tool_call_start|>", "<|tool_call_end|>" },
	                   .body = BODY_PYTHON,
	                   .taught = "<|tool_call_start|>",
	                   .or_this = "List of tools: " },
	[TOOLS_PREFIX] = { .mark = { "<|tools_prefix|>", "<|tools_suffix|>" },
	                   .list = true,
	                   .taught = "<|tools_prefix|>" },
	[TOOLS_INVOKE] = { .mark = { "<invoke name=\"", "</invoke>", NULL, NULL, "<minimax:tool_call>",
	                             "</minimax:tool_call>" },
	                   .body = BODY_INVOKE,
	                   .name = "parameter",
	                   .taught = "<minimax:tool_call>" },
	[TOOLS_DSML] = { .mark = { "<" DSML "invoke name=\"", "</" DSML "invoke>", NULL, NULL,
	                           "<" DSML "function_calls>", "</" DSML "function_calls>" },
	                 .body = BODY_INVOKE,
	                 .name = DSML "parameter",
	                 .taught = "dsml_token + 'function_calls>" },
	[TOOLS_DSML_4] = { .mark = { "<" DSML "invoke name=\"", "</" DSML "invoke>", NULL, NULL, "<" DSML "tool_calls>",
	                             "</" DSML "tool_calls>" },
	                   .body = BODY_INVOKE,
	                   .name = DSML "parameter",
	                   .taught = "dsml_token + 'tool_calls>" },
	[TOOLS_PARAM] = { .mark = { "<function name=\"", "</function>" },
	                  .body = BODY_INVOKE,
	                  .name = "param",
	                  .taught = "<function name=\"" },
	[TOOLS_SOLAR] = { .mark = { "<|tool_call:begin|>", "<|tool_call:end|>", "<|tool_call:args|>", NULL,
	                            "<|tool_calls|>" },
	                  .body = BODY_NAMED,
	                  .before_name = "<|tool_call:name|>",
	                  .taught = "<|tool_call:args|>",
	                  .token = { "<|tool_call:name|>" } },
	[TOOLS_HY] = { .mark = { "<tool_call:opensource>", "</tool_call:opensource>", NULL, NULL,
	                         "<tool_calls:opensource>", "</tool_calls:opensource>" },
	               .body = BODY_KEYS,
	               .name = ":opensource",
	               .taught = "<tool_sep{}>" },
	[TOOLS_CALL_1] = { .mark = { "<functioncall>" },
	                   .name = "name",
	                   .arguments = "arguments",
	                   .taught = "<functioncall>" },
	[TOOLS_GIGA] = { .mark = { "<|function_call|>" },
	                 .name = "name",
	                 .arguments = "arguments",
	                 .taught = "<|function_call|>" },
	[TOOLS_GIGA_3] = { .mark = { "function call<|role_sep|>\n", NULL, NULL, NULL, "<|message_sep|>" },
	                   .name = "name",
	                   .arguments = "arguments",
	                   .taught = "'role': 'function call'",
	                   .token = { "<|role_sep|>" } },
	[TOOLS_BRACES] = { .mark = { "<|tool_call>call:", "<tool_call|>" },
	                   .body = BODY_BRACES,
	                   .taught = "<|tool_call>call:",
	                   .always = true,
	                   .token = { "<|tool_call>", "<|\"|>", "<|channel>", "<channel|>" } },
	[TOOLS_FUNCTION] = { .mark = { "<function=", "</function>", ">" }, .body = BODY_NAMED, .taught = "<function=" },
	[TOOLS_RECIPIENT] = { .mark = { ">>>", NULL, "\n" }, .body = BODY_NAMED, .taught = ">>>all", .opened = true },
	[TOOLS_CONTENT] = { .mark = { "<|recipient|>", NULL, "\n<|content|>" },
	                    .body = BODY_NAMED,
	                    .taught = "<|recipient|>",
	                    .frame = { "\n<|from|>assistant\n", "<|from|>assistant\n" },
	                    .opened = true,
	                    .token = { "<|from|>", "<|content|>" } },
	[TOOLS_ANSWER] = { .name = "name",
	                   .arguments = "arguments",
	                   .list = true,
	                   .taught = "directly output an empty list" },
	[TOOLS_JSON] = { .mark = { "```json", "```", NULL, NULL, "Action:" },
	                 .name = "tool_name",
	                 .arguments = "parameters",
	                 .list = true,
	                 .taught = "Write 'Action:'",
	                 .or_this = "Write \\'Action:\\'" },
	[TOOLS_HARMONY] = { .mark = { " to=functions.", "<|call|>", "<|message|>", NULL, "<|start|>assistant",
	                              "<|end|>" },
	                    .body = BODY_NAMED,
	                    .taught = "<|channel|>final<|message|>",
	                    .frame = { "<|channel|>final", "<|channel|>commentary", "<|message|>",
	                               "<|channel|>analysis" },
	                    .always = true,
	                    .token = { "<|start|>", "<|channel|>", "<|constrain|>" } },
};

enum tools_form tools_form_of(const char *text)
{
	/* What is part of another's mark comes behind it. */
	static const enum tools_form marked[] = {
		TOOLS_ARGS,     TOOLS_LIST,   TOOLS_NEMOTRON,  TOOLS_GRANITE, TOOLS_ACTION,    TOOLS_KIMI,
		TOOLS_DEEPSEEK, TOOLS_GLM,    TOOLS_FUNCTOOLS, TOOLS_SEED,    TOOLS_HARMONY,   TOOLS_BRACES,
		TOOLS_INVOKE,   TOOLS_DSML,   TOOLS_DSML_4,    TOOLS_SOLAR,   TOOLS_HY,        TOOLS_PREFIX,
		TOOLS_PARAM,    TOOLS_CALL_1, TOOLS_GIGA,      TOOLS_GIGA_3,  TOOLS_RECIPIENT, TOOLS_CONTENT,
		TOOLS_ANSWER,   TOOLS_JSON,   TOOLS_PYTHON,    TOOLS_CALLS
	};

	for (size_t i = 0; text && i < sizeof marked / sizeof *marked; i++)
		if (strstr(text, tools_rows[marked[i]].taught) ||
		    (tools_rows[marked[i]].or_this && strstr(text, tools_rows[marked[i]].or_this)))
			return marked[i];
	if (!text)
		return TOOLS_TAGGED;
	if (strstr(text, "<function="))
		return strstr(text, "<tool_call>") ? TOOLS_ELEMENTS : TOOLS_FUNCTION;
	if (strstr(text, "<tool_call>"))
		return TOOLS_TAGGED;
	return strstr(text, "\"parameters\"") ? TOOLS_BARE : TOOLS_TAGGED;
}
