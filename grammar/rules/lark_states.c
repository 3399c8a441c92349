/* grammar/rules/lark_states.c - expressions as rules: each state of an expression's automaton becomes one, so that a
 * rule can have what only an automaton follows; and a set with many ranges, such as \w, becomes one rule for all its
 * NFA states.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/regex/automaton.h"
#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

enum { STATES_MAX = 2000, RANGES_MAX = 16 };

struct states {
	struct lark *r;
	struct automaton *a;
	uint32_t *rule, *queue; /* [state]: one more than its rule */
	size_t room, n, queue_room;
	size_t at;
};

static bool too_large(const struct states *s)
{
	return lark_lacks(s->r, s->at, "an expression with ? behind a repetition that is too large");
}

static bool rule_of(struct states *s, uint32_t state, uint32_t *rule)
{
	void *rules = s->rule, *queue = s->queue;
	const size_t had = s->room;

	if (!effort_array(&rules, &s->room, (size_t)state + 1, sizeof *s->rule))
		return lark_no_memory(s->r);
	s->rule = rules;
	if (s->room > had)
		memset(s->rule + had, 0, (s->room - had) * sizeof *s->rule);
	if (!effort_array(&queue, &s->queue_room, s->n + 1, sizeof *s->queue))
		return lark_no_memory(s->r);
	s->queue = queue;
	if (!s->rule[state]) {
		if (s->n == STATES_MAX)
			return too_large(s);
		const uint32_t one = lark_add_rule(s->r, s->at);
		if (one == UINT32_MAX)
			return false;
		s->rule[state] = one + 1;
		s->queue[s->n++] = state;
	}
	*rule = s->rule[state] - 1;
	return true;
}

/* Bytes that lead to the same state, one behind another, are one range. */
static bool add_state(struct states *s, uint32_t state, uint32_t *out)
{
	struct expression *x = &s->r->g->x;
	uint32_t to[257], rule;

	for (unsigned b = 0; b < 256; b++)
		to[b] = automaton_step(s->a, state, (uint8_t)b);
	to[256] = UINT32_MAX;
	*out = UINT32_MAX;
	if (automaton_accepts(s->a, state))
		*out = expression_empty(x);
	for (unsigned from = 0, b = 1; b <= 256; b++) {
		if (to[b] == to[from])
			continue;
		if (to[from] != AUTOMATON_DEAD) {
			if (!rule_of(s, to[from], &rule))
				return false;
			const uint32_t one = expression_join(x, expression_byte(x, (uint8_t)from, (uint8_t)(b - 1)),
			                                     expression_rule(x, rule));
			*out = *out == UINT32_MAX ? one : expression_either(x, one, *out);
		}
		from = b;
	}
	if (*out == UINT32_MAX)
		*out = expression_set(x, NULL, 0);
	return !automaton_failed(s->a) || too_large(s);
}

static bool add_states(struct states *s, uint32_t *out)
{
	uint32_t rule, node = 0;
	bool ok = rule_of(s, AUTOMATON_START, &rule);

	*out = ok ? expression_rule(&s->r->g->x, rule) : 0;
	for (size_t i = 0; ok && i < s->n; i++) {
		const uint32_t state = s->queue[i];
		ok = effort_take(300) ? add_state(s, state, &node) : lark_no_memory(s->r);
		if (ok)
			s->r->g->rule[s->rule[state] - 1].node = node;
	}
	free(s->rule);
	free(s->queue);
	return ok;
}

bool lark_states(struct lark *r, size_t at, uint32_t node, uint32_t *out)
{
	struct states s = { .r = r, .at = at };
	struct error ignored = { 0 };

	s.a = r->g->x.failed ? NULL : automaton_open(&r->g->x, node, false, &ignored);
	const bool ok = s.a ? add_states(&s, out) : too_large(&s);
	automaton_close(s.a);
	return ok;
}

/* ---- sets */

/* What calls the rule, whose text is one character of the set. */
static bool set_as_rule(struct lark *r, struct expression_node set, uint32_t *out)
{
	struct expression *x = &r->g->x;
	const uint32_t rule = lark_add_rule(r, r->n), own = rule == UINT32_MAX ? 0 : expression_empty(x);

	if (!own)
		return false;
	x->node[own] = set;
	r->g->rule[rule].node = own;
	*out = expression_rule(x, rule);
	return !x->failed || lark_no_memory(r);
}

bool lark_share_sets(struct lark *r)
{
	struct expression *x = &r->g->x;
	struct interner sets = { 0 };
	uint32_t *node = NULL;
	size_t room = 0;
	bool ok = !x->failed;

	_Static_assert(sizeof(struct character_range) == 2 * sizeof(uint32_t), "ranges are words");
	for (size_t i = 0, n = x->n; ok && i < n; i++) {
		const struct expression_node e = x->node[i];
		void *all = node;
		int made;
		if (e.kind != EXPRESSION_SET || e.rest <= RANGES_MAX)
			continue;
		const uint32_t number =
			interner_add(&sets, (const uint32_t *)(x->range + e.first), 2 * (size_t)e.rest, &made);
		if (!number || !effort_array(&all, &room, (size_t)number + 1, sizeof *node)) {
			ok = lark_no_memory(r);
			break;
		}
		node = all;
		if (made)
			ok = set_as_rule(r, e, &node[number]);
		if (ok)
			x->node[i] = x->node[node[number]];
	}
	interner_clear(&sets);
	free(node);
	return ok;
}
