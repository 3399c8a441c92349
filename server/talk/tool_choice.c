/* server/talk/tool_choice.c - answers that must be a call of a tool: the grammar that leaves nothing else. */
#include "server/talk/tool_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/tool_calls.h"
#include "answers/tool_grammar.h"
#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "include/jitrun_grammar.h"
#include "server/talk/allowed_tools.h"
#include "server/request/fields.h"
#include "server/talk/held_calls.h"
#include "server/request/tool_notes.h"

/* A schema of objects, as far as it says at once, or nothing. */
static bool are_parameters(const json_t *tool, struct refusal *r)
{
	const json_t *v = field_value(json_object_get(tool, "function"), "parameters");
	const char *path = tool_path(tool) ? tool_path(tool) : "tools",
		   *type = json_string_value(field_value(v, "type"));

	if (type && strcmp(type, "object") != 0)
		return refuse(r, 400, path, "%s has the type %.60s, expected object: arguments have names", path, type);
	return !v || json_is_object(v) || json_is_boolean(v) ||
	       refuse(r, 400, path, "%s is %s, expected a JSON Schema", path, json_kind(v));
}

/* The functions that may be called, or the one of that name: n of them, 0: refused. The task notes their places.
 * allowed: those that the choice allows alone; NULL: all. */
static json_t *functions_of(struct task *t, const json_t *body, const char *wanted, const json_t *allowed,
                            struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r), *tool, *any = json_array();
	size_t i;

	json_decref(t->grammar_paths);
	t->grammar_paths = json_array();
	json_array_foreach(tools, i, tool)
	{
		json_t *function = json_object_get(tool, "function");
		const char *name = json_string_value(json_object_get(function, "name"));
		if (!name)
			refuse(r, 400, "tools", "tool %zu has no function with a name", i);
		else if (!are_parameters(tool, r))
			break;
		else if (wanted ? strcmp(wanted, name) == 0 : !allowed || allowed_tools_have(allowed, name)) {
			json_add(any, json_incref(function));
			json_add(t->grammar_paths, json_string(tool_path(tool) ? tool_path(tool) : "tools"));
		}
	}
	if (json_array_size(any) == 0)
		refuse(r, 400, "tool_choice",
		       wanted    ? "tool_choice names a function that tools does not have"
		       : allowed ? "tool_choice requires a call, and allows none of the tools"
		                 : "tool_choice requires a call, and there are no tools");
	return any;
}

/* The tokens of what stands behind others. */
static bool tokens_of(struct task_text *out, const struct served *m, const char *before, const char *text,
                      struct refusal *r)
{
	struct bytes whole = { 0 };

	bytes_text(&whole, before);
	bytes_text(&whole, text);
	bytes_add(&whole, "", 1);
	const bool ok = !whole.lost && models_go_on(m->model, whole.p, true, &out->ids, &out->n, NULL);
	bytes_free(&whole);
	return ok || refuse(r, 503, NULL, "There is no memory for this request.");
}

static bool may_reason(const struct task *t) { return t->before.inside || t->before.may; }

/* What a message of gpt-oss begins with, behind one that reasons. */
static const char *message_of(const struct served *m)
{
	return m->tools == TOOLS_HARMONY ? tools_rows[TOOLS_HARMONY].mark[4] : "";
}

/* Reasoning comes first: the answer itself opens the call, and is read as one that might have none. */
static bool open_behind(struct task *t, const struct served *m, const char *prompt, struct refusal *r)
{
	free(t->opened);
	t->opened = NULL;
	return tokens_of(&t->begins, m, "", prompt, r) && tokens_of(&t->continues, m, message_of(m), prompt, r);
}

/* Appends to the prompt what opens a call. */
static bool open_call(struct task *t, const struct served *m, const char *prompt, struct refusal *r)
{
	if (may_reason(t))
		return open_behind(t, m, prompt, r);
	int32_t *ids = NULL, *all = NULL;
	size_t n = 0;

	if (models_go_on(m->model, prompt, true, &ids, &n, NULL))
		all = realloc(t->ids, (t->n_ids + n + 1) * sizeof *all);
	if (all) {
		memcpy(all + t->n_ids, ids, n * sizeof *ids);
		t->ids = all;
		t->n_ids += n;
	}
	free(ids);
	return all || refuse(r, 503, NULL, "There is no memory for this request.");
}

static bool force(struct task *t, const json_t *functions, const struct served *m, bool named, struct refusal *r)
{
	struct tool_grammar g;
	struct error err = { 0 };

	if (!tool_grammar_make(&g, functions, (enum tools_form)m->tools, named || t->one_call, &err)) {
		tool_grammar_free(&g);
		return err.code == ERROR_MEMORY ? refuse(r, 503, NULL, "There is no memory for this request.")
		                                : refuse(r, 400, "tools", "%s", err.text);
	}
	t->grammar_named = g.named;
	t->additional |= g.strict;
	t->opened = g.opened;
	g.opened = NULL;
	bool ok = task_set_grammar(t, g.in_form ? JIT_GRAMMAR_CALL : JIT_GRAMMAR_JSON_SCHEMA, g.text, "tools", r) &&
	          open_call(t, m, g.prompt, r);
	tool_grammar_free(&g);
	return ok;
}

/* Every name that the choice allows is that of a function here. */
static bool has_allowed(const json_t *body, const json_t *choice, struct refusal *r)
{
	const json_t *wanted, *tool;
	size_t i, k;

	if (!allowed_tools_check(choice, r))
		return false;
	json_array_foreach(allowed_tools_list(choice), i, wanted)
	{
		const char *name = allowed_tools_name(wanted);
		bool found = false;
		json_array_foreach(field_value(body, "tools"), k, tool)
		{
			const char *own = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
			found = found || (own && strcmp(own, name) == 0);
		}
		if (!found)
			return refuse(r, 400, "tool_choice",
			              "tool_choice.tools[%zu] names a function that tools does not have", i);
	}
	return true;
}

/* Calls are of these functions alone, and elements do not say which of their values are texts: the schemas do. */
static bool keep_functions(struct task *t, const json_t *body, const json_t *allowed, struct refusal *r)
{
	json_t *functions = tool_grammar_functions(field_value(body, "tools"));
	const bool any = json_array_size(functions) > 0;

	for (size_t i = json_array_size(functions); allowed && i-- > 0;) {
		const json_t *name = json_object_get(json_array_get(functions, i), "name");
		if (!allowed_tools_have(allowed, json_string_value(name)))
			json_array_remove(functions, i);
	}
	if (any)
		t->functions = json_write(json_incref(functions));
	bool ok = t->functions || (functions && !any);
	json_decref(functions);
	return ok || refuse(r, 503, NULL, "There is no memory for this request.");
}

/* *name: of the only function that may be called; NULL: any. *required: the answer must be a call. */
static bool read_choice(const json_t *body, const json_t *choice, const char **name, bool *required, struct refusal *r)
{
	const char *word = json_string_value(choice);

	*name = NULL;
	*required = word && strcmp(word, "required") == 0;
	if (!choice || *required || (word && (strcmp(word, "auto") == 0 || strcmp(word, "none") == 0)))
		return true;
	if (allowed_tools_is(choice)) {
		*required = allowed_tools_required(choice);
		return has_allowed(body, choice, r);
	}
	*name = json_string_value(json_object_get(json_object_get(choice, "function"), "name"));
	*required = *name != NULL;
	return *name || refuse(r, 400, "tool_choice",
	                       "tool_choice is neither none, auto, required, allowed_tools nor a function's name");
}

bool tool_choice_read(struct task *t, const json_t *body, const struct served *m, bool *forced, struct refusal *r)
{
	const json_t *choice = field_value(body, "tool_choice");
	const json_t *allowed = allowed_tools_is(choice) ? choice : NULL;
	const char *word = json_string_value(choice), *name;
	const bool none = word && strcmp(word, "none") == 0;
	bool required;

	*forced = false;
	if (t->grammar != JIT_GRAMMAR_NONE && may_reason(t) && m->tools == TOOLS_HARMONY &&
	    !tokens_of(&t->continues, m, message_of(m), tools_rows[TOOLS_HARMONY].taught, r))
		return false;
	if (tools_form_in(m->tools, field_value(body, "tools") && !none))
		t->marks = m;
	if (!read_choice(body, choice, &name, &required, r) || !keep_functions(t, body, allowed, r))
		return false;
	if (!required)
		return none || held_calls_read(t, body, allowed, m, r);
	if (t->grammar != JIT_GRAMMAR_NONE)
		return refuse(r, 400, t->old_functions ? "function_call" : "tool_choice",
		              "%s gives the answer a form, and %s requires a call",
		              t->grammar_field ? t->grammar_field : "response_format",
		              t->old_functions ? "function_call" : "tool_choice");
	json_t *functions = functions_of(t, body, name, allowed, r);
	bool ok = r->status == 0 && force(t, functions, m, name != NULL, r);
	json_decref(functions);
	*forced = ok && t->opened;
	return ok;
}
