/* grammar/regex/automaton_set.c - a set of characters becomes NFA states that wait for the bytes of their UTF-8.
 *
 * Characters that begin with the same bytes share the NFA states of these, and equal endings are one: the 760 ranges of
 * \\w become a tree of bytes instead of as many ways that go on side by side.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "grammar/regex/automaton_parts.h"
#include "grammar/machine/effort.h"

/* Characters whose UTF-8 has n bytes, each of them in a range: where that is more than one value, all that follow take
 * every value. */
struct chain {
	uint8_t first[4], last[4];
	uint32_t n;
};

struct set {
	struct nfa *p;
	uint32_t next;
	struct character_range *range;
	struct chain *chain;
	size_t n, room;
	uint32_t *slot; /* a table of the NFA states that were made here; 0: free, else the NFA state + 1 */
	size_t slots;
};

/* ---- chains */

/* The largest part of low..high, from low on, that one chain can say. */
static uint32_t chain_end(uint32_t low, uint32_t high)
{
	static const uint32_t border[] = { 0x7f, 0x7ff, 0xffff, CODE_POINT_MAX };

	for (unsigned i = 0; i < 4; i++)
		if (low <= border[i]) {
			high = high < border[i] ? high : border[i];
			break;
		}
	if (high < 0x80)
		return high;
	for (unsigned bits = 18; bits >= 6; bits -= 6) {
		uint32_t mask = (1u << bits) - 1;
		if ((low & ~mask) == (high & ~mask))
			continue; /* they differ in what follows only */
		if (low & mask)
			high = low | mask; /* up to where the upper part changes */
		else if ((high & mask) != mask)
			high = (high & ~mask) - 1; /* the last upper part is not whole */
	}
	return high;
}

static bool add_chains(struct set *s, uint32_t low, uint32_t high)
{
	while (low <= high) {
		const uint32_t end = chain_end(low, high);
		void *all = s->chain;
		if (!effort_take(1) || !effort_array(&all, &s->room, s->n + 1, sizeof *s->chain))
			return false;
		s->chain = all;
		struct chain *c = &s->chain[s->n++];
		c->n = text_spell(low, c->first);
		text_spell(end, c->last);
		low = end + 1;
	}
	return true;
}

static int by_low(const void *a, const void *b)
{
	const struct character_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Each character once, in ascending order; halves of surrogate pairs are no characters of UTF-8. */
static bool find_chains(struct set *s, const struct character_range *r, size_t n)
{
	enum { SURROGATE = 0xd800, BEHIND = 0xe000 };
	uint32_t from = 0;
	bool ok = true;

	if (!(s->range = effort_malloc((n + 1) * sizeof *s->range)) || !effort_take(n))
		return false;
	memcpy(s->range, r, n * sizeof *r);
	qsort(s->range, n, sizeof *r, by_low);
	for (size_t i = 0; i < n && ok; i++) {
		uint32_t low = s->range[i].low > from ? s->range[i].low : from, high = s->range[i].high;
		high = high < CODE_POINT_MAX ? high : CODE_POINT_MAX;
		if (low > high)
			continue;
		/* What touches is one range. */
		for (; i + 1 < n && s->range[i + 1].low <= high + 1; i++)
			high = s->range[i + 1].high > high ? s->range[i + 1].high : high;
		high = high < CODE_POINT_MAX ? high : CODE_POINT_MAX;
		from = high + 1;
		if (low < SURROGATE)
			ok = add_chains(s, low, high < SURROGATE ? high : SURROGATE - 1);
		if (ok && high >= BEHIND)
			ok = add_chains(s, low > BEHIND ? low : BEHIND, high);
	}
	return ok;
}

/* ---- NFA states */

static bool is_same(const struct nfa_state *a, const struct nfa_state *b)
{
	return a->kind == b->kind && a->low == b->low && a->high == b->high && a->out == b->out && a->other == b->other;
}

/* One that was made here before, or a new one. */
static uint32_t share(struct set *s, struct nfa_state nfa_state)
{
	uint32_t hash = ((uint32_t)nfa_state.kind * 31u + nfa_state.low) * 31u + nfa_state.high;

	hash = ((hash * 0x9e3779b1u + nfa_state.out) * 0x9e3779b1u + nfa_state.other) * 0x9e3779b1u;
	for (size_t at = (hash >> 7) % s->slots;; at = (at + 1) % s->slots) {
		if (!s->slot[at]) {
			const uint32_t made = nfa_add_state(s->p, nfa_state);
			s->slot[at] = made == NO_NFA_STATE ? 0 : made + 1;
			return made;
		}
		if (is_same(&s->p->nfa_state[s->slot[at] - 1], &nfa_state))
			return s->slot[at] - 1;
	}
}

static uint32_t add_bytes(struct set *s, uint8_t low, uint8_t high, uint32_t out)
{
	return share(s, (struct nfa_state){ .kind = NFA_BYTES, .low = low, .high = high, .out = out });
}

static uint32_t either(struct set *s, uint32_t one, uint32_t all)
{
	if (one == NO_NFA_STATE || all == NO_NFA_STATE)
		return one == NO_NFA_STATE ? all : one;
	return share(s, (struct nfa_state){ .kind = NFA_SPLIT, .out = one, .other = all });
}

/* Of the chains from..to, which have the same `level` bytes before. */
static uint32_t tree(struct set *s, size_t from, size_t to, unsigned level)
{
	uint32_t all = NO_NFA_STATE, below = NO_NFA_STATE;
	uint8_t low = 0, high = 0;

	while (from < to && !s->p->failed) {
		const struct chain *c = &s->chain[from];
		size_t end = from + 1;
		while (end < to && s->chain[end].n == c->n && s->chain[end].first[level] == c->first[level] &&
		       s->chain[end].last[level] == c->last[level])
			end++;
		const uint32_t one = level + 1 == c->n ? s->next : tree(s, from, end, level + 1);
		c = &s->chain[from];
		if (below == one && one != NO_NFA_STATE &&
		    c->first[level] == high + 1) { /* it goes on as those before */
			high = c->last[level];
		} else {
			if (below != NO_NFA_STATE)
				all = either(s, add_bytes(s, low, high, below), all);
			low = c->first[level];
			high = c->last[level];
			below = one;
		}
		from = end;
	}
	return below == NO_NFA_STATE ? all : either(s, add_bytes(s, low, high, below), all);
}

static bool make_table(struct set *s)
{
	for (s->slots = 16; s->slots < 10 * s->n; s->slots *= 2)
		;
	s->slot = effort_calloc(s->slots, sizeof *s->slot);
	return s->slot != NULL;
}

uint32_t nfa_add_set(struct nfa *p, const struct character_range *r, size_t n, uint32_t next)
{
	struct set s = { .p = p, .next = next };
	uint32_t all = NO_NFA_STATE;

	if (p->failed || next == NO_NFA_STATE)
		return NO_NFA_STATE;
	if (n && (!find_chains(&s, r, n) || !make_table(&s)))
		p->failed = true;
	else if (s.n)
		all = tree(&s, 0, s.n, 0);
	free(s.range);
	free(s.chain);
	free(s.slot);
	if (p->failed)
		return NO_NFA_STATE;
	return all != NO_NFA_STATE
	               ? all /* else no character: an NFA state that leads nowhere but to itself */
	               : nfa_add_state(p, (struct nfa_state){
						  .kind = NFA_SPLIT, .out = (uint32_t)p->n, .other = (uint32_t)p->n });
}
