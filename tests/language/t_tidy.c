/* tests/language/t_tidy.c - what a target's IR has less of than the IR that the interpreter runs (language/tidy.c).
 * That results stay the same is what every other test of kernels looks at.
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
#include "jit/ir/ir.h"
#include "jit/target.h"
#include "tests/language/run_kernel.h"

/* Of an operation: in all; in any loop; where loops of instances have one; behind a store, or a division, since the
 * last branch. */
struct counts {
	unsigned all, in_loops, in_inner_loops, behind_stores, behind_divisions;
};

static struct counts count(const struct run *r, const char *target, unsigned op)
{
	const struct target *t = target_find(target);
	struct counts c = { 0 };
	struct error err = { 0 };
	unsigned loops = 0, stores = 0, divisions = 0;
	struct ir ir;

	if (!(t ? jk_build(&ir, r->kernel, t, false, &err) : jk_build_lanes(&ir, r->kernel, 8, 1, false, &err)))
		fail_msg("%s", err.text);
	assert_true(ir_verify(&ir, &err));
	for (size_t k = 0; k < ir.n_ins; k++) {
		loops += ir.ins[k].op == IR_loop;
		loops -= ir.ins[k].op == IR_endloop;
		c.all += ir.ins[k].op == op;
		c.in_loops += ir.ins[k].op == op && loops > 0;
		c.in_inner_loops += ir.ins[k].op == op && loops > 2;
		stores = ir_does(ir.ins[k].op, IR_BRANCHES)
		                 ? 0
		                 : stores + (ir.ins[k].op == IR_store || ir.ins[k].op == IR_store_strided);
		c.behind_stores += ir.ins[k].op == op && stores > 0;
		divisions = ir_does(ir.ins[k].op, IR_BRANCHES) ? 0 : divisions + (ir.ins[k].op == IR_div);
		c.behind_divisions += ir.ins[k].op == op && divisions > 0;
	}
	assert_true(ir.beside); /* the waves of a group share what they read */
	ir_free(&ir);
	return c;
}

static void test_joined(void **state)
{
	static const char text[] =
		"const i64 n;\n"
		"fn f32 twice(in i32 p[256], in f32 x[n], i64 i) { return x[p[p[i & 255] & 255] & 7]; }\n"
		"kernel k(in i32 p[256], in f32 x[n], out f32 y[n]) over (i in n) {\n"
		"	f32 a = twice(p, x, i); f32 b = twice(p, x, i);\n"
		"	y[i] = exp(a) + exp(b);\n"
		"}\n";
	struct run r;

	run_open(&r, text, NULL, "n=64");
	/* as written: each call has its gathers */
	const struct counts written = count(&r, "none", IR_gather), once = count(&r, "avx2", IR_gather),
			    card = count(&r, "sm90", IR_gather);
	assert_int_equal(written.all, 2 * once.all);
	assert_int_equal(card.all, once.all);
	/* and its series */
	assert_int_equal(count(&r, "none", IR_fma).all, 2 * count(&r, "avx2", IR_fma).all);
	run_close(&r);
}

/* What instances write is read again. */
static void test_not_joined(void **state)
{
	static const char text[] =
		"const i64 n;\n"
		"kernel k(inout f32 y[n]) over (i in n) { f32 a = y[i]; y[i] = a + 1; y[i] = y[i] * a; }\n";
	struct run r;

	run_open(&r, text, NULL, "n=64");
	/* avx2: four vectors in a turn; sm90: lanes with four neighbours */
	assert_int_equal(count(&r, "avx2", IR_load).all, 4 * count(&r, "none", IR_load).all);
	assert_int_equal(count(&r, "sm90", IR_load_strided).all, 4 * count(&r, "none", IR_load).all);
	run_close(&r);
}

/* Vectors that a turn has side by side are all read before the first is stored, on cards, which wait for memory then.
 */
static void test_late_stores(void **state)
{
	static const char text[] = "const i64 n;\n"
				   "kernel k(in f32 x[n], out f32 y[n]) over (i in n) { y[i] = x[i] + 1; }\n";
	struct run r;
	(void)state;

	run_open(&r, text, NULL, "n=1024");
	assert_int_equal(count(&r, "sm90", IR_load_strided).all, 4);
	assert_int_equal(count(&r, "sm90", IR_load_strided).behind_stores, 0);
	assert_int_equal(count(&r, "avx2", IR_load).behind_stores, 3);
	run_close(&r);
}

/* And before the first of the divisions, across which a card's compiler moves no read. Those that depend on another
 * stay behind it, and no more than 16 stand together. */
static void test_early_reads(void **state)
{
	static const char text[] =
		"const i64 n;\n"
		"kernel k(in f32 x[n], out f32 y[n]) over (i in n) { y[i] = 3 / x[i]; }\n"
		"kernel chain(in u32 p[n], in f32 x[n], out f32 y[n]) over (i in n) { y[i] = 1 / x[p[i] & 31]; }\n";
	struct run r;
	(void)state;

	run_open(&r, text, "k", "n=1024");
	assert_int_equal(count(&r, "sm90", IR_load_strided).all, 4);
	assert_int_equal(count(&r, "sm90", IR_load_strided).behind_divisions, 0);
	assert_int_equal(count(&r, "gfx1100", IR_load).behind_divisions, 3);
	assert_int_equal(count(&r, "avx2", IR_load).behind_divisions, 3);
	run_close(&r);
	run_open(&r, text, "chain", "n=1024");
	assert_int_equal(count(&r, "sm90", IR_load).behind_divisions, 0);
	assert_int_equal(count(&r, "sm90", IR_gather).behind_divisions, 3);
	for (unsigned i = 0; i < 1024; i++) {
		((uint32_t *)run_array(&r, "p"))[i] = i * 7;
		((float *)run_array(&r, "x"))[i] = (float)(i + 1);
	}
	run_everywhere(&r, RUN_CARDS);
	for (unsigned i = 0; i < 1024; i++)
		assert_true(((float *)run_array(&r, "y"))[i] == 1 / (float)(i * 7 % 32 + 1));
	run_close(&r);
}

/* Rows that several reductions read are read once where a card has registers for them, and there is no loop but that of
 * instances; longer ones are read again. */
static void test_kept_rows(void **state)
{
	struct run r;
	(void)state;

	run_open_example(&r, "softmax", NULL, "rows=3 n=1000");
	assert_int_equal(count(&r, "sm90", IR_load).all, 32);
	assert_int_equal(count(&r, "sm90", IR_loop).all, 1);
	assert_true(count(&r, "gfx1100", IR_loop).all > 1);
	run_close(&r);
	run_open_example(&r, "layernorm", NULL, "rows=3 n=4096");
	assert_int_equal(count(&r, "sm90", IR_load).all, 3 * 128);
	assert_int_equal(count(&r, "sm90", IR_loop).all, 1);
	run_close(&r);
	run_open_example(&r, "layernorm", NULL, "rows=3 n=4097");
	assert_true(count(&r, "sm90", IR_loop).all > 3);
	run_close(&r);
}

/* A card's compiler does not see what a least number begins with: it would make one operation of a comparison with
 * infinity and a choice, in which a NaN loses its bits. */
static void test_hidden_beginnings(void **state)
{
	static const char text[] =
		"const i64 n;\n"
		"kernel k(in f32 x[n], out f32 y[2]) over (i in 1) {\n"
		"	y[0] = min(j in 0..n: x[j]); y[1] = max(j in 0..n: x[j]);\n"
		"}\n";
	struct run r;
	(void)state;

	run_open(&r, text, NULL, "n=40");
	assert_int_equal(count(&r, "sm90", IR_or).all, 2);
	assert_int_equal(count(&r, "avx2", IR_or).all, 0);
	run_close(&r);
}

static void test_moved(void **state)
{
	static const char text[] =
		"const i64 n;\n"
		"kernel k(in f32 x[n], out f32 y[n]) over (i in n) {\n"
		"	f32 s = 0;\n"
		"	for (k in 0..9) { s += exp(x[i]) / (1 + f32(k)); }\n"
		"	y[i] = s;\n"
		"}\n";
	struct run r;

	run_open(&r, text, NULL, "n=64");
	/* lowering moves what the text shows; exp's reduction of the argument stands before the loop either way */
	assert_int_equal(count(&r, "avx2", IR_round).in_inner_loops, 0);
	/* constants and whatever follows from them alone stand before all loops */
	assert_true(count(&r, "none", IR_const).in_loops > 0);
	assert_int_equal(count(&r, "avx2", IR_const).in_loops, 0);
	run_close(&r);
}

/* Small arrays that atomics alone reach have a copy in the frame, whose sum they get. */
static void test_counts(void **state)
{
	static const char text[] =
		"const i64 n;\n"
		"kernel k(in u32 x[n], inout u32 a[13], inout i32 b[21], inout u32 c[100]) over (i in n) {\n"
		"	atomic_add(a[x[i] % 13], 3);\n"
		"	atomic_or(b[x[i] % 21], i32(x[i]));\n"
		"	atomic_add(c[x[i] % 100], x[i]);\n"
		"}\n";
	uint32_t a[13], b[21], c[100];
	struct run r;

	run_open(&r, text, NULL, "n=3001");
	uint32_t *x = run_array(&r, "x"), *given_a = run_array(&r, "a"), *given_b = run_array(&r, "b"),
		 *given_c = run_array(&r, "c");
	for (unsigned k = 0; k < 13; k++)
		a[k] = given_a[k] = k * 1000003u;
	for (unsigned k = 0; k < 21; k++)
		b[k] = given_b[k] = 1u << k;
	for (unsigned k = 0; k < 100; k++)
		c[k] = given_c[k] = ~k;
	for (unsigned k = 0; k < 3001; k++) {
		x[k] = k * 2654435761u;
		a[x[k] % 13] += 3;
		b[x[k] % 21] |= x[k];
		c[x[k] % 100] += x[k];
	}
	/* c has too many elements for so few instances */
	assert_int_equal(count(&r, "avx2", IR_local).all, 2);
	assert_int_equal(count(&r, "sm90", IR_local).all, 2);
	run_everywhere(&r, RUN_CARDS);
	assert_memory_equal(run_array(&r, "a"), a, sizeof a);
	assert_memory_equal(run_array(&r, "b"), b, sizeof b);
	assert_memory_equal(run_array(&r, "c"), c, sizeof c);
	run_close(&r);
}

/* A card's frame is smaller. */
static void test_larger_counts(void **state)
{
	static const char text[] = "const i64 n;\n"
				   "kernel k(inout u32 a[600]) over (i in n) { atomic_add(a[(i * 7) % 600], 1); }\n";
	struct run r;
	(void)state;

	run_open(&r, text, NULL, "n=38401");
	assert_int_equal(count(&r, "avx2", IR_local).all, 1);
	assert_int_equal(count(&r, "sm90", IR_local).all, 0);
	run_everywhere(&r, RUN_CPUS);
	for (unsigned k = 0; k < 600; k++)
		assert_int_equal(((const uint32_t *)run_array(&r, "a"))[k], 64 + (k == 0));
	run_close(&r);
}

/* Kernels that read planes of a field fetch the foremost elements ahead, on CPUs alone, once for a vector. */
static void test_ahead(void **state)
{
	struct run r;

	run_open_example(&r, "stencil", NULL, "n=64");
	assert_int_equal(count(&r, "avx2", IR_prefetch).all, 3);
	assert_int_equal(count(&r, "none", IR_prefetch).all, 0);
	assert_int_equal(count(&r, "sm90", IR_prefetch).all, 0);
	run_close(&r);
	run_open_example(&r, "saxpy", NULL, "n=64");
	assert_int_equal(count(&r, "avx2", IR_prefetch).all, 0);
	run_close(&r);
}

static void expect_text(const char *example, const char *constants, const char *const *text, size_t n)
{
	struct error err = { 0 };
	struct object object;
	struct run r;
	struct ir ir;

	run_open_example(&r, example, NULL, constants);
	assert_true(jk_build(&ir, r.kernel, target_find("sm90"), false, &err));
	assert_true(compile_ir(&object, &ir, target_find("sm90"), &(struct compile_options){ 0 }, NULL, &err));
	char *ptx = strndup((const char *)object.code, object.code_bytes);
	assert_non_null(ptx);
	for (size_t k = 0; k < n; k++)
		if (!strstr(ptx, text[k]))
			fail_msg("%s has no %s", example, text[k]);
	free(ptx);
	object_free(&object);
	ir_free(&ir);
	run_close(&r);
}
#define EXPECT_TEXT(example, constants, ...) \
	expect_text(example, constants, (const char *const[]){ __VA_ARGS__ }, \
	            sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* On an NVIDIA card a lane moves 16 bytes at once, and blocks are small and leave room for others, unless rows are kept
 * in registers, or blocks have bytes of their own. */
static void test_cards_text(void **state)
{
	(void)state;
	EXPECT_TEXT("saxpy", "n=1024", "ld.global.v4.b32", "st.global.v4.b32", ".maxntid 128, 1, 1\n.minnctapersm 8\n");
	EXPECT_TEXT("silu", "n=100", "ld.global.v4.b32", "min.f32", "max.f32", "div.rn.f32");
	EXPECT_TEXT("softmax", "rows=3 n=4096", "rcp.rn.f32", ".maxntid 128, 1, 1\n.minnctapersm 3\n");
	EXPECT_TEXT("matmul", "m=64 n=256 k=16", "ld.global.v4.b32", ".maxntid 128, 1, 1\n.minnctapersm 4\n");
	EXPECT_TEXT("histogram", "n=100000", ".maxntid 256, 1, 1\n.minnctapersm 1\n");
}

/* What is stored is compared with itself where it may be a NaN, and only there. */
static void test_numbers(void **state)
{
	static const struct {
		const char *value;
		unsigned compared;
	} cases[] = { { "f32(i)", 0 },
		      { "max(x[i], 0)", 0 },
		      { "max(0, x[i])", 1 },
		      { "min(max(x[i], -1), 1)", 0 },
		      { "min(1, max(x[i], -1))", 0 },
		      { "min(1, max(-1, x[i]))", 1 },
		      { "x[i] > 0 ? f32(i) : 0.5", 0 },
		      { "x[i] > 0 ? x[i] : 0.5", 1 },
		      { "abs(-floor(max(x[i], 2.5)))", 0 },
		      { "sqrt(max(x[i], 2.5))", 1 },
		      { "max(x[i], 2.5) - max(x[i], 1.5)", 1 },
		      { "max(x[i], 0) * 0", 1 },
		      { "f32(f64(max(x[i], 0)))", 0 },
		      { "x[i]", 1 } };
	(void)state;

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct run r;
		char text[256];
		snprintf(text, sizeof text,
		         "kernel k(in f32 x[64], out f32 y[64]) over (i in 64) {\n	y[i] = %s;\n}\n",
		         cases[k].value);
		run_open(&r, text, NULL, "");
		if (count(&r, "none", IR_ne).all != cases[k].compared)
			fail_msg("%s: %u comparisons, expected %u", cases[k].value, count(&r, "none", IR_ne).all,
			         cases[k].compared);
		run_close(&r);
	}
}

/* A variable is whatever it was set to last. */
static void test_numbers_of_variables(void **state)
{
	struct run r;
	(void)state;

	run_open(&r,
	         "kernel k(in f32 x[64], out f32 y[64]) over (i in 64) {\n"
	         "	f32 v = 0;\n	for (j in 0..3) { y[i] = v; v = v + x[i] * x[j]; }\n}\n",
	         NULL, "");
	assert_true(count(&r, "none", IR_ne).all >= 1);
	run_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_not_joined),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_late_stores),
		cmocka_unit_test(test_early_reads),
		cmocka_unit_test(test_kept_rows),
		cmocka_unit_test(test_hidden_beginnings),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_larger_counts),
		cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_cards_text),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_numbers_of_variables)
	};

	return cmocka_run_group_tests_name("t_tidy", tests, NULL, NULL);
}
