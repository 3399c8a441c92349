/* grammar/regex/automaton_nfa.c - an expression becomes states, from its end to its beginning, after Thompson
 * (Regular expression search algorithm, 1968). */
#include <stdlib.h>

#include "base/text.h"
#include "grammar/regex/automaton_parts.h"
#include "grammar/machine/effort.h"

enum { NFA_STATES_MAX = 1 << 16, DEPTH_MAX = 2000 };

uint32_t nfa_add_state(struct nfa *p, struct nfa_state nfa_state)
{
	void *all = p->nfa_state;

	if (p->failed || p->n >= NFA_STATES_MAX || !effort_array(&all, &p->capacity, p->n + 1, sizeof *p->nfa_state)) {
		p->failed = true;
		return NO_NFA_STATE;
	}
	p->failed |= !effort_take(2);
	p->nfa_state = all;
	p->nfa_state[p->n] = nfa_state;
	return (uint32_t)p->n++;
}

static uint32_t add_bytes(struct nfa *p, uint32_t low, uint32_t high, uint32_t out)
{
	return out == NO_NFA_STATE
	               ? NO_NFA_STATE
	               : nfa_add_state(
				 p,
				 (struct nfa_state){
					 .kind = NFA_BYTES, .low = (uint8_t)low, .high = (uint8_t)high, .out = out });
}

static uint32_t add_split(struct nfa *p, uint32_t out, uint32_t other)
{
	return out == NO_NFA_STATE || other == NO_NFA_STATE
	               ? NO_NFA_STATE
	               : nfa_add_state(p, (struct nfa_state){ .kind = NFA_SPLIT, .out = out, .other = other });
}

static uint32_t build(struct nfa *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth);

static uint32_t build_loop(struct nfa *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	uint32_t loop = nfa_add_state(p, (struct nfa_state){ .kind = NFA_SPLIT });

	if (loop == NO_NFA_STATE)
		return NO_NFA_STATE;
	uint32_t body = build(p, x, node, loop, depth);
	if (body == NO_NFA_STATE)
		return NO_NFA_STATE;
	p->nfa_state[loop].out = body;
	p->nfa_state[loop].other = next;
	return loop;
}

static uint32_t build_repeat(struct nfa *p, const struct expression *x, const struct expression_node *e, uint32_t next,
                             unsigned depth)
{
	uint32_t optional = e->max == REPEAT_ANY ? 0 : e->max - e->min, end = next;

	if (e->max == REPEAT_ANY)
		next = build_loop(p, x, e->first, next, depth);
	for (uint32_t i = 0; i < optional && next != NO_NFA_STATE; i++)
		next = add_split(p, build(p, x, e->first, next, depth), end);
	for (uint32_t i = 0; i < e->min && next != NO_NFA_STATE; i++)
		next = build(p, x, e->first, next, depth);
	return next;
}

/* Both kinds of pairs lean to the right in what readers build, so that recursion goes along their first parts. */
static uint32_t build_either(struct nfa *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	uint32_t all = NO_NFA_STATE, one;

	for (bool more = true; more;) {
		const struct expression_node *e = &x->node[node];
		more = e->kind == EXPRESSION_EITHER;
		one = build(p, x, more ? e->first : node, next, depth);
		all = all == NO_NFA_STATE ? one : add_split(p, all, one);
		if (one == NO_NFA_STATE || all == NO_NFA_STATE)
			return NO_NFA_STATE;
		node = e->rest;
	}
	return all;
}

static uint32_t build_join(struct nfa *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	uint32_t count = 0, at = node;

	for (; x->node[at].kind == EXPRESSION_JOIN; at = x->node[at].rest)
		count++;
	uint32_t *first = effort_malloc(count * sizeof *first);
	if (!first || !effort_take(count)) {
		free(first);
		p->failed = true;
		return NO_NFA_STATE;
	}
	at = node;
	for (uint32_t i = 0; i < count; i++, at = x->node[at].rest)
		first[i] = x->node[at].first;
	next = build(p, x, at, next, depth);
	while (count-- && next != NO_NFA_STATE)
		next = build(p, x, first[count], next, depth);
	free(first);
	return next;
}

static uint32_t build_ahead(struct nfa *p, const struct expression *x, const struct expression_node *e, uint32_t next,
                            unsigned depth)
{
	uint32_t done = nfa_add_state(p, (struct nfa_state){ .kind = NFA_DONE, .ends = true, .live = true });
	uint32_t other = build(p, x, e->first, done, depth);

	p->looks = true;
	return other == NO_NFA_STATE || next == NO_NFA_STATE
	               ? NO_NFA_STATE
	               : nfa_add_state(p, (struct nfa_state){ .kind = e->min ? NFA_AHEAD_NOT : NFA_AHEAD,
	                                                      .out = next,
	                                                      .other = other });
}

static uint32_t build(struct nfa *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	const struct expression_node *e = &x->node[node];

	if (depth > DEPTH_MAX)
		p->failed = true;
	if (next == NO_NFA_STATE || p->failed)
		return NO_NFA_STATE;
	switch (e->kind) {
	case EXPRESSION_EMPTY: return next;
	case EXPRESSION_SET: return nfa_add_set(p, e->rest ? x->range + e->first : NULL, e->rest, next);
	case EXPRESSION_JOIN: return build_join(p, x, node, next, depth + 1);
	case EXPRESSION_EITHER: return build_either(p, x, node, next, depth + 1);
	case EXPRESSION_REPEAT: return build_repeat(p, x, e, next, depth + 1);
	case EXPRESSION_BEGIN: return nfa_add_state(p, (struct nfa_state){ .kind = NFA_BEGIN, .out = next });
	case EXPRESSION_END: return nfa_add_state(p, (struct nfa_state){ .kind = NFA_END, .out = next });
	case EXPRESSION_AHEAD: return build_ahead(p, x, e, next, depth + 1);
	case EXPRESSION_BYTE: return add_bytes(p, e->first, e->rest, next);
	case EXPRESSION_TOKEN:
		return nfa_add_state(
			p, (struct nfa_state){ .kind = NFA_TOKEN, .low = e->min != 0, .out = next, .other = e->first });
	case EXPRESSION_RULE:
		return nfa_add_state(p, (struct nfa_state){ .kind = NFA_RULE, .out = next, .other = e->first });
	}
	return NO_NFA_STATE;
}

static uint32_t build_anything(struct nfa *p, uint32_t next)
{
	static const struct character_range all = { 0, CODE_POINT_MAX };
	uint32_t loop = nfa_add_state(p, (struct nfa_state){ .kind = NFA_SPLIT });

	if (loop == NO_NFA_STATE || next == NO_NFA_STATE)
		return NO_NFA_STATE;
	uint32_t body = nfa_add_set(p, &all, 1, loop);
	p->nfa_state[loop].out = body;
	p->nfa_state[loop].other = next;
	return body == NO_NFA_STATE ? NO_NFA_STATE : loop;
}

/* Marks states until nothing changes; `over` bytes, or over the end only. What must not follow is known (`settled`)
 * when all other ends are: its own states have no such state before them. */
static bool spread(struct nfa *p, bool over_bytes, bool settled)
{
	bool changed = false;

	p->failed |= !effort_take(p->n / 4);
	for (size_t i = 0; i < p->n && !p->failed; i++) {
		struct nfa_state *at = &p->nfa_state[i];
		const struct nfa_state *a = &p->nfa_state[at->out], *b = &p->nfa_state[at->other];
		bool was = over_bytes ? at->live : at->ends, now = was;
		if (at->kind == NFA_SPLIT)
			now = over_bytes ? a->live || b->live : a->ends || b->ends;
		else if (at->kind == NFA_RULE)
			now = over_bytes ? a->live && b->live : a->ends && b->ends;
		else if (at->kind == NFA_END || at->kind == NFA_BEGIN)
			now = over_bytes ? at->ends : at->kind == NFA_END && a->ends;
		else if (at->kind == NFA_AHEAD)
			now = over_bytes ? a->live && b->live : a->ends && b->ends;
		else if (at->kind == NFA_AHEAD_NOT)
			now = over_bytes ? a->live : settled && a->ends && !b->ends;
		else if (at->kind == NFA_BYTES || at->kind == NFA_TOKEN)
			now = over_bytes && a->live;
		*(over_bytes ? &at->live : &at->ends) = was || now;
		changed |= now && !was;
	}
	return changed;
}

/* Places at least: so that what is too large is refused before it is built. Each node that is looked at counts, even
 * one without states: terminals share nodes, and 60 of them can have 2^60 ways to the same one. */
static uint64_t weight(const struct expression *x, uint32_t node, unsigned depth)
{
	uint64_t all = 0, times;

	if (depth > DEPTH_MAX)
		return NFA_STATES_MAX + 1;
	for (;; node = x->node[node].rest) {
		const struct expression_node *e = &x->node[node];
		bool pair = e->kind == EXPRESSION_JOIN || e->kind == EXPRESSION_EITHER;
		if (!effort_take(1))
			return NFA_STATES_MAX + 1;
		if (pair)
			all += weight(x, e->first, depth + 1);
		else if (e->kind == EXPRESSION_SET)
			all += e->rest ? e->rest : 1;
		else if (e->kind == EXPRESSION_AHEAD)
			all += weight(x, e->first, depth + 1) + 2;
		else if (e->kind == EXPRESSION_REPEAT) {
			times = e->max == REPEAT_ANY ? (uint64_t)e->min + 1 : e->max;
			all += times ? times * (weight(x, e->first, depth + 1) + 1) : 1;
		} else {
			all++;
		}
		if (all > NFA_STATES_MAX)
			return NFA_STATES_MAX + 1;
		if (!pair)
			return all;
	}
}

void nfa_mark(struct nfa *p)
{
	while (spread(p, false, false))
		;
	while (p->looks && spread(p, false, true))
		;
	for (size_t i = 0; i < p->n; i++)
		p->nfa_state[i].live |= p->nfa_state[i].ends;
	while (spread(p, true, true))
		;
}

bool nfa_add(struct nfa *p, const struct expression *x, uint32_t node, uint32_t *entry)
{
	if (weight(x, node, 0) > NFA_STATES_MAX)
		return false;
	uint32_t end = nfa_add_state(p, (struct nfa_state){ .kind = NFA_MATCH, .ends = true, .live = true });

	*entry = end == NO_NFA_STATE ? NO_NFA_STATE : build(p, x, node, end, 0);
	return !p->failed && *entry != NO_NFA_STATE;
}

bool nfa_make(struct nfa *p, const struct expression *x, uint32_t node, bool anywhere)
{
	if (weight(x, node, 0) > NFA_STATES_MAX)
		return false;
	uint32_t end = nfa_add_state(p, (struct nfa_state){ .kind = NFA_MATCH, .ends = true, .live = true });

	if (anywhere)
		end = build_anything(p, end);
	p->entry = build(p, x, node, end, 0);
	if (anywhere)
		p->entry = build_anything(p, p->entry);
	if (p->failed || p->entry == NO_NFA_STATE)
		return false;
	nfa_mark(p);
	/* A grammar may keep thousands of them, and none grows any more. */
	struct nfa_state *fits = realloc(p->nfa_state, p->n * sizeof *fits);
	if (fits) {
		p->nfa_state = fits;
		p->capacity = p->n;
	}
	return !p->failed;
}

unsigned nfa_classes(const struct nfa *p, uint8_t class_of[256])
{
	bool border[257] = { [0] = true };
	unsigned classes = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->nfa_state[i].kind == NFA_BYTES) {
			border[p->nfa_state[i].low] = true;
			border[p->nfa_state[i].high + 1] = true;
		}
	for (unsigned b = 0; b < 256; b++) {
		classes += border[b];
		class_of[b] = (uint8_t)(classes - 1);
	}
	return classes;
}
