/* server/talk/history_tools.c - tools as templates take them: with all members that the standard leaves out. */
#include <string.h>

#include "base/json_write.h"
#include "server/talk/history.h"


static void fill(json_t *o, const char *name, json_t *value)
{
	json_t *had = json_object_get(o, name);

	if (had && !json_is_null(had))
		json_decref(value);
	else
		json_put(o, name, value);
}

/* The type of a property that does not say it in one word. */
static json_t *type_of(const json_t *property)
{
	static const char *const several[] = { "anyOf", "oneOf", "allOf" };
	const json_t *one, *type = json_object_get(property, "type");
	size_t i, k;

	json_array_foreach(type, i, one)
	{
		if (json_is_string(one) && strcmp(json_string_value(one), "null") != 0)
			return json_string(json_string_value(one));
	}
	for (i = 0; i < sizeof several / sizeof *several; i++)
		json_array_foreach(json_object_get(property, several[i]), k, one)
		{
			const char *word = json_string_value(json_object_get(one, "type"));
			if (word && strcmp(word, "null") != 0)
				return json_string(word);
		}
	return json_string(json_object_get(property, "$ref") || json_object_get(property, "properties") ? "object"
	                   : json_object_get(property, "items")                                         ? "array"
	                                                                                                : "string");
}

/* What templates look for in a schema: a type in each, and what types of objects and arrays have inside. */
static void fill_schema(json_t *schema, unsigned depth)
{
	json_t *property;
	const char *name;

	if (!json_is_object(schema) || depth > 20)
		return;
	if (!json_is_string(json_object_get(schema, "type")))
		json_put(schema, "type", type_of(schema));
	fill(schema, "description", json_string(""));
	const char *type = json_string_value(json_object_get(schema, "type"));
	if (type && strcmp(type, "object") == 0 && !json_object_get(schema, "properties"))
		fill(schema, "additionalProperties", json_object());
	if (type && strcmp(type, "array") == 0)
		fill(schema, "items", json_object());
	json_object_foreach(json_object_get(schema, "properties"), name, property) fill_schema(property, depth + 1);
}

static void fill_tool(json_t *tool)
{
	json_t *function = json_object_get(tool, "function"), *property;
	const char *name;

	if (!json_is_object(function))
		return;
	fill(tool, "type", json_string("function"));
	fill(function, "description", json_string(""));
	fill(function, "parameters", json_object());
	json_t *parameters = json_object_get(function, "parameters");
	if (!json_is_object(parameters))
		return;
	fill(parameters, "type", json_string("object"));
	fill(parameters, "properties", json_object());
	fill(parameters, "required", json_array());
	json_object_foreach(json_object_get(parameters, "properties"), name, property) fill_schema(property, 0);
}

/* Cohere's older form: {"name": ..., "description": ..., "parameter_definitions": {NAME: {..., "required": true}}}. */
static void flatten_tool(json_t *tool)
{
	json_t *function = json_object_get(tool, "function"), *value, *definitions = json_object(), *must;
	json_t *parameters = json_object_get(function, "parameters");
	const char *name;
	size_t i;

	json_object_foreach(json_object_get(parameters, "properties"), name, value)
	{
		json_t *one = json_is_object(value) ? json_copied(value, false) : json_object();
		bool required = false;
		json_array_foreach(json_object_get(parameters, "required"), i, must)
		{
			const char *word = json_string_value(must);
			required = required || (word && strcmp(word, name) == 0);
		}
		json_put(one, "required", json_boolean(required));
		json_put(definitions, name, one);
	}
	json_object_foreach(function, name, value) fill(tool, name, json_incref(value));
	fill(tool, "parameter_definitions", definitions);
}

json_t *history_tools(const json_t *tools, unsigned repairs)
{
	json_t *all = json_copied(tools, true), *tool;
	size_t i;

	json_array_foreach(all, i, tool)
	{
		if (repairs & (HISTORY_FILL_TOOLS | HISTORY_FLAT_TOOLS))
			fill_tool(tool);
		if ((repairs & HISTORY_FLAT_TOOLS) && json_is_object(tool))
			flatten_tool(tool);
	}
	return all;
}
