/* server/tool_forms.c - the forms in which model families write calls of tools. */
#include "server/tool_forms.h"

#include <string.h>

#define DEEPSEEK(words) "<\xef\xbd\x9ctool\xe2\x96\x81" words "\xef\xbd\x9c>"
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
};

enum tools_form tools_form_of(const char *text)
{
	/* What is part of another's mark comes behind it. */
	static const enum tools_form marked[] = { TOOLS_ARGS,      TOOLS_LIST, TOOLS_NEMOTRON, TOOLS_GRANITE,
		                                  TOOLS_ACTION,    TOOLS_KIMI, TOOLS_DEEPSEEK, TOOLS_GLM,
		                                  TOOLS_FUNCTOOLS, TOOLS_SEED };

	for (size_t i = 0; text && i < sizeof marked / sizeof *marked; i++)
		if (strstr(text, tools_rows[marked[i]].taught))
			return marked[i];
	if (!text)
		return TOOLS_TAGGED;
	if (strstr(text, "<function="))
		return TOOLS_ELEMENTS;
	if (strstr(text, "<tool_call>"))
		return TOOLS_TAGGED;
	return strstr(text, "\"parameters\"") ? TOOLS_BARE : TOOLS_TAGGED;
}
