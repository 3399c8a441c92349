/* server/talk/allowed_tools.c - which of a request's tools may be called. */
#include "server/talk/allowed_tools.h"

#include <string.h>

#include "base/json_read.h"
#include "server/request/fields.h"

static const char *text_of(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

/* Where mode and tools stand. */
static const json_t *inside(const json_t *choice)
{
	const json_t *o = json_object_get(choice, "allowed_tools");

	return json_is_object(o) ? o : choice;
}

bool allowed_tools_is(const json_t *choice)
{
	const char *type = text_of(choice, "type");

	return type && strcmp(type, "allowed_tools") == 0;
}

json_t *allowed_tools_mode(const json_t *choice) { return field_value(inside(choice), "mode"); }

bool allowed_tools_required(const json_t *choice)
{
	const char *mode = json_string_value(allowed_tools_mode(choice));

	return mode && strcmp(mode, "required") == 0;
}

const json_t *allowed_tools_list(const json_t *choice) { return json_object_get(inside(choice), "tools"); }

const char *allowed_tools_name(const json_t *tool)
{
	static const char *const within[] = { "function", "custom" };
	const char *name = text_of(tool, "name");

	for (size_t i = 0; i < 2 && !name; i++)
		name = text_of(json_object_get(tool, within[i]), "name");
	return name;
}

bool allowed_tools_have(const json_t *choice, const char *name)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(allowed_tools_list(choice), i, tool)
	{
		const char *own = allowed_tools_name(tool);
		if (own && name && strcmp(own, name) == 0)
			return true;
	}
	return false;
}

bool allowed_tools_check(const json_t *choice, struct refusal *r)
{
	const json_t *list = allowed_tools_list(choice), *mode = allowed_tools_mode(choice), *tool;
	const char *word = json_string_value(mode);
	size_t i;

	if (!word || (strcmp(word, "auto") != 0 && strcmp(word, "required") != 0))
		return refuse(
			r, 400, "tool_choice",
			"tool_choice is of type allowed_tools, and its mode is %s%.40s, expected auto or required",
			word   ? ""
			: mode ? json_kind(mode)
			       : "missing",
			word ? word : "");
	if (!json_is_array(list))
		return refuse(r, 400, "tool_choice",
		              "tool_choice is of type allowed_tools, and its tools are %s, expected an array",
		              list ? json_kind(list) : "missing");
	json_array_foreach(list, i, tool)
	{
		const char *name = allowed_tools_name(tool);
		if (!name || !*name)
			return refuse(r, 400, "tool_choice", "tool_choice.tools[%zu] has no text as its name", i);
	}
	return true;
}
