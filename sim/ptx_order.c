/* sim/ptx_order.c - what is ordered before what in a cooperative launch, and accesses of global memory that are not
 * (PTX ISA manual, chapter 8, "Memory Consistency Model").
 *
 * Each warp has a clock, and knows of each other warp up to which time its accesses come before the warp's own. It
 * learns that at barriers of the block, and where it reads by an acquire, or by a relaxed load before a fence, what was
 * written by a release, or by a relaxed store behind a fence. Of each word of memory the last accesses are kept, writes
 * longer than reads: two race where one of them writes, neither comes before the other, and not both are strong and of
 * the same width. Lanes of a warp count as one here, but for fences, which hold for the lanes that do them.
 */
#include "sim/ptx_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4, PAGE_WORDS = 1024, MAX_WARPS = 4096 };

struct cell {
	uint32_t clock, line; /* clock 0: none */
	uint16_t warp;
	uint8_t mask, kind; /* its bytes; PTX_WRITES... */
};

struct page {
	uint64_t number; /* and 1 more; 0: none */
	struct cell (*word)[CELLS];
};

/* What a word that was released lets others know. */
struct released {
	uint64_t word; /* and 1 more; 0: none */
	uint32_t *known;
};

struct ptx_order {
	uint32_t n, each;                /* warps in all, in a block */
	uint32_t *now, *fenced, *loaded; /* [warp][of warp] */
	uint32_t *fenced_lanes;          /* [warp]: lanes that did a fence */
	bool *has_loaded;
	struct page *page;
	size_t pages, n_pages, last_page;
	struct released *released;
	size_t releases, n_released;
};

static uint64_t scatter(uint64_t key) { return key * UINT64_C(0x9e3779b97f4a7c15) >> 20; }

struct ptx_order *ptx_order_open(uint32_t blocks, uint32_t each)
{
	struct ptx_order *o = calloc(1, sizeof *o);

	if (!o || (uint64_t)blocks * each > MAX_WARPS) {
		free(o);
		return NULL;
	}
	const size_t n = (size_t)blocks * each;
	o->n = (uint32_t)n;
	o->each = each;
	o->now = calloc(n * n, sizeof *o->now);
	o->fenced = calloc(n * n, sizeof *o->fenced);
	o->loaded = calloc(n * n, sizeof *o->loaded);
	o->fenced_lanes = calloc(n, sizeof *o->fenced_lanes);
	o->has_loaded = calloc(n, sizeof *o->has_loaded);
	o->page = calloc(o->pages = 1024, sizeof *o->page);
	o->released = calloc(o->releases = 1024, sizeof *o->released);
	if (!o->now || !o->fenced || !o->loaded || !o->fenced_lanes || !o->has_loaded || !o->page || !o->released) {
		ptx_order_close(o);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		o->now[i * n + i] = 1;
	return o;
}

void ptx_order_close(struct ptx_order *o)
{
	if (!o)
		return;
	for (size_t i = 0; o->page && i < o->pages; i++)
		free(o->page[i].word);
	for (size_t i = 0; o->released && i < o->releases; i++)
		free(o->released[i].known);
	free(o->now);
	free(o->fenced);
	free(o->loaded);
	free(o->fenced_lanes);
	free(o->has_loaded);
	free(o->page);
	free(o->released);
	free(o);
}

/* --- who knows what */

static uint32_t *row(const struct ptx_order *o, uint32_t *of, uint32_t warp) { return of + (size_t)warp * o->n; }

static void join(const struct ptx_order *o, uint32_t *to, const uint32_t *from)
{
	for (uint32_t i = 0; i < o->n; i++)
		to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void copy(const struct ptx_order *o, uint32_t *to, const uint32_t *from) { memcpy(to, from, o->n * sizeof *to); }

static void advance(struct ptx_order *o, uint32_t warp) { row(o, o->now, warp)[warp]++; }

void ptx_order_barrier(struct ptx_order *o, uint32_t block)
{
	uint32_t *all = row(o, o->now, block * o->each);

	for (uint32_t i = 1; i < o->each; i++)
		join(o, all, row(o, o->now, block * o->each + i));
	for (uint32_t i = 1; i < o->each; i++)
		copy(o, row(o, o->now, block * o->each + i), all);
	for (uint32_t i = 0; i < o->each; i++)
		advance(o, block * o->each + i);
}

void ptx_order_fence(struct ptx_order *o, uint32_t warp, uint32_t lanes)
{
	if (o->has_loaded[warp])
		join(o, row(o, o->now, warp), row(o, o->loaded, warp));
	o->has_loaded[warp] = false;
	memset(row(o, o->loaded, warp), 0, o->n * sizeof *o->loaded);
	copy(o, row(o, o->fenced, warp), row(o, o->now, warp));
	o->fenced_lanes[warp] |= lanes;
	advance(o, warp);
}

static struct released *find_released(struct released *table, size_t n, uint64_t word)
{
	size_t i = scatter(word) % n;

	while (table[i].word && table[i].word != word + 1)
		i = i + 1 == n ? 0 : i + 1;
	return &table[i];
}

/* The word's place, made where it is not there. NULL: no memory. */
static struct released *make_released(struct ptx_order *o, uint64_t word)
{
	struct released *r = find_released(o->released, o->releases, word);

	if (r->word)
		return r;
	if (2 * (o->n_released + 1) > o->releases) {
		struct released *grown = calloc(2 * o->releases, sizeof *grown);
		if (!grown)
			return NULL;
		for (size_t i = 0; i < o->releases; i++)
			if (o->released[i].word)
				*find_released(grown, 2 * o->releases, o->released[i].word - 1) = o->released[i];
		free(o->released);
		o->released = grown;
		o->releases *= 2;
		r = find_released(o->released, o->releases, word);
	}
	if (!(r->known = calloc(o->n, sizeof *r->known)))
		return NULL;
	r->word = word + 1;
	o->n_released++;
	return r;
}

static void do_load(struct ptx_order *o, uint32_t warp, uint64_t word, bool acquires)
{
	const struct released *r = find_released(o->released, o->releases, word);

	if (!r->word)
		return;
	join(o, row(o, acquires ? o->now : o->loaded, warp), r->known);
	o->has_loaded[warp] |= !acquires;
}

/* A store ends what the word let others know before; what reads and writes at once goes on with it. */
static bool do_store(struct ptx_order *o, uint32_t warp, uint64_t word, const uint32_t *tells, bool goes_on)
{
	struct released *r = tells ? make_released(o, word) : find_released(o->released, o->releases, word);

	if (!r)
		return false;
	if (!goes_on && r->word)
		memset(r->known, 0, o->n * sizeof *r->known);
	if (tells)
		join(o, r->known, tells);
	return true;
}

bool ptx_order_sync(struct ptx_order *o, uint32_t warp, unsigned lane, uint64_t at, size_t bytes,
                    enum ptx_order_of order, bool loads, bool stores)
{
	const bool acquires = order == PTX_ACQUIRE || order == PTX_ACQUIRE_RELEASE,
		   releases = order == PTX_RELEASE || order == PTX_ACQUIRE_RELEASE;
	const uint32_t *tells = releases                                                 ? row(o, o->now, warp)
	                        : order != PTX_WEAK && o->fenced_lanes[warp] >> lane & 1 ? row(o, o->fenced, warp)
	                                                                                 : NULL;

	for (uint64_t word = at / 4; word * 4 < at + bytes; word++) {
		if (loads && order != PTX_WEAK)
			do_load(o, warp, word, acquires);
		if (stores && !do_store(o, warp, word, tells, loads))
			return false;
	}
	if (stores && releases)
		advance(o, warp);
	return true;
}

/* --- the last accesses of a word */

static struct page *find_page(struct page *table, size_t n, uint64_t number)
{
	size_t i = scatter(number) % n;

	while (table[i].number && table[i].number != number + 1)
		i = i + 1 == n ? 0 : i + 1;
	return &table[i];
}

static struct cell *find_word(struct ptx_order *o, uint64_t word, bool makes)
{
	const uint64_t number = word / PAGE_WORDS;
	struct page *p = &o->page[o->last_page];

	if (p->number != number + 1)
		p = find_page(o->page, o->pages, number);
	if (!p->number && !makes)
		return NULL;
	if (!p->number && 2 * (o->n_pages + 1) > o->pages) {
		struct page *grown = calloc(2 * o->pages, sizeof *grown);
		if (!grown)
			return NULL;
		for (size_t i = 0; i < o->pages; i++)
			if (o->page[i].number)
				*find_page(grown, 2 * o->pages, o->page[i].number - 1) = o->page[i];
		free(o->page);
		o->page = grown;
		o->pages *= 2;
		p = find_page(o->page, o->pages, number);
	}
	if (!p->number) {
		if (!(p->word = calloc(PAGE_WORDS, sizeof *p->word)))
			return NULL;
		p->number = number + 1;
		o->n_pages++;
	}
	o->last_page = (size_t)(p - o->page);
	return p->word[word % PAGE_WORDS];
}

bool ptx_order_is_written(struct ptx_order *o, uint64_t at)
{
	const struct cell *c = find_word(o, at / 4, false);
	bool is = false;

	for (unsigned i = 0; c && i < CELLS; i++)
		is |= c[i].clock && c[i].kind & PTX_WRITES;
	return is;
}

static bool is_before(const struct ptx_order *o, const struct cell *c, uint32_t warp)
{
	return c->warp == warp || o->now[(size_t)warp * o->n + c->warp] >= c->clock;
}

static bool may_race(const struct cell *a, const struct cell *b)
{
	const bool both_strong = a->kind & b->kind & PTX_STRONG && !((a->kind ^ b->kind) & PTX_WIDE);

	return a->mask & b->mask && (a->kind | b->kind) & PTX_WRITES && !both_strong;
}

/* Whether what races with the earlier one, from now on, races with the new one as well. */
static bool stands_for(const struct cell *new, const struct cell *c)
{
	return !(c->mask & ~new->mask) && (new->kind &PTX_WRITES || !(c->kind & PTX_WRITES)) &&
	       (!(new->kind &PTX_STRONG) || (c->kind & PTX_STRONG && !((c->kind ^ new->kind) & PTX_WIDE)));
}

/* Keeps the new one: in the place of one that it stands for, or else of a read. */
static void keep(const struct ptx_order *o, struct cell *c, const struct cell *new)
{
	struct cell *to = NULL;

	for (unsigned i = 0; i < CELLS; i++)
		if (c[i].clock && is_before(o, &c[i], new->warp) && stands_for(new, &c[i]))
			c[i].clock = 0;
	for (unsigned i = 0; i < CELLS; i++)
		if (!c[i].clock)
			to = &c[i];
	for (unsigned i = 0; i < CELLS && !to; i++)
		if (!(c[(i + new->clock) % CELLS].kind & PTX_WRITES))
			to = &c[(i + new->clock) % CELLS];
	*(to ? to : &c[new->clock % CELLS]) = *new;
}

static const char *tell(const struct ptx_order *o, const struct cell *c, char *text, size_t size)
{
	snprintf(text, size, "block %u, warp %u, line %u, %s it in this launch, and nothing orders the two",
	         c->warp / o->each, c->warp % o->each, c->line, c->kind & PTX_WRITES ? "wrote" : "read");
	return text;
}

const char *ptx_order_touch(struct ptx_order *o, uint32_t warp, uint64_t at, size_t bytes, unsigned kind, uint32_t line,
                            char *text, size_t size)
{
	for (uint64_t word = at / 4; word * 4 < at + bytes; word++) {
		const uint64_t begin = word * 4 > at ? 0 : at - word * 4,
			       end = word * 4 + 4 < at + bytes ? 4 : at + bytes - word * 4;
		const struct cell new = { .clock = row(o, o->now, warp)[warp],
			                  .line = line,
			                  .warp = (uint16_t)warp,
			                  .mask = (uint8_t)((1u << end) - (1u << begin)),
			                  .kind = (uint8_t)kind };
		struct cell *c = find_word(o, word, true);
		bool known = false;
		if (!c)
			return "no memory to tell whether it races";
		for (unsigned i = 0; i < CELLS; i++) {
			if (!c[i].clock)
				continue;
			known |= c[i].clock == new.clock &&c[i].warp == new.warp &&c[i].mask == new.mask &&c[i].kind ==
			         new.kind;
			if (may_race(&c[i], &new) && !is_before(o, &c[i], warp))
				return tell(o, &c[i], text, size);
		}
		if (!known)
			keep(o, c, &new);
	}
	return NULL;
}
