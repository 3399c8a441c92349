/* chat/go_template_call.c - the functions of Go's templates, and those that ollama adds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "chat/go_template.h"

enum function {
	FUNCTION_AND,
	FUNCTION_OR,
	FUNCTION_NOT,
	FUNCTION_COMPARE,
	FUNCTION_LEN,
	FUNCTION_INDEX,
	FUNCTION_SLICE,
	FUNCTION_PRINT,
	FUNCTION_PRINTLN,
	FUNCTION_PRINTF,
	FUNCTION_ESCAPE,
	FUNCTION_CALL,
	FUNCTION_JSON,
	FUNCTION_DATE,
	FUNCTION_TYPE
};

/* max: SIZE_MAX: any number */
static const struct row {
	const char *name;
	enum function function;
	size_t min, max;
	enum go_wants first, others;
} rows[] = {
	{ "and", FUNCTION_AND, 1, SIZE_MAX, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "or", FUNCTION_OR, 1, SIZE_MAX, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "not", FUNCTION_NOT, 1, 1, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "eq", FUNCTION_COMPARE, 1, SIZE_MAX, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "ne", FUNCTION_COMPARE, 2, 2, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "lt", FUNCTION_COMPARE, 2, 2, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "le", FUNCTION_COMPARE, 2, 2, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "gt", FUNCTION_COMPARE, 2, 2, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "ge", FUNCTION_COMPARE, 2, 2, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "len", FUNCTION_LEN, 1, 1, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "index", FUNCTION_INDEX, 1, SIZE_MAX, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "slice", FUNCTION_SLICE, 1, SIZE_MAX, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "print", FUNCTION_PRINT, 0, SIZE_MAX, GO_WANTS_ANY, GO_WANTS_ANY },
	{ "println", FUNCTION_PRINTLN, 0, SIZE_MAX, GO_WANTS_ANY, GO_WANTS_ANY },
	{ "printf", FUNCTION_PRINTF, 1, SIZE_MAX, GO_WANTS_STRING, GO_WANTS_ANY },
	{ "html", FUNCTION_ESCAPE, 0, SIZE_MAX, GO_WANTS_ANY, GO_WANTS_ANY },
	{ "js", FUNCTION_ESCAPE, 0, SIZE_MAX, GO_WANTS_ANY, GO_WANTS_ANY },
	{ "urlquery", FUNCTION_ESCAPE, 0, SIZE_MAX, GO_WANTS_ANY, GO_WANTS_ANY },
	{ "call", FUNCTION_CALL, 1, SIZE_MAX, GO_WANTS_VALUE, GO_WANTS_VALUE },
	{ "json", FUNCTION_JSON, 1, 1, GO_WANTS_ANY, GO_WANTS_ANY },
	{ "currentDate", FUNCTION_DATE, 0, SIZE_MAX, GO_WANTS_STRING, GO_WANTS_STRING },
	{ "yesterdayDate", FUNCTION_DATE, 0, SIZE_MAX, GO_WANTS_STRING, GO_WANTS_STRING },
	{ "toTypeScriptType", FUNCTION_TYPE, 1, 1, GO_WANTS_ANY, GO_WANTS_ANY },
};

unsigned go_find_function(const char *name, size_t n)
{
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (text_is(&(struct text){ .p = name, .n = n }, rows[i].name))
			return i;
	return NO_NUMBER;
}

/* ---- lists, maps, strings */

static struct go_value length(struct go_run *g, const struct go_node *n, struct go_value v)
{
	switch (v.kind) {
	case GO_STRING: return go_of_int((int64_t)v.text->n);
	case GO_LIST: return go_of_int((int64_t)v.list->n);
	case GO_MAP: return go_of_int((int64_t)v.map->n);
	default: return go_fail(g, n, "len of a value of type %s, expected a string, a list or a map", go_type_name(v));
	}
}

/* A number from 0 to max. */
static bool read_index(struct go_run *g, const struct go_node *n, const char *what, struct go_value v, size_t max,
                       size_t *out)
{
	if (v.kind != GO_INT && v.kind != GO_BYTE) {
		go_fail(g, n, "%s has an index of type %s, expected an integer", what, go_type_name(v));
		return false;
	}
	if (v.integer < 0 || (uint64_t)v.integer > max) {
		go_fail(g, n, "%s has the index %" PRId64 ", expected 0 to %zu", what, v.integer, max);
		return false;
	}
	*out = (size_t)v.integer;
	return true;
}

static struct go_value index_one(struct go_run *g, const struct go_node *n, struct go_value of, struct go_value by)
{
	const size_t length = of.kind == GO_STRING ? of.text->n : of.kind == GO_LIST ? of.list->n : 0;
	size_t i;

	if (of.kind == GO_MAP) {
		if (by.kind != GO_STRING)
			return go_fail(g, n, "index of a map by a value of type %s, expected a string",
			               go_type_name(by));
		const struct go_value *found = go_member(&of, by.text);
		return found ? *found : go_zero(g->r, of.type->element);
	}
	if (of.kind != GO_STRING && of.kind != GO_LIST)
		return go_fail(g, n, "index of a value of type %s, expected a list, a map or a string",
		               go_type_name(of));
	if (length == 0)
		return go_fail(g, n, "index of an empty value of type %s", go_type_name(of));
	if (!read_index(g, n, "index", by, length - 1, &i))
		return (struct go_value){ .kind = GO_NONE };
	if (of.kind == GO_LIST)
		return of.list->item[i];
	return (struct go_value){ .kind = GO_BYTE,
		                  .user = text_user_at(of.text, i),
		                  .type = &go_byte,
		                  .integer = (unsigned char)of.text->p[i] };
}

static struct go_value part(struct go_run *g, const struct go_node *n, const struct go_value *v, size_t count)
{
	const size_t length = v->kind == GO_STRING ? v->text->n : v->kind == GO_LIST ? v->list->n : 0;
	size_t at[3] = { 0, length, length };
	struct go_value out = *v;

	if (v->kind != GO_STRING && v->kind != GO_LIST)
		return go_fail(g, n, "slice of a value of type %s, expected a list or a string", go_type_name(*v));
	if (count > 4 || (count == 4 && v->kind == GO_STRING))
		return go_fail(g, n, "slice has %zu indexes, expected at most %d", count - 1,
		               v->kind == GO_STRING ? 2 : 3);
	for (size_t i = 1; i < count; i++)
		if (!read_index(g, n, "slice", go_held(v[i]), length, &at[i - 1]))
			return out;
	if (at[0] > at[1] || at[1] > at[2])
		return go_fail(g, n, "slice has the indexes %zu and %zu, expected no lower one behind",
		               at[at[0] <= at[1]], at[1 + (at[0] <= at[1])]);
	if (v->kind == GO_STRING)
		return go_of_text(text_part(g->r, v->text, at[0], at[1] - at[0]));
	struct go_list *l = run_take(g->r, sizeof *l);
	if (l)
		*l = (struct go_list){ v->list->item + (at[1] > at[0] ? at[0] : 0), at[1] - at[0] };
	out.list = l;
	return l ? out : (struct go_value){ .kind = GO_NONE };
}

/* ---- texts */

/* As an action prints them: nothing in words, and what a pointer points to. */
static void as_printed(struct go_value *v, size_t count)
{
	static const struct text nothing = { .p = "<no value>", .n = 10 };

	for (size_t i = 0; i < count; i++) {
		if (v[i].kind == GO_NONE || v[i].kind == GO_NIL)
			v[i] = go_of_text(&nothing);
		if (v[i].kind == GO_POINTER)
			v[i] = (struct go_value){ .kind = GO_STRUCT, .type = v[i].type->element, .field = v[i].field };
	}
}

static struct go_value print(struct go_run *g, const struct go_node *n, enum function f, const char *name,
                             struct go_value *v, size_t count)
{
	struct build b = { .r = g->r }, escaped = { .r = g->r };

	if (f == FUNCTION_ESCAPE)
		as_printed(v, count);
	if (f == FUNCTION_PRINTF)
		go_printf(g, n, &b, v[0].text, v + 1, count - 1);
	else
		go_print_all(&b, v, count, f == FUNCTION_PRINTLN);
	const struct text *t = build_done(&b);
	if (t && f == FUNCTION_ESCAPE) {
		go_escape(&escaped, name, t);
		t = build_done(&escaped);
	}
	return go_of_text(t);
}

static struct go_value date(struct go_run *g, const struct go_node *n, bool yesterday)
{
	struct tm day;
	char text[64];

	if (!g->r->now)
		return go_fail(g, n, "the template asks for the date, and no time was given");
	day = *g->r->now;
	day.tm_mday -= yesterday;
	day.tm_isdst = 0;
	timegm(&day);
	if (!strftime(text, sizeof text, "%Y-%m-%d", &day))
		return go_fail(g, n, "the date has no form of year, month and day");
	struct text *t = run_take(g->r, sizeof *t);
	char *p = run_take(g->r, sizeof text);
	if (!t || !p)
		return (struct go_value){ .kind = GO_NONE };
	memcpy(p, text, sizeof text);
	*t = (struct text){ .p = p, .n = strlen(p) };
	return go_of_text(t);
}

static struct go_value apply(struct go_run *g, const struct go_node *n, const struct row *row, struct go_value *v,
                             size_t count)
{
	struct build b = { .r = g->r };
	struct go_value out;

	/* what an interface holds */
	for (size_t i = 0; i < count; i++)
		if ((i ? row->others : row->first) == GO_WANTS_VALUE)
			v[i] = go_held(v[i]);
	switch (row->function) {
	case FUNCTION_NOT: return go_of_bool(!go_truth(v[0]));
	case FUNCTION_COMPARE: return go_compare(g, n, row->name, v, count);
	case FUNCTION_LEN: return length(g, n, v[0]);
	case FUNCTION_INDEX:
		out = v[0];
		if (out.kind == GO_NONE)
			return go_fail(g, n, "index of nothing, expected a list, a map or a string");
		for (size_t i = 1; i < count && !g->r->failed; i++)
			out = index_one(g, n, out, v[i]);
		return out;
	case FUNCTION_SLICE: return part(g, n, v, count);
	case FUNCTION_CALL:
		return go_fail(g, n, "call of a value of type %s, which is no function", go_type_name(v[0]));
	case FUNCTION_JSON: return go_of_text(go_json_text(g->r, v[0]));
	case FUNCTION_DATE: return date(g, n, row->name[0] == 'y');
	case FUNCTION_TYPE: go_typescript(&b, v[0]); return go_of_text(build_done(&b));
	default: return print(g, n, row->function, row->name, v, count);
	}
}

/* and, or: the first argument that decides, or the last one. */
static struct go_value decide(struct go_run *g, bool any, const struct go_node *args, struct go_value dot,
                              const struct go_value *last)
{
	struct go_value v = { .kind = GO_NONE };

	for (; args && !g->r->failed; args = args->next) {
		v = go_argument(g, args, dot, GO_WANTS_VALUE);
		if (go_truth(v) == any)
			return v;
	}
	return last ? *last : v;
}

/* As the type of the parameter: a string, or anything. */
static bool is_wanted(struct go_run *g, const struct go_node *n, const char *name, struct go_value v,
                      enum go_wants wants)
{
	if (wants != GO_WANTS_STRING || v.kind == GO_STRING || g->r->failed)
		return !g->r->failed;
	go_fail(g, n, "%s is given a value of type %s, expected a string", name, go_type_name(v));
	return false;
}

struct go_value go_call_number(struct go_run *g, const struct go_node *n, unsigned number, const struct go_node *args,
                               struct go_value dot, const struct go_value *last)
{
	const struct row *row = &rows[number];
	const struct go_node *a;
	size_t count = last != NULL, i = 0;

	for (a = args; a; a = a->next)
		count++;
	if (count < row->min || count > row->max)
		return go_fail(g, n, "%s has %zu arguments, expected %s%zu", row->name, count,
		               row->max == SIZE_MAX ? "at least " : "", row->min);
	if (row->function == FUNCTION_AND || row->function == FUNCTION_OR)
		return decide(g, row->function == FUNCTION_OR, args, dot, last);
	struct go_value *v = run_take(g->r, count * sizeof *v);
	for (a = args; v && a && !g->r->failed; a = a->next, i++) {
		v[i] = go_argument(g, a, dot, i ? row->others : row->first);
		is_wanted(g, a, row->name, v[i], i ? row->others : row->first);
	}
	if (v && last && !g->r->failed) {
		v[i] = *last;
		is_wanted(g, n, row->name, v[i], i ? row->others : row->first);
	}
	return v && !g->r->failed ? apply(g, n, row, v, count) : (struct go_value){ .kind = GO_NONE };
}

/* ---- methods */

bool go_method(struct go_run *g, const struct go_node *n, struct go_value of, const struct text *name,
               struct go_value *out)
{
	struct build b = { .r = g->r };

	if (of.type && of.type->says != GO_SAYS_NOTHING && text_is(name, "String")) {
		go_print(&b, of);
		*out = go_of_text(build_done(&b));
		return true;
	}
	if (of.type == &go_property && text_is(name, "ToTypeScriptType")) {
		go_typescript(&b, of);
		*out = go_of_text(build_done(&b));
		return true;
	}
	if (of.kind != GO_ORDERED)
		return false;
	if (text_is(name, "Len")) {
		*out = go_of_int((int64_t)of.map->n);
		return true;
	}
	*out = of;
	if (text_is(name, "All")) {
		out->walks = true;
		out->nil = false;
		return true;
	}
	if (!text_is(name, "ToMap"))
		return text_is(name, "Get") || text_is(name, "Set")
		               ? (go_fail(g, n, "the method %.*s gives no single value", (int)name->n, name->p), true)
		               : false;
	static const struct go_type sorted = {
		.name = "map[string]api.ToolProperty", .kind = GO_MAP, .element = &go_property
	};
	struct go_pair *pair = run_take(g->r, of.map->n * sizeof *pair);
	if (pair && of.map->n)
		memcpy(pair, of.map->pair, of.map->n * sizeof *pair);
	const bool nil = of.nil;
	if (pair)
		*out = go_map_of(g->r, &sorted, pair, of.map->n);
	out->nil = nil;
	return true;
}
