#include "server/request/tool_notes.h"

#include <string.h>

#include "answers/tool_grammar.h"
#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"

#define NOTES "x-jitrun"

void tool_notes_remove(json_t *body)
{
	json_t *tool;
	size_t i;

	json_array_foreach(json_object_get(body, "tools"), i, tool) json_object_del(tool, NOTES);
}

void tool_note(json_t *tool, const char *path, bool custom)
{
	json_put(tool, NOTES, json_pack("{s:s, s:b}", "path", path, "custom", custom));
}

void tool_note_held(json_t *tool, bool held) { json_put(json_object_get(tool, NOTES), "held", json_boolean(held)); }

enum tool_held tool_is_held(const json_t *tool)
{
	const json_t *held = json_object_get(json_object_get(tool, NOTES), "held");

	return !held ? TOOL_NOT_NOTED : json_is_true(held) ? TOOL_HELD : TOOL_NOT_HELD;
}

const char *tool_path(const json_t *tool)
{
	return json_string_value(json_object_get(json_object_get(tool, NOTES), "path"));
}

bool tool_is_custom(const json_t *tools, const char *name)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		const char *own = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
		if (own && name && strcmp(own, name) == 0)
			return json_is_true(json_object_get(json_object_get(tool, NOTES), "custom"));
	}
	return false;
}

static json_t *read_input(const char *arguments, size_t n)
{
	json_t *given = json_read_plain(arguments, n), *input = json_object_get(given, "input");

	input = json_is_string(input) ? json_incref(input) : NULL;
	json_decref(given);
	return input;
}

/* Up to its last whole character, which an escape of two halves may be. */
static json_t *cut_input(const char *arguments, size_t n)
{
	enum { CHARACTER_BYTES = 12 };
	static const char end[] = "\"}";
	json_t *input = NULL;

	for (size_t less = 0; !input && less <= CHARACTER_BYTES && less <= n; less++) {
		struct bytes whole = { 0 };
		bytes_add(&whole, arguments, n - less);
		bytes_add(&whole, end, sizeof end - 1);
		input = whole.lost ? NULL : read_input(whole.p, whole.n);
		bytes_free(&whole);
	}
	return input ? input : json_string("");
}

json_t *tool_input(const char *arguments, size_t n, bool whole)
{
	json_t *input = whole ? read_input(arguments, n) : cut_input(arguments, n);

	return input ? input : json_text(arguments, n);
}

/* Of the text of a custom tool. */
static json_t *input_of(const json_t *tool)
{
	const json_t *parameters = json_object_get(json_object_get(tool, "function"), "parameters");

	return json_object_get(json_object_get(parameters, "properties"), "input");
}

json_t *tools_shown(json_t *tools)
{
	json_t *list, *tool, *shown;
	size_t i;

	if (!json_is_array(tools))
		return json_incref(tools);
	list = json_array();
	json_array_foreach(tools, i, tool)
	{
		const bool custom = json_is_true(json_object_get(json_object_get(tool, NOTES), "custom"));
		shown = json_is_object(tool) ? json_copied(tool, custom) : json_incref(tool);
		if (json_is_object(tool))
			json_object_del(shown, NOTES);
		if (custom)
			json_object_del(input_of(shown), TOOLS_LARK);
		json_add(list, shown);
	}
	return list;
}
