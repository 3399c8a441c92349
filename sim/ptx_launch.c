/* sim/ptx_launch.c - runs a launch: block after block, or all at once; barriers, whose turn it is. See sim/ptx.h. */
#include <stdlib.h>
#include <string.h>

#include "sim/ptx_warp.h"

enum { MAX_SLICE = 96, MAX_STEPS = 1 << 30, MAX_QUIET = 1 << 26 /* steps without a store */ };

static uint64_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

/* --- a block */

static void fill(struct ptx_warp *w, uint32_t reg, uint64_t value, bool lanes)
{
	for (unsigned l = 0; l < PTX_LANES; l++)
		w->reg[(size_t)reg * PTX_LANES + l] = value + (lanes ? l : 0);
	w->defined[reg] = UINT32_MAX;
}

static uint32_t blocks_y(const struct ptx_run *run) { return run->blocks_y ? run->blocks_y : 1; }
static uint32_t blocks_z(const struct ptx_run *run) { return run->blocks_z ? run->blocks_z : 1; }

static void begin_block(struct ptx_block *b, uint32_t number)
{
	const uint32_t layer = b->run->blocks * blocks_y(b->run), each = layer * blocks_z(b->run), here = number % each;

	b->number = number;
	b->card = number / each;
	b->epoch = 1;
	memset(b->byte, 0, b->touched * sizeof *b->byte);
	b->touched = 0;
	for (uint32_t i = 0; i < b->n_warps; i++) {
		struct ptx_warp *w = &b->warp[i];
		memset(w->defined, 0, b->t->first_constant * sizeof *w->defined);
		memset(w->recent, 0, sizeof w->recent);
		memset(&w->poll, 0, sizeof w->poll);
		w->at = b->entry->first;
		w->depth = 0;
		w->number = i;
		w->met = 1;
		w->waited = false;
		w->copies.n = w->copies.group = 0;
		w->state = PTX_RUNS;
		fill(w, PTX_TID_X, (uint64_t)i * PTX_LANES, true);
		fill(w, PTX_CTAID_X, here % b->run->blocks, false);
		fill(w, PTX_NCTAID_X, b->run->blocks, false);
		fill(w, PTX_NTID_X, b->run->threads, false);
		fill(w, PTX_CTAID_Y, here % layer / b->run->blocks, false);
		fill(w, PTX_NCTAID_Y, blocks_y(b->run), false);
		fill(w, PTX_CTAID_Z, here / layer, false);
		fill(w, PTX_LANEID, 0, true);
	}
}

/* All that have not ended wait: then none may have ended. */
static bool barrier(struct ptx_block *b)
{
	for (unsigned i = 0; i < b->n_warps; i++)
		if (b->warp[i].state == PTX_ENDED)
			return ptx_trap(b, &b->warp[i], -1, "this warp has ended and others wait at a barrier");
	for (unsigned i = 0; i < b->n_warps; i++)
		b->warp[i].state = PTX_RUNS;
	b->epoch++;
	return true;
}

static unsigned count(const struct ptx_block *b, enum ptx_state state)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->n_warps; i++)
		n += b->warp[i].state == state;
	return n;
}

static bool run_block(struct ptx_block *b, uint64_t *seed)
{
	for (uint64_t steps = 0; count(b, PTX_ENDED) < b->n_warps;) {
		if (!count(b, PTX_RUNS) && !barrier(b))
			return false;
		struct ptx_warp *w = &b->warp[random_next(seed) % b->n_warps];
		uint64_t slice = 1 + random_next(seed) % MAX_SLICE, left = slice;
		if (!ptx_run_slice(b, w, &left))
			return false;
		steps += slice - left;
		if (steps > MAX_STEPS)
			return ptx_trap(b, w, -1, "it does not end");
	}
	return true;
}

/* Constants are what they are, whatever the block. */
static bool make_warps(struct ptx_block *b)
{
	for (unsigned i = 0; i < b->n_warps; i++) {
		struct ptx_warp *w = &b->warp[i];
		w->reg = malloc((size_t)b->t->n_registers * PTX_LANES * sizeof *w->reg);
		w->defined = malloc((size_t)b->t->n_registers * sizeof *w->defined);
		if (!w->reg || !w->defined)
			return false;
		for (uint32_t k = 0; k < b->t->n_constants; k++)
			fill(w, b->t->first_constant + k, b->t->constant[k], false);
	}
	return true;
}

static bool make_block(struct ptx_block *b)
{
	b->warp = calloc(b->n_warps, sizeof *b->warp);
	b->shared = calloc(1, b->run->shared_bytes + 1);
	b->byte = calloc(b->run->shared_bytes + 1, sizeof *b->byte);
	return (b->warp && b->shared && b->byte && make_warps(b)) ||
	       error_set(b->err, ERROR_MEMORY, "no memory to simulate a launch");
}

static void free_block(struct ptx_block *b)
{
	for (unsigned i = 0; b->warp && i < b->n_warps; i++) {
		free(b->warp[i].reg);
		free(b->warp[i].defined);
		free(b->warp[i].copies.copy);
	}
	free(b->warp);
	free(b->shared);
	free(b->byte);
}

/* --- one block after another: from a random one on, forwards or backwards */

static bool run_blocks(const struct ptx_block *like, uint32_t n)
{
	struct ptx_block b = *like;
	uint64_t seed = b.run->seed * 2 + 1;
	uint32_t first = (uint32_t)(random_next(&seed) % n);
	bool down = random_next(&seed) & 1, ok = make_block(&b);

	for (uint32_t i = 0; i < n && ok; i++) {
		begin_block(&b, (first + (down ? n - i : i)) % n);
		ok = run_block(&b, &seed);
	}
	free_block(&b);
	return ok;
}

/* --- all at once */

static bool may_run(const struct ptx_together *all, struct ptx_warp *w)
{
	if (w->state == PTX_POLLS && w->poll.version != all->version)
		w->state = PTX_RUNS;
	return w->state == PTX_RUNS;
}

/* From a random warp on the first that may run; slow, a block that a seed makes wait, is passed over mostly. */
static struct ptx_warp *pick(struct ptx_together *all, uint32_t slow, uint64_t *seed, struct ptx_block **of)
{
	const uint32_t each = all->block->n_warps, n = all->n * each;
	const uint64_t random = random_next(seed);
	const bool pass = random >> 24 & 7;
	struct ptx_warp *last = NULL;
	uint32_t at = (uint32_t)(random % n);

	for (uint32_t i = 0; i < n; i++, at = at + 1 == n ? 0 : at + 1) {
		struct ptx_block *b = &all->block[at / each];
		struct ptx_warp *w = &b->warp[at % each];
		if (!may_run(all, w))
			continue;
		*of = b;
		last = w;
		if (at / each != slow || !pass)
			break;
	}
	return last;
}

/* A block all of whose warps wait or have ended. */
static bool settle(struct ptx_block *b)
{
	if (count(b, PTX_RUNS) || count(b, PTX_POLLS) || count(b, PTX_ENDED) == b->n_warps)
		return true;
	b->together->last_change = b->run->instructions;
	ptx_order_barrier(b->together->order, b->number);
	return barrier(b);
}

static bool run_slices(struct ptx_together *all)
{
	struct ptx_run *run = all->block->run;
	uint64_t seed = run->seed * 2 + 1;
	const uint32_t slow = (uint32_t)(random_next(&seed) % all->n);
	struct ptx_block *b = NULL;

	all->last_change = run->instructions;
	for (;;) {
		struct ptx_warp *w = pick(all, slow, &seed, &b);
		uint64_t slice = 1 + random_next(&seed) % MAX_SLICE;
		if (!w) {
			for (uint32_t i = 0; i < all->n; i++)
				if (count(&all->block[i], PTX_ENDED) < all->block[i].n_warps)
					return ptx_poll_hangs(all);
			return true;
		}
		if (!ptx_run_slice(b, w, &slice) || (w->state != PTX_RUNS && !settle(b)))
			return false;
		if (run->instructions - all->last_change > MAX_QUIET)
			return ptx_trap(b, w, -1, "it does not end: nothing is written any more");
	}
}

static bool run_together(const struct ptx_block *like, uint32_t n)
{
	struct ptx_together *all = calloc(1, sizeof *all);
	bool ok =
		all && (all->block = calloc(n, sizeof *all->block)) && (all->order = ptx_order_open(n, like->n_warps));

	if (!ok)
		error_set(like->err, ERROR_MEMORY, "no memory to simulate a launch of %u blocks of %u warps at once", n,
		          like->n_warps);
	for (uint32_t i = 0; ok && i < n; i++) {
		struct ptx_block *b = &all->block[all->n++];
		*b = *like;
		b->together = all;
		ok = make_block(b);
		if (ok)
			begin_block(b, i);
	}
	ok = ok && run_slices(all);
	for (uint32_t i = 0; all && i < all->n; i++)
		free_block(&all->block[i]);
	if (all) {
		ptx_order_close(all->order);
		free(all->block);
	}
	free(all);
	return ok;
}

bool ptx_text_run(const struct ptx_text *t, const struct ptx_memory *m, struct ptx_run *run, struct error *err)
{
	const struct ptx_function *entry = ptx_text_entry(t, run->entry);
	struct error trapped = { 0 };
	const struct ptx_block b = {
		.t = t, .entry = entry, .memory = m, .run = run, .n_warps = run->threads / PTX_LANES, .err = &trapped
	};
	const uint64_t layer = (uint64_t)run->blocks * blocks_y(run),
		       n = layer > UINT32_MAX ? 0 : layer * blocks_z(run) * (run->cards ? run->cards : 1);

	if (!entry || (run->cards > 1 && !run->cooperative) || !n || n > UINT32_MAX || !b.n_warps ||
	    run->threads % PTX_LANES || run->threads > entry->threads || b.n_warps > 32)
		return error_set(err, ERROR_ARGUMENT,
		                 "a launch of %u blocks of %u threads is impossible, or not simulated", run->blocks,
		                 run->threads);
	bool ok = run->cooperative ? run_together(&b, (uint32_t)n) : run_blocks(&b, (uint32_t)n);
	return ok || error_set(err, trapped.code, "%s", trapped.text);
}
