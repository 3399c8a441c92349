/* jit/rdna/sched.c - list scheduling of straight runs: loads early and together, within a budget of registers.
 *
 * Owns: the order between instructions that are FIXED, and nothing else: no instruction is changed, none leaves its
 * run. Rules for editors: an order is legal when it keeps every edge of rsched_depend(); the heuristics only choose
 * among legal ones. An order that needs more registers than the budget and than the order it replaces is thrown away,
 * so that a kernel that could be allocated still can. Everything is linear in the run: runs have thousands.
 *
 * The instructions stay where they are until the allocator has agreed; the pass makes a list of their numbers, `order`.
 * Which registers they name comes from the lists of live.h, made once for all runs. The live ranges of the new order
 * differ from the old ones inside runs alone: what begins or ends in a run does so in every order of it, and what
 * crosses a loop's back edge does in every order, too. So walking a run's order sets the live ranges.
 */
#include <stdlib.h>

#include "jit/rdna/sched.h"

/* --- the pass */

static void find_pressure(struct sched *s)
{
	const struct rdna_live *v = &s->live;
	size_t n_ins = s->l->n_ins;
	memset(s->before, 0, (n_ins + 2) * sizeof *s->before);
	for (size_t r = 0; r < s->l->n_regs; r++) {
		const struct rdna_life *life = &v->reg[r];
		const struct rdna_lir_reg *g = &s->l->reg[r];
		unsigned named = g->n == 1 ? v->named[r] : (unsigned)__builtin_popcount(v->named[r]);
		struct held *h = &s->reg[r];
		h->named = g->cls == RDNA_CLASS_VGPR ? COUNTS(0, named) : COUNTS(named, 0);
		h->tuple = g->n > 1;
		if (named) {
			s->before[life->start + 1] += h->named;
			s->before[life->end + 1] -= h->named;
		}
	}
	for (size_t k = 1; k < n_ins + 2; k++)
		s->before[k] += s->before[k - 1];
}

/* Takes so many elements of a size from the memory at *at; with none there, only counts. */
static void *part(uint8_t **at, size_t *bytes, size_t n, size_t size)
{
	void *p = *at;
	size_t all = (n * size + 7) & ~(size_t)7;
	*bytes += all;
	if (p)
		*at += all;
	return p;
}

/* No run is longer than the kernel. */
static size_t share_memory(struct sched *s, uint8_t *at)
{
	size_t bytes = 0, n_ins = s->l->n_ins, words = s->live.n_words + SPECIALS;
	s->reg = part(&at, &bytes, s->l->n_regs, sizeof *s->reg);
	s->before = part(&at, &bytes, n_ins + 2, sizeof *s->before);
	s->word = part(&at, &bytes, words, sizeof *s->word);
	s->order = part(&at, &bytes, n_ins + 1, sizeof *s->order);
	s->node = part(&at, &bytes, n_ins, sizeof *s->node);
	s->by_rank = part(&at, &bytes, n_ins, sizeof *s->by_rank);
	s->by_height = part(&at, &bytes, n_ins, sizeof *s->by_height);
	for (unsigned k = 0; k < 2; k++) {
		s->may[k].bits = part(&at, &bytes, n_ins / 64 + 1, sizeof *s->may[k].bits);
		s->may[k].some = part(&at, &bytes, n_ins / 4096 + 1, sizeof *s->may[k].some);
	}
	return bytes;
}

static bool prepare(struct sched *s)
{
	if (s->l->failed || !rdna_live_find(&s->live, s->l))
		return false;
	s->memory = malloc(share_memory(s, NULL));
	if (!s->memory || !rsched_room(s, (void **)&s->edge, &s->edge_capacity, s->live.n_uses + 1, sizeof *s->edge))
		return false;
	share_memory(s, s->memory);
	s->edge[0] = (struct edge){ .to = NONE };
	find_pressure(s);
	return true;
}

static void clean(struct sched *s)
{
	free(s->memory);
	free(s->edge);
	free(s->cell);
	rdna_live_free(&s->live);
}

static void keep_order(struct sched *s, uint32_t from, uint32_t to)
{
	for (uint32_t at = from; at < to; at++) {
		s->order[at] = at;
		rsched_pass_over(s, at);
	}
}

/* Behind the last instruction is a mark that ends its run. */
static void schedule_all(struct sched *s)
{
	uint32_t n_ins = (uint32_t)s->l->n_ins;
	s->n_cells = 1; /* number 0 is of no run */
	memset(s->word, 0, (s->live.n_words + SPECIALS) * sizeof *s->word);
	rsched_begin_registers(s);
	for (uint32_t first = 0, end = 0; end < n_ins && !s->failed; first = end + 1) {
		for (end = first; !(s->live.marks[end] & RDNA_MARK_FIXED); end++)
			;
		s->first = first;
		s->n = end - first;
		if (s->n >= SHORTEST)
			rsched_schedule_run(s);
		else
			keep_order(s, first, end);
		if (end < n_ins)
			keep_order(s, end, end + 1);
	}
}

/* The instructions in the new order. */
static void reorder(const struct sched *s, struct rdna_lir_ins *to)
{
	for (size_t k = 0; k < s->l->n_ins; k++)
		to[k] = s->l->ins[s->order[k]];
}

static void exchange(struct rdna_lir *l, struct rdna_lir_ins **other)
{
	struct rdna_lir_ins *ins = l->ins;
	l->ins = *other;
	*other = ins;
}

/* What the allocator makes of the instructions; the kernel stays as it is. live: NULL if it is to find that. False: it
 * does not fit at all, or s->failed: another order because memory ran out would be other code for the same key. */
static bool try_allocation(struct sched *s, const struct rdna_live *live, struct rdna_regs *used)
{
	struct rdna_lir *l = s->l;
	struct error why = { 0 };
	bool ok = live ? rdna_regalloc_known(l, live, used, &why) : rdna_regalloc(l, 0, 0, 0, used, &why);
	l->allocated = false;
	s->failed |= why.code == ERROR_MEMORY;
	return ok;
}

/* Counting words does not see how tuples break up the file, so the allocator is asked: where the new order needs more
 * registers than it may (or more than the old one, if that is more), the budget is lowered, and in the end the old
 * order stays. */
static bool schedule(struct sched *s, unsigned vgprs)
{
	enum {
		SGPRS = 86,
		MAX_SGPRS = RDNA_ABI_SGPRS - 6
	}; /* some are left to tuples' alignment and to loops' counters */
	struct rdna_lir *l = s->l;
	struct rdna_regs before, after = { 0 };
	struct rdna_lir_ins *other = malloc(l->ins_capacity * sizeof *other); /* the order that l->ins does not have */
	if (!other)
		return !l->n_ins;
	vgprs = !vgprs || vgprs > RDNA_ABI_VGPRS ? RDNA_ABI_VGPRS : vgprs;
	s->budget = COUNTS(SGPRS, vgprs);
	unsigned allowed = vgprs, scalar = MAX_SGPRS;
	bool fits = false, latest = true; /* the latest trial was of the new order */
	for (unsigned attempt = 0; !fits && !s->failed && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			exchange(l, &other);
		schedule_all(s);
		if (s->failed)
			break;
		reorder(s, other);
		exchange(l, &other);
		bool fitted = latest = try_allocation(s, &s->live, &after);
		if (!attempt && !(fitted && after.vgprs <= allowed && after.sgprs_needed <= scalar)) {
			exchange(l, &other);
			if (try_allocation(s, NULL, &before)) {
				latest = false;
				allowed = before.vgprs > allowed ? before.vgprs : allowed;
				scalar = before.sgprs_needed > scalar ? before.sgprs_needed : scalar;
			}
			exchange(l, &other);
		}
		fits = fitted && after.vgprs <= allowed && after.sgprs_needed <= scalar;
		s->budget = less(s->budget, after.vgprs > allowed ? after.vgprs - allowed + 4 : 8);
	}
	if (!fits && !s->failed)
		exchange(l, &other);
	l->tried = fits && latest;
	l->used = after;
	free(other);
	return !s->failed;
}

bool rdna_sched(struct rdna_lir *l, unsigned vgprs, uint32_t seed, struct error *err)
{
	struct sched s = { .l = l, .random = seed };
	bool ok = prepare(&s) && schedule(&s, vgprs);
	clean(&s);
	return ok || error_set(err, ERROR_MEMORY, "no memory to order the instructions of a kernel");
}
