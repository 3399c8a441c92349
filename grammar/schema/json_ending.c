/* grammar/schema/json_ending.c - whether a string that was begun can be ended, where several schemas look at it, or a
 * pattern and a length: each by itself may be satisfiable, and all together not.
 *
 * Both questions are answered by a search over the frames that a string can still become, breadth first. Without
 * lengths these are few, and the distance to the nearest end answers nearly always. Otherwise characters are counted,
 * too. What was found out is kept for all states on the way.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"
#include "grammar/regex/reach.h"

/* Frames that are looked at before a string is taken to have an end; distances. */
enum { SEARCH_MAX = 20000, DISTANCE_NONE = UINT32_MAX /* 0: unknown; others are one more */ };
enum { HOPE_UNKNOWN, HOPE_YES, HOPE_NO };

/* Frames that were met, in order, each with the one before it on its way (an index). */
struct queue {
	uint32_t *frame, *from;
	size_t n, frame_room, from_room;
	uint32_t *met; /* a hash table of indices into frame, plus 1 */
	size_t slots;
};

static size_t slot_of(const struct queue *q, uint32_t frame)
{
	size_t at = frame * 0x9e3779b1u & (q->slots - 1);

	while (q->met[at] && q->frame[q->met[at] - 1] != frame)
		at = (at + 1) & (q->slots - 1);
	return at;
}

static bool queue_grow(struct queue *q)
{
	uint32_t *old = q->met;
	size_t was = q->slots;

	if (2 * (q->n + 1) < was)
		return true;
	uint32_t *table = effort_calloc(was ? 2 * was : 64, sizeof *table);
	if (!table)
		return false;
	q->met = table;
	q->slots = was ? 2 * was : 64;
	for (size_t i = 0; i < q->n; i++)
		q->met[slot_of(q, q->frame[i])] = (uint32_t)i + 1;
	free(old);
	return true;
}

static bool queue_add(struct queue *q, uint32_t frame, uint32_t from)
{
	void *frames = q->frame, *froms = q->from;

	if (!frame || !effort_take(4) || !queue_grow(q))
		return false;
	size_t at = slot_of(q, frame);
	if (q->met[at])
		return true;
	if (!effort_array(&frames, &q->frame_room, q->n + 1, sizeof *q->frame))
		return false;
	q->frame = frames;
	if (!effort_array(&froms, &q->from_room, q->n + 1, sizeof *q->from))
		return false;
	q->from = froms;
	q->frame[q->n] = frame;
	q->from[q->n++] = from;
	q->met[at] = (uint32_t)q->n;
	return true;
}

static void queue_clear(struct queue *q)
{
	free(q->frame);
	free(q->from);
	free(q->met);
}

/* Bytes that no automaton of the group tells apart, and UTF-8 does not. */
static const uint8_t *classes_of(struct json_machine *m, struct group *g)
{
	static const uint8_t utf8[] = { 0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4, 0xf5 };
	const struct schema *s = m->schema;
	bool border[256] = { false };

	if (g->class_of || !(g->class_of = effort_malloc(256)))
		return g->class_of;
	for (size_t i = 0; i < sizeof utf8; i++)
		border[utf8[i]] = true;
	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = s->node[g->node[i]].texts;
		for (uint32_t k = 0; k < p.n; k++)
			automaton_borders(s->automaton[s->list[p.at + k]], border);
	}
	g->class_of[0] = 0;
	for (unsigned b = 1; b < 256; b++)
		g->class_of[b] = (uint8_t)(g->class_of[b - 1] + border[b]);
	return g->class_of;
}

/* The frame after one more byte of the string's value; counts: with its length. False: it is dead. */
static bool advance(const struct json_machine *m, struct frame *f, uint8_t byte, bool counts)
{
	uint32_t *rest = frame_rest(m, f);
	struct text_state t = { .utf8 = rest[STRING_TEXT] };
	enum text_event e = text_byte(&t, byte);

	if (e == TEXT_DEAD)
		return false;
	rest[STRING_TEXT] = t.utf8;
	string_feed(m, f, &byte, 1);
	if (counts && e == TEXT_CHARACTER)
		string_count(m, f);
	return group_alive(m, frame_group(m, f), &(struct facts){ .failed = frame_failed(f) });
}

static bool load(const struct interner *t, uint32_t number, struct frame *f)
{
	const uint32_t *w = interner_get(t, number, &f->n);

	memcpy(f->w, w, f->n * sizeof *w);
	f->failed = false;
	return true;
}

static uint32_t bare_of(struct json_machine *m, const struct frame *f)
{
	struct frame bare;
	struct endings *e = &m->endings;
	void *of = e->of;
	size_t had = e->of_room;

	memcpy(bare.w, f->w, f->n * sizeof *f->w);
	bare.n = f->n;
	frame_rest(m, &bare)[STRING_COUNT] = 0;
	uint32_t number = interner_add(&e->bare, bare.w, bare.n, NULL);
	if (!number || !effort_array(&of, &e->of_room, (size_t)number + 1, sizeof *e->of)) {
		m->machine.failed = true;
		return 0;
	}
	e->of = of;
	if (e->of_room > had)
		memset(e->of + had, 0, (e->of_room - had) * sizeof *e->of);
	return number;
}

static uint32_t whole_of(struct json_machine *m, const struct frame *f)
{
	struct endings *e = &m->endings;
	void *hope = e->hope;
	size_t had = e->hope_room;
	uint32_t number = interner_add(&e->whole, f->w, f->n, NULL);

	if (!number || !effort_array(&hope, &e->hope_room, (size_t)number + 1, 1)) {
		m->machine.failed = true;
		return 0;
	}
	e->hope = hope;
	if (e->hope_room > had)
		memset(e->hope + had, 0, e->hope_room - had);
	return number;
}

/* All frames that can follow one by a byte; counts: with its length. False: no memory. */
static bool follow(struct json_machine *m, struct queue *q, size_t from, bool counts)
{
	struct frame f, next;
	int last = -1;

	load(counts ? &m->endings.whole : &m->endings.bare, q->frame[from], &f);
	const uint8_t *class_of = classes_of(m, &m->group[f.w[1]]);
	for (unsigned b = 0; b < 256 && class_of; b++) {
		if (class_of[b] == last)
			continue;
		last = class_of[b];
		memcpy(next.w, f.w, f.n * sizeof *f.w);
		next.n = f.n;
		if (advance(m, &next, (uint8_t)b, counts) &&
		    !queue_add(q, counts ? whole_of(m, &next) : bare_of(m, &next), (uint32_t)from))
			return false;
	}
	return class_of != NULL;
}

static bool may_end(struct json_machine *m, uint32_t number, bool counts)
{
	struct frame f;

	load(counts ? &m->endings.whole : &m->endings.bare, number, &f);
	return frame_rest(m, &f)[STRING_TEXT] == 0 && string_may_end(m, &f, counts);
}

/* ---- without lengths */

/* How many bytes it takes at least to an end, plus 1. Bytes are as many as characters, or more: where that matters,
 * characters are counted. */
static uint32_t search_distance(struct json_machine *m, uint32_t number)
{
	struct queue q = { 0 };
	uint32_t distance = DISTANCE_NONE;
	bool ok = queue_add(&q, number, 0);

	for (size_t i = 0; ok && i < q.n && distance == DISTANCE_NONE; i++) {
		uint32_t steps = 1;
		for (size_t at = i; at; at = q.from[at])
			steps++;
		if (q.n > SEARCH_MAX || may_end(m, q.frame[i], false))
			distance = steps;
		else if (m->endings.of[q.frame[i]].distance != DISTANCE_NONE)
			ok = follow(m, &q, i, false);
		for (size_t at = i; distance != DISTANCE_NONE; at = q.from[at]) {
			m->endings.of[q.frame[at]].distance = distance - --steps;
			if (!at)
				break;
		}
	}
	for (size_t i = 0; ok && distance == DISTANCE_NONE && i < q.n; i++)
		m->endings.of[q.frame[i]].distance = DISTANCE_NONE;
	queue_clear(&q);
	m->machine.failed |= !ok;
	return distance;
}

static uint32_t distance_of(struct json_machine *m, uint32_t bare)
{
	if (!bare)
		return DISTANCE_NONE;
	return m->endings.of[bare].distance ? m->endings.of[bare].distance : search_distance(m, bare);
}

/* ---- with lengths */

static bool search(struct json_machine *m, uint32_t number)
{
	struct queue q = { 0 };
	uint8_t hope = HOPE_NO;
	bool ok = queue_add(&q, number, 0);

	for (size_t i = 0; ok && i < q.n && hope == HOPE_NO; i++) {
		uint8_t known = m->endings.hope[q.frame[i]];
		if (known == HOPE_YES || q.n > SEARCH_MAX || may_end(m, q.frame[i], true))
			hope = HOPE_YES;
		else if (known == HOPE_UNKNOWN)
			ok = follow(m, &q, i, true);
		for (size_t at = i; hope == HOPE_YES; at = q.from[at]) {
			m->endings.hope[q.frame[at]] = HOPE_YES;
			if (!at)
				break;
		}
	}
	for (size_t i = 0; ok && hope == HOPE_NO && i < q.n; i++)
		m->endings.hope[q.frame[i]] = HOPE_NO;
	queue_clear(&q);
	m->machine.failed |= !ok;
	return ok && hope == HOPE_YES;
}

static bool whole_can_succeed(struct json_machine *m, const struct frame *f)
{
	uint32_t number = whole_of(m, f);

	if (!number)
		return false;
	uint8_t known = m->endings.hope[number];
	return known == HOPE_UNKNOWN ? search(m, number) : known == HOPE_YES;
}

/* The lengths that all nodes which have not failed allow together. */
static struct bounds lengths_of(const struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);
	struct bounds all = { 0, COUNT_ANY };

	for (uint32_t i = 0; i < g->n; i++) {
		const struct bounds *b = &m->schema->node[g->node[i]].length;
		if (bit(frame_failed(f), i))
			continue;
		all.min = b->min > all.min ? b->min : all.min;
		all.max = b->max < all.max ? b->max : all.max;
	}
	return all;
}

bool string_can_succeed(struct json_machine *m, const struct frame *frame)
{
	struct frame f;

	memcpy(f.w, frame->w, frame->n * sizeof *f.w);
	f.n = frame->n;
	const struct group *g = frame_group(m, &f);
	if (!group_alive(m, g, &(struct facts){ .failed = frame_failed(&f) }))
		return false;
	if (!g->joint)
		return true;
	if (g->mixed)
		return whole_can_succeed(m, &f);
	uint32_t distance = distance_of(m, bare_of(m, &f)), count = frame_rest(m, &f)[STRING_COUNT];
	if (distance == DISTANCE_NONE)
		return false;
	/* Characters to the end: at most as many as bytes, and if it has one, at least one. */
	const struct bounds b = lengths_of(m, &f);
	uint32_t max = distance - 1, min = max > 0;
	if (count + min >= b.min && (b.max == COUNT_ANY || count + max <= b.max))
		return true;
	return whole_can_succeed(m, &f);
}

static uint32_t step(void *user, uint32_t bare, uint8_t byte)
{
	struct json_machine *m = user;
	struct frame f;

	load(&m->endings.bare, bare, &f);
	if (!advance(m, &f, byte, false))
		return 0;
	uint32_t next = bare_of(m, &f);
	return distance_of(m, next) == DISTANCE_NONE ? 0 : next;
}

/* How far the characters of a class lead, and how far at most it is to the end from there. */
static void find_easy(struct json_machine *m, uint32_t bare, enum easy class)
{
	struct reach r = { .step = step, .user = m };
	struct frame f;
	uint32_t farthest = 0;

	load(&m->endings.bare, bare, &f);
	r.class_of = classes_of(m, &m->group[f.w[1]]);
	uint32_t reach = r.class_of ? reach_from(&r, bare, class) : 0;
	for (unsigned i = 0; i < r.n; i++) {
		uint32_t distance = distance_of(m, r.state[i]);
		farthest = distance > farthest ? distance : farthest;
	}
	m->endings.of[bare].easy[class].reach = reach;
	m->endings.of[bare].easy[class].farthest = farthest;
	m->endings.of[bare].easy[class].known = true;
}

static uint32_t step_whole(void *user, uint32_t whole, uint8_t byte)
{
	struct json_machine *m = user;
	struct frame f;

	load(&m->endings.whole, whole, &f);
	return advance(m, &f, byte, true) && string_can_succeed(m, &f) ? whole_of(m, &f) : 0;
}

/* Where what follows depends on the length so far. */
static uint32_t reach_whole(struct json_machine *m, struct frame *f, enum easy class)
{
	struct reach r = { .step = step_whole, .user = m, .class_of = classes_of(m, &m->group[f->w[1]]) };
	uint32_t whole = whole_of(m, f);

	return whole && r.class_of ? reach_from(&r, whole, class) : 0;
}

uint32_t string_can_succeed_for(struct json_machine *m, const struct frame *frame, enum easy class)
{
	struct frame f;

	memcpy(f.w, frame->w, frame->n * sizeof *f.w);
	f.n = frame->n;
	uint32_t count = frame_rest(m, &f)[STRING_COUNT], bare = bare_of(m, &f);
	const struct bounds b = lengths_of(m, &f);
	if (!bare)
		return 0;
	if (frame_group(m, &f)->mixed || count < b.min)
		return reach_whole(m, &f, class);
	if (!m->endings.of[bare].easy[class].known)
		find_easy(m, bare, class);
	uint32_t reach = m->endings.of[bare].easy[class].reach, far = m->endings.of[bare].easy[class].farthest - 1;
	if (b.max == COUNT_ANY)
		return reach;
	uint32_t left = b.max > count + far ? b.max - count - far : 0;
	return reach < left ? reach : left;
}

void endings_clear(struct endings *e)
{
	interner_clear(&e->whole);
	interner_clear(&e->bare);
	free(e->hope);
	free(e->of);
}
