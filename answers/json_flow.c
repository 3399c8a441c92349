/* answers/json_flow.c - JSON that comes byte by byte, and goes on as it comes. */
#include "answers/json_flow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool is_space(unsigned char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
static bool is_hex(unsigned char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static enum flow let(struct json_flow *f, enum flow_position at, unsigned char byte, struct bytes *out)
{
	f->at = at;
	bytes_add(out, &byte, 1);
	return at == FLOW_AT_END ? FLOW_DONE : FLOW_MORE;
}

static enum flow wrong(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	/* The space that was left out may be what keeps two numbers apart. */
	if (f->at == FLOW_AT_MORE)
		bytes_text(out, " ");
	bytes_add(out, f->held.p, f->held.n);
	bytes_clear(&f->held);
	return let(f, FLOW_AT_ERROR, byte, out), FLOW_WRONG;
}

/* Behind a value. */
static enum flow_position behind(const struct json_flow *f) { return f->depth ? FLOW_AT_MORE : FLOW_AT_END; }

static enum flow close_value(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	if (f->depth == 0 || byte != (f->objects & 1 ? '}' : ']'))
		return wrong(f, byte, out);
	f->depth--;
	f->objects >>= 1;
	f->event = FLOW_CLOSES;
	return let(f, behind(f), byte, out);
}

static enum flow open_value(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	if (f->depth == FLOW_DEPTH)
		return wrong(f, byte, out);
	f->depth++;
	f->objects = f->objects << 1 | (byte == '{');
	f->event = FLOW_OPENS;
	return let(f, byte == '{' ? FLOW_AT_MEMBER : FLOW_AT_ITEM, byte, out);
}

static enum flow begin_value(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	if (byte == '{' || byte == '[')
		return open_value(f, byte, out);
	f->key = false;
	f->event = byte == '"' ? FLOW_STRING : FLOW_SCALAR;
	if (byte == '"')
		return let(f, FLOW_IN_STRING, byte, out);
	if (!is_digit(byte) && (byte == 0 || !strchr("-tfn", byte)))
		return wrong(f, byte, out);
	bytes_add(&f->held, &byte, 1);
	f->at = FLOW_IN_WORD;
	return FLOW_MORE;
}

static enum flow begin_key(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	if (byte != '"')
		return f->at == FLOW_AT_MEMBER ? close_value(f, byte, out) : wrong(f, byte, out);
	f->key = true;
	return let(f, FLOW_IN_STRING, byte, out);
}

/* ---- numbers and words */

static size_t digits(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && is_digit((unsigned char)p[i]))
		i++;
	return i;
}

/* False also where there is no memory: held is lost then. */
static bool is_number(struct bytes *held)
{
	const char *p = held->p;
	const size_t n = held->n;
	size_t i = n && p[0] == '-', whole = digits(p + i, n - i), k;
	char text[64];

	if (whole == 0 || (p[i] == '0' && whole > 1))
		return false;
	i += whole;
	if (i < n && p[i] == '.') {
		if ((k = digits(p + i + 1, n - i - 1)) == 0)
			return false;
		i += k + 1;
	}
	if (i < n && (p[i] | 32) == 'e') {
		i++;
		i += i < n && (p[i] == '+' || p[i] == '-');
		if ((k = digits(p + i, n - i)) == 0)
			return false;
		i += k;
	}
	/* What no double holds is none to those who read it. */
	if (i < n)
		return false;
	char *copy = n < sizeof text ? memcpy(text, p, n) : strndup(p, n);
	if (copy == text)
		text[n] = 0;
	held->lost = !copy;
	bool finite = copy && isfinite(strtod(copy, NULL));
	if (copy != text)
		free(copy);
	return finite;
}

static const char *const words[] = { "true", "false", "null" };

/* Whether what is held can become a value, and whether it is one. */
static bool word_may_be(const struct bytes *held, bool *whole)
{
	*whole = false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (held->n <= strlen(words[i]) && memcmp(held->p, words[i], held->n) == 0) {
			*whole = held->n == strlen(words[i]);
			return true;
		}
	return false;
}

static bool end_word(struct json_flow *f, struct bytes *out)
{
	bool whole = f->held.n > 0 && !f->held.lost;

	if (whole && (f->held.p[0] == '-' || is_digit((unsigned char)f->held.p[0])))
		whole = is_number(&f->held);
	else
		whole = whole && word_may_be(&f->held, &whole) && whole;
	if (!whole)
		return false;
	bytes_add(out, f->held.p, f->held.n);
	bytes_clear(&f->held);
	f->at = behind(f);
	return true;
}

static enum flow in_word(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	bool number = f->held.lost || f->held.p[0] == '-' || is_digit((unsigned char)f->held.p[0]), whole;

	if (is_digit(byte) || (byte && strchr("+-.eE", byte)) || (byte >= 'a' && byte <= 'z')) {
		bytes_add(&f->held, &byte, 1);
		if (f->held.lost || (number ? byte != 'e' && byte >= 'a' : !word_may_be(&f->held, &whole))) {
			f->held.n -= !f->held.lost;
			return wrong(f, byte, out);
		}
		return FLOW_MORE;
	}
	return end_word(f, out) ? json_flow_take(f, byte, out) : wrong(f, byte, out);
}

/* ---- strings */

static unsigned unit_of(const char *p)
{
	char digit[5] = { p[2], p[3], p[4], p[5], 0 };

	return (unsigned)strtoul(digit, NULL, 16);
}

static bool is_high(unsigned unit) { return unit >= 0xd800 && unit < 0xdc00; }
static bool is_low(unsigned unit) { return unit >= 0xdc00 && unit < 0xe000; }

static const char replacement[] = "\\ufffd";

/* A half of a pair is held, and no other half follows. */
static void end_half(struct json_flow *f, struct bytes *out)
{
	if (f->held.n)
		bytes_text(out, replacement);
	bytes_clear(&f->held);
}

static enum flow in_string(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	f->at = FLOW_IN_STRING;
	if (byte == '\\') {
		bytes_add(&f->held, &byte, 1);
		f->at = FLOW_IN_ESCAPE;
		return FLOW_MORE;
	}
	end_half(f, out);
	if (byte != '"') {
		if (byte < ' ')
			json_flow_escape(byte, out);
		else
			bytes_add(out, &byte, 1);
		return FLOW_MORE;
	}
	f->event = f->key ? FLOW_KEY_ENDS : FLOW_STRING_ENDS;
	return let(f, f->key ? FLOW_AT_COLON : behind(f), byte, out);
}

/* The escape that ends here, of n bytes at the end of what is held; before it a half may be. */
static void end_escape(struct json_flow *f, size_t n, struct bytes *out)
{
	const char *p = f->held.p + f->held.n - n;
	unsigned unit = n == 6 ? unit_of(p) : 0;
	bool half = f->held.n > n;

	f->at = FLOW_IN_STRING;
	if (is_high(unit)) {
		if (half)
			bytes_text(out, replacement);
		memmove(f->held.p, p, n);
		f->held.n = n;
		return;
	}
	if (half && is_low(unit)) {
		bytes_add(out, f->held.p, f->held.n);
	} else {
		if (half)
			bytes_text(out, replacement);
		bytes_add(out, is_low(unit) ? replacement : p, n);
	}
	bytes_clear(&f->held);
}

static enum flow in_escape(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	size_t n = f->held.n > 6 ? f->held.n - 6 : f->held.n; /* of this escape, behind a half */

	if (f->held.lost)
		return wrong(f, byte, out);
	if (n == 1 ? !byte || !strchr("\"\\/bfnrtu", byte) : !is_hex(byte))
		return wrong(f, byte, out);
	bytes_add(&f->held, &byte, 1);
	n++;
	if (!f->held.lost && ((n == 2 && byte != 'u') || n == 6))
		end_escape(f, n, out);
	return FLOW_MORE;
}

bool json_flow_quoted(const struct json_flow *f) { return f->at == FLOW_IN_STRING || f->at == FLOW_IN_ESCAPE; }

/* ---- all */

enum flow json_flow_take(struct json_flow *f, unsigned char byte, struct bytes *out)
{
	f->event = FLOW_NOTHING;
	if (!json_flow_quoted(f) && f->at != FLOW_IN_WORD && f->at != FLOW_AT_ERROR && is_space(byte))
		return f->at == FLOW_AT_END ? FLOW_DONE : FLOW_MORE;
	switch (f->at) {
	case FLOW_AT_ITEM:
		if (byte == ']')
			return close_value(f, byte, out);
		return begin_value(f, byte, out);
	case FLOW_AT_VALUE: return begin_value(f, byte, out);
	case FLOW_AT_KEY:
	case FLOW_AT_MEMBER: return begin_key(f, byte, out);
	case FLOW_AT_COLON: return byte == ':' ? let(f, FLOW_AT_VALUE, byte, out) : wrong(f, byte, out);
	case FLOW_AT_MORE:
		if (byte == ',')
			return let(f, f->objects & 1 ? FLOW_AT_KEY : FLOW_AT_VALUE, byte, out);
		return close_value(f, byte, out);
	case FLOW_IN_STRING: return in_string(f, byte, out);
	case FLOW_IN_ESCAPE: return in_escape(f, byte, out);
	case FLOW_IN_WORD: return in_word(f, byte, out);
	case FLOW_AT_END:
	case FLOW_AT_ERROR: break;
	}
	return wrong(f, byte, out);
}

enum flow json_flow_end(struct json_flow *f, struct bytes *out)
{
	if (f->at == FLOW_IN_WORD && f->depth == 0)
		end_word(f, out);
	return f->at == FLOW_AT_END ? FLOW_DONE : FLOW_WRONG;
}

void json_flow_clear(struct json_flow *f)
{
	struct bytes held = f->held;

	bytes_clear(&held);
	*f = (struct json_flow){ .held = held };
}

void json_flow_free(struct json_flow *f)
{
	bytes_free(&f->held);
	*f = (struct json_flow){ 0 };
}

void json_flow_escape(unsigned char byte, struct bytes *out)
{
	static const char plain[] = "\"\\\n\t\r\b\f", letter[] = "\"\\ntrbf";
	const char *at = byte ? strchr(plain, byte) : NULL;

	if (at)
		bytes_print(out, "\\%c", letter[at - plain]);
	else if (byte < ' ')
		bytes_print(out, "\\u%04x", byte);
	else
		bytes_add(out, &byte, 1);
}

void json_flow_unescape(const char *p, size_t n, struct bytes *out)
{
	static const char letters[] = "nrtbf", meant[] = "\n\r\t\b\f";
	uint8_t spelled[4];

	for (size_t i = 0; i < n;) {
		if (p[i] != '\\' || n - i < 2) {
			bytes_add(out, p + i++, 1);
			continue;
		}
		const char *letter = strchr(letters, p[i + 1]);
		if (p[i + 1] != 'u') {
			bytes_add(out, letter ? meant + (letter - letters) : p + i + 1, 1);
			i += 2;
			continue;
		}
		uint32_t code = n - i >= 6 ? unit_of(p + i) : 0xfffd;
		i += 6;
		if (is_high(code) && n >= i && n - i >= 6) {
			code = 0x10000 + ((code & 0x3ff) << 10) + (unit_of(p + i) & 0x3ff);
			i += 6;
		}
		bytes_add(out, spelled, text_spell(code, spelled));
	}
}
