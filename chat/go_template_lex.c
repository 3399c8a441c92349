/* chat/go_template_lex.c - the text of a template in Go's language to texts and tokens of actions.
 *
 * Owns: where an action begins and ends, and which white space its dashes take away. White space is told with the token
 * behind it, for it separates operands.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/array.h"
#include "base/text.h"
#include "chat/go_template.h"

bool go_lex_fail(struct go_lexer *l, uint32_t line, const char *format, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	if (!l->failed)
		error_set(l->err, ERROR_FORMAT, "%s, line %u: %s", l->label, line, text);
	l->failed = true;
	return false;
}

bool go_lex_no_memory(struct go_lexer *l)
{
	if (!l->failed)
		error_set(l->err, ERROR_MEMORY, "%s: no memory for the chat template", l->label);
	l->failed = true;
	return false;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool at(const struct go_lexer *l, size_t i, const char *what)
{
	const size_t n = strlen(what);

	return l->n - i >= n && memcmp(l->p + i, what, n) == 0;
}

static void advance(struct go_lexer *l, size_t to)
{
	for (; l->at < to; l->at++)
		l->line += l->p[l->at] == '\n';
}

static void skip_spaces(struct go_lexer *l)
{
	while (l->at < l->n && is_space(l->p[l->at]))
		advance(l, l->at + 1);
}

/* The bytes of the letter or digit there; 0: it is none. */
static size_t letter(const struct go_lexer *l, size_t i)
{
	uint32_t c;
	const size_t n = i < l->n ? text_char(l->p + i, l->n - i, &c) : 0;

	if (n == 0)
		return 0;
	const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
	const bool is =
		c == '_' || (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) || k == UTF8PROC_CATEGORY_ND;
	return is ? n : 0;
}

static size_t letters(const struct go_lexer *l, size_t i)
{
	size_t n;

	while ((n = letter(l, i)) > 0)
		i += n;
	return i;
}

/* The length of the action's end there: "}}", or white space, a dash and "}}". 0: it goes on. */
static size_t end_of(const struct go_lexer *l, size_t i)
{
	if (at(l, i, "}}"))
		return 2;
	return i < l->n && is_space(l->p[i]) && at(l, i + 1, "-}}") ? 4 : 0;
}

static void close_action(struct go_lexer *l, size_t length)
{
	advance(l, l->at + length);
	if (length > 2)
		skip_spaces(l);
}

/* ---- tokens */

/* Behind a string or a character in quotes; raw: without escapes and over any lines. SIZE_MAX: it does not end. */
static size_t end_of_quotes(const struct go_lexer *l, size_t i, char quote)
{
	for (i++; i < l->n; i++) {
		if (l->p[i] == quote)
			return i + 1;
		if (quote == '`')
			continue;
		if (l->p[i] == '\\' && i + 1 < l->n)
			i++;
		if (l->p[i] == '\n')
			return SIZE_MAX;
	}
	return SIZE_MAX;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* What follows a name must not be glued to it. */
static bool ends_name(const struct go_lexer *l, size_t i)
{
	return i == l->n || is_space(l->p[i]) || strchr(".,|:)(", l->p[i]) || end_of(l, i);
}

static size_t end_of_number(const struct go_lexer *l, size_t i)
{
	i += l->p[i] == '+' || l->p[i] == '-';
	for (; i < l->n; i++) {
		const char c = l->p[i];
		const bool power = strchr("eEpP", l->p[i - (i > 0)]) && (c == '+' || c == '-');
		if (!is_digit(c) && !power && c != '.' && !letter(l, i))
			break;
	}
	return i;
}

/* Of one character, or of the two of ":=". */
static size_t punctuation(struct go_lexer *l, size_t i, struct go_token *t)
{
	switch (l->p[i]) {
	case '=': t->type = GO_TOKEN_ASSIGN; return i + 1;
	case '|': t->type = GO_TOKEN_PIPE; return i + 1;
	case '(': t->type = GO_TOKEN_OPEN; return i + 1;
	case ')': t->type = GO_TOKEN_CLOSE; return i + 1;
	default: break;
	}
	if (at(l, i, ":=")) {
		t->type = GO_TOKEN_DECLARE;
		return i + 2;
	}
	t->type = GO_TOKEN_OTHER;
	return i + 1;
}

/* The token at i; SIZE_MAX: failed. */
static size_t token(struct go_lexer *l, size_t i, struct go_token *t)
{
	const char c = l->p[i];
	const bool number = is_digit(c) || c == '+' || c == '-' || (c == '.' && i + 1 < l->n && is_digit(l->p[i + 1]));
	size_t end;

	*t = (struct go_token){ .line = l->line, .p = l->p + i };
	if (c == '"' || c == '`' || c == '\'') {
		t->type = c == '\'' ? GO_TOKEN_CHARACTER : GO_TOKEN_STRING;
		end = end_of_quotes(l, i, c);
		if (end == SIZE_MAX)
			go_lex_fail(l, l->line, "a text in quotes (%c) does not end", c);
		return end;
	}
	if (number) {
		t->type = GO_TOKEN_NUMBER;
		return end_of_number(l, i);
	}
	const bool named = letter(l, i) > 0;
	if (!named && c != '.' && c != '$')
		return punctuation(l, i, t);
	end = letters(l, i + !named);
	t->type = named ? GO_TOKEN_WORD : c == '$' ? GO_TOKEN_VARIABLE : end == i + 1 ? GO_TOKEN_DOT : GO_TOKEN_FIELD;
	if (!ends_name(l, end)) {
		go_lex_fail(l, l->line, "\"%.*s\" is followed by \"%c\", expected a space, an operand or }}",
		            (int)(end - i < 40 ? end - i : 40), l->p + i, l->p[end]);
		return SIZE_MAX;
	}
	return end;
}

static struct go_token *add_token(struct go_lexer *l)
{
	if (!array_grow((void **)&l->token, &l->capacity, l->n_tokens + 1, sizeof *l->token)) {
		go_lex_no_memory(l);
		return NULL;
	}
	return &l->token[l->n_tokens++];
}

static bool lex_action(struct go_lexer *l)
{
	unsigned open = 0;
	size_t end;

	l->n_tokens = 0;
	for (bool space = false;;) {
		const size_t closes = end_of(l, l->at);
		struct go_token *t;
		if (!closes && l->at < l->n && is_space(l->p[l->at])) {
			advance(l, l->at + 1);
			space = true;
			continue;
		}
		if (l->at == l->n)
			return go_lex_fail(l, l->line, "{{ without }} behind it");
		if (!(t = add_token(l)))
			return false;
		if (closes) {
			*t = (struct go_token){
				.type = GO_TOKEN_END, .space = space, .line = l->line, .p = "}}", .n = 2
			};
			if (open)
				return go_lex_fail(l, l->line, "( without ) behind it");
			close_action(l, closes);
			return true;
		}
		if ((end = token(l, l->at, t)) == SIZE_MAX)
			return false;
		open += t->type == GO_TOKEN_OPEN;
		if (t->type == GO_TOKEN_CLOSE && open-- == 0)
			return go_lex_fail(l, l->line, ") without ( before it");
		t->space = space;
		t->n = end - l->at;
		advance(l, end);
		t->p += t->type == GO_TOKEN_FIELD;
		t->n -= t->type == GO_TOKEN_FIELD;
		space = false;
	}
}

/* ---- texts and actions */

static size_t find(const struct go_lexer *l, size_t from, const char *what)
{
	const char *p = from < l->n ? memmem(l->p + from, l->n - from, what, strlen(what)) : NULL;

	return p ? (size_t)(p - l->p) : l->n;
}

/* Behind the opening braces and the dash. */
static bool pass_comment(struct go_lexer *l)
{
	const uint32_t line = l->line;
	const size_t end = find(l, l->at + 2, "*/");

	if (end == l->n)
		return go_lex_fail(l, line, "a comment, {{/*, does not end with */}}");
	advance(l, end + 2);
	const size_t closes = end_of(l, l->at);
	if (!closes)
		return go_lex_fail(l, l->line, "*/ is not followed by }}, expected a comment alone between the braces");
	close_action(l, closes);
	return true;
}

enum go_item go_lex(struct go_lexer *l)
{
	while (!l->failed && l->at < l->n) {
		const size_t open = find(l, l->at, "{{");
		const bool dash = at(l, open, "{{-") && open + 3 < l->n && is_space(l->p[open + 3]);
		size_t end = open;
		while (dash && end > l->at && is_space(l->p[end - 1]))
			end--;
		if (end > l->at) {
			l->text = (struct text){ .p = l->p + l->at, .n = end - l->at };
			l->text_line = l->line;
			advance(l, open);
			return GO_ITEM_TEXT;
		}
		advance(l, open + 2 + (dash ? 2 : 0));
		if (!at(l, l->at, "/*"))
			return lex_action(l) ? GO_ITEM_ACTION : GO_ITEM_END;
		pass_comment(l);
	}
	return GO_ITEM_END;
}
