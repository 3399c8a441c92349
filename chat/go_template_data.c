/* chat/go_template_data.c - messages and tools, as chat completions and ollama's API have them, in the types that
 * ollama hands to templates.
 *
 * Owns: which member becomes which field. As in Go, names of members are found in large and small letters, null leaves
 * a field as it was, and members that a type does not have are dropped.
 */
#include <ctype.h>
#include <string.h>

#include "chat/go_template.h"

/* Where a value stands, for messages. */
struct location {
	const char *of;
	size_t number;
};

static bool refuse(struct run *r, const struct location *at, const char *member, struct value v, const char *expected)
{
	if (!r->failed)
		error_set(r->err, ERROR_ARGUMENT, "%s[%zu]: %s is %s, expected %s", at->of, at->number, member,
		          v.kind == KIND_NONE ? "null" : value_type(v), expected);
	r->failed = true;
	return false;
}

static bool same_letters(const struct text *t, const char *name)
{
	if (t->n != strlen(name))
		return false;
	for (size_t i = 0; i < t->n; i++)
		if (tolower((unsigned char)t->p[i]) != tolower((unsigned char)name[i]))
			return false;
	return true;
}

/* The last one of that name; absent: no message has it, or it is null. */
static struct value member(struct value of, const char *name)
{
	struct value found = value_of(KIND_ABSENT);

	for (size_t i = 0; of.kind == KIND_DICT && i < of.dict->n; i++) {
		const struct pair *p = &of.dict->pair[i];
		if (p->value.kind != KIND_NONE && same_letters(p->key.text, name))
			found = p->value;
	}
	return found;
}

static bool read_string(struct run *r, const struct location *at, struct value of, const char *name,
                        struct go_value *out)
{
	const struct value v = member(of, name);

	if (v.kind == KIND_TEXT)
		*out = go_of_text(v.text);
	return v.kind == KIND_ABSENT || v.kind == KIND_TEXT || refuse(r, at, name, v, "a string");
}

static void read_any(struct run *r, struct value of, const char *name, struct go_value *out)
{
	const struct value v = member(of, name);

	if (v.kind != KIND_ABSENT)
		*out = go_from_json(r, v);
}

/* A list of n items of this type, to be filled in. NULL: failed. */
static struct go_value *make_list(struct run *r, const struct go_type *type, size_t n, struct go_value *out)
{
	struct go_list *l = run_take(r, sizeof *l);
	struct go_value *item = run_take(r, n * sizeof *item);

	if (!l || !item)
		return NULL;
	for (size_t i = 0; i < n; i++)
		item[i] = go_zero(r, type->element);
	*l = (struct go_list){ item, n };
	*out = (struct go_value){ .kind = GO_LIST, .user = true, .type = type, .list = l };
	return item;
}

static bool is_list(struct run *r, const struct location *at, const char *name, struct value v, const char *of)
{
	return v.kind == KIND_LIST || refuse(r, at, name, v, of);
}

static bool read_strings(struct run *r, const struct location *at, struct value of, const char *name,
                         struct go_value *out)
{
	const struct value v = member(of, name);

	if (v.kind == KIND_ABSENT)
		return true;
	if (!is_list(r, at, name, v, "an array of strings"))
		return false;
	struct go_value *item = make_list(r, &go_list_string, v.list->n, out);
	for (size_t i = 0; item && i < v.list->n; i++) {
		if (v.list->item[i].kind != KIND_TEXT)
			return refuse(r, at, name, v.list->item[i], "strings alone");
		item[i] = go_of_text(v.list->item[i].text);
	}
	return item != NULL;
}

/* The fields of a struct that was made by go_zero(), which nobody else has seen. */
static struct go_value *fields_of(const struct go_value *v) { return (struct go_value *)(uintptr_t)v->field; }

/* ---- tools */

/* One type, or several. */
static bool read_types(struct run *r, const struct location *at, struct value of, struct go_value *out)
{
	const struct value v = member(of, "type");
	struct go_value *item;

	if (v.kind == KIND_TEXT && (item = make_list(r, &go_types, 1, out)))
		*item = go_of_text(v.text);
	else if (v.kind == KIND_LIST && read_strings(r, at, of, "type", out))
		out->type = &go_types;
	else if (v.kind != KIND_ABSENT && v.kind != KIND_TEXT)
		return r->failed ? false : refuse(r, at, "type", v, "a string or an array of strings");
	return !r->failed;
}

static bool read_property(struct run *r, const struct location *at, struct value v, struct go_value *out);

/* Members of an object of schemas, in their order; as a map it is sorted. */
static bool read_properties(struct run *r, const struct location *at, struct value of, const struct go_type *type,
                            struct go_value *out)
{
	const struct value v = member(of, "properties");

	if (v.kind == KIND_ABSENT)
		return true;
	if (v.kind != KIND_DICT)
		return refuse(r, at, "properties", v, "an object of schemas");
	struct go_pair *pair = run_take(r, v.dict->n * sizeof *pair);
	for (size_t i = 0; pair && i < v.dict->n; i++) {
		pair[i] = (struct go_pair){ v.dict->pair[i].key.text, go_zero(r, &go_property) };
		if (r->failed || !read_property(r, at, v.dict->pair[i].value, &pair[i].value))
			return false;
	}
	if (pair)
		*out = go_map_of(r, type, pair, v.dict->n);
	return !r->failed;
}

static bool read_choices(struct run *r, const struct location *at, struct value of, struct go_value *out)
{
	const struct value v = member(of, "anyOf");

	if (v.kind == KIND_ABSENT)
		return true;
	if (!is_list(r, at, "anyOf", v, "an array of schemas"))
		return false;
	struct go_value *item = make_list(r, &go_list_property, v.list->n, out);
	for (size_t i = 0; item && i < v.list->n; i++)
		if (!read_property(r, at, v.list->item[i], &item[i]))
			return false;
	return !r->failed;
}

/* A schema; true and false are schemas that say nothing of types. */
static bool read_property(struct run *r, const struct location *at, struct value v, struct go_value *out)
{
	struct go_value *f = fields_of(out);

	if (v.kind == KIND_BOOL || v.kind == KIND_NONE)
		return true;
	if (v.kind != KIND_DICT)
		return refuse(r, at, "a property", v, "a schema");
	if (!run_step(r, 16))
		return false;
	read_any(r, v, "items", &f[2]);
	const struct value choices = member(v, "enum");
	if (choices.kind != KIND_ABSENT) {
		if (!is_list(r, at, "enum", choices, "an array"))
			return false;
		f[4] = go_from_json(r, choices);
	}
	return read_choices(r, at, v, &f[0]) && read_types(r, at, v, &f[1]) &&
	       read_string(r, at, v, "description", &f[3]) && read_properties(r, at, v, &go_ordered, &f[5]) &&
	       read_strings(r, at, v, "required", &f[6]);
}

static bool read_function(struct run *r, const struct location *at, struct value v, struct go_value *out)
{
	const struct value schema = member(v, "parameters");
	struct go_value *f = fields_of(out), *p = fields_of(&f[2]);

	if (schema.kind != KIND_ABSENT && schema.kind != KIND_DICT)
		return refuse(r, at, "parameters", schema, "a schema");
	read_any(r, schema, "$defs", &p[1]);
	read_any(r, schema, "items", &p[2]);
	return read_string(r, at, v, "name", &f[0]) && read_string(r, at, v, "description", &f[1]) &&
	       read_string(r, at, schema, "type", &p[0]) && read_strings(r, at, schema, "required", &p[3]) &&
	       read_properties(r, at, schema, &go_properties, &p[4]);
}

struct go_value go_read_tools(struct run *r, struct value tools)
{
	struct go_value out = go_zero(r, &go_tools);

	if (tools.kind == KIND_ABSENT || tools.kind == KIND_NONE)
		return out;
	if (!is_list(r, &(struct location){ "tools", 0 }, "it", tools, "an array of tools"))
		return out;
	struct go_value *item = make_list(r, &go_tools, tools.list->n, &out);
	for (size_t i = 0; item && i < tools.list->n && !r->failed; i++) {
		const struct location at = { "tools", i };
		const struct value v = tools.list->item[i], function = member(v, "function");
		struct go_value *f = fields_of(&item[i]);
		if (v.kind != KIND_DICT || (function.kind != KIND_DICT && function.kind != KIND_ABSENT)) {
			refuse(r, &at, "it", v, "an object with a function");
			break;
		}
		read_any(r, v, "items", &f[1]);
		if (read_string(r, &at, v, "type", &f[0]))
			read_function(r, &at, function, &f[2]);
	}
	return out;
}

/* ---- messages */

/* An object, or the text of one, as OpenAI's API has it. */
static bool read_arguments(struct run *r, const struct location *at, struct value of, struct go_value *out)
{
	struct value v = member(of, "arguments");

	if (v.kind == KIND_TEXT) {
		const struct chat_variable text = { "arguments", v.text->p, v.text->n, CHAT_USER };
		if (v.text->n == 0)
			return true;
		v = json_value(r, &text);
		if (r->failed)
			return false;
	}
	if (v.kind == KIND_ABSENT || v.kind == KIND_NONE)
		return true;
	if (v.kind != KIND_DICT)
		return refuse(r, at, "arguments", v, "an object");
	*out = go_from_json(r, v);
	out->type = &go_arguments;
	return !r->failed;
}

static bool read_call(struct run *r, const struct location *at, struct value v, struct go_value *out)
{
	const struct value function = member(v, "function"), *index = NULL;
	struct go_value *f = fields_of(out), *called = fields_of(&f[1]);
	const struct value inner = member(function, "index"), outer = member(v, "index");

	if (v.kind != KIND_DICT || function.kind != KIND_DICT)
		return refuse(r, at, "tool_calls", v, "objects with a function");
	index = inner.kind == KIND_INT ? &inner : outer.kind == KIND_INT ? &outer : NULL;
	if (index) {
		called[0] = go_of_int(index->integer);
		called[0].user = true;
	}
	return read_string(r, at, v, "id", &f[0]) && read_string(r, at, function, "name", &called[1]) &&
	       read_arguments(r, at, function, &called[2]);
}

static bool read_calls(struct run *r, const struct location *at, struct value of, struct go_value *out)
{
	const struct value v = member(of, "tool_calls");

	if (v.kind == KIND_ABSENT)
		return true;
	if (!is_list(r, at, "tool_calls", v, "an array"))
		return false;
	if (v.list->n == 0)
		return true;
	struct go_value *item = make_list(r, &go_calls, v.list->n, out);
	for (size_t i = 0; item && i < v.list->n; i++)
		if (!read_call(r, at, v.list->item[i], &item[i]))
			return false;
	return !r->failed;
}

/* A text, or the texts of its parts. */
static bool read_content(struct run *r, const struct location *at, struct value of, struct go_value *out)
{
	const struct value v = member(of, "content");
	struct build b = { .r = r };

	if (v.kind != KIND_LIST)
		return read_string(r, at, of, "content", out);
	for (size_t i = 0; i < v.list->n; i++) {
		const struct value text = member(v.list->item[i], "text");
		if (text.kind != KIND_TEXT)
			return refuse(r, at, "content", v.list->item[i], "parts with a text");
		if (i)
			build_bytes(&b, "\n", 1, true);
		build_text(&b, text.text);
	}
	*out = go_of_text(build_done(&b));
	return !r->failed;
}

/* The name of the function that was called with this id, in the messages before. */
static void find_name(struct value messages, size_t before, const struct text *id, struct go_value *out)
{
	for (size_t i = before; i-- > 0;) {
		const struct value calls = member(messages.list->item[i], "tool_calls");
		for (size_t k = 0; calls.kind == KIND_LIST && k < calls.list->n; k++) {
			const struct value own = member(calls.list->item[k], "id"),
					   name = member(member(calls.list->item[k], "function"), "name");
			if (own.kind != KIND_TEXT || name.kind != KIND_TEXT || !text_same(own.text, id))
				continue;
			*out = go_of_text(name.text);
			return;
		}
	}
}

/* Roles are small letters. One that is known keeps that it is not the user's. */
static bool read_role(struct run *r, const struct location *at, struct value of, struct go_value *out)
{
	if (!read_string(r, at, of, "role", out))
		return false;
	for (size_t i = 0; i < out->text->n; i++) {
		if (!isupper((unsigned char)out->text->p[i]))
			continue;
		char *p = run_take(r, out->text->n);
		const struct text *t = p ? text_copy(r, out->text) : NULL;
		for (size_t k = 0; t && k < t->n; k++)
			p[k] = (char)tolower((unsigned char)t->p[k]);
		if (t)
			text_change(t)->p = p;
		*out = go_of_text(t);
		break;
	}
	return !r->failed;
}

static bool read_message(struct run *r, struct value messages, size_t i, struct go_value *out)
{
	static const char *const thoughts[] = { "reasoning", "reasoning_content", "thinking" };
	const struct location at = { "messages", i };
	const struct value v = messages.list->item[i];
	struct go_value *f = fields_of(out);

	if (v.kind != KIND_DICT)
		return refuse(r, &at, "it", v, "an object");
	if (!read_role(r, &at, v, &f[0]) || !read_content(r, &at, v, &f[1]))
		return false;
	for (size_t k = 0; k < sizeof thoughts / sizeof *thoughts; k++)
		if (member(v, thoughts[k]).kind == KIND_TEXT)
			f[2] = go_of_text(member(v, thoughts[k]).text);
	if (!read_calls(r, &at, v, &f[4]) || !read_string(r, &at, v, "tool_call_id", &f[6]))
		return false;
	if (!text_is(f[0].text, "tool"))
		return true;
	find_name(messages, i, f[6].text, &f[5]);
	return read_string(r, &at, v, "name", &f[5]) && read_string(r, &at, v, "tool_name", &f[5]);
}

struct go_value go_read_messages(struct run *r, struct value messages)
{
	struct go_value out = go_zero(r, &go_messages);
	const struct location at = { "messages", 0 };

	if (messages.kind != KIND_LIST) {
		refuse(r, &at, "it", messages, "an array of messages");
		return out;
	}
	struct go_value *item = make_list(r, &go_messages, messages.list->n, &out);
	for (size_t i = 0; item && i < messages.list->n && !r->failed; i++) {
		item[i] = go_zero(r, &go_message);
		if (!r->failed && read_message(r, messages, i, &item[i])) {
			item[i].kind = GO_POINTER;
			item[i].type = &go_message_pointer;
			item[i].nil = false;
			item[i].user = true;
		}
	}
	return out;
}
