/* server/tool_choice.c - answers that must be a call of a tool: the grammar that leaves nothing else. */
#include "server/tool_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/call_arguments.h"
#include "answers/tool_calls.h"
#include "base/bytes.h"
#include "loaders/json_write.h"
#include "runtime/jitrun_grammar.h"
#include "server/fields.h"

static json_t *object_of(json_t *o, json_t *properties, json_t *required)
{
	json_put(o, "type", json_string("object"));
	json_put(o, "properties", properties);
	json_put(o, "required", required);
	json_put(o, "additionalProperties", json_false());
	return o;
}

/* The schema of a function's arguments, as it stands in another one: what it refers to is in it. */
static json_t *arguments_of(const json_t *function)
{
	json_t *parameters = field_value(function, "parameters");

	if (!parameters)
		return json_pack("{s:s}", "type", "object");
	if (!json_is_object(parameters))
		return json_incref(parameters);
	json_t *own = json_copied(parameters, false);
	json_put(own, CALL_DOCUMENT, json_string("own"));
	return own;
}

/* {"type":"object","properties":{NAME:{"const":...},ARGUMENTS:SCHEMA},"required":[...]} */
static json_t *schema_of(json_t *function, const struct tools_row *row)
{
	json_t *o = json_object(), *properties = json_object(), *name = json_object(), *required = json_array();

	if (!row->name) { /* {NAME: SCHEMA} */
		const char *own = json_string_value(json_object_get(function, "name"));
		json_put(properties, own, arguments_of(function));
		json_decref(name);
		json_add(required, json_string(own));
		return object_of(o, properties, required);
	}
	json_put(name, "const", json_incref(json_object_get(function, "name")));
	json_put(properties, row->name, name);
	json_put(properties, row->arguments, arguments_of(function));
	json_add(required, json_string(row->name));
	json_add(required, json_string(row->arguments));
	return object_of(o, properties, required);
}

/* The functions that may be called, or the one of that name: n of them, 0: refused. The task notes their places. */
static json_t *functions_of(struct task *t, const json_t *body, const char *wanted, struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r), *tool, *any = json_array();
	size_t i;

	free(t->grammar_tools);
	t->n_grammar_tools = 0;
	if (!(t->grammar_tools = calloc(json_array_size(tools) + 1, sizeof *t->grammar_tools)))
		refuse(r, 503, NULL, "There is no memory for this request.");
	json_array_foreach(tools, i, tool)
	{
		json_t *function = json_object_get(tool, "function");
		const char *name = json_string_value(json_object_get(function, "name"));
		if (!name)
			refuse(r, 400, "tools", "tool %zu has no function with a name", i);
		else if (t->grammar_tools && (!wanted || strcmp(wanted, name) == 0)) {
			json_add(any, json_incref(function));
			t->grammar_tools[t->n_grammar_tools++] = (unsigned)i;
		}
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

/* Appends to the prompt the marks that open a call, if the form has any, and what is to stand behind them. */
static bool open_call(struct task *t, const struct served *m, const char *behind, struct refusal *r)
{
	const struct tools_row *row = &tools_rows[m->tools];
	struct bytes text = { 0 };
	int32_t *ids = NULL, *all = NULL;
	size_t n = 0;

	/* Where the answer always begins in that form, the prompt ends with what stands before. */
	bytes_text(&text, row->mark[4] && !row->always ? row->mark[4] : "");
	bytes_text(&text, row->mark[4] && row->body == BODY_INVOKE ? "\n" : "");
	bytes_text(&text, row->opened || !row->mark[0] ? "" : row->mark[0]);
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
	bool ok = task_set_grammar(t, JIT_GRAMMAR_JSON_SCHEMA, text, "tools", r);

	free(text);
	return ok;
}

/* The prompt names the function, and its arguments alone are left. */
static bool force_named(struct task *t, const json_t *functions, const struct served *m, struct refusal *r)
{
	const json_t *function = json_array_get(functions, 0);
	const char *name = json_string_value(json_object_get(function, "name"));
	char behind[400];

	const struct tools_row *row = &tools_rows[m->tools];
	int n = snprintf(behind, sizeof behind,
	                 m->tools == TOOLS_KIMI      ? "%sfunctions.%s:0%s"
	                 : m->tools == TOOLS_HARMONY ? "%s%s<|channel|>commentary json%s"
	                 : row->before_name          ? "call_0%s%s%s"
	                                             : "%s%s%s",
	                 row->before_name ? row->before_name : "", name, row->mark[2]);
	if (n < 0 || (size_t)n >= sizeof behind)
		return refuse(r, 400, "tools", "tools has a function whose name has more than 300 characters");
	t->grammar_named = true;
	return set_schema(t, arguments_of(function), r) && open_call(t, m, behind, r);
}

/* ---- all forms (call.h) */

/* Names that the form can write; deep: also those inside of values. */
static bool has_names(const json_t *schema, bool plain, bool deep)
{
	static const char usual[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-.";
	const char *name;
	json_t *one;
	size_t i;
	bool ok = true;

	json_object_foreach(json_object_get(schema, "properties"), name, one)
	{
		ok = ok && *name && (plain ? !strpbrk(name, "<>\"\\\n\r\t") : !name[strspn(name, usual)]);
		ok = ok && (!deep || has_names(one, plain, true));
	}
	json_object_foreach((json_t *)(uintptr_t)schema, name, one) ok = ok && (!deep || has_names(one, plain, true));
	json_array_foreach(schema, i, one) ok = ok && (!deep || has_names(one, plain, true));
	return ok;
}

static bool check_names(const json_t *functions, const struct tools_row *row, struct refusal *r)
{
	bool plain = row->body == BODY_FUNCTIONS || row->body == BODY_KEYS || row->body == BODY_INVOKE;
	json_t *function;
	size_t i;

	json_array_foreach(functions, i, function)
	{
		const char *name = json_string_value(json_object_get(function, "name"));
		const json_t *parameters = json_object_get(function, "parameters");
		json_t *own = json_pack("{s:{s:n}}", "properties", name);
		bool ok = own && has_names(own, false, false);
		json_decref(own);
		if (!ok || (row->body != BODY_NAMED && !has_names(parameters, plain, row->body == BODY_BRACES)))
			return refuse(r, 400, "tools",
			              "tool_choice requires a call, and the form of calls that this model's template "
			              "teaches cannot write the names of function %s or of its parameters",
			              name);
	}
	return true;
}

json_t *tool_choice_form(enum tools_form form)
{
	const struct tools_row *row = &tools_rows[form];
	const char *element = row->name, *word = row->name ? row->name : "";
	bool lines = form == TOOLS_ELEMENTS, told = form == TOOLS_DSML || form == TOOLS_DSML_4;

	switch (row->body) {
	case BODY_FUNCTIONS:
		return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "values", "plain", "behind_name", ">",
		                 "first_key", "\n<parameter=", "next_key", "\n<parameter=", "behind_key",
		                 lines ? ">\n" : ">", "behind_value", lines ? "\n</parameter>" : "</parameter>", "end",
		                 "\n</function>");
	case BODY_KEYS:
		return json_pack("{s:s, s:b, s:s+, s:s++, s:s++, s:s+++++, s:s++}", "values", "plain", "loose", 1,
		                 "behind_name", form == TOOLS_HY ? "<tool_sep:opensource>" : "", "", "first_key",
		                 "\n<arg_key", word, ">", "next_key", "\n<arg_key", word, ">", "behind_key",
		                 "</arg_key", word, ">\n<arg_value", word, ">", "", "behind_value", "</arg_value", word,
		                 ">");
	case BODY_INVOKE:
		return json_pack("{s:s, s:b, s:b, s:s, s:s++, s:s++, s:s, s:s, s:s++, s:s+}", "values", "plain",
		                 "loose", 1, "cdata", form == TOOLS_PARAM, "behind_name", "\">", "first_key", "\n<",
		                 element, " name=\"", "next_key", "\n<", element, " name=\"", "behind_key",
		                 told ? "\" string=\"false\">" : "\">", "behind_text_key",
		                 told ? "\" string=\"true\">" : "", "behind_value", "</", element, ">", "end", "\n",
		                 row->mark[1]);
	case BODY_PYTHON:
		return json_pack("{s:s, s:s, s:s, s:s, s:s}", "values", "python", "behind_name", "(", "next_key", ", ",
		                 "behind_key", "=", "end", ")]");
	case BODY_BRACES:
		return json_pack("{s:s, s:s, s:s, s:s, s:s}", "values", "braces", "behind_name", "{", "next_key", ",",
		                 "behind_key", ":", "end", "}");
	case BODY_JSON: return json_pack("{s:s}", "begun", tool_choice_before_name(form));
	default:
		return json_pack("{s:s, s:s+}", "values", "json", "behind_name",
		                 form == TOOLS_KIMI      ? ":0"
		                 : form == TOOLS_HARMONY ? "<|channel|>commentary json"
		                                         : "",
		                 row->mark[2]);
	}
}

/* JSON up to the name, so that it comes before the arguments and these can go on as they are generated. */
static const char *before_json_name(enum tools_form form)
{
	const struct tools_row *row = &tools_rows[form];
	bool tool = row->name && strcmp(row->name, "tool_name") == 0;

	if (!row->name)
		return "[{\"";
	if (!row->list)
		return row->mark[0] ? "\n{\"name\": \"" : "{\"name\": \"";
	return !tool ? "[{\"name\": \"" : form == TOOLS_JSON ? "\n[{\"tool_name\": \"" : "[{\"tool_name\": \"";
}

const char *tool_choice_before_name(enum tools_form form)
{
	if (tools_rows[form].body == BODY_JSON)
		return before_json_name(form);
	return form == TOOLS_KIMI                        ? "functions."
	       : form == TOOLS_SOLAR                     ? "call_0<|tool_call:name|>"
	       : tools_rows[form].body == BODY_FUNCTIONS ? "\n<function="
	       : tools_rows[form].body == BODY_PYTHON    ? "["
	                                                 : "";
}

static json_t *call_schema(const json_t *functions)
{
	return schema_of_all(functions, &(struct tools_row){ .name = "name", .arguments = "arguments" }, false);
}

static bool force_form(struct task *t, const json_t *functions, const struct served *m, bool named, struct refusal *r)
{
	enum tools_form form = (enum tools_form)m->tools;
	const struct tools_row *row = &tools_rows[form];
	bool json = row->body == BODY_JSON;

	if (!json && !check_names(functions, row, r))
		return false;
	json_t *o = tool_choice_form(form);
	json_put(o, "schema", json ? schema_of_all(functions, row, named || t->one_call) : call_schema(functions));
	char *text = json_write(o);
	bool ok = task_set_grammar(t, JIT_GRAMMAR_CALL, text, "tools", r);
	free(text);
	return ok && open_call(t, m, tool_choice_before_name(form), r);
}

static bool force(struct task *t, const json_t *functions, const struct served *m, bool named, struct refusal *r)
{
	const struct tools_row *row = &tools_rows[m->tools];

	if (row->body == BODY_NAMED && json_array_size(functions) == 1)
		return force_named(t, functions, m, r);
	return force_form(t, functions, m, named, r);
}

/* Calls are of these functions alone, and elements do not say which of their values are texts: the schemas do. */
static bool keep_functions(struct task *t, const json_t *body, struct refusal *r)
{
	json_t *tools = field_value(body, "tools"), *tool, *functions;
	size_t i;

	if (!json_is_array(tools) || json_array_size(tools) == 0)
		return true;
	functions = json_array();
	json_array_foreach(tools, i, tool)
	{
		json_t *function = json_object_get(tool, "function"), *one = json_object();
		json_t *parameters = field_value(function, "parameters");
		if (json_is_string(json_object_get(function, "name"))) {
			json_put(one, "name", json_incref(json_object_get(function, "name")));
			if (parameters)
				json_put(one, "parameters", json_incref(parameters));
			json_add(functions, json_incref(one));
		}
		json_decref(one);
	}
	if (json_array_size(functions) == 0) {
		json_decref(functions);
		return true;
	}
	t->functions = json_write(functions);
	return t->functions || refuse(r, 503, NULL, "There is no memory for this request.");
}

bool tool_choice_read(struct task *t, const json_t *body, const struct served *m, bool *forced, struct refusal *r)
{
	const json_t *choice = field_value(body, "tool_choice");
	const char *word = json_string_value(choice), *name = NULL;

	*forced = false;
	if (tools_form_in(m->tools, field_value(body, "tools") && !(word && strcmp(word, "none") == 0)))
		t->marks = m;
	if (!keep_functions(t, body, r))
		return false;
	if (!choice || (word && (strcmp(word, "auto") == 0 || strcmp(word, "none") == 0)))
		return true;
	if (json_is_object(choice))
		name = json_string_value(json_object_get(json_object_get(choice, "function"), "name"));
	if (!name && (!word || strcmp(word, "required") != 0))
		return refuse(r, 400, "tool_choice",
		              "tool_choice is neither none, auto, required nor a function's name");
	if (t->grammar != JIT_GRAMMAR_NONE)
		return refuse(r, 400, "tool_choice", "tool_choice requires a call, and response_format another form");
	json_t *functions = functions_of(t, body, name, r);
	bool ok = r->status == 0 && force(t, functions, m, name != NULL, r);
	json_decref(functions);
	*forced = ok && t->opened;
	return ok;
}
