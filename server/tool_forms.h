/* server/tool_forms.h - the forms in which model families write calls of tools, and which of them a template teaches.
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
 */
#ifndef SERVER_TOOL_FORMS_H
#define SERVER_TOOL_FORMS_H

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
	TOOLS_FORMS
};

/* What stands between the marks: JSON, also a list of calls; a name and JSON with a mark between; elements. */
enum tools_body { BODY_JSON, BODY_NAMED, BODY_FUNCTIONS, BODY_KEYS };

enum { TOOLS_MARKS = 6 };

struct tools_row {
	/* mark[0] opens a call and mark[1] closes it; NULL: the next one does, or the end. mark[2] stands between name
	 * and arguments, mark[3] before what else is told of a call; mark[4] and mark[5] stand around all calls. */
	const char *mark[TOOLS_MARKS];
	enum tools_body body;
	const char *name, *arguments; /* the members of JSON */
	bool list;                    /* calls stand in an array */
	const char *taught;           /* what only templates of this form have; NULL: nothing */
};

extern const struct tools_row tools_rows[TOOLS_FORMS];

/* What a template's text teaches; TOOLS_TAGGED where it teaches nothing that is known. */
enum tools_form tools_form_of(const char *template_text);

#endif
