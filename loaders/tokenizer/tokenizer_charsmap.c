/* loaders/tokenizer/tokenizer_charsmap.c - SentencePiece's normaliser: a table of texts and what becomes of them.
 *
 * Owns: reading it. The first four bytes say how long a double array is, whose units follow; behind these are the texts
 * that it leads to, each with a 0 behind it. What a text becomes is looked for by grapheme, and by character where no
 * such grapheme is there, as HF's tokenizers do it. Every byte is hostile: a walk stays within the array and ends after
 * as many steps as the text has bytes.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <string.h>
#include <utf8proc.h>

enum { LONGEST_GRAPHEME = 6 /* bytes, of those that are looked for whole */ };

static uint32_t unit_at(const struct tok_charsmap *m, uint32_t i)
{
	const unsigned char *p = m->units + (size_t)i * 4;

	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

bool tok_charsmap_open(struct tok_charsmap *m, const void *bytes, size_t n, const char *where, struct error *err)
{
	const unsigned char *p = bytes;
	const uint32_t size = n >= 4 ? p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : 0;

	if (n < 4 || size > n - 4 || size % 4 != 0 || size == 0)
		return error_set(err, ERROR_FORMAT,
		                 "%s: the table of characters has %zu bytes, which do not hold the %u of its array",
		                 where, n, size);
	*m = (struct tok_charsmap){ p + 4, (const char *)p + 4 + size, size / 4, n - 4 - size };
	return m->n_texts == 0 || m->texts[m->n_texts - 1] == 0 ||
	       error_set(err, ERROR_FORMAT, "%s: the last text of the table of characters has no end", where);
}

/* What the n bytes become whole, 0-terminated; NULL: they stay. */
static const char *find(const struct tok_charsmap *m, const char *p, size_t n)
{
	uint32_t at = 0, unit = unit_at(m, 0);
	const char *found = NULL;

	at ^= offset_of(unit);
	for (size_t i = 0; i < n && p[i]; i++) {
		at ^= (unsigned char)p[i];
		if (at >= m->n_units)
			return found;
		unit = unit_at(m, at);
		if ((unit & (1u << 31 | 0xff)) != (unsigned char)p[i])
			return found;
		at ^= offset_of(unit);
		if (!(unit >> 8 & 1))
			continue;
		if (at >= m->n_units)
			return found;
		const uint32_t value = unit_at(m, at) & 0x7fffffff;
		if (!found && value < m->n_texts) /* the first, shortest prefix decides */
			found = m->texts + value;
	}
	return found;
}

static bool put_character(const struct tok_charsmap *m, struct tok_work *w, const char *p, size_t n, tok_put_fn put)
{
	const char *to = find(m, p, n);

	return to ? put(w, to, strlen(to), true) : put(w, p, n, false);
}

/* Bytes of the grapheme at p, whose first character has `first` of them. */
static size_t grapheme(const char *p, size_t n, size_t first)
{
	utf8proc_int32_t state = 0, before = (utf8proc_int32_t)tok_decode((const unsigned char *)p, (unsigned)first);
	size_t end = first;

	while (end < n) {
		const int len = tok_char(p + end, n - end);
		if (len <= 0)
			return end;
		const utf8proc_int32_t c = (utf8proc_int32_t)tok_decode((const unsigned char *)p + end, (unsigned)len);
		if (utf8proc_grapheme_break_stateful(before, c, &state))
			return end;
		before = c;
		end += (size_t)len;
	}
	return end;
}

bool tok_charsmap_apply(const struct tok_charsmap *m, struct tok_work *w, tok_put_fn put)
{
	const char *p = w->text.p;
	const size_t n = w->text.n;

	for (size_t i = 0, end; i < n; i = end) {
		const int len = tok_char(p + i, n - i);
		if (len <= 0) {
			end = i + 1;
			if (!put(w, p + i, 1, false))
				return false;
			continue;
		}
		end = i + grapheme(p + i, n - i, (size_t)len);
		const char *whole = end - i < LONGEST_GRAPHEME ? find(m, p + i, end - i) : NULL;
		if (whole && !put(w, whole, strlen(whole), true))
			return false;
		for (size_t k = i, one; !whole && k < end; k += one) {
			one = (size_t)tok_char(p + k, end - k);
			if (!put_character(m, w, p + k, one, put))
				return false;
		}
		if (!tok_spend(w, 1 + end - i))
			return false;
	}
	return true;
}
