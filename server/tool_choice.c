/* server/tool_choice.c - answers that must be a call of a tool: the grammar that leaves nothing else. */
#include "server/tool_choice.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/jitrun_grammar.h"
#include "server/fields.h"
#include "server/json_write.h"
#include "server/tool_calls.h"

/* {"type":"object","properties":{"name":{"const":NAME},"arguments":SCHEMA},"required":[...]} */
static json_t *schema_of(json_t *function, const char *member)
{
	json_t *o = json_object(), *properties = json_object(), *name = json_object(), *required = json_array();
	json_t *parameters = field_value(function, "parameters");

	json_put(name, "const", json_incref(json_object_get(function, "name")));
	json_put(properties, "name", name);
	json_put(properties, member, parameters ? json_incref(parameters) : json_pack("{s:s}", "type", "object"));
	json_add(required, json_string("name"));
	json_add(required, json_string(member));
	json_put(o, "type", json_string("object"));
	json_put(o, "properties", properties);
	json_put(o, "required", required);
	json_put(o, "additionalProperties", json_false());
	return o;
}

/* One of the tools, or the one of that name. NULL: refused. */
static json_t *schema_of_tools(const json_t *body, const char *wanted, const char *member, struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r), *tool, *any = json_array(), *o = json_object();
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		json_t *function = json_object_get(tool, "function");
		const char *name = json_string_value(json_object_get(function, "name"));
		if (!name)
			refuse(r, 400, "tools", "tool %zu has no function with a name", i);
		else if (!wanted || strcmp(wanted, name) == 0)
			json_add(any, schema_of(function, member));
	}
	if (json_array_size(any) == 0)
		refuse(r, 400, "tool_choice",
		       wanted ? "tool_choice names a function that tools does not have"
		              : "tool_choice requires a call, and there are no tools");
	json_put(o, "anyOf", any);
	if (r->status == 0)
		return o;
	json_decref(o);
	return NULL;
}

/* Appends the mark that opens a call to the prompt. */
static bool open_call(struct task *t, const jit_model *model, struct refusal *r)
{
	static const char mark[] = "<tool_call>\n";
	int32_t *ids = NULL, *all = NULL;
	size_t n = 0;

	if (models_go_on(model, mark, true, &ids, &n, NULL))
		all = realloc(t->ids, (t->n_ids + n) * sizeof *all);
	if (all) {
		memcpy(all + t->n_ids, ids, n * sizeof *ids);
		t->ids = all;
		t->n_ids += n;
	}
	free(ids);
	return all || refuse(r, 503, NULL, "There is no memory for this request.");
}

bool tool_choice_read(struct task *t, const json_t *body, const jit_model *model, int form, bool *forced,
                      struct refusal *r)
{
	const json_t *choice = field_value(body, "tool_choice");
	const char *word = json_string_value(choice), *name = NULL;

	*forced = false;
	if (!choice || (word && (strcmp(word, "auto") == 0 || strcmp(word, "none") == 0)))
		return true;
	if (json_is_object(choice))
		name = json_string_value(json_object_get(json_object_get(choice, "function"), "name"));
	if (!name && (!word || strcmp(word, "required") != 0))
		return refuse(r, 400, "tool_choice",
		              "tool_choice is neither none, auto, required nor a function's name");
	if (form != TOOLS_TAGGED && form != TOOLS_BARE)
		return refuse(r, 400, "tool_choice",
		              "tool_choice requires a call, which is not supported for the form of "
		              "calls that this model's template teaches");
	if (t->grammar != JIT_GRAMMAR_NONE)
		return refuse(r, 400, "tool_choice", "tool_choice requires a call, and response_format another form");
	json_t *schema = schema_of_tools(body, name, form == TOOLS_BARE ? "parameters" : "arguments", r);
	char *text = schema ? json_write(schema) : NULL;
	bool ok = schema && task_set_grammar(t, JIT_GRAMMAR_JSON_SCHEMA, text, r);
	free(text);
	*forced = form == TOOLS_TAGGED;
	return ok && (!*forced || open_call(t, model, r));
}
