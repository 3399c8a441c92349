/* chat/jinja_method.c - which methods values have, and those of dictionaries and lists.
 *
 * Owns: the table of methods. Those that would change a value are "unsafe", as in the immutable sandbox that chat
 * templates are made for, but for two of lists (chat_request.lenient); those that Python has and no template was seen
 * to use are refused by name when called.
 */
#include <math.h>
#include <string.h>

#include "chat/jinja.h"
#include "chat/jinja_methods.h"

enum { UNSAFE = 254, UNSUPPORTED = 255 };

static const struct row {
	uint8_t kind, number;
	const char *name;
} rows[] = {
#define X(name) { KIND_TEXT, STRING_##name, #name },
	STRING_METHODS(X)
#undef X
		{ KIND_TEXT, UNSUPPORTED, "casefold" },
	{ KIND_TEXT, UNSUPPORTED, "encode" },
	{ KIND_TEXT, UNSUPPORTED, "expandtabs" },
	{ KIND_TEXT, UNSUPPORTED, "format_map" },
	{ KIND_TEXT, UNSUPPORTED, "isidentifier" },
	{ KIND_TEXT, UNSUPPORTED, "isprintable" },
	{ KIND_TEXT, UNSUPPORTED, "istitle" },
	{ KIND_TEXT, UNSUPPORTED, "maketrans" },
	{ KIND_TEXT, UNSUPPORTED, "translate" },
	{ KIND_DICT, METHOD_items, "items" },
	{ KIND_DICT, METHOD_keys, "keys" },
	{ KIND_DICT, METHOD_values, "values" },
	{ KIND_DICT, METHOD_get, "get" },
	{ KIND_DICT, METHOD_copy, "copy" },
	{ KIND_DICT, UNSUPPORTED, "fromkeys" },
	{ KIND_DICT, UNSAFE, "clear" },
	{ KIND_DICT, UNSAFE, "pop" },
	{ KIND_DICT, UNSAFE, "popitem" },
	{ KIND_DICT, UNSAFE, "setdefault" },
	{ KIND_DICT, UNSAFE, "update" },
	{ KIND_LIST, METHOD_count, "count" },
	{ KIND_LIST, METHOD_index, "index" },
	{ KIND_LIST, METHOD_copy, "copy" },
	{ KIND_LIST, METHOD_append, "append" },
	{ KIND_LIST, UNSAFE, "clear" },
	{ KIND_LIST, METHOD_pop, "pop" },
	{ KIND_LIST, UNSAFE, "reverse" },
	{ KIND_LIST, UNSAFE, "insert" },
	{ KIND_LIST, UNSAFE, "sort" },
	{ KIND_LIST, UNSAFE, "extend" },
	{ KIND_LIST, UNSAFE, "remove" },
	{ KIND_TUPLE, METHOD_count, "count" },
	{ KIND_TUPLE, METHOD_index, "index" },
	{ KIND_RANGE, METHOD_count, "count" },
	{ KIND_RANGE, METHOD_index, "index" },
	{ KIND_INT, UNSUPPORTED, "bit_length" },
	{ KIND_INT, UNSUPPORTED, "bit_count" },
	{ KIND_INT, UNSUPPORTED, "conjugate" },
	{ KIND_INT, UNSUPPORTED, "to_bytes" },
	{ KIND_INT, UNSUPPORTED, "from_bytes" },
	{ KIND_INT, UNSUPPORTED, "as_integer_ratio" },
	{ KIND_INT, UNSUPPORTED, "numerator" },
	{ KIND_INT, UNSUPPORTED, "denominator" },
	{ KIND_INT, UNSUPPORTED, "real" },
	{ KIND_INT, UNSUPPORTED, "imag" },
	{ KIND_FLOAT, METHOD_is_integer, "is_integer" },
	{ KIND_FLOAT, UNSUPPORTED, "as_integer_ratio" },
	{ KIND_FLOAT, UNSUPPORTED, "hex" },
	{ KIND_FLOAT, UNSUPPORTED, "conjugate" },
	{ KIND_FLOAT, UNSUPPORTED, "fromhex" },
	{ KIND_FLOAT, UNSUPPORTED, "real" },
	{ KIND_FLOAT, UNSUPPORTED, "imag" },
};

struct value find_method(struct run *r, struct value self, const struct text *name)
{
	unsigned kind = self.kind == KIND_BOOL ? KIND_INT : self.kind;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].kind != kind || !text_is(name, rows[i].name))
			continue;
		bool changes = kind == KIND_LIST && (rows[i].number == METHOD_append || rows[i].number == METHOD_pop);
		if (rows[i].number == UNSAFE || (changes && (!r->lenient || self.user)))
			return value_undefined(UNDEFINED_UNSAFE, name, (enum kind)self.kind);
		struct method *m = run_take(r, sizeof *m);
		if (!m)
			return value_of(KIND_ABSENT);
		*m = (struct method){ self, (unsigned)i };
		return (struct value){ .kind = KIND_METHOD, .method = m };
	}
	return value_of(KIND_ABSENT);
}

static struct value make_view(struct run *r, struct value self, char what)
{
	struct value v = value_list(r, KIND_VIEW, self.dict->n);

	for (size_t i = 0; v.kind != KIND_ABSENT && i < v.list->n && !r->failed; i++) {
		struct pair *p = &self.dict->pair[i];
		if (what != 'i') {
			v.list->item[i] = what == 'k' ? p->key : p->value;
			continue;
		}
		struct value two = value_list(r, KIND_TUPLE, 2);
		if (two.kind == KIND_ABSENT)
			return two;
		two.list->item[0] = p->key;
		two.list->item[1] = p->value;
		two.user = self.user;
		v.list->item[i] = two;
	}
	v.detail = (uint8_t)what;
	v.user = self.user;
	return v;
}

static struct value dict_get(struct run *r, struct value self, const struct arguments *args)
{
	static const char *const names[2] = { NULL };
	struct value v[2];

	if (!bind_arguments(r, "get", args, names, 2, 1, v) || !value_hashable(r, v[0]))
		return value_of(KIND_ABSENT);
	const struct pair *p = dict_find(r, self.dict, v[0]);
	return p ? p->value : v[1].kind != KIND_ABSENT ? v[1] : value_none();
}

static struct value list_count(struct run *r, struct value self, const struct arguments *args, bool index)
{
	static const char *const names[1] = { NULL };
	struct value v;
	int64_t n = 0;

	if (!bind_arguments(r, index ? "index" : "count", args, names, 1, 1, &v))
		return v;
	for (size_t i = 0; i < self.list->n && !r->failed; i++) {
		if (!value_equal(r, self.list->item[i], v))
			continue;
		if (index)
			return value_int((int64_t)i);
		n++;
	}
	return index ? run_fail(r, "the item is not in the %s", value_type(self)) : value_int(n);
}

static struct value list_append(struct run *r, struct value self, const struct arguments *args)
{
	static const char *const names[1] = { NULL };
	struct list *l = self.list;
	struct value v;

	if (!bind_arguments(r, "append", args, names, 1, 1, &v) || !run_bytes(r, l->n * sizeof v))
		return value_of(KIND_ABSENT);
	struct value *item = run_take(r, (l->n + 1) * sizeof *item);
	if (!item)
		return value_of(KIND_ABSENT);
	if (l->n)
		memcpy(item, l->item, l->n * sizeof *item);
	item[l->n++] = v;
	l->item = item;
	return value_none();
}

static struct value list_pop(struct run *r, struct value self, const struct arguments *args)
{
	static const char *const names[1] = { NULL };
	struct list *l = self.list;
	struct value v;
	int64_t at = -1;

	if (!bind_arguments(r, "pop", args, names, 1, 0, &v) || !want_int(r, "pop", v, &at))
		return value_of(KIND_ABSENT);
	at += at < 0 ? (int64_t)l->n : 0;
	if (at < 0 || at >= (int64_t)l->n)
		return run_fail(r, l->n ? "pop index out of range" : "pop from empty list");
	v = l->item[at];
	memmove(l->item + at, l->item + at + 1, (l->n - (size_t)at - 1) * sizeof v);
	l->n--;
	return v;
}

static struct value copy_of(struct run *r, struct value self)
{
	struct value v;

	if (self.kind == KIND_DICT) {
		v = dict_new(r, self.dict->n);
		if (v.kind == KIND_ABSENT)
			return v;
		for (size_t i = 0; i < self.dict->n; i++)
			dict_append(r, v.dict, self.dict->pair[i].key, self.dict->pair[i].value);
		dict_finish(r, v.dict);
	} else {
		v = value_list(r, KIND_LIST, self.list->n);
		if (v.kind != KIND_ABSENT && self.list->n)
			memcpy(v.list->item, self.list->item, self.list->n * sizeof *v.list->item);
	}
	v.user = self.user;
	return v;
}

struct value call_method(struct run *r, const struct method *m, const struct arguments *args)
{
	const struct row *row = &rows[m->number];
	struct value self = m->self;

	if (row->number == UNSUPPORTED)
		return run_fail(r, "the method '%s' of '%s' is not supported", row->name, value_type(self));
	if (row->kind == KIND_TEXT)
		return string_method(r, row->number, self.text, args);
	switch (row->number) {
	case METHOD_get: return dict_get(r, self, args);
	case METHOD_count:
	case METHOD_index: return list_count(r, self, args, row->number == METHOD_index);
	case METHOD_append: return list_append(r, self, args);
	case METHOD_pop: return list_pop(r, self, args);
	default: break;
	}
	if (args->n || args->n_keywords)
		return run_fail(r, "%s.%s() takes no arguments (%zu given)", value_type(self), row->name,
		                args->n + args->n_keywords);
	switch (row->number) {
	case METHOD_items: return make_view(r, self, 'i');
	case METHOD_keys: return make_view(r, self, 'k');
	case METHOD_values: return make_view(r, self, 'v');
	case METHOD_copy: return copy_of(r, self);
	default: return value_bool(isfinite(self.real) && floor(self.real) == self.real);
	}
}
