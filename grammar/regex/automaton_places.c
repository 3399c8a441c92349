/* grammar/regex/automaton_places.c - an expression becomes places, from its end to its beginning, after Thompson
 * (Regular expression search algorithm, 1968). */
#include <stdlib.h>

#include "base/text.h"
#include "grammar/regex/automaton_parts.h"
#include "grammar/machine/effort.h"

enum { PLACES_MOST = 1 << 16, DEPTH_MOST = 2000 };

uint32_t place_add(struct places *p, struct place place)
{
	void *all = p->place;

	if (p->failed || p->n >= PLACES_MOST || !effort_array(&all, &p->capacity, p->n + 1, sizeof *p->place)) {
		p->failed = true;
		return NO_PLACE;
	}
	p->failed |= !effort_take(2);
	p->place = all;
	p->place[p->n] = place;
	return (uint32_t)p->n++;
}

static uint32_t add_bytes(struct places *p, uint32_t low, uint32_t high, uint32_t out)
{
	return out == NO_PLACE ? NO_PLACE
	                       : place_add(p, (struct place){ .kind = PLACE_BYTES,
	                                                      .low = (uint8_t)low,
	                                                      .high = (uint8_t)high,
	                                                      .out = out });
}

static uint32_t add_split(struct places *p, uint32_t out, uint32_t other)
{
	return out == NO_PLACE || other == NO_PLACE
	               ? NO_PLACE
	               : place_add(p, (struct place){ .kind = PLACE_SPLIT, .out = out, .other = other });
}

static uint32_t build(struct places *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth);

static uint32_t build_loop(struct places *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	uint32_t loop = place_add(p, (struct place){ .kind = PLACE_SPLIT });

	if (loop == NO_PLACE)
		return NO_PLACE;
	uint32_t body = build(p, x, node, loop, depth);
	if (body == NO_PLACE)
		return NO_PLACE;
	p->place[loop].out = body;
	p->place[loop].other = next;
	return loop;
}

static uint32_t build_repeat(struct places *p, const struct expression *x, const struct expression_node *e,
                             uint32_t next, unsigned depth)
{
	uint32_t optional = e->most == REPEAT_ANY ? 0 : e->most - e->least, end = next;

	if (e->most == REPEAT_ANY)
		next = build_loop(p, x, e->first, next, depth);
	for (uint32_t i = 0; i < optional && next != NO_PLACE; i++)
		next = add_split(p, build(p, x, e->first, next, depth), end);
	for (uint32_t i = 0; i < e->least && next != NO_PLACE; i++)
		next = build(p, x, e->first, next, depth);
	return next;
}

/* Both kinds of pairs lean to the right in what readers build, so that recursion goes along their first parts. */
static uint32_t build_either(struct places *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	uint32_t all = NO_PLACE, one;

	for (bool more = true; more;) {
		const struct expression_node *e = &x->node[node];
		more = e->kind == EXPRESSION_EITHER;
		one = build(p, x, more ? e->first : node, next, depth);
		all = all == NO_PLACE ? one : add_split(p, all, one);
		if (one == NO_PLACE || all == NO_PLACE)
			return NO_PLACE;
		node = e->rest;
	}
	return all;
}

static uint32_t build_join(struct places *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	uint32_t count = 0, at = node;

	for (; x->node[at].kind == EXPRESSION_JOIN; at = x->node[at].rest)
		count++;
	uint32_t *first = effort_malloc(count * sizeof *first);
	if (!first || !effort_take(count)) {
		free(first);
		p->failed = true;
		return NO_PLACE;
	}
	at = node;
	for (uint32_t i = 0; i < count; i++, at = x->node[at].rest)
		first[i] = x->node[at].first;
	next = build(p, x, at, next, depth);
	while (count-- && next != NO_PLACE)
		next = build(p, x, first[count], next, depth);
	free(first);
	return next;
}

static uint32_t build_ahead(struct places *p, const struct expression *x, const struct expression_node *e,
                            uint32_t next, unsigned depth)
{
	uint32_t done = place_add(p, (struct place){ .kind = PLACE_DONE, .ends = true, .live = true });
	uint32_t other = build(p, x, e->first, done, depth);

	p->looks = true;
	return other == NO_PLACE || next == NO_PLACE
	               ? NO_PLACE
	               : place_add(p, (struct place){ .kind = e->least ? PLACE_AHEAD_NOT : PLACE_AHEAD,
	                                              .out = next,
	                                              .other = other });
}

static uint32_t build(struct places *p, const struct expression *x, uint32_t node, uint32_t next, unsigned depth)
{
	const struct expression_node *e = &x->node[node];

	if (depth > DEPTH_MOST)
		p->failed = true;
	if (next == NO_PLACE || p->failed)
		return NO_PLACE;
	switch (e->kind) {
	case EXPRESSION_EMPTY: return next;
	case EXPRESSION_SET: return places_add_set(p, e->rest ? x->range + e->first : NULL, e->rest, next);
	case EXPRESSION_JOIN: return build_join(p, x, node, next, depth + 1);
	case EXPRESSION_EITHER: return build_either(p, x, node, next, depth + 1);
	case EXPRESSION_REPEAT: return build_repeat(p, x, e, next, depth + 1);
	case EXPRESSION_BEGIN: return place_add(p, (struct place){ .kind = PLACE_BEGIN, .out = next });
	case EXPRESSION_END: return place_add(p, (struct place){ .kind = PLACE_END, .out = next });
	case EXPRESSION_AHEAD: return build_ahead(p, x, e, next, depth + 1);
	case EXPRESSION_BYTE: return add_bytes(p, e->first, e->rest, next);
	case EXPRESSION_TOKEN:
		return place_add(
			p, (struct place){ .kind = PLACE_TOKEN, .low = e->least != 0, .out = next, .other = e->first });
	case EXPRESSION_RULE: return place_add(p, (struct place){ .kind = PLACE_RULE, .out = next, .other = e->first });
	}
	return NO_PLACE;
}

static uint32_t build_anything(struct places *p, uint32_t next)
{
	static const struct character_range all = { 0, CHARACTER_MOST };
	uint32_t loop = place_add(p, (struct place){ .kind = PLACE_SPLIT });

	if (loop == NO_PLACE || next == NO_PLACE)
		return NO_PLACE;
	uint32_t body = places_add_set(p, &all, 1, loop);
	p->place[loop].out = body;
	p->place[loop].other = next;
	return body == NO_PLACE ? NO_PLACE : loop;
}

/* Marks places until nothing changes; `over` bytes, or over the end only. What must not follow is known (`settled`)
 * when all other ends are: its own places have no such place before them. */
static bool spread(struct places *p, bool over_bytes, bool settled)
{
	bool changed = false;

	p->failed |= !effort_take(p->n / 4);
	for (size_t i = 0; i < p->n && !p->failed; i++) {
		struct place *at = &p->place[i];
		const struct place *a = &p->place[at->out], *b = &p->place[at->other];
		bool was = over_bytes ? at->live : at->ends, now = was;
		if (at->kind == PLACE_SPLIT)
			now = over_bytes ? a->live || b->live : a->ends || b->ends;
		else if (at->kind == PLACE_RULE)
			now = over_bytes ? a->live && b->live : a->ends && b->ends;
		else if (at->kind == PLACE_END || at->kind == PLACE_BEGIN)
			now = over_bytes ? at->ends : at->kind == PLACE_END && a->ends;
		else if (at->kind == PLACE_AHEAD)
			now = over_bytes ? a->live && b->live : a->ends && b->ends;
		else if (at->kind == PLACE_AHEAD_NOT)
			now = over_bytes ? a->live : settled && a->ends && !b->ends;
		else if (at->kind == PLACE_BYTES || at->kind == PLACE_TOKEN)
			now = over_bytes && a->live;
		*(over_bytes ? &at->live : &at->ends) = was || now;
		changed |= now && !was;
	}
	return changed;
}

/* Places at least: so that what is too large is refused before it is built. Each node that is looked at counts, even
 * one without places: terminals share nodes, and 60 of them can have 2^60 ways to the same one. */
static uint64_t weight(const struct expression *x, uint32_t node, unsigned depth)
{
	uint64_t all = 0, times;

	if (depth > DEPTH_MOST)
		return PLACES_MOST + 1;
	for (;; node = x->node[node].rest) {
		const struct expression_node *e = &x->node[node];
		bool pair = e->kind == EXPRESSION_JOIN || e->kind == EXPRESSION_EITHER;
		if (!effort_take(1))
			return PLACES_MOST + 1;
		if (pair)
			all += weight(x, e->first, depth + 1);
		else if (e->kind == EXPRESSION_SET)
			all += e->rest ? e->rest : 1;
		else if (e->kind == EXPRESSION_AHEAD)
			all += weight(x, e->first, depth + 1) + 2;
		else if (e->kind == EXPRESSION_REPEAT) {
			times = e->most == REPEAT_ANY ? (uint64_t)e->least + 1 : e->most;
			all += times ? times * (weight(x, e->first, depth + 1) + 1) : 1;
		} else {
			all++;
		}
		if (all > PLACES_MOST)
			return PLACES_MOST + 1;
		if (!pair)
			return all;
	}
}

void places_mark(struct places *p)
{
	while (spread(p, false, false))
		;
	while (p->looks && spread(p, false, true))
		;
	for (size_t i = 0; i < p->n; i++)
		p->place[i].live |= p->place[i].ends;
	while (spread(p, true, true))
		;
}

bool places_add(struct places *p, const struct expression *x, uint32_t node, uint32_t *entry)
{
	if (weight(x, node, 0) > PLACES_MOST)
		return false;
	uint32_t end = place_add(p, (struct place){ .kind = PLACE_MATCH, .ends = true, .live = true });

	*entry = end == NO_PLACE ? NO_PLACE : build(p, x, node, end, 0);
	return !p->failed && *entry != NO_PLACE;
}

bool places_make(struct places *p, const struct expression *x, uint32_t node, bool anywhere)
{
	if (weight(x, node, 0) > PLACES_MOST)
		return false;
	uint32_t end = place_add(p, (struct place){ .kind = PLACE_MATCH, .ends = true, .live = true });

	if (anywhere)
		end = build_anything(p, end);
	p->entry = build(p, x, node, end, 0);
	if (anywhere)
		p->entry = build_anything(p, p->entry);
	if (p->failed || p->entry == NO_PLACE)
		return false;
	places_mark(p);
	return !p->failed;
}

unsigned places_classes(const struct places *p, uint8_t class_of[256])
{
	bool border[257] = { [0] = true };
	unsigned classes = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->place[i].kind == PLACE_BYTES) {
			border[p->place[i].low] = true;
			border[p->place[i].high + 1] = true;
		}
	for (unsigned b = 0; b < 256; b++) {
		classes += border[b];
		class_of[b] = (uint8_t)(classes - 1);
	}
	return classes;
}
