/* chat/jinja_order.c - filters that compare items: sort, dictsort, unique, min, max, groupby.
 *
 * Owns: the keys that items are compared by, texts without their case unless asked, and a sort that keeps the order of
 * equals.
 */
#include <string.h>

#include "chat/jinja.h"

static struct value without_case(struct run *r, struct value v, bool sensitive)
{
	return v.kind == KIND_TEXT && !sensitive ? value_text(string_case(r, v.text, 'l')) : v;
}

struct keyed {
	struct value key, item;
};

/* Stable; equal keys keep their order also when it is reversed. */
static bool sort_keyed(struct run *r, struct keyed *p, size_t n, bool reverse)
{
	struct keyed *to = run_take(r, (n + 1) * sizeof *to);

	for (size_t width = 1; to && width < n && !r->failed; width *= 2) {
		for (size_t lo = 0; lo < n && !r->failed; lo += 2 * width) {
			size_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n,
			       a = lo, b = mid;
			for (size_t k = lo; k < hi; k++) {
				int c = a < mid && b < hi ? value_compare(r, p[b].key, p[a].key, "<") : 0;
				to[k] = a < mid && (b == hi || (reverse ? c <= 0 : c >= 0)) ? p[a++] : p[b++];
			}
		}
		memcpy(p, to, n * sizeof *p);
	}
	return !r->failed;
}

/* The items with their keys: several attributes, with commas between, make a list. */
static struct keyed *keys_of(struct run *r, struct list *l, struct value attribute, bool sensitive, bool several)
{
	static const struct text comma = { .p = ",", .n = 1 };
	struct keyed *p = l ? run_take(r, (l->n + 1) * sizeof *p) : NULL;
	struct value parts = value_of(KIND_ABSENT);

	if (several && attribute.kind == KIND_TEXT)
		parts = string_split(r, attribute.text, &comma, -1, false);
	for (size_t i = 0; p && i < l->n && !r->failed; i++) {
		p[i].item = l->item[i];
		if (parts.kind != KIND_LIST || parts.list->n < 2) {
			p[i].key = without_case(r, get_path(r, l->item[i], attribute), sensitive);
			continue;
		}
		p[i].key = value_list(r, KIND_LIST, parts.list->n);
		for (size_t k = 0; !r->failed && k < parts.list->n; k++)
			p[i].key.list->item[k] =
				without_case(r, get_path(r, l->item[i], parts.list->item[k]), sensitive);
	}
	return r->failed ? NULL : p;
}

static struct value items_of(struct run *r, const struct keyed *p, size_t n)
{
	struct value v = value_list(r, KIND_LIST, n);

	for (size_t i = 0; v.kind != KIND_ABSENT && i < n; i++)
		v.list->item[i] = p[i].item;
	return v;
}

static struct value do_sort(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "reverse", "case_sensitive", "attribute" };
	struct value a[3];

	if (!bind_arguments(r, "sort", args, names, 3, 0, a))
		return value_of(KIND_ABSENT);
	struct list *l = iterate(r, v);
	struct keyed *p = keys_of(r, l, a[2], value_truth(a[1]), true);
	return p && sort_keyed(r, p, l->n, value_truth(a[0])) ? items_of(r, p, l->n) : value_of(KIND_ABSENT);
}

static struct value do_dictsort(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "case_sensitive", "by", "reverse" };
	struct value a[3];

	if (!bind_arguments(r, "dictsort", args, names, 3, 0, a))
		return value_of(KIND_ABSENT);
	bool by_value = a[1].kind == KIND_TEXT && text_is(a[1].text, "value");
	if (a[1].kind != KIND_ABSENT && !by_value && !(a[1].kind == KIND_TEXT && text_is(a[1].text, "key")))
		return run_fail(r, "You can only sort by either \"key\" or \"value\"");
	if (v.kind != KIND_DICT)
		return v.kind == KIND_UNDEFINED ? fail_undefined(r, v)
		                                : run_fail(r, "'%s' object has no attribute 'items'", value_type(v));
	struct value pairs = dict_pairs(r, v, KIND_LIST);
	struct keyed *p = r->failed ? NULL : keys_of(r, pairs.list, value_int(by_value), value_truth(a[0]), false);
	return p && sort_keyed(r, p, pairs.list->n, value_truth(a[2]))
	               ? items_of(r, p, pairs.list->n)
	               : value_of(KIND_ABSENT);
}

static struct value do_unique(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "case_sensitive", "attribute" };
	struct value a[2], out;
	size_t n = 0;

	if (!bind_arguments(r, "unique", args, names, 2, 0, a))
		return value_of(KIND_ABSENT);
	struct list *l = iterate(r, v);
	struct keyed *p = keys_of(r, l, a[1], value_truth(a[0]), false);
	for (size_t i = 0; p && i < l->n && value_hashable(r, p[i].key); i++) {
		size_t k = 0;
		while (k < n && !value_equal(r, p[k].key, p[i].key) && run_step(r, 1))
			k++;
		if (k == n)
			p[n++] = p[i];
	}
	out = p && !r->failed ? items_of(r, p, n) : value_of(KIND_ABSENT);
	if (out.kind != KIND_ABSENT)
		out.kind = KIND_STREAM;
	return out;
}

static struct value extreme(struct run *r, struct value v, const struct arguments *args, bool max)
{
	static const char *const names[] = { "case_sensitive", "attribute" };
	struct value a[2];
	size_t best = 0;

	if (!bind_arguments(r, max ? "max" : "min", args, names, 2, 0, a))
		return value_of(KIND_ABSENT);
	struct list *l = iterate(r, v);
	struct keyed *p = keys_of(r, l, a[1], value_truth(a[0]), false);
	if (!p)
		return value_of(KIND_ABSENT);
	if (!l->n)
		return value_undefined(UNDEFINED_OTHER, text_literal(r, "No aggregated item, sequence was empty."),
		                       KIND_ABSENT);
	for (size_t i = 1; i < l->n && !r->failed; i++) {
		int c = value_compare(r, p[i].key, p[best].key, max ? ">" : "<");
		if (max ? c > 0 : c < 0)
			best = i;
	}
	return p[best].item;
}

static struct value do_min(struct run *r, struct value v, const struct arguments *args)
{
	return extreme(r, v, args, false);
}
static struct value do_max(struct run *r, struct value v, const struct arguments *args)
{
	return extreme(r, v, args, true);
}

static struct value do_groupby(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "attribute", "default", "case_sensitive" };
	struct value a[3];
	size_t n = 0;

	if (!bind_arguments(r, "groupby", args, names, 3, 1, a))
		return value_of(KIND_ABSENT);
	if (a[1].kind != KIND_ABSENT)
		return run_fail(r, "groupby with a default is not supported");
	struct list *l = iterate(r, v);
	bool sensitive = value_truth(a[2]);
	struct keyed *p = keys_of(r, l, a[0], sensitive, false);
	struct value out = p && sort_keyed(r, p, l->n, false) ? value_list(r, KIND_LIST, l->n) : value_of(KIND_ABSENT);
	for (size_t i = 0, end; out.kind != KIND_ABSENT && i < l->n && !r->failed; i = end) {
		for (end = i + 1; end < l->n && value_equal(r, p[end].key, p[i].key);)
			end++;
		struct value members = items_of(r, p + i, end - i);
		if (!r->failed)
			out.list->item[n++] =
				value_two(r, sensitive ? p[i].key : get_path(r, p[i].item, a[0]), members);
	}
	if (out.kind != KIND_ABSENT)
		out.list->n = n;
	return r->failed ? value_of(KIND_ABSENT) : out;
}

const struct filter order_filter[] = {
	{ "dictsort", do_dictsort }, { "groupby", do_groupby }, { "max", do_max }, { "min", do_min },
	{ "sort", do_sort },         { "unique", do_unique },   { NULL, NULL },
};
