/* tests/jit/t_ir.c - the builder (registers, ir_set, sticky errors), text and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/ir/ir_build.h"
#include "tests/jit/ir_rows_tests.h"
#include "tests/jit/random_ir.h"

static void test_registers(void **unused)
{
	struct ir b;

	ir_init(&b, 16);
	assert_int_equal(b.lanes, 16);
	ir_f one = ir_fconst(&b, 1.0f);
	ir_i lane = ir_ilane(&b);
	ir_m less = ir_flt(&b, one, ir_i2f(&b, lane));

	assert_int_equal(one.r, 1);
	assert_int_equal(lane.r, 2);
	assert_int_equal(less.r, 4);
	assert_int_equal(b.type[1], IR_TYPE_f32);
	assert_int_equal(b.type[2], IR_TYPE_i32);
	assert_int_equal(b.type[4], IR_TYPE_m);
	assert_int_equal(b.n_regs, 5);
	assert_int_equal(b.n_ins, 4);
	assert_int_equal(b.ins[0].imm, 0x3f800000);
	assert_int_equal(ir_row(&b.ins[3]), IR_flt);
	assert_int_equal(b.ins[3].a, one.r);
	assert_true(ir_verify(&b, NULL));
	ir_free(&b);
}

static void test_pack_immediate(void **unused)
{
	const int64_t x = ir_x(-20, 5, 0x123456);

	assert_int_equal(ir_x_disp(x), -20);
	assert_int_equal(ir_x_lanes(x, 8), 5);
	assert_int_equal(ir_x_stride(x), 0x123456);
	assert_int_equal(ir_x_lanes(ir_x(7, 0, 0), 32), 32);
	assert_int_equal(ir_x_disp(ir_x(INT32_MIN, 32, 4)), INT32_MIN);
}

static void test_set_retargets(void **unused)
{
	struct ir b;

	ir_init(&b, 8);
	ir_f zero = ir_fconst(&b, 0.0f), sum = ir_var_f(&b, zero);
	const size_t before = b.n_ins;

	ir_set_f(&b, sum, ir_fadd(&b, sum, zero));
	assert_int_equal(b.n_ins, before + 1);
	assert_int_equal(ir_row(&b.ins[before]), IR_fadd);
	assert_int_equal(b.ins[before].dst, sum.r);
	/* a load too */
	ir_a p = ir_arg(&b);
	ir_set_f(&b, sum, ir_fload(&b, p, 0, 0));
	assert_int_equal(ir_row(&b.ins[b.n_ins - 1]), IR_fload);
	assert_int_equal(b.ins[b.n_ins - 1].dst, sum.r);
	assert_true(ir_verify(&b, NULL));
	ir_free(&b);
}

static void test_set_moves(void **unused)
{
	struct ir b;

	ir_init(&b, 8);
	ir_s four = ir_sconst(&b, 4), five = ir_sconst(&b, 5), v = ir_var_s(&b, four), w = ir_var_s(&b, five);
	size_t n;

	/* not the last instruction's result */
	ir_set_s(&b, v, five);
	assert_int_equal(ir_row(&b.ins[b.n_ins - 1]), IR_smov);
	assert_int_equal(b.ins[b.n_ins - 1].dst, v.r);
	assert_int_equal(b.ins[b.n_ins - 1].a, five.r);
	/* the last instruction's result, but a variable: it must keep being written */
	n = b.n_ins;
	ir_set_s(&b, w, v);
	assert_int_equal(b.n_ins, n + 1);
	assert_int_equal(b.ins[n - 1].dst, v.r);
	assert_int_equal(ir_row(&b.ins[n]), IR_smov);
	/* the index of the loop just opened */
	ir_s i = ir_loop(&b, four);
	ir_set_s(&b, v, i);
	assert_int_equal(ir_row(&b.ins[b.n_ins - 2]), IR_loop);
	assert_int_equal(b.ins[b.n_ins - 2].dst, i.r);
	assert_int_equal(ir_row(&b.ins[b.n_ins - 1]), IR_smov);
	ir_endloop(&b);
	assert_true(ir_verify(&b, NULL));
	ir_free(&b);
}

static void test_dead_handle_is_noticed(void **unused)
{
	struct ir b;
	struct error err = { 0 };

	ir_init(&b, 8);
	ir_i v = ir_var_i(&b, ir_iconst(&b, 1)), sum = ir_iadd(&b, v, v);
	ir_set_i(&b, v, sum);
	ir_imul(&b, sum, v);
	assert_false(ir_verify(&b, &err));
	assert_non_null(strstr(err.text, "not defined on every path"));
	ir_free(&b);
}

static void test_locals(void **unused)
{
	struct ir b;

	ir_init(&b, 8);
	ir_local(&b, 1);
	ir_local(&b, 64);
	ir_local(&b, 65);
	assert_int_equal(b.local_bytes, 64 + 64 + 128);
	assert_true(ir_verify(&b, NULL));
	ir_local(&b, IR_MAX_LOCAL_BYTES - 256);
	assert_null(b.error);
	assert_int_equal(b.local_bytes, IR_MAX_LOCAL_BYTES);
	ir_local(&b, 1);
	assert_non_null(b.error);
	ir_free(&b);
}

/* Every wrong call leaves a sentence that ir_verify repeats, and nothing is appended afterwards. */
static void refuse(struct ir *b, const char *fragment)
{
	struct error err = { 0 };
	const size_t n = b->n_ins;

	assert_non_null(b->error);
	assert_non_null(strstr(b->error, fragment));
	assert_int_equal(ir_fconst(b, 1.0f).r, 0);
	assert_int_equal(ir_new_var(b, IR_TYPE_f32), 0);
	ir_set(b, 1, 1);
	assert_int_equal(b->n_ins, n);
	assert_non_null(strstr(b->error, fragment));
	assert_false(ir_verify(b, &err));
	assert_non_null(strstr(err.text, fragment));
	ir_free(b);
}

static void test_sticky_kinds(void **unused)
{
	struct ir b;

	ir_init(&b, 8);
	ir_i i = ir_iconst(&b, 1);
	ir_emit(&b, IR_fadd, 0, i.r, i.r, 0, 0);
	refuse(&b, "another type");

	ir_init(&b, 8);
	ir_emit(&b, IR_fabs, 0, 0, 0, 0, 0);
	refuse(&b, "another type");

	ir_init(&b, 8);
	ir_emit(&b, IR_fabs, 0, 77, 0, 0, 0);
	refuse(&b, "another type");

	ir_init(&b, 8);
	i = ir_iconst(&b, 1);
	ir_emit(&b, IR_isplat, 0, ir_sconst(&b, 1).r, i.r, 0, 0);
	refuse(&b, "another type");
}

static void test_sticky_variables(void **unused)
{
	struct ir b;
	ir_f f;

	ir_init(&b, 8);
	f = ir_fconst(&b, 1.0f);
	ir_emit(&b, IR_fmov, f.r, f.r, 0, 0, 0);
	refuse(&b, "no variable of its type");

	ir_init(&b, 8);
	f = ir_fconst(&b, 1.0f);
	ir_emit(&b, IR_fmov, ir_new_var(&b, IR_TYPE_i32), f.r, 0, 0, 0);
	refuse(&b, "no variable of its type");

	ir_init(&b, 8);
	f = ir_fconst(&b, 1.0f);
	ir_set_f(&b, f, f);
	refuse(&b, "no variable");

	ir_init(&b, 8);
	f = ir_fconst(&b, 1.0f);
	ir_set(&b, ir_new_var(&b, IR_TYPE_s), f.r);
	refuse(&b, "another type");

	ir_init(&b, 8);
	ir_new_var(&b, IR_TYPE_o);
	refuse(&b, "no F, I, M, S, C, A, T, D or L");

	ir_init(&b, 8);
	ir_emit(&b, IR_loop, ir_new_var(&b, IR_TYPE_s), ir_sconst(&b, 1).r, 0, 0, 0);
	refuse(&b, "no variable");
}

static void test_sticky_shape(void **unused)
{
	struct ir b;

	ir_init(&b, 12);
	refuse(&b, "8, 16 or 32");

	ir_init(&b, 8);
	ir_endloop(&b);
	refuse(&b, "closes no loop");

	ir_init(&b, 8);
	ir_loop(&b, ir_sconst(&b, 1));
	ir_local(&b, 8);
	refuse(&b, "inside a loop");

	ir_init(&b, 8);
	ir_local(&b, 0);
	refuse(&b, "empty");

	ir_init(&b, 8);
	ir_s n = ir_sconst(&b, 1);
	for (int k = 0; k < IR_MAX_LOOP_DEPTH; k++)
		ir_loop(&b, n);
	assert_null(b.error);
	ir_loop(&b, n);
	refuse(&b, "deeper than 16");
}

static void test_sticky_registers(void **unused)
{
	struct ir b;

	ir_init(&b, 8);
	for (unsigned k = 1; k < IR_MAX_REGS; k++)
		assert_int_equal(ir_iconst(&b, k).r, k);
	assert_true(ir_verify(&b, NULL));
	assert_int_equal(ir_iconst(&b, 0).r, 0);
	refuse(&b, "65535 registers");
}

static char *print_text(const struct ir *ir)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	ir_print(ir, f);
	fclose(f);
	return text;
}

static void test_print(void **unused)
{
	struct ir b;
	char *text;

	ir_init(&b, 8);
	ir_a p = ir_aload(&b, ir_arg(&b), 8);
	ir_f sum = ir_var_f(&b, ir_fconst(&b, 0.5f));
	ir_loop(&b, ir_end(&b));
	ir_set_f(&b, sum, ir_ffma(&b, sum, ir_fload(&b, p, -4, 3), sum));
	ir_endloop(&b);
	ir_fstore_s(&b, p, sum, 16, 5, 64);
	ir_fstore(&b, p, ir_fbits(&b, ir_ishl(&b, ir_ibits(&b, sum), 3)), 0, 0);
	text = print_text(&b);
	assert_string_equal(
		text,
		"lanes 8\n"
		"var %4:F\n"
		"%1:A = arg\n"
		"%2:A = aload %1 @8\n"
		"%3:F = fconst #0x3f000000 ; 0.5\n"
		"%4:F = fmov %3\n"
		"%5:S = end\n"
		"%6:S = loop %5\n"
		"  %7:F = fload %2 @-4/3\n"
		"  %4:F = ffma %4 %7 %4\n"
		"endloop\n"
		"fstore_s %2 %4 @16/5*64\n"
		"%9:I = ibits %4\n"
		"%10:I = ishl %9 #3\n"
		"%11:F = fbits %10\n"
		"fstore %2 %11 @0\n");
	free(text);
	ir_free(&b);
}

static bool ins_equal(const struct ir_ins *x, const struct ir_ins *y)
{
	return x->op == y->op && x->type == y->type && x->mask == y->mask && x->dst == y->dst && x->a == y->a &&
	       x->b == y->b && x->c == y->c && x->imm == y->imm;
}

static void test_text_and_back(void **unused)
{
	for (uint64_t seed = 0; seed < 600; seed++) {
		struct ir ir, back;
		struct error err = { 0 };
		char *text, *again;

		random_ir(&ir, 8u << seed % 3, seed, 20 + (unsigned)seed);
		assert_null(ir.error);
		text = print_text(&ir);
		if (!ir_parse(&back, text, &err))
			fail_msg("seed %u: %s", (unsigned)seed, err.text);
		again = print_text(&back);
		assert_string_equal(text, again);
		assert_int_equal(ir.n_ins, back.n_ins);
		for (size_t n = 0; n < ir.n_ins; n++)
			assert_true(ins_equal(&ir.ins[n], &back.ins[n]));
		assert_int_equal(ir.lanes, back.lanes);
		assert_int_equal(ir.local_bytes, back.local_bytes);
		assert_true(ir_verify(&back, NULL));
		free(text);
		free(again);
		ir_free(&ir);
		ir_free(&back);
	}
}

static void test_parse_is_lenient_with_space(void **unused)
{
	struct ir ir;
	struct error err = { 0 };

	assert_true(ir_parse(&ir, "  ; a comment\n\nlanes 16\n\t%1:I =  iconst  #-7 ; seven\r\n%2:I=iadd %1 %1", &err));
	assert_int_equal(ir.lanes, 16);
	assert_int_equal(ir.n_ins, 2);
	assert_int_equal(ir.ins[0].imm, -7);
	assert_true(ir_verify(&ir, &err));
	ir_free(&ir);
}

static void test_parse_refuses(void **unused)
{
	static const struct {
		const char *text, *expected;
	} wrong[] = {
		{ "lanes x", "line 1: found \"x\", expected a number" },
		{ "lanes 999", "in range" },
		{ "lanes 8 9", "the end of the line" },
		{ "var 3:F", "a register" },
		{ "var %3", "a kind" },
		{ "var %3:Q", "a kind" },
		{ "\n%1:F = fnothing", "line 2: found \"fnothing\", expected the name of an operation" },
		{ "%1:F fabs %2", "expected =" },
		{ "%1:F = fstore %1 %2 @0", "an operation with a result" },
		{ "fabs %1", "an operation without a result" },
		{ "%1:F = fadd %2", "a register" },
		{ "%1:F = fabs %2 %3", "the end of the line" },
		{ "%1:I = iconst 5", "an immediate" },
		{ "%1:I = iconst #", "a number" },
		{ "%1:I = iconst #99999999999999999999 7", "the end of the line" },
		{ "%1:I = iload %2", "a displacement" },
		{ "%1:F = fload %2 @3000000000", "in range" },
		{ "%1:I = iload %2 @3000000000", "in range" },
		{ "%1:F = add %2 %3", "found \"add %2 %3\", expected the name of an operation" },
		{ "%1:F = fload %2 @0/300", "in range" },
		{ "%1:F = fload %2 @0/4*", "a number" },
		{ "%65536:F = fabs %2", "in range" },
		{ "%1:F = fabs %-1", "in range" },
	};

	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		struct ir ir;
		struct error err = { 0 };

		assert_false(ir_parse(&ir, wrong[k].text, &err));
		assert_int_equal(err.code, ERROR_FORMAT);
		if (!strstr(err.text, wrong[k].expected))
			fail_msg("%s: %s", wrong[k].text, err.text);
		ir_free(&ir); /* harmless: a refused text leaves nothing */
	}
}

static void test_random_ir_uses_every_op(void **unused)
{
	size_t used[IR_ROWS] = { 0 }, masked[IR_ROWS] = { 0 };

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct ir ir;
		struct error err = { 0 };

		random_ir(&ir, 8u << seed % 3, seed, 300);
		if (!ir_verify(&ir, &err))
			fail_msg("seed %u: %s", (unsigned)seed, err.text);
		for (size_t n = 0; n < ir.n_ins; n++)
			masked[ir_row(&ir.ins[n])] += ir.ins[n].mask != 0, used[ir_row(&ir.ins[n])]++;
		ir_free(&ir);
	}
	for (unsigned op = 0; op < IR_ROWS; op++)
		if (ir_is_row(op) && ir_facts[op].effects & IR_MASKABLE && masked[op] < 20)
			fail_msg("%s has a mask only %zu times in 400 kernels", ir_facts[op].name, masked[op]);
	for (unsigned op = 0; op < IR_ROWS; op++)
		if (ir_is_row(op) && !ir_facts[op].needs && used[op] < 50)
			fail_msg("%s stands only %zu times in 400 kernels", ir_facts[op].name, used[op]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_pack_immediate),
		cmocka_unit_test(test_set_retargets),
		cmocka_unit_test(test_set_moves),
		cmocka_unit_test(test_dead_handle_is_noticed),
		cmocka_unit_test(test_locals),
		cmocka_unit_test(test_sticky_kinds),
		cmocka_unit_test(test_sticky_variables),
		cmocka_unit_test(test_sticky_shape),
		cmocka_unit_test(test_sticky_registers),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_text_and_back),
		cmocka_unit_test(test_parse_is_lenient_with_space),
		cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_random_ir_uses_every_op),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) + ir_rows_tests();
}
