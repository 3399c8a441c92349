/* grammar/schema/json_text.c - characters between quotes: UTF-8 that is valid, and escapes. */
#include <string.h>

#include "base/text.h"
#include "grammar/schema/json_parts.h"

enum { AFTER_BACKSLASH = 1, HEX = 2 /* with the digits so far from bit 4 on, and the value from bit 8 on */ };

/* How many bytes must follow, and between which values the next one lies: Unicode, table 3-7. */
static uint32_t after_lead(uint8_t b)
{
	unsigned n = b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
	unsigned low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80, high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;

	return b < 0xc2 || b > 0xf4 ? 0 : n | low << 8 | high << 16;
}

enum text_event text_byte(struct text_state *t, uint8_t byte)
{
	if (t->utf8) {
		unsigned left = (t->utf8 & 0xff) - 1;
		if (byte < (t->utf8 >> 8 & 0xff) || byte > (t->utf8 >> 16 & 0xff))
			return TEXT_DEAD;
		t->utf8 = left ? left | 0x80 << 8 | 0xbf << 16 : 0;
		return left ? TEXT_BYTES : TEXT_CHARACTER;
	}
	if (byte < 0x80)
		return TEXT_CHARACTER;
	t->utf8 = after_lead(byte);
	return t->utf8 ? TEXT_BYTES : TEXT_DEAD;
}

static enum text_event unicode(struct text_state *t, uint32_t code, uint8_t out[4], unsigned *n)
{
	bool low = code >= 0xdc00 && code < 0xe000;

	if ((t->high != 0) != low)
		return TEXT_DEAD;
	if (code >= 0xd800 && code < 0xdc00) {
		t->high = code;
		return TEXT_INSIDE;
	}
	*n = text_spell(low ? 0x10000 + ((t->high - 0xd800) << 10) + (code - 0xdc00) : code, out);
	t->high = 0;
	return TEXT_CHARACTER;
}

static int digit(uint8_t b)
{
	return b >= '0' && b <= '9' ? b - '0' : (b | 0x20) >= 'a' && (b | 0x20) <= 'f' ? (b | 0x20) - 'a' + 10 : -1;
}

static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";

/* Whether the next of four digits can be that of a character that has no other spelling: a control without a letter. */
static bool spells_control(const struct text_state *t, uint8_t byte)
{
	const uint32_t had = t->escape >> 4 & 7, before = t->escape >> 8;

	if (had < 2)
		return byte == '0';
	if (had == 2)
		return byte == '0' || byte == '1';
	return digit(byte) >= 0 && !(byte >= 'A' && byte <= 'F') &&
	       (before > 0 || digit(byte) == 0 || !strchr(meant, digit(byte)));
}

static enum text_event escaped(struct text_state *t, uint8_t byte, bool plain, uint8_t out[4], unsigned *n)
{
	const char *at;
	int v;

	if (plain && (t->escape == AFTER_BACKSLASH ? byte == '/' : !spells_control(t, byte)))
		return TEXT_DEAD;

	if (t->escape == AFTER_BACKSLASH) {
		if (byte == 'u') {
			t->escape = HEX;
			return TEXT_INSIDE;
		}
		at = byte && !t->high ? strchr(letters, byte) : NULL;
		t->escape = 0;
		if (!at)
			return TEXT_DEAD;
		*n = 1;
		out[0] = (uint8_t)meant[at - letters];
		return TEXT_CHARACTER;
	}
	if ((v = digit(byte)) < 0)
		return TEXT_DEAD;
	uint32_t digits = (t->escape >> 4 & 7) + 1, value = (t->escape >> 8) << 4 | (uint32_t)v;
	if (digits < 4) {
		t->escape = HEX | digits << 4 | value << 8;
		return TEXT_INSIDE;
	}
	t->escape = 0;
	return unicode(t, value, out, n);
}

enum text_event text_step(struct text_state *t, uint8_t byte, bool plain, uint8_t out[4], unsigned *n)
{
	*n = 0;
	if (t->escape)
		return escaped(t, byte, plain, out, n);
	if (byte == '\\' && !t->utf8) {
		t->escape = AFTER_BACKSLASH;
		return TEXT_INSIDE;
	}
	if (t->high)
		return TEXT_DEAD; /* the other half must follow */
	if (byte == '"' && !t->utf8)
		return TEXT_END;
	*n = 1;
	*out = byte;
	return byte < 0x20 ? TEXT_DEAD : text_byte(t, byte);
}

struct search {
	uint32_t low, high; /* the characters that are looked for */
	text_test *ok;
	void *user;
};

/* Whether one of them is taken that begins with n of `length` bytes. The other bytes give it `span` values, from
 * `first` on. A beginning that is not taken saves looking at all that go on like it. */
static bool some_from(const struct search *s, uint8_t bytes[4], unsigned n, unsigned length, uint32_t first,
                      uint32_t span)
{
	if (first > s->high || first + span - 1 < s->low || !s->ok(s->user, bytes, n))
		return false;
	if (n == length)
		return true;
	span /= 64;
	for (unsigned k = 0; k < 64; k++) {
		bytes[n] = (uint8_t)(0x80 | k);
		if (some_from(s, bytes, n + 1, length, first + k * span, span))
			return true;
	}
	return false;
}

static bool some_code(uint32_t low, uint32_t high, text_test *ok, void *user)
{
	static const struct {
		uint8_t lead, last;
		unsigned length;
		uint32_t span;
	} kinds[] = {
		{ 0, 0x7f, 1, 1 }, { 0xc2, 0xdf, 2, 1 << 6 }, { 0xe0, 0xef, 3, 1 << 12 }, { 0xf0, 0xf4, 4, 1 << 18 }
	};
	static const uint32_t min[] = { 0, 0x80, 0x800, 0x10000 };
	static const uint8_t usual[] = "a0 A-_"; /* most texts take one of them */
	uint8_t bytes[4];

	for (const uint8_t *u = usual; *u; u++)
		if (*u >= low && *u <= high && ok(user, u, 1))
			return true;

	for (unsigned k = 0; k < 4; k++)
		for (unsigned lead = kinds[k].lead; lead <= kinds[k].last; lead++) {
			const struct search s = { low > min[k] ? low : min[k], high, ok, user };
			unsigned value = k == 0 ? lead : lead & (0x3fu >> k);
			bytes[0] = (uint8_t)lead;
			if (s.low <= high &&
			    some_from(&s, bytes, 1, kinds[k].length, value * kinds[k].span, kinds[k].span))
				return true;
		}
	return false;
}

/* The same where each character has one spelling. */
static bool plain_escape_ends(const struct text_state *t, text_test *ok, void *user)
{
	for (unsigned c = 0; c <= '\\'; c++) {
		const uint8_t code = (uint8_t)c;
		const bool control = code < 0x20 && (code == 0 || !strchr(meant, code));
		const bool letter = code && code != '/' && strchr(meant, code);
		const unsigned missing = 16 - 4 * (t->escape >> 4 & 7);
		const bool fits = t->escape == AFTER_BACKSLASH ? control || letter
		                                               : control && (uint32_t)code >> missing == t->escape >> 8;
		if (fits && ok(user, &code, 1))
			return true;
	}
	return false;
}

bool text_escape_ends(const struct text_state *t, bool plain, text_test *ok, void *user)
{
	uint32_t low = 0, high = 0xffff;

	if (plain)
		return plain_escape_ends(t, ok, user);

	if ((t->escape & 3) == HEX) {
		unsigned bits = 16 - 4 * (t->escape >> 4 & 7);
		low = t->escape >> 8 << bits;
		high = low | ((1u << bits) - 1);
	}
	if (t->high) { /* of a pair whose first half is there, the second */
		uint32_t base = 0x10000 + ((t->high - 0xd800) << 10);
		low = t->escape && low > 0xdc00 ? low : 0xdc00;
		high = t->escape && high < 0xdfff ? high : 0xdfff;
		return low <= high && some_code(base + low - 0xdc00, base + high - 0xdc00, ok, user);
	}
	if ((low < 0xd800 && some_code(low, high < 0xd7ff ? high : 0xd7ff, ok, user)) ||
	    (high > 0xdfff && some_code(low > 0xe000 ? low : 0xe000, high, ok, user)))
		return true;
	uint32_t first = low > 0xd800 ? low : 0xd800, last = high < 0xdbff ? high : 0xdbff;
	return first <= last &&
	       some_code(0x10000 + ((first - 0xd800) << 10), 0x10000 + ((last - 0xd800) << 10) + 0x3ff, ok, user);
}
