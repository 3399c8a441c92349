/* server/responses/response_tools.c - the tools of responses that are no plain functions. */
#include "server/responses/response_tools.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/talk/allowed_tools.h"
#include "server/talk/custom_tools.h"
#include "server/request/fields.h"
#include "server/request/tool_notes.h"
#include "vision/prompt.h"

/* Tools with a type of their own, whose form their makers say. */
static const struct typed {
	const char *type, *call, *result, *member, *fixed, *description, *schema;
} typed[] = {
	{ "local_shell", "local_shell_call", "local_shell_call_output", "action", "exec",
	  "Runs a command on the user's machine, without a shell, and returns what it prints.",
	  "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
	  "\"working_directory\":{\"type\":\"string\"},\"timeout_ms\":{\"type\":\"integer\"},\"env\":{\"type\":"
	  "\"object\","
	  "\"additionalProperties\":{\"type\":\"string\"}}},\"required\":[\"command\"],\"additionalProperties\":"
	  "false}" },
	{ "shell", "shell_call", "shell_call_output", "action", NULL,
	  "Runs commands in a shell on the user's machine, and returns what each prints.",
	  "{\"type\":\"object\",\"properties\":{\"commands\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
	  "\"timeout_ms\":{\"type\":\"integer\"},\"max_output_length\":{\"type\":\"integer\"}},\"required\":["
	  "\"commands\"],"
	  "\"additionalProperties\":false}" },
	{ "apply_patch", "apply_patch_call", "apply_patch_call_output", "operation", NULL,
	  "Creates, changes or deletes a file. The diff of a change has hunks that begin with @@ and lines that begin "
	  "with "
	  "a space, + or -.",
	  "{\"type\":\"object\",\"properties\":{\"type\":{\"enum\":[\"create_file\",\"update_file\",\"delete_file\"]},"
	  "\"path\":{\"type\":\"string\"},\"diff\":{\"type\":\"string\"}},\"required\":[\"type\",\"path\"],"
	  "\"additionalProperties\":false}" },
};
enum { TYPED = sizeof typed / sizeof *typed };

static const struct typed *typed_of(const char *type)
{
	for (size_t i = 0; type && i < TYPED; i++)
		if (strcmp(typed[i].type, type) == 0)
			return &typed[i];
	return NULL;
}

bool response_tools_are_hosted(const char *type)
{
	static const char *const hosted[] = { "web_search",       "mcp",      "file_search",
		                              "code_interpreter", "computer", "image_generation" };

	for (size_t i = 0; i < sizeof hosted / sizeof *hosted; i++) {
		const size_t n = strlen(hosted[i]);
		if (strncmp(type, hosted[i], n) == 0 && (type[n] == 0 || type[n] == '_'))
			return true;
	}
	return false;
}

static const char *text_of(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

/* Namespaces mostly end with what stands between. */
static bool join(char out[200], const char *space, const char *name)
{
	const size_t n = space ? strlen(space) : 0;
	const bool joined = n >= 2 && strcmp(space + n - 2, "__") == 0;

	return snprintf(out, 200, "%s%s%s", space ? space : "", !n || joined ? "" : "__", name) < 200;
}

/* ---- tools into functions */

static json_t *function(const struct tool_intake *a, const json_t *tool, const char *name)
{
	static const char *const same[] = { "parameters", "strict" };
	json_t *o = tool_function(name, text_of(tool, "description"), NULL), *v;
	char path[80];

	for (size_t k = 0; k < 2; k++)
		if ((v = field_value(tool, same[k])))
			json_put(json_object_get(o, "function"), same[k], json_incref(v));
	snprintf(path, sizeof path, "%s.parameters", a->at);
	tool_note(o, path, false);
	return o;
}

static json_t *typed_tool(const struct tool_intake *a, const struct typed *t)
{
	json_t *o = tool_function(t->type, t->description,
	                          json_read_digits(t->schema, strlen(t->schema), UINT64_MAX, t->type, NULL));

	tool_note(o, a->at, false);
	return o;
}

static bool add_tool(struct tool_intake *a, json_t *list, const json_t *tool, const char *space);

static bool add_namespace(struct tool_intake *a, json_t *list, const json_t *tool)
{
	struct refusal *r = a->r;
	json_t *tools = field_array(tool, "tools", r), *one;
	char own[sizeof a->at];
	size_t i;

	snprintf(own, sizeof own, "%s", a->at);
	if (r->status) {
		refuse_within(r, own);
		snprintf(r->param, sizeof r->param, "tools");
		return false;
	}
	if (!json_is_string(json_object_get(tool, "name")))
		refuse(r, 400, "tools", "%s has no text as its name", own);
	json_array_foreach(tools, i, one)
	{
		snprintf(a->at, sizeof a->at, "%.25s.tools[%zu]", own, i);
		if (r->status || !add_tool(a, list, one, text_of(tool, "name")))
			break;
	}
	return r->status == 0;
}

/* space: the name of the namespace that it is in; NULL: of none. */
static bool add_tool(struct tool_intake *a, json_t *list, const json_t *tool, const char *space)
{
	struct refusal *r = a->r;
	const char *type = text_of(tool, "type"), *own = text_of(tool, "name");
	const struct typed *t = typed_of(type);
	char name[200];

	if (!json_is_object(tool))
		return refuse(r, 400, "tools", "%s is %s, expected an object", a->at, json_kind(tool));
	if (!type)
		return refuse(r, 400, "tools", "%s.type is %s, expected a text", a->at,
		              json_object_get(tool, "type") ? json_kind(json_object_get(tool, "type")) : "missing");
	if (!space && strcmp(type, "namespace") == 0)
		return add_namespace(a, list, tool);
	if (response_tools_are_hosted(type)) {
		tool_warn(a, json_sprintf("%s of type %.60s was left out: nothing here runs it", a->at, type));
		return true;
	}
	if (t) {
		json_add(list, typed_tool(a, t));
		return true;
	}
	if (strcmp(type, "function") != 0 && strcmp(type, "custom") != 0)
		return refuse(r, 400, "tools",
		              "%s is of type %.60s, expected function, custom, namespace, shell, local_shell or "
		              "apply_patch",
		              a->at, type);
	if (!own || !join(name, space, own))
		return refuse(r, 400, "tools", "%s has no text of at most 190 bytes as its name", a->at);
	json_add(list, type[0] == 'f' ? function(a, tool, name) : custom_tool(a, tool, name, false));
	return r->status == 0;
}

json_t *response_tools_functions(const json_t *body, json_t *warnings, struct refusal *r)
{
	struct tool_intake a = tool_intake(body, warnings, r);
	json_t *list = json_array(), *tool;
	size_t i;

	json_array_foreach(field_value(body, "tools"), i, tool)
	{
		snprintf(a.at, sizeof a.at, "tools[%zu]", i);
		if (!add_tool(&a, list, tool, NULL))
			break;
	}
	if (!r->status)
		return list;
	json_decref(list);
	return NULL;
}

bool response_tools_choice(const json_t *choice, char name[200], struct refusal *r)
{
	const char *type = text_of(choice, "type"), *own = text_of(choice, "name");
	const struct typed *t = typed_of(type);

	if (t)
		return join(name, NULL, t->type);
	if (type && own && (strcmp(type, "function") == 0 || strcmp(type, "custom") == 0) &&
	    join(name, text_of(choice, "namespace"), own))
		return true;
	return refuse(r, 400, "tool_choice", "tool_choice is of type %.60s, expected function or custom, with a name",
	              type ? type : "none");
}

json_t *response_tools_allowed(const json_t *choice, struct refusal *r)
{
	const json_t *given = allowed_tools_list(choice), *tool;
	json_t *o = json_copied(choice, false), *list = json_array(), *mode = allowed_tools_mode(choice);
	char name[200];
	size_t i;

	json_array_foreach(given, i, tool)
	{
		const char *type = text_of(tool, "type"), *own = allowed_tools_name(tool);
		if (type && response_tools_are_hosted(type))
			continue; /* it was left out of the tools, too */
		if (typed_of(type))
			json_add(list, json_pack("{s:s}", "name", type));
		else if (own && join(name, text_of(tool, "namespace"), own))
			json_add(list, json_pack("{s:o}", "name", json_text(name, strlen(name))));
		else
			refuse(r, 400, "tool_choice",
			       "tool_choice.tools[%zu] has no text of at most 190 bytes as its name", i);
	}
	json_object_del(o, "allowed_tools");
	json_put(o, "mode", json_incref(mode ? mode : json_null()));
	if (json_is_array(given))
		json_put(o, "tools", json_incref(list));
	json_decref(list);
	return o;
}

/* ---- calls into items */

/* The tool whose function has that name, and the namespace that it is in. */
static const json_t *find(const json_t *tools, const char *name, const char **space)
{
	json_t *tool, *inner;
	char flat[200];
	size_t i, k;

	json_array_foreach(tools, i, tool)
	{
		const char *type = text_of(tool, "type"), *own = text_of(tool, "name");
		*space = NULL;
		if (type && (typed_of(type) ? strcmp(type, name) == 0 : own && strcmp(own, name) == 0) &&
		    strcmp(type, "namespace") != 0)
			return tool;
		*space = own;
		json_array_foreach(json_object_get(tool, "tools"), k, inner)
		{
			const char *inside = text_of(inner, "name");
			if (inside && join(flat, own, inside) && strcmp(flat, name) == 0)
				return inner;
		}
	}
	*space = NULL;
	return NULL;
}

enum response_call response_tools_call(const json_t *tools, const char *name, const char *arguments, size_t n,
                                       bool whole, json_t *item)
{
	const char *space;
	const json_t *tool = find(tools, name, &space);
	const struct typed *t = typed_of(text_of(tool, "type"));
	const char *own = tool && space ? text_of(tool, "name") : name, *type = text_of(tool, "type");
	json_t *given = whole ? json_read_plain(arguments, n) : NULL;

	if (t) {
		json_t *member = json_is_object(given) ? json_incref(given) : json_object();
		if (t->fixed)
			json_put(member, "type", json_string(t->fixed));
		json_put(item, "type", json_string(t->call));
		json_put(item, t->member, member);
	} else if (type && strcmp(type, "custom") == 0) {
		json_put(item, "type", json_string("custom_tool_call"));
		json_put(item, "name", json_text(own, strlen(own)));
		json_put(item, "input", tool_input(arguments, n, whole));
	} else {
		json_put(item, "type", json_string("function_call"));
		json_put(item, "name", json_text(own, strlen(own)));
		json_put(item, "arguments", json_text(arguments, n));
	}
	if (tool && space)
		json_put(item, "namespace", json_text(space, strlen(space)));
	json_decref(given);
	return t ? CALL_TYPED : type && strcmp(type, "custom") == 0 ? CALL_CUSTOM : CALL_FUNCTION;
}

/* ---- items into calls */

static bool lacks(const char *type, const char *name, struct refusal *r)
{
	return refuse(r, 400, "input", "input has a %.60s without a text as its %s", type, name);
}

static json_t *call_of(const json_t *item, const char *name, json_t *arguments)
{
	json_t *call = json_object(), *function = json_object(), *id = json_object_get(item, "call_id");

	json_put(function, "name", json_text(name, strlen(name)));
	json_put(function, "arguments", arguments);
	json_put(call, "id", json_incref(id ? id : json_object_get(item, "id")));
	json_put(call, "type", json_string("function"));
	json_put(call, "function", function);
	return call;
}

static json_t *spelled(json_t *value)
{
	char *text = json_spell(value, JSON_COMPACT);
	json_t *o = text ? json_string(text) : NULL;

	free(text);
	json_decref(value);
	return o;
}

/* Texts, pictures and files, as in messages, where a shell's output has no types. */
static bool is_content(const json_t *output)
{
	const json_t *part = json_array_get(output, 0);
	const char *type = text_of(part, "type");

	return json_is_string(json_object_get(part, "text")) ||
	       (type && (prompt_is_picture(type) || strncmp(type, "input_", 6) == 0));
}

/* What a shell's call gave, for a model to read. */
static json_t *output_of(const json_t *item)
{
	json_t *output = json_object_get(item, "output");

	if (!output || json_is_null(output))
		return json_string("");
	if (json_is_string(output) || is_content(output))
		return json_incref(output);
	return spelled(json_incref(output));
}

static bool named_call(const json_t *item, const char *type, json_t **made, struct refusal *r)
{
	const bool is_custom = strcmp(type, "custom_tool_call") == 0;
	const char *own = text_of(item, "name"), *input = text_of(item, is_custom ? "input" : "arguments");
	char name[200];

	if (!text_of(item, "call_id"))
		return lacks(type, "call_id", r);
	if (!own || !join(name, text_of(item, "namespace"), own))
		return lacks(type, "name", r);
	if (!input)
		return lacks(type, is_custom ? "input" : "arguments", r);
	*made = call_of(item, name, is_custom ? spelled(json_pack("{s:s}", "input", input)) : json_string(input));
	return true;
}

bool response_tools_item(const json_t *item, enum response_item *kind, json_t **made, struct refusal *r)
{
	const char *type = text_of(item, "type");
	const struct typed *t = NULL;

	*kind = ITEM_OTHER;
	*made = NULL;
	if (!type)
		return true;
	for (size_t i = 0; i < TYPED; i++)
		if (strcmp(type, typed[i].call) == 0 || strcmp(type, typed[i].result) == 0)
			t = &typed[i];
	if (strcmp(type, "function_call") == 0 || strcmp(type, "custom_tool_call") == 0) {
		*kind = ITEM_IS_CALL;
		return named_call(item, type, made, r);
	}
	const bool result = strcmp(type, "function_call_output") == 0 || strcmp(type, "custom_tool_call_output") == 0;
	if (!t && !result)
		return true;
	const char *id = text_of(item, "call_id") ? text_of(item, "call_id") : t ? text_of(item, "id") : NULL;
	if (!id)
		return lacks(type, "call_id", r);
	if (t && strcmp(type, t->call) == 0) {
		json_t *member = json_object_get(item, t->member);
		if (!json_is_object(member))
			return refuse(r, 400, "input", "input has a %.60s without an object as its %s", type,
			              t->member);
		*kind = ITEM_IS_CALL;
		*made = call_of(item, t->type, spelled(json_incref(member)));
		return true;
	}
	*kind = ITEM_IS_RESULT;
	*made = json_object();
	json_put(*made, "role", json_string("tool"));
	json_put(*made, "tool_call_id", json_string(id));
	json_put(*made, "content", output_of(item));
	return true;
}
