/* jit/rdna_wait.c - waits for loads and stores, as few and as weak as the counters allow.
 *
 * Owns: what each instruction adds to which counter, what each must find arrived, and the wait instructions of every generation. Moves nothing.
 * Rule for editors: a wait may only be left out where it holds on every path; when in doubt the state says "outstanding".
 *
 * Waited for, in front of an instruction:
 *   - every register it reads or writes that a load still has to fill (a load into it may not be overtaken by another write);
 *   - scalar and vector memory accesses go different ways: a scalar load waits for stores to global memory, such a store for scalar loads, unless they are of
 *     constant memory. Accesses that go one way keep their order by themselves, in LDS as well as in global memory;
 *   - a barrier: all accesses to LDS, loads too, whose bytes others may now overwrite. Not stores to global memory: the IR's barrier speaks of shared bytes alone,
 *     and what other waves may see of the rest is the driver's to arrange between phases;
 *   - the return: all loads.
 *
 * The counters count instructions in order, so an older load is waited for by allowing as many to be outstanding as were issued since. Scalar loads
 * arrive in any order: only 0 says anything; gfx10 and gfx11 count them together with LDS, which then has to be waited for as strictly.
 */
#include "jit/rdna_machine.h"

#include <stdlib.h>
#include <string.h>

enum counter { LOAD, STORE, LDS, SMEM, COUNTERS };
enum { SLOT_LDS = 256 /* any access */, SLOT_GLOBAL /* of memory that is not constant */, SLOTS, NOW = 64, OLDEST = 62, NO_WAIT = 255 };

/* A slot's score is what `issued` was after its last access; outstanding if above `done`. */
struct state { uint32_t issued[COUNTERS], done[COUNTERS], score[COUNTERS][SLOTS]; };
struct need { uint8_t left[COUNTERS]; };             /* how many may be outstanding; NO_WAIT: any number */
static const struct need nothing = { { NO_WAIT, NO_WAIT, NO_WAIT, NO_WAIT } };

/* What is looked up of an instruction again and again while loops settle. */
struct facts { struct rdna_touch touch; struct rdna_range d; unsigned is; bool stores, constant, barrier; };
struct waiter {
	const struct rdna_lir *l;
	struct facts *facts;                 /* by instruction */
	struct need *need, *flush;           /* by instruction; flush: what a LOOP waits for on behalf of its body */
};

/* --- state */

static unsigned age(const struct state *s, enum counter c, unsigned slot)
{
	unsigned n = s->issued[c] - s->score[c][slot];
	return n < OLDEST ? n : OLDEST;
}

static bool outstanding(const struct state *s, enum counter c, unsigned slot) { return s->score[c][slot] > s->done[c]; }

static void want(struct need *n, const struct state *s, enum counter c, unsigned slot)
{
	if (outstanding(s, c, slot) && age(s, c, slot) < n->left[c])
		n->left[c] = (uint8_t)age(s, c, slot);
}

static unsigned slot_of(unsigned reg) { return reg & 255; }      /* LOAD and LDS fill vector registers, SMEM scalar ones */

static void want_range(struct need *n, const struct state *s, struct rdna_range r)
{
	for (unsigned reg = r.reg; reg < r.reg + (unsigned)r.n; reg++)
		if (reg >= RDNA_V0) {
			want(n, s, LOAD, slot_of(reg));
			want(n, s, LDS, slot_of(reg));
		} else {
			want(n, s, SMEM, slot_of(reg));
		}
}

/* What the generation's counters make of it. */
static void tighten(const struct rdna_lir *l, const struct state *s, struct need *n)
{
	if (n->left[SMEM] != NO_WAIT)
		n->left[SMEM] = 0;
	if (l->gen == RDNA_GFX12 || (n->left[SMEM] == NO_WAIT && n->left[LDS] == NO_WAIT))
		return;
	if (s->issued[SMEM] > s->done[SMEM])
		n->left[SMEM] = n->left[LDS] = 0;
}

static void arrive(struct state *s, const struct need *n)
{
	for (unsigned c = 0; c < COUNTERS; c++)
		if (n->left[c] != NO_WAIT && s->issued[c] > n->left[c] && s->issued[c] - n->left[c] > s->done[c])
			s->done[c] = s->issued[c] - n->left[c];
}

static void normalise(struct state *s)
{
	for (unsigned c = 0; c < COUNTERS; c++) {
		bool any = false;
		if (s->issued[c] == s->done[c]) {
			memset(s->score[c], 0, sizeof s->score[c]);
			s->issued[c] = s->done[c] = 0;
			continue;
		}
		for (unsigned k = 0; k < SLOTS; k++) {
			s->score[c][k] = outstanding(s, c, k) ? NOW - age(s, c, k) : 0;
			any |= s->score[c][k] != 0;
		}
		s->issued[c] = any ? NOW : 0;
		s->done[c] = 0;
	}
}

static bool join(void *user, void *into, const void *from)
{
	struct state *a = into, b = *(const struct state *)from, before;
	normalise(a);
	normalise(&b);
	before = *a;
	for (unsigned c = 0; c < COUNTERS; c++) {
		for (unsigned k = 0; k < SLOTS; k++)
			if (b.score[c][k] > a->score[c][k])
				a->score[c][k] = b.score[c][k];
		if (b.issued[c])
			a->issued[c] = NOW;
	}
	return memcmp(&before, a, sizeof before) != 0;
}

/* --- instructions */

static bool is_barrier(unsigned op) { return op == RDNA_S_BARRIER || op == RDNA_S_BARRIER_SIGNAL || op == RDNA_S_BARRIER_SIGNAL_ISFIRST; }

static void find_facts(const struct rdna_lir *l, const struct rdna_lir_ins *i, struct facts *f)
{
	unsigned is = i->op < RDNA_OP_COUNT ? rdna_lir_facts(i->op) : 0;
	*f = (struct facts){ .d = rdna_machine_range(l, &i->d[0]), .is = is, .stores = is & RDNA_IS_STORE, .constant = i->memory == RDNA_MEM_CONST, .barrier = is_barrier(i->op) };
	rdna_machine_touch(l, i, &f->touch);
}

static void needs_of(const struct facts *f, const struct state *s, struct need *n)
{
	for (unsigned k = 0; k < f->touch.n_reads; k++)
		want_range(n, s, f->touch.reads[k]);
	for (unsigned k = 0; k < f->touch.n_writes; k++)
		want_range(n, s, f->touch.writes[k]);
	if (f->barrier)
		want(n, s, LDS, SLOT_LDS);
	if ((f->is & RDNA_IS_SMEM) && !f->constant) {
		want(n, s, STORE, SLOT_GLOBAL);
		want(n, s, LOAD, SLOT_GLOBAL);
	}
	if ((f->is & RDNA_IS_VMEM) && f->stores)
		want(n, s, SMEM, SLOT_GLOBAL);
}

static void fill(struct state *s, enum counter c, struct rdna_range r)
{
	for (unsigned reg = r.reg; reg < r.reg + (unsigned)r.n; reg++)
		s->score[c][slot_of(reg)] = s->issued[c];
}

/* The counter that counts it, or COUNTERS. */
static enum counter counter_of(const struct facts *f)
{
	if (f->is & RDNA_IS_SMEM && f->d.n)
		return SMEM;
	if (f->is & RDNA_IS_LDS)
		return LDS;
	return f->is & RDNA_IS_VMEM && (f->d.n || f->stores) ? f->d.n ? LOAD : STORE : COUNTERS;
}

static void issue(const struct facts *f, struct state *s)
{
	enum counter c = counter_of(f);
	if (c == COUNTERS)
		return;
	s->issued[c]++;
	fill(s, c, f->d);
	if (c == LDS)
		s->score[LDS][SLOT_LDS] = s->issued[LDS];
	else if (c == SMEM ? !f->constant : f->stores)
		s->score[c][SLOT_GLOBAL] = s->issued[c];
}

static void least(struct need *n, const struct need *other)
{
	for (unsigned c = 0; c < COUNTERS; c++)
		if (other->left[c] < n->left[c])
			n->left[c] = other->left[c];
}

static void step(void *user, void *state, size_t at)
{
	struct waiter *w = user;
	struct state *s = state;
	const struct rdna_lir_ins *i = &w->l->ins[at];
	struct need n = nothing;
	needs_of(&w->facts[at], s, &n);
	if (i->op == RDNA_LIR_DUAL) {                        /* nothing can stand between the halves */
		needs_of(&w->facts[at + 1], s, &n);
		needs_of(&w->facts[at + 2], s, &n);
	}
	if (i->op == RDNA_LIR_LOOP)
		least(&n, &w->flush[at]);
	tighten(w->l, s, &n);
	arrive(s, &n);
	w->need[at] = n;
	issue(&w->facts[at], s);
}

/* --- in front of loops */

static bool issues_in(const struct waiter *w, size_t from, size_t to, enum counter c)
{
	for (size_t at = from; at < to; at++)
		if (counter_of(&w->facts[at]) == c)
			return true;
	return false;
}

/* What is outstanding in front of a loop, and no longer at its end, is waited for in every turn. That is idle from the second turn on, or worse: it waits for what the
 * turn itself has begun to load. So it is waited for in front of the loop if its counter cannot tell the two apart, or has nothing else to count. */
static bool again(void *user, const void *entry, const void *around, size_t at)
{
	struct waiter *w = user;
	const struct state *in = entry, *out = around;
	struct need n = w->flush[at];
	size_t end = rdna_machine_loop_end(w->l, at);
	for (unsigned c = 0; c < COUNTERS; c++) {
		if (c == STORE || (c != SMEM && issues_in(w, at + 1, end, c)))
			continue;
		for (unsigned k = 0; k < SLOT_LDS; k++)
			if (!outstanding(out, c, k))
				want(&n, in, c, k);
	}
	bool changed = memcmp(&n, &w->flush[at], sizeof n) != 0;
	w->flush[at] = n;
	return changed;
}

/* --- the instructions that wait */

static int left(const struct need *n, enum counter c) { return n->left[c] == NO_WAIT ? -1 : n->left[c]; }

static void put_vscnt(struct rdna_patch *p, size_t at, int n)
{
	struct rdna_lir_ins i = { .op = RDNA_S_WAITCNT_VSCNT, .s = { rdna_lir_fixed(RDNA_NULL, 1), rdna_lir_imm((uint32_t)n) }, .ir = UINT32_MAX };
	rdna_patch_add(p, at, &i);
}

static void put_old(struct rdna_patch *p, enum rdna_gen gen, size_t at, const struct need *n)
{
	int lgkm = left(n, SMEM) >= 0 ? 0 : left(n, LDS);
	if (left(n, LOAD) >= 0 || lgkm >= 0)
		rdna_patch_op(p, at, RDNA_S_WAITCNT, rdna_waitcnt(gen, left(n, LOAD), -1, lgkm));
	if (left(n, STORE) >= 0)
		put_vscnt(p, at, left(n, STORE));
}

static void put_new(struct rdna_patch *p, size_t at, const struct need *n)
{
	int load = left(n, LOAD), store = left(n, STORE), ds = left(n, LDS);
	if (load >= 0 && ds >= 0) {
		rdna_patch_op(p, at, RDNA_S_WAIT_LOADCNT_DSCNT, (uint32_t)RDNA_WAIT_PAIR(load, ds));
		load = ds = -1;
	} else if (store >= 0 && ds >= 0) {
		rdna_patch_op(p, at, RDNA_S_WAIT_STORECNT_DSCNT, (uint32_t)RDNA_WAIT_PAIR(store, ds));
		store = ds = -1;
	}
	if (load >= 0)
		rdna_patch_op(p, at, RDNA_S_WAIT_LOADCNT, (uint32_t)load);
	if (store >= 0)
		rdna_patch_op(p, at, RDNA_S_WAIT_STORECNT, (uint32_t)store);
	if (ds >= 0)
		rdna_patch_op(p, at, RDNA_S_WAIT_DSCNT, (uint32_t)ds);
	if (left(n, SMEM) >= 0)
		rdna_patch_op(p, at, RDNA_S_WAIT_KMCNT, 0);
}

/* --- the pass */

static void want_all_loads(const struct rdna_lir *l, const struct state *s, struct need *n)
{
	*n = nothing;
	for (unsigned k = 0; k < SLOT_LDS; k++) {
		want(n, s, LOAD, k);
		want(n, s, LDS, k);
		want(n, s, SMEM, k);
	}
	tighten(l, s, n);
}

bool rdna_wait(struct rdna_lir *l, struct error *err)
{
	struct state s = {0};
	struct rdna_patch p = {0};
	struct waiter w = { .l = l, .facts = malloc((l->n_ins + 1) * sizeof *w.facts),
		.need = malloc((l->n_ins + 1) * sizeof *w.need), .flush = malloc((l->n_ins + 1) * sizeof *w.flush) };
	const struct rdna_flow flow = { .l = l, .size = sizeof s, .user = &w, .step = step, .join = join, .again = again };
	bool ok = w.facts && w.need && w.flush;
	for (size_t at = 0; ok && at < l->n_ins; at++)
		find_facts(l, &l->ins[at], &w.facts[at]);
	for (size_t at = 0; ok && at <= l->n_ins; at++)
		w.need[at] = w.flush[at] = nothing;
	ok = ok ? rdna_flow_run(&flow, &s, err) : error_set(err, ERROR_MEMORY, "no memory to look at a kernel of %zu instructions", l->n_ins);
	if (ok) {
		want_all_loads(l, &s, &w.need[l->n_ins]);
		for (size_t at = 0; at <= l->n_ins; at++)
			if (l->gen == RDNA_GFX12)
				put_new(&p, at, &w.need[at]);
			else
				put_old(&p, l->gen, at, &w.need[at]);
		ok = rdna_patch_apply(l, &p, err);
	}
	free(w.facts);
	free(w.need);
	free(w.flush);
	return ok;
}
