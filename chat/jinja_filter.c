/* chat/jinja_filter.c - filters of texts and single values, and the table of all.
 *
 * Owns: which filters there are; jinja_number.c, jinja_sequence.c and jinja_order.c have the others. tojson is the one
 * that the library defines which chat templates are written for: nothing is escaped for HTML, and letters stay what
 * they are.
 */
#include <string.h>
#include <utf8proc.h>

#include "chat/jinja.h"

static struct value with_safe(const struct text *t, bool safe)
{
	if (t && t->n && t->safe != safe)
		text_change(t)->safe = safe;
	return value_text(t);
}

bool no_arguments(struct run *r, const char *name, const struct arguments *args)
{
	if (args->n || args->n_keywords)
		run_fail(r, "the filter '%s' takes no arguments, %zu given", name, args->n + args->n_keywords);
	return !r->failed;
}

/* ---- texts */

static struct value do_trim(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "chars" };
	const struct text *t = to_text(r, v), *chars = NULL;
	struct value c;

	if (!bind_arguments(r, "trim", args, names, 1, 0, &c) ||
	    (c.kind != KIND_NONE && !want_text(r, "trim", c, &chars)))
		return value_of(KIND_ABSENT);
	return value_text(string_strip(r, t, chars, true, true));
}

static struct value do_string(struct run *r, struct value v, const struct arguments *args)
{
	return no_arguments(r, "string", args) ? value_text(to_text(r, v)) : value_of(KIND_ABSENT);
}

static struct value do_safe(struct run *r, struct value v, const struct arguments *args)
{
	const struct text *t = to_text(r, v);

	return no_arguments(r, "safe", args) ? with_safe(text_copy(r, t), true) : value_of(KIND_ABSENT);
}

static struct value do_force_escape(struct run *r, struct value v, const struct arguments *args)
{
	struct build b = { .r = r };

	if (!no_arguments(r, "escape", args))
		return value_of(KIND_ABSENT);
	build_escaped(&b, to_text(r, v));
	return with_safe(build_done(&b), true);
}

static struct value do_escape(struct run *r, struct value v, const struct arguments *args)
{
	return v.kind == KIND_TEXT && v.text->safe ? v : do_force_escape(r, v, args);
}

static struct value do_upper(struct run *r, struct value v, const struct arguments *args)
{
	return no_arguments(r, "upper", args) ? value_text(string_case(r, to_text(r, v), 'u')) : value_of(KIND_ABSENT);
}

static struct value do_lower(struct run *r, struct value v, const struct arguments *args)
{
	return no_arguments(r, "lower", args) ? value_text(string_case(r, to_text(r, v), 'l')) : value_of(KIND_ABSENT);
}

static struct value do_capitalize(struct run *r, struct value v, const struct arguments *args)
{
	return no_arguments(r, "capitalize", args) ? value_text(string_case(r, to_text(r, v), 'c'))
	                                           : value_of(KIND_ABSENT);
}

/* Words begin behind white space, '-' and opening brackets; this is not what the method of that name does. */
static struct value do_title(struct run *r, struct value v, const struct arguments *args)
{
	const struct text *t = to_text(r, v);
	struct build b = { .r = r };
	bool begins = true;

	if (!no_arguments(r, "title", args))
		return value_of(KIND_ABSENT);
	for (size_t at = 0; at < t->n && !r->failed;) {
		uint32_t c;
		unsigned n = text_at(t, at, &c);
		if (begins)
			build_upper(&b, c, text_user_at(t, at));
		else
			build_lower(&b, c, text_user_at(t, at));
		begins = character_is_space(c) || (c < 0x80 && c && strchr("-({[<", (int)c));
		at += n;
	}
	return value_text(build_done(&b));
}

static struct value do_replace(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "old", "new", "count" };
	struct value a[3];
	int64_t max = -1;

	if (!bind_arguments(r, "replace", args, names, 3, 2, a) ||
	    (a[2].kind != KIND_NONE && !want_int(r, "replace", a[2], &max)))
		return value_of(KIND_ABSENT);
	const struct text *t = string_replace(r, to_text(r, v), to_text(r, a[0]), to_text(r, a[1]), max);
	return t && t->safe ? with_safe(text_copy(r, t), false) : value_text(t);
}

static struct value do_indent(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "width", "first", "blank" };
	struct build b = { .r = r };
	struct value a[3];
	int64_t width = 4;

	if (!bind_arguments(r, "indent", args, names, 3, 0, a) ||
	    (a[0].kind != KIND_TEXT && !want_int(r, "indent", a[0], &width)))
		return value_of(KIND_ABSENT);
	if (v.kind != KIND_TEXT)
		return v.kind == KIND_UNDEFINED
		               ? fail_undefined(r, v)
		               : run_fail(r, "the filter 'indent' takes a str, got '%s'", value_type(v));
	struct value space =
		a[0].kind == KIND_TEXT ? a[0] : operate(r, '*', value_text(text_literal(r, " ")), value_int(width));
	struct value with_end = r->failed ? space
	                                  : operate(r, '+', (struct value){ .kind = KIND_TEXT, .text = v.text },
	                                            value_text(text_literal(r, "\n")));
	struct value lines = r->failed ? space : string_lines(r, with_end.text, false);
	bool first = value_truth(a[1]), blank = value_truth(a[2]);
	for (size_t i = 0; !r->failed && i < lines.list->n; i++) {
		const struct text *line = lines.list->item[i].text;
		if (i)
			build_bytes(&b, "\n", 1, false);
		if (i ? blank || line->n : first)
			build_text(&b, space.text);
		build_text(&b, line);
	}
	return with_safe(build_done(&b), v.text->safe);
}

static struct value do_center(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "width" };
	struct build b = { .r = r };
	int64_t width = 80;
	struct value a;

	if (!bind_arguments(r, "center", args, names, 1, 0, &a) || !want_int(r, "center", a, &width))
		return value_of(KIND_ABSENT);
	const struct text *t = to_text(r, v);
	int64_t have = (int64_t)text_characters(r, t), more = width > have ? width - have : 0,
		left = more / 2 + (more & width & 1);
	for (int64_t i = 0; i < more && !r->failed; i++) {
		if (i == left)
			build_text(&b, t);
		build_bytes(&b, " ", 1, false);
	}
	if (left >= more)
		build_text(&b, t);
	return value_text(build_done(&b));
}

static struct value do_truncate(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "length", "killwords", "end", "leeway" };
	static const struct text dots = { .p = "...", .n = 3 }, space = { .p = " ", .n = 1 };
	const struct text *t = NULL, *end = &dots;
	struct build b = { .r = r };
	struct value a[4];
	int64_t length = 255, leeway = 5;

	if (!bind_arguments(r, "truncate", args, names, 4, 0, a) || !want_text(r, "truncate", v, &t) ||
	    !want_int(r, "truncate", a[0], &length) || !want_text(r, "truncate", a[2], &end) ||
	    (a[3].kind != KIND_NONE && !want_int(r, "truncate", a[3], &leeway)))
		return value_of(KIND_ABSENT);
	int64_t kept = length - (int64_t)text_characters(r, end);
	if (kept < 0 || leeway < 0 || length > INT32_MAX || leeway > INT32_MAX)
		return run_fail(
			r,
			"the filter 'truncate' takes a length of at least that of the end, and a leeway of at least 0");
	if ((int64_t)text_characters(r, t) <= length + leeway)
		return value_text(t);
	size_t n = text_offset(t, (size_t)kept), word = value_truth(a[1]) ? SIZE_MAX : text_find_last(r, t, &space, n);
	build_part(&b, t, 0, word == SIZE_MAX ? n : word);
	build_text(&b, end);
	return value_text(build_done(&b));
}

static struct value do_word_count(struct run *r, struct value v, const struct arguments *args)
{
	const struct text *t = to_text(r, v);
	bool inside = false;
	int64_t n = 0;

	if (!no_arguments(r, "wordcount", args))
		return value_of(KIND_ABSENT);
	for (size_t at = 0; at < t->n && run_step(r, 1);) {
		uint32_t c;
		at += text_at(t, at, &c);
		utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
		bool word = c == '_' || (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) ||
		            (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
		n += word && !inside;
		inside = word;
	}
	return value_int(n);
}

static struct value do_format(struct run *r, struct value v, const struct arguments *args)
{
	struct value all;

	if (args->n && args->n_keywords)
		return run_fail(r, "can't handle positional and keyword arguments at the same time");
	if (args->n_keywords) {
		all = dict_new(r, args->n_keywords);
		for (size_t i = 0; i < args->n_keywords && !r->failed; i++)
			dict_append(r, all.dict, args->keyword[i].key, args->keyword[i].value);
		if (r->failed || !dict_finish(r, all.dict))
			return value_of(KIND_ABSENT);
	} else {
		all = value_list(r, KIND_TUPLE, args->n);
		if (all.kind == KIND_ABSENT)
			return all;
		if (args->n)
			memcpy(all.list->item, args->v, args->n * sizeof *args->v);
	}
	return string_percent(r, to_text(r, v), all);
}

/* ---- other values */

static struct value do_default(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "default_value", "boolean" };
	struct value a[2];

	if (!bind_arguments(r, "default", args, names, 2, 0, a))
		return value_of(KIND_ABSENT);
	if (v.kind != KIND_UNDEFINED && !(value_truth(a[1]) && !value_truth(v)))
		return v;
	return a[0].kind == KIND_ABSENT ? value_text(text_literal(r, "")) : a[0];
}

static struct value do_attr(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "name" };
	const struct text *name = NULL;
	struct value a;

	if (!bind_arguments(r, "attr", args, names, 1, 1, &a) || !want_text(r, "attr", a, &name))
		return value_of(KIND_ABSENT);
	if (v.kind != KIND_DICT)
		return get_attribute(r, v, name);
	a = find_method(r, v, name);
	return a.kind == KIND_ABSENT ? value_undefined(UNDEFINED_ATTRIBUTE, name, KIND_DICT) : a;
}

static struct value do_tojson(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "ensure_ascii", "indent", "separators", "sort_keys" };
	const struct text *comma, *colon, *indent = NULL;
	struct build b = { .r = r };
	struct value a[4];
	int64_t width = 0;

	if (!bind_arguments(r, "tojson", args, names, 4, 0, a))
		return value_of(KIND_ABSENT);
	if (a[1].kind == KIND_TEXT)
		indent = a[1].text;
	else if (a[1].kind != KIND_ABSENT && a[1].kind != KIND_NONE)
		indent = want_int(r, "tojson", a[1], &width)
		                 ? operate(r, '*', value_text(text_literal(r, " ")), value_int(width)).text
		                 : NULL;
	comma = text_literal(r, indent ? "," : ", ");
	colon = text_literal(r, ": ");
	if (is_sequence(a[2])) {
		if (a[2].list->n != 2 || a[2].list->item[0].kind != KIND_TEXT || a[2].list->item[1].kind != KIND_TEXT)
			return run_fail(r, "tojson takes two texts as separators");
		comma = a[2].list->item[0].text;
		colon = a[2].list->item[1].text;
	}
	if (!r->failed)
		build_json(&b, v, value_truth(a[0]), value_truth(a[3]), indent, comma, colon, 0);
	return value_text(build_done(&b));
}

static const struct filter text_filter[] = {
	{ "attr", do_attr },
	{ "capitalize", do_capitalize },
	{ "center", do_center },
	{ "d", do_default },
	{ "default", do_default },
	{ "e", do_escape },
	{ "escape", do_escape },
	{ "forceescape", do_force_escape },
	{ "format", do_format },
	{ "indent", do_indent },
	{ "lower", do_lower },
	{ "replace", do_replace },
	{ "safe", do_safe },
	{ "string", do_string },
	{ "title", do_title },
	{ "tojson", do_tojson },
	{ "trim", do_trim },
	{ "truncate", do_truncate },
	{ "upper", do_upper },
	{ "wordcount", do_word_count },
	{ NULL, NULL },
};

static const struct filter *const table[] = { text_filter, number_filter, sequence_filter, order_filter };
enum { TABLES = sizeof table / sizeof *table, MAX_ROWS = 32 };

unsigned find_filter(const char *name, size_t n)
{
	for (unsigned t = 0; t < TABLES; t++)
		for (unsigned i = 0; table[t][i].name; i++)
			if (strlen(table[t][i].name) == n && memcmp(table[t][i].name, name, n) == 0)
				return t * MAX_ROWS + i;
	return NO_NUMBER;
}

struct value apply_filter(struct run *r, unsigned number, struct value v, const struct arguments *args)
{
	if (!run_step(r, 1))
		return value_of(KIND_ABSENT);
	v = table[number / MAX_ROWS][number % MAX_ROWS].apply(r, v, args);
	return r->failed ? value_of(KIND_ABSENT) : v;
}
