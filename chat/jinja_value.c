/* chat/jinja_value.c - what values are, as Python has them: truth, equality, order, dictionaries.
 *
 * Owns: the comparison of any two values, and finding a key. Dictionaries keep the order in which keys came; large ones
 * have their keys sorted beside it, so that no choice of keys makes them slow.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chat/jinja.h"

enum { LINEAR_MAX = 8 };

struct value value_undefined(enum undefined why, const struct text *name, enum kind of)
{
	return (struct value){ .kind = KIND_UNDEFINED, .detail = (uint8_t)why, .of = (uint8_t)of, .text = name };
}

struct value value_list(struct run *r, enum kind k, size_t n)
{
	struct list *l = n <= CHAT_MAX_MEMORY / sizeof *l->item && run_step(r, 1 + n / 8)
	                         ? run_take(r, sizeof *l + n * sizeof *l->item)
	                         : NULL;

	if (!l)
		return r->failed ? value_of(KIND_ABSENT)
		                 : run_fail(r, "a list has more items than there is memory for");
	*l = (struct list){ .item = (struct value *)(l + 1), .n = n };
	memset(l->item, 0, n * sizeof *l->item);
	return (struct value){ .kind = (uint8_t)k, .list = l };
}

const char *value_type(struct value v)
{
	switch ((enum kind)v.kind) {
	case KIND_NONE: return "NoneType";
	case KIND_BOOL: return "bool";
	case KIND_INT: return "int";
	case KIND_FLOAT: return "float";
	case KIND_TEXT: return v.text->safe ? "Markup" : "str";
	case KIND_LIST: return "list";
	case KIND_TUPLE: return "tuple";
	case KIND_RANGE: return "range";
	case KIND_VIEW: return v.detail == 'i' ? "dict_items" : v.detail == 'k' ? "dict_keys" : "dict_values";
	case KIND_STREAM: return "generator";
	case KIND_DICT: return "dict";
	case KIND_NAMESPACE: return "Namespace";
	case KIND_MACRO: return "Macro";
	case KIND_FUNCTION: return "function";
	case KIND_METHOD: return "builtin_function_or_method";
	case KIND_LOOP: return "LoopContext";
	default: return "Undefined";
	}
}

/* What Jinja calls the thing that was asked for an attribute. */
static const char *accessed_object(enum kind of, char out[60])
{
	static const struct {
		enum kind kind;
		const char *name;
	} rows[] = {
		{ KIND_NONE, "None" },
		{ KIND_NAMESPACE, "jinja2.utils.Namespace object" },
		{ KIND_MACRO, "jinja2.runtime.Macro object" },
		{ KIND_LOOP, "jinja2.runtime.LoopContext object" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].kind == of)
			return rows[i].name;
	static const struct text nothing;
	struct value v = value_of(of);
	v.text = &nothing;
	v.detail = 'i';
	stpcpy(stpcpy(out, value_type(v)), " object");
	return out;
}

struct value fail_undefined(struct run *r, struct value v)
{
	char thing[60];
	int n = v.text ? (int)v.text->n : 0;
	const char *name = v.text ? v.text->p : "";

	switch ((enum undefined)v.detail) {
	case UNDEFINED_NAME: return run_fail(r, "'%.*s' is undefined", n, name);
	case UNDEFINED_ATTRIBUTE:
		return run_fail(r, "'%s' has no attribute '%.*s'", accessed_object(v.of, thing), n, name);
	case UNDEFINED_ELEMENT: return run_fail(r, "%s has no element %.*s", accessed_object(v.of, thing), n, name);
	case UNDEFINED_UNSAFE:
		return run_fail(r, "access to attribute '%.*s' of '%s' object is unsafe.", n, name,
		                value_type((struct value){ .kind = v.of, .text = v.text }));
	case UNDEFINED_PARAMETER: return run_fail(r, "parameter '%.*s' was not provided", n, name);
	default: return run_fail(r, "%.*s", n, name);
	}
}

bool value_truth(struct value v)
{
	switch ((enum kind)v.kind) {
	case KIND_ABSENT:
	case KIND_UNDEFINED:
	case KIND_NONE: return false;
	case KIND_BOOL: return v.truth;
	case KIND_INT: return v.integer != 0;
	case KIND_FLOAT: return v.real != 0;
	case KIND_TEXT: return v.text->n != 0;
	case KIND_LIST:
	case KIND_TUPLE:
	case KIND_RANGE:
	case KIND_VIEW: return v.list->n != 0;
	case KIND_DICT: return v.dict->n != 0;
	default: return true;
	}
}

/* An integer and a float, exactly. */
static int compare_mixed(int64_t i, double f)
{
	if (f >= 9223372036854775808.0)
		return -1;
	if (f < -9223372036854775808.0)
		return 1;
	int64_t whole = (int64_t)f;
	return i != whole ? (i < whole ? -1 : 1) : f - (double)whole > 0 ? -1 : f - (double)whole < 0;
}

/* Neither is NaN. */
static int compare_numbers(struct value a, struct value b)
{
	if (a.kind == KIND_FLOAT && b.kind == KIND_FLOAT)
		return a.real < b.real ? -1 : a.real > b.real;
	if (a.kind == KIND_FLOAT)
		return -compare_mixed(integer_of(b), a.real);
	if (b.kind == KIND_FLOAT)
		return compare_mixed(integer_of(a), b.real);
	return integer_of(a) < integer_of(b) ? -1 : integer_of(a) > integer_of(b);
}

static bool is_nan(struct value v) { return v.kind == KIND_FLOAT && isnan(v.real); }

static bool equal_dicts(struct run *r, const struct dict *a, const struct dict *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct pair *p = dict_find(r, b, a->pair[i].key);
		if (!p || !value_equal(r, a->pair[i].value, p->value))
			return false;
	}
	return true;
}

bool value_equal(struct run *r, struct value a, struct value b)
{
	bool equal = false;

	if (is_number(a) && is_number(b))
		return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
	if (a.kind != b.kind)
		return false;
	if (!run_step(r, 1) || r->depth >= CHAT_MAX_DEPTH)
		return false;
	r->depth++;
	switch ((enum kind)a.kind) {
	case KIND_UNDEFINED:
	case KIND_NONE: equal = true; break;
	case KIND_TEXT: equal = run_bytes(r, a.text->n) && text_same(a.text, b.text); break;
	case KIND_LIST:
	case KIND_TUPLE:
	case KIND_RANGE:
		equal = a.list == b.list || a.list->n == b.list->n;
		for (size_t i = 0; equal && a.list != b.list && i < a.list->n; i++)
			equal = value_equal(r, a.list->item[i], b.list->item[i]);
		break;
	case KIND_DICT: equal = a.dict == b.dict || equal_dicts(r, a.dict, b.dict); break;
	default: equal = a.list == b.list && a.detail == b.detail; break; /* the same thing */
	}
	r->depth--;
	return equal && !r->failed;
}

static int compare_lists(struct run *r, const struct list *a, const struct list *b, const char *op)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		if (!value_equal(r, a->item[i], b->item[i]))
			return r->failed ? 0 : value_compare(r, a->item[i], b->item[i], op);
	return a->n < b->n ? -1 : a->n > b->n;
}

int value_compare(struct run *r, struct value a, struct value b, const char *op)
{
	if (!run_step(r, 1))
		return 0;
	if (is_number(a) && is_number(b))
		return compare_numbers(a, b);
	if (a.kind == KIND_TEXT && b.kind == KIND_TEXT)
		return run_bytes(r, a.text->n) ? text_order(a.text, b.text) : 0;
	if (a.kind == b.kind && (a.kind == KIND_LIST || a.kind == KIND_TUPLE) && r->depth < CHAT_MAX_DEPTH) {
		r->depth++;
		int c = compare_lists(r, a.list, b.list, op);
		r->depth--;
		return c;
	}
	if (a.kind == KIND_UNDEFINED || b.kind == KIND_UNDEFINED)
		fail_undefined(r, a.kind == KIND_UNDEFINED ? a : b);
	else
		run_fail(r, "'%s' not supported between instances of '%s' and '%s'", op, value_type(a), value_type(b));
	return 0;
}

bool value_contains(struct run *r, struct value in, struct value v)
{
	if (in.kind == KIND_TEXT) {
		if (v.kind != KIND_TEXT) {
			run_fail(r, "'in <string>' requires string as left operand, not %s", value_type(v));
			return false;
		}
		return run_bytes(r, in.text->n) && text_find(in.text, v.text, 0, in.text->n) != SIZE_MAX;
	}
	if (in.kind == KIND_DICT)
		return value_hashable(r, v) && dict_find(r, in.dict, v) != NULL;
	if (in.kind == KIND_UNDEFINED)
		return false;
	if (!is_sequence(in)) {
		run_fail(r, "argument of type '%s' is not iterable", value_type(in));
		return false;
	}
	/* a stream is taken up to the item */
	for (size_t i = in.list->at; i < in.list->n && !r->failed; i++) {
		if (in.kind == KIND_STREAM)
			in.list->at = i + 1;
		if (value_equal(r, in.list->item[i], v))
			return true;
	}
	return false;
}

bool value_same(struct value a, struct value b)
{
	if (a.kind != b.kind)
		return false;
	switch ((enum kind)a.kind) {
	case KIND_NONE: return true;
	case KIND_BOOL: return a.truth == b.truth;
	case KIND_INT: return a.integer == b.integer && a.integer >= -5 && a.integer <= 256;
	case KIND_FLOAT: return false;
	default: return a.list == b.list;
	}
}

bool value_hashable(struct run *r, struct value v)
{
	bool ok = v.kind != KIND_LIST && v.kind != KIND_DICT && v.kind != KIND_VIEW;

	if (!ok || r->depth >= CHAT_MAX_DEPTH) {
		if (ok)
			run_fail(r, "a key is nested too deep");
		else
			run_fail(r, "unhashable type: '%s'", value_type(v));
		return false;
	}
	r->depth++;
	for (size_t i = 0; ok && v.kind == KIND_TUPLE && i < v.list->n; i++)
		ok = v.list->item[i].kind < KIND_LIST || value_hashable(r, v.list->item[i]);
	r->depth--;
	return ok && !r->failed;
}

/* ---- dictionaries */

struct value dict_new(struct run *r, size_t capacity)
{
	struct dict *d = capacity <= CHAT_MAX_MEMORY / sizeof(struct pair) ? run_take(r, sizeof *d) : NULL;

	if (!d)
		return value_of(KIND_ABSENT);
	*d = (struct dict){ .capacity = capacity };
	if (capacity && !(d->pair = run_take(r, capacity * sizeof *d->pair)))
		return value_of(KIND_ABSENT);
	return (struct value){ .kind = KIND_DICT, .dict = d };
}

bool dict_append(struct run *r, struct dict *d, struct value key, struct value v)
{
	if (d->n == d->capacity) {
		size_t want = d->n ? 2 * d->n : 4;
		struct pair *p = run_take(r, want * sizeof *p);
		if (!p)
			return false;
		if (d->n)
			memcpy(p, d->pair, d->n * sizeof *p);
		d->pair = p;
		d->capacity = want;
	}
	d->pair[d->n++] = (struct pair){ key, v };
	return true;
}

/* Any order that has equal keys beside each other: numbers, texts, tuples, all else by what it is. */
static int key_order(struct value a, struct value b)
{
	int x = is_number(a) ? KIND_INT : a.kind, y = is_number(b) ? KIND_INT : b.kind;

	if (x != y)
		return x < y ? -1 : 1;
	if (x == KIND_INT)
		return is_nan(a) || is_nan(b) ? is_nan(a) - is_nan(b) : compare_numbers(a, b);
	if (x == KIND_TEXT)
		return text_order(a.text, b.text);
	if (x == KIND_NONE || x == KIND_UNDEFINED)
		return 0;
	if (x != KIND_TUPLE)
		return a.list < b.list ? -1 : a.list > b.list;
	for (size_t i = 0; i < a.list->n && i < b.list->n; i++) {
		int c = key_order(a.list->item[i], b.list->item[i]);
		if (c)
			return c;
	}
	return a.list->n < b.list->n ? -1 : a.list->n > b.list->n;
}

static int pair_order(const void *x, const void *y, void *pairs)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	const struct pair *p = pairs;
	int c = key_order(p[a].key, p[b].key);

	return c ? c : a < b ? -1 : a > b;
}

/* Of equal keys the first keeps its place and its key, and takes the last one's value. */
static void drop_doubles(struct dict *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n;) {
		uint32_t first = d->order[i];
		while (++i < d->n && key_order(d->pair[first].key, d->pair[d->order[i]].key) == 0) {
			d->pair[first].value = d->pair[d->order[i]].value;
			d->pair[d->order[i]].key = value_of(KIND_ABSENT);
		}
	}
	for (size_t i = 0; i < d->n; i++)
		if (d->pair[i].key.kind != KIND_ABSENT)
			d->pair[n++] = d->pair[i];
	d->n = n;
}

static bool sort_keys(struct run *r, struct dict *d)
{
	if (!d->order && !(d->order = run_take(r, (d->n + 1) * sizeof *d->order)))
		return false;
	for (size_t i = 0; i < d->n; i++)
		d->order[i] = (uint32_t)i;
	if (!run_step(r, 1 + d->n))
		return false;
	qsort_r(d->order, d->n, sizeof *d->order, pair_order, d->pair);
	return true;
}

bool dict_finish(struct run *r, struct dict *d)
{
	size_t n = d->n;

	if (d->n < 2)
		return true;
	if (!sort_keys(r, d))
		return false;
	drop_doubles(d);
	if (d->n > LINEAR_MAX)
		return d->n == n || sort_keys(r, d);
	d->order = NULL;
	return true;
}

struct pair *dict_find(struct run *r, const struct dict *d, struct value key)
{
	size_t lo = 0, hi = d->n;

	if (!run_step(r, 1 + d->n / 16))
		return NULL;
	if (!d->order) {
		for (size_t i = 0; i < d->n; i++)
			if (key_order(d->pair[i].key, key) == 0)
				return &d->pair[i];
		return NULL;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = key_order(d->pair[d->order[mid]].key, key);
		if (c == 0)
			return &d->pair[d->order[mid]];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

struct pair *dict_find_name(struct run *r, const struct dict *d, const struct text *name)
{
	return dict_find(r, d, (struct value){ .kind = KIND_TEXT, .text = name });
}

/* ---- going through a value */

static struct list *characters(struct run *r, const struct text *t)
{
	struct value v = value_list(r, KIND_LIST, text_characters(r, t));
	size_t at = 0;

	if (v.kind == KIND_ABSENT)
		return NULL;
	for (size_t i = 0; i < v.list->n && !r->failed; i++) {
		uint32_t c;
		unsigned n = text_at(t, at, &c);
		v.list->item[i] = value_text(text_part(r, t, at, n));
		at += n;
	}
	return r->failed ? NULL : v.list;
}

struct list *iterate(struct run *r, struct value v)
{
	struct value all;

	if (r->failed)
		return NULL;
	switch ((enum kind)v.kind) {
	case KIND_LIST:
		if (r->lenient && !v.user) { /* what is appended or taken on the way changes nothing of it */
			struct list *now = run_take(r, sizeof *now);
			if (now)
				*now = *v.list;
			return now;
		} /* fall through */
	case KIND_TUPLE:
	case KIND_RANGE:
	case KIND_VIEW: return v.list;
	case KIND_STREAM:
		all = value_list(r, KIND_LIST, v.list->n - v.list->at);
		if (all.kind == KIND_ABSENT)
			return NULL;
		memcpy(all.list->item, v.list->item + v.list->at, all.list->n * sizeof *all.list->item);
		v.list->at = v.list->n;
		return all.list;
	case KIND_TEXT: return characters(r, v.text);
	case KIND_DICT:
		all = value_list(r, KIND_LIST, v.dict->n);
		for (size_t i = 0; all.kind != KIND_ABSENT && i < v.dict->n; i++)
			all.list->item[i] = v.dict->pair[i].key;
		return all.kind == KIND_ABSENT ? NULL : all.list;
	case KIND_UNDEFINED: all = value_list(r, KIND_LIST, 0); return all.kind == KIND_ABSENT ? NULL : all.list;
	default: run_fail(r, "'%s' object is not iterable", value_type(v)); return NULL;
	}
}
