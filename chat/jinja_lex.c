/* chat/jinja_lex.c - the text of a template becomes tokens, one at a time.
 *
 * Owns: what is a tag and what is data, and how names, numbers, strings and operators are written. Also what of the
 * white space around tags stays: chat templates are run with trim_blocks and lstrip_blocks. Never: looks beyond the
 * template's end, holds more open brackets than CHAT_MAX_NESTING.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/jinja.h"

bool lex_fail(struct lexer *l, uint32_t line, const char *format, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	l->failed = true;
	return error_set(l->err, ERROR_FORMAT, "%s, line %u: %s", l->label, line, text);
}

const char *lex_describe(const struct token *t, char out[80])
{
	char quoted[50];

	switch (t->type) {
	case TOKEN_END: return "the end of the template";
	case TOKEN_DATA: return "text";
	case TOKEN_PRINT: return "'{{'";
	case TOKEN_PRINT_END: return "'}}'";
	case TOKEN_BLOCK: return "'{%'";
	case TOKEN_BLOCK_END: return "'%}'";
	case TOKEN_INTEGER:
	case TOKEN_FLOAT: return "a number";
	case TOKEN_STRING: return "a string";
	case TOKEN_NAME: snprintf(out, 80, "'%s'", error_quote(quoted, sizeof quoted, t->p, t->n)); return out;
	default:
		if (t->op > 255)
			snprintf(out, 80, "'%c%c'", t->op >> 8, t->op & 255);
		else
			snprintf(out, 80, "'%c'", t->op);
		return out;
	}
}

/* ---- characters */

static bool at_text(const struct lexer *l, size_t at, const char *s)
{
	size_t n = strlen(s);

	return at <= l->n && n <= l->n - at && memcmp(l->p + at, s, n) == 0;
}

/* Bytes of the white-space character at a byte; 0: there is none. */
static unsigned space_at(const struct lexer *l, size_t at)
{
	uint32_t c;
	unsigned n = at < l->n ? text_char(l->p + at, l->n - at, &c) : 0;

	return n && character_is_space(c) ? n : 0;
}

static size_t skip_spaces(const struct lexer *l, size_t at)
{
	for (unsigned n; (n = space_at(l, at)) > 0;)
		at += n;
	return at;
}

/* The end of [from, to) without the white space at its end. */
static size_t before_spaces(const struct lexer *l, size_t from, size_t to)
{
	while (to > from) {
		size_t at = to - 1;
		while (at > from && to - at < 4 && ((unsigned char)l->p[at] & 0xc0) == 0x80)
			at--;
		if (space_at(l, at) != to - at)
			break;
		to = at;
	}
	return to;
}

static void move(struct lexer *l, size_t to)
{
	for (; l->at < to; l->at++)
		l->line += l->p[l->at] == '\n';
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static char byte_at(const struct lexer *l, size_t at) { return at < l->n ? l->p[at] : 0; }

/* ---- data and the tags that end it */

/* Data that begins at `from` and ends where a tag with this sign begins: the end of what is kept of it. */
static size_t data_end(const struct lexer *l, size_t from, size_t to, char sign, bool lines)
{
	size_t line = to;

	if (sign == '-')
		return before_spaces(l, from, to);
	if (sign == '+' || !lines)
		return to;
	while (line > from && l->p[line - 1] != '\n')
		line--;
	if (line == from && from > 0 && l->p[from - 1] != '\n')
		return to;
	return before_spaces(l, line, to) == line ? line : to;
}

/* Behind "raw" or "endraw" and the tag's end, when a tag at `at` (behind "{%" and its sign) is that; else 0. */
static size_t raw_tag(const struct lexer *l, size_t at, const char *word, bool trims)
{
	at = skip_spaces(l, at);
	if (!at_text(l, at, word))
		return 0;
	at = skip_spaces(l, at + strlen(word));
	if (at_text(l, at, "-%}"))
		return skip_spaces(l, at + 3);
	if (trims && at_text(l, at, "+%}"))
		return at + 3;
	if (!at_text(l, at, "%}"))
		return 0;
	at += 2;
	return trims && byte_at(l, at) == '\n' ? at + 1 : at;
}

static size_t sign_length(const struct lexer *l, size_t at) { return byte_at(l, at) == '-' || byte_at(l, at) == '+'; }

/* Behind a comment whose text begins at `at`; 0: it does not end. */
static size_t comment_end(const struct lexer *l, size_t at)
{
	const char *end = memmem(l->p + at, l->n - at, "#}", 2);

	if (!end)
		return 0;
	size_t to = (size_t)(end - l->p);
	char sign = to > at ? l->p[to - 1] : 0;
	if (sign == '-')
		return skip_spaces(l, to + 2);
	return sign != '+' && byte_at(l, to + 2) == '\n' ? to + 3 : to + 2;
}

static void give_data(const struct lexer *l, struct token *out, size_t from, size_t to, uint32_t line)
{
	*out = (struct token){ .type = TOKEN_DATA, .line = line, .p = l->p + from, .n = to - from };
}

/* What lies between {% raw %} and {% endraw %}. */
static bool next_raw(struct lexer *l, struct token *out)
{
	size_t from = l->at;
	uint32_t line = l->line;

	for (size_t at = from; at < l->n;) {
		const char *tag = memmem(l->p + at, l->n - at, "{%", 2);
		if (!tag)
			break;
		at = (size_t)(tag - l->p);
		size_t sign = sign_length(l, at + 2), end = raw_tag(l, at + 2 + sign, "endraw", true);
		if (end) {
			give_data(l, out, from, data_end(l, from, at, sign ? l->p[at + 2] : 0, true), line);
			move(l, end);
			l->state = LEX_DATA;
			return true;
		}
		at += 2;
	}
	return lex_fail(l, line, "{%% raw %%} has no {%% endraw %%}");
}

/* Up to the next tag, which is what comes then; empty data is possible. */
static bool next_data(struct lexer *l, struct token *out)
{
	size_t from = l->at, at = from;
	uint32_t line = l->line;

	while (at < l->n && !(l->p[at] == '{' &&
	                      (byte_at(l, at + 1) == '{' || byte_at(l, at + 1) == '%' || byte_at(l, at + 1) == '#')))
		at++;
	if (at == l->n) {
		give_data(l, out, from, at, line);
		move(l, at);
		return true;
	}
	char what = l->p[at + 1];
	size_t sign = sign_length(l, at + 2), inside = at + 2 + sign;
	give_data(l, out, from, data_end(l, from, at, sign ? l->p[at + 2] : 0, what != '{'), line);
	move(l, at);
	if (what == '#') {
		size_t end = comment_end(l, inside);
		if (!end)
			return lex_fail(l, l->line, "the comment has no end, expected '#}'");
		move(l, end);
		return true;
	}
	size_t raw = what == '%' ? raw_tag(l, inside, "raw", false) : 0;
	move(l, raw ? raw : inside);
	l->state = raw ? LEX_RAW : what == '%' ? LEX_BLOCK : LEX_PRINT;
	return true;
}

/* ---- inside tags */

static bool tag_end(struct lexer *l, struct token *out)
{
	const char *end = l->state == LEX_BLOCK ? "%}" : "}}";
	char sign = l->p[l->at];
	size_t at = l->at;

	if (l->n_open)
		return false;
	if ((sign == '-' || (sign == '+' && l->state == LEX_BLOCK)) && at_text(l, at + 1, end)) {
		at = sign == '-' ? skip_spaces(l, at + 3) : at + 3;
	} else if (at_text(l, at, end)) {
		at += 2;
		if (l->state == LEX_BLOCK && byte_at(l, at) == '\n')
			at++;
	} else {
		return false;
	}
	*out = (struct token){ .type = l->state == LEX_BLOCK ? TOKEN_BLOCK_END : TOKEN_PRINT_END, .line = l->line };
	move(l, at);
	l->state = LEX_DATA;
	return true;
}

/* Behind digits with single underscores between, of which there is at least one; `at` when there are none. */
static size_t skip_digits(const struct lexer *l, size_t at, int base)
{
	for (size_t from = at;;) {
		size_t digit = at > from && byte_at(l, at) == '_' ? at + 1 : at;
		char c = byte_at(l, digit), low = (char)(c | 32);
		bool ok = is_digit(c) ? c - '0' < base : base == 16 && low >= 'a' && low <= 'f';
		if (!ok)
			return at;
		at = digit + 1;
	}
}

/* Behind the number with a fraction or an exponent that begins here, or 0. */
static size_t real_end(const struct lexer *l)
{
	size_t at = skip_digits(l, l->at, 10), end = 0;

	if (at == l->at || (l->at && l->p[l->at - 1] == '.'))
		return 0;
	if (byte_at(l, at) == '.') {
		size_t fraction = skip_digits(l, at + 1, 10);
		if (fraction == at + 1)
			return 0;
		at = end = fraction;
	}
	if ((byte_at(l, at) | 32) == 'e') {
		size_t from = at + 1 + (byte_at(l, at + 1) == '+' || byte_at(l, at + 1) == '-'),
		       exponent = skip_digits(l, from, 10);
		if (exponent > from)
			end = exponent;
	}
	return end;
}

static bool next_real(struct lexer *l, struct token *out, size_t end)
{
	char text[400];
	size_t n = 0;

	for (size_t i = l->at; i < end && n < sizeof text - 1; i++)
		if (l->p[i] != '_')
			text[n++] = l->p[i];
	if (n == sizeof text - 1)
		return lex_fail(l, l->line, "a number has more than 398 digits");
	text[n] = 0;
	*out = (struct token){ .type = TOKEN_FLOAT, .line = l->line, .real = strtod(text, NULL) };
	move(l, end);
	return true;
}

static bool next_number(struct lexer *l, struct token *out)
{
	size_t real = real_end(l), at = l->at;
	char second = (char)(byte_at(l, at + 1) | 32);
	int base = byte_at(l, at) != '0' ? 10 : second == 'x' ? 16 : second == 'o' ? 8 : second == 'b' ? 2 : 10;
	int64_t v = 0;

	if (real)
		return next_real(l, out, real);
	size_t from = base == 10 ? at : at + 2 + (byte_at(l, at + 2) == '_'), end = skip_digits(l, from, base);
	if (base == 10 && byte_at(l, at) == '0') /* zeros alone: 012 is 0 and then 12, which no expression has */
		for (end = at + 1; byte_at(l, end) == '0';)
			end++;
	if (end == from) {
		end = at + 1;
		from = at;
	}
	for (size_t i = from; i < end; i++) {
		int c = (unsigned char)l->p[i], d = is_digit((char)c) ? c - '0' : (c | 32) - 'a' + 10;
		if (c != '_' && (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v)))
			return lex_fail(l, l->line, "an integer does not fit 64 bits");
	}
	*out = (struct token){ .type = TOKEN_INTEGER, .line = l->line, .integer = v };
	move(l, end);
	return true;
}

static int hex_value(char c)
{
	return is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static size_t put_character(char *out, uint32_t c)
{
	static const unsigned char lead[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (unsigned i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[n] | c);
	return n;
}

/* A backslash and what follows, as Python reads it; *at is behind the backslash. An escape it does not know stays. */
static bool unescape(struct lexer *l, size_t *at, size_t end, char *out, size_t *n)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	char c = l->p[*at];
	const char *simple = c ? strchr(from, c) : NULL;
	unsigned digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
	uint32_t v = 0;

	if (c == 'N')
		return lex_fail(l, l->line, "a string names a character by \\N, which is not supported");
	if (simple) {
		out[(*n)++] = to[simple - from];
		++*at;
	} else if (c == '\n') {
		++*at;
	} else if (c >= '0' && c <= '7') {
		for (unsigned i = 0; i < 3 && *at < end && l->p[*at] >= '0' && l->p[*at] <= '7'; i++)
			v = 8 * v + (uint32_t)(l->p[(*at)++] - '0');
		*n += put_character(out + *n, v);
	} else if (digits) {
		for (unsigned i = 0; i < digits; i++) {
			int d = ++*at < end ? hex_value(l->p[*at]) : -1;
			if (d < 0)
				return lex_fail(l, l->line, "the escape \\%c in a string has not %u hexadecimal digits",
				                c, digits);
			v = v << 4 | (uint32_t)d;
		}
		++*at;
		if (v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
			return lex_fail(l, l->line, "the escape \\%c in a string is no character", c);
		*n += put_character(out + *n, v);
	} else {
		out[(*n)++] = '\\';
	}
	return true;
}

static bool next_string(struct lexer *l, struct token *out)
{
	char quote = l->p[l->at];
	size_t from = l->at + 1, end = from, n = 0;

	while (end < l->n && l->p[end] != quote)
		end += l->p[end] == '\\' && end + 1 < l->n ? 2 : 1;
	if (end >= l->n)
		return lex_fail(l, l->line, "a string has no end, expected %c", quote);
	char *text = memory_take(l->memory, end - from + 1, NULL);
	if (!text) {
		l->failed = true;
		return error_set(l->err, ERROR_MEMORY, "%s: no memory for the template", l->label);
	}
	for (size_t at = from; at < end;) {
		if (l->p[at] != '\\') {
			text[n++] = l->p[at++];
			continue;
		}
		at++;
		if (!unescape(l, &at, end, text, &n))
			return false;
	}
	*out = (struct token){ .type = TOKEN_STRING, .line = l->line, .p = text, .n = n };
	move(l, end + 1);
	return true;
}

static bool bracket(struct lexer *l, char c)
{
	static const char closing[] = ")]}", opening[] = "([{";
	const char *o = strchr(opening, c), *e = strchr(closing, c);

	if (o) {
		if (l->n_open == CHAT_MAX_NESTING)
			return lex_fail(l, l->line, "brackets are nested more than %d deep", CHAT_MAX_NESTING);
		l->open[l->n_open++] = closing[o - opening];
	} else if (e) {
		if (!l->n_open)
			return lex_fail(l, l->line, "unexpected '%c'", c);
		if (l->open[--l->n_open] != c)
			return lex_fail(l, l->line, "unexpected '%c', expected '%c'", c, l->open[l->n_open]);
	}
	return true;
}

static bool next_operator(struct lexer *l, struct token *out)
{
	static const char *const two[] = { "//", "**", "==", "!=", ">=", "<=" };
	char c = l->p[l->at], text[40];

	*out = (struct token){ .type = TOKEN_OPERATOR, .line = l->line };
	for (size_t i = 0; i < sizeof two / sizeof *two; i++)
		if (at_text(l, l->at, two[i])) {
			out->op = OPERATOR2(two[i][0], two[i][1]);
			l->at += 2;
			return true;
		}
	if (!c || !strchr("+-/*%~[](){}.:|,;<>=", c)) {
		uint32_t code;
		unsigned n = text_char(l->p + l->at, l->n - l->at, &code);
		return lex_fail(l, l->line, "unexpected \"%s\"",
		                error_quote(text, sizeof text, l->p + l->at, n ? n : 1));
	}
	out->op = (unsigned char)c;
	l->at++;
	return bracket(l, c);
}

static bool next_inside(struct lexer *l, struct token *out)
{
	move(l, skip_spaces(l, l->at));
	if (l->at >= l->n) {
		*out = (struct token){ .type = TOKEN_END, .line = l->line };
		return true;
	}
	char c = l->p[l->at];
	if (tag_end(l, out))
		return true;
	if (is_digit(c))
		return next_number(l, out);
	if (c == '\'' || c == '"')
		return next_string(l, out);
	if (!is_letter(c))
		return next_operator(l, out);
	size_t end = l->at;
	while (is_letter(byte_at(l, end)) || is_digit(byte_at(l, end)))
		end++;
	*out = (struct token){ .type = TOKEN_NAME, .line = l->line, .p = l->p + l->at, .n = end - l->at };
	l->at = end;
	return true;
}

bool lex_next(struct lexer *l, struct token *out)
{
	while (!l->failed) {
		if (l->begun) {
			*out = (struct token){ .type = l->state == LEX_PRINT ? TOKEN_PRINT : TOKEN_BLOCK,
				               .line = l->line };
			l->begun = false;
			return true;
		}
		if (l->state == LEX_PRINT || l->state == LEX_BLOCK)
			return next_inside(l, out);
		if (l->state == LEX_DATA && l->at == l->n) {
			*out = (struct token){ .type = TOKEN_END, .line = l->line };
			return true;
		}
		if (!(l->state == LEX_RAW ? next_raw(l, out) : next_data(l, out)))
			return false;
		l->begun = l->state == LEX_PRINT || l->state == LEX_BLOCK;
		if (out->n)
			return true;
	}
	return false;
}
