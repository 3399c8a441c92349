/* server/tool_choice.c - answers that must be a call of a tool: the grammar that leaves nothing else. */
#include "server/tool_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/jitrun_grammar.h"
#include "server/bytes.h"
#include "server/fields.h"
#include "server/json_write.h"
#include "server/tool_calls.h"

static json_t *object_of(json_t *o, json_t *properties, json_t *required)
{
	json_put(o, "type", json_string("object"));
	json_put(o, "properties", properties);
	json_put(o, "required", required);
	json_put(o, "additionalProperties", json_false());
	return o;
}

/* {"type":"object","properties":{NAME:{"const":...},ARGUMENTS:SCHEMA},"required":[...]} */
static json_t *schema_of(json_t *function, const struct tools_row *row)
{
	json_t *o = json_object(), *properties = json_object(), *name = json_object(), *required = json_array();
	json_t *parameters = field_value(function, "parameters");

	if (!row->name) { /* {NAME: SCHEMA} */
		const char *own = json_string_value(json_object_get(function, "name"));
		json_put(properties, own, parameters ? json_incref(parameters) : json_pack("{s:s}", "type", "object"));
		json_decref(name);
		json_add(required, json_string(own));
		return object_of(o, properties, required);
	}
	json_put(name, "const", json_incref(json_object_get(function, "name")));
	json_put(properties, row->name, name);
	json_put(properties, row->arguments,
	         parameters ? json_incref(parameters) : json_pack("{s:s}", "type", "object"));
	json_add(required, json_string(row->name));
	json_add(required, json_string(row->arguments));
	return object_of(o, properties, required);
}

/* The functions that may be called, or the one of that name: n of them, 0: refused. */
static json_t *functions_of(const json_t *body, const char *wanted, struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r), *tool, *any = json_array();
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		json_t *function = json_object_get(tool, "function");
		const char *name = json_string_value(json_object_get(function, "name"));
		if (!name)
			refuse(r, 400, "tools", "tool %zu has no function with a name", i);
		else if (!wanted || strcmp(wanted, name) == 0)
			json_add(any, json_incref(function));
	}
	if (json_array_size(any) == 0)
		refuse(r, 400, "tool_choice",
		       wanted ? "tool_choice names a function that tools does not have"
		              : "tool_choice requires a call, and there are no tools");
	return any;
}

/* One of the functions; an array of calls where the form has one, of one where a function was named. */
static json_t *schema_of_all(const json_t *functions, const struct tools_row *row, bool one)
{
	json_t *any = json_array(), *o = json_object(), *function;
	size_t i;

	json_array_foreach(functions, i, function) json_add(any, schema_of(function, row));
	json_put(o, "anyOf", any);
	if (!row->list)
		return o;
	json_t *list = json_pack("{s:s, s:o, s:i}", "type", "array", "items", o, "minItems", 1);
	if (one)
		json_put(list, "maxItems", json_integer(1));
	return list;
}

/* Appends to the prompt the marks that open a call, and what is to stand behind them. */
static bool open_call(struct task *t, const struct served *m, const char *behind, struct refusal *r)
{
	const struct tools_row *row = &tools_rows[m->tools];
	struct bytes text = { 0 };
	int32_t *ids = NULL, *all = NULL;
	size_t n = 0;

	/* Where the answer always begins in that form, the prompt ends with what stands before. */
	bytes_text(&text, row->mark[4] && !row->always ? row->mark[4] : "");
	bytes_text(&text, row->opened ? "" : row->mark[0]);
	bytes_text(&text, behind);
	bytes_add(&text, "", 1);
	t->opened = strdup(behind);
	if (t->opened && !text.lost && models_go_on(m->model, text.p, true, &ids, &n, NULL))
		all = realloc(t->ids, (t->n_ids + n) * sizeof *all);
	if (all) {
		memcpy(all + t->n_ids, ids, n * sizeof *ids);
		t->ids = all;
		t->n_ids += n;
	}
	free(ids);
	bytes_free(&text);
	return all || refuse(r, 503, NULL, "There is no memory for this request.");
}

static bool set_schema(struct task *t, json_t *schema, struct refusal *r)
{
	char *text = json_write(schema);
	bool ok = task_set_grammar(t, JIT_GRAMMAR_JSON_SCHEMA, text, r);

	free(text);
	return ok;
}

/* The prompt names the function, and its arguments alone are left. */
static bool force_named(struct task *t, const json_t *functions, const struct served *m, struct refusal *r)
{
	const json_t *function = json_array_get(functions, 0);
	const char *name = json_string_value(json_object_get(function, "name"));
	json_t *parameters = field_value(function, "parameters");
	char behind[400];

	if (json_array_size(functions) != 1)
		return refuse(r, 400, "tool_choice",
		              "tool_choice requires a call, and the form of calls that this model's template teaches "
		              "supports that for one function alone; name it in tool_choice");
	const struct tools_row *row = &tools_rows[m->tools];
	int n = snprintf(behind, sizeof behind,
	                 m->tools == TOOLS_KIMI      ? "%sfunctions.%s:0%s"
	                 : m->tools == TOOLS_HARMONY ? "%s%s<|channel|>commentary json%s"
	                 : row->before_name          ? "call_0%s%s%s"
	                                             : "%s%s%s",
	                 row->before_name ? row->before_name : "", name, row->mark[2]);
	if (n < 0 || (size_t)n >= sizeof behind)
		return refuse(r, 400, "tools", "tools has a function whose name has more than 300 characters");
	return set_schema(t, parameters ? json_incref(parameters) : json_pack("{s:s}", "type", "object"), r) &&
	       open_call(t, m, behind, r);
}

static bool force(struct task *t, const json_t *functions, const struct served *m, bool named, struct refusal *r)
{
	const struct tools_row *row = &tools_rows[m->tools];

	if (row->body == BODY_NAMED)
		return force_named(t, functions, m, r);
	if (row->body != BODY_JSON)
		return refuse(r, 400, "tool_choice",
		              "tool_choice requires a call, which is not supported for the form of "
		              "calls that this model's template teaches");
	return set_schema(t, schema_of_all(functions, row, named), r) &&
	       (!row->mark[0] || open_call(t, m, row->list ? "" : "\n", r));
}

bool tool_choice_read(struct task *t, const json_t *body, const struct served *m, bool *forced, struct refusal *r)
{
	const json_t *choice = field_value(body, "tool_choice");
	const char *word = json_string_value(choice), *name = NULL;

	*forced = false;
	if (tools_form_in(m->tools, field_value(body, "tools") && !(word && strcmp(word, "none") == 0)))
		t->marks = m;
	if (!choice || (word && (strcmp(word, "auto") == 0 || strcmp(word, "none") == 0)))
		return true;
	if (json_is_object(choice))
		name = json_string_value(json_object_get(json_object_get(choice, "function"), "name"));
	if (!name && (!word || strcmp(word, "required") != 0))
		return refuse(r, 400, "tool_choice",
		              "tool_choice is neither none, auto, required nor a function's name");
	if (t->grammar != JIT_GRAMMAR_NONE)
		return refuse(r, 400, "tool_choice", "tool_choice requires a call, and response_format another form");
	json_t *functions = functions_of(body, name, r);
	bool ok = r->status == 0 && force(t, functions, m, name != NULL, r);
	json_decref(functions);
	*forced = ok && t->opened;
	return ok;
}
