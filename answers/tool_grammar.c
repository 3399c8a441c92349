/* answers/tool_grammar.c - answers that must be a call of a tool: the grammar that leaves nothing else. */
#include "answers/tool_grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "answers/call_arguments.h"
#include "base/bytes.h"
#include "base/json_write.h"

json_t *tool_grammar_functions(const json_t *tools)
{
	json_t *functions = json_array(), *tool;
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		json_t *function = json_object_get(tool, "function");
		json_t *name = json_object_get(function, "name"), *parameters = json_object_get(function, "parameters");
		if (!json_is_string(name))
			continue;
		json_t *one = json_object();
		json_put(one, "name", json_incref(name));
		if (parameters && !json_is_null(parameters))
			json_put(one, "parameters", json_incref(parameters));
		if (json_is_true(json_object_get(function, "strict")))
			json_put(one, "strict", json_true());
		json_add(functions, one);
	}
	if (!json_lacks())
		return functions;
	json_decref(functions);
	return NULL;
}

/* ---- schemas */

static json_t *object_of(json_t *o, json_t *properties, json_t *required)
{
	json_put(o, "type", json_string("object"));
	json_put(o, "properties", properties);
	json_put(o, "required", required);
	json_put(o, "additionalProperties", json_false());
	return o;
}

/* Whether a schema's "type" takes objects; absent, it does. */
static bool takes_objects(const json_t *type)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(type))
		return !type || !json_is_string(type) || strcmp(json_string_value(type), "object") == 0;
	json_array_foreach(type, i,
	                   one) if (json_is_string(one) && strcmp(json_string_value(one), "object") == 0) return true;
	return false;
}

/* The schema of a function's arguments, as it stands in another one: what it refers to is in it. They are an object,
 * also where the schema takes other values. */
static json_t *arguments_of(const json_t *function)
{
	json_t *parameters = json_object_get(function, "parameters");
	const json_t *type = json_object_get(parameters, "type");

	if (!parameters || json_is_null(parameters) || json_is_true(parameters))
		return json_pack("{s:s}", "type", "object");
	if (!json_is_object(parameters))
		return json_incref(parameters);
	if (!takes_objects(type))
		return json_false();
	json_t *own = json_copied(parameters, false);
	json_put(own, CALL_DOCUMENT, json_string("own"));
	if (!type || json_is_array(type))
		json_put(own, "type", json_string("object"));
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

/* ---- all forms (call.h) */

/* Whether the form can write this name. */
static bool has_name(const char *name, bool plain)
{
	static const char usual[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-.";

	return *name && (plain ? !strpbrk(name, "<>\"\\\n\r\t") : !name[strspn(name, usual)]);
}

/* Those of a schema's properties; deep: also those inside of values. */
static bool has_names(const json_t *schema, bool plain, bool deep)
{
	const char *name;
	json_t *one;
	size_t i;
	bool ok = true;

	json_object_foreach(json_object_get(schema, "properties"), name, one)
	{
		ok = ok && has_name(name, plain);
		ok = ok && (!deep || has_names(one, plain, true));
	}
	json_object_foreach((json_t *)(uintptr_t)schema, name, one) ok = ok && (!deep || has_names(one, plain, true));
	json_array_foreach(schema, i, one) ok = ok && (!deep || has_names(one, plain, true));
	return ok;
}

static bool check_names(const json_t *functions, const struct tools_row *row, struct error *err)
{
	bool plain = row->body == BODY_FUNCTIONS || row->body == BODY_KEYS || row->body == BODY_INVOKE;
	json_t *function;
	size_t i;

	json_array_foreach(functions, i, function)
	{
		const char *name = json_string_value(json_object_get(function, "name"));
		const json_t *parameters = json_object_get(function, "parameters");
		if (!has_name(name, false) ||
		    (row->body != BODY_NAMED && !has_names(parameters, plain, row->body == BODY_BRACES)))
			return error_set(err, ERROR_ARGUMENT,
			                 "a call is held to a form, and that which this model's template teaches "
			                 "cannot write the names of function %.200s or of its parameters",
			                 name);
	}
	return true;
}

json_t *tool_grammar_form(enum tools_form form)
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
	case BODY_JSON: return json_pack("{s:s}", "begun", tool_grammar_before_name(form));
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

const char *tool_grammar_before_name(enum tools_form form)
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

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	const int order = strcasecmp(*x, *y);

	return order ? order : strcmp(*x, *y);
}

/* A copy whose objects have their members in the order of dictsort, by which templates write arguments in braces: a
 * model writes them so, whatever order its request has. */
static json_t *in_order(const json_t *v)
{
	const char *name, **names;
	json_t *one, *o;
	size_t i, n = 0;

	if (json_is_array(v)) {
		o = json_array();
		json_array_foreach(v, i, one) json_add(o, in_order(one));
		return o;
	}
	if (!json_is_object(v) || !json_object_size(v))
		return json_incref((json_t *)(uintptr_t)v);
	if (!(names = malloc(json_object_size(v) * sizeof *names)))
		return NULL;
	json_object_foreach((json_t *)(uintptr_t)v, name, one) names[n++] = name;
	qsort(names, n, sizeof *names, by_name);
	o = json_object();
	for (i = 0; i < n; i++)
		json_put(o, names[i], in_order(json_object_get(v, names[i])));
	free(names);
	return o;
}

/* ---- all of it */

static bool lacks_memory(struct error *err)
{
	return error_set(err, ERROR_MEMORY, "no memory for the grammar of calls");
}

/* What is put behind the prompt: the marks that open a call, if the form has any, and what is to stand behind them. */
static bool open_call(struct tool_grammar *g, enum tools_form form, const char *behind, struct error *err)
{
	const struct tools_row *row = &tools_rows[form];
	struct bytes text = { 0 };

	/* Where the answer always begins in that form, the prompt ends with what stands before. */
	bytes_text(&text, row->mark[4] && !row->always ? row->mark[4] : "");
	bytes_text(&text, row->mark[4] && row->body == BODY_INVOKE ? "\n" : "");
	bytes_text(&text, row->opened || !row->mark[0] ? "" : row->mark[0]);
	bytes_text(&text, behind);
	bytes_add(&text, "", 1);
	g->opened = strdup(behind);
	if (g->opened && !text.lost) {
		g->prompt = text.p;
		return true;
	}
	bytes_free(&text);
	return lacks_memory(err);
}

/* The prompt names the function, and its arguments alone are left. */
static bool make_named(struct tool_grammar *g, const json_t *function, enum tools_form form, struct error *err)
{
	const struct tools_row *row = &tools_rows[form];
	const char *name = json_string_value(json_object_get(function, "name"));
	char behind[400];

	int n = snprintf(behind, sizeof behind,
	                 form == TOOLS_KIMI      ? "%sfunctions.%s:0%s"
	                 : form == TOOLS_HARMONY ? "%s%s<|channel|>commentary json%s"
	                 : row->before_name      ? "call_0%s%s%s"
	                                         : "%s%s%s",
	                 row->before_name ? row->before_name : "", name, row->mark[2]);
	if (n < 0 || (size_t)n >= sizeof behind)
		return error_set(err, ERROR_ARGUMENT, "tools has a function whose name has more than 300 characters");
	g->named = true;
	g->text = json_write(arguments_of(function));
	return g->text ? open_call(g, form, behind, err) : lacks_memory(err);
}

json_t *tool_grammar_object(const json_t *functions, enum tools_form form, bool one, struct error *err)
{
	const struct tools_row *row = &tools_rows[form];
	bool json = row->body == BODY_JSON;

	if (!json && !check_names(functions, row, err))
		return NULL;
	json_t *o = tool_grammar_form(form), *sorted = row->body == BODY_BRACES ? in_order(functions) : NULL;
	json_put(o, "schema", json ? schema_of_all(functions, row, one) : call_schema(sorted ? sorted : functions));
	json_decref(sorted);
	if (!o)
		lacks_memory(err);
	return o;
}

static bool make_in_form(struct tool_grammar *g, const json_t *functions, enum tools_form form, bool one,
                         struct error *err)
{
	json_t *o = tool_grammar_object(functions, form, one, err);

	if (!o)
		return false;
	g->in_form = true;
	g->text = json_write(o);
	return g->text ? open_call(g, form, tool_grammar_before_name(form), err) : lacks_memory(err);
}

bool tool_grammar_make(struct tool_grammar *g, const json_t *functions, enum tools_form form, bool one,
                       struct error *err)
{
	size_t i;
	json_t *one_of_them;

	*g = (struct tool_grammar){ 0 };
	json_array_foreach(functions, i, one_of_them) g->strict |= json_is_true(json_object_get(one_of_them, "strict"));
	if (tools_rows[form].body == BODY_NAMED && json_array_size(functions) == 1)
		return make_named(g, json_array_get(functions, 0), form, err);
	return make_in_form(g, functions, form, one, err);
}

void tool_grammar_free(struct tool_grammar *g)
{
	free(g->text);
	free(g->prompt);
	free(g->opened);
	*g = (struct tool_grammar){ 0 };
}
