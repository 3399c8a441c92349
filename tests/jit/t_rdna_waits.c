/* tests/jit/t_rdna_waits.c - the passes behind register allocation, judged by the simulator.
 *
 * The judge is the simulator, which traps on a register touched too early and, in two of its three modes, lets loads
 * and stores complete late; the reference is the same kernel with a full wait behind every access and no other pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/rdna/machine.h"
#include "tests/jit/rdna_build.h"
#include "tests/jit/rdna_call.h"
#include "tests/jit/rdna_lir_random.h"

enum { KERNELS = 60, SIZE = 120 };

/* --- a kernel's memory */

struct world {
	uint8_t in[RDNA_LIR_RANDOM_IN], out[RDNA_LIR_RANDOM_OUT];
	uint64_t arg[2];
};

static struct world *world_make(uint64_t seed)
{
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	uint32_t x = (uint32_t)seed + 1;
	for (size_t k = 0; k < sizeof w->in; k++)
		w->in[k] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
	for (size_t k = 0; k < sizeof w->out; k++)
		w->out[k] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
	w->arg[0] = (uint64_t)(uintptr_t)w->in;
	w->arg[1] = (uint64_t)(uintptr_t)w->out;
	return w;
}

static bool run(const struct object *o, enum rdna_gen gen, struct world *w, const struct sim_options *opt,
                struct error *err)
{
	const struct rdna_call c = {
		.object = o,
		.gen = gen,
		.arg = w->arg,
		.n_args = 2,
		.end = 7,
		.memory = { { w->in, sizeof w->in, false }, { w->out, sizeof w->out, true } },
	};
	return rdna_call(&c, opt, err);
}

/* --- the pipeline */

enum { NO_VOPD = 1, NO_HINTS = 2 };

static void must(bool ok, const struct error *err)
{
	if (!ok)
		fail_msg("%s", err->text);
}

static void emit(struct object *o, const struct rdna_lir *l)
{
	struct error err = { .code = ERROR_NONE };
	*o = (struct object){ .shared_bytes = l->shared_bytes, .frame_bytes = l->local_bytes };
	must(rdna_emit(o, l, &err), &err);
}

static void passes(struct rdna_lir *l, unsigned leave_out)
{
	struct error err = { .code = ERROR_NONE };
	const struct rdna_hazard_options h = { .no_clauses = leave_out & NO_HINTS, .no_delays = leave_out & NO_HINTS };
	rdna_shorten(l);
	must(leave_out & NO_VOPD || rdna_vopd(l, &err), &err);
	must(rdna_wait(l, &err), &err);
	must(rdna_hazard(l, &h, &err), &err);
}

/* Everything has arrived before the next instruction begins. */
static void wait_for_all(struct rdna_lir *l)
{
	struct rdna_patch p = { 0 };
	struct error err = { .code = ERROR_NONE };
	for (size_t at = 0; at < l->n_ins; at++) {
		if (!at || l->ins[at - 1].op >= RDNA_OP_COUNT ||
		    !(rdna_lir_facts(l->ins[at - 1].op) & (RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS)))
			continue;
		struct rdna_lir_ins stores = { .op = RDNA_S_WAITCNT_VSCNT,
			                       .s = { rdna_lir_fixed(RDNA_NULL, 1), rdna_lir_imm(0) } };
		if (l->gen == RDNA_GFX12) {
			rdna_patch_op(&p, at, RDNA_S_WAIT_LOADCNT, 0);
			rdna_patch_op(&p, at, RDNA_S_WAIT_STORECNT, 0);
			rdna_patch_op(&p, at, RDNA_S_WAIT_DSCNT, 0);
			rdna_patch_op(&p, at, RDNA_S_WAIT_KMCNT, 0);
		} else {
			rdna_patch_op(&p, at, RDNA_S_WAITCNT, rdna_waitcnt(l->gen, 0, -1, 0));
			rdna_patch_add(&p, at, &stores);
		}
	}
	must(rdna_patch_apply(l, &p, &err), &err);
}

static void reference(struct world *w, enum rdna_gen gen, uint64_t seed)
{
	const struct sim_options opt = { .memory = SIM_MEMORY_NOW, .allow_hazards = true };
	struct error err = { .code = ERROR_NONE };
	struct rdna_lir l;
	struct object o;
	rdna_lir_random(&l, gen, seed, SIZE);
	wait_for_all(&l);
	emit(&o, &l);
	must(run(&o, gen, w, &opt, &err), &err);
	rdna_lir_free(&l);
	object_free(&o);
}

static void random_kernel(enum rdna_gen gen, uint64_t seed)
{
	struct world *want = world_make(seed);
	struct rdna_lir l;
	struct object o;
	reference(want, gen, seed);
	rdna_lir_random(&l, gen, seed, SIZE);
	passes(&l, (unsigned)(seed % 4));
	emit(&o, &l);
	for (unsigned mode = SIM_MEMORY_NOW; mode <= SIM_MEMORY_RANDOM; mode++) {
		const struct sim_options opt = { .memory = (enum sim_memory_mode)mode, .seed = seed };
		struct world *w = world_make(seed);
		struct error err = { .code = ERROR_NONE };
		if (!run(&o, gen, w, &opt, &err))
			fail_msg("%s kernel %llu, memory %u: %s", rdna_call_targets[gen], (unsigned long long)seed,
			         mode, err.text);
		if (memcmp(want->out, w->out, sizeof w->out))
			fail_msg("%s kernel %llu, memory %u: another result", rdna_call_targets[gen],
			         (unsigned long long)seed, mode);
		free(w);
	}
	object_free(&o);
	rdna_lir_free(&l);
	free(want);
}

static void random_kernels_mean_the_same(void **state)
{
	(void)state;
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++)
		for (uint64_t seed = 0; seed < KERNELS; seed++)
			random_kernel((enum rdna_gen)gen, seed);
}

/* --- mutations: a wait that is left out or weakened must be missed */

enum { IN = 20, OUT = 22, SHARED = 4096 };

/* v0: 4 * lane (and 128 * wave) */
static void begin(struct rdna_lir *l, enum rdna_gen gen)
{
	rdna_lir_init(l, gen);
	l->allocated = true;
	l->shared_bytes = SHARED;
	put_scalar(l, RDNA_S_LOAD_B64, sn(IN, 2), RDNA_ABI_ARG, 0, RDNA_MEM_CONST);
	put_scalar(l, RDNA_S_LOAD_B64, sn(OUT, 2), RDNA_ABI_ARG, 8, RDNA_MEM_CONST);
	put(l, RDNA_V_MBCNT_LO_U32_B32, v(0), imm(UINT32_MAX), imm(0), NONE);
	put(l, RDNA_V_LSHLREV_B32, v(0), imm(2), v(0), NONE);
	put(l, RDNA_S_LSHL_B32, s(24), s(RDNA_ABI_WAVE), imm(7), NONE);
	put(l, RDNA_V_ADD_NC_U32, v(0), s(24), v(0), NONE);
}

/* Loads that are used in another order than they come, one still under way behind others. */
static void kernel_loads(struct rdna_lir *l, enum rdna_gen gen)
{
	begin(l, gen);
	put_global(l, RDNA_GLOBAL_LOAD_B32, v(1), 0, IN, 0);
	put_global(l, RDNA_GLOBAL_LOAD_B128, vn(4, 4), 0, IN, 64);
	put_global(l, RDNA_GLOBAL_LOAD_B32, v(2), 0, IN, 128);
	put(l, RDNA_V_ADD_NC_U32, v(8), v(0), v(1), NONE);
	put(l, RDNA_V_ADD_NC_U32, v(8), v(8), v(6), NONE);
	put_global(l, RDNA_GLOBAL_LOAD_B32, v(3), 0, IN, 256);
	put(l, RDNA_V_ADD_NC_U32, v(8), v(8), v(2), NONE);
	put(l, RDNA_V_MOV_B32, v(3), v(8), NONE, NONE); /* overtakes a load */
	put_scalar(l, RDNA_S_LOAD_B32, s(30), IN, 4, RDNA_MEM_CONST);
	put_lds(l, RDNA_DS_STORE_B32, v(8), 0, 0);
	put_lds(l, RDNA_DS_LOAD_B32, v(9), 0, 0);
	put_lds(l, RDNA_DS_LOAD_B64, vn(10, 2), 0, 0)->exec = 0x7fff;
	put(l, RDNA_V_ADD_NC_U32, v(8), v(8), v(9), NONE);
	put(l, RDNA_V_ADD_NC_U32, v(8), s(30), v(8), NONE);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(8), 0, OUT, 0);
	put(l, RDNA_V_XOR_B32, v(8), v(3), v(8), NONE);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(8), 0, OUT, 1024);
}

/* The next turn's loads begin before this turn's are used. */
static void kernel_loop(struct rdna_lir *l, enum rdna_gen gen)
{
	begin(l, gen);
	put(l, RDNA_V_MOV_B32, v(8), imm(0), NONE, NONE);
	put_scalar(l, RDNA_S_LOAD_B32, s(30), IN, 16, RDNA_MEM_CONST);
	put_global(l, RDNA_GLOBAL_LOAD_B32, v(1), 0, IN, 0);
	put(l, RDNA_LIR_LOOP, s(28), imm(5), NONE, NONE);
	put(l, RDNA_V_ADD_NC_U32, v(0), imm(8), v(0), NONE);
	put_global(l, RDNA_GLOBAL_LOAD_B32, v(2), 0, IN, 0);
	put(l, RDNA_V_ADD_NC_U32, v(8), v(1), v(8), NONE);
	put(l, RDNA_V_XOR_B32, v(8), s(30), v(8), NONE);
	put_global(l, RDNA_GLOBAL_LOAD_B32, v(1), 0, IN, 512);
	put(l, RDNA_V_XOR_B32, v(8), v(2), v(8), NONE);
	rdna_lir_add(l, RDNA_LIR_ENDLOOP);
	put(l, RDNA_V_ADD_NC_U32, v(8), v(1), v(8), NONE);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(8), 0, OUT, 0);
}

/* Scalar loads around stores to the same memory. */
static void kernel_order(struct rdna_lir *l, enum rdna_gen gen)
{
	begin(l, gen);
	put_scalar(l, RDNA_S_LOAD_B32, s(30), OUT, 0, RDNA_MEM_GLOBAL);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(0), 0, OUT, 0);
	put(l, RDNA_V_MOV_B32, v(1), s(30), NONE, NONE);
	put_scalar(l, RDNA_S_LOAD_B32, s(31), OUT, 8, RDNA_MEM_GLOBAL);
	put(l, RDNA_V_ADD_NC_U32, v(1), s(31), v(1), NONE);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(1), 0, OUT, 1024);
}

/* Waves read what their neighbours wrote, and write where others have read. */
static void kernel_waves(struct rdna_lir *l, enum rdna_gen gen)
{
	begin(l, gen);
	put(l, RDNA_V_ADD_NC_U32, v(1), imm(128), v(0), NONE);
	put(l, RDNA_V_AND_B32, v(1), imm(1023), v(1), NONE);
	put(l, RDNA_V_ADD_NC_U32, v(3), imm(12345), v(0), NONE);
	put_lds(l, RDNA_DS_STORE_B32, v(3), 0, 0);
	put_barrier(l);
	put_lds(l, RDNA_DS_LOAD_B32, v(2), 1, 0);
	put_barrier(l);
	put_lds(l, RDNA_DS_STORE_B32, v(0), 0, 0);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(2), 0, OUT, 0);
}

static bool is_wait(unsigned op)
{
	return op == RDNA_S_WAITCNT || op == RDNA_S_WAITCNT_VSCNT ||
	       (op >= RDNA_S_WAIT_LOADCNT && op <= RDNA_S_WAIT_STORECNT_DSCNT);
}

/* The k-th way to weaken a wait by one; false: there are fewer. */
static bool weaken(struct rdna_lir_ins *i, enum rdna_gen gen, unsigned k)
{
	struct rdna_lir_operand *o = &i->s[i->op == RDNA_S_WAITCNT_VSCNT];
	bool pair = i->op == RDNA_S_WAIT_LOADCNT_DSCNT || i->op == RDNA_S_WAIT_STORECNT_DSCNT,
	     old = i->op == RDNA_S_WAITCNT;
	unsigned shift[2] = { old ? (gen == RDNA_GFX10_3 ? 0 : 10) : 0, old ? (gen == RDNA_GFX10_3 ? 8 : 4) : 8 },
		 bits[2] = { old && gen == RDNA_GFX10_3 ? 4 : 6, 6 };
	for (unsigned f = 0; f < (old || pair ? 2u : 1u); f++) {
		unsigned n = o->value >> shift[f] & ((1u << bits[f]) - 1);
		if (n == (1u << bits[f]) - 1 || k-- > 0)
			continue;
		o->value += 1u << shift[f];
		return true;
	}
	return false;
}

static bool call(struct rdna_lir *l, unsigned waves, struct world *w, unsigned mode, uint64_t seed)
{
	const struct sim_options opt = { .memory = (enum sim_memory_mode)mode, .seed = seed };
	struct error err = { .code = ERROR_NONE };
	struct object o;
	emit(&o, l);
	const struct rdna_call c = { .object = &o,
		                     .gen = l->gen,
		                     .waves = waves,
		                     .arg = w->arg,
		                     .n_args = 2,
		                     .memory = { { w->in, sizeof w->in, false }, { w->out, sizeof w->out, true } } };
	bool ok = rdna_call(&c, &opt, &err);
	object_free(&o);
	return ok;
}

/* Whether some way of running it traps or ends otherwise. */
static bool missed(struct rdna_lir *l, unsigned waves, const struct world *want)
{
	bool miss = false;
	for (unsigned mode = SIM_MEMORY_NOW; mode <= SIM_MEMORY_RANDOM && !miss; mode++)
		for (uint64_t seed = 0; seed < 8 && !miss; seed++) {
			struct world *w = world_make(1);
			miss = !call(l, waves, w, mode, seed) || memcmp(w->out, want->out, sizeof w->out);
			free(w);
		}
	return miss;
}

static unsigned mutate(struct rdna_lir *l, unsigned waves, const struct world *want, const char *name)
{
	unsigned n = 0;
	for (size_t at = 0; at < l->n_ins; at++) {
		struct rdna_lir_ins kept = l->ins[at];
		if (!is_wait(kept.op) && kept.op != RDNA_S_WAIT_ALU)
			continue;
		l->ins[at] = (struct rdna_lir_ins){ .op = RDNA_S_NOP, .s = { rdna_lir_imm(0) } };
		if (!missed(l, waves, want))
			fail_msg("%s, %s: nobody misses the wait %s, instruction %zu", rdna_call_targets[l->gen], name,
			         rdna_op_name(kept.op, l->gen), at);
		for (unsigned k = 0; l->ins[at] = kept, is_wait(kept.op) && weaken(&l->ins[at], l->gen, k); k++, n++)
			if (!missed(l, waves, want))
				fail_msg("%s, %s: the wait %s, instruction %zu, is stronger than it must be",
				         rdna_call_targets[l->gen], name, rdna_op_name(kept.op, l->gen), at);
		l->ins[at] = kept;
		n++;
	}
	return n;
}

static void every_wait_is_needed(void **state)
{
	static const struct {
		const char *name;
		void (*make)(struct rdna_lir *l, enum rdna_gen gen);
		unsigned waves, min;
	} kernels[] = {
		{ "loads", kernel_loads, 8, 12 },
		{ "loop", kernel_loop, 8, 10 },
		{ "order", kernel_order, 1, 8 },
		{ "waves", kernel_waves, 8, 4 },
	};
	(void)state;
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++)
		for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++) {
			struct world *want = world_make(1);
			struct rdna_lir l;
			kernels[k].make(&l, (enum rdna_gen)gen);
			passes(&l, NO_VOPD | NO_HINTS);
			assert_true(call(&l, kernels[k].waves, want, SIM_MEMORY_NOW, 0));
			assert_false(missed(&l, kernels[k].waves, want));
			unsigned n = mutate(&l, kernels[k].waves, want, kernels[k].name);
			if (n < kernels[k].min)
				fail_msg("%s, %s: %u mutations, expected %u at least", rdna_call_targets[gen],
				         kernels[k].name, n, kernels[k].min);
			rdna_lir_free(&l);
			free(want);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_kernels_mean_the_same),
		cmocka_unit_test(every_wait_is_needed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
