/* tests/jit/t_compile.c - generated code against the interpreter, byte for byte.
 *
 * Every op alone on edge values with its destination on each operand; random kernels on whole and on shrunken register
 * files with scrambled choices; loops, frames, constants; the same bytes twice; the listing through the system's
 * assembler when there is one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jit/compile.h"
#include "jit/ir/ir_build.h"
#include "tests/jit/op_kernels.h"
#include "tests/jit/compile_check.h"
#include "tests/support/shared.h"

/* Bytes of a vector. */
static int32_t V(void) { return (int32_t)compile_isa->lanes * 4; }

static void check_all(const struct ir *ir, const void *in, size_t in_bytes, int64_t begin, int64_t end)
{
	for (unsigned f = 0; f < FILES; f++)
		check_native(ir, &files[f], in, in_bytes, 1, begin, end);
}

/* --- op by op */

static void check_vector_op(enum ir_op op, int64_t imm)
{
	uint32_t in[OP_WORDS];
	op_fill(in, op);
	for (unsigned dst_on = 0; dst_on < 4; dst_on++) {
		struct ir b;
		ir_init(&b, compile_isa->lanes);
		if (op_build_vector(&b, op, imm, dst_on, 0, in))
			check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

static void test_vector_ops(void **state)
{
	op_each_vector(compile_isa->lanes, check_vector_op);
	if (compile_isa->has_dot2)
		check_vector_op(IR_fdot2, 0);
}

static void begin_ir(struct ir *b) { ir_init(b, compile_isa->lanes); }

static void check_scalar(const struct ir *ir, const void *in, size_t in_bytes, unsigned round)
{
	static unsigned at;

	if (test_small_share() && at++ % 4)
		return;
	check_native(ir, &files[round % FILES], in, in_bytes, 1, 0, 1);
}

static void test_scalar_ops(void **state) { op_each_scalar(begin_ir, check_scalar); }

/* Every quotient is right near its steps, for divisors of every size. */
static void test_division(void **state)
{
	for (int64_t d = 1; d < INT32_MAX; d = d < 40 ? d + 1 : d * 3 + 1) {
		struct ir b;
		uint64_t in[OP_DIVIDENDS];
		ir_init(&b, compile_isa->lanes);
		op_build_division(&b, d, in);
		check_native(&b, &files[d % FILES], in, sizeof in, 1, 0, 1);
		ir_free(&b);
	}
}

/* --- memory */

static void test_lane_counts(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_f2i);
	for (unsigned n = 0; n <= compile_isa->lanes; n++) {
		struct ir b;
		ir_init(&b, compile_isa->lanes);
		op_build_lane_counts(&b, n);
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
		ir_init(&b, compile_isa->lanes);
		op_build_awaits(&b, n);
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

static void test_gather(void **state)
{
	uint32_t in[OP_WORDS];
	for (unsigned k = 0; k < OP_WORDS; k++)
		in[k] = k * 2654435761u;
	struct ir b;
	ir_init(&b, compile_isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), local = ir_local(&b, 1024);
	ir_i offset = ir_iand(&b, ir_iload(&b, src, 64), ir_iconst(&b, 0xfc)), var = ir_var_i(&b, offset);
	ir_emit(&b, IR_igather, var.r, src.r, var.r, 0, 32);
	ir_fstore(&b, out, ir_fbits(&b, var), 0, 0);
	ir_fstore(&b, out, ir_fbits(&b, ir_igather(&b, src, offset, -0)), V(), 0);
	for (int32_t k = 0; k < 1024; k += V())
		ir_fstore(&b, local, ir_fload(&b, src, k, 0), k, 0);
	ir_fstore(&b, out, ir_fbits(&b, ir_igather(&b, local, offset, 128)), 2 * V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* A load may move to its use only while nothing it depends on changes. */
static void test_folded_loads(void **state)
{
	float in[OP_WORDS];
	for (unsigned k = 0; k < OP_WORDS; k++)
		in[k] = (float)k * 0.37f - 5;
	struct ir b;
	ir_init(&b, compile_isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), p = ir_var_a(&b, src),
	     t = ir_aaddi(&b, p, 64);
	ir_f one = ir_fconst(&b, 1.5f), acc = ir_var_f(&b, ir_fload(&b, src, 0, 0));
	ir_f before = ir_fload(&b, t, 0, 0);
	ir_set_a(&b, p, ir_aaddi(&b, p, 128)); /* the address changes */
	ir_fstore(&b, out, ir_fadd(&b, before, one), 0, 0);
	ir_fstore(&b, out, ir_fload(&b, t, 32, 0), V(), 0);
	ir_f old = ir_fload(&b, out, 0, 0);
	ir_fstore(&b, out, one, 0, 0); /* the memory changes */
	ir_fstore(&b, out, ir_fmul(&b, old, one), 2 * V(), 0);
	ir_f outside = ir_fload(&b, p, 0, 0);
	ir_s k = ir_loop(&b, ir_sconst(&b, 3));
	ir_set_f(&b, acc, ir_ffma(&b, outside, one, acc)); /* another block */
	ir_set_a(&b, p, ir_aadd(&b, p, ir_sshli(&b, k, 5)));
	ir_set_f(&b, acc, ir_ffma(&b, acc, one, ir_fload(&b, p, 0, 0)));
	ir_set_f(&b, acc, ir_ffma(&b, ir_fload(&b, p, 32, 0), one, acc));
	ir_set_f(&b, acc, ir_ffma(&b, acc, ir_fload(&b, p, 64, 0), one));
	ir_endloop(&b);
	ir_fstore(&b, out, acc, 3 * V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

static void test_names_of_variables(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_f2i);
	struct ir b;
	ir_init(&b, compile_isa->lanes);
	op_build_names(&b);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* A value bound for a variable must not be written there early while a name of the old value is still read. */
static void test_early_writes(void **state)
{
	float in[32];
	for (unsigned k = 0; k < 32; k++)
		in[k] = (float)k - 3.5f;
	struct ir b;
	ir_init(&b, compile_isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_f v = ir_var_f(&b, ir_fload(&b, src, 0, 0)), w = ir_fload(&b, src, V(), 0);
	ir_i name = ir_ibits(&b, v);
	ir_f next = ir_fmul(&b, w, w);
	ir_fstore(&b, out, ir_fbits(&b, ir_ixor(&b, name, ir_ilane(&b))), 0, 0);
	ir_emit(&b, IR_fmov, v.r, next.r, 0, 0, 0);
	ir_fstore(&b, out, v, V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* dot4 keeps what it made of a recent operand; a write of the variable must end that. */
static void test_dot4_memo(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_dot4);
	struct ir b;
	ir_init(&b, compile_isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_i zero = ir_iconst(&b, 0), w = ir_var_i(&b, ir_iload(&b, src, 0)), acc = ir_var_i(&b, zero);
	ir_loop(&b, ir_sconst(&b, 3));
	ir_fstore(&b, out, ir_fbits(&b, ir_dot4(&b, w, ir_iload(&b, src, 640), zero)), 8 * V(), 0);
	ir_emit(&b, IR_dot4, acc.r, acc.r, ir_iload(&b, src, 672).r, zero.r, 0);
	for (int32_t k = 0; k < 6; k++) {
		ir_set_i(&b, acc, ir_dot4(&b, w, ir_iload(&b, src, 640 + V() * k), acc));
		if (k & 1)
			ir_set_i(&b, w, ir_ixor(&b, w, ir_iload(&b, src, 32 * k)));
		ir_fstore(&b, out, ir_fbits(&b, acc), V() * k, 0);
	}
	ir_endloop(&b);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* The same in both parts of an if, of which one alone is run. */
static void test_dot4_in_parts(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_dot4);
	for (uint32_t first = 0; first < 2; first++) {
		struct ir b;
		ir_init(&b, compile_isa->lanes);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
		ir_i zero = ir_iconst(&b, 0), w = ir_iload(&b, src, 64), acc = ir_var_i(&b, zero);
		in[0] = first;
		ir_if(&b, ir_seq(&b, ir_sload32(&b, src, 0), ir_sconst(&b, 1)));
		ir_set_i(&b, acc, ir_dot4(&b, w, ir_iload(&b, src, 640), zero));
		ir_else(&b);
		ir_set_i(&b, acc, ir_dot4(&b, w, ir_iload(&b, src, 768), zero));
		ir_endif(&b);
		ir_set_i(&b, acc, ir_dot4(&b, w, ir_iload(&b, src, 896), acc));
		ir_fstore(&b, out, ir_fbits(&b, acc), 0, 0);
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

/* --- loops */

static void test_loops(void **state)
{
	static const int64_t counts[] = { -3, 0, 1, 2, 7 };
	for (unsigned use = 0; use < 2; use++) {
		struct ir b;
		ir_init(&b, compile_isa->lanes);
		op_build_loops(&b, use);
		for (unsigned n = 0; n < 5; n++)
			for (unsigned m = 0; m < 5; m++)
				check_all(&b, "", 0, counts[n], counts[m]);
		ir_free(&b);
	}
}

static void test_deep_nesting(void **state)
{
	struct ir b;
	ir_init(&b, compile_isa->lanes);
	ir_a arg = ir_arg(&b), out = ir_aload(&b, arg, 8);
	ir_s sum = ir_var_s(&b, ir_sconst(&b, 0)), index[IR_MAX_LOOP_DEPTH];
	for (unsigned d = 0; d < IR_MAX_LOOP_DEPTH; d++)
		index[d] = ir_loop(&b, ir_sconst(&b, d % 4 == 0 ? 2 : 1));
	for (unsigned d = 0; d < IR_MAX_LOOP_DEPTH; d++)
		ir_set_s(&b, sum, ir_sadd(&b, sum, ir_saddi(&b, index[d], d)));
	for (unsigned d = 0; d < IR_MAX_LOOP_DEPTH; d++)
		ir_endloop(&b);
	int32_t at = 0;
	op_store_scalar(&b, out, sum, &at);
	check_all(&b, "", 0, 0, 1);
	ir_free(&b);
}

/* --- frames, constants, pressure */

static void test_large_frames(void **state)
{
	static const int32_t sizes[] = { 4, 64, 4000, 4096, 8192, 262144 };
	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		struct ir b;
		int32_t last = (sizes[s] - 4) & ~3;
		ir_init(&b, compile_isa->lanes);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
		ir_a x = ir_local(&b, sizes[s]), y = ir_local(&b, 100), p = ir_var_a(&b, x);
		ir_f v = ir_fload(&b, src, 0, 0);
		ir_fstore1(&b, x, v, 0);
		ir_fstore1(&b, p, v, last);
		ir_fstore(&b, y, v, 0, 0);
		ir_fstore1(&b, ir_aaddi(&b, x, last), ir_fxor(&b, v, 1), 0);
		ir_fstore1(&b, out, ir_fbcast(&b, p, last), 0);
		ir_fstore(&b, out, ir_fload(&b, ir_aadd(&b, y, ir_sconst(&b, 0)), 0, 0), V(), 0);
		check_all(&b, op_edges, sizeof op_edges, 0, 1);
		ir_free(&b);
	}
}

static void test_many_constants(void **state)
{
	struct ir b;
	ir_init(&b, compile_isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_f acc = ir_var_f(&b, ir_fload(&b, src, 0, 0));
	ir_loop(&b, ir_sconst(&b, 2));
	for (int k = 0; k < 300; k++)
		ir_set_f(&b, acc,
		         ir_ffma(&b, acc, ir_fconst(&b, 1.0f / (float)(k + 1)), ir_fconst(&b, (float)(k % 40))));
	ir_fstore(&b, out, ir_fabs(&b, ir_fneg(&b, acc)), 0, 0);
	ir_endloop(&b);
	float in[16] = { 0, 1, 2, 3, -4, 5, 6, -7, 8, 9, -10, 11, 12, 13, -14, 15 };
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* More values alive than registers, in a loop: the spills are counted, and constants are not. */
static void test_pressure_is_counted(void **state)
{
	for (unsigned live = 8; live <= 40; live += 16) {
		struct ir b;
		struct object o;
		struct compile_stats stats;
		ir_f acc[40];
		ir_init(&b, compile_isa->lanes);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), p = ir_var_a(&b, src);
		for (unsigned k = 0; k < live; k++)
			acc[k] = ir_var_f(&b, ir_fconst(&b, 0));
		ir_loop(&b, ir_sconst(&b, 4));
		ir_f x = ir_fbcast(&b, p, 0);
		for (unsigned k = 0; k < live; k++)
			ir_set_f(&b, acc[k], ir_ffma(&b, x, ir_fload(&b, p, V() * (int32_t)k, 0), acc[k]));
		ir_set_a(&b, p, ir_aaddi(&b, p, 32));
		ir_endloop(&b);
		for (unsigned k = 0; k < live; k++)
			ir_fstore(&b, out, acc[k], V() * (int32_t)k, 0);
		compile_x86(&o, &b, NULL, &stats);
		assert_int_equal(stats.spills_in_inner_loops > 0, live >= compile_isa->vector_regs);
		assert_true(stats.spills >= stats.spills_in_inner_loops);
		assert_true(stats.vector_regs_used <= compile_isa->vector_regs);
		assert_true(stats.machine_instructions > 2 * live);
		object_free(&o);
		float in[960];
		for (unsigned k = 0; k < 960; k++)
			in[k] = (float)(k % 97) * 0.25f;
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

static void test_parts_refused(void **unused)
{
	const struct target *t = target_find("gfx1100");
	struct error err = { 0 };
	struct object o;
	struct ir b;

	for (unsigned k = 0; k < 2; k++) {
		err = (struct error){ 0 };
		ir_init(&b, t->lanes);
		ir_a out = ir_aadd(&b, ir_aload(&b, ir_arg(&b), 0), k ? ir_parts(&b) : ir_part(&b));
		ir_fstore(&b, out, ir_fconst(&b, 0), 0, 0);
		assert_false(compile_ir(&o, &b, t, NULL, NULL, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		assert_string_equal(err.text, "target gfx1100 does no units in parts");
		ir_free(&b);
	}
}

/* What rows need of a target (ops.def), beside parts and copies. */
static void test_needs_refused(void **unused)
{
	for (unsigned k = 0; k < 3; k++) {
		const struct target *t = target_find(k == 0 ? "gfx1030" : "avx2");
		struct error err = { 0 };
		struct object o;
		struct ir b;

		ir_init(&b, t->lanes);
		ir_a out = ir_aload(&b, ir_arg(&b), 0);
		if (k == 0)
			ir_tstore(&b, out, ir_tconst(&b, 1), 0, 64, 4);
		else if (k == 1)
			ir_idots(&b, out, 0, ir_aaddi(&b, out, 4096), ir_aaddi(&b, out, 8192), 4);
		else
			ir_fstore(&b, out, ir_fdot2(&b, ir_fconst(&b, 1), ir_fconst(&b, 2), ir_fconst(&b, 3)), 0, 0);
		assert_false(compile_ir(&o, &b, t, NULL, NULL, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		assert_string_equal(
			err.text,
			k == 0   ? "the kernel has the matrix operation tconst, for which target gfx1030 has no "
				   "instruction"
			: k == 1 ? "the kernel has the matrix operation idots, for which target avx2 has no instruction"
				 : "the kernel has the operation fdot2, for which target avx2 has no instruction");
		ir_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_refused),
		cmocka_unit_test(test_needs_refused),
		cmocka_unit_test(test_vector_ops),
		cmocka_unit_test(test_scalar_ops),
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_lane_counts),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_folded_loads),
		cmocka_unit_test(test_names_of_variables),
		cmocka_unit_test(test_early_writes),
		cmocka_unit_test(test_dot4_memo),
		cmocka_unit_test(test_dot4_in_parts),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_large_frames),
		cmocka_unit_test(test_many_constants),
		cmocka_unit_test(test_pressure_is_counted),
	};
	int failed = 0;
	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++) {
		compile_isa = &target_table[id];
		if (compile_isa->backend != &backend_x86)
			continue;
		failed += cmocka_run_group_tests_name(compile_isa->name, tests, NULL, NULL);
		failed += compile_listing_tests();
	}
	return failed;
}
