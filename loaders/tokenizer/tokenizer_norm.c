/* loaders/tokenizer/tokenizer_norm.c - text to text before it is cut into words: Unicode forms, replacements, prefixes.
 *
 * Owns: the meaning of each normaliser. Bytes that are no character pass through unchanged.
 * Never: takes more than O(n log n): marks are put into canonical order with a stable merge sort, because
 * an insertion sort (as libraries have it) is quadratic on a long run of combining marks.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* What a step writes, or some of the text. Where it is known which bytes are plain, those of the text keep that,
 * and others are plain when fill is set: some of what they stand for was. */
static bool put(struct tok_work *w, const char *p, size_t n, bool fill)
{
	size_t at = w->other_plain.n;

	if (!tok_append(&w->other, p, n, w->err))
		return false;
	if (!w->plain)
		return true;
	if (!tok_grow((void **)&w->other_plain.p, &w->other_plain.cap, at + n + 1, 1, w->err))
		return false;
	if (p >= w->text.p && p < w->text.p + w->text.n)
		memcpy(w->other_plain.p + at, w->text_plain.p + (p - w->text.p), n);
	else
		memset(w->other_plain.p + at, fill, n);
	w->other_plain.n = at + n;
	return true;
}

/* Whether some of n bytes of the text are plain. */
static bool some_plain(const struct tok_work *w, const char *p, size_t n)
{
	return w->plain && n && memchr(w->text_plain.p + (p - w->text.p), 1, n);
}

struct points {
	utf8proc_int32_t *p;
	size_t n, cap;
};

static bool add_point(struct points *c, const utf8proc_int32_t *from, size_t n, struct error *err)
{
	if (!tok_grow((void **)&c->p, &c->cap, c->n + n, sizeof *c->p, err))
		return false;
	memcpy(c->p + c->n, from, n * sizeof *from);
	c->n += n;
	return true;
}

static int mark_class(utf8proc_int32_t c) { return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class; }

/* Stable bottom-up merge sort of one run of marks by combining class. */
static void sort_marks(utf8proc_int32_t *p, utf8proc_int32_t *tmp, size_t n)
{
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * width) {
			size_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n;
			size_t a = lo, b = mid;
			for (size_t k = lo; k < hi; k++)
				tmp[k] = a < mid && (b == hi || mark_class(p[a]) <= mark_class(p[b])) ? p[a++] : p[b++];
		}
		memcpy(p, tmp, n * sizeof *p);
	}
}

static bool order_marks(struct points *c, struct error *err)
{
	utf8proc_int32_t *tmp = NULL;
	size_t cap = 0;

	for (size_t i = 0; i < c->n;) {
		size_t end = i;
		while (end < c->n && mark_class(c->p[end]))
			end++;
		if (end - i > 1) {
			if (!tok_grow((void **)&tmp, &cap, end - i, sizeof *tmp, err)) {
				free(tmp);
				return false;
			}
			sort_marks(c->p + i, tmp, end - i);
		}
		i = end > i ? end : i + 1;
	}
	free(tmp);
	return true;
}

/* Appends the normal form of n bytes of valid characters. */
static bool unicode_run(enum tok_norm_kind kind, const char *p, size_t n, struct points *c, struct tok_work *w)
{
	int options = UTF8PROC_DECOMPOSE | (kind == TOK_NORM_NFKC || kind == TOK_NORM_NFKD ? UTF8PROC_COMPAT : 0);

	c->n = 0;
	for (size_t i = 0; i < n;) {
		unsigned len = (unsigned)tok_char(p + i, n - i);
		unsigned point = tok_decode((const unsigned char *)p + i, len);
		utf8proc_int32_t parts[64];
		int boundary = 0;
		utf8proc_ssize_t got = utf8proc_decompose_char((utf8proc_int32_t)point, parts, 64,
		                                               (utf8proc_option_t)options, &boundary);
		if (got < 0 || got > 64) {
			parts[0] = (utf8proc_int32_t)point;
			got = 1;
		}
		if (!add_point(c, parts, (size_t)got, w->err))
			return false;
		i += len;
	}
	if (!order_marks(c, w->err))
		return false;
	if ((kind == TOK_NORM_NFC || kind == TOK_NORM_NFKC) && c->n) {
		utf8proc_ssize_t m =
			utf8proc_normalize_utf32(c->p, (utf8proc_ssize_t)c->n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
		if (m < 0)
			return error_set(w->err, ERROR_ARGUMENT, "the text cannot be composed: %s", utf8proc_errmsg(m));
		c->n = (size_t)m;
	}
	bool plain = some_plain(w, p, n);
	for (size_t i = 0; i < c->n; i++) {
		char bytes[4];
		if (!put(w, bytes, tok_encode((unsigned)c->p[i], bytes), plain))
			return false;
	}
	return true;
}

/* Every character below U+0300 is already composed and combines with nothing before it. */
static bool already_composed(const struct tok_buf *b)
{
	for (size_t i = 0; i < b->n; i++)
		if ((unsigned char)b->p[i] >= 0xcc)
			return false;
	return true;
}

static bool all_ascii(const struct tok_buf *b)
{
	for (size_t i = 0; i < b->n; i++)
		if ((unsigned char)b->p[i] >= 0x80)
			return false;
	return true;
}

static bool unicode_form(enum tok_norm_kind kind, struct tok_work *w)
{
	struct points c = { 0 };
	bool ok = true;

	if (kind == TOK_NORM_NFC ? already_composed(&w->text) : all_ascii(&w->text))
		return put(w, w->text.p, w->text.n, false);
	for (size_t i = 0; ok && i < w->text.n;) {
		size_t end = i;
		int len = 0;
		/* nothing composes across the beginning of an ASCII character: plain bytes are told apart there */
		while (end < w->text.n && (len = tok_char(w->text.p + end, w->text.n - end)) > 0 &&
		       !(w->plain && len == 1 && end > i))
			end += (size_t)len;
		ok = unicode_run(kind, w->text.p + i, end - i, &c, w);
		if (ok && end < w->text.n && len <= 0)
			ok = put(w, w->text.p + end++, 1, false);
		i = end;
	}
	free(c.p);
	return ok;
}

static bool lower_case(struct tok_work *w)
{
	for (size_t i = 0; i < w->text.n;) {
		int len = tok_char(w->text.p + i, w->text.n - i);
		char bytes[4];
		if (len <= 0) {
			if (!put(w, w->text.p + i++, 1, false))
				return false;
			continue;
		}
		unsigned c = tok_decode((const unsigned char *)w->text.p + i, (unsigned)len);
		bool plain = some_plain(w, w->text.p + i, (size_t)len);
		i += (unsigned)len;
		/* the one character whose lower case is two (U+0130: i and a dot above) */
		if (c == 0x130
		            ? !put(w, "i\xcc\x87", 3, plain)
		            : !put(w, bytes, tok_encode((unsigned)utf8proc_tolower((utf8proc_int32_t)c), bytes), plain))
			return false;
	}
	return true;
}

/* Those of BERT: what is a control character to it, and what is white space. */
static bool is_control(unsigned c)
{
	const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);

	return c == 0 || c == 0xfffd ||
	       (c != '\t' && c != '\n' && c != '\r' &&
	        (k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO));
}

static bool is_chinese(unsigned c)
{
	static const unsigned range[][2] = { { 0x4e00, 0x9fff },   { 0x3400, 0x4dbf },   { 0x20000, 0x2a6df },
		                             { 0x2a700, 0x2b73f }, { 0x2b740, 0x2b81f }, { 0x2b920, 0x2ceaf },
		                             { 0xf900, 0xfaff },   { 0x2f800, 0x2fa1f } };

	for (size_t i = 0; i < sizeof range / sizeof *range; i++)
		if (c >= range[i][0] && c <= range[i][1])
			return true;
	return false;
}

/* A character's turn: what of BERT's steps becomes of it. */
static bool put_bert(enum tok_norm_kind kind, struct tok_work *w, const char *p, size_t n)
{
	const unsigned c = tok_decode((const unsigned char *)p, (unsigned)n);
	const bool plain = some_plain(w, p, n);

	if (kind == TOK_NORM_CHINESE && is_chinese(c))
		return put(w, " ", 1, plain) && put(w, p, n, false) && put(w, " ", 1, plain);
	if (kind == TOK_NORM_CLEAN && is_control(c))
		return true;
	if (kind == TOK_NORM_CLEAN && tok_space_after(p, n))
		return put(w, " ", 1, plain);
	if (kind == TOK_NORM_ACCENTS && utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_MN)
		return true;
	return put(w, p, n, false);
}

static bool bert_step(enum tok_norm_kind kind, struct tok_work *w)
{
	for (size_t i = 0; i < w->text.n;) {
		const int len = tok_char(w->text.p + i, w->text.n - i);
		if (!(len > 0 ? put_bert(kind, w, w->text.p + i, (size_t)len) : put(w, w->text.p + i, 1, false)))
			return false;
		i += len > 0 ? (size_t)len : 1;
	}
	return true;
}

static bool replace_text(const struct tok_norm_step *s, struct tok_work *w)
{
	const char *p = w->text.p, *end = p + w->text.n;

	while (p < end) {
		const char *hit = memmem(p, (size_t)(end - p), s->from, s->n_from);
		if (!hit)
			return put(w, p, (size_t)(end - p), false);
		if (!tok_spend(w, 1 + s->n_to) || !put(w, p, (size_t)(hit - p), false) ||
		    !put(w, s->to, s->n_to, some_plain(w, hit, s->n_from)))
			return false;
		p = hit + s->n_from;
	}
	return true;
}

/* Replaces the matches in one run of valid characters. */
static bool replace_run(const struct tok_norm_step *s, struct tok_work *w, const char *p, size_t size)
{
	size_t done = 0, from = 0;

	while (from <= size) {
		size_t at, n;
		int got = tok_match(s->from_re, p, size, from, &at, &n, w);
		if (got < 0)
			return false;
		if (got == 0)
			break;
		if (!tok_spend(w, 1 + s->n_to) || !put(w, p + done, at - done, false) ||
		    !put(w, s->to, s->n_to, some_plain(w, p + at, n)))
			return false;
		done = from = at + n;
		if (n == 0) { /* an empty match: the next search starts one character on */
			int len = at < size ? tok_char(p + at, size - at) : 1;
			from += (size_t)len;
		}
	}
	return put(w, p + done, size - done, false);
}

static bool replace_pattern(const struct tok_norm_step *s, struct tok_work *w)
{
	for (size_t i = 0; i < w->text.n;) {
		size_t end = i;
		int len;
		while (end < w->text.n && (len = tok_char(w->text.p + end, w->text.n - end)) > 0)
			end += (size_t)len;
		if (!replace_run(s, w, w->text.p + i, end - i))
			return false;
		if (end < w->text.n && !put(w, w->text.p + end++, 1, false))
			return false;
		i = end;
	}
	return true;
}

static bool strip_spaces(const struct tok_norm_step *s, struct tok_work *w)
{
	size_t from = 0, to = w->text.n;
	unsigned len;

	while (s->left && (len = tok_space_after(w->text.p + from, to - from)) > 0)
		from += len;
	while (s->right && (len = tok_space_before(w->text.p + from, to - from)) > 0)
		to -= len;
	return put(w, w->text.p + from, to - from, false);
}

/* Runs of spaces become one; none is left at either end. */
static bool collapse_spaces(struct tok_work *w)
{
	bool pending = false;

	for (size_t i = 0; i < w->text.n; i++) {
		if (w->text.p[i] == ' ') {
			pending = w->other.n > 0;
			continue;
		}
		if ((pending && !put(w, w->text.p + i - 1, 1, false)) || !put(w, w->text.p + i, 1, false))
			return false;
		pending = false;
	}
	return true;
}

static bool apply(const struct tokenizer *t, const struct tok_norm_step *s, struct tok_work *w)
{
	switch (s->kind) {
	case TOK_NORM_NFC:
	case TOK_NORM_NFD:
	case TOK_NORM_NFKC:
	case TOK_NORM_NFKD: return unicode_form(s->kind, w);
	case TOK_NORM_LOWER: return lower_case(w);
	case TOK_NORM_REPLACE: return s->from_re ? replace_pattern(s, w) : replace_text(s, w);
	case TOK_NORM_PREPEND: return put(w, s->to, s->n_to, false) && put(w, w->text.p, w->text.n, false);
	case TOK_NORM_STRIP: return strip_spaces(s, w);
	case TOK_NORM_CLEAN:
	case TOK_NORM_CHINESE:
	case TOK_NORM_ACCENTS: return bert_step(s->kind, w);
	case TOK_NORM_CHARSMAP: return tok_charsmap_apply(&t->charsmap, w, put);
	default: return collapse_spaces(w);
	}
}

bool tok_normalise(const struct tokenizer *t, struct tok_work *w)
{
	for (unsigned i = 0; i < t->n_norm && w->text.n; i++) {
		struct tok_buf done;
		w->other.n = w->other_plain.n = 0;
		if (!apply(t, &t->norm[i], w) || !tok_spend(w, 1 + w->other.n))
			return false;
		done = w->other;
		w->other = w->text;
		w->text = done;
		done = w->other_plain;
		w->other_plain = w->text_plain;
		w->text_plain = done;
		if (w->text.n > INT32_MAX)
			return error_set(w->err, ERROR_ARGUMENT,
			                 "the text grows to %zu bytes by normalising it, at most %d are expected",
			                 w->text.n, INT32_MAX);
	}
	return true;
}
