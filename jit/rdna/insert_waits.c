/* jit/rdna/insert_waits.c - waits for loads and stores, as few and as weak as the counters allow.
 *
 * Owns: what each instruction adds to which counter, what each must find arrived, and the wait instructions of every
 * generation. Moves nothing. Rule for editors: a wait may only be left out where it holds on every path; when in doubt
 * the state says "outstanding". Waited for, in front of an instruction:
 *   - every register it reads or writes that a load still has to fill (no other write may overtake that one);
 *   - scalar and vector memory go different ways: a scalar load waits for stores to global memory, then invalidates the
 *     scalar cache, which sees no store; such a store waits for scalar loads. Not so with constant memory, of which
 *     all are that selection makes. Accesses that go one way keep their order by themselves;
 *   - a barrier: all accesses to LDS, loads too (global memory the driver orders, or selection); the return: all loads.
 * The counters count in order, so an older load is waited for by allowing as many to be outstanding as were issued
 * since. Scalar loads arrive in any order: only 0 says anything; gfx10 and gfx11 count them together with LDS.
 */
#include "jit/ir/ir.h"
#include "jit/rdna/machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum counter { LOAD, STORE, LDS, SMEM, COUNTERS };
enum {
	SLOT_LDS = 256 /* any access */,
	SLOT_GLOBAL /* of memory that is not constant */,
	SLOTS,
	NOW = 64,
	OLDEST = 62,
	NO_WAIT = 255
};

/* A slot's score is what `issued` was after its last access; outstanding if above `done`, and then its bit in pending
 * is set. The scores of others are 0. Small numbers, as states are copied for every loop; normalise() keeps them so. */
enum { MAP_WORDS = (SLOTS + 63) / 64, MAX_ISSUED = UINT16_MAX };
struct state {
	uint64_t pending[COUNTERS][MAP_WORDS];
	uint32_t issued[COUNTERS], done[COUNTERS];
	uint16_t score[COUNTERS][SLOTS];
};
struct need {
	uint8_t left[COUNTERS]; /* how many may be outstanding; NO_WAIT: any number */
};
static const struct need nothing = { { NO_WAIT, NO_WAIT, NO_WAIT, NO_WAIT } };

/* What is looked up of an instruction again and again while loops settle; a dual one's are those of both halves. */
struct facts {
	struct rdna_map named;
	struct rdna_range d;
	uint8_t counter;
	bool effects /* beside naming registers */, stores, global_load, global_store, constant, barrier;
};
struct waiter {
	const struct rdna_lir *l;
	const uint32_t *loops;
	struct facts *facts;       /* by instruction */
	uint32_t *next;            /* by instruction: it or the next that is not quiet, find_facts */
	uint8_t *issues;           /* by LOOP: the counters that something in it counts by, a bit each */
	struct need *need, *flush; /* by instruction; flush: what a LOOP waits for on behalf of its body */
};

/* --- state */

static unsigned age(const struct state *s, enum counter c, unsigned slot)
{
	unsigned n = s->issued[c] - s->score[c][slot];
	return n < OLDEST ? n : OLDEST;
}

static bool outstanding(const struct state *s, enum counter c, unsigned slot)
{
	return s->pending[c][slot / 64] >> slot % 64 & 1;
}

/* The pending slots from *slot on, one after the other; false: there are no more. */
static bool next_pending(const struct state *s, enum counter c, unsigned *slot)
{
	unsigned word = *slot / 64;
	if (word >= MAP_WORDS)
		return false;
	uint64_t bits = s->pending[c][word] & UINT64_MAX << *slot % 64;
	while (!bits && ++word < MAP_WORDS)
		bits = s->pending[c][word];
	if (bits)
		*slot = word * 64 + (unsigned)__builtin_ctzll(bits);
	return bits;
}

static inline void want(struct need *n, const struct state *s, enum counter c, unsigned slot)
{
	if (outstanding(s, c, slot) && age(s, c, slot) < n->left[c])
		n->left[c] = (uint8_t)age(s, c, slot);
}

static unsigned slot_of(unsigned reg) { return reg & 255; } /* LOAD and LDS fill vector registers, SMEM scalar ones */

static inline void want_each(struct need *n, const struct state *s, enum counter c, unsigned word, uint64_t slots)
{
	for (slots &= s->pending[c][word]; slots; slots &= slots - 1)
		want(n, s, c, word * 64 + (unsigned)__builtin_ctzll(slots));
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

static void set_pending(struct state *s, enum counter c, unsigned slot)
{
	s->pending[c][slot / 64] |= UINT64_C(1) << slot % 64;
}

/* What has arrived is pending no longer. */
static void forget_arrived(struct state *s, enum counter c)
{
	for (unsigned w = 0; w < MAP_WORDS; w++) {
		uint64_t left = s->pending[c][w];
		for (uint64_t bits = left; bits; bits &= bits - 1)
			if (s->score[c][w * 64 + (unsigned)__builtin_ctzll(bits)] <= s->done[c]) {
				s->score[c][w * 64 + (unsigned)__builtin_ctzll(bits)] = 0;
				left &= ~(bits & -bits);
			}
		s->pending[c][w] = left;
	}
}

static void arrive(struct state *s, const struct need *n)
{
	for (unsigned c = 0; c < COUNTERS; c++)
		if (n->left[c] != NO_WAIT && s->issued[c] > n->left[c] && s->issued[c] - n->left[c] > s->done[c]) {
			s->done[c] = s->issued[c] - n->left[c];
			forget_arrived(s, c);
		}
}

/* Scores count from NOW back, and nothing has arrived: states that mean the same have the same bytes. */
static void normalise(struct state *s)
{
	for (unsigned c = 0; c < COUNTERS; c++) {
		bool any = false;
		for (unsigned k = 0; next_pending(s, c, &k); k++, any = true)
			s->score[c][k] = (uint16_t)(NOW - age(s, c, k));
		s->issued[c] = any ? NOW : 0;
		s->done[c] = 0;
	}
}

static void alike(void *user, void *state) { normalise(state); }

/* from is normalised as well, which does not change what it means. */
static bool join(void *user, void *into, void *from)
{
	struct state *a = into, *b = from;
	bool changed = false;
	normalise(a);
	normalise(b);
	for (unsigned c = 0; c < COUNTERS; c++) {
		for (unsigned k = 0; next_pending(b, c, &k); k++) {
			if (outstanding(a, c, k) && a->score[c][k] >= b->score[c][k])
				continue;
			a->score[c][k] = b->score[c][k];
			set_pending(a, c, k);
			changed = true;
		}
		changed |= b->issued[c] && !a->issued[c];
		if (b->issued[c])
			a->issued[c] = NOW;
	}
	return changed;
}

/* --- instructions */

static bool is_barrier(unsigned op)
{
	return op == RDNA_S_BARRIER || op == RDNA_S_BARRIER_SIGNAL || op == RDNA_S_BARRIER_SIGNAL_ISFIRST;
}

/* The counter that counts it, or COUNTERS. */
static enum counter counter_of(unsigned is, bool fills)
{
	if (is & RDNA_IS_SMEM && fills)
		return SMEM;
	if (is & RDNA_IS_LDS)
		return LDS;
	return is & RDNA_IS_VMEM && (fills || is & RDNA_IS_STORE) ? fills ? LOAD : STORE : COUNTERS;
}

/* Whether it names a register that a load is filling. */
static inline uint64_t names_filling(const struct facts *f, const struct state *s)
{
	const uint64_t *scalar = s->pending[SMEM], *load = s->pending[LOAD], *lds = s->pending[LDS],
		       *vector = f->named.w + RDNA_MAP_VECTOR;
	return (f->named.w[0] & scalar[0]) | (f->named.w[1] & scalar[1]) | (vector[0] & (load[0] | lds[0])) |
	       (vector[1] & (load[1] | lds[1])) | (vector[2] & (load[2] | lds[2])) | (vector[3] & (load[3] | lds[3]));
}

/* What it does beside naming registers. */
static void find_effects(const struct rdna_lir_ins *i, struct facts *f)
{
	static const struct facts none = { .counter = COUNTERS };
	unsigned is = rdna_lir_facts(i->op);
	*f = none;
	if (!(is & (RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS | RDNA_IS_FIXED)))
		return;
	f->barrier = is_barrier(i->op);
	f->effects = f->barrier || i->op == RDNA_LIR_LOOP;
	if (!(is & (RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS)))
		return;
	f->d = rdna_machine_range(&i->d[0]);
	f->stores = is & RDNA_IS_STORE;
	f->constant = i->memory == RDNA_MEM_CONST;
	f->counter = (uint8_t)counter_of(is, f->d.n);
	f->global_load = is & RDNA_IS_SMEM && !f->constant;
	f->global_store = is & RDNA_IS_VMEM && is & RDNA_IS_STORE;
	f->effects |= f->counter != COUNTERS || f->global_load || f->global_store;
}

/* Of every instruction, and which are quiet: they count by nothing, and name no register that any load of the kernel
 * fills. Halves are: their dual one speaks for them. */
static void find_facts(struct waiter *w)
{
	const struct rdna_lir *l = w->l;
	struct rdna_map filled = { { 0 } }; /* all registers that loads fill */
	for (size_t at = 0; at < l->n_ins; at++) {
		struct facts *f = &w->facts[at];
		find_effects(&l->ins[at], f);
		if (f->counter != COUNTERS)
			rdna_map_add(&filled, f->d);
	}
	w->next[l->n_ins] = (uint32_t)l->n_ins;
	for (size_t at = l->n_ins; at-- > 0;) {
		const struct rdna_lir_ins *i = &l->ins[at];
		struct facts *f = &w->facts[at];
		if (i->op == RDNA_LIR_DUAL) {
			rdna_map_join(&f->named, &f[1].named);
			rdna_map_join(&f->named, &f[2].named);
			w->next[at + 1] = w->next[at + 2] = w->next[at + 3];
		} else {
			rdna_map_add_sources(&f->named, i);
			rdna_map_add_results(&f->named, i);
		}
		bool quiet = !f->effects && !rdna_lir_branches(i->op) && !rdna_map_meets(&f->named, &filled);
		w->next[at] = quiet ? w->next[at + 1] : (uint32_t)at;
	}
}

/* The registers that it names and a load is filling. */
static void want_filling(const struct facts *f, const struct state *s, struct need *n)
{
	for (unsigned w = 0; w < RDNA_MAP_SCALAR; w++)
		want_each(n, s, SMEM, w, f->named.w[w]);
	for (unsigned w = RDNA_MAP_VECTOR; w < RDNA_MAP_WORDS; w++) {
		want_each(n, s, LOAD, w - RDNA_MAP_VECTOR, f->named.w[w]);
		want_each(n, s, LDS, w - RDNA_MAP_VECTOR, f->named.w[w]);
	}
}

/* Beside registers. */
static void want_in_order(const struct facts *f, const struct state *s, struct need *n)
{
	if (f->barrier)
		want(n, s, LDS, SLOT_LDS);
	if (f->global_load) {
		want(n, s, STORE, SLOT_GLOBAL);
		want(n, s, LOAD, SLOT_GLOBAL);
	}
	if (f->global_store)
		want(n, s, SMEM, SLOT_GLOBAL);
}

static void access_slot(struct state *s, enum counter c, unsigned slot)
{
	s->score[c][slot] = (uint16_t)s->issued[c];
	set_pending(s, c, slot);
}

static void issue(const struct facts *f, struct state *s)
{
	enum counter c = f->counter;
	if (c == COUNTERS)
		return;
	if (s->issued[c] == MAX_ISSUED)
		normalise(s);
	s->issued[c]++;
	for (unsigned reg = f->d.reg; reg < f->d.reg + (unsigned)f->d.n; reg++)
		access_slot(s, c, slot_of(reg));
	if (c == LDS)
		access_slot(s, LDS, SLOT_LDS);
	else if (c == SMEM ? !f->constant : f->stores)
		access_slot(s, c, SLOT_GLOBAL);
}

static void min(struct need *n, const struct need *other)
{
	for (unsigned c = 0; c < COUNTERS; c++)
		if (other->left[c] < n->left[c])
			n->left[c] = other->left[c];
}

/* What an instruction waits for that does something beside naming registers, or names some that a load is filling; and
 * what it leaves behind. */
static void look_closely(struct waiter *w, struct state *s, size_t at, const struct facts *f, bool filling)
{
	struct need n = nothing;
	if (filling)
		want_filling(f, s, &n);
	if (f->effects)
		want_in_order(f, s, &n);
	if (w->loops[at] > at)
		min(&n, &w->flush[at]);
	if (memcmp(&n, &nothing, sizeof n)) {
		tighten(w->l, s, &n);
		arrive(s, &n);
	}
	w->need[at] = n;
	issue(f, s);
}

static void step(void *user, void *state, size_t at)
{
	struct waiter *w = user;
	const struct facts *f = &w->facts[at];
	bool filling = names_filling(f, state);
	if (f->effects || filling)
		look_closely(w, state, at, f, filling);
	else
		w->need[at] = nothing;
}

/* --- in front of loops */

/* A loop counts by what those in it do. */
static void find_issues(struct waiter *w)
{
	uint8_t open[IR_LOWERED_DEPTH + 1] = { 0 };
	unsigned depth = 0;
	for (size_t at = w->next[0]; at < w->l->n_ins; at = w->next[at + 1]) {
		unsigned op = w->l->ins[at].op;
		if (op == RDNA_LIR_LOOP) {
			assert(depth < IR_LOWERED_DEPTH);
			open[++depth] = 0;
		} else if (op == RDNA_LIR_ENDLOOP) {
			open[depth - 1] |= w->issues[w->loops[at]] = open[depth];
			depth--;
		} else {
			open[depth] |= (uint8_t)(1u << w->facts[at].counter);
		}
	}
}

/* What is outstanding in front of a loop, and no longer at its end, is waited for in every iteration. That is idle from
 * the second iteration on, or worse: it waits for what the iteration itself has begun to load. So it is waited for in
 * front of the loop if its counter cannot tell the two apart, or has nothing else to count. */
static bool again(void *user, const void *entry, const void *around, size_t at)
{
	struct waiter *w = user;
	const struct state *in = entry, *out = around;
	struct need n = w->flush[at];
	for (unsigned c = 0; c < COUNTERS; c++) {
		if (c == STORE || (c != SMEM && w->issues[at] >> c & 1))
			continue;
		for (unsigned k = 0; next_pending(in, c, &k) && k < SLOT_LDS; k++)
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
	struct rdna_lir_ins i = { .op = RDNA_S_WAITCNT_VSCNT,
		                  .s = { rdna_lir_fixed(RDNA_NULL, 1), rdna_lir_imm((uint32_t)n) },
		                  .ir = UINT32_MAX };
	rdna_patch_add(p, at, &i);
}

/* What was stored has left GL1 by itself, but not the scalar cache. */
static void put_invalidation(struct rdna_patch *p, enum rdna_gen gen, size_t at)
{
	struct rdna_lir_ins i = { .op = RDNA_S_DCACHE_INV, .ir = UINT32_MAX };
	rdna_patch_add(p, at, &i);
	if (gen == RDNA_GFX12)
		rdna_patch_op(p, at, RDNA_S_WAIT_KMCNT, 0);
	else
		rdna_patch_op(p, at, RDNA_S_WAITCNT, rdna_waitcnt(gen, -1, -1, 0));
}

static void put_old(struct rdna_patch *p, enum rdna_gen gen, size_t at, const struct need *n)
{
	int lgkm = left(n, SMEM) >= 0 ? 0 : left(n, LDS);
	if (left(n, LOAD) >= 0 || lgkm >= 0)
		rdna_patch_op(p, at, RDNA_S_WAITCNT, rdna_waitcnt(gen, left(n, LOAD), -1, lgkm));
	if (left(n, STORE) < 0)
		return;
	put_vscnt(p, at, left(n, STORE));
	put_invalidation(p, gen, at);
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
	if (left(n, STORE) >= 0)
		put_invalidation(p, RDNA_GFX12, at);
	else if (left(n, SMEM) >= 0)
		rdna_patch_op(p, at, RDNA_S_WAIT_KMCNT, 0);
}

/* --- the pass */

static void want_all_loads(const struct rdna_lir *l, const struct state *s, struct need *n)
{
	*n = nothing;
	static const enum counter loads[] = { LOAD, LDS, SMEM };
	for (unsigned c = 0; c < sizeof loads / sizeof *loads; c++)
		for (unsigned k = 0; next_pending(s, loads[c], &k) && k < SLOT_LDS; k++)
			want(n, s, loads[c], k);
	tighten(l, s, n);
}

static bool find_needs(struct waiter *w, struct state *s, struct error *err)
{
	const struct rdna_lir *l = w->l;
	const struct rdna_flow flow = {
		.l = l,
		.loops = w->loops,
		.size = sizeof *s,
		.user = w,
		.step = step,
		.join = join,
		.again = again,
		.alike = alike,
		.next = w->next
	};
	if (!w->facts || !w->next || !w->need || !w->flush || !w->issues || !w->loops)
		return error_set(err, ERROR_MEMORY, "no memory to look at a kernel of %zu instructions", l->n_ins);
	find_facts(w);
	find_issues(w);
	memset(w->need, NO_WAIT, (l->n_ins + 1) * sizeof *w->need);
	memset(w->flush, NO_WAIT, (l->n_ins + 1) * sizeof *w->flush);
	if (!rdna_flow_run(&flow, s, err))
		return false;
	want_all_loads(l, s, &w->need[l->n_ins]);
	return true;
}

bool rdna_wait(struct rdna_lir *l, struct error *err)
{
	struct state s;
	struct rdna_patch p = { 0 };
	uint32_t *loops = rdna_machine_loops(l);
	struct waiter w = { .l = l,
		            .loops = loops,
		            .facts = malloc((l->n_ins + 1) * sizeof *w.facts),
		            .next = malloc((l->n_ins + 1) * sizeof *w.next),
		            .issues = malloc(l->n_ins + 1),
		            .need = malloc((l->n_ins + 1) * sizeof *w.need),
		            .flush = malloc((l->n_ins + 1) * sizeof *w.flush) };
	memset(&s, 0, sizeof s);
	bool ok = find_needs(&w, &s, err);
	for (size_t at = 0; ok && at <= l->n_ins; at++) {
		if (memcmp(&w.need[at], &nothing, sizeof nothing) == 0)
			continue;
		if (l->gen == RDNA_GFX12)
			put_new(&p, at, &w.need[at]);
		else
			put_old(&p, l->gen, at, &w.need[at]);
	}
	ok = ok && rdna_patch_apply(l, &p, err);
	free(w.facts);
	free(w.next);
	free(w.need);
	free(w.flush);
	free(w.issues);
	free(loops);
	return ok;
}
