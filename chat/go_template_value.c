/* chat/go_template_value.c - the values that templates in Go's language work on, and their types.
 *
 * Owns: the table of types. They are those that ollama hands to templates, with the names of their fields: a template
 * may ask for a field that a struct has not, and is refused then.
 */
#include <stdlib.h>
#include <string.h>

#include "chat/go_template.h"

#define FIELDS(list) .field = list, .n_fields = sizeof list / sizeof *list

const struct go_type go_any = { .name = "interface {}", .kind = GO_NIL };
const struct go_type go_bool = { .name = "bool", .kind = GO_BOOL };
const struct go_type go_int = { .name = "int", .kind = GO_INT };
const struct go_type go_byte = { .name = "uint8", .kind = GO_BYTE };
const struct go_type go_float = { .name = "float64", .kind = GO_FLOAT };
const struct go_type go_string = { .name = "string", .kind = GO_STRING };
const struct go_type go_list_any = { .name = "[]interface {}", .kind = GO_LIST, .element = &go_any };
const struct go_type go_list_string = { .name = "[]string", .kind = GO_LIST, .element = &go_string };
const struct go_type go_map_any = { .name = "map[string]interface {}", .kind = GO_MAP, .element = &go_any };
const struct go_type go_arguments = {
	.name = "template.templateArgs", .kind = GO_MAP, .element = &go_any, .says = GO_SAYS_JSON
};
static const struct go_type image = { .name = "api.ImageData", .kind = GO_LIST, .element = &go_byte };
const struct go_type go_list_image = { .name = "[]api.ImageData", .kind = GO_LIST, .element = &image };

/* ---- tools */

const struct go_type go_types = {
	.name = "api.PropertyType", .kind = GO_LIST, .element = &go_string, .says = GO_SAYS_TYPES
};
const struct go_type go_ordered = { .name = "*api.ToolPropertiesMap", .kind = GO_ORDERED, .element = &go_property };
const struct go_type go_list_property = { .name = "[]api.ToolProperty", .kind = GO_LIST, .element = &go_property };
static const struct go_field property_fields[] = {
	{ "AnyOf", "anyOf", &go_list_property, true },
	{ "Type", "type", &go_types, true },
	{ "Items", "items", &go_any, true },
	{ "Description", "description", &go_string, true },
	{ "Enum", "enum", &go_list_any, true },
	{ "Properties", "properties", &go_ordered, true },
	{ "Required", "required", &go_list_string, true }
};
const struct go_type go_property = { .name = "api.ToolProperty", .kind = GO_STRUCT, FIELDS(property_fields) };
const struct go_type go_properties = {
	.name = "template.templateProperties", .kind = GO_MAP, .element = &go_property, .says = GO_SAYS_JSON
};
static const struct go_field parameters_fields[] = {
	{ "Type", "type", &go_string, false },
	{ "Defs", "$defs", &go_any, true },
	{ "Items", "items", &go_any, true },
	{ "Required", "required", &go_list_string, true },
	{ "Properties", "properties", &go_properties, false }
};
const struct go_type go_parameters = {
	.name = "template.templateToolFunctionParameters", .kind = GO_STRUCT, FIELDS(parameters_fields)
};
static const struct go_field function_fields[] = { { "Name", "name", &go_string, false },
	                                           { "Description", "description", &go_string, false },
	                                           { "Parameters", "parameters", &go_parameters, false } };
const struct go_type go_function = {
	.name = "template.templateToolFunction", .kind = GO_STRUCT, FIELDS(function_fields)
};
static const struct go_field tool_fields[] = { { "Type", "type", &go_string, false },
	                                       { "Items", "items", &go_any, true },
	                                       { "Function", "function", &go_function, false } };
const struct go_type go_tool = {
	.name = "template.templateTool", .kind = GO_STRUCT, FIELDS(tool_fields), .says = GO_SAYS_JSON
};
const struct go_type go_tools = {
	.name = "template.templateTools", .kind = GO_LIST, .element = &go_tool, .says = GO_SAYS_JSON
};

/* ---- messages */

static const struct go_field call_function_fields[] = { { "Index", "Index", &go_int, false },
	                                                { "Name", "Name", &go_string, false },
	                                                { "Arguments", "Arguments", &go_arguments, false } };
const struct go_type go_call_function = {
	.name = "template.templateToolCallFunction", .kind = GO_STRUCT, FIELDS(call_function_fields)
};
static const struct go_field call_fields[] = { { "ID", "ID", &go_string, false },
	                                       { "Function", "Function", &go_call_function, false } };
const struct go_type go_call = { .name = "template.templateToolCall", .kind = GO_STRUCT, FIELDS(call_fields) };
const struct go_type go_calls = { .name = "[]template.templateToolCall", .kind = GO_LIST, .element = &go_call };
static const struct go_field message_fields[] = {
	{ "Role", "Role", &go_string, false },
	{ "Content", "Content", &go_string, false },
	{ "Thinking", "Thinking", &go_string, false },
	{ "Images", "Images", &go_list_image, false },
	{ "ToolCalls", "ToolCalls", &go_calls, false },
	{ "ToolName", "ToolName", &go_string, false },
	{ "ToolCallID", "ToolCallID", &go_string, false }
};
const struct go_type go_message = { .name = "template.templateMessage", .kind = GO_STRUCT, FIELDS(message_fields) };
const struct go_type go_message_pointer = {
	.name = "*template.templateMessage", .kind = GO_POINTER, .element = &go_message
};
const struct go_type go_messages = {
	.name = "[]*template.templateMessage", .kind = GO_LIST, .element = &go_message_pointer
};

/* ---- values */

struct go_value go_of_bool(bool b) { return (struct go_value){ .kind = GO_BOOL, .type = &go_bool, .truth = b }; }

struct go_value go_of_int(int64_t i) { return (struct go_value){ .kind = GO_INT, .type = &go_int, .integer = i }; }

struct go_value go_of_text(const struct text *t)
{
	return t ? (struct go_value){ .kind = GO_STRING, .type = &go_string, .text = t } : (struct go_value){ 0 };
}

static const struct text nothing = { .p = "" };
static const struct go_list no_items = { 0 };
static const struct go_map no_members = { 0 };

struct go_value go_zero(struct run *r, const struct go_type *type)
{
	struct go_value v = { .kind = (uint8_t)type->kind, .type = type, .nil = true };
	struct go_value *field;

	switch (type->kind) {
	case GO_STRING: v.text = &nothing; break;
	case GO_LIST: v.list = &no_items; break;
	case GO_MAP:
	case GO_ORDERED: v.map = &no_members; break;
	case GO_STRUCT:
		field = run_take(r, type->n_fields * sizeof *field);
		for (size_t i = 0; field && i < type->n_fields; i++)
			field[i] = go_zero(r, type->field[i].type);
		v.field = field;
		if (!field)
			v = (struct go_value){ .kind = GO_NONE };
		break;
	default: break;
	}
	return v;
}

static int by_key(const void *a, const void *b)
{
	return text_order(((const struct go_pair *)a)->key, ((const struct go_pair *)b)->key);
}

struct go_value go_map_of(struct run *r, const struct go_type *type, struct go_pair *pair, size_t n)
{
	struct go_map *m = run_take(r, sizeof *m);

	if (!m || !run_step(r, n))
		return (struct go_value){ .kind = GO_NONE };
	if (n && type->kind != GO_ORDERED)
		qsort(pair, n, sizeof *pair, by_key);
	*m = (struct go_map){ pair, n };
	return (struct go_value){ .kind = (uint8_t)type->kind, .user = true, .type = type, .map = m };
}

const struct go_value *go_member(const struct go_value *map, const struct text *key)
{
	size_t low = 0, high = map->map->n;

	if (map->kind == GO_ORDERED)
		return NULL;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int d = text_order(key, map->map->pair[middle].key);
		if (d == 0)
			return &map->map->pair[middle].value;
		if (d < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static struct go_value list_from(struct run *r, const struct list *from)
{
	struct go_list *l = run_take(r, sizeof *l);
	struct go_value *item = run_take(r, from->n * sizeof *item);

	if (!l || !item)
		return (struct go_value){ .kind = GO_NONE };
	for (size_t i = 0; i < from->n; i++)
		item[i] = go_from_json(r, from->item[i]);
	*l = (struct go_list){ item, from->n };
	return (struct go_value){ .kind = GO_LIST, .user = true, .type = &go_list_any, .list = l };
}

static struct go_value map_from(struct run *r, const struct dict *from)
{
	struct go_pair *pair = run_take(r, from->n * sizeof *pair);

	for (size_t i = 0; pair && i < from->n; i++)
		pair[i] = (struct go_pair){ from->pair[i].key.text, go_from_json(r, from->pair[i].value) };
	return pair ? go_map_of(r, &go_map_any, pair, from->n) : (struct go_value){ .kind = GO_NONE };
}

struct go_value go_from_json(struct run *r, struct value v)
{
	struct go_value out = { .kind = GO_NIL, .user = v.user, .nil = true, .type = &go_any };

	switch (v.kind) {
	case KIND_BOOL: out.kind = GO_BOOL; break;
	case KIND_INT:
	case KIND_FLOAT: out.kind = GO_FLOAT; break;
	case KIND_TEXT: return go_of_text(v.text);
	case KIND_LIST: return list_from(r, v.list);
	case KIND_DICT: return map_from(r, v.dict);
	default: return out;
	}
	out.nil = false;
	out.type = v.kind == KIND_BOOL ? &go_bool : &go_float;
	if (v.kind == KIND_BOOL)
		out.truth = v.truth;
	else
		out.real = real_of(v);
	return out;
}

bool go_truth(struct go_value v)
{
	switch (v.kind) {
	case GO_BOOL: return v.truth;
	case GO_INT:
	case GO_BYTE: return v.integer != 0;
	case GO_FLOAT: return v.real != 0;
	case GO_STRING: return v.text->n > 0;
	case GO_LIST: return v.list->n > 0;
	case GO_MAP: return v.map->n > 0;
	case GO_STRUCT: return true;
	case GO_POINTER:
	case GO_ORDERED: return !v.nil;
	default: return false;
	}
}

bool go_is_nil(struct go_value v)
{
	return v.kind == GO_NONE || v.kind == GO_NIL ||
	       (v.nil && (v.kind == GO_LIST || v.kind == GO_MAP || v.kind == GO_POINTER || v.kind == GO_ORDERED));
}

const char *go_type_name(struct go_value v) { return v.kind == GO_NONE ? "no value" : v.type ? v.type->name : "nil"; }
