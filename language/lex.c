/* language/lex.c - a text as tokens. */
#include "language/lex.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "language/tree.h"

static const char *const keywords[] = {
#define KEYWORD(word) #word,
#include "language/keywords.def"
#undef KEYWORD
};

static const char *const marks[MARKS] = {
	"",
#define MARK(name, text) text,
#include "language/marks.def"
#undef MARK
};

const char *jk_mark_text(unsigned mark) { return marks[mark]; }

struct lexer {
	const char *text;
	size_t bytes, at, line_start;
	uint32_t line, wide; /* continuation bytes of UTF-8 in this line: they are no columns */
	struct jk_messages *m;
};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static char peek(const struct lexer *l, size_t k) { return l->at + k < l->bytes ? l->text[l->at + k] : 0; }
static struct source_location here(const struct lexer *l)
{
	return (struct source_location){ l->line, (uint32_t)(l->at - l->line_start) - l->wide + 1 };
}

struct name *jk_lex_name(struct tokens *t, struct arena *arena, const char *text, size_t length)
{
	uint32_t hash = 2166136261;

	for (size_t k = 0; k < length; k++)
		hash = (hash ^ (unsigned char)text[k]) * 16777619;
	struct name **at = &t->bucket[hash & (t->buckets - 1)];
	for (struct name *n = *at; n; n = n->next)
		if (n->length == length && memcmp(n->text, text, length) == 0)
			return n;
	struct name *n = jk_arena_take(arena, sizeof *n + length + 1);
	n->length = (uint32_t)length;
	memcpy(n->text, text, length);
	n->next = *at;
	return *at = n;
}

static void next_char(struct lexer *l)
{
	const char c = l->text[l->at++];

	if (c == '\n') {
		l->line++;
		l->line_start = l->at;
		l->wide = 0;
	} else if ((c & 0xc0) == 0x80) {
		l->wide++;
	}
}

/* Blanks and comments. */
static void skip_blank(struct lexer *l)
{
	for (;;) {
		const char c = peek(l, 0);
		if (l->at < l->bytes && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
			next_char(l);
		} else if (c == '/' && peek(l, 1) == '/') {
			while (l->at < l->bytes && l->text[l->at] != '\n')
				next_char(l);
		} else if (c == '/' && peek(l, 1) == '*') {
			const struct source_location at = here(l);
			l->at += 2;
			while (l->at < l->bytes && !(peek(l, 0) == '*' && peek(l, 1) == '/'))
				next_char(l);
			if (l->at >= l->bytes)
				jk_message_add(l->m, at, "this comment has no end; write */ behind it");
			else
				l->at += 2;
		} else {
			return;
		}
	}
}

static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static enum token_kind hexadecimal(struct lexer *l)
{
	enum token_kind kind = TOKEN_WHOLE;

	l->at += 2;
	while (is_hex(peek(l, 0)))
		l->at++;
	if (peek(l, 0) == '.' && peek(l, 1) != '.') {
		kind = TOKEN_REAL;
		l->at++;
		while (is_hex(peek(l, 0)))
			l->at++;
	}
	if (peek(l, 0) == 'p' || peek(l, 0) == 'P') {
		kind = TOKEN_REAL;
		l->at += peek(l, 1) == '-' || peek(l, 1) == '+' ? 2 : 1;
		while (is_digit(peek(l, 0)))
			l->at++;
	} else if (kind == TOKEN_REAL) {
		jk_message_add(l->m, here(l),
		               "expected an exponent, p0 for one, behind a hexadecimal number with a point");
	}
	return kind;
}

static enum token_kind decimal(struct lexer *l)
{
	enum token_kind kind = TOKEN_WHOLE;

	while (is_digit(peek(l, 0)))
		l->at++;
	if (peek(l, 0) == '.' && peek(l, 1) != '.') {
		kind = TOKEN_REAL;
		l->at++;
		while (is_digit(peek(l, 0)))
			l->at++;
	}
	if (peek(l, 0) == 'e' || peek(l, 0) == 'E') {
		const size_t sign = peek(l, 1) == '-' || peek(l, 1) == '+';
		kind = TOKEN_REAL;
		l->at += 1 + sign;
		if (!is_digit(peek(l, 0)))
			jk_message_add(l->m, here(l), "expected the digits of an exponent");
		while (is_digit(peek(l, 0)))
			l->at++;
	}
	return kind;
}

static enum token_kind number(struct lexer *l)
{
	const bool hex = peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X');
	const size_t start = l->at;
	const struct source_location at = here(l);
	const enum token_kind kind = hex ? hexadecimal(l) : decimal(l);
	const size_t end = l->at;

	if (hex && end == start + 2)
		jk_message_add(l->m, at, "expected hexadecimal digits behind 0x");
	if (is_letter(peek(l, 0))) {
		jk_message_add(l->m, here(l),
		               "unexpected letters behind a number; its type is that of its context, without a suffix");
		while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)))
			l->at++;
	}
	return kind;
}

/* 0: no token begins here. */
static unsigned mark_at(const struct lexer *l)
{
	for (unsigned k = 1; k < MARKS; k++) {
		const size_t n = strlen(marks[k]);
		if (l->text[l->at] == marks[k][0] && l->bytes - l->at >= n && memcmp(l->text + l->at, marks[k], n) == 0)
			return k;
	}
	return MARK_NONE;
}

static void no_token(struct lexer *l)
{
	char quoted[20];
	uint32_t code;
	unsigned n = text_char(l->text + l->at, l->bytes - l->at, &code);

	n = n ? n : 1;
	error_quote(quoted, sizeof quoted, l->text + l->at, n);
	jk_message_add(l->m, here(l), "no token begins with '%s'; outside of comments texts are ASCII", quoted);
	for (unsigned k = 0; k < n; k++)
		next_char(l);
}

static bool one_token(struct lexer *l, struct tokens *t, struct arena *arena)
{
	const struct source_location at = here(l);
	struct token *to;
	const size_t start = l->at;
	const char c = l->text[start];
	unsigned mark = MARK_NONE, kind;
	struct name *name = NULL;

	if (is_letter(c)) {
		while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)))
			l->at++;
		name = jk_lex_name(t, arena, l->text + start, l->at - start);
		kind = name->keyword ? name->keyword : TOKEN_NAME;
	} else if (is_digit(c) || (c == '.' && is_digit(peek(l, 1)))) {
		kind = number(l);
	} else if ((mark = mark_at(l)) != MARK_NONE) {
		kind = TOKEN_MARK;
		l->at += strlen(marks[mark]);
	} else {
		no_token(l);
		return true;
	}
	if (!array_grow((void **)&t->token, &t->capacity, t->n + 1, sizeof *t->token))
		return false;
	to = &t->token[t->n++];
	*to = (struct token){
		(uint8_t)kind, (uint8_t)mark, at.line, at.column, (uint32_t)start, (uint32_t)(l->at - start), name
	};
	return true;
}

bool jk_lex_text(struct tokens *t, struct arena *arena, const char *text, size_t bytes, struct jk_messages *m)
{
	struct lexer l = { .text = text, .bytes = bytes, .line = 1, .m = m };

	t->buckets = 256;
	while (t->buckets < bytes / 8)
		t->buckets *= 2;
	t->bucket = calloc(t->buckets, sizeof *t->bucket);
	if (!t->bucket)
		return false;
	for (unsigned k = 0; k < sizeof keywords / sizeof *keywords; k++)
		jk_lex_name(t, arena, keywords[k], strlen(keywords[k]))->keyword = TOKEN_MARK + 1 + k;
	for (skip_blank(&l); l.at < bytes; skip_blank(&l))
		if (!one_token(&l, t, arena))
			return false;
	if (!array_grow((void **)&t->token, &t->capacity, t->n + 1, sizeof *t->token))
		return false;
	const struct source_location end = here(&l);
	t->token[t->n++] =
		(struct token){ .kind = TOKEN_END, .line = end.line, .column = end.column, .start = (uint32_t)bytes };
	return true;
}

void jk_lex_free(struct tokens *t)
{
	free(t->token);
	free(t->bucket);
}
