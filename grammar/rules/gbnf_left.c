#include "grammar/rules/gbnf_left.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"

/* The rules with which each can begin: those of rule r are next[first[r]] up to next[first[r + 1]]. */
struct finder {
	const struct nfa *p;
	const uint32_t *entry;
	struct left *l;
	size_t n_rules;
	uint32_t *next;
	size_t *first;
	size_t n_next, next_room;
	uint32_t *stack, *mark; /* of NFA states; which walk came by last */
	size_t depth;
	uint32_t walk;
};

static bool push(uint32_t **list, size_t *n, size_t *room, uint32_t value)
{
	void *all = *list;

	if (!effort_array(&all, room, *n + 1, sizeof **list))
		return false;
	*list = all;
	(*list)[(*n)++] = value;
	return true;
}

static void reach(struct finder *f, uint32_t nfa_state)
{
	if (f->mark[nfa_state] == f->walk)
		return;
	effort_take(2);
	f->mark[nfa_state] = f->walk;
	f->stack[f->depth++] = nfa_state;
}

static bool find_next(struct finder *f, uint32_t rule)
{
	f->walk++;
	reach(f, f->entry[rule]);
	while (f->depth && !effort_over()) {
		const struct nfa_state *at = &f->p->nfa_state[f->stack[--f->depth]];
		if (at->kind == NFA_SPLIT) {
			reach(f, at->out);
			reach(f, at->other);
		} else if (at->kind == NFA_RULE) {
			if (!push(&f->next, &f->n_next, &f->next_room, f->l->rule_at[at->other] - 1))
				return false;
			if (f->p->nfa_state[at->other].ends) /* it can be empty */
				reach(f, at->out);
		}
	}
	return true;
}

/* ---- sets of rules that reach each other, after Tarjan (Depth-first search and linear graph algorithms, 1972) */

struct visit {
	uint32_t rule;
	size_t next;
};
struct search {
	struct visit *way;
	size_t n_way;
	uint32_t *index, *low, *open; /* [rule]: when it was met, one more; the first it reaches; those without a set */
	bool *is_open;
	size_t n_open;
	uint32_t met;
};

static void enter(struct search *s, const struct finder *f, uint32_t rule)
{
	s->index[rule] = s->low[rule] = ++s->met;
	s->open[s->n_open++] = rule;
	s->is_open[rule] = true;
	s->way[s->n_way++] = (struct visit){ rule, f->first[rule] };
}

static bool begins_with_itself(const struct finder *f, uint32_t rule)
{
	for (size_t i = f->first[rule]; i < f->first[rule + 1]; i++)
		if (f->next[i] == rule)
			return true;
	return false;
}

static void leave(struct search *s, const struct finder *f, uint32_t rule)
{
	uint32_t one;

	s->n_way--;
	if (s->n_way) {
		uint32_t *low = &s->low[s->way[s->n_way - 1].rule];
		*low = s->low[rule] < *low ? s->low[rule] : *low;
	}
	if (s->low[rule] != s->index[rule])
		return;
	const bool several = s->open[s->n_open - 1] != rule;
	const uint32_t set = several || begins_with_itself(f, rule) ? (uint32_t)++f->l->n : 0;
	do {
		one = s->open[--s->n_open];
		s->is_open[one] = false;
		f->l->set_of[one] = set;
	} while (one != rule);
}

static void visit_from(struct search *s, const struct finder *f, uint32_t first)
{
	enter(s, f, first);
	while (s->n_way && effort_take(2)) {
		struct visit *v = &s->way[s->n_way - 1];
		if (v->next == f->first[v->rule + 1]) {
			leave(s, f, v->rule);
			continue;
		}
		const uint32_t to = f->next[v->next++];
		if (!s->index[to])
			enter(s, f, to);
		else if (s->is_open[to] && s->index[to] < s->low[v->rule])
			s->low[v->rule] = s->index[to];
	}
}

static bool find_sets(struct finder *f)
{
	const size_t n = f->n_rules + 1;
	struct search s = { .way = effort_malloc(n * sizeof *s.way),
		            .index = effort_calloc(n, sizeof *s.index),
		            .low = effort_calloc(n, sizeof *s.low),
		            .open = effort_malloc(n * sizeof *s.open),
		            .is_open = effort_calloc(n, 1) };
	const bool ok = s.way && s.index && s.low && s.open && s.is_open;

	for (uint32_t r = 0; ok && r < f->n_rules; r++)
		if (!s.index[r])
			visit_from(&s, f, r);
	free(s.way);
	free(s.index);
	free(s.low);
	free(s.open);
	free(s.is_open);
	return ok && !effort_over();
}

/* ---- how a set begins, and goes on */

/* What an NFA state of a rule of the set is, before any byte. */
static bool look(struct finder *f, struct left_set *set, uint32_t number, uint32_t nfa_state)
{
	const struct nfa_state *at = &f->p->nfa_state[nfa_state];
	void *sites = set->site;

	if (at->kind == NFA_SPLIT) {
		reach(f, at->out);
		reach(f, at->other);
		return true;
	}
	if (at->kind == NFA_MATCH)
		return true;
	const uint32_t rule = at->kind == NFA_RULE ? f->l->rule_at[at->other] - 1 : 0;
	if (at->kind != NFA_RULE || (f->l->set_of[rule] != number && !f->p->nfa_state[at->other].ends))
		return push(&set->begin, &set->n_begin, &set->begin_room, nfa_state);
	if (!effort_array(&sites, &set->site_room, set->n_sites + 1, sizeof *set->site))
		return false;
	set->site = sites;
	set->site[set->n_sites++] = (struct left_site){ rule, at->out };
	if (f->p->nfa_state[at->other].ends)
		reach(f, at->out);
	reach(f, at->other); /* it is begun with the set */
	return true;
}

static int by_rule(const void *a, const void *b)
{
	const struct left_site *x = a, *y = b;

	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return x->out < y->out ? -1 : x->out > y->out;
}

static bool fill_set(struct finder *f, uint32_t number)
{
	struct left_set *set = &f->l->set[number - 1];
	bool ok = true;

	f->walk++;
	for (uint32_t r = 0; r < f->n_rules && effort_take(1); r++)
		if (f->l->set_of[r] == number)
			reach(f, f->entry[r]);
	while (f->depth && ok && !effort_over())
		ok = look(f, set, number, f->stack[--f->depth]);
	if (set->n_sites)
		qsort(set->site, set->n_sites, sizeof *set->site, by_rule);
	return ok && effort_grow(0, set->begin_room * sizeof *set->begin + set->site_room * sizeof *set->site);
}

static bool find(struct finder *f)
{
	bool ok = true;

	for (uint32_t r = 0; r < f->n_rules && ok; r++) {
		f->first[r] = f->n_next;
		ok = find_next(f, r);
	}
	f->first[f->n_rules] = f->n_next;
	if (!ok || !find_sets(f) || !(f->l->set = effort_calloc(f->l->n + 1, sizeof *f->l->set)))
		return false;
	for (uint32_t set = 1; set <= f->l->n && ok; set++)
		ok = fill_set(f, set);
	return ok;
}

bool left_find(struct left *l, const struct nfa *p, const uint32_t *entry, uint32_t *end, size_t n_rules)
{
	struct finder f = { .p = p, .entry = entry, .l = l, .n_rules = n_rules };

	*l = (struct left){ .set_of = effort_calloc(n_rules + 1, sizeof *l->set_of),
		            .rule_at = effort_calloc(p->n + 1, sizeof *l->rule_at),
		            .ends_at = effort_calloc(p->n + 1, sizeof *l->ends_at),
		            .end = end };
	f.first = effort_calloc(n_rules + 1, sizeof *f.first);
	f.stack = effort_malloc((p->n + 1) * sizeof *f.stack);
	f.mark = effort_calloc(p->n + 1, sizeof *f.mark);
	bool ok = l->set_of && l->rule_at && l->ends_at && f.first && f.stack && f.mark;
	for (uint32_t r = 0; ok && r < n_rules; r++) {
		l->rule_at[entry[r]] = r + 1;
		l->ends_at[end[r]] = r + 1;
	}
	ok = ok && find(&f) && !effort_over();
	free(f.first);
	free(f.stack);
	free(f.mark);
	free(f.next);
	return ok;
}

void left_clear(struct left *l)
{
	for (size_t i = 0; l->set && i < l->n; i++) {
		free(l->set[i].begin);
		free(l->set[i].site);
	}
	free(l->set);
	free(l->set_of);
	free(l->rule_at);
	free(l->ends_at);
	free(l->end);
	*l = (struct left){ 0 };
}
