/* chat/jinja_string.c - what texts can do: splitting, stripping, replacing, cases. Pieces keep their marks.
 *
 * Owns: the work itself, for methods (jinja_string_method.c) and filters alike.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "chat/jinja.h"

/* ---- splitting */

struct parts {
	struct run *r;
	const struct text *t;
	struct value *item;
	size_t n, capacity;
};

static void add_part(struct parts *p, size_t from, size_t to)
{
	if (p->n == p->capacity) {
		size_t want = p->n ? 2 * p->n : 8;
		struct value *grown = run_take(p->r, want * sizeof *grown);
		if (!grown)
			return;
		if (p->n)
			memcpy(grown, p->item, p->n * sizeof *grown);
		p->item = grown;
		p->capacity = want;
	}
	p->item[p->n++] = value_text(text_part(p->r, p->t, from, to - from));
}

static struct value list_of(struct parts *p, bool reversed)
{
	struct value v = p->r->failed ? value_of(KIND_ABSENT) : value_list(p->r, KIND_LIST, p->n);

	for (size_t i = 0; v.kind != KIND_ABSENT && i < p->n; i++)
		v.list->item[i] = p->item[reversed ? p->n - 1 - i : i];
	return v;
}

static unsigned space_at(const struct text *t, size_t at)
{
	uint32_t c;
	unsigned n = at < t->n ? text_at(t, at, &c) : 0;

	return n && character_is_space(c) ? n : 0;
}

static size_t skip_space(const struct text *t, size_t at)
{
	for (unsigned n; (n = space_at(t, at)) > 0;)
		at += n;
	return at;
}

static size_t skip_space_back(const struct text *t, size_t from, size_t to)
{
	while (to > from && space_at(t, text_before(t, to)))
		to = text_before(t, to);
	return to;
}

static struct value split_spaces(struct run *r, const struct text *t, int64_t max)
{
	struct parts p = { .r = r, .t = t };

	for (size_t at = skip_space(t, 0); at < t->n && !r->failed; at = skip_space(t, at)) {
		size_t from = at;
		uint32_t c;
		if (max >= 0 && (int64_t)p.n == max) {
			add_part(&p, from, t->n);
			break;
		}
		while (at < t->n && !space_at(t, at))
			at += text_at(t, at, &c);
		add_part(&p, from, at);
	}
	return list_of(&p, false);
}

static struct value split_spaces_back(struct run *r, const struct text *t, int64_t max)
{
	struct parts p = { .r = r, .t = t };

	for (size_t to = skip_space_back(t, 0, t->n); to > 0 && !r->failed; to = skip_space_back(t, 0, to)) {
		size_t from = to;
		if (max >= 0 && (int64_t)p.n == max) {
			add_part(&p, 0, to);
			break;
		}
		while (from > 0 && !space_at(t, text_before(t, from)))
			from = text_before(t, from);
		add_part(&p, from, to);
		to = from;
	}
	return list_of(&p, true);
}

struct value string_split(struct run *r, const struct text *t, const struct text *by, int64_t max, bool from_right)
{
	struct parts p = { .r = r, .t = t };
	size_t from = 0, to = t->n, at;

	if (!run_bytes(r, 4 * t->n))
		return value_of(KIND_ABSENT);
	if (!by)
		return from_right ? split_spaces_back(r, t, max) : split_spaces(r, t, max);
	if (!by->n)
		return run_fail(r, "empty separator");
	while (!r->failed && (max < 0 || (int64_t)p.n < max)) {
		at = from_right ? text_find_last(r, t, by, to) : text_find(t, by, from, t->n);
		if (at == SIZE_MAX)
			break;
		if (from_right) {
			add_part(&p, at + by->n, to);
			to = at;
		} else {
			add_part(&p, from, at);
			from = at + by->n;
		}
	}
	add_part(&p, from, to);
	return list_of(&p, from_right);
}

struct value string_lines(struct run *r, const struct text *t, bool keep)
{
	struct parts p = { .r = r, .t = t };
	size_t from = 0;

	if (!run_bytes(r, 4 * t->n))
		return value_of(KIND_ABSENT);
	for (size_t at = 0; at < t->n && !r->failed;) {
		uint32_t c;
		size_t next = at + text_at(t, at, &c);
		if (!character_is_line_end(c)) {
			at = next;
			continue;
		}
		if (c == '\r' && next < t->n && t->p[next] == '\n')
			next++;
		add_part(&p, from, keep ? next : at);
		from = at = next;
	}
	if (from < t->n)
		add_part(&p, from, t->n);
	return list_of(&p, false);
}

/* ---- stripping, replacing, joining */

static bool strips(const struct text *chars, const struct text *t, size_t at)
{
	uint32_t c;
	unsigned n = text_at(t, at, &c);

	if (!chars)
		return character_is_space(c);
	for (size_t i = 0; i + n <= chars->n; i++)
		if (memcmp(chars->p + i, t->p + at, n) == 0)
			return true;
	return false;
}

const struct text *string_strip(struct run *r, const struct text *t, const struct text *chars, bool left, bool right)
{
	size_t from = 0, to = t->n, cost = chars ? 1 + chars->n / 8 : 1;
	uint32_t c;

	while (left && from < to && run_step(r, cost) && strips(chars, t, from))
		from += text_at(t, from, &c);
	while (right && from < to && run_step(r, cost) && strips(chars, t, text_before(t, to)))
		to = text_before(t, to);
	return from == 0 && to == t->n ? t : text_part(r, t, from, to - from);
}

/* Before every character, and at the end. */
static void replace_nothing(struct build *b, const struct text *t, const struct text *to, int64_t max)
{
	size_t at = 0;
	uint32_t c;

	while (at < t->n && max != 0 && !b->r->failed) {
		unsigned n = text_at(t, at, &c);
		build_text(b, to);
		build_part(b, t, at, n);
		at += n;
		max--;
	}
	if (max != 0)
		build_text(b, to);
	build_part(b, t, at, t->n - at);
}

const struct text *string_replace(struct run *r, const struct text *t, const struct text *from, const struct text *to,
                                  int64_t max)
{
	struct build b = { .r = r };
	size_t at = 0;

	if (!run_bytes(r, t->n))
		return NULL;
	if (from->n == 0) {
		replace_nothing(&b, t, to, max);
		return build_done(&b);
	}
	for (size_t hit; max != 0 && !r->failed && (hit = text_find(t, from, at, t->n)) != SIZE_MAX; max--) {
		build_part(&b, t, at, hit - at);
		build_text(&b, to);
		at = hit + from->n;
	}
	if (at == 0)
		return t;
	build_part(&b, t, at, t->n - at);
	return build_done(&b);
}

const struct text *string_join(struct run *r, const struct text *by, struct list *items, bool any)
{
	struct build b = { .r = r };

	for (size_t i = 0; items && i < items->n && !r->failed; i++) {
		if (i)
			build_text(&b, by);
		if (!any && items->item[i].kind != KIND_TEXT)
			run_fail(r, "sequence item %zu: expected str instance, %s found", i,
			         value_type(items->item[i]));
		build_str(&b, items->item[i]);
	}
	return build_done(&b);
}

/* ---- cases */

static bool is_upper(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LU; }
static bool is_lower(uint32_t c)
{
	return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba;
}
static bool is_cased(uint32_t c)
{
	return is_upper(c) || is_lower(c) || utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LT;
}

/* Marks and the like, which do not end a word for what follows. */
static bool is_ignorable(uint32_t c)
{
	switch (utf8proc_category((utf8proc_int32_t)c)) {
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_ME:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_SK: return true;
	default:
		return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2019 || c == 0x2018 || c == 0x2024 ||
		       c == 0x2027;
	}
}

/* A sigma at the end of a word has a form of its own. */
static bool ends_word(const struct text *t, size_t at, size_t next)
{
	uint32_t c = 0;

	do {
		if (at == 0)
			return false;
		at = text_before(t, at);
		text_at(t, at, &c);
	} while (is_ignorable(c));
	if (!is_cased(c))
		return false;
	while (next < t->n) {
		next += text_at(t, next, &c);
		if (!is_ignorable(c))
			return !is_cased(c);
	}
	return true;
}

/* how: l, u, c (the first as a title, the rest lower), t (as c in every word), s (swapped). */
const struct text *string_case(struct run *r, const struct text *t, char how)
{
	struct build b = { .r = r };
	bool inside = false;

	for (size_t at = 0; at < t->n && !r->failed;) {
		uint32_t c;
		unsigned n = text_at(t, at, &c);
		bool user = text_user_at(t, at);
		char to = how == 's'                 ? (is_upper(c)   ? 'l'
		                                        : is_lower(c) ? 'u'
		                                                      : 0)
		          : how == 'c' || how == 't' ? (inside ? 'l' : 'f')
		                                     : how;
		if (to == 'l' && c == 0x3a3)
			build_character(&b, ends_word(t, at, at + n) ? 0x3c2 : 0x3c3, user);
		else if (to == 'l')
			build_lower(&b, c, user);
		else if (to == 'u')
			build_upper(&b, c, user);
		else if (to == 'f')
			build_title(&b, c, user);
		else
			build_part(&b, t, at, n);
		inside = how == 'c' || is_cased(c);
		at += n;
	}
	struct text *out = text_change(build_done(&b));
	if (out)
		out->safe = t->safe;
	return out;
}

/* ---- '%' */

struct conversion {
	bool left, zero, sign, space;
	int width, precision;
	char what;
};

static void pad(struct build *b, const struct text *t, const struct conversion *c)
{
	size_t have = text_characters(b->r, t), want = c->width > 0 ? (size_t)c->width : 0;

	for (size_t i = have; !c->left && i < want; i++)
		build_bytes(b, " ", 1, false);
	build_text(b, t);
	for (size_t i = have; c->left && i < want; i++)
		build_bytes(b, " ", 1, false);
}

static void convert_number(struct build *b, struct value v, const struct conversion *c)
{
	char format[40], text[400];
	bool real = c->what == 'f' || c->what == 'e' || c->what == 'g';
	const char *flags[] = { c->left ? "-" : "", c->zero ? "0" : "", c->sign ? "+" : "", c->space ? " " : "" };

	if (!is_number(v) || (c->what == 'x' && v.kind == KIND_FLOAT)) {
		run_fail(b->r, "%%%c format: a %s is required, not %s", c->what,
		         c->what == 'x' ? "integer" : "real number", value_type(v));
		return;
	}
	if (real) {
		snprintf(format, sizeof format, "%%%s%s%s%s%d.%d%c", flags[0], flags[1], flags[2], flags[3], c->width,
		         c->precision < 0 ? 6 : c->precision, c->what);
		snprintf(text, sizeof text, format, real_of(v));
	} else {
		if (v.kind == KIND_FLOAT && !(v.real > -9.2e18 && v.real < 9.2e18)) {
			run_fail(b->r, "an integer does not fit 64 bits");
			return;
		}
		int64_t i = v.kind == KIND_FLOAT ? (int64_t)v.real : integer_of(v);
		snprintf(format, sizeof format, "%%%s%s%s%s%d%s", flags[0], flags[1], flags[2], flags[3], c->width,
		         c->what == 'x' ? PRIx64 : PRId64);
		snprintf(text, sizeof text, format, i);
	}
	build_string(b, text, v.user);
}

static void convert(struct build *b, struct value v, const struct conversion *c)
{
	struct build own = { .r = b->r };

	if (c->what != 's' && c->what != 'r') {
		convert_number(b, v, c);
		return;
	}
	if (c->what == 'r')
		build_repr(&own, v);
	else
		build_str(&own, v);
	const struct text *t = build_done(&own);
	if (t && c->precision >= 0)
		t = text_part(b->r, t, 0, text_offset(t, (size_t)c->precision));
	if (t && !b->r->failed)
		pad(b, t, c);
}

static int read_number(const struct text *t, size_t *at)
{
	int v = 0;

	for (; *at < t->n && t->p[*at] >= '0' && t->p[*at] <= '9'; ++*at)
		v = v < 300 ? 10 * v + (t->p[*at] - '0') : 300;
	return v < 300 ? v : 300;
}

/* What stands behind a '%' and its name; false: not that much of it is there. */
static bool read_conversion(const struct text *t, size_t *at, struct conversion *c)
{
	*c = (struct conversion){ .precision = -1 };
	for (; *at < t->n && t->p[*at] && strchr("-0+ #", t->p[*at]); ++*at) {
		c->left |= t->p[*at] == '-';
		c->zero |= t->p[*at] == '0';
		c->sign |= t->p[*at] == '+';
		c->space |= t->p[*at] == ' ';
	}
	c->width = read_number(t, at);
	if (*at < t->n && t->p[*at] == '.') {
		++*at;
		c->precision = read_number(t, at);
	}
	if (*at == t->n)
		return false;
	c->what = t->p[(*at)++];
	if (c->what == 'i' || c->what == 'u')
		c->what = 'd';
	return true;
}

struct value string_percent(struct run *r, const struct text *t, struct value args)
{
	struct build b = { .r = r };
	size_t used = 0, given = args.kind == KIND_TUPLE ? args.list->n : 1;
	bool named = false;

	if (t->safe)
		return run_fail(r, "the operator %% is not supported for Markup");
	for (size_t at = 0; at < t->n && !r->failed;) {
		struct conversion c;
		struct value v;
		if (t->p[at] != '%') {
			build_part(&b, t, at++, 1);
			continue;
		}
		const char *close = ++at < t->n && t->p[at] == '(' ? memchr(t->p + at, ')', t->n - at) : NULL;
		if (close) {
			const struct text *name = text_part(r, t, at + 1, (size_t)(close - t->p) - at - 1);
			const struct pair *p =
				args.kind == KIND_DICT && name ? dict_find_name(r, args.dict, name) : NULL;
			if (!p)
				return run_fail(r, args.kind == KIND_DICT ? "the format names a key that is not there"
				                                          : "format requires a mapping");
			v = p->value;
			named = true;
			at = (size_t)(close - t->p) + 1;
		}
		if (!read_conversion(t, &at, &c))
			return run_fail(r, "incomplete format");
		if (c.what == '%') {
			build_string(&b, "%", false);
			continue;
		}
		if (!c.what || !strchr("srdxfeg", c.what))
			return run_fail(r, "the format character '%c' is not supported", c.what);
		if (!close) {
			if (used == given)
				return run_fail(r, "not enough arguments for format string");
			v = args.kind == KIND_TUPLE ? args.list->item[used] : args;
			used++;
		}
		convert(&b, v, &c);
	}
	/* what has items by name may have more of them than are asked for */
	bool open = args.kind == KIND_DICT || args.kind == KIND_LIST || args.kind == KIND_UNDEFINED;
	if (!named && used < given && !open && !r->failed)
		return run_fail(r, "not all arguments converted during string formatting");
	return value_text(build_done(&b));
}
