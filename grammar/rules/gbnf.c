#include "grammar/rules/gbnf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/rules/gbnf_parts.h"

enum { DEPTH_MAX = 200, REPEAT_MAX = 2000, NAME_LENGTH_MAX = 256 };

bool gbnf_fail(struct error *err, enum error_code code, const char *text, size_t at, const char *why)
{
	size_t line = 1, column = 1;

	for (size_t i = 0; i < at; i++) {
		column += (text[i] & 0xc0) != 0x80;
		if (text[i] == '\n') {
			line++;
			column = 1;
		}
	}
	return error_set(err, code, "the grammar, line %zu, column %zu: %s", line, column, why);
}

bool gbnf_wrong(struct gbnf_reader *r, const char *why)
{
	return gbnf_fail(r->err, ERROR_ARGUMENT, r->text, r->at < r->n ? r->at : r->n, why);
}

static char peek(const struct gbnf_reader *r) { return r->at < r->n ? r->text[r->at] : 0; }

bool gbnf_take(struct gbnf_reader *r, char what)
{
	if (r->at >= r->n || r->text[r->at] != what)
		return false;
	r->at++;
	return true;
}

/* White space and comments; lines end rules where they are not taken. */
static void skip(struct gbnf_reader *r, bool lines)
{
	for (; r->at < r->n; r->at++) {
		char c = r->text[r->at];
		if (c == '#') {
			while (r->at + 1 < r->n && r->text[r->at + 1] != '\n' && r->text[r->at + 1] != '\r')
				r->at++;
		} else if (c != ' ' && c != '\t' && !(lines && (c == '\r' || c == '\n'))) {
			return;
		}
	}
}

static bool in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

static bool no_memory(struct gbnf_reader *r) { return error_set(r->err, ERROR_MEMORY, "no memory for a grammar"); }

/* The rule whose name stands here. */
static bool name(struct gbnf_reader *r, uint32_t *rule)
{
	uint32_t word[NAME_LENGTH_MAX / 4 + 1] = { 0 };
	size_t from = r->at, n;
	void *all = r->g->rule;
	int made;

	while (in_name(peek(r)))
		r->at++;
	n = r->at - from;
	if (n == 0)
		return gbnf_wrong(r, "expected the name of a rule, of letters, digits and -");
	if (n > NAME_LENGTH_MAX)
		return gbnf_wrong(r, "a name of more than 256 bytes");
	word[0] = (uint32_t)n;
	memcpy(word + 1, r->text + from, n);
	uint32_t number = interner_add(&r->g->names, word, 1 + (n + 3) / 4, &made);
	if (!number || !effort_array(&all, &r->g->room, r->g->n_rules + 1, sizeof *r->g->rule))
		return no_memory(r);
	r->g->rule = all;
	*rule = number - 1;
	if (made)
		r->g->rule[r->g->n_rules++] = (struct gbnf_rule){ .at = from };
	return r->g->n_rules <= GBNF_RULES_MAX || gbnf_wrong(r, "more than 8192 rules");
}

static bool count(struct gbnf_reader *r, uint32_t *value)
{
	size_t from = r->at;

	for (*value = 0; peek(r) >= '0' && peek(r) <= '9'; r->at++)
		if (*value <= REPEAT_MAX)
			*value = 10 * *value + (uint32_t)(peek(r) - '0');
	if (r->at == from)
		return gbnf_wrong(r, "expected a number of repetitions");
	return *value <= REPEAT_MAX || gbnf_wrong(r, "more than 2000 repetitions");
}

/* Behind a brace. */
static bool counts(struct gbnf_reader *r, bool lines, uint32_t *min, uint32_t *max)
{
	skip(r, lines);
	if (!count(r, min))
		return false;
	*max = *min;
	skip(r, lines);
	if (gbnf_take(r, ',')) {
		skip(r, lines);
		*max = REPEAT_ANY;
		if (peek(r) != '}' && !count(r, max))
			return false;
		skip(r, lines);
	}
	if (!gbnf_take(r, '}'))
		return gbnf_wrong(r, "a number of repetitions without }");
	return *min <= *max || gbnf_wrong(r, "a repetition whose most is below its least");
}

/* All repetitions of an item that stand behind it. */
static bool repeat(struct gbnf_reader *r, bool lines, bool nothing, uint32_t *node)
{
	for (;; skip(r, lines)) {
		uint32_t min = 0, max = REPEAT_ANY;
		char c = peek(r);
		if (c != '*' && c != '+' && c != '?' && c != '{')
			return true;
		if (nothing)
			return gbnf_wrong(r, "a repetition of nothing");
		r->at++;
		if (c == '+')
			min = 1;
		else if (c == '?')
			max = 1;
		else if (c == '{' && !counts(r, lines, &min, &max))
			return false;
		*node = expression_repeat(&r->g->x, *node, min, max);
	}
}

static bool alternatives(struct gbnf_reader *r, bool lines, uint32_t *node);

static bool group(struct gbnf_reader *r, uint32_t *node)
{
	r->at++;
	if (++r->depth > DEPTH_MAX)
		return gbnf_wrong(r, "groups inside too many groups");
	skip(r, true);
	if (!alternatives(r, true, node))
		return false;
	r->depth--;
	return gbnf_take(r, ')') || gbnf_wrong(r, "expected ) or another part of a group");
}

static bool item(struct gbnf_reader *r, bool lines, uint32_t *node)
{
	bool nothing = false, ok = true;
	uint32_t rule;

	switch (peek(r)) {
	case '"': ok = gbnf_literal(r, node, &nothing); break;
	case '[': ok = gbnf_set(r, node, &nothing); break;
	case '(': ok = group(r, node); break;
	case '.':
		r->at++;
		*node = gbnf_any(r);
		break;
	case '<':
	case '!': ok = gbnf_token(r, node); break;
	case '*':
	case '+':
	case '?':
	case '{': return gbnf_wrong(r, "a repetition of nothing");
	default:
		if ((ok = name(r, &rule)))
			*node = expression_rule(&r->g->x, rule);
	}
	if (!ok)
		return false;
	skip(r, lines);
	return repeat(r, lines, nothing, node);
}

/* Whether another item may stand here; what cannot begin one is refused where the rule or the group should end. */
static bool more(const struct gbnf_reader *r)
{
	char c = peek(r);

	return c && (in_name(c) || strchr("\"[(.<!*+?{", c));
}

static bool sequence(struct gbnf_reader *r, bool lines, uint32_t *node)
{
	size_t room = 0, n = 0;
	uint32_t *part = NULL;
	bool ok = true;

	*node = expression_empty(&r->g->x);
	while (ok && more(r)) {
		void *all = part;
		if (!effort_array(&all, &room, n + 1, sizeof *part)) {
			ok = no_memory(r);
			break;
		}
		part = all;
		ok = item(r, lines, &part[n++]);
	}
	for (size_t i = n; ok && i-- > 0;)
		*node = i + 1 == n ? part[i] : expression_join(&r->g->x, part[i], *node);
	free(part);
	return ok;
}

static bool alternatives(struct gbnf_reader *r, bool lines, uint32_t *node)
{
	uint32_t one;

	if (!sequence(r, lines, node))
		return false;
	while (gbnf_take(r, '|')) {
		skip(r, true);
		if (!sequence(r, lines, &one))
			return false;
		*node = expression_either(&r->g->x, one, *node);
	}
	return true;
}

static bool rule(struct gbnf_reader *r)
{
	size_t at = r->at;
	uint32_t number, node;

	if (!name(r, &number))
		return false;
	skip(r, false);
	if (r->n - r->at < 3 || memcmp(r->text + r->at, "::=", 3) != 0)
		return gbnf_wrong(r, "expected ::= behind the name of a rule");
	r->at += 3;
	skip(r, true);
	if (!alternatives(r, false, &node))
		return false;
	r->g->rule[number] = (struct gbnf_rule){ .node = node, .at = at, .is_defined = true };
	if (r->at < r->n && peek(r) != '\n' && peek(r) != '\r')
		return gbnf_wrong(r, "expected another part of the rule or the end of the line");
	skip(r, true);
	return true;
}

bool gbnf_read(struct gbnf *g, const char *text, size_t n, const struct machine_tokens *tokens, struct error *err)
{
	static const char root[] = "root";
	struct gbnf_reader r = { .g = g, .text = root, .n = 4, .err = err };
	char why[320];

	if (!name(&r, &g->root))
		return false;
	r = (struct gbnf_reader){ .g = g, .text = text, .n = n, .tokens = tokens, .err = err };
	skip(&r, true);
	while (r.at < n)
		if (!rule(&r))
			return false;
	if (!g->rule[g->root].is_defined)
		return gbnf_wrong(&r, "there is no rule named root, with which a text begins");
	for (size_t i = 0; i < g->n_rules; i++) {
		int length = 0;
		if (g->rule[i].is_defined)
			continue;
		while (g->rule[i].at + (size_t)length < n && in_name(text[g->rule[i].at + (size_t)length]))
			length++;
		snprintf(why, sizeof why, "the rule %.*s is used but not defined", length, text + g->rule[i].at);
		return gbnf_fail(err, ERROR_ARGUMENT, text, g->rule[i].at, why);
	}
	return !g->x.failed || error_set(err, ERROR_UNSUPPORTED, "the grammar is too large, or there is no memory");
}

void gbnf_clear(struct gbnf *g)
{
	expression_clear(&g->x);
	interner_clear(&g->names);
	free(g->rule);
	*g = (struct gbnf){ 0 };
}
