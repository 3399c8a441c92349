/* chat/go_template_literal.c - strings, characters and numbers as Go writes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "chat/go_template.h"

static int digit_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : 99;
}

/* So many digits at p, which ends at end. False: there are not. */
static bool read_digits(const char *p, const char *end, unsigned n, int base, uint32_t *out)
{
	*out = 0;
	if ((size_t)(end - p) < n)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (digit_of(p[i]) >= base)
			return false;
		*out = *out * (uint32_t)base + (uint32_t)digit_of(p[i]);
	}
	return true;
}

/* The escape behind a backslash at p; its length, 0: it is none. byte: it is one byte, not a character. */
static size_t read_escape(const char *p, const char *end, char quote, uint32_t *c, bool *byte)
{
	static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
	const char *known = p < end && *p ? strchr(from, *p) : NULL;

	*byte = false;
	if (known || (p < end && *p == quote)) {
		*c = known ? (unsigned char)to[known - from] : (unsigned char)quote;
		return 1;
	}
	if (p < end && *p >= '0' && *p <= '7') {
		*byte = true;
		return read_digits(p, end, 3, 8, c) && *c < 0x100 ? 3 : 0;
	}
	const unsigned n = p == end ? 0 : *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
	*byte = n == 2;
	if (n == 0 || !read_digits(p + 1, end, n, 16, c))
		return 0;
	return *byte || utf8proc_codepoint_valid((utf8proc_int32_t)*c) ? n + 1 : 0;
}

static bool refuse(struct go_parser *p, const struct go_token *t, const char *what)
{
	return go_lex_fail(&p->lex, t->line, "%.*s is no %s of Go's language", (int)(t->n < 60 ? t->n : 60), t->p,
	                   what);
}

bool go_unquote(struct go_parser *p, const struct go_token *t, struct text *out)
{
	const char quote = t->p[0], *at = t->p + 1, *end = t->p + t->n - 1;
	char *to = memory_take(p->memory, t->n, NULL);

	if (!to)
		return go_lex_no_memory(&p->lex);
	*out = (struct text){ .p = to };
	while (at < end) {
		uint32_t c = (unsigned char)*at;
		bool byte = true;
		if (quote == '`' && *at == '\r') {
			at++;
			continue;
		}
		if (quote == '`' || *at != '\\') {
			at++;
		} else {
			const size_t n = read_escape(at + 1, end, quote, &c, &byte);
			if (n == 0)
				return refuse(p, t, "text");
			at += n + 1;
		}
		if (byte)
			*to++ = (char)c;
		else
			to += utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)to);
	}
	out->n = (size_t)(to - out->p);
	return true;
}

/* ---- numbers */

enum { DIGITS = 200 };

/* Underscores stand between digits, or behind the mark of a base. */
static bool without_underscores(const struct go_token *t, char out[DIGITS])
{
	size_t n = 0;

	if (t->n >= DIGITS)
		return false;
	for (size_t i = 0; i < t->n; i++) {
		const char next = i + 1 < t->n ? t->p[i + 1] : 0;
		if (t->p[i] != '_')
			out[n++] = t->p[i];
		else if (i == 0 || digit_of(next) == 99 ||
		         (digit_of(t->p[i - 1]) == 99 && !strchr("xXoObB", t->p[i - 1])))
			return false;
	}
	out[n] = 0;
	return true;
}

/* An integer with its sign and base. 1: read, 0: it is none, -1: it does not fit. */
static int read_integer(const char *s, int64_t *out)
{
	const bool negative = *s == '-';
	int base = 10;
	int64_t v = 0;

	s += *s == '-' || *s == '+';
	if (*s == '0' && s[1]) {
		const char mark = s[1];
		base = mark == 'x' || mark == 'X' ? 16 : mark == 'b' || mark == 'B' ? 2 : 8;
		s += base == 8 && mark != 'o' && mark != 'O' ? 1 : 2;
	}
	if (!*s)
		return 0;
	for (; *s; s++) {
		if (digit_of(*s) >= base)
			return 0;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_sub_overflow(v, digit_of(*s), &v))
			return -1;
	}
	if (!negative && v == INT64_MIN)
		return -1;
	*out = negative ? v : -v;
	return 1;
}

/* A fraction or a power; a hexadecimal one has its power. */
static bool read_real(const char *s, double *out)
{
	const char *p = s + (*s == '-' || *s == '+');
	const bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	char *end;

	if (!strpbrk(p, hex ? "pP" : ".eE") ||
	    strspn(p, hex ? "0123456789abcdefABCDEFxXpP.+-" : "0123456789.eE+-") != strlen(p))
		return false;
	errno = 0;
	*out = strtod(s, &end);
	return !*end && (errno != ERANGE || (*out < 1 && *out > -1));
}

/* 'a' is a number, as in Go. */
static bool read_character(struct go_parser *p, const struct go_token *t, struct go_node *out)
{
	struct text one;
	uint32_t c = 0;
	bool byte = false;

	if (!go_unquote(p, t, &one))
		return false;
	const bool escaped = t->p[1] == '\\' && t->n > 3;
	if (escaped && read_escape(t->p + 2, t->p + t->n - 1, '\'', &c, &byte) != t->n - 3)
		return refuse(p, t, "character");
	if (!escaped && (one.n == 0 || text_char(one.p, one.n, &c) != one.n))
		return refuse(p, t, "character");
	out->constant.integer = c;
	return true;
}

bool go_number(struct go_parser *p, const struct go_token *t, struct go_node *out)
{
	char digits[DIGITS];
	double real = 0;

	out->text = (struct text){ .p = t->p, .n = t->n };
	out->constant.is_int = true;
	if (t->type == GO_TOKEN_CHARACTER)
		return read_character(p, t, out);
	if (!without_underscores(t, digits))
		return refuse(p, t, "number");
	const int got = read_integer(digits, &out->constant.integer);
	if (got < 0)
		return go_lex_fail(&p->lex, t->line, "%.*s does not fit 64 bits", (int)(t->n < 60 ? t->n : 60), t->p);
	if (got)
		return true;
	if (!read_real(digits, &real))
		return refuse(p, t, "number");
	out->constant.is_int = false;
	out->constant.is_float = true;
	out->constant.real = real;
	return true;
}
