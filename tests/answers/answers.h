/* tests/answers/answers.h - answers in the forms of some families, and the messages that they are. */
#ifndef TESTS_ANSWERS_H
#define TESTS_ANSWERS_H

#include <jansson.h>

static const char tools[] =
	"[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\",\"properties\":{"
	"\"a\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\",\"maxLength\":3}},\"required\":[\"a\"],"
	"\"additionalProperties\":false}}},{\"type\":\"function\",\"function\":{\"name\":\"now\",\"parameters\":{"
	"\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}}}]";

/* What a family's template has, an answer in its form, and the message that it is. */
#define CALL(id, arguments) \
	"{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"" arguments "\"}}"
#define MESSAGE(content, calls) "{\"role\":\"assistant\",\"content\":\"" content "\",\"tool_calls\":[" calls "]}"
static const struct {
	const char *teaches, *says, *message;
} answers[] = {
	{ "<tool_call>",
	  "Gr\xc3\xb6\xc3\x9f"
	  "e",
	  "{\"role\":\"assistant\",\"content\":\"Gr\\u00f6\\u00dfe\"}" },
	{ "<tool_call>", "<think>\n so\n it is </think>\n\nYes.",
	  "{\"role\":\"assistant\",\"reasoning_content\":\"so\\n it is\",\"content\":\"Yes.\"}" },
	{ "<tool_call>",
	  "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"s\": \"\xc3\xa9\"}}\n</tool_call>",
	  MESSAGE("", CALL("call_0", "{\\\"a\\\":1,\\\"s\\\":\\\"\\u00e9\\\"}")) },
	{ "<tool_call>",
	  "Look: <tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>\n<tool_call>{\"name\": \"add\", "
	  "\"arguments\": {\"a\": 2}}</tool_call>",
	  MESSAGE("Look: ", CALL("call_0", "{\\\"a\\\":1}") "," CALL("call_1", "{\\\"a\\\":2}")) },
	{ "<tool_call>", "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
	  "{\"role\":\"assistant\",\"content\":\"<tool_call>{\\\"name\\\": \\\"other\\\", \\\"arguments\\\": "
	  "{}}</tool_call>\"}" },
	{ "<tool_call><function=",
	  "<think>x</think><tool_call>\n<function=add>\n<parameter=s>\n5\n</parameter>\n<parameter=a>\n7\n"
	  "</parameter>\n</function>\n</tool_call>",
	  "{\"role\":\"assistant\",\"reasoning_content\":\"x\",\"content\":\"\",\"tool_calls\":[" CALL(
		  "call_0", "{\\\"s\\\":\\\"5\\\",\\\"a\\\":7}") "]}" },
	{ "\"parameters\"", "{\"name\": \"add\", \"parameters\": {\"a\": 3}}",
	  MESSAGE("", CALL("call_0", "{\\\"a\\\":3}")) },
	{ "[TOOL_CALLS]", "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 4}}]",
	  MESSAGE("", CALL("call_0", "{\\\"a\\\":4}")) },
	{ "[ARGS]", "[TOOL_CALLS]add[ARGS]{\"a\": 5}", MESSAGE("", CALL("call_0", "{\\\"a\\\":5}")) },
	{ "<arg_key>", "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>6</arg_value>\n</tool_call>",
	  MESSAGE("", CALL("call_0", "{\\\"a\\\":6}")) },
	{ "<|tool_call_start|>", "<|tool_call_start|>[add(a=8, s='x')]<|tool_call_end|>",
	  MESSAGE("", CALL("call_0", "{\\\"a\\\":8,\\\"s\\\":\\\"x\\\"}")) },
	{ "<|channel|>final<|message|>",
	  "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.add "
	  "<|constrain|>json<|message|>{\"a\":9}<|call|>",
	  "{\"role\":\"assistant\",\"reasoning_content\":\"hm\",\"content\":\"\",\"tool_calls\":[" CALL(
		  "call_0", "{\\\"a\\\":9}") "]}" },
};
enum { ANSWERS = sizeof answers / sizeof *answers };

static inline json_t *read_json(const char *text)
{
	json_error_t why;
	json_t *o = json_loads(text, 0, &why);

	if (!o)
		fail_msg("%s: %s", why.text, text);
	return o;
}

#endif
