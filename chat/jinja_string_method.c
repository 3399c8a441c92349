/* chat/jinja_string_method.c - the methods of texts: their arguments, and their refusals as Python words them.
 *
 * Owns: how Python's parameters map to the work that jinja_string.c does.
 */
#include <string.h>
#include <utf8proc.h>

#include "chat/jinja.h"
#include "chat/jinja_methods.h"

static struct value keep_safe(const struct text *from, const struct text *t)
{
	if (t && from->safe && !t->safe)
		text_change(t)->safe = true;
	return value_text(t);
}

/* Arguments by place: a text that may be None or absent, and a number. */
static bool text_or_none(struct run *r, const char *what, struct value v, const struct text **out)
{
	return v.kind == KIND_NONE || want_text(r, what, v, out);
}

static struct value do_strip(struct run *r, const struct text *t, const struct arguments *args, bool left, bool right)
{
	static const char *const names[1] = { NULL };
	const struct text *chars = NULL;
	struct value v;

	if (!bind_arguments(r, "strip", args, names, 1, 0, &v) || !text_or_none(r, "strip", v, &chars))
		return value_of(KIND_ABSENT);
	return keep_safe(t, string_strip(r, t, chars, left, right));
}

static struct value do_split(struct run *r, const struct text *t, const struct arguments *args, bool from_right)
{
	static const char *const names[] = { "sep", "maxsplit" };
	const struct text *by = NULL;
	struct value v[2];
	int64_t max = -1;

	if (!bind_arguments(r, from_right ? "rsplit" : "split", args, names, 2, 0, v) ||
	    !text_or_none(r, "split", v[0], &by) || !want_int(r, "split", v[1], &max))
		return value_of(KIND_ABSENT);
	return string_split(r, t, by, max, from_right);
}

static struct value do_lines(struct run *r, const struct text *t, const struct arguments *args)
{
	static const char *const names[] = { "keepends" };
	struct value v;

	if (!bind_arguments(r, "splitlines", args, names, 1, 0, &v))
		return v;
	return string_lines(r, t, value_truth(v));
}

/* [from, to) in bytes, of Python's optional bounds in characters. False: no text lies there, not even an empty one. */
static bool byte_range(struct run *r, const struct text *t, struct value from, struct value to, size_t *begin,
                       size_t *end)
{
	int64_t a, b, step, n;

	*begin = 0;
	*end = t->n;
	if ((from.kind == KIND_ABSENT || from.kind == KIND_NONE) && (to.kind == KIND_ABSENT || to.kind == KIND_NONE))
		return true;
	from = from.kind == KIND_ABSENT ? value_none() : from;
	to = to.kind == KIND_ABSENT ? value_none() : to;
	n = (int64_t)text_characters(r, t);
	if (!slice_bounds(r, (size_t)n, from, to, value_none(), &a, &b, &step) ||
	    (from.kind == KIND_INT && from.integer > n))
		return false;
	*begin = text_offset(t, (size_t)a);
	*end = text_offset(t, (size_t)b);
	return a <= b;
}

static bool has_end(const struct text *t, const struct text *part, size_t from, size_t to, bool begins)
{
	if (part->n > to - from)
		return false;
	return memcmp(t->p + (begins ? from : to - part->n), part->p, part->n) == 0;
}

static struct value do_ends(struct run *r, const struct text *t, const struct arguments *args, bool begins)
{
	static const char *const names[3] = { NULL };
	const char *what = begins ? "startswith" : "endswith";
	struct value v[3], one;
	size_t from, to;
	bool met = false;

	if (!bind_arguments(r, what, args, names, 3, 1, v) || !run_bytes(r, 64))
		return value_of(KIND_ABSENT);
	bool several = v[0].kind == KIND_TUPLE, there = byte_range(r, t, v[1], v[2], &from, &to);
	for (size_t i = 0; i < (several ? v[0].list->n : 1) && !r->failed; i++) {
		one = several ? v[0].list->item[i] : v[0];
		if (one.kind != KIND_TEXT)
			return run_fail(r,
			                several ? "tuple for %s must only contain str, not %s"
			                        : "%s first arg must be str or a tuple of str, not %s",
			                what, value_type(one));
		met |= there && has_end(t, one.text, from, to, begins);
	}
	return value_bool(met);
}

enum search { SEARCH_FIND, SEARCH_LAST, SEARCH_COUNT };

static struct value do_find(struct run *r, const struct text *t, const struct arguments *args, enum search how,
                            bool must)
{
	static const char *const names[3] = { NULL };
	const struct text *what = NULL;
	struct value v[3];
	size_t from, to, at, n = 0;

	if (!bind_arguments(r, "find", args, names, 3, 1, v) || !want_text(r, "find", v[0], &what) ||
	    !run_bytes(r, t->n))
		return value_of(KIND_ABSENT);
	bool there = byte_range(r, t, v[1], v[2], &from, &to);
	if (how == SEARCH_COUNT) {
		struct text part = { .p = t->p + from, .n = there ? to - from : 0 };
		if (!what->n)
			return value_int(there ? (int64_t)text_characters(r, &part) + 1 : 0);
		for (; there && (at = text_find(t, what, from, to)) != SIZE_MAX; n++)
			from = at + what->n;
		return value_int((int64_t)n);
	}
	at = !there ? SIZE_MAX : how == SEARCH_FIND ? text_find(t, what, from, to) : text_find_last(r, t, what, to);
	if (at != SIZE_MAX && at < from)
		at = SIZE_MAX;
	if (at == SIZE_MAX)
		return must ? run_fail(r, "substring not found") : value_int(-1);
	return value_int((int64_t)text_characters(r, &(struct text){ .p = t->p, .n = at }));
}

static struct value do_replace(struct run *r, const struct text *t, const struct arguments *args)
{
	static const char *const names[3] = { NULL };
	const struct text *from = NULL, *to = NULL;
	struct value v[3];
	int64_t max = -1;

	if (!bind_arguments(r, "replace", args, names, 3, 2, v) || !want_text(r, "replace() argument 1", v[0], &from) ||
	    !want_text(r, "replace() argument 2", v[1], &to) || !want_int(r, "replace", v[2], &max))
		return value_of(KIND_ABSENT);
	if (t->safe)
		return run_fail(r, "the method 'replace' of 'Markup' is not supported");
	return value_text(string_replace(r, t, from, to, max));
}

static struct value do_partition(struct run *r, const struct text *t, const struct arguments *args, bool from_right)
{
	static const char *const names[1] = { NULL };
	static const struct text nothing = { .p = "" };
	const struct text *by = NULL;
	struct value v, out;

	if (!bind_arguments(r, "partition", args, names, 1, 1, &v) || !want_text(r, "partition", v, &by) ||
	    !run_bytes(r, t->n))
		return value_of(KIND_ABSENT);
	if (!by->n)
		return run_fail(r, "empty separator");
	size_t at = from_right ? text_find_last(r, t, by, t->n) : text_find(t, by, 0, t->n);
	out = value_list(r, KIND_TUPLE, 3);
	if (out.kind == KIND_ABSENT)
		return out;
	bool hit = at != SIZE_MAX;
	out.list->item[0] = value_text(hit ? text_part(r, t, 0, at) : from_right ? &nothing : t);
	out.list->item[1] = value_text(hit ? text_part(r, t, at, by->n) : &nothing);
	out.list->item[2] = value_text(hit          ? text_part(r, t, at + by->n, t->n - at - by->n)
	                               : from_right ? t
	                                            : &nothing);
	return out;
}

/* how: c, l, r; what is put beside it is the template's. */
static struct value do_pad(struct run *r, const struct text *t, const struct arguments *args, char how)
{
	static const char *const names[2] = { NULL };
	static const struct text space = { .p = " ", .n = 1 };
	const struct text *fill = &space;
	struct build b = { .r = r };
	struct value v[2];
	int64_t width = 0;

	if (!bind_arguments(r, "ljust", args, names, 2, 1, v) || !want_int(r, "ljust", v[0], &width) ||
	    !want_text(r, "ljust", v[1], &fill))
		return value_of(KIND_ABSENT);
	if (text_characters(r, fill) != 1)
		return run_fail(r, "The fill character must be exactly one character long");
	int64_t have = (int64_t)text_characters(r, t), more = width > have ? width - have : 0;
	/* Python puts the odd one to the left when the width is odd */
	int64_t left = how == 'l' ? 0 : how == 'r' ? more : more / 2 + (more & width & 1);
	for (int64_t i = 0; i < left && !r->failed; i++)
		build_text(&b, fill);
	build_text(&b, t);
	for (int64_t i = left; i < more && !r->failed; i++)
		build_text(&b, fill);
	return keep_safe(t, build_done(&b));
}

static struct value do_zfill(struct run *r, const struct text *t, const struct arguments *args)
{
	static const char *const names[1] = { NULL };
	struct build b = { .r = r };
	int64_t width = 0;
	struct value v;

	if (!bind_arguments(r, "zfill", args, names, 1, 1, &v) || !want_int(r, "zfill", v, &width))
		return value_of(KIND_ABSENT);
	int64_t have = (int64_t)text_characters(r, t);
	size_t sign = t->n && (t->p[0] == '-' || t->p[0] == '+');
	build_part(&b, t, 0, sign);
	for (int64_t i = have; i < width && !r->failed; i++)
		build_bytes(&b, "0", 1, false);
	build_part(&b, t, sign, t->n - sign);
	return keep_safe(t, build_done(&b));
}

static struct value do_remove(struct run *r, const struct text *t, const struct arguments *args, bool begins)
{
	static const char *const names[1] = { NULL };
	const struct text *part = NULL;
	struct value v;

	if (!bind_arguments(r, "removeprefix", args, names, 1, 1, &v) || !want_text(r, "removeprefix", v, &part))
		return value_of(KIND_ABSENT);
	if (!has_end(t, part, 0, t->n, begins))
		return value_text(t);
	return keep_safe(t, text_part(r, t, begins ? part->n : 0, t->n - part->n));
}

static struct value do_join(struct run *r, const struct text *t, const struct arguments *args)
{
	static const char *const names[1] = { NULL };
	struct value v;

	if (!bind_arguments(r, "join", args, names, 1, 1, &v))
		return v;
	if (t->safe)
		return run_fail(r, "the method 'join' of 'Markup' is not supported");
	return value_text(string_join(r, t, iterate(r, v), false));
}

/* ---- format(): {}, {0} and {name} */

static struct value format_field(struct run *r, const struct text *name, const struct arguments *args, size_t *next)
{
	size_t i = 0;

	for (size_t k = 0; k < name->n; k++)
		if (strchr(".[:!{", name->p[k]))
			return run_fail(r, "format() knows {}, {0} and {name} here, and not '{%.*s}'", (int)name->n,
			                name->p);
	if (name->n && name->p[0] >= '0' && name->p[0] <= '9') {
		for (size_t k = 0; k < name->n && i < 100000; k++)
			i = 10 * i + (size_t)(name->p[k] - '0');
	} else if (name->n) {
		for (i = 0; i < args->n_keywords; i++)
			if (text_same(args->keyword[i].key.text, name))
				return args->keyword[i].value;
		return run_fail(r, "format() has no argument '%.*s'", (int)name->n, name->p);
	} else {
		i = (*next)++;
	}
	return i < args->n ? args->v[i]
	                   : run_fail(r, "Replacement index %zu out of range for positional args tuple", i);
}

static struct value do_format(struct run *r, const struct text *t, const struct arguments *args)
{
	struct build b = { .r = r };
	size_t next = 0;

	if (t->safe)
		return run_fail(r, "the method 'format' of 'Markup' is not supported");
	for (size_t at = 0; at < t->n && !r->failed;) {
		char c = t->p[at];
		if ((c == '{' || c == '}') && at + 1 < t->n && t->p[at + 1] == c) {
			build_part(&b, t, at, 1);
			at += 2;
			continue;
		}
		if (c == '}')
			return run_fail(r, "Single '}' encountered in format string");
		if (c != '{') {
			build_part(&b, t, at++, 1);
			continue;
		}
		const char *close = memchr(t->p + at, '}', t->n - at);
		if (!close)
			return run_fail(r, "expected '}' before end of string");
		size_t end = (size_t)(close - t->p);
		const struct text *name = text_part(r, t, at + 1, end - at - 1);
		struct value v = name ? format_field(r, name, args, &next) : value_of(KIND_ABSENT);
		if (!r->failed)
			build_str(&b, v);
		at = end + 1;
	}
	return value_text(build_done(&b));
}

/* ---- questions */

static bool is_decimal(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND; }
static bool is_digit(uint32_t c)
{
	return is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || (c >= 0x2070 && c <= 0x2089 && c != 0x2071);
}

static bool is_numeric(uint32_t c)
{
	utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);

	return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

static bool is_alpha(uint32_t c)
{
	utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);

	return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

static bool is_upper(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LU; }
static bool is_lower(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL; }

static bool answers(unsigned which, uint32_t c)
{
	switch (which) {
	case STRING_isalnum: return is_alpha(c) || is_numeric(c);
	case STRING_isalpha: return is_alpha(c);
	case STRING_isascii: return c < 0x80;
	case STRING_isdecimal: return is_decimal(c);
	case STRING_isdigit: return is_digit(c);
	case STRING_isnumeric: return is_numeric(c);
	case STRING_isspace: return character_is_space(c);
	case STRING_islower: return !is_upper(c);
	default: return !is_lower(c);
	}
}

static struct value ask(struct run *r, unsigned which, const struct text *t, const struct arguments *args)
{
	bool cases = which == STRING_islower || which == STRING_isupper, all = true, some = which == STRING_isascii;

	if (args->n || args->n_keywords)
		return run_fail(r, "str takes no arguments here (%zu given)", args->n);
	for (size_t at = 0; all && at < t->n && run_step(r, 1);) {
		uint32_t c;
		at += text_at(t, at, &c);
		all = answers(which, c);
		some |= !cases || is_upper(c) || is_lower(c);
	}
	return value_bool(all && some);
}

static struct value change_case(struct run *r, unsigned which, const struct text *t, const struct arguments *args)
{
	char how = which == STRING_lower        ? 'l'
	           : which == STRING_upper      ? 'u'
	           : which == STRING_capitalize ? 'c'
	           : which == STRING_title      ? 't'
	                                        : 's';

	if (args->n || args->n_keywords)
		return run_fail(r, "str takes no arguments here (%zu given)", args->n);
	return value_text(string_case(r, t, how));
}

struct value string_method(struct run *r, unsigned which, const struct text *t, const struct arguments *args)
{
	switch (which) {
	case STRING_strip: return do_strip(r, t, args, true, true);
	case STRING_lstrip: return do_strip(r, t, args, true, false);
	case STRING_rstrip: return do_strip(r, t, args, false, true);
	case STRING_split: return do_split(r, t, args, false);
	case STRING_rsplit: return do_split(r, t, args, true);
	case STRING_splitlines: return do_lines(r, t, args);
	case STRING_startswith: return do_ends(r, t, args, true);
	case STRING_endswith: return do_ends(r, t, args, false);
	case STRING_find: return do_find(r, t, args, SEARCH_FIND, false);
	case STRING_index: return do_find(r, t, args, SEARCH_FIND, true);
	case STRING_rfind: return do_find(r, t, args, SEARCH_LAST, false);
	case STRING_rindex: return do_find(r, t, args, SEARCH_LAST, true);
	case STRING_count: return do_find(r, t, args, SEARCH_COUNT, false);
	case STRING_replace: return do_replace(r, t, args);
	case STRING_partition: return do_partition(r, t, args, false);
	case STRING_rpartition: return do_partition(r, t, args, true);
	case STRING_center: return do_pad(r, t, args, 'c');
	case STRING_ljust: return do_pad(r, t, args, 'l');
	case STRING_rjust: return do_pad(r, t, args, 'r');
	case STRING_zfill: return do_zfill(r, t, args);
	case STRING_removeprefix: return do_remove(r, t, args, true);
	case STRING_removesuffix: return do_remove(r, t, args, false);
	case STRING_join: return do_join(r, t, args);
	case STRING_format: return do_format(r, t, args);
	case STRING_lower:
	case STRING_upper:
	case STRING_capitalize:
	case STRING_title:
	case STRING_swapcase: return change_case(r, which, t, args);
	default: return ask(r, which, t, args);
	}
}
