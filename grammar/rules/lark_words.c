/* grammar/rules/lark_words.c - the words of a Lark grammar. */
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

static bool is_small(char c) { return c >= 'a' && c <= 'z'; }
static bool is_large(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static char peek(const struct lark *r, size_t ahead)
{
	return r->now.n - r->now.at > ahead ? r->now.text[r->now.at + ahead] : 0;
}

static void skip_comment(struct lark *r)
{
	while (r->now.at < r->now.n && r->now.text[r->now.at] != '\n')
		r->now.at++;
}

/* Blanks, comments, lines that go on behind a backslash, and line ends where they mean nothing. True: a line ends. */
static bool skip(struct lark *r)
{
	size_t line = 0;

	for (char c; (c = peek(r, 0)) != 0;) {
		size_t blanks = 1;
		while (c == '\\' && peek(r, blanks) == ' ')
			blanks++;
		if (c == '#' || (c == '/' && peek(r, 1) == '/'))
			skip_comment(r);
		else if (c == '\\' && peek(r, blanks) == '\n')
			r->now.at += blanks + 1;
		else if (c == ' ' || c == '\t' || c == '\f' || c == '\r' || c == '\n') {
			line = c == '\n' && !line ? r->now.at + 1 : line;
			r->now.at++;
		} else
			break;
	}
	if (line)
		r->now.word.at = line - 1;
	return line && !r->now.groups && peek(r, 0) != '|';
}

/* Behind the opening mark, up to the same one. */
static bool skip_quoted(struct lark *r, char mark, const char *endless)
{
	for (char c; (c = peek(r, 0)) != 0 && c != mark; r->now.at++) {
		if (mark == '"' && c == '\n')
			break;
		if (c == '\\' && peek(r, 1) != '\n')
			r->now.at += r->now.at + 1 < r->now.n;
	}
	if (peek(r, 0) != mark)
		return lark_wrong_here(r, endless);
	r->now.at++;
	return true;
}

static bool quoted(struct lark *r, char mark)
{
	r->now.word.kind = mark == '"' ? LARK_STRING : LARK_REGEXP;
	r->now.at++;
	if (!skip_quoted(r, mark, mark == '"' ? "a string without end" : "an expression without end"))
		return false;
	if (mark == '"' && peek(r, 0) == 'i')
		r->now.at++;
	while (mark == '/' && peek(r, 0) && strchr("imslux", peek(r, 0)))
		r->now.at++;
	return true;
}

/* Names have small letters, or large ones; one _ may stand before. */
static void take_name(struct lark *r, size_t first)
{
	const bool large = is_large(peek(r, first));

	r->now.word.kind = large ? LARK_TERMINAL : LARK_RULE;
	r->now.at += first;
	for (char c; (c = peek(r, 0)) == '_' || is_digit(c) || (large ? is_large(c) : is_small(c));)
		r->now.at++;
}

static void take_mark(struct lark *r)
{
	const char c = peek(r, 0);

	r->now.word.kind = LARK_MARK;
	r->now.at++;
	if (c == '-' && peek(r, 0) == '>') {
		r->now.word.kind = LARK_TO;
		r->now.at++;
	} else if (c == '.' && peek(r, 0) == '.') {
		r->now.word.kind = LARK_RANGE;
		r->now.at++;
	} else if (c == '%' && is_small(peek(r, 0))) {
		r->now.word.kind = LARK_STATEMENT;
		while (is_small(peek(r, 0)))
			r->now.at++;
	} else if (c == '(' || c == '[') {
		r->now.groups++;
	} else if ((c == ')' || c == ']') && r->now.groups) {
		r->now.groups--;
	}
}

bool lark_next(struct lark *r)
{
	const size_t line = r->now.at;
	bool ok = true;

	if (!effort_take(4))
		return lark_no_memory(r);
	if (skip(r)) {
		r->now.word.kind = LARK_LINE;
		r->now.word.end = r->now.at;
		return true;
	}
	r->now.word.at = r->now.at;
	const char c = peek(r, 0);
	const size_t first = c == '_';
	if (!c && r->now.at < r->now.n)
		return lark_wrong_here(r, "a byte that is 0");
	if (!c)
		r->now.word.kind = LARK_END;
	else if (c == '"' || c == '/')
		ok = quoted(r, c);
	else if (is_small(peek(r, first)) || is_large(peek(r, first)))
		take_name(r, first);
	else if (is_digit(c)) {
		r->now.word.kind = LARK_NUMBER;
		while (is_digit(peek(r, 0)))
			r->now.at++;
	} else
		take_mark(r);
	r->now.word.end = r->now.at;
	effort_take((r->now.at - line) / 4);
	return ok;
}

bool lark_is(const struct lark *r, char mark)
{
	return r->now.word.kind == LARK_MARK && r->now.text[r->now.word.at] == mark;
}

bool lark_begin(struct lark *r, const char *text, size_t n, size_t at)
{
	r->now.text = text;
	r->now.n = n;
	r->now.at = at;
	r->now.groups = 0;
	return lark_next(r);
}
