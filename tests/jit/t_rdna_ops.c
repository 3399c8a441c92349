/* tests/jit/t_rdna_ops.c - RDNA code for every row of ops.def against the interpreter, byte for byte, in the simulator.
 *
 * Every op alone on edge values, its operands vectors, broadcasts or constants, its destination on each operand;
 * conversions and roots on all or many floats; memory of all kinds; loops; groups of waves; random kernels. Each on one
 * card of every generation, with loads that complete at once, as late as the waits allow, and at random moments, and
 * with approximations that are off by one unit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "jit/target.h"
#include "tests/jit/op_kernels.h"
#include "tests/jit/rdna_call.h"
#include "tests/jit/rdna_sweep_tests.h"
#include "tests/support/shared.h"

/* The generation under test: every test runs once for each. */
enum rdna_gen card_gen;

bool compile_card(struct object *o, const struct ir *ir, const struct compile_options *opt, struct error *err)
{
	struct compile_options all = opt ? *opt : (struct compile_options){ 0 };

	all.verify_passes = true;
	return compile_ir(o, ir, target_find(rdna_call_targets[card_gen]), &all, NULL, err);
}

static void show(const struct ir *ir, const struct compile_options *opt)
{
	struct compile_options again = opt ? *opt : (struct compile_options){ 0 };
	struct object o;
	struct error err;
	ir_print(ir, stderr);
	again.dump_asm = stderr;
	if (getenv("JITRUN_SHOW") && compile_card(&o, ir, &again, &err))
		object_free(&o);
}

static void call(const struct ir *ir, const struct object *o, struct random_ir_buffers *b,
                 const struct sim_options *sim, int64_t begin, int64_t end)
{
	const struct rdna_call c = {
		.object = o,
		.gen = card_gen,
		.waves = ir->cooperative ? ir->waves : 1,
		.arg = b->arg,
		.n_args = 4,
		.begin = begin,
		.end = end,
		.memory = { { b->in, sizeof b->in, false },
		            { b->out, sizeof b->out, true },
		            { b->pointer, sizeof b->pointer, false } }
	};
	struct error err = { 0 };
	if (!rdna_call(&c, sim, &err)) {
		show(ir, NULL);
		fail_msg("%s: %s", rdna_call_targets[card_gen], err.text);
	}
}

static void compare(const struct ir *ir, const struct random_ir_buffers *want, const struct random_ir_buffers *got,
                    enum nans nans, const char *what)
{
	for (size_t k = 0; k < sizeof want->out; k += 4) {
		uint32_t w, g;
		memcpy(&w, want->out + k, 4);
		memcpy(&g, got->out + k, 4);
		if (w == g || (nans == NANS_ALIKE && op_is_nan(w) && op_is_nan(g)))
			continue;
		show(ir, NULL);
		fail_msg("%s, %s: output word %zu is %08x, the interpreter says %08x", rdna_call_targets[card_gen],
		         what, k / 4, g, w);
	}
}

void check_modes(const struct ir *ir, const struct compile_options *opt, const void *in, size_t in_bytes, uint64_t seed,
                 int64_t begin, int64_t end, enum nans nans, unsigned first, unsigned last)
{
	struct object o;
	struct error err = { 0 };
	if (!compile_card(&o, ir, opt, &err)) {
		ir_print(ir, stderr);
		fail_msg("%s: %s", rdna_call_targets[card_gen], err.text);
	}
	struct random_ir_buffers *want = random_ir_buffers_new(seed);
	memcpy(want->in, in, in_bytes);
	ir_interp(ir, want->arg, begin, end);
	for (unsigned m = first; m < last; m++) {
		struct random_ir_buffers *got = random_ir_buffers_new(seed);
		memcpy(got->in, in, in_bytes);
		call(ir, &o, got, &modes[m], begin, end);
		compare(ir, want, got, nans, m == 0 ? "loads at once" : m == 1 ? "loads at waits" : "loads at random");
		free(got);
	}
	free(want);
	object_free(&o);
}

static void check(const struct ir *ir, const void *in, size_t in_bytes, int64_t begin, int64_t end, enum nans nans)
{
	check_modes(ir, NULL, in, in_bytes, 1, begin, end, nans, 0, MODES);
}

void begin_ir(struct ir *b)
{
	ir_init(b, 32);
	b->waves = WAVES;
}

/* --- op by op */

static bool makes_nans(enum ir_op op)
{
	return op == IR_fadd || op == IR_fsub || op == IR_fmul || op == IR_ffma || op == IR_fdiv || op == IR_fsqrt ||
	       op == IR_fround || op == IR_ffloor || op == IR_fceil || op == IR_ftrunc;
}

static void check_vector_op(enum ir_op op, int64_t imm)
{
	const struct ir_facts *f = &ir_facts[op];
	unsigned operands = 0u + (f->a != IR_TYPE__) + (f->b != IR_TYPE__) + (f->c != IR_TYPE__),
		 all = operands == 0   ? 1
	               : operands == 1 ? 4
	               : operands == 2 ? 16
	                               : 64;
	uint32_t in[OP_WORDS];
	op_fill(in, op);
	for (unsigned forms = 0; forms < all; forms++) {
		if ((forms & 3) == 3 || (forms >> 2 & 3) == 3 || forms >> 4 == 3)
			continue;
		for (unsigned dst_on = 0; dst_on < 4; dst_on++) {
			struct ir b;
			begin_ir(&b);
			if (op_build_vector(&b, op, imm, dst_on, forms, in))
				check_modes(&b, NULL, in, sizeof in, 1, 0, 1, makes_nans(op) ? NANS_ALIKE : NANS_EXACT,
				            forms == 0 ? 0 : 1, forms == 0 ? MODES : 2);
			ir_free(&b);
		}
	}
}

static void test_vector_ops(void **state) { op_each_vector(32, check_vector_op); }

struct pairs {
	ir_a in, out;
	ir_i x, y, z, u, mask;
	ir_f p, q, acc;
};

/* Returns how many vectors are stored. */
static unsigned integer_pairs(struct ir *b, const struct pairs *v)
{
	ir_a in = v->in;
	ir_i x = v->x, y = v->y, z = v->z, u = v->u, mask = v->mask;
	ir_i r[] = {
		ir_iadd(b, ir_ishl(b, x, 3), y),
		ir_iadd(b, y, ir_ishl(b, x, 31)),
		ir_iadd(b, ir_iadd(b, x, y), z),
		ir_iadd(b, x, ir_iadd(b, u, z)),
		ir_ior(b, ir_iand(b, x, mask), y),
		ir_ior(b, y, ir_ishl(b, x, 16)),
		ir_ior(b, ir_ior(b, x, u), z),
		ir_ixor(b, x, ir_ixor(b, y, mask)),
		ir_isar(b, ir_ishl(b, x, 24), 24),
		ir_isar(b, ir_ishl(b, x, 8), 24),
		ir_isar(b, ir_ishl(b, x, 5), 9),
		ir_ishr(b, ir_ishl(b, x, 5), 9),
		ir_isar(b, ir_ishl(b, x, 9), 5),
		ir_iand(b, ir_ishr(b, x, 4), ir_iconst(b, 15)),
		ir_iand(b, ir_ishr(b, x, 28), ir_iconst(b, 15)),
		ir_iand(b, ir_ishr(b, x, 30), ir_iconst(b, 15)),
		ir_iand(b, ir_ishr(b, x, 0), ir_iconst(b, -1)),
		ir_isar(b, ir_ishl(b, x, 0), 0),
		ir_ibits(b, ir_i2f(b, ir_iand(b, x, ir_iconst(b, 255)))),
		ir_ibits(b, ir_i2f(b, ir_iand(b, ir_ishr(b, x, 8), ir_iconst(b, 255)))),
		ir_ibits(b, ir_i2f(b, ir_iand(b, ir_ishr(b, x, 16), ir_iconst(b, 255)))),
		ir_ibits(b, ir_i2f(b, ir_ishr(b, x, 24))),
		ir_ibits(b, ir_i2f(b, ir_iand(b, ir_ishr(b, x, 4), ir_iconst(b, 255)))),
		ir_ibits(b, ir_i2f(b, ir_ishr(b, u, 24))),
		ir_ibits(b, ir_fmul(b, ir_fhalf(b, z, 0), ir_fhalf(b, z, 1))),
		ir_ibits(b, ir_fmul(b, ir_fhalf(b, y, 1), ir_fbcast(b, in, 48))),
		ir_ishr(b, ir_ishl(b, x, 0), 0),
		ir_ishl(b, ir_isub(b, ir_isub(b, ir_iconst(b, 0), u), ir_ibcast(b, in, 44)), 7),
	};
	unsigned n = sizeof r / sizeof *r;
	for (unsigned k = 0; k < n; k++)
		ir_fstore(b, v->out, ir_fbits(b, r[k]), (int32_t)k * V, 0);
	return n;
}

static void float_pairs(struct ir *b, const struct pairs *v, unsigned n)
{
	ir_a in = v->in;
	ir_i x = v->x, y = v->y, u = v->u;
	ir_f p = v->p, q = v->q, acc = v->acc;
	ir_f minus = ir_fneg(b, p), size = ir_fabs(b, p), both = ir_fneg(b, ir_fabs(b, q)),
	     twice = ir_fneg(b, ir_fneg(b, p)), kept = ir_fneg(b, p);
	ir_set_f(b, acc, ir_ffma(b, minus, size, acc));
	ir_f f[] = {
		ir_fadd(b, minus, both),
		ir_fmul(b, size, both),
		ir_fsub(b, both, twice),
		ir_ffma(b, both, q, minus),
		acc,
		ir_fmin(b, minus, both),
		ir_fmax(b, size, both),
		ir_fsel(b, ir_flt(b, minus, size), both, p),
		ir_fsel(b, ir_fle(b, both, minus), q, size),
		kept,
		ir_fabs(b, ir_fneg(b, q)),
		ir_fneg(b, ir_fneg(b, q)),
		ir_fneg(b, ir_fabs(b, ir_fneg(b, q))),
		ir_ffma(b, ir_fhalf(b, x, 0), ir_fhalf(b, y, 1), p),
		ir_ffma(b, ir_fhalf(b, x, 1), minus, both),
		ir_ffma(b, ir_fload_h(b, in, 6), ir_fconst(b, 0.1f), acc),
		ir_ffma(b, p, ir_fbcast(b, in, 40), ir_fhalf(b, u, 1)),
	};
	for (unsigned k = 0; k < sizeof f / sizeof *f; k++)
		ir_fstore(b, v->out, f[k], (int32_t)(n + k) * V, 0);
}

/* Two operations that one instruction does, signs that become modifiers, halves that sums of products widen. */
static void build_pairs(struct ir *b)
{
	struct pairs v;

	begin_ir(b);
	ir_a arg = ir_arg(b);
	v.in = ir_aload(b, arg, 0), v.out = ir_aload(b, arg, 8);
	v.x = ir_iload(b, v.in, 0), v.y = ir_iload(b, v.in, 1284), v.z = ir_iload(b, v.in, 2568);
	v.u = ir_ibcast(b, v.in, 40), v.mask = ir_iconst(b, 0x10f0f0f0);
	v.p = ir_fload(b, v.in, 0, 0), v.q = ir_fload(b, v.in, 1280, 0), v.acc = ir_var_f(b, v.q);
	float_pairs(b, &v, integer_pairs(b, &v));
}

static void test_pairs(void **state)
{
	uint32_t in[1024];
	uint32_t seed = 7;
	for (unsigned k = 0; k < 1024; k++) {
		seed = seed * 1664525 + 1013904223;
		in[k] = k % 3 ? seed : op_edges[seed >> 8 & 31];
		if (op_is_nan(in[k]))
			in[k] = 0x7fc00000;
	}
	struct ir b;
	build_pairs(&b);
	check(&b, in, sizeof in, 0, 1, NANS_ALIKE);
	ir_free(&b);
}

/* --- memory */

static void test_lane_counts(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_f2i);
	for (unsigned n = 0; n <= 32; n += n < 3 || n > 29 ? 1 : 5) {
		struct ir b;
		begin_ir(&b);
		op_build_lane_counts(&b, n);
		check(&b, in, sizeof in, 0, 1, NANS_EXACT);
		ir_free(&b);
		begin_ir(&b);
		op_build_awaits(&b, n);
		check(&b, in, sizeof in, 0, 1, NANS_EXACT);
		ir_free(&b);
	}
}

/* Every way to load, from an address that is a register, plus what is added to it, from global memory or LDS. */
static void load_all_ways(struct ir *b, ir_a p, ir_a out, int32_t disp, int32_t *at)
{
	ir_i index = ir_iand(b, ir_iload(b, p, disp), ir_iconst(b, 0x7c));
	ir_f f[] = {
		ir_fload(b, p, disp, 0),
		ir_fload(b, p, disp + 4, 5),
		ir_fload_h(b, p, disp + 2),
		ir_fbits(b, ir_iload(b, p, disp + 8)),
		ir_fbits(b, ir_iload_u8(b, p, disp + 3)),
		ir_fbits(b, ir_iload_s8(b, p, disp + 1)),
		ir_fbits(b, ir_iload_u16(b, p, disp + 6)),
		ir_fbits(b, ir_iload_s(b, p, disp, 8)),
		ir_fbits(b, ir_iload_s(b, p, disp + 4, 8)),
		ir_fbits(b, ir_iload_s(b, p, disp + 4, 12)),
		ir_fbcast(b, p, disp + 12),
		ir_fbcast(b, p, disp + 16),
		ir_fbcast(b, p, disp + 24),
		ir_fbcast_h(b, p, disp + 18),
		ir_fbits(b, ir_ibcast(b, p, disp + 20)),
		ir_fbits(b, ir_igather(b, p, index, disp)),
		ir_fbits(b, ir_isplat(b, ir_sload32(b, p, disp + 8))),
		ir_fbits(b, ir_isplat(b, ir_sload64(b, p, disp))),
		ir_fbits(b, ir_isplat(b, ir_sshri(b, ir_sload64(b, p, disp + 32), 32))),
	};
	for (unsigned k = 0; k < sizeof f / sizeof *f; k++, *at += V)
		ir_fstore(b, out, f[k], *at, 0);
	ir_f var = ir_var_f(b, ir_fconst(b, 1));
	ir_i word = ir_var_i(b, ir_iconst(b, 1));
	ir_emit(b, IR_fbcast, var.r, p.r, 0, 0, disp);
	ir_emit(b, IR_iload_s, word.r, p.r, 0, 0, ir_x(disp, 0, 4));
	ir_fstore(b, out, ir_fbits(b, ir_iadd(b, ir_ibits(b, var), word)), *at, 0);
	*at += V;
}

static void test_loads(void **state)
{
	uint32_t in[1024];
	for (unsigned k = 0; k < 1024; k++)
		in[k] = (k * 2654435761u & 0x3f7fffff) | 0x20000000;
	for (unsigned kind = 0; kind < 6; kind++) {
		struct ir b;
		int32_t at = 0, disp = kind == 2 ? 100000000 : kind == 5 ? 70000 : 256;
		begin_ir(&b);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8),
		     local = ir_local(&b, 100), large = ir_local(&b, 2048), p;
		ir_fstore1(&b, local, ir_fload(&b, src, 0, 0), 96);
		for (int32_t k = 0; k < 2048; k += V)
			ir_fstore(&b, large, ir_fload(&b, src, k, 0), k, 0);
		p = kind == 0   ? src
		    : kind == 1 ? ir_var_a(&b, ir_aaddi(&b, src, 64))
		    : kind == 2 ? ir_aadd(&b, src, ir_ssub(&b, ir_begin(&b), ir_sconst(&b, disp)))
		    : kind == 3 ? large
		    : kind == 4 ? ir_var_a(&b, ir_aaddi(&b, large, 128))
		                : ir_aadd(&b, large, ir_ssub(&b, ir_begin(&b), ir_sconst(&b, disp)));
		load_all_ways(&b, p, out, disp, &at);
		if (kind < 5) /* LDS is unsigned: no base lies before it */
			load_all_ways(&b, ir_aaddi(&b, p, 640), out, disp - 640, &at);
		check(&b, in, sizeof in, 0, 1, NANS_EXACT);
		ir_free(&b);
	}
}

/* Words side by side, in every order, around what must keep them apart. */
static void test_groups(void **state)
{
	uint32_t in[1024];
	for (unsigned k = 0; k < 1024; k++)
		in[k] = k * 2654435761u;
	struct ir b;
	begin_ir(&b);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), shared = ir_local(&b, 4096),
	     p = ir_var_a(&b, src);
	ir_i sum = ir_var_i(&b, ir_ilane(&b));
	for (int32_t k = 0; k < 4096; k += V)
		ir_fstore(&b, shared, ir_fload(&b, src, k, 0), k, 0);
	ir_loop(&b, ir_sconst(&b, 3));
	for (int32_t round = 0; round < 2; round++) {
		ir_i w[40];
		for (int32_t k = 0; k < 8; k++)
			w[k] = ir_iload_s(&b, p, (k * 5 & 7) * 4, 32);
		for (int32_t k = 0; k < 16; k++)
			w[8 + k] = ir_ibcast(&b, p, 400 + (k * 7 & 15) * 4 + (k & 8 ? 64 : 0));
		for (int32_t k = 0; k < 6; k++)
			w[24 + k] = ir_ibcast(&b, shared, 200 + k * 4);
		for (int32_t k = 0; k < 6; k++)
			w[30 + k] = ir_iload_s(&b, shared, 16 + k * 4, 24);
		ir_fstore1(&b, shared, ir_fbits(&b, sum), 204);
		w[36] = ir_ibcast(&b, shared, 204);
		ir_fstore(&b, out, ir_fbits(&b, sum), 8192 + round * V, 0);
		w[37] = ir_iload_s(&b, out, 8192, 4);
		w[38] = ir_isplat(&b, ir_sload64(&b, p, 24));
		w[39] = ir_isplat(&b, ir_sload32(&b, p, 36));
		for (unsigned k = 0; k < 40; k++)
			ir_set_i(&b, sum, ir_iadd(&b, ir_imul(&b, sum, ir_iconst(&b, 31)), w[k]));
		ir_set_a(&b, p, ir_aaddi(&b, p, 52));
	}
	ir_endloop(&b);
	ir_fstore(&b, out, ir_fbits(&b, sum), 0, 0);
	check(&b, in, sizeof in, 0, 1, NANS_EXACT);
	ir_free(&b);
}

static void test_names_of_variables(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_f2i);
	struct ir b;
	begin_ir(&b);
	op_build_names(&b);
	check(&b, in, sizeof in, 0, 1, NANS_ALIKE);
	ir_free(&b);
}

/* --- loops */

static void test_loops(void **state)
{
	static const int64_t counts[] = { -3, 0, 1, 2, 7 };
	for (unsigned use = 0; use < 2; use++) {
		struct ir b;
		begin_ir(&b);
		op_build_loops(&b, use);
		for (unsigned n = 0; n < 5; n++)
			for (unsigned m = 0; m < 5; m++)
				check(&b, "", 0, counts[n], counts[m], NANS_EXACT);
		ir_free(&b);
	}
}

/* --- groups of waves: locals are each wave's own, shared bytes the group's */

static void test_waves(void **state)
{
	uint32_t in[1024];
	for (unsigned k = 0; k < 1024; k++)
		in[k] = k * 2654435761u >> 9;
	struct ir b;
	begin_ir(&b);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_a own = ir_local(&b, 2 * V), first = ir_shared(&b, 100), all = ir_shared(&b, WAVES * V);
	ir_s wave = ir_wave(&b), next = ir_sandi(&b, ir_saddi(&b, wave, 3), WAVES - 1);
	ir_a mine = ir_aadd(&b, all, ir_smuli(&b, wave, V)), theirs = ir_aadd(&b, all, ir_smuli(&b, next, V)),
	     to = ir_aadd(&b, out, ir_smuli(&b, wave, 4 * V));
	ir_f v = ir_fload(&b, ir_aadd(&b, src, ir_sshli(&b, wave, 7)), 0, 0);
	ir_fstore(&b, own, v, V, 0);
	ir_loop(&b, ir_ssub(&b, ir_sconst(&b, 1), ir_smin(&b, wave, ir_sconst(&b, 1)))); /* wave 0 */
	ir_fstore1(&b, first, v, 96);
	ir_endloop(&b);
	ir_s round = ir_loop(&b, ir_sconst(&b, 3));
	ir_fstore(&b, mine, ir_fadd(&b, v, ir_i2f(&b, ir_isplat(&b, round))), 0, 0);
	ir_barrier(&b);
	ir_fstore(&b, ir_aadd(&b, to, ir_sshli(&b, round, 7)),
	          ir_fadd(&b, ir_fload(&b, theirs, 0, 0), ir_fbcast(&b, theirs, 64)), 0, 0);
	ir_barrier(&b);
	ir_endloop(&b);
	ir_fstore(&b, to, ir_fadd(&b, ir_fload(&b, own, V, 0), ir_fbcast(&b, first, 96)), 3 * V, 0);
	ir_barrier_all(&b);
	ir_f left = ir_fload(&b, ir_aadd(&b, out, ir_smuli(&b, next, 4 * V)), 3 * V, 0); /* another wave's */
	ir_barrier_all(&b);
	ir_fstore(&b, to, ir_fmul(&b, left, ir_fload(&b, to, 2 * V, 0)), 3 * V, 0);
	check(&b, in, sizeof in, 0, 1, NANS_EXACT);
	ir_free(&b);
}

/* --- random kernels. Some need more scalar registers than there are, for nothing is spilled: those are refused, in so
 * many words. */

static void test_random(void **state)
{
	const char *more = getenv("JITRUN_RANDOM_KERNELS");
	uint64_t n = more ? strtoull(more, NULL, 10) : test_quick() ? 50 : 150, refused = 0;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct ir ir;
		struct object o;
		struct error err = { 0 };
		struct compile_options opt = { .seed = seed % 3 ? 0 : (uint32_t)seed,
			                       .skip = (uint32_t)(seed % 5 ? 0 : seed & 15) };
		random_ir(&ir, 32, seed, seed % 7 == 0 ? 600 : 30 + (unsigned)(seed % 11) * 25);
		if (!compile_card(&o, &ir, &opt, &err)) {
			if (err.code != ERROR_UNSUPPORTED)
				fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
			refused++;
		} else {
			struct random_ir_buffers *x = random_ir_buffers_new(seed);
			object_free(&o);
			check_modes(&ir, &opt, x->in, sizeof x->in, seed, (int64_t)(seed % 5) - 1, (int64_t)(seed % 9),
			            NANS_EXACT, (unsigned)(seed % MODES), (unsigned)(seed % MODES) + 1);
			free(x);
		}
		ir_free(&ir);
	}
	assert_true(refused * 5 <= n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_ops),  cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_lane_counts), cmocka_unit_test(test_loads),
		cmocka_unit_test(test_groups),      cmocka_unit_test(test_names_of_variables),
		cmocka_unit_test(test_loops),       cmocka_unit_test(test_waves),
		cmocka_unit_test(test_random),
	};
	int failed = 0;
	for (card_gen = 0; card_gen < RDNA_GEN_COUNT; card_gen++) {
		failed += cmocka_run_group_tests_name(rdna_call_targets[card_gen], tests, NULL, NULL);
		failed += rdna_sweep_tests();
	}
	return failed;
}
