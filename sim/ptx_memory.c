/* sim/ptx_memory.c - what PTX loads and stores: which memory there is, and who may touch what when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/ptx_warp.h"

struct ptx_memory *ptx_memory_open(void) { return calloc(1, sizeof(struct ptx_memory)); }

void ptx_memory_close(struct ptx_memory *m)
{
	if (m)
		free(m->region);
	free(m);
}

bool ptx_memory_add(struct ptx_memory *m, void *base, size_t bytes)
{
	if (!array_grow((void **)&m->region, &m->capacity, m->n + 1, sizeof *m->region))
		return false;
	m->region[m->n++] = (struct ptx_region){ base, bytes, -1 };
	return true;
}

void ptx_memory_own(struct ptx_memory *m, const void *base, int card)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->region[i].base == base)
			m->region[i].card = card;
}

bool ptx_memory_remove(struct ptx_memory *m, const void *base)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->region[i].base == base) {
			m->region[i] = m->region[--m->n];
			return true;
		}
	return false;
}

static const struct kind {
	uint8_t bytes;
	bool store, is_signed, atomic; /* atomic: a load, too */
} kinds[] = {
	[PTX_DO_LOAD_32] = { .bytes = 4 },
	[PTX_DO_LOAD_U8] = { .bytes = 1 },
	[PTX_DO_LOAD_S8] = { .bytes = 1, .is_signed = true },
	[PTX_DO_LOAD_U16] = { .bytes = 2 },
	[PTX_DO_LOAD_64] = { .bytes = 8 },
	[PTX_DO_STORE_32] = { .bytes = 4, .store = true },
	[PTX_DO_STORE_16] = { .bytes = 2, .store = true },
	[PTX_DO_STORE_8] = { .bytes = 1, .store = true },
	[PTX_DO_STORE_64] = { .bytes = 8, .store = true },
	[PTX_DO_ATOM_ADD] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_ADD_64] = { .bytes = 8, .store = true, .atomic = true },
	[PTX_DO_ATOM_MIN_S] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_MAX_S] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_MIN_U] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_MAX_U] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_AND] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_OR] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_EXCHANGE] = { .bytes = 4, .store = true, .atomic = true },
	[PTX_DO_ATOM_SWAP] = { .bytes = 4, .store = true, .atomic = true },
};

static bool is_atomic(unsigned operation)
{
	return operation < sizeof kinds / sizeof *kinds && kinds[operation].atomic;
}

bool ptx_is_access(unsigned operation) { return operation < sizeof kinds / sizeof *kinds && kinds[operation].bytes; }

/* --- global memory */

static uint8_t *find(struct ptx_block *b, uint64_t address, size_t bytes)
{
	const struct ptx_memory *m = b->memory;

	for (size_t i = 0; i <= m->n; i++) {
		size_t k = i ? i - 1 : b->last_region;
		if (k < m->n && address >= (uint64_t)(uintptr_t)m->region[k].base &&
		    address - (uint64_t)(uintptr_t)m->region[k].base <= m->region[k].bytes &&
		    m->region[k].bytes - (address - (uint64_t)(uintptr_t)m->region[k].base) >= bytes) {
			b->last_region = k;
			return m->region[k].base + (address - (uint64_t)(uintptr_t)m->region[k].base);
		}
	}
	return NULL;
}

static size_t slot_of(uint64_t word) { return (size_t)(word * UINT64_C(0x9e3779b97f4a7c15) >> 54) % PTX_RECENT; }

static void remember(struct ptx_warp *w, unsigned lane, uint64_t address, size_t bytes)
{
	for (uint64_t word = address / 4; word * 4 < address + bytes; word++) {
		size_t slot = slot_of(word);
		w->recent[slot].word = word;
		w->recent[slot].met = w->met;
		w->recent[slot].lane = lane;
	}
}

/* Whether another lane stored there since the lanes last met. */
static bool is_recent(const struct ptx_warp *w, unsigned lane, uint64_t address, size_t bytes)
{
	bool is = false;

	for (uint64_t word = address / 4; word * 4 < address + bytes; word++) {
		size_t slot = slot_of(word);
		is |= w->recent[slot].met == w->met && w->recent[slot].word == word && w->recent[slot].lane != lane;
	}
	return is;
}

/* --- shared memory */

static void note_read(struct ptx_byte *p, const struct ptx_block *b, const struct ptx_warp *w, unsigned lane)
{
	const bool now = p->read_epoch == b->epoch;

	if (!now || p->reader != w->number || p->read_met != w->met)
		p->read_lanes = 0;
	p->readers = (now ? p->readers : 0) | 1u << w->number;
	p->read_epoch = b->epoch;
	p->read_met = w->met;
	p->reader = (uint8_t)w->number;
	p->read_lanes |= 1u << lane;
}

/* Atomics of several warps need no barrier between. */
static const char *byte_trouble(struct ptx_byte *p, const struct ptx_block *b, const struct ptx_warp *w, unsigned lane,
                                bool store, bool atomic)
{
	const bool others = p->read_epoch == b->epoch && p->readers & ~(1u << w->number);
	const bool before = p->is_written && p->written_epoch == b->epoch;

	if ((!store || atomic) && !p->is_written)
		return "a shared byte is read that nothing wrote";
	if (before && p->writer != w->number && !(atomic && p->by_atomics))
		return "another warp wrote that shared byte, with no barrier between";
	if (store && others)
		return "another warp read that shared byte, with no barrier between";
	if (!store && p->writer == w->number && p->written_epoch == b->epoch && p->written_met == w->met &&
	    p->lane != lane)
		return "another lane stored that shared byte since the lanes met";
	if (store && p->read_epoch == b->epoch && p->reader == w->number && p->read_met == w->met &&
	    p->read_lanes & ~(1u << lane))
		return "another lane read that shared byte since the lanes met";
	if (!store)
		note_read(p, b, w, lane);
	else
		*p = (struct ptx_byte){ .written_epoch = b->epoch,
			                .written_met = w->met,
			                .writer = (uint8_t)w->number,
			                .lane = (uint8_t)lane,
			                .by_atomics = atomic && (!before || p->by_atomics),
			                .is_written = 1 };
	return NULL;
}

/* What becomes of a byte depends on its record alone, and the bytes of an access have like ones almost always. Word by
 * word: sanitizers watch whole records for longer than all the rest takes. */
static const char *shared_trouble(const struct ptx_block *b, const struct ptx_warp *w, unsigned lane, uint64_t at,
                                  size_t bytes, bool store, bool atomic)
{
	struct ptx_byte *p = &b->byte[at];
	uint64_t was0 = 0, was1 = 0, was2 = 0, was3 = 0;

	for (size_t i = 0; i < bytes; i++, p++) {
		const uint64_t *now = p->word;
		const uint64_t now0 = now[0], now1 = now[1], now2 = now[2], now3 = now[3];

		if (i && now0 == was0 && now1 == was1 && now2 == was2 && now3 == was3) {
			p->word[0] = p[-1].word[0];
			p->word[1] = p[-1].word[1];
			p->word[2] = p[-1].word[2];
			p->word[3] = p[-1].word[3];
			continue;
		}
		was0 = now0, was1 = now1, was2 = now2, was3 = now3;
		const char *trouble = byte_trouble(p, b, w, lane, store, atomic);
		if (trouble)
			return trouble;
	}
	return NULL;
}

/* Behind find(): whether the memory is another card's. */
static bool is_elsewhere(const struct ptx_block *b)
{
	const int card = b->memory->region[b->last_region].card;

	return b->run->card && card >= 0 && card != b->run->card[b->card];
}

/* Whether a launch before this one may still write there, or read what is written. */
static bool is_too_early(const struct ptx_block *b, const struct ptx_warp *w, uint64_t at, bool store)
{
	return b->run->overlaps && !w->waited && (store || at - b->run->steady >= b->run->steady_bytes);
}

uint8_t *ptx_reach(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, unsigned lane, uint64_t at,
                   size_t bytes, bool store)
{
	const char *trouble = at % bytes ? "the address is not aligned" : NULL;
	uint8_t *p = NULL;
	char text[120];

	if (!trouble && s->shared) {
		const bool beyond = at > b->run->shared_bytes || b->run->shared_bytes - at < bytes;
		if (!beyond && b->touched < at + bytes)
			b->touched = at + bytes;
		trouble = beyond ? "the address is beyond the block's shared memory"
		                 : shared_trouble(b, w, lane, at, bytes, store, is_atomic(s->operation));
		p = b->shared + at;
	} else if (!trouble) {
		p = find(b, at, bytes);
		trouble = !p                              ? "no memory is there"
		          : !store && is_elsewhere(b)     ? "it is another card's memory"
		          : is_too_early(b, w, at, store) ? "the launch before it may not have ended"
		          : !store && s->order == PTX_WEAK && is_recent(w, lane, at, bytes)
		                  ? "another lane stored there since the lanes met"
		                  : NULL;
		if (store)
			remember(w, lane, at, bytes);
	}
	if (!trouble)
		return p;
	snprintf(text, sizeof text, "%s (address 0x%llx, %zu bytes)", trouble, (unsigned long long)at, bytes);
	ptx_trap(b, w, (int)lane, text);
	return NULL;
}

static uint64_t extend(const struct kind *k, uint64_t value)
{
	return k->is_signed ? (uint64_t)(int64_t)(int8_t)value : value;
}

/* Asks for bytes ahead: they must be there, and pieces of 16; or for a line. */
bool ptx_prefetch(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	const bool line = s->operation == PTX_DO_PREFETCH_LINE;

	for (unsigned l = 0; l < PTX_LANES; l++) {
		uint64_t at = w->reg[(size_t)s->s[0] * PTX_LANES + l] + (uint64_t)s->disp,
			 bytes = line ? 1 : w->reg[(size_t)s->s[1] * PTX_LANES + l];
		if (!(mask >> l & 1))
			continue;
		if (!line && (at % 16 || bytes % 16))
			return ptx_trap(b, w, (int)l, "what is asked for ahead is not pieces of 16 bytes");
		if (!find(b, at, bytes) || is_elsewhere(b))
			return ptx_trap(b, w, (int)l, "what is asked for ahead belongs to no memory of this card");
	}
	return true;
}

/* Lane after lane, as one of them must be first. Whether the word changed. */
static bool do_atomic(struct ptx_warp *w, const struct ptx_step *s, unsigned l, uint8_t *p)
{
	const uint64_t wide = w->reg[(size_t)s->s[1] * PTX_LANES + l];
	const uint32_t a = (uint32_t)wide;
	uint32_t old, new;

	if (s->operation == PTX_DO_ATOM_ADD_64) {
		uint64_t sum;
		memcpy(&sum, p, sizeof sum);
		sum += wide;
		memcpy(p, &sum, sizeof sum);
		return wide != 0;
	}
	memcpy(&old, p, sizeof old);
	switch (s->operation) {
	case PTX_DO_ATOM_ADD: new = old + a; break;
	case PTX_DO_ATOM_MIN_S: new = (int32_t)old < (int32_t)a ? old : a; break;
	case PTX_DO_ATOM_MAX_S: new = (int32_t)old > (int32_t)a ? old : a; break;
	case PTX_DO_ATOM_MIN_U: new = old < a ? old : a; break;
	case PTX_DO_ATOM_MAX_U: new = old > a ? old : a; break;
	case PTX_DO_ATOM_AND: new = old &a; break;
	case PTX_DO_ATOM_OR: new = old | a; break;
	case PTX_DO_ATOM_EXCHANGE: new = a; break;
	default: new = old == a ? (uint32_t)w->reg[(size_t)s->s[2] * PTX_LANES + l] : old; break;
	}
	memcpy(p, &new, sizeof new);
	if (s->d[0] != PTX_NO_REGISTER)
		w->reg[(size_t)s->d[0] * PTX_LANES + l] = old;
	return new != old;
}

/* The n words of a lane. */
static void do_words(struct ptx_warp *w, const struct ptx_step *s, const struct kind *k, unsigned l, uint8_t *p)
{
	for (unsigned i = 0; i < s->n; i++) {
		uint64_t value = 0;
		if (k->store) {
			memcpy(p + i * k->bytes, &w->reg[(size_t)s->s[1 + i] * PTX_LANES + l], k->bytes);
			continue;
		}
		memcpy(&value, p + i * k->bytes, k->bytes);
		w->reg[(size_t)s->d[i] * PTX_LANES + l] = extend(k, value) & s->mask;
	}
}

bool ptx_is_ordered(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, unsigned lane, uint64_t at,
                    size_t bytes, unsigned kind, bool loads)
{
	const uint32_t warp = b->number * b->n_warps + w->number;
	struct ptx_order *o = b->together->order;
	char text[100], all[160];
	const bool alone = b->run->cards > 1 && s->order != PTX_WEAK && !s->is_of_all;
	const char *trouble = alone ? "its order holds for one card, and the launch is on several"
	                            : ptx_order_touch(o, warp, at, bytes, kind, s->line, text, sizeof text);

	if (!trouble &&
	    !ptx_order_sync(o, warp, lane, at, bytes, (enum ptx_order_of)s->order, loads, kind & PTX_WRITES))
		trouble = "no memory to tell whether it races";
	if (!trouble)
		return true;
	snprintf(all, sizeof all, "%s (address 0x%llx, %zu bytes)", trouble, (unsigned long long)at, bytes);
	return ptx_trap(b, w, (int)lane, all);
}

/* Whether no two lanes store to the same byte: a card would keep either. Most stores go upwards. */
static bool are_apart(const uint64_t *at, uint32_t mask, size_t bytes)
{
	const int max = mask ? 31 - __builtin_clz(mask) : 0;
	bool upwards = true;
	int last = -1;

	for (int l = 0; l <= max; l++)
		if (mask >> l & 1) {
			upwards &= last < 0 || at[l] >= at[last] + bytes;
			last = l;
		}
	for (int l = 0; !upwards && l <= max; l++)
		for (int k = 0; mask >> l & 1 && k < l; k++)
			if (mask >> k & 1 && at[l] < at[k] + bytes && at[k] < at[l] + bytes)
				return false;
	return true;
}

bool ptx_access(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	const struct kind *k = &kinds[s->operation];
	const uint64_t *base = w->reg + (size_t)s->s[0] * PTX_LANES;
	const size_t bytes = (size_t)k->bytes * s->n;
	const unsigned kind = (k->store ? PTX_WRITES : 0u) | (s->order != PTX_WEAK ? PTX_STRONG : 0u) |
	                      (k->bytes == 8 ? PTX_WIDE : 0u);
	const bool loads = !k->store || k->atomic;

	/* Relaxed stores to one word are in some order; weak ones are a race. */
	if (!loads && s->order == PTX_WEAK && !are_apart(base, mask, bytes))
		return ptx_trap(b, w, -1, "two lanes of a store have the same place");
	for (unsigned l = 0; l < PTX_LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		const uint64_t at = base[l] + (uint64_t)s->disp;
		bool changes = k->store;
		uint8_t *p = ptx_reach(b, w, s, l, at, bytes, k->store);
		if (!p || (b->together && !s->shared && !ptx_is_ordered(b, w, s, l, at, bytes, kind, loads)))
			return false;
		if (k->atomic)
			changes = do_atomic(w, s, l, p);
		else
			do_words(w, s, k, l, p);
		if (!b->together)
			continue;
		if (s->order != PTX_WEAK && !k->store)
			ptx_poll_load(b, w, at, bytes, p);
		else
			ptx_poll_other(b, w, s->shared ? 0 : at, s->shared ? 0 : bytes, changes);
	}
	return true;
}

/* Four matrices of 8 rows of 16 bytes: lane l has the address of row l % 8 of matrix l / 8, and gets of each matrix
 * word l % 4 of row l / 4. */
bool ptx_load_matrix(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s)
{
	enum { ROWS = 8, WORDS = 4 };
	const uint64_t *base = w->reg + (size_t)s->s[0] * PTX_LANES;
	uint32_t row[PTX_LANES][WORDS];

	for (unsigned l = 0; l < PTX_LANES; l++) {
		const uint8_t *p = ptx_reach(b, w, s, l, base[l] + (uint64_t)s->disp, sizeof row[l], false);
		if (!p)
			return false;
		memcpy(row[l], p, sizeof row[l]);
	}
	for (unsigned l = 0; l < PTX_LANES; l++)
		for (unsigned m = 0; m < s->n; m++)
			w->reg[(size_t)s->d[m] * PTX_LANES + l] = row[ROWS * m + l / WORDS][l % WORDS];
	if (b->together)
		ptx_poll_other(b, w, 0, 0, false);
	return true;
}
