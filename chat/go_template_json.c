/* chat/go_template_json.c - values to JSON, as Go's package encoding/json writes them for HTML. */
#include <stdio.h>
#include <string.h>
#include <inttypes.h>

#include "base/text.h"
#include "chat/go_template.h"

/* What is written in the place of this character; false: itself. */
static bool escape(uint32_t c, bool valid, char out[8])
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *known = c && c < 0x80 ? strchr(from, (int)c) : NULL;

	if (known) {
		snprintf(out, 8, "\\%c", to[known - from]);
		return true;
	}
	if (valid && c >= 0x20 && c != '<' && c != '>' && c != '&' && c != 0x2028 && c != 0x2029)
		return false;
	snprintf(out, 8, "\\u%04x", valid ? (unsigned)c : 0xfffdU);
	return true;
}

void go_json_string(struct build *b, const struct text *t, bool user)
{
	size_t plain = 0, i = 0;
	char text[8];

	build_bytes(b, "\"", 1, user);
	while (i < t->n && !b->r->failed) {
		uint32_t c = 0;
		unsigned n = text_char(t->p + i, t->n - i, &c);
		if (!escape(c, n > 0, text)) {
			i += n;
			continue;
		}
		build_part(b, t, plain, i - plain);
		build_string(b, text, text_user_at(t, i));
		plain = i += n ? n : 1;
	}
	if (!b->r->failed)
		build_part(b, t, plain, t->n - plain);
	build_bytes(b, "\"", 1, user);
}

/* A value within another one: its quotes are the user's. */
static void within(struct build *b, struct go_value v)
{
	if (v.kind == GO_STRING)
		go_json_string(b, v.text, true);
	else
		go_json(b, v);
}

static void members(struct build *b, struct go_value v)
{
	build_bytes(b, "{", 1, true);
	for (size_t i = 0; i < v.map->n && !b->r->failed; i++) {
		if (i)
			build_bytes(b, ",", 1, true);
		go_json_string(b, v.map->pair[i].key, true);
		build_bytes(b, ":", 1, true);
		within(b, v.map->pair[i].value);
	}
	build_bytes(b, "}", 1, true);
}

static bool is_empty(struct go_value v)
{
	return v.kind == GO_NIL || v.kind == GO_NONE ||
	       (v.kind == GO_ORDERED ? v.nil : v.kind != GO_STRUCT && !go_truth(v));
}

/* A member of an interface that holds something is there, whatever it holds. */
static bool leaves_out(const struct go_field *f, struct go_value v)
{
	return f->omit && (f->type == &go_any ? v.kind == GO_NIL : is_empty(v));
}

static void fields(struct build *b, struct go_value v)
{
	const struct go_type *type = v.kind == GO_POINTER ? v.type->element : v.type;
	bool first = true;

	build_bytes(b, "{", 1, true);
	for (size_t i = 0; i < type->n_fields && !b->r->failed; i++) {
		if (leaves_out(&type->field[i], v.field[i]))
			continue;
		if (!first)
			build_bytes(b, ",", 1, true);
		first = false;
		build_bytes(b, "\"", 1, true);
		build_string(b, type->field[i].json, true);
		build_string(b, "\":", true);
		within(b, v.field[i]);
	}
	build_bytes(b, "}", 1, true);
}

static void items(struct build *b, struct go_value v)
{
	if (v.type == &go_types && v.list->n == 1) {
		within(b, v.list->item[0]);
		return;
	}
	build_bytes(b, "[", 1, true);
	for (size_t i = 0; i < v.list->n && !b->r->failed; i++) {
		if (i)
			build_bytes(b, ",", 1, true);
		within(b, v.list->item[i]);
	}
	build_bytes(b, "]", 1, true);
}

void go_json(struct build *b, struct go_value v)
{
	const bool container = v.kind == GO_LIST || v.kind == GO_MAP || v.kind == GO_ORDERED || v.kind == GO_POINTER;
	char text[48] = "null";

	if (!run_step(b->r, 1))
		return;
	if (!(container && v.nil)) {
		switch (v.kind) {
		case GO_STRING: go_json_string(b, v.text, text_user_at(v.text, 0)); return;
		case GO_LIST: items(b, v); return;
		case GO_MAP:
		case GO_ORDERED: members(b, v); return;
		case GO_STRUCT:
		case GO_POINTER: fields(b, v); return;
		case GO_BOOL: strcpy(text, v.truth ? "true" : "false"); break;
		case GO_INT:
		case GO_BYTE: snprintf(text, sizeof text, "%" PRId64, v.integer); break;
		case GO_FLOAT: go_float_text(v.real, 'j', text); break;
		default: break;
		}
	}
	build_string(b, text, v.user);
}

const struct text *go_json_text(struct run *r, struct go_value v)
{
	struct build b = { .r = r };

	go_json(&b, v);
	return build_done(&b);
}

/* ---- types of JSON Schema in TypeScript's words */

static const char *typescript(const struct text *t)
{
	static const char *const words[][2] = {
		{ "string", "string" },   { "number", "number" }, { "integer", "number" },
		{ "boolean", "boolean" }, { "array", "any[]" },   { "object", "Record<string, any>" },
		{ "null", "null" }
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text_is(t, words[i][0]))
			return words[i][1];
	return "any";
}

void go_typescript(struct build *b, struct go_value v)
{
	const bool is = v.kind == GO_STRUCT && v.type == &go_property;
	const struct go_list *choices = is ? v.field[0].list : NULL, *types = is ? v.field[1].list : NULL;

	if (choices && choices->n) {
		for (size_t i = 0; i < choices->n && run_step(b->r, 1); i++) {
			if (i)
				build_string(b, " | ", true);
			go_typescript(b, choices->item[i]);
		}
		return;
	}
	if (!types || types->n == 0)
		build_string(b, "any", true);
	for (size_t i = 0; types && i < types->n && run_step(b->r, 1); i++) {
		if (i)
			build_string(b, " | ", true);
		build_string(b, typescript(types->item[i].text), true);
	}
}
