/* answers/tool_forms.h - the forms in which model families write calls of tools, and which of them a template teaches.
 *
 *   TOOLS_TAGGED    <tool_call>{"name": "f", "arguments": {...}}</tool_call>, one after the other (Hermes, Qwen)
 *   TOOLS_ELEMENTS  <tool_call><function=f><parameter=x>1</parameter></function></tool_call> (Qwen coder)
 *   TOOLS_BARE      {"name": "f", "parameters": {...}} as the whole answer (Llama 3)
 *   TOOLS_LIST      [TOOL_CALLS][{"name": "f", "arguments": {...}}] (Mistral until 2024)
 *   TOOLS_ARGS      [TOOL_CALLS]f[ARGS]{...}, one after the other (Mistral since)
 *   TOOLS_NEMOTRON  <TOOLCALL>[{"name": "f", "arguments": {...}}]</TOOLCALL>
 *   TOOLS_GRANITE   <|tool_call|>[{"name": "f", "arguments": {...}}] (Granite 3, Phi 4 mini)
 *   TOOLS_ACTION    <|START_ACTION|>[{"tool_name": "f", "parameters": {...}}]<|END_ACTION|> (Cohere)
 *   TOOLS_DEEPSEEK  name and arguments between marks of their own; older models fence the arguments
 *   TOOLS_KIMI      the same with functions.NAME:NUMBER as the name
 *   TOOLS_GLM       <tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call> (GLM 4.5 and later)
 *   TOOLS_FUNCTOOLS functools[{"name": "f", "arguments": {...}}] (Firefunction)
 *   TOOLS_SEED      <seed:tool_call><function=f>...</function></seed:tool_call> (Seed)
 *   TOOLS_CALLS     <tool_calls>[{"name": "f", "arguments": {...}}]</tool_calls> (Apriel 1.6, Jamba)
 *   TOOLS_PYTHON    <|tool_call_start|>[f(x=1, y='a')]<|tool_call_end|> (LFM 2, MiniCPM 3)
 *   TOOLS_PREFIX    <|tools_prefix|>[{"f": {...}}]<|tools_suffix|> (Apertus)
 *   TOOLS_INVOKE    <minimax:tool_call><invoke name="f"><parameter name="x">1</parameter></invoke></minimax:tool_call>
 *   TOOLS_DSML      the same with marks of its own (DeepSeek 3.2); TOOLS_DSML_4: with others around all (DeepSeek 4)
 *   TOOLS_PARAM     <function name="f"><param name="x">1</param></function> (MiniCPM 5)
 *   TOOLS_SOLAR     <|tool_call:begin|>ID<|tool_call:name|>f<|tool_call:args|>{...}<|tool_call:end|> (Solar)
 *   TOOLS_HY        <tool_call:opensource>f<tool_sep:opensource> and keys as GLM has them (Hunyuan 3)
 *   TOOLS_CALL_1    <functioncall>{"name": "f", "arguments": {...}} (Firefunction 1)
 *   TOOLS_GIGA      <|function_call|>{"name": "f", "arguments": {...}} (GigaChat 3.1)
 *   TOOLS_GIGA_3    function call<|role_sep|> and the same JSON (GigaChat 3)
 *   TOOLS_BRACES    <|tool_call>call:f{x:1,y:<|"|>a<|"|>}<tool_call|> (Gemma 4)
 *   TOOLS_FUNCTION  <function=f>{...}</function> (Functionary 3.1)
 *   TOOLS_RECIPIENT >>>f, a line's end and {...}; >>>all and a text. The prompt ends with >>> (Functionary 3.2)
 *   TOOLS_CONTENT   <|recipient|>f, a line's end and <|content|>{...}; the prompt ends with the first (Functionary 2)
 *   TOOLS_ANSWER    [{"name": "f", "arguments": {...}}] as the whole answer (Hammer)
 *   TOOLS_JSON      ```json, a list of calls and ``` (Command R)
 *   TOOLS_HARMONY   to=functions.f in the head of a message whose body is {...}; a channel's name in the heads of
 * others (gpt-oss). All of an answer has this form, with tools and without.
 */
#ifndef ANSWERS_TOOL_FORMS_H
#define ANSWERS_TOOL_FORMS_H

#include <stdbool.h>
#include <stddef.h>

enum tools_form {
	TOOLS_NONE,
	TOOLS_TAGGED,
	TOOLS_ELEMENTS,
	TOOLS_BARE,
	TOOLS_LIST,
	TOOLS_ARGS,
	TOOLS_NEMOTRON,
	TOOLS_GRANITE,
	TOOLS_ACTION,
	TOOLS_DEEPSEEK,
	TOOLS_KIMI,
	TOOLS_GLM,
	TOOLS_FUNCTOOLS,
	TOOLS_SEED,
	TOOLS_CALLS,
	TOOLS_PYTHON,
	TOOLS_PREFIX,
	TOOLS_INVOKE,
	TOOLS_DSML,
	TOOLS_DSML_4,
	TOOLS_PARAM,
	TOOLS_SOLAR,
	TOOLS_HY,
	TOOLS_CALL_1,
	TOOLS_GIGA,
	TOOLS_GIGA_3,
	TOOLS_BRACES,
	TOOLS_FUNCTION,
	TOOLS_RECIPIENT,
	TOOLS_CONTENT,
	TOOLS_ANSWER,
	TOOLS_JSON,
	TOOLS_HARMONY,
	TOOLS_FORMS
};

/* What stands between the marks: JSON, also a list of calls; a name and JSON with a mark between; elements; a name and
 * elements with names; Python; braces. */
enum tools_body { BODY_JSON, BODY_NAMED, BODY_FUNCTIONS, BODY_KEYS, BODY_INVOKE, BODY_PYTHON, BODY_BRACES };

enum { TOOLS_MARKS = 6, TOOLS_FRAMES = 4, TOOLS_TOKENS = 6 };

struct tools_row {
	/* mark[0] opens a call and mark[1] closes it; NULL: the next one does, or the end. mark[2] stands between name
	 * and arguments, mark[3] before what else is told of a call; mark[4] and mark[5] stand around all calls. */
	const char *mark[TOOLS_MARKS];
	enum tools_body body;
	const char *name, *arguments;    /* the members of JSON; no name: the function's is that of the only member.
	                                    BODY_INVOKE: `name` is the element of a parameter */
	bool list;                       /* calls stand in an array */
	const char *taught, *or_this;    /* what only templates of this form have; NULL: nothing */
	const char *before_name;         /* what stands between the opening mark and the name ends with this */
	const char *frame[TOOLS_FRAMES]; /* outside of calls they stand around texts, and are none of their own */
	bool opened;                     /* the prompt ends with mark[0]; no call follows where `all` and mark[2] do */
	bool always;                     /* of all answers, with tools and without */
	const char *token[TOOLS_TOKENS]; /* control tokens that marks are made of */
};

extern const struct tools_row tools_rows[TOOLS_FORMS];

/* The form to look for in an answer. */
static inline enum tools_form tools_form_in(int form, bool tools)
{
	return tools || tools_rows[form].always ? (enum tools_form)form : TOOLS_NONE;
}

/* What a template's text teaches; TOOLS_TAGGED where it teaches nothing that is known. */
enum tools_form tools_form_of(const char *template_text);

#endif
