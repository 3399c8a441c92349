/* tests/answers/call_writers.c - calls at random, and each form of writing them. */
#include "tests/answers/call_writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252u;
uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}

static const struct tools_row *row_of(enum tools_form form) { return &tools_rows[form]; }

static const char *const bits[] = { "a",  "word ", "\"",   "\\",       "{",  "}",  "[", "]", "'",        ",",  ":", "(",
	                            ")",  "\n",    "\t",   "\x01",     "<",  ">",  "=", "`", "```",      "</", "é", "😀",
	                            "中", "null",  "\\ud", "\xc2\xa0", "<|", "|>", "7", "-", "function", "?" };

const char *call_bit(void) { return bits[draw(sizeof bits / sizeof *bits)]; }

/* plain: a text that elements can write, and that no JSON is. */
static json_t *any_text(bool plain, const char *never)
{
	char text[200] = "";
	unsigned n = draw(9);

	if (plain)
		strcpy(text, "x");
	for (unsigned i = 0; i < n; i++)
		strcat(text, call_bit());
	if (plain)
		strcat(text, "y");
	for (char *at; never && (at = strstr(text, never));)
		memset(at, '_', strlen(never));
	return json_string(text);
}

static json_t *any_value(unsigned depth, bool plain, const char *never)
{
	json_t *o;
	unsigned n = draw(4);
	char key[20];

	switch (draw(depth > 2 ? 6 : 8)) {
	case 0: return json_integer((json_int_t)draw(2000) - 1000);
	case 1: return json_real(draw(1000) / 8.0);
	case 2: return json_boolean(draw(2));
	case 3: return json_null();
	case 4:
	case 5: return any_text(plain && depth == 0, never);
	case 6:
		o = json_array();
		for (unsigned i = 0; i < n; i++)
			json_array_append_new(o, any_value(depth + 1, plain, never));
		return o;
	default:
		o = json_object();
		for (unsigned i = 0; i < n; i++) {
			snprintf(key, sizeof key, "k%u", draw(9));
			json_object_set_new(o, key, any_value(depth + 1, plain, never));
		}
		return o;
	}
}

json_t *call_any_arguments(enum tools_form form)
{
	const enum tools_body body = row_of(form)->body;
	bool plain = body == BODY_FUNCTIONS || body == BODY_KEYS || body == BODY_INVOKE;
	json_t *o = json_object();
	unsigned n = draw(4);
	char key[20];

	for (unsigned i = 0; i < n; i++) {
		snprintf(key, sizeof key, "%s%u", "key", draw(9));
		json_object_set_new(o, key, any_value(0, plain, plain ? "</" : body == BODY_BRACES ? "<|\"|>" : NULL));
	}
	return o;
}

static void put_json(struct bytes *b, const json_t *o)
{
	static const size_t flags[] = { JSON_COMPACT, 0, JSON_INDENT(2), JSON_ENSURE_ASCII, JSON_ESCAPE_SLASH };

	bytes_take(b, json_dumps(o, JSON_ENCODE_ANY | flags[draw(5)]));
}

static void put_python(struct bytes *b, const json_t *o)
{
	const char *name;
	const json_t *one;
	size_t i;

	if (json_is_string(o)) {
		char quote = draw(2) ? '\'' : '"';
		bytes_add(b, &quote, 1);
		for (const char *p = json_string_value(o); *p; p++) {
			if (*p == quote || *p == '\\')
				bytes_text(b, "\\");
			bytes_add(b, *p == '\n' ? "\\n" : p, *p == '\n' ? 2 : 1);
		}
		bytes_add(b, &quote, 1);
	} else if (json_is_array(o)) {
		bytes_text(b, "[");
		json_array_foreach(o, i, one)
		{
			bytes_text(b, i ? ", " : "");
			put_python(b, one);
		}
		bytes_text(b, "]");
	} else if (json_is_object(o)) {
		bytes_text(b, "{");
		json_object_foreach((json_t *)(uintptr_t)o, name, one)
		{
			bytes_print(b, "'%s': ", name);
			put_python(b, one);
			bytes_text(b, ", ");
		}
		bytes_text(b, "}");
	} else if (json_is_boolean(o)) {
		bytes_text(b, json_is_true(o) ? "True" : "False");
	} else if (json_is_null(o)) {
		bytes_text(b, "None");
	} else {
		put_json(b, o);
	}
}

static void put_braces(struct bytes *b, const json_t *o)
{
	const char *name;
	const json_t *one;
	size_t i, n = 0;

	if (json_is_string(o)) {
		bytes_text(b, "<|\"|>");
		bytes_text(b, json_string_value(o));
		bytes_text(b, "<|\"|>");
	} else if (json_is_array(o)) {
		bytes_text(b, "[");
		json_array_foreach(o, i, one)
		{
			bytes_text(b, i ? "," : "");
			put_braces(b, one);
		}
		bytes_text(b, "]");
	} else if (json_is_object(o)) {
		bytes_text(b, "{");
		json_object_foreach((json_t *)(uintptr_t)o, name, one)
		{
			bytes_print(b, "%s%s:", n++ ? "," : "", name);
			put_braces(b, one);
		}
		bytes_text(b, "}");
	} else {
		put_json(b, o);
	}
}

static void put_elements(struct bytes *b, enum tools_form form, const char *name, const json_t *arguments)
{
	const struct tools_row *row = row_of(form);
	const char *key, *word = row->name ? row->name : "";
	const json_t *one;
	enum tools_body body = row->body;

	if (body == BODY_FUNCTIONS)
		bytes_print(b, "\n<function=%s>\n", name);
	else if (body == BODY_KEYS)
		bytes_print(b, "%s%s\n", name, form == TOOLS_HY ? "<tool_sep:opensource>" : "");
	else
		bytes_print(b, "%s\">\n", name);
	json_object_foreach((json_t *)(uintptr_t)arguments, key, one)
	{
		bool lines = body != BODY_INVOKE && draw(2);
		if (body == BODY_FUNCTIONS)
			bytes_print(b, "<parameter=%s>", key);
		else if (body == BODY_KEYS)
			bytes_print(b, "<arg_key%s>%s</arg_key%s>\n<arg_value%s>", word, key, word, word);
		else
			bytes_print(b, "<%s name=\"%s\">", word, key);
		bytes_text(b, lines ? "\n" : "");
		if (json_is_string(one))
			bytes_text(b, json_string_value(one));
		else
			put_json(b, one);
		bytes_text(b, lines ? "\n" : "");
		bytes_print(b,
		            body == BODY_FUNCTIONS ? "</parameter>\n"
		            : body == BODY_KEYS    ? "</arg_value%s>\n"
		                                   : "</%s>\n",
		            word);
	}
	bytes_text(b, body == BODY_FUNCTIONS ? "</function>\n" : "");
}

/* {"name": ..., "arguments": ...} in one of the ways in which it may be written. */
static void put_object(struct bytes *b, enum tools_form form, const char *name, const json_t *arguments)
{
	const struct tools_row *row = row_of(form);
	json_t *o = json_object();

	if (form == TOOLS_PREFIX) {
		json_object_set(o, name, (json_t *)(uintptr_t)arguments);
	} else {
		const char *of_name = row->name ? row->name : "name";
		const char *of_arguments = row->arguments ? row->arguments : "arguments";
		unsigned order = draw(4);
		if (order)
			json_object_set_new(o, of_name, json_string(name));
		if (order == 2)
			json_object_set_new(o, "id", json_string("</x>]{"));
		char *text = draw(4) ? NULL : json_dumps(arguments, JSON_COMPACT);
		if (text)
			json_object_set_new(o, of_arguments, json_string(text));
		else
			json_object_set(o, of_arguments, (json_t *)(uintptr_t)arguments);
		free(text);
		if (!order)
			json_object_set_new(o, of_name, json_string(name));
		if (order == 3)
			json_object_set_new(o, "more", json_pack("[i, {s:n}]", 1, "name"));
	}
	put_json(b, o);
	json_decref(o);
}

void call_write(struct bytes *b, enum tools_form form, const char *name, const json_t *arguments)
{
	const struct tools_row *row = row_of(form);

	switch (row->body) {
	case BODY_JSON:
		bytes_text(b, row->list ? "[" : "");
		put_object(b, form, name, arguments);
		bytes_text(b, row->list ? "]" : "");
		break;
	case BODY_NAMED:
		if (row->before_name)
			bytes_print(b, "id%s", row->before_name);
		bytes_print(b, form == TOOLS_KIMI ? "functions.%s:3" : "%s", name);
		bytes_text(b, row->mark[2]);
		put_json(b, arguments);
		break;
	case BODY_FUNCTIONS:
	case BODY_KEYS:
	case BODY_INVOKE: put_elements(b, form, name, arguments); break;
	case BODY_PYTHON: {
		const char *key;
		const json_t *one;
		size_t n = 0;
		bytes_print(b, "[%s(", name);
		json_object_foreach((json_t *)(uintptr_t)arguments, key, one)
		{
			bytes_print(b, "%s%s=", n++ ? ", " : "", key);
			put_python(b, one);
		}
		bytes_text(b, ")]");
		break;
	}
	case BODY_BRACES:
		bytes_text(b, name);
		put_braces(b, arguments);
		break;
	}
}
