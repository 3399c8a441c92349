/* grammar/gbnf_places.c - the rules of a GBNF grammar become places (automaton_parts.h), which call each other.
 *
 * A rule that can begin with itself is refused: what it has begun would have no end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/effort.h"
#include "grammar/gbnf_parts.h"

struct visit {
	uint32_t rule;
	size_t from; /* where its part of next[] begins */
};
struct rules {
	const struct places *p;
	uint32_t *entry;                             /* [rule] */
	uint32_t *rule_at;                           /* [place where a rule begins] */
	enum stage { NEW, UNDER_WAY, DONE } * stage; /* [rule] */
	struct visit *way;                           /* the rules under way */
	uint32_t *next;                              /* rules that those can begin with */
	size_t n_next, next_room;
	uint32_t *stack, *mark; /* of places; the rule that came by last, one more */
};

static void reach(struct rules *r, uint32_t place, uint32_t rule, size_t *depth)
{
	if (r->mark[place] == rule + 1)
		return;
	effort_take(2);
	r->mark[place] = rule + 1;
	r->stack[(*depth)++] = place;
}

/* Adds all rules that a rule can begin with to next[]. */
static bool find_beginnings(struct rules *r, uint32_t rule)
{
	size_t depth = 0;

	reach(r, r->entry[rule], rule, &depth);
	while (depth && !effort_over()) {
		const struct place *at = &r->p->place[r->stack[--depth]];
		if (at->kind == PLACE_SPLIT) {
			reach(r, at->out, rule, &depth);
			reach(r, at->other, rule, &depth);
		} else if (at->kind == PLACE_RULE) {
			void *all = r->next;
			if (!effort_array(&all, &r->next_room, r->n_next + 1, sizeof *r->next))
				return false;
			r->next = all;
			r->next[r->n_next++] = r->rule_at[at->other];
			if (r->p->place[at->other].ends) /* it can be empty */
				reach(r, at->out, rule, &depth);
		}
	}
	return true;
}

static bool begin(struct rules *r, uint32_t rule, size_t *depth)
{
	struct visit *v = &r->way[(*depth)++];

	*v = (struct visit){ .rule = rule, .from = r->n_next };
	r->stage[rule] = UNDER_WAY;
	return find_beginnings(r, rule);
}

/* From one rule on: *left is one that can begin with itself. False: no memory. */
static bool search(struct rules *r, uint32_t first, uint32_t *left)
{
	size_t depth = 0;

	if (!begin(r, first, &depth))
		return false;
	while (depth) {
		struct visit *v = &r->way[depth - 1];
		if (r->n_next == v->from) {
			r->stage[v->rule] = DONE;
			depth--;
			continue;
		}
		uint32_t rule = r->next[--r->n_next];
		if (r->stage[rule] == UNDER_WAY) {
			*left = rule;
			return true;
		}
		if (r->stage[rule] == NEW && !begin(r, rule, &depth))
			return false;
	}
	return true;
}

static bool search_all(struct rules *r, size_t n_rules, uint32_t *left)
{
	for (uint32_t i = 0; i < n_rules; i++) {
		if (r->stage[i] == NEW && !search(r, i, left))
			return false;
		if (*left != UINT32_MAX)
			return true;
	}
	return true;
}

/* Whether no rule can begin with itself. */
static bool check_beginnings(const struct gbnf *g, const struct places *p, uint32_t *entry, const char *text,
                             struct error *err)
{
	struct rules r = { .p = p, .entry = entry };
	uint32_t left = UINT32_MAX;

	r.rule_at = effort_calloc(p->n, sizeof *r.rule_at);
	r.stack = effort_calloc(p->n, sizeof *r.stack);
	r.mark = effort_calloc(p->n, sizeof *r.mark);
	r.stage = effort_calloc(g->n_rules, sizeof *r.stage);
	r.way = effort_calloc(g->n_rules, sizeof *r.way);
	bool ok = r.rule_at && r.stack && r.mark && r.stage && r.way;
	for (uint32_t i = 0; ok && i < g->n_rules; i++)
		r.rule_at[entry[i]] = i;
	if (!ok || !search_all(&r, g->n_rules, &left))
		ok = error_set(err, ERROR_MEMORY, "no memory for a grammar");
	else if (left != UINT32_MAX)
		ok = gbnf_fail(err, ERROR_UNSUPPORTED, text, g->rule[left].at,
		               "this rule can begin with itself, which is not supported");
	free(r.rule_at);
	free(r.stack);
	free(r.mark);
	free(r.stage);
	free(r.way);
	free(r.next);
	return ok;
}

bool gbnf_places(struct places *p, uint32_t *entry, const char *text, size_t n, const struct machine_tokens *tokens,
                 struct error *err)
{
	struct gbnf g = { 0 };
	uint32_t *entries = NULL;
	bool ok = gbnf_read(&g, text, n, tokens, err);

	if (ok && !(entries = effort_calloc(g.n_rules, sizeof *entries)))
		ok = error_set(err, ERROR_MEMORY, "no memory for a grammar");
	for (size_t i = 0; ok && i < g.n_rules; i++)
		if (!places_add(p, &g.x, g.rule[i].node, &entries[i]))
			ok = gbnf_fail(err, ERROR_UNSUPPORTED, text, g.rule[i].at,
			               "with this rule the grammar is too large, or there is no memory for it");
	for (size_t i = 0; ok && i < p->n; i++)
		if (p->place[i].kind == PLACE_RULE)
			p->place[i].other = entries[p->place[i].other];
	if (ok) {
		places_mark(p);
		*entry = entries[g.root];
		ok = !p->failed && check_beginnings(&g, p, entries, text, err);
	}
	free(entries);
	gbnf_clear(&g);
	return ok;
}
