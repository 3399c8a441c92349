/* server/talk/held_calls.c - answers that may call tools: how calls keep to what their tools say. */
#include "server/talk/held_calls.h"

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

struct holding {
	struct task *task;
	uint64_t steps;              /* that are left for schemas */
	json_t *functions, *watched; /* that can be called, and of these those that ask for it */
	bool strict;
};

static void warn(struct task *t, json_t *sentence)
{
	if (t->warnings)
		json_add(t->warnings, sentence);
	else
		json_decref(sentence);
}

/* Whether its parameters can be held; what says that they cannot goes to err. */
static bool reads(struct holding *h, const json_t *parameters, struct error *err)
{
	char *text = json_is_object(parameters) ? json_spell(parameters, JSON_COMPACT) : NULL;
	const bool can = !json_is_object(parameters) || !text ||
	                 session_grammar_reads(JIT_GRAMMAR_JSON_SCHEMA, text, strlen(text), &h->steps, err);

	free(text);
	return can;
}

/* A function whose parameters cannot be held takes any object. */
static json_t *free_function(const char *name)
{
	return json_pack("{s:o, s:{s:s}}", "name", json_text(name, strlen(name)), "parameters", "type", "object");
}

static void add_tool(struct holding *h, const json_t *tool, bool allowed)
{
	json_t *function = json_object_get(tool, "function");
	const char *name = json_string_value(json_object_get(function, "name")), *path = tool_path(tool);
	const bool strict = json_is_true(json_object_get(function, "strict"));
	const enum tool_held noted = tool_is_held(tool);
	struct error err = { 0 };

	if (!name)
		return;
	const bool can = noted != TOOL_NOT_HELD && reads(h, json_object_get(function, "parameters"), &err);
	if (!can && strict && noted == TOOL_NOT_NOTED)
		warn(h->task, json_sprintf("%s is told to the model, which may not keep to it: %s",
		                           path ? path : "tools", err.text));
	json_t *one = can ? json_incref(function) : free_function(name);
	if (allowed || noted == TOOL_HELD || (can && strict))
		json_add(h->watched, json_incref(one));
	h->strict = h->strict || strict;
	json_add(h->functions, one);
	json_add(h->task->grammar_paths, json_string(path ? path : "tools"));
}

static bool make(struct holding *h, const struct served *m, struct refusal *r)
{
	struct task *t = h->task;
	struct error err = { 0 };
	char *text = tool_grammar_held(h->functions, h->watched, (enum tools_form)m->tools, t->one_call, &err);

	if (!text && err.code == ERROR_ARGUMENT) {
		warn(t, json_sprintf("calls are not held to the form of their tools: %s", err.text));
		return true;
	}
	if (!text)
		return refuse(r, 503, NULL, "There is no memory for this request.");
	t->holds_calls = true;
	t->additional |= h->strict;
	const bool ok = task_set_grammar(t, JIT_GRAMMAR_CALL, text, "tools", r);
	free(text);
	return ok;
}

bool held_calls_read(struct task *t, const json_t *body, const json_t *allowed, const struct served *m,
                     struct refusal *r)
{
	struct holding h = { .task = t, .steps = SESSION_GRAMMAR_STEPS };
	const json_t *tools = field_value(body, "tools"), *tool;
	bool ok = true;
	size_t i;

	if (t->grammar != JIT_GRAMMAR_NONE || tools_form_in(m->tools, json_array_size(tools) > 0) == TOOLS_NONE)
		return true;
	h.functions = json_array();
	h.watched = json_array();
	json_decref(t->grammar_paths);
	t->grammar_paths = json_array();
	json_array_foreach(tools, i, tool)
	{
		const json_t *name = json_object_get(json_object_get(tool, "function"), "name");
		if (!allowed || allowed_tools_have(allowed, json_string_value(name)))
			add_tool(&h, tool, allowed != NULL);
	}
	if (json_array_size(h.watched))
		ok = make(&h, m, r);
	json_decref(h.functions);
	json_decref(h.watched);
	return ok;
}
