#include "server/talk/custom_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/tool_grammar.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "include/jitrun_grammar.h"
#include "runtime/session/session.h"
#include "server/talk/allowed_tools.h"
#include "server/request/fields.h"
#include "server/request/tool_notes.h"

static const char *text_of(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static bool requires_call(const json_t *choice)
{
	const char *word = json_string_value(choice);

	if (allowed_tools_is(choice))
		return allowed_tools_required(choice);
	return json_is_object(choice) || (word && strcmp(word, "auto") != 0 && strcmp(word, "none") != 0);
}

struct tool_intake tool_intake(const json_t *body, json_t *warnings, struct refusal *r)
{
	const json_t *choice = field_value(body, "tool_choice"), *one = json_object_get(choice, "function");
	const char *only = text_of(choice, "name"), *word = json_string_value(choice);

	one = one ? one : json_object_get(choice, "custom");
	return (struct tool_intake){
		.warnings = warnings,
		.required = requires_call(choice),
		.none = word && strcmp(word, "none") == 0,
		.allowed = allowed_tools_is(choice) ? choice : NULL,
		.only = only ? only : text_of(one, "name"),
		.steps = SESSION_GRAMMAR_STEPS,
		.r = r
	};
}

void tool_warn(struct tool_intake *a, json_t *sentence)
{
	if (a->warnings)
		json_add(a->warnings, sentence);
	else
		json_decref(sentence);
}

json_t *tool_function(const char *name, const char *description, json_t *parameters)
{
	json_t *function = json_object(), *o = json_object();

	json_put(function, "name", json_text(name, strlen(name)));
	if (description && *description)
		json_put(function, "description", json_text(description, strlen(description)));
	if (parameters)
		json_put(function, "parameters", parameters);
	json_put(o, "type", json_string("function"));
	json_put(o, "function", function);
	return o;
}

/* ---- grammars */

struct form {
	bool is_grammar, is_lark;
	const char *definition;
	char path[100]; /* of it in the request */
};

static bool read_form(struct tool_intake *a, const json_t *tool, bool chat, struct form *f)
{
	const json_t *format = field_value(tool, "format"), *grammar;
	const char *type = text_of(format, "type"), *syntax;
	char at[80];

	snprintf(at, sizeof at, "%s%s.format", a->at, chat ? ".custom" : "");
	*f = (struct form){ 0 };
	if (!format)
		return true;
	if (!json_is_object(format))
		return refuse(a->r, 400, "tools", "%s is %s, expected an object", at, json_kind(format));
	if (!type || (strcmp(type, "text") != 0 && strcmp(type, "grammar") != 0))
		return refuse(a->r, 400, "tools", "%s is of type %.60s, expected text or grammar", at,
		              type ? type : "none");
	if (!(f->is_grammar = strcmp(type, "grammar") == 0))
		return true;
	/* Each API takes the other one's form as well. */
	const bool inside = json_is_object(json_object_get(format, "grammar"));
	grammar = inside ? json_object_get(format, "grammar") : format;
	syntax = text_of(grammar, "syntax");
	f->definition = text_of(grammar, "definition");
	f->is_lark = syntax && strcmp(syntax, "lark") == 0;
	snprintf(f->path, sizeof f->path, "%s%s.definition", at, inside ? ".grammar" : "");
	if (!f->definition || !syntax || (!f->is_lark && strcmp(syntax, "regex") != 0))
		return refuse(a->r, 400, "tools",
		              "%s is a grammar without a definition, or its syntax is neither lark nor regex", at);
	return strlen(f->definition) == json_string_length(json_object_get(grammar, "definition")) ||
	       refuse(a->r, 400, "tools", "%s has a NUL, expected a text without", f->path);
}

/* Whether it may be called. */
static bool may_call(const struct tool_intake *a, const char *name)
{
	if (a->none || (a->allowed && !allowed_tools_have(a->allowed, name)))
		return false;
	return !a->required || !a->only || !name || strcmp(a->only, name) == 0;
}

/* Whether the definition can be held; who requires a call is refused where it cannot. */
static bool can_hold(struct tool_intake *a, const struct form *f, const char *name)
{
	struct error err = { 0 };

	if (!may_call(a, name))
		return false;
	const bool can = session_grammar_reads(f->is_lark ? JIT_GRAMMAR_LARK : JIT_GRAMMAR_REGEX, f->definition,
	                                       strlen(f->definition), &a->steps, &err);

	if (!can && (a->required || err.code == ERROR_MEMORY))
		refuse(a->r, err.code == ERROR_MEMORY ? 503 : 400, f->path, "%s: %s", f->path, err.text);
	else if (!can)
		tool_warn(a, json_sprintf("%s is told to the model, which may not keep to it: %s", f->path, err.text));
	return can;
}

json_t *custom_tool(struct tool_intake *a, const json_t *tool, const char *name, bool chat)
{
	const char *about = text_of(tool, "description");
	json_t *input = json_pack("{s:s}", "type", "string"), *whole = NULL;
	bool held = false;
	struct form f;

	if (read_form(a, tool, chat, &f) && f.is_grammar) {
		whole = json_sprintf("%s\n\nThe input keeps to this %s:\n%s", about ? about : "",
		                     f.is_lark ? "grammar in Lark's form" : "regular expression", f.definition);
		json_put(input, "description", json_string("text"));
		held = can_hold(a, &f, text_of(tool, "name"));
		if (!f.is_lark)
			json_put(input, "pattern", json_sprintf("^(?:%s)$", f.definition));
		else if (held)
			json_put(input, TOOLS_LARK, json_string(f.definition));
	}
	json_t *o = tool_function(name, whole ? json_string_value(whole) : about,
	                          json_pack("{s:s, s:{s:o}, s:[s], s:b}", "type", "object", "properties", "input",
	                                    input, "required", "input", "additionalProperties", 0));
	tool_note(o, f.is_grammar ? f.path : a->at, true);
	if (f.is_grammar)
		tool_note_held(o, held);
	json_decref(whole);
	return o;
}

/* ---- chat completions */

static bool is_custom(const json_t *o)
{
	const char *type = text_of(o, "type");

	return type && strcmp(type, "custom") == 0;
}

static bool take_tools(json_t *body, json_t *warnings, struct refusal *r)
{
	struct tool_intake a = tool_intake(body, warnings, r);
	json_t *tools = field_array(body, "tools", r), *tool, *list = json_array();
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		const json_t *custom = json_object_get(tool, "custom");
		const char *name = text_of(custom, "name");
		snprintf(a.at, sizeof a.at, "tools[%zu]", i);
		if (!is_custom(tool))
			json_add(list, json_incref(tool));
		else if (!name || !*name)
			refuse(r, 400, "tools", "%s is of type custom, and its custom has no text as its name", a.at);
		else
			json_add(list, custom_tool(&a, custom, name, true));
	}
	if (tools && !r->status)
		json_put(body, "tools", json_incref(list));
	json_decref(list);
	return r->status == 0;
}

static bool take_choice(json_t *body, struct refusal *r)
{
	const json_t *choice = field_value(body, "tool_choice");
	const char *name = text_of(json_object_get(choice, "custom"), "name");

	if (!is_custom(choice))
		return true;
	if (!name)
		return refuse(r, 400, "tool_choice",
		              "tool_choice is of type custom, and its custom has no text as its name");
	json_put(body, "tool_choice", json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name", name));
	return true;
}

/* {"id", "type", "custom": {"name", "input"}} */
static bool take_call(json_t *calls, size_t i, struct refusal *r)
{
	const json_t *call = json_array_get(calls, i), *custom = json_object_get(call, "custom");
	json_t *name = json_object_get(custom, "name"), *input = json_object_get(custom, "input");

	if (!json_is_string(name) || !json_is_string(input))
		return refuse(r, 400, "messages",
		              "messages has a call of type custom without a text as its name, or as its input");
	char *text = json_write(json_pack("{s:O}", "input", input));
	json_t *made = json_copied(call, false);
	json_object_del(made, "custom");
	json_put(made, "type", json_string("function"));
	json_put(made, "function", json_pack("{s:O, s:s}", "name", name, "arguments", text ? text : ""));
	if (!text || json_array_set_new(calls, i, made))
		refuse(r, 503, NULL, "There is no memory for this request.");
	free(text);
	return r->status == 0;
}

bool custom_tools_take(json_t *body, json_t *warnings, struct refusal *r)
{
	json_t *message, *call, *calls;
	size_t i, k;

	if (!take_tools(body, warnings, r) || !take_choice(body, r))
		return false;
	json_array_foreach(json_object_get(body, "messages"), i, message)
	{
		calls = json_object_get(message, "tool_calls");
		json_array_foreach(calls, k, call) if (is_custom(call) && !take_call(calls, k, r)) return false;
	}
	return true;
}
