/* grammar/rules/lark_regexp.c - regular expressions as Python writes them, in a Lark grammar. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

enum { DEPTH_MAX = 100, REPEAT_MAX = 2000 };

bool lark_regex_wrong(struct lark_regex *x, const char *why) { return lark_wrong(x->r, x->at, why); }
bool lark_regex_lacks(struct lark_regex *x, const char *why) { return lark_lacks(x->r, x->at, why); }

static char peek(const struct lark_regex *x) { return x->at < x->end ? x->r->now.text[x->at] : 0; }

bool lark_regex_take(struct lark_regex *x, const char *what)
{
	const size_t n = strlen(what);

	if (x->end - x->at < n || memcmp(x->r->now.text + x->at, what, n) != 0)
		return false;
	x->at += n;
	return true;
}

/* With the flag x, blanks and comments are nothing. */
static void skip(struct lark_regex *x)
{
	for (; x->spaced && peek(x); x->at++) {
		if (peek(x) == '#')
			while (x->at + 1 < x->end && x->r->now.text[x->at + 1] != '\n')
				x->at++;
		else if (!strchr(" \t\n\r\f\v", peek(x)))
			return;
	}
}

static bool alternatives(struct lark_regex *x, uint32_t *node);

/* ---- repetitions */

static bool digits(struct lark_regex *x, uint32_t *value)
{
	const size_t from = x->at;

	for (*value = 0; peek(x) >= '0' && peek(x) <= '9'; x->at++)
		if (*value <= REPEAT_MAX)
			*value = 10 * *value + (uint32_t)(peek(x) - '0');
	return x->at > from;
}

/* {2} {2,} {,5} {2,5}. False: these are no counts, and the brace is a character. */
static bool counts(struct lark_regex *x, uint32_t *min, uint32_t *max)
{
	const size_t from = x->at;
	bool ok = lark_regex_take(x, "{") && peek(x) != '}';

	ok = ok && (digits(x, min), true);
	*max = *min;
	if (ok && lark_regex_take(x, ",")) {
		if (!digits(x, max))
			*max = REPEAT_ANY;
	} else if (ok && x->at == from + 1) {
		ok = false;
	}
	ok = ok && lark_regex_take(x, "}");
	if (!ok)
		x->at = from;
	return ok;
}

static bool repeat(struct lark_regex *x, uint32_t *node)
{
	struct expression *tree = &x->r->g->x;
	uint32_t min = 0, max = REPEAT_ANY;
	const size_t from = x->at;

	skip(x);
	if (lark_regex_take(x, "+"))
		min = 1;
	else if (lark_regex_take(x, "?"))
		max = 1;
	else if (!lark_regex_take(x, "*") && !counts(x, &min, &max))
		return true;
	if (min > REPEAT_MAX || (max != REPEAT_ANY && max > REPEAT_MAX))
		return lark_lacks(x->r, from, "more than 2000 repetitions, which are not supported");
	if (max < min)
		return lark_wrong(x->r, from, "a repetition whose most is below its least");
	*node = expression_repeat(tree, *node, min, max);
	if (lark_regex_take(x, "?") && min != max) {
		tree->node[*node].rest = *node != 0;
		x->r->now.is_lazy = true;
	} else if (peek(x) == '+') {
		return lark_regex_lacks(x, "a possessive repetition, which is not supported");
	}
	const size_t at = x->at;
	uint32_t a = 0, b;
	skip(x);
	if ((peek(x) && strchr("*+?", peek(x))) || counts(x, &a, &b))
		return lark_regex_wrong(x, "a repetition of a repetition, which needs ( and )");
	x->at = at;
	return true;
}

/* ---- groups */

/* Letters of flags, up to : or ) */
static bool flags(struct lark_regex *x)
{
	bool off = false;

	for (char c; (c = peek(x)) != 0 && c != ':' && c != ')'; x->at++) {
		if (c == '-' && !off)
			off = true;
		else if (c == 'i')
			x->any_case = !off;
		else if (c == 's')
			x->dot_all = !off;
		else if (c == 'x')
			x->spaced = !off;
		else if (c != 'm' && c != 'u')
			return lark_regex_lacks(x, "a kind of group, or a flag, that is not supported");
	}
	return true;
}

static bool kind_of_group(struct lark_regex *x)
{
	if (lark_regex_take(x, "?P<")) {
		while (peek(x) && peek(x) != '>')
			x->at++;
		return lark_regex_take(x, ">") || lark_regex_wrong(x, "a name of a group without end");
	}
	if (!lark_regex_take(x, "?"))
		return true;
	if (peek(x) == '=' || peek(x) == '!')
		return lark_regex_lacks(x, "looking ahead, which is not supported");
	if (peek(x) == '<')
		return lark_regex_lacks(x, "looking behind, which is not supported");
	if (peek(x) == 'P' || peek(x) == '(')
		return lark_regex_lacks(x, "a reference to a group, which is not supported");
	if (peek(x) == '>')
		return lark_regex_lacks(x, "an atomic group, which is not supported");
	return flags(x) && (lark_regex_take(x, ":") || lark_regex_lacks(x, "flags behind the beginning, which are not "
	                                                                   "supported"));
}

static bool group(struct lark_regex *x, uint32_t *node)
{
	const struct lark_regex before = *x;

	if (++x->depth > DEPTH_MAX)
		return lark_regex_lacks(x, "groups inside too many groups, which is not supported");
	if (!kind_of_group(x) || !alternatives(x, node))
		return false;
	if (!lark_regex_take(x, ")"))
		return lark_regex_wrong(x, "a group without end");
	*x = (struct lark_regex){ .r = x->r,
		                  .at = x->at,
		                  .end = x->end,
		                  .depth = before.depth,
		                  .any_case = before.any_case,
		                  .dot_all = before.dot_all,
		                  .spaced = before.spaced };
	return true;
}

static bool comment(struct lark_regex *x)
{
	while (peek(x) && peek(x) != ')')
		x->at++;
	return lark_regex_take(x, ")") || lark_regex_wrong(x, "a comment without end");
}

/* ---- characters */

static bool one_character(struct lark_regex *x, uint32_t *node)
{
	struct character_set s = { 0 };
	uint32_t code;
	const unsigned n = text_char(x->r->now.text + x->at, x->end - x->at, &code);

	if (!n)
		return lark_regex_wrong(x, "a byte that is not UTF-8");
	x->at += n;
	set_add(&s, code, code);
	if (x->any_case)
		set_add_cases(&s);
	*node = lark_set(x->r, &s);
	return true;
}

static bool any_character(struct lark_regex *x, uint32_t *node)
{
	struct character_set s = { 0 };

	if (x->dot_all) {
		set_add(&s, 0, CODE_POINT_MAX);
	} else {
		set_add(&s, 0, '\n' - 1);
		set_add(&s, '\n' + 1, CODE_POINT_MAX);
	}
	*node = lark_set(x->r, &s);
	return true;
}

/* *nothing: it was a comment. */
static bool atom(struct lark_regex *x, uint32_t *node, bool *nothing)
{
	const char c = peek(x);

	*nothing = lark_regex_take(x, "(?#");
	if (*nothing)
		return comment(x);
	if (lark_regex_take(x, "("))
		return group(x, node) && repeat(x, node);
	if (c == '^' || c == '$')
		return lark_regex_lacks(x, "^ or $, which is not supported: terminals stand anywhere in a text");
	if (strchr("*+?", c))
		return lark_regex_wrong(x, "a repetition of nothing");
	if (c == '[' || c == '\\')
		return lark_class(x, node) && repeat(x, node);
	if (lark_regex_take(x, "."))
		return any_character(x, node) && repeat(x, node);
	return one_character(x, node) && repeat(x, node);
}

static bool sequence(struct lark_regex *x, uint32_t *node)
{
	struct expression *tree = &x->r->g->x;
	size_t n = 0, room = 0;
	uint32_t *part = NULL;
	bool ok = true, nothing;

	*node = expression_empty(tree);
	for (skip(x); ok && peek(x) && peek(x) != '|' && peek(x) != ')'; skip(x)) {
		void *all = part;
		if (!effort_take(2) || !effort_array(&all, &room, n + 1, sizeof *part)) {
			ok = lark_no_memory(x->r);
			break;
		}
		part = all;
		ok = atom(x, &part[n], &nothing);
		n += ok && !nothing;
	}
	/* Pairs lean to the right. */
	for (size_t i = n; ok && i-- > 0;)
		*node = i + 1 == n ? part[i] : expression_join(tree, part[i], *node);
	free(part);
	return ok;
}

static bool alternatives(struct lark_regex *x, uint32_t *node)
{
	uint32_t one;

	if (!sequence(x, node))
		return false;
	while (lark_regex_take(x, "|")) {
		if (!sequence(x, &one))
			return false;
		*node = expression_either(&x->r->g->x, one, *node);
	}
	return true;
}

/* (?i) at the beginning. */
static bool leading_flags(struct lark_regex *x)
{
	const size_t from = x->at;

	if (!lark_regex_take(x, "(?") || !peek(x) || !strchr("imsxu", peek(x)))
		x->at = from;
	else if (!flags(x))
		return false;
	else if (!lark_regex_take(x, ")"))
		x->at = from;
	return true;
}

bool lark_expression(struct lark *r, size_t at, size_t n, const char *letters, size_t n_flags, uint32_t *node)
{
	struct lark_regex x = { .r = r, .at = at, .end = at + n };

	for (size_t i = 0; i < n_flags; i++) {
		if (letters[i] == 'l')
			return lark_lacks(r, at, "the flag l, which is not supported");
		x.any_case |= letters[i] == 'i';
		x.dot_all |= letters[i] == 's';
		x.spaced |= letters[i] == 'x';
	}
	const struct lark_regex plain = x;
	if (!leading_flags(&x))
		return false;
	if (x.at == at)
		x = plain; /* they were of a group */
	if (!alternatives(&x, node))
		return false;
	return x.at == x.end || lark_regex_wrong(&x, "the end of a group that was not begun");
}
