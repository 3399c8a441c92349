/* grammar/rules/lark_items.c - what stands behind the colon of a rule or a terminal: alternatives of items. */
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

enum { DEPTH_MAX = 100, REPEAT_MAX = 2000 };

static struct expression *tree(const struct lark *r) { return &r->g->x; }

/* Behind a terminal of a rule, what is ignored may stand. */
static uint32_t whole_terminal(struct lark *r, uint32_t node)
{
	if (r->now.is_terminal || !r->n_ignored)
		return node;
	return expression_join(tree(r), node, expression_rule(tree(r), r->ignore_rule));
}

/* ---- values */

static bool text_value(struct lark *r, uint32_t *node)
{
	const size_t at = r->now.word.at;
	const struct lark_reading before = r->now;
	bool ok, range = false;

	if (r->now.word.kind == LARK_STRING) {
		if (!lark_next(r))
			return false;
		range = r->now.word.kind == LARK_RANGE;
		r->now = before;
	}
	r->now.is_lazy = false;
	ok = range                             ? lark_range(r, node)
	     : r->now.word.kind == LARK_STRING ? lark_string(r, node)
	                                       : lark_regexp(r, node);
	if (ok && r->now.is_lazy && !r->now.is_terminal)
		ok = lark_unlazy(r, at, *node, node);
	r->now.is_lazy |= before.is_lazy;
	*node = ok ? whole_terminal(r, *node) : 0;
	return ok;
}

static bool terminal_value(struct lark *r, uint32_t *node)
{
	const size_t at = r->now.word.at;
	uint32_t number;

	if (!lark_name(r, &number))
		return false;
	lark_use(r, number, at);
	if (r->now.is_terminal && !r->definition[number].is_defined)
		return lark_wrong(r, at, "this name is used but not defined");
	if (r->now.is_terminal) {
		if (!lark_read_terminal(r, number))
			return false;
		*node = r->definition[number].node;
		r->now.is_lazy |= r->definition[number].is_lazy;
	} else {
		*node = whole_terminal(r, expression_rule(tree(r), r->definition[number].rule));
	}
	return lark_next(r) && (!lark_is(r, '{') || lark_wrong(r, at, "a terminal is no template"));
}

static bool rule_value(struct lark *r, uint32_t *node)
{
	const size_t at = r->now.word.at;
	uint32_t number, rule;

	if (r->now.is_terminal)
		return lark_wrong(r, at, "a rule inside of a terminal");
	if (!lark_name(r, &number) || !lark_next(r))
		return false;
	const struct lark_symbol *symbol = lark_symbol_of(r, number);
	if (!symbol)
		lark_use(r, number, at);
	const bool is_template = symbol ? symbol->kind == SYMBOL_TEMPLATE : r->definition[number].is_template;
	if (is_template != lark_is(r, '{'))
		return lark_wrong(r, at, is_template ? "a template without {" : "this rule is no template");
	if (is_template) {
		if (!lark_use_template(r, symbol ? symbol->number : number, at, &rule))
			return false;
		*node = expression_rule(tree(r), rule);
		return true;
	}
	*node = expression_rule(tree(r), symbol ? symbol->number : r->definition[number].rule);
	if (symbol && symbol->kind == SYMBOL_TERMINAL)
		*node = whole_terminal(r, *node);
	return true;
}

/* ---- items */

static bool group(struct lark *r, char close, uint32_t *node)
{
	if (++r->depth > DEPTH_MAX)
		return lark_lacks(r, r->now.word.at, "groups inside too many groups, which is not supported");
	if (!lark_next(r) || !lark_alternatives(r, node))
		return false;
	r->depth--;
	if (!lark_is(r, close))
		return lark_wrong_here(r, close == ')' ? "expected ) or another part of a group"
		                                       : "expected ] or another part of a group");
	if (close == ']')
		*node = expression_repeat(tree(r), *node, 0, 1);
	return lark_next(r);
}

static bool atom(struct lark *r, uint32_t *node)
{
	switch (r->now.word.kind) {
	case LARK_RULE: return rule_value(r, node);
	case LARK_TERMINAL: return terminal_value(r, node);
	case LARK_STRING:
	case LARK_REGEXP: return text_value(r, node);
	default: return group(r, lark_is(r, '(') ? ')' : ']', node);
	}
}

static bool count(struct lark *r, uint32_t *value)
{
	*value = 0;
	if (r->now.word.kind != LARK_NUMBER)
		return lark_wrong_here(r, "expected a number of repetitions");
	for (size_t i = r->now.word.at; i < r->now.word.end; i++)
		if (*value <= REPEAT_MAX)
			*value = 10 * *value + (uint32_t)(r->now.text[i] - '0');
	if (*value > REPEAT_MAX)
		return lark_lacks(r, r->now.word.at, "more than 2000 repetitions, which are not supported");
	return lark_next(r);
}

static bool repeat(struct lark *r, uint32_t *node)
{
	uint32_t min = 0, max = REPEAT_ANY;

	if (lark_is(r, '~')) {
		const size_t at = r->now.word.at;
		if (!lark_next(r) || !count(r, &min))
			return false;
		max = min;
		if (r->now.word.kind == LARK_RANGE && (!lark_next(r) || !count(r, &max)))
			return false;
		if (max < min)
			return lark_wrong(r, at, "a repetition whose most is below its least");
	} else if (lark_is(r, '?') || lark_is(r, '*') || lark_is(r, '+')) {
		min = lark_is(r, '+');
		max = lark_is(r, '?') ? 1 : REPEAT_ANY;
		if (!lark_next(r))
			return false;
	} else {
		return true;
	}
	*node = expression_repeat(tree(r), *node, min, max);
	return !(lark_is(r, '~') || lark_is(r, '?') || lark_is(r, '*') || lark_is(r, '+')) ||
	       lark_wrong_here(r, "a repetition of a repetition, which needs ( and )");
}

static bool begins_item(const struct lark *r)
{
	switch (r->now.word.kind) {
	case LARK_RULE:
	case LARK_TERMINAL:
	case LARK_STRING:
	case LARK_REGEXP: return true;
	default: return lark_is(r, '(') || lark_is(r, '[');
	}
}

static bool sequence(struct lark *r, uint32_t *node)
{
	size_t room = 0, n = 0;
	uint32_t *part = NULL;
	bool ok = true;

	*node = expression_empty(tree(r));
	while (ok && begins_item(r)) {
		void *all = part;
		if (!effort_array(&all, &room, n + 1, sizeof *part)) {
			ok = lark_no_memory(r);
			break;
		}
		part = all;
		ok = atom(r, &part[n]) && repeat(r, &part[n]);
		n++;
	}
	if (ok && !n && r->now.is_terminal)
		ok = lark_wrong_here(r, "a terminal that is empty, or a part of one");
	/* Pairs lean to the right. */
	for (size_t i = n; ok && i-- > 0;)
		*node = i + 1 == n ? part[i] : expression_join(tree(r), part[i], *node);
	free(part);
	return ok;
}

/* With a name behind an arrow, which says nothing of the text. */
static bool alternative(struct lark *r, uint32_t *node)
{
	if (!sequence(r, node) || r->now.word.kind != LARK_TO)
		return r->err->code == ERROR_NONE;
	if (r->now.is_terminal)
		return lark_wrong_here(r, "-> in a terminal");
	if (!lark_next(r))
		return false;
	return r->now.word.kind == LARK_RULE ? lark_next(r) : lark_wrong_here(r, "expected a name of small letters");
}

bool lark_alternatives(struct lark *r, uint32_t *node)
{
	uint32_t one;

	if (!alternative(r, node))
		return false;
	while (lark_is(r, '|')) {
		if (!lark_next(r) || !alternative(r, &one))
			return false;
		*node = expression_either(tree(r), one, *node);
	}
	return true;
}

/* ---- definitions */

bool lark_bodies(struct lark *r, uint32_t body, bool is_terminal, const struct lark_names *names, uint32_t *node,
                 bool *lazy)
{
	const struct lark_reading before = r->now;
	const unsigned depth = r->depth;
	bool ok = true, first = true;

	r->now = (struct lark_reading){ .is_terminal = is_terminal, .names = names };
	for (uint32_t one; body && ok; body = r->body[body - 1].next, first = false) {
		const struct lark_body b = r->body[body - 1];
		ok = lark_begin(r, b.text, b.n, b.at) && lark_alternatives(r, &one);
		if (ok && r->now.word.kind != LARK_LINE && r->now.word.kind != LARK_END)
			ok = lark_wrong_here(r, "expected another part of the rule or the end of the line");
		*node = !ok ? 0 : first ? one : expression_either(tree(r), one, *node);
	}
	*lazy = r->now.is_lazy;
	r->now = before;
	r->depth = depth;
	return ok;
}

bool lark_read_terminal(struct lark *r, uint32_t number)
{
	struct lark_definition *d = &r->definition[number];
	uint32_t node;
	bool lazy;

	if (d->stage == LARK_READ)
		return true;
	if (d->stage == LARK_UNDER_WAY)
		return lark_wrong(r, d->at, "this terminal has itself as a part, which only rules may have");
	if (++r->depth > DEPTH_MAX)
		return lark_lacks(r, d->at, "terminals inside too many terminals, which is not supported");
	d->stage = LARK_UNDER_WAY;
	if (!lark_bodies(r, d->body, true, NULL, &node, &lazy))
		return false;
	r->depth--;
	d = &r->definition[number];
	d->stage = LARK_READ;
	d->node = node;
	d->is_lazy = lazy;
	if (lazy && !lark_unlazy(r, d->at, node, &node))
		return false;
	r->g->rule[r->definition[number].rule].node = node;
	return true;
}
