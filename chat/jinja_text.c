/* chat/jinja_text.c - texts whose bytes say where they came from, and their characters.
 *
 * Owns: how a text is written, cut and searched so that every byte keeps its mark. Texts that are the user's in whole,
 * or not at all, have no marks by byte; most are one of the two.
 */
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "chat/jinja.h"

/* ---- writing */

static bool build_room(struct build *b, size_t n)
{
	if (b->r->failed)
		return false;
	if (n > CHAT_MAX_TEXT - b->n) {
		run_fail(b->r, "a text grows beyond %d bytes", CHAT_MAX_TEXT);
		return false;
	}
	if (b->n + n <= b->capacity)
		return true;
	size_t want = 2 * b->capacity > b->n + n ? 2 * b->capacity : b->n + n + 64;
	if (!b->mark && b->p && memory_extend(&b->r->memory, b->p, b->capacity, want)) {
		b->capacity = want;
		return true;
	}
	char *p = run_take(b->r, want);
	uint8_t *mark = b->mark && p ? run_take(b->r, want) : NULL;
	if (!p || (b->mark && !mark))
		return false;
	if (b->n)
		memcpy(p, b->p, b->n);
	if (mark)
		memcpy(mark, b->mark, b->n);
	b->p = p;
	b->mark = mark;
	b->capacity = want;
	return true;
}

/* From here on every byte has a mark of its own. */
static bool build_marks(struct build *b)
{
	if (!b->mark && (b->mark = run_take(b->r, b->capacity)) != NULL)
		memset(b->mark, b->user, b->n);
	return b->mark != NULL;
}

void build_bytes(struct build *b, const char *p, size_t n, bool user)
{
	if (n == 0 || !build_room(b, n) || !run_bytes(b->r, n))
		return;
	if (b->n == 0 && !b->mark)
		b->user = user;
	if (b->user != user && !build_marks(b))
		return;
	memcpy(b->p + b->n, p, n);
	if (b->mark)
		memset(b->mark + b->n, user, n);
	b->n += n;
}

void build_string(struct build *b, const char *s, bool user) { build_bytes(b, s, strlen(s), user); }

void build_part(struct build *b, const struct text *t, size_t from, size_t n)
{
	if (!t->mark) {
		build_bytes(b, t->p + from, n, t->user);
		return;
	}
	if (n == 0 || !build_room(b, n) || !run_bytes(b->r, n) || !build_marks(b))
		return;
	memcpy(b->p + b->n, t->p + from, n);
	memcpy(b->mark + b->n, t->mark + from, n);
	b->n += n;
}

void build_text(struct build *b, const struct text *t) { build_part(b, t, 0, t->n); }

void build_character(struct build *b, uint32_t c, bool user)
{
	utf8proc_uint8_t p[4];

	build_bytes(b, (char *)p, (size_t)utf8proc_encode_char((utf8proc_int32_t)c, p), user);
}

const struct text *build_done(struct build *b)
{
	struct text *t = run_take(b->r, sizeof *t);

	if (t)
		*t = (struct text){ .p = b->p ? b->p : "", .mark = b->mark, .n = b->n, .user = b->user };
	return t;
}

const struct text *text_literal(struct run *r, const char *s)
{
	return text_copy(r, &(struct text){ .p = s, .n = strlen(s) });
}

const struct text *text_copy(struct run *r, const struct text *from)
{
	struct text *t = run_take(r, sizeof *t);

	if (t)
		*t = *from;
	return t;
}

const struct text *text_part(struct run *r, const struct text *t, size_t from, size_t n)
{
	struct text part = *t;

	part.p += from;
	part.n = n;
	if (part.mark)
		part.mark += from;
	return text_copy(r, &part);
}

/* ---- comparing and searching */

bool text_is(const struct text *t, const char *s) { return t->n == strlen(s) && memcmp(t->p, s, t->n) == 0; }
bool text_same(const struct text *a, const struct text *b) { return a->n == b->n && memcmp(a->p, b->p, a->n) == 0; }

/* The order of UTF-8 bytes is that of characters. */
int text_order(const struct text *a, const struct text *b)
{
	int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

size_t text_find(const struct text *t, const struct text *what, size_t from, size_t to)
{
	const char *hit = from <= to ? memmem(t->p + from, to - from, what->p, what->n) : NULL;

	return hit ? (size_t)(hit - t->p) : SIZE_MAX;
}

size_t text_find_last(struct run *r, const struct text *t, const struct text *what, size_t to)
{
	size_t n = what->n;

	if (to < n || n == 0)
		return to < n ? SIZE_MAX : to;
	for (size_t at = to - n + 1; at-- > 0;) {
		if (t->p[at] != what->p[0] || t->p[at + n - 1] != what->p[n - 1])
			continue;
		if (!run_bytes(r, n))
			break;
		if (memcmp(t->p + at, what->p, n) == 0)
			return at;
	}
	return SIZE_MAX;
}

bool text_user_at(const struct text *t, size_t at) { return t->mark && at < t->n ? t->mark[at] : t->user; }

/* ---- characters */

static bool continues(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

size_t text_characters(struct run *r, const struct text *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += !continues(t->p[i]);
	run_bytes(r, t->n);
	return n;
}

size_t text_offset(const struct text *t, size_t i)
{
	size_t at = 0;

	for (; at < t->n; at++)
		if (!continues(t->p[at]) && i-- == 0)
			break;
	return at;
}

unsigned text_at(const struct text *t, size_t at, uint32_t *c)
{
	unsigned n = text_char(t->p + at, t->n - at, c);

	if (!n)
		*c = 0xfffd; /* no text holds such bytes */
	return n ? n : 1;
}

size_t text_before(const struct text *t, size_t at)
{
	do
		at--;
	while (at > 0 && continues(t->p[at]));
	return at;
}

bool character_is_space(uint32_t c)
{
	return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool character_is_line_end(uint32_t c)
{
	return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool character_prints(uint32_t c)
{
	switch (utf8proc_category((utf8proc_int32_t)c)) {
	case UTF8PROC_CATEGORY_CN:
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_CS:
	case UTF8PROC_CATEGORY_CO:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP: return false;
	case UTF8PROC_CATEGORY_ZS: return c == ' ';
	default: return true;
	}
}

/* ---- case */

/* The characters whose upper case is several, those of Unicode's SpecialCasing.txt that hold in every language: as
 * upper and as title case. */
static const struct special_case {
	uint16_t from, upper[3], title[3];
} special_case[] = {
	{ 0xdf, { 0x53, 0x53 }, { 0x53, 0x73 } },
	{ 0x149, { 0x2bc, 0x4e }, { 0x2bc, 0x4e } },
	{ 0x1f0, { 0x4a, 0x30c }, { 0x4a, 0x30c } },
	{ 0x390, { 0x399, 0x308, 0x301 }, { 0x399, 0x308, 0x301 } },
	{ 0x3b0, { 0x3a5, 0x308, 0x301 }, { 0x3a5, 0x308, 0x301 } },
	{ 0x587, { 0x535, 0x552 }, { 0x535, 0x582 } },
	{ 0x1e96, { 0x48, 0x331 }, { 0x48, 0x331 } },
	{ 0x1e97, { 0x54, 0x308 }, { 0x54, 0x308 } },
	{ 0x1e98, { 0x57, 0x30a }, { 0x57, 0x30a } },
	{ 0x1e99, { 0x59, 0x30a }, { 0x59, 0x30a } },
	{ 0x1e9a, { 0x41, 0x2be }, { 0x41, 0x2be } },
	{ 0xfb00, { 0x46, 0x46 }, { 0x46, 0x66 } },
	{ 0xfb01, { 0x46, 0x49 }, { 0x46, 0x69 } },
	{ 0xfb02, { 0x46, 0x4c }, { 0x46, 0x6c } },
	{ 0xfb03, { 0x46, 0x46, 0x49 }, { 0x46, 0x66, 0x69 } },
	{ 0xfb04, { 0x46, 0x46, 0x4c }, { 0x46, 0x66, 0x6c } },
	{ 0xfb05, { 0x53, 0x54 }, { 0x53, 0x74 } },
	{ 0xfb06, { 0x53, 0x54 }, { 0x53, 0x74 } },
};

static const struct special_case *find_special(uint32_t c)
{
	for (size_t i = 0; c >= 0xdf && i < sizeof special_case / sizeof *special_case; i++)
		if (special_case[i].from == c)
			return &special_case[i];
	return NULL;
}

static void build_several(struct build *b, const uint16_t c[3], bool user)
{
	for (unsigned i = 0; i < 3 && c[i]; i++)
		build_character(b, c[i], user);
}

void build_upper(struct build *b, uint32_t c, bool user)
{
	const struct special_case *s = find_special(c);

	if (s)
		build_several(b, s->upper, user);
	else
		build_character(b, (uint32_t)utf8proc_toupper((utf8proc_int32_t)c), user);
}

void build_title(struct build *b, uint32_t c, bool user)
{
	const struct special_case *s = find_special(c);

	if (s)
		build_several(b, s->title, user);
	else
		build_character(b, (uint32_t)utf8proc_totitle((utf8proc_int32_t)c), user);
}

void build_lower(struct build *b, uint32_t c, bool user)
{
	if (c == 0x130) /* I with a dot: i, and the dot above it */
		build_string(b, "i\xcc\x87", user);
	else
		build_character(b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c), user);
}

void build_escaped(struct build *b, const struct text *t)
{
	static const char from[] = "&<>'\"";
	static const char *const to[] = { "&amp;", "&lt;", "&gt;", "&#39;", "&#34;" };

	for (size_t i = 0; i < t->n && !b->r->failed; i++) {
		const char *f = t->p[i] ? strchr(from, t->p[i]) : NULL;
		if (f)
			build_string(b, to[f - from], text_user_at(t, i));
		else
			build_part(b, t, i, 1);
	}
}
