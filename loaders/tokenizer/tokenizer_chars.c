/* loaders/tokenizer/tokenizer_chars.c - bytes and characters: UTF-8, the spelling of bytes in byte-level vocabularies,
 * white space, and the arrays that grow while a text is worked on.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

int tok_char(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	if (n == 0)
		return -1;
	if (p[0] < 0x80)
		return 1;
	unsigned need = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	/* the second byte carries the limits: no overlong forms, no surrogates, nothing above U+10FFFF */
	unsigned low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
	unsigned high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
	if (n < 2)
		return -1;
	if (p[1] < low || p[1] > high)
		return 0;
	for (unsigned i = 2; i < need; i++) {
		if (i >= n)
			return -1;
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return (int)need;
}

unsigned tok_decode(const unsigned char *p, unsigned n)
{
	switch (n) {
	case 1: return p[0];
	case 2: return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	case 3: return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	default: return (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
	}
}

unsigned tok_encode(unsigned c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Bytes that print as themselves in Latin-1 keep their number; the other 68 take U+0100.. in order. */
static bool byte_prints(unsigned b)
{
	return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
}

unsigned tokenizer_spell_byte(unsigned byte, char out[4])
{
	return tok_encode(byte_prints(byte) ? byte
	                  : byte <= 32      ? 0x100 + byte
	                  : byte <= 160     ? 0x121 + (byte - 127)
	                                    : 0x143,
	                  out);
}

int tok_char_byte(unsigned c)
{
	if (c < 256)
		return byte_prints(c) ? (int)c : -1;
	if (c <= 0x120)
		return (int)(c - 0x100);
	if (c <= 0x142)
		return (int)(c - 0x121 + 127);
	return c == 0x143 ? 173 : -1;
}

size_t tok_last_char(const char *p, size_t n)
{
	size_t at = n - 1;

	while (at > 0 && n - at < 4 && ((unsigned char)p[at] & 0xc0) == 0x80)
		at--;
	return tok_char(p + at, n - at) == (int)(n - at) ? at : n - 1;
}

unsigned tok_space_after(const char *p, size_t n)
{
	int len = tok_char(p, n);

	if (len <= 0)
		return 0;
	unsigned c = tok_decode((const unsigned char *)p, (unsigned)len);
	bool space = c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	             (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
	             c == 0x3000;
	return space ? (unsigned)len : 0;
}

unsigned tok_space_before(const char *p, size_t n)
{
	if (n == 0)
		return 0;
	size_t at = tok_last_char(p, n);
	return tok_space_after(p + at, n - at);
}

/* ---- arrays that grow */

bool tok_grow(void **p, size_t *cap, size_t need, size_t item, struct error *err)
{
	if (need <= *cap)
		return true;
	size_t want = *cap < 64 ? 64 : *cap;
	while (want < need) {
		if (want > SIZE_MAX / 2 / item)
			return error_set(err, ERROR_MEMORY, "the tokenizer would need more than %zu items of %zu bytes",
			                 want, item);
		want += want / 2;
	}
	void *grown = realloc(*p, want * item);
	if (!grown)
		return error_set(err, ERROR_MEMORY, "no memory for %zu bytes of tokenizer work", want * item);
	*p = grown;
	*cap = want;
	return true;
}

bool tok_append(struct tok_buf *b, const void *p, size_t n, struct error *err)
{
	if (n == 0)
		return true;
	if (b->n + n > b->cap && !tok_grow((void **)&b->p, &b->cap, b->n + n, 1, err))
		return false;
	memcpy(b->p + b->n, p, n);
	b->n += n;
	return true;
}

bool tok_span_add(struct tok_spans *s, size_t at, size_t n, bool bad, struct error *err)
{
	if (s->n == s->cap && !tok_grow((void **)&s->p, &s->cap, s->n + 1, sizeof *s->p, err))
		return false;
	s->p[s->n++] = (struct tok_span){ (uint32_t)at, (uint32_t)n, bad };
	return true;
}
