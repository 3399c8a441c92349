/* server/talk/old_functions.c - functions as chat completions had them before tools. */
#include "server/talk/old_functions.h"

#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "server/request/fields.h"
#include "base/json_write.h"
#include "server/request/tool_notes.h"

bool old_functions_are_in(const json_t *body)
{
	return json_is_array(field_value(body, "functions")) && json_array_size(field_value(body, "functions")) > 0;
}

static bool take_functions(json_t *body, struct refusal *r)
{
	json_t *functions = field_array(body, "functions", r), *tools, *function;
	char path[80];
	size_t i;

	if (r->status)
		return false;
	if (json_array_size(functions) == 0)
		return true;
	if (field_value(body, "tools"))
		return refuse(r, 400, "functions", "functions and tools cannot both be given");
	tools = json_array();
	json_array_foreach(functions, i, function)
	{
		json_t *tool;
		if (!json_is_object(function) || !json_is_string(json_object_get(function, "name"))) {
			json_decref(tools);
			return refuse(r, 400, "functions",
			              "functions[%zu] is %s, expected an object with a text as its name", i,
			              json_is_object(function) ? "an object without one" : json_kind(function));
		}
		tool = json_object();
		json_put(tool, "type", json_string("function"));
		json_put(tool, "function", json_incref(function));
		snprintf(path, sizeof path, "functions[%zu].parameters", i);
		tool_note(tool, path, false);
		json_add(tools, tool);
	}
	json_put(body, "tools", tools);
	json_put(body, "parallel_tool_calls", json_false());
	return true;
}

static bool take_choice(json_t *body, struct refusal *r)
{
	json_t *choice = field_value(body, "function_call"), *name = json_object_get(choice, "name");
	const char *word = json_string_value(choice);
	const bool usual = word && (strcmp(word, "none") == 0 || strcmp(word, "auto") == 0);

	if (!choice)
		return true;
	if (word && !usual)
		return refuse(
			r, 400, "function_call",
			"function_call is \"%.80s\", expected \"none\", \"auto\" or an object with a function's name",
			word);
	if (!usual && !json_is_string(name))
		return refuse(r, 400, "function_call",
		              "function_call is %s, expected \"none\", \"auto\" or an object with a function's name",
		              json_kind(choice));
	if (!usual && !old_functions_are_in(body))
		return refuse(r, 400, "function_call", "function_call names a function, and there are no functions");
	if (!old_functions_are_in(body))
		return true;
	if (usual) {
		json_put(body, "tool_choice", json_incref(choice));
		return true;
	}
	json_t *function = json_object(), *made = json_object();
	json_put(function, "name", json_incref(name));
	json_put(made, "type", json_string("function"));
	json_put(made, "function", function);
	json_put(body, "tool_choice", made);
	return true;
}

/* A call of the assistant, to which the next result of that function belongs. */
static bool take_call(json_t *message, size_t number, struct refusal *r)
{
	json_t *given = field_value(message, "function_call"), *calls = json_array(), *call = json_object();
	char id[40];

	snprintf(id, sizeof id, "call_%zu", number);
	json_put(call, "id", json_string(id));
	json_put(call, "type", json_string("function"));
	json_put(call, "function", json_incref(given));
	json_add(calls, call);
	bool ok = json_is_object(given) && json_is_string(json_object_get(given, "name"));
	if (ok)
		json_put(message, "tool_calls", json_incref(calls));
	json_decref(calls);
	json_object_del(message, "function_call");
	return ok || refuse(r, 400, "messages", "message %zu has a function_call without a text as its name", number);
}

/* The number of the last message before `number` that calls the function; of none: its own. */
static size_t caller_of(const json_t *messages, size_t number, const char *name)
{
	for (size_t i = number; i-- > 0;) {
		const json_t *call = json_array_get(json_object_get(json_array_get(messages, i), "tool_calls"), 0);
		const char *called = json_string_value(json_object_get(json_object_get(call, "function"), "name"));
		if (called && (!name || strcmp(called, name) == 0))
			return i;
	}
	return number;
}

static bool take_messages(json_t *body, struct refusal *r)
{
	json_t *messages = field_value(body, "messages"), *message;
	char id[40];
	size_t i;

	json_array_foreach(messages, i, message)
	{
		const char *role = json_string_value(json_object_get(message, "role"));
		if (field_value(message, "function_call") && !take_call(message, i, r))
			return false;
		if (!role || strcmp(role, "function") != 0)
			continue;
		const char *name = json_string_value(json_object_get(message, "name"));
		snprintf(id, sizeof id, "call_%zu", caller_of(messages, i, name));
		json_put(message, "role", json_string("tool"));
		json_put(message, "tool_call_id", json_string(id));
	}
	return true;
}

bool old_functions_to_tools(json_t *body, struct refusal *r)
{
	if (!take_functions(body, r) || !take_choice(body, r) || !take_messages(body, r))
		return false;
	json_object_del(body, "functions");
	json_object_del(body, "function_call");
	return true;
}
