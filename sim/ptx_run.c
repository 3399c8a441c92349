/* sim/ptx_run.c - runs a launch: blocks, the turns of their warps, branches, barriers. See sim/ptx.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ptx_warp.h"

enum { MOST_TURN = 96, MOST_STEPS = 1 << 30 };

bool ptx_trap(const struct ptx_block *b, const struct ptx_warp *w, int lane, const char *why)
{
	const struct ptx_step *s = &b->t->step[w->at < b->t->n_steps ? w->at : b->t->n_steps - 1];
	char text[120], where[32] = "";

	if (lane >= 0)
		snprintf(where, sizeof where, ", lane %d", lane);
	return error_set(b->err, ERROR_DEVICE,
	                 "the simulated kernel trapped in block %u, warp %u%s, line %u, \"%s\": %s", b->number,
	                 w->number, where, s->line, ptx_text_line(b->t, s->line, text, sizeof text), why);
}

static uint64_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

/* --- a step */

static void define(struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	for (unsigned k = 0; k < 4; k++)
		if (s->d[k] != PTX_NO_REGISTER)
			w->defined[s->d[k]] |= mask;
}

static bool are_defined(const struct ptx_block *b, const struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	for (unsigned k = 0; k < PTX_SOURCES; k++)
		if (s->s[k] != PTX_NO_REGISTER && (w->defined[s->s[k]] & mask) != mask)
			return ptx_trap(b, w, __builtin_ctz(mask & ~w->defined[s->s[k]]),
			                "a register is read that nothing wrote");
	return true;
}

static bool branch(const struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	if (mask && mask != UINT32_MAX)
		return ptx_trap(b, w, -1, "only some lanes take the branch");
	w->at = mask ? (size_t)s->disp : w->at + 1;
	return true;
}

static bool control(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	if (s->operation == PTX_DO_BRANCH)
		return branch(b, w, s, mask);
	if (mask && mask != UINT32_MAX)
		return ptx_trap(b, w, -1, "only some lanes do this");
	if (!mask) {
		w->at++;
		return true;
	}
	w->met += s->operation == PTX_DO_BARRIER || s->operation == PTX_DO_MEET;
	w->waited |= s->operation == PTX_DO_WAIT_LAST;
	w->state = s->operation == PTX_DO_BARRIER  ? PTX_AT_BARRIER
	           : s->operation == PTX_DO_RETURN ? PTX_ENDED
	                                           : PTX_RUNS;
	w->at++;
	return true;
}

static bool is_control(unsigned operation) { return operation >= PTX_DO_BRANCH; }
static bool is_product(unsigned operation) { return operation >= PTX_DO_MMA_S8 && operation <= PTX_DO_MMA_BF16; }
static bool is_across(unsigned operation)
{
	return operation == PTX_DO_ANY || operation == PTX_DO_BUTTERFLY || operation == PTX_DO_FROM_LANE ||
	       is_product(operation);
}

static void load_param(const struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	uint64_t value = 0;

	memcpy(&value, b->run->params[s->disp], b->t->param[s->disp].bytes);
	for (unsigned l = 0; l < PTX_LANES; l++)
		if (mask >> l & 1)
			w->reg[(size_t)s->d[0] * PTX_LANES + l] = value & s->mask;
}

/* The lanes that carry a step out. False: trapped. */
static bool guard(const struct ptx_block *b, const struct ptx_warp *w, const struct ptx_step *s, uint32_t *mask)
{
	uint32_t is = 0;

	*mask = UINT32_MAX;
	if (s->guard == PTX_NO_REGISTER)
		return true;
	if (w->defined[s->guard] != UINT32_MAX)
		return ptx_trap(b, w, -1, "the predicate is one that nothing wrote");
	for (unsigned l = 0; l < PTX_LANES; l++)
		is |= (uint32_t)(w->reg[(size_t)s->guard * PTX_LANES + l] & 1) << l;
	*mask = s->guard_is_not ? ~is : is;
	return true;
}

static bool step(struct ptx_block *b, struct ptx_warp *w)
{
	const struct ptx_step *s = &b->t->step[w->at];
	uint32_t mask;

	if (!guard(b, w, s, &mask))
		return false;
	b->run->instructions++;
	if (is_control(s->operation))
		return control(b, w, s, mask);
	if (is_across(s->operation) && mask != UINT32_MAX)
		return ptx_trap(b, w, -1, "only some lanes do this");
	if (mask) {
		if (!are_defined(b, w, s, mask))
			return false;
		if (s->operation == PTX_DO_PARAM)
			load_param(b, w, s, mask);
		else if (is_product(s->operation))
			ptx_multiply(w, s, b->run->sums);
		else if (s->operation == PTX_DO_PREFETCH ? !ptx_prefetch(b, w, s, mask)
		         : ptx_is_access(s->operation)   ? !ptx_access(b, w, s, mask)
		                                         : !ptx_compute(w, s, mask))
			return b->err->code ? false : ptx_trap(b, w, -1, "the simulator does not do this");
		define(w, s, mask);
	}
	w->at++;
	return true;
}

/* --- blocks */

static void fill(struct ptx_warp *w, uint32_t reg, uint64_t value, bool lanes)
{
	for (unsigned l = 0; l < PTX_LANES; l++)
		w->reg[(size_t)reg * PTX_LANES + l] = value + (lanes ? l : 0);
	w->defined[reg] = UINT32_MAX;
}

static uint32_t blocks_y(const struct ptx_run *run) { return run->blocks_y ? run->blocks_y : 1; }

static void begin_block(struct ptx_block *b, uint32_t number)
{
	const struct ptx_text *t = b->t;

	b->number = number;
	b->turn = 1;
	memset(b->byte, 0, (b->run->shared_bytes + 1) * sizeof *b->byte);
	for (uint32_t i = 0; i < b->n_warps; i++) {
		struct ptx_warp *w = &b->warp[i];
		memset(w->defined, 0, t->n_registers * sizeof *w->defined);
		memset(w->recent, 0, sizeof w->recent);
		w->at = 0;
		w->number = i;
		w->met = 1;
		w->waited = false;
		w->state = PTX_RUNS;
		fill(w, t->special[0], (uint64_t)i * PTX_LANES, true);
		fill(w, t->special[1], number % b->run->blocks, false);
		fill(w, t->special[2], b->run->blocks, false);
		fill(w, t->special[3], b->run->threads, false);
		fill(w, t->special[4], number / b->run->blocks, false);
		fill(w, t->special[5], blocks_y(b->run), false);
		for (uint32_t k = 0; k < t->n_constants; k++)
			fill(w, t->first_constant + k, t->constant[k], false);
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
	b->turn++;
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
		uint64_t turn = 1 + random_next(seed) % MOST_TURN;
		for (; turn && w->state == PTX_RUNS; turn--, steps++) {
			if (w->at >= b->t->n_steps)
				return ptx_trap(b, w, -1, "it runs beyond the kernel's end");
			if (!step(b, w))
				return false;
		}
		if (steps > MOST_STEPS)
			return ptx_trap(b, w, -1, "it does not end");
	}
	return true;
}

static bool make_warps(struct ptx_block *b)
{
	for (unsigned i = 0; i < b->n_warps; i++) {
		b->warp[i].reg = malloc((size_t)b->t->n_registers * PTX_LANES * sizeof *b->warp->reg);
		b->warp[i].defined = malloc((size_t)b->t->n_registers * sizeof *b->warp->defined);
		if (!b->warp[i].reg || !b->warp[i].defined)
			return false;
	}
	return true;
}

static void free_block(struct ptx_block *b)
{
	for (unsigned i = 0; b->warp && i < b->n_warps; i++) {
		free(b->warp[i].reg);
		free(b->warp[i].defined);
	}
	free(b->warp);
	free(b->shared);
	free(b->byte);
}

/* From a random one on, forwards or backwards. */
static bool run_blocks(struct ptx_block *b)
{
	uint64_t seed = b->run->seed * 2 + 1;
	uint32_t n = b->run->blocks * blocks_y(b->run), first = (uint32_t)(random_next(&seed) % n);
	bool down = random_next(&seed) & 1;

	for (uint32_t i = 0; i < n; i++) {
		begin_block(b, (first + (down ? n - i : i)) % n);
		if (!run_block(b, &seed))
			return false;
	}
	return true;
}

bool ptx_text_run(const struct ptx_text *t, const struct ptx_memory *m, struct ptx_run *run, struct error *err)
{
	struct error trapped = { 0 };
	struct ptx_block b = { .t = t, .memory = m, .run = run, .n_warps = run->threads / PTX_LANES, .err = &trapped };

	if (!run->blocks || !b.n_warps || run->threads % PTX_LANES || run->threads > t->threads || b.n_warps > 32)
		return error_set(err, ERROR_ARGUMENT,
		                 "a launch of %u blocks of %u threads is impossible, or not simulated", run->blocks,
		                 run->threads);
	b.warp = calloc(b.n_warps, sizeof *b.warp);
	b.shared = calloc(1, run->shared_bytes + 1);
	b.byte = malloc((run->shared_bytes + 1) * sizeof *b.byte);
	bool ok = b.warp && b.shared && b.byte && make_warps(&b);
	if (!ok)
		error_set(&trapped, ERROR_MEMORY, "no memory to simulate a launch");
	ok = ok && run_blocks(&b);
	free_block(&b);
	return ok || error_set(err, trapped.code, "%s", trapped.text);
}
