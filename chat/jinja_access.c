/* chat/jinja_access.c - attributes, items and slices of values.
 *
 * Owns: what a.b, a[b] and a[b:c:d] are. A dictionary's method comes before its member of that name for a.b, and behind
 * it for a["b"]; what is not there is undefined, and says later what was asked for. Slices count characters.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chat/jinja.h"

/* A value that is not there, by what was asked for. */
static struct value missing(struct run *r, struct value of, struct value key)
{
	struct build b = { .r = r };

	if (key.kind == KIND_TEXT)
		return value_undefined(UNDEFINED_ATTRIBUTE, key.text, (enum kind)of.kind);
	build_repr(&b, key);
	const struct text *t = build_done(&b);
	return t && !r->failed ? value_undefined(UNDEFINED_ELEMENT, t, (enum kind)of.kind) : value_of(KIND_ABSENT);
}

/* Python's of[key]; absent where that raises what Jinja takes for "not there". */
static struct value item_of(struct run *r, struct value of, struct value key)
{
	bool number = key.kind == KIND_INT || key.kind == KIND_BOOL;
	int64_t i = number ? integer_of(key) : 0;

	if (of.kind == KIND_DICT) {
		if (key.kind == KIND_LIST || key.kind == KIND_DICT || key.kind == KIND_VIEW)
			return value_of(KIND_ABSENT);
		const struct pair *p = value_hashable(r, key) ? dict_find(r, of.dict, key) : NULL;
		return p ? p->value : value_of(KIND_ABSENT);
	}
	if (!number)
		return value_of(KIND_ABSENT);
	if (of.kind == KIND_LIST || of.kind == KIND_TUPLE || of.kind == KIND_RANGE) {
		if (i < 0)
			i += (int64_t)of.list->n;
		return i >= 0 && (size_t)i < of.list->n ? of.list->item[i] : value_of(KIND_ABSENT);
	}
	if (of.kind != KIND_TEXT)
		return value_of(KIND_ABSENT);
	if (i < 0)
		i += (int64_t)text_characters(r, of.text);
	if (i < 0 || !run_bytes(r, of.text->n))
		return value_of(KIND_ABSENT);
	uint32_t c;
	size_t at = text_offset(of.text, (size_t)i);
	return at < of.text->n ? value_text(text_part(r, of.text, at, text_at(of.text, at, &c)))
	                       : value_of(KIND_ABSENT);
}

/* What of has by this name that is not an item of it; absent: nothing. */
static struct value member_of(struct run *r, struct value of, const struct text *name)
{
	const struct pair *p;

	if (of.kind == KIND_NAMESPACE) {
		p = dict_find_name(r, of.dict, name);
		return p ? p->value : value_of(KIND_ABSENT);
	}
	if (of.kind == KIND_LOOP)
		return loop_attribute(r, of.loop, name);
	if (of.kind == KIND_MACRO && text_is(name, "name"))
		return value_text(text_copy(r, &of.macro->node->name));
	if (name->n >= 2 && memcmp(name->p, "__", 2) == 0)
		return value_undefined(UNDEFINED_UNSAFE, name, (enum kind)of.kind);
	return find_method(r, of, name);
}

struct value get_attribute(struct run *r, struct value of, const struct text *name)
{
	if (r->failed || of.kind == KIND_ABSENT)
		return value_of(KIND_ABSENT);
	if (of.kind == KIND_UNDEFINED)
		return fail_undefined(r, of);
	struct value v = member_of(r, of, name);
	if (v.kind != KIND_ABSENT || r->failed)
		return v;
	if (of.kind == KIND_DICT)
		v = item_of(r, of, value_text(name));
	return v.kind != KIND_ABSENT || r->failed ? v : missing(r, of, value_text(name));
}

struct value get_item(struct run *r, struct value of, struct value key)
{
	if (r->failed || of.kind == KIND_ABSENT || key.kind == KIND_ABSENT)
		return value_of(KIND_ABSENT);
	if (of.kind == KIND_UNDEFINED)
		return fail_undefined(r, of);
	struct value v = item_of(r, of, key);
	if (v.kind == KIND_ABSENT && !r->failed && key.kind == KIND_TEXT)
		v = member_of(r, of, key.text);
	return v.kind != KIND_ABSENT || r->failed ? v : missing(r, of, key);
}

static struct value path_step(struct run *r, struct value of, const struct text *part)
{
	bool digits = part->n > 0 && part->n < 18;
	int64_t v = 0;

	for (size_t i = 0; digits && i < part->n; i++) {
		digits = part->p[i] >= '0' && part->p[i] <= '9';
		v = 10 * v + (part->p[i] - '0');
	}
	return get_item(r, of, digits ? value_int(v) : value_text(part));
}

struct value get_path(struct run *r, struct value of, struct value path)
{
	static const struct text dot = { .p = ".", .n = 1 };

	if (path.kind != KIND_TEXT)
		return path.kind == KIND_NONE || path.kind == KIND_ABSENT ? of : get_item(r, of, path);
	for (size_t from = 0, to; !r->failed; from = to + 1) {
		to = text_find(path.text, &dot, from, path.text->n);
		size_t end = to == SIZE_MAX ? path.text->n : to;
		const struct text *part = text_part(r, path.text, from, end - from);
		if (!part)
			break;
		of = path_step(r, of, part);
		if (to == SIZE_MAX)
			break;
	}
	return of;
}

/* ---- slices */

static bool slice_number(struct run *r, struct value v, int64_t none, int64_t *out)
{
	*out = none;
	if (v.kind == KIND_NONE || v.kind == KIND_ABSENT)
		return true;
	if (v.kind != KIND_INT && v.kind != KIND_BOOL) {
		run_fail(r, "slice indices must be integers or None or have an __index__ method");
		return false;
	}
	*out = integer_of(v);
	return true;
}

static int64_t within(int64_t i, int64_t n, int64_t min, int64_t max)
{
	if (i < 0)
		i = i < -n ? -1 : i + n;
	return i < min ? min : i > max ? max : i;
}

bool slice_bounds(struct run *r, size_t n, struct value from, struct value to, struct value step, int64_t *at,
                  int64_t *end, int64_t *by)
{
	int64_t size = (int64_t)n;

	if (!slice_number(r, step, 1, by))
		return false;
	if (*by == 0) {
		run_fail(r, "slice step cannot be zero");
		return false;
	}
	if (*by == INT64_MIN)
		*by = -INT64_MAX;
	bool up = *by > 0, from_set = from.kind != KIND_NONE, to_set = to.kind != KIND_NONE;
	if (!slice_number(r, from, 0, at) || !slice_number(r, to, 0, end))
		return false;
	*at = from_set ? within(*at, size, up ? 0 : -1, up ? size : size - 1) : up ? 0 : size - 1;
	*end = to_set ? within(*end, size, up ? 0 : -1, up ? size : size - 1) : up ? size : -1;
	return true;
}

static size_t slice_length(int64_t at, int64_t end, int64_t by)
{
	if (by > 0)
		return at < end ? (size_t)((end - at - 1) / by) + 1 : 0;
	return at > end ? (size_t)((at - end - 1) / -by) + 1 : 0;
}

static struct value slice_text(struct run *r, const struct text *t, int64_t at, int64_t by, size_t n)
{
	struct build b = { .r = r };
	uint32_t c;

	if (!run_bytes(r, t->n))
		return value_of(KIND_ABSENT);
	size_t byte = text_offset(t, (size_t)(at < 0 ? 0 : at));
	if (by == 1 || n == 0) {
		struct text rest = { .p = t->p + byte, .n = t->n - byte };
		return value_text(text_part(r, t, byte, n ? text_offset(&rest, n) : 0));
	}
	for (size_t i = 0; i < n && !r->failed; i++) {
		build_part(&b, t, byte, text_at(t, byte, &c));
		for (int64_t k = 0; i + 1 < n && k < (by < 0 ? -by : by); k++)
			byte = by < 0 ? text_before(t, byte) : byte + text_at(t, byte, &c);
	}
	return value_text(build_done(&b));
}

struct value get_slice(struct run *r, struct value of, struct value from, struct value to, struct value step)
{
	int64_t at, end, by;

	if (r->failed)
		return value_of(KIND_ABSENT);
	if (of.kind == KIND_UNDEFINED)
		return fail_undefined(r, of);
	if (of.kind == KIND_DICT)
		return run_fail(r, "unhashable type: 'slice'");
	if (of.kind != KIND_TEXT && of.kind != KIND_LIST && of.kind != KIND_TUPLE && of.kind != KIND_RANGE)
		return run_fail(r, "'%s' object is not subscriptable", value_type(of));
	size_t size = of.kind == KIND_TEXT ? text_characters(r, of.text) : of.list->n;
	if (!slice_bounds(r, size, from, to, step, &at, &end, &by))
		return value_of(KIND_ABSENT);
	size_t n = slice_length(at, end, by);
	if (of.kind == KIND_TEXT) {
		struct value v = slice_text(r, of.text, at, by, n);
		if (v.kind == KIND_TEXT && of.text->safe)
			text_change(v.text)->safe = true;
		return v;
	}
	struct value v = value_list(r, (enum kind)of.kind, n);
	int64_t first = at;
	for (size_t i = 0; v.kind != KIND_ABSENT && i < n; i++, at += by)
		v.list->item[i] = of.list->item[at];
	if (v.kind == KIND_RANGE) {
		v.list->start = (int64_t)((uint64_t)of.list->start + (uint64_t)of.list->step * (uint64_t)first);
		v.list->stop = (int64_t)((uint64_t)of.list->start + (uint64_t)of.list->step * (uint64_t)end);
		v.list->step = (int64_t)((uint64_t)of.list->step * (uint64_t)by);
	}
	v.user = of.user;
	return v;
}
