#include "grammar/rules/gbnf_stacks.h"

#include <stdlib.h>

#include "grammar/machine/effort.h"

enum { STACKS_MAX = 1 << 14 }; /* of one state, with those passed on the way to it */
/* Instead of a stack's number: the rest is a rule that can begin with itself, and is wanted. */
#define WANTED 0x80000000u

bool stacks_fail(struct gbnf_machine *m)
{
	m->machine.failed = true;
	effort_refuse();
	return false;
}

static size_t slot_of(const struct gbnf_machine *m, struct stack s)
{
	uint64_t h = ((uint64_t)s.below << 32 | s.nfa_state) * 0x9e3779b97f4a7c15;
	size_t at = (h ^ h >> 32) & (m->slots - 1);

	for (; m->seen[at]; at = (at + 1) & (m->slots - 1)) {
		const struct stack *f = &m->found[m->seen[at] - 1];
		if (f->nfa_state == s.nfa_state && f->below == s.below)
			break;
	}
	return at;
}

static bool grow_seen(struct gbnf_machine *m)
{
	size_t slots = m->slots ? 2 * m->slots : 64;
	uint32_t *table;

	if (2 * (m->n_found + 1) < m->slots)
		return true;
	if (!(table = effort_calloc(slots, sizeof *table)))
		return false;
	free(m->seen);
	m->seen = table;
	m->slots = slots;
	for (size_t i = 0; i < m->n_found; i++)
		m->seen[slot_of(m, m->found[i])] = (uint32_t)i + 1;
	return true;
}

bool stacks_find(struct gbnf_machine *m, uint32_t nfa_state, uint32_t below)
{
	struct stack s = { nfa_state, below };
	void *all = m->found;

	if (!effort_take(3))
		return stacks_fail(m);
	if (!m->nfa.nfa_state[nfa_state].live)
		return true;
	if (!grow_seen(m))
		return stacks_fail(m);
	size_t at = slot_of(m, s);
	if (m->seen[at])
		return true;
	if (m->n_found >= STACKS_MAX || !effort_array(&all, &m->found_room, m->n_found + 1, sizeof *m->found))
		return stacks_fail(m);
	m->found = all;
	m->found[m->n_found++] = s;
	m->seen[at] = (uint32_t)m->n_found;
	return true;
}

static uint32_t put_below(struct gbnf_machine *m, uint32_t nfa_state, uint32_t below)
{
	const uint32_t word[2] = { nfa_state, below };
	const uint32_t number = interner_add(&m->stacks, word, 2, NULL);

	if (!number)
		stacks_fail(m);
	return number;
}

static bool is_wanted(const struct gbnf_machine *m, uint32_t below)
{
	return m->left.n && below != BELOW_NOTHING && below != BELOW_UNKNOWN &&
	       *interner_get(&m->stacks, below, NULL) & WANTED;
}

/* A rule that can begin with itself begins with its set. */
static bool begin_set(struct gbnf_machine *m, uint32_t rule, uint32_t wanted)
{
	const struct left_set *s = &m->left.set[m->left.set_of[rule] - 1];
	bool ok = wanted != 0;

	for (size_t i = 0; i < s->n_begin && ok; i++)
		ok = stacks_find(m, s->begin[i], wanted);
	return ok;
}

bool stacks_begin(struct gbnf_machine *m, uint32_t entry, uint32_t below)
{
	const uint32_t rule = m->left.n ? m->left.rule_at[entry] - 1 : 0;

	if (!m->left.n || !m->left.set_of[rule])
		return stacks_find(m, entry, below);
	return (!m->nfa.nfa_state[entry].ends || stacks_find(m, m->left.end[rule], below)) &&
	       begin_set(m, rule, put_below(m, WANTED | rule, below));
}

/* The index of the first NFA state at which others of the set go on behind a rule. */
static size_t first_site(const struct left_set *s, uint32_t rule)
{
	size_t low = 0, high = s->n_sites;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (s->site[middle].rule < rule)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether the rule that ends at an NFA state is the wanted one, and nothing else ends there. */
static bool is_then(struct gbnf_machine *m, uint32_t end, uint32_t target)
{
	enum { RULES_MAX = 16 };
	const struct left_set *s = &m->left.set[m->left.set_of[target] - 1];
	uint32_t rule = m->left.ends_at[end] - 1;

	for (int i = 0; rule != target && i < RULES_MAX && effort_take(4); i++) {
		const size_t at = first_site(s, rule);
		if (at == s->n_sites || s->site[at].rule != rule ||
		    (at + 1 < s->n_sites && s->site[at + 1].rule == rule) ||
		    m->nfa.nfa_state[s->site[at].out].kind != NFA_MATCH)
			return false;
		rule = m->left.ends_at[s->site[at].out] - 1;
	}
	return rule == target;
}

/* Into a rule. Where nothing follows it in its own, that one is done with. Where the wanted rule is wanted once more at
 * its own end, as in e ::= e "+" e, its texts go on as those of the first one do. */
static bool enter(struct gbnf_machine *m, const struct nfa_state *p, uint32_t below)
{
	const bool wanted = is_wanted(m, below), last = m->nfa.nfa_state[p->out].kind == NFA_MATCH;

	if (wanted && last) {
		const uint32_t target = *interner_get(&m->stacks, below, NULL) & ~WANTED;
		if (m->left.rule_at[p->other] - 1 == target && is_then(m, p->out, target))
			return (!m->nfa.nfa_state[p->other].ends || stacks_find(m, p->out, below)) &&
			       begin_set(m, target, below);
	}
	if (!last || wanted) {
		below = put_below(m, p->out, below);
		if (!below)
			return false;
	}
	return stacks_begin(m, p->other, below);
}

/* A rule of a set is done: perhaps it is the one that is wanted, and others can have begun with it. */
static bool go_on(struct gbnf_machine *m, uint32_t nfa_state, uint32_t wanted)
{
	const uint32_t *word = interner_get(&m->stacks, wanted, NULL), rule = m->left.ends_at[nfa_state] - 1,
		       target = word[0] & ~WANTED, below = word[1];
	const struct left_set *s = &m->left.set[m->left.set_of[target] - 1];
	bool ok = rule != target || stacks_find(m, nfa_state, below);

	for (size_t i = first_site(s, rule); i < s->n_sites && s->site[i].rule == rule && ok; i++)
		ok = stacks_find(m, s->site[i].out, wanted);
	return ok;
}

static bool done(struct gbnf_machine *m, struct stack s)
{
	if (s.below == BELOW_NOTHING || s.below == BELOW_UNKNOWN)
		return true;
	if (is_wanted(m, s.below))
		return go_on(m, s.nfa_state, s.below);
	const uint32_t *word = interner_get(&m->stacks, s.below, NULL);
	return stacks_find(m, word[0], word[1]);
}

bool stacks_follow(struct gbnf_machine *m)
{
	bool ok = true;

	for (size_t i = 0; i < m->n_found && ok; i++) {
		const struct stack s = m->found[i];
		const struct nfa_state *p = &m->nfa.nfa_state[s.nfa_state];
		if (p->kind == NFA_SPLIT) {
			ok = stacks_find(m, p->out, s.below) && stacks_find(m, p->other, s.below);
		} else if (p->kind == NFA_RULE) {
			ok = enter(m, p, s.below);
		} else if (p->kind == NFA_MATCH) {
			ok = done(m, s);
		}
	}
	return ok;
}
