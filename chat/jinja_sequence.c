/* chat/jinja_sequence.c - filters that go through the items of a value.
 *
 * Owns: which of them give lists and which give streams, that can be gone through once and have no length, as Jinja's.
 * Streams are made whole here at once: what they hold cannot change behind them.
 */
#include <string.h>

#include "chat/jinja.h"

static struct value list_copy(struct run *r, const struct list *l, enum kind k)
{
	struct value v = l ? value_list(r, k, l->n) : value_of(KIND_ABSENT);

	if (v.kind != KIND_ABSENT && l->n)
		memcpy(v.list->item, l->item, l->n * sizeof *l->item);
	return v;
}

static struct value do_length(struct run *r, struct value v, const struct arguments *args)
{
	if (!no_arguments(r, "length", args))
		return value_of(KIND_ABSENT);
	switch ((enum kind)v.kind) {
	case KIND_UNDEFINED: return value_int(0);
	case KIND_TEXT: return value_int((int64_t)text_characters(r, v.text));
	case KIND_DICT: return value_int((int64_t)v.dict->n);
	case KIND_LIST:
	case KIND_TUPLE:
	case KIND_RANGE:
	case KIND_VIEW: return value_int((int64_t)v.list->n);
	default: return run_fail(r, "object of type '%s' has no len()", value_type(v));
	}
}

static struct value do_list(struct run *r, struct value v, const struct arguments *args)
{
	return no_arguments(r, "list", args) ? list_copy(r, iterate(r, v), KIND_LIST) : value_of(KIND_ABSENT);
}

static struct value no_item(struct run *r, const char *which)
{
	struct build b = { .r = r };

	build_string(&b, "No ", false);
	build_string(&b, which, false);
	build_string(&b, " item, sequence was empty.", false);
	return value_undefined(UNDEFINED_OTHER, build_done(&b), KIND_ABSENT);
}

static struct value do_first(struct run *r, struct value v, const struct arguments *args)
{
	if (!no_arguments(r, "first", args))
		return value_of(KIND_ABSENT);
	if (v.kind == KIND_STREAM)
		return v.list->at < v.list->n ? v.list->item[v.list->at++] : no_item(r, "first");
	if (v.kind == KIND_TEXT)
		return v.text->n ? get_item(r, v, value_int(0)) : no_item(r, "first");
	struct list *l = iterate(r, v);
	return l && l->n ? l->item[0] : no_item(r, "first");
}

static struct value do_last(struct run *r, struct value v, const struct arguments *args)
{
	if (!no_arguments(r, "last", args))
		return value_of(KIND_ABSENT);
	if (v.kind == KIND_STREAM || (v.kind < KIND_TEXT && v.kind != KIND_UNDEFINED) || v.kind > KIND_DICT)
		return run_fail(r, "'%s' object is not reversible", value_type(v));
	if (v.kind == KIND_TEXT)
		return v.text->n ? get_item(r, v, value_int(-1)) : no_item(r, "last");
	struct list *l = iterate(r, v);
	return l && l->n ? l->item[l->n - 1] : no_item(r, "last");
}

static struct value do_reverse(struct run *r, struct value v, const struct arguments *args)
{
	if (!no_arguments(r, "reverse", args))
		return value_of(KIND_ABSENT);
	if (v.kind == KIND_TEXT)
		return get_slice(r, v, value_none(), value_none(), value_int(-1));
	struct value out = list_copy(r, iterate(r, v), v.kind == KIND_STREAM ? KIND_LIST : KIND_STREAM);
	for (size_t i = 0; out.kind != KIND_ABSENT && i < out.list->n / 2; i++) {
		struct value t = out.list->item[i];
		out.list->item[i] = out.list->item[out.list->n - 1 - i];
		out.list->item[out.list->n - 1 - i] = t;
	}
	return out;
}

struct value value_two(struct run *r, struct value a, struct value b)
{
	struct value v = value_list(r, KIND_TUPLE, 2);

	if (v.kind != KIND_ABSENT) {
		v.list->item[0] = a;
		v.list->item[1] = b;
	}
	return v;
}

struct value dict_pairs(struct run *r, struct value v, enum kind k)
{
	struct value out = value_list(r, k, v.dict->n);

	for (size_t i = 0; out.kind != KIND_ABSENT && i < v.dict->n && !r->failed; i++) {
		out.list->item[i] = value_two(r, v.dict->pair[i].key, v.dict->pair[i].value);
		out.list->item[i].user = v.user;
	}
	return out;
}

static struct value do_items(struct run *r, struct value v, const struct arguments *args)
{
	if (!no_arguments(r, "items", args))
		return value_of(KIND_ABSENT);
	if (v.kind == KIND_UNDEFINED)
		return value_list(r, KIND_STREAM, 0);
	return v.kind == KIND_DICT ? dict_pairs(r, v, KIND_STREAM)
	                           : run_fail(r, "Can only get item pairs from a mapping.");
}

static struct value do_join(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "d", "attribute" };
	static const struct text nothing = { .p = "" };
	struct value a[2];

	if (!bind_arguments(r, "join", args, names, 2, 0, a))
		return value_of(KIND_ABSENT);
	struct list *l = iterate(r, v);
	struct value of = list_copy(r, l, KIND_LIST);
	for (size_t i = 0; of.kind != KIND_ABSENT && (a[1].kind != KIND_ABSENT && a[1].kind != KIND_NONE) &&
	                   i < of.list->n && !r->failed;
	     i++)
		of.list->item[i] = get_path(r, of.list->item[i], a[1]);
	return value_text(string_join(r, a[0].kind == KIND_ABSENT ? &nothing : to_text(r, a[0]),
	                              r->failed ? NULL : of.list, true));
}

static struct value do_sum(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "attribute", "start" };
	struct value a[2], sum;

	if (!bind_arguments(r, "sum", args, names, 2, 0, a))
		return value_of(KIND_ABSENT);
	sum = a[1].kind == KIND_ABSENT ? value_int(0) : a[1];
	if (sum.kind == KIND_TEXT)
		return run_fail(r, "sum() can't sum strings [use ''.join(seq) instead]");
	struct list *l = iterate(r, v);
	for (size_t i = 0; l && i < l->n && !r->failed; i++)
		sum = operate(r, '+', sum, get_path(r, l->item[i], a[0]));
	return sum;
}

/* ---- map, select and their like */

static struct arguments rest_of(const struct arguments *args, size_t from)
{
	struct arguments rest = *args;

	rest.v = from < args->n ? args->v + from : NULL;
	rest.n = from < args->n ? args->n - from : 0;
	return rest;
}

/* map(attribute=..., default=...) */
static struct value map_attribute(struct run *r, struct value out, const struct arguments *args)
{
	static const char *const names[] = { "attribute", "default" };
	struct value a[2];

	if (!bind_arguments(r, "map", args, names, 2, 1, a))
		return value_of(KIND_ABSENT);
	for (size_t i = 0; i < out.list->n && !r->failed; i++) {
		struct value v = get_path(r, out.list->item[i], a[0]);
		out.list->item[i] =
			v.kind == KIND_UNDEFINED && a[1].kind != KIND_ABSENT && a[1].kind != KIND_NONE ? a[1] : v;
	}
	return out;
}

/* What map, select and their like go through: nothing of a value that is false, also of one that cannot be gone
 * through. */
static struct value stream_over(struct run *r, struct value v)
{
	return value_truth(v) ? list_copy(r, iterate(r, v), KIND_STREAM) : value_list(r, KIND_STREAM, 0);
}

static struct value do_map(struct run *r, struct value v, const struct arguments *args)
{
	struct value out = stream_over(r, v);

	if (out.kind == KIND_ABSENT)
		return out;
	if (!args->n && args->n_keywords)
		return map_attribute(r, out, args);
	if (!args->n || args->v[0].kind != KIND_TEXT)
		return run_fail(r, "map requires a filter argument");
	const struct text *name = args->v[0].text;
	unsigned number = find_filter(name->p, name->n);
	const struct arguments rest = rest_of(args, 1);
	if (number == NO_NUMBER)
		return out.list->n ? run_fail(r, "No filter named '%.*s'.", (int)name->n, name->p) : out;
	if (r->depth + 4 >= CHAT_MAX_DEPTH)
		return run_fail(r, "maximum recursion depth exceeded");
	r->depth += 4;
	for (size_t i = 0; i < out.list->n && !r->failed; i++)
		out.list->item[i] = apply_filter(r, number, out.list->item[i], &rest);
	r->depth -= 4;
	return out;
}

static struct value choose(struct run *r, struct value v, const struct arguments *args, bool wanted, bool by_attribute)
{
	struct value out = stream_over(r, v);
	size_t n = 0, name_at = by_attribute;

	if (out.kind == KIND_ABSENT)
		return out;
	if (by_attribute && !args->n)
		return run_fail(r, "Missing parameter for attribute name");
	const struct text *name =
		args->n > name_at && args->v[name_at].kind == KIND_TEXT ? args->v[name_at].text : NULL;
	unsigned number = name ? find_test(name->p, name->n) : NO_NUMBER;
	const struct arguments rest = rest_of(args, name_at + 1);
	if (args->n > name_at && number == NO_NUMBER && out.list->n)
		return run_fail(r, "No test named '%.*s'.", name ? (int)name->n : 1, name ? name->p : "?");
	for (size_t i = 0; i < out.list->n && run_step(r, 1); i++) {
		struct value item = out.list->item[i], tried = by_attribute ? get_path(r, item, args->v[0]) : item;
		bool met = !r->failed && (args->n > name_at ? apply_test(r, number, tried, &rest) : value_truth(tried));
		if (met == wanted)
			out.list->item[n++] = item;
	}
	out.list->n = n;
	return out;
}

static struct value do_select(struct run *r, struct value v, const struct arguments *args)
{
	return choose(r, v, args, true, false);
}
static struct value do_reject(struct run *r, struct value v, const struct arguments *args)
{
	return choose(r, v, args, false, false);
}
static struct value do_selectattr(struct run *r, struct value v, const struct arguments *args)
{
	return choose(r, v, args, true, true);
}
static struct value do_rejectattr(struct run *r, struct value v, const struct arguments *args)
{
	return choose(r, v, args, false, true);
}

/* ---- batches and slices */

static struct value part_of(struct run *r, const struct list *l, size_t from, size_t n, size_t fill, struct value with)
{
	struct value v = value_list(r, KIND_LIST, n + fill);

	for (size_t i = 0; v.kind != KIND_ABSENT && i < n + fill; i++)
		v.list->item[i] = i < n ? l->item[from + i] : with;
	return v;
}

static struct value do_batch(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "linecount", "fill_with" };
	struct value a[2];
	int64_t size = 0;

	if (!bind_arguments(r, "batch", args, names, 2, 1, a) || !want_int(r, "batch", a[0], &size))
		return value_of(KIND_ABSENT);
	if (size < 1)
		return run_fail(r, "the filter 'batch' takes at least 1, %lld given", (long long)size);
	struct list *l = iterate(r, v);
	struct value out =
		l ? value_list(r, KIND_STREAM, (l->n + (size_t)size - 1) / (size_t)size) : value_of(KIND_ABSENT);
	bool fills = a[1].kind != KIND_ABSENT && a[1].kind != KIND_NONE;
	for (size_t i = 0; out.kind != KIND_ABSENT && i < out.list->n && !r->failed; i++) {
		size_t from = i * (size_t)size, n = l->n - from < (size_t)size ? l->n - from : (size_t)size;
		out.list->item[i] = part_of(r, l, from, n, fills ? (size_t)size - n : 0, a[1]);
	}
	return out;
}

static struct value do_slice(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "slices", "fill_with" };
	struct value a[2];
	int64_t count = 0;

	if (!bind_arguments(r, "slice", args, names, 2, 1, a) || !want_int(r, "slice", a[0], &count))
		return value_of(KIND_ABSENT);
	if (count < 1)
		return run_fail(r, "the filter 'slice' takes at least 1, %lld given", (long long)count);
	struct list *l = iterate(r, v);
	struct value out = l ? value_list(r, KIND_STREAM, (size_t)count) : value_of(KIND_ABSENT);
	bool fills = a[1].kind != KIND_ABSENT && a[1].kind != KIND_NONE;
	for (size_t i = 0, from = 0; out.kind != KIND_ABSENT && i < out.list->n && !r->failed; i++) {
		bool more = i < l->n % (size_t)count;
		size_t n = l->n / (size_t)count + more;
		out.list->item[i] = part_of(r, l, from, n, fills && !more, a[1]);
		from += n;
	}
	return out;
}

const struct filter sequence_filter[] = {
	{ "batch", do_batch },
	{ "count", do_length },
	{ "first", do_first },
	{ "items", do_items },
	{ "join", do_join },
	{ "last", do_last },
	{ "length", do_length },
	{ "list", do_list },
	{ "map", do_map },
	{ "reject", do_reject },
	{ "rejectattr", do_rejectattr },
	{ "reverse", do_reverse },
	{ "select", do_select },
	{ "selectattr", do_selectattr },
	{ "slice", do_slice },
	{ "sum", do_sum },
	{ NULL, NULL },
};
