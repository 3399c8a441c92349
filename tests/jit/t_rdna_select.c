/* tests/jit/t_rdna_select.c - what RDNA selection makes of the IR, seen as text: loads done together, operands folded,
 * addresses computed once. That the results are right is t_rdna_ops' business; here the instructions themselves are
 * looked at, and every kernel's are verified. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir_build.h"
#include "jit/rdna/select.h"
#include "tests/jit/random_ir.h"
#include "tests/jit/rdna_text.h"

static const char *const targets[RDNA_GEN_COUNT] = { "gfx1030", "gfx1100", "gfx1150", "gfx1200" };

static struct ir b;
static ir_a in, out;

static void begin_kernel(void)
{
	ir_init(&b, 32);
	b.waves = 8;
	ir_a arg = ir_arg(&b);
	in = ir_aload(&b, arg, 0);
	out = ir_aload(&b, arg, 8);
}

static char *select_text(enum rdna_gen gen)
{
	struct rdna_lir l;
	struct error err = { 0 };
	rdna_lir_init(&l, gen);
	if (!ir_verify(&b, &err) || !rdna_select(&l, &b, target_find(targets[gen]), RDNA_SCALAR_WORDS, &err) ||
	    !rdna_lir_verify(&l, &err)) {
		ir_print(&b, stderr);
		fail_msg("%s: %s", targets[gen], err.text);
	}
	char *text = rdna_text(&l);
	rdna_lir_free(&l);
	return text;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

/* The kernel so far has `n` of `what` on this generation. */
static void expect(enum rdna_gen gen, const char *what, unsigned n)
{
	char *text = select_text(gen);
	if (count(text, what) != n)
		fail_msg("%s: %u times \"%s\", expected %u, in\n%s", targets[gen], count(text, what), what, n, text);
	free(text);
}

static void expect_all(const char *what, unsigned n)
{
	for (enum rdna_gen gen = 0; gen < RDNA_GEN_COUNT; gen++)
		expect(gen, what, n);
}

static ir_i sum;

static void add(ir_i v) { sum = ir_ixor(&b, ir_imul(&b, sum, ir_iconst(&b, 3)), v); }

static void begin_sum(void)
{
	begin_kernel();
	sum = ir_ilane(&b);
}

static void end_sum(void) { ir_fstore(&b, out, ir_fbits(&b, sum), 0, 0); }

static void test_strided_loads(void **state)
{
	begin_sum();
	for (int32_t k = 0; k < 4; k++)
		add(ir_iload_s(&b, in, (3 - k) * 4, 16));
	for (int32_t k = 0; k < 3; k++)
		add(ir_iload_s(&b, in, 512 + k * 4, 32));
	for (int32_t k = 0; k < 2; k++)
		add(ir_iload_s(&b, in, 1024 + k * 4, 8));
	end_sum();
	for (enum rdna_gen gen = RDNA_GFX11; gen < RDNA_GEN_COUNT; gen++) {
		expect(gen, "global_load_b128", 1);
		expect(gen, "global_load_b96", 1);
		expect(gen, "global_load_b64", 1);
		expect(gen, "global_load_b32", 0);
	}
	expect(RDNA_GFX10_3, "global_load_dwordx4", 1);
	expect_all("v_lshlrev_b32 ", 4); /* the lanes' offsets for three strides and the store */
	ir_free(&b);
}

/* A store may change what is loaded behind it. */
static void test_stores_keep_loads_apart(void **state)
{
	begin_sum();
	add(ir_iload_s(&b, in, 0, 16));
	ir_fstore(&b, out, ir_fbits(&b, sum), 128, 0);
	add(ir_iload_s(&b, in, 4, 16));
	end_sum();
	expect(RDNA_GFX11, "global_load_b32", 2);
	expect(RDNA_GFX11, "global_load_b64", 0);
	ir_free(&b);
}

static void test_broadcasts(void **state)
{
	begin_sum();
	for (int32_t k = 0; k < 16; k++)
		add(ir_ibcast(&b, in, 64 + (k * 5 & 15) * 4));
	ir_fstore(&b, out, ir_fbits(&b, sum), 128, 0);
	add(ir_ibcast(&b, in, 128)); /* what the kernel stores it does not read like this: no reason to wait */
	add(ir_ibcast(&b, in, 132));
	end_sum();
	expect(RDNA_GFX11, "s_load_b512", 1);
	expect(RDNA_GFX10_3, "s_load_dwordx16", 1);
	expect(RDNA_GFX11, "s_load_b64", 1);
	expect(RDNA_GFX11, "s_load_b128", 1); /* both arguments */
	expect_all("global_load", 0);
	ir_free(&b);
}

/* Tuples become smaller where more of them are alive at a time than there are registers for. */
static void test_broadcasts_within_budget(void **state)
{
	begin_kernel();
	ir_f acc = ir_var_f(&b, ir_fconst(&b, 0)), x[8][16];
	for (int32_t c = 0; c < 8; c++)
		for (int32_t k = 0; k < 16; k++)
			x[c][k] = ir_fbcast(&b, in, c * 4096 + k * 4);
	for (unsigned k = 0; k < 16; k++)
		for (unsigned c = 0; c < 8; c++)
			ir_set_f(&b, acc, ir_fadd(&b, acc, x[c][k]));
	ir_fstore(&b, out, acc, 0, 0);
	expect(RDNA_GFX11, "s_load_b512", 0);
	ir_free(&b);
	begin_kernel();
	acc = ir_var_f(&b, ir_fconst(&b, 0));
	for (int32_t c = 0; c < 8; c++)
		for (int32_t k = 0; k < 16; k++)
			ir_set_f(&b, acc, ir_fadd(&b, acc, ir_fbcast(&b, in, c * 4096 + k * 4)));
	ir_fstore(&b, out, acc, 0, 0);
	expect(RDNA_GFX11, "s_load_b512", 8);
	ir_free(&b);
}

/* A base is moved for what lies beyond the instruction's reach, once for all that lie there. */
static void test_displacements(void **state)
{
	begin_sum();
	for (int32_t k = 0; k < 8; k++)
		add(ir_iload(&b, in, 6144 + k * 128));
	end_sum();
	expect(RDNA_GFX10_3, "s_add_u32", 1);
	expect(RDNA_GFX11, "s_add_u32", 1);
	expect(RDNA_GFX12, "s_add", 0);
	ir_free(&b);
	begin_sum();
	ir_a p = ir_aaddi(&b, ir_aaddi(&b, in, 1000), -900);
	for (int32_t k = 0; k < 4; k++)
		add(ir_iload(&b, p, k * 128));
	end_sum();
	expect_all("s_add", 0);
	ir_free(&b);
}

/* LDS: one vector register of addresses for all of a wave's locals, and one for all that is shared. */
static void test_lds(void **state)
{
	begin_sum();
	ir_a mine = ir_local(&b, 1000), ours = ir_shared(&b, 500), more = ir_local(&b, 300);
	for (int32_t k = 0; k < 3; k++) {
		ir_fstore(&b, mine, ir_fbits(&b, sum), k * 128, 0);
		ir_fstore(&b, more, ir_fbits(&b, sum), 4 * k, 0);
		ir_fstore(&b, ours, ir_fbits(&b, sum), k * 64, 0);
	}
	ir_barrier(&b);
	for (int32_t k = 0; k < 4; k++)
		add(ir_ibcast(&b, ours, k * 4));
	end_sum();
	expect(RDNA_GFX11, "ds_store_b32", 9);
	expect(RDNA_GFX11, "ds_load_b128", 1);
	expect_all("v_add_nc_u32", 1);
	expect(RDNA_GFX11, "s_barrier", 1);
	expect(RDNA_GFX12, "s_barrier_signal -1", 1);
	expect(RDNA_GFX12, "s_barrier_wait", 1);
	ir_free(&b);
}

static void test_folded_operations(void **state)
{
	begin_kernel();
	ir_f acc = ir_var_f(&b, ir_fconst(&b, 0)), x = ir_fload(&b, in, 0, 0);
	ir_i w = ir_iload(&b, in, 128);
	ir_set_f(&b, acc, ir_ffma(&b, x, ir_fbcast(&b, in, 4), acc));
	ir_set_f(&b, acc, ir_ffma(&b, ir_fneg(&b, x), ir_fabs(&b, x), acc));
	ir_set_f(&b, acc, ir_ffma(&b, ir_fhalf(&b, w, 1), x, acc));
	ir_fstore(&b, out, acc, 0, 0);
	ir_i byte = ir_isar(&b, ir_ishl(&b, w, 8), 24),
	     nibbles = ir_ior(&b, ir_iand(&b, w, ir_iconst(&b, 0x0f0f0f0f)), byte);
	ir_fstore(&b, out, ir_i2f(&b, ir_iand(&b, ir_ishr(&b, nibbles, 8), ir_iconst(&b, 255))), 128, 0);
	expect_all("v_fmac_f32", 1);
	expect_all("v_fma_f32", 1);
	expect_all("v_xor_b32", 0);
	expect_all("v_fma_mix_f32", 1);
	expect_all("v_cvt_f32_f16", 0);
	expect_all("v_bfe_i32", 1);
	expect_all("v_and_or_b32", 1);
	expect_all("v_cvt_f32_ubyte1", 1);
	ir_free(&b);
}

static void test_dot_products(void **state)
{
	begin_sum();
	add(ir_dot4(&b, ir_iload(&b, in, 0), ir_ibcast(&b, in, 128), sum));
	end_sum();
	expect(RDNA_GFX10_3, "v_dot4_i32_i8", 1);
	expect(RDNA_GFX11, "v_dot4_i32_iu8", 1);
	expect(RDNA_GFX12, "v_dot4_i32_iu8", 1);
	expect_all("v_mov_b32", 0);
	ir_free(&b);
}

/* What all lanes share is computed once, on the scalar unit; what is computed twice, once. */
static void test_scalars_and_repetition(void **state)
{
	begin_sum();
	ir_i u = ir_isub(&b, ir_iconst(&b, 0), ir_ibcast(&b, in, 0)), w = ir_iload(&b, in, 0);
	add(ir_ishl(&b, u, 7));
	add(ir_iand(&b, ir_ishr(&b, w, 4), ir_iconst(&b, 0x0f0f0f0f)));
	add(ir_iand(&b, ir_ishr(&b, w, 4), ir_iconst(&b, 0x0f0f0f0f)));
	end_sum();
	expect_all("s_lshl_b32", 1);
	expect_all("v_lshrrev_b32", 1);
	expect_all("v_and_b32", 1);
	ir_free(&b);
}

/* Numbers known to be small take one register, and no carries. */
static void test_ranges(void **state)
{
	begin_kernel();
	ir_s i = ir_loop(&b, ir_sload64(&b, ir_arg(&b), 16)), n = ir_sandi(&b, ir_sdivi(&b, i, 3), 255),
	     m = ir_smuli(&b, ir_saddi(&b, n, 5), 12);
	ir_fstore(&b, out, ir_fbits(&b, ir_isplat(&b, ir_smin(&b, m, ir_sshri(&b, i, 2)))), 0, 0);
	ir_endloop(&b);
	expect_all("addc", 0);
	expect_all("s_mul_hi_u32", 1);
	expect_all("s_min_u32", 1);
	ir_free(&b);
}

/* A count is a register or a constant; an index that nobody asks for is none. */
static void test_loops(void **state)
{
	begin_sum();
	ir_i v = ir_var_i(&b, sum);
	ir_loop(&b, ir_sconst(&b, 5));
	ir_set_i(&b, v, ir_iadd(&b, v, v));
	ir_endloop(&b);
	ir_s k = ir_loop(&b, ir_sconst(&b, 6));
	ir_set_i(&b, v, ir_iadd(&b, v, ir_isplat(&b, k)));
	ir_endloop(&b);
	ir_fstore(&b, out, ir_fbits(&b, v), 0, 0);
	char *text = select_text(RDNA_GFX11);
	const char *first = strstr(text, "loop "), *second = strstr(first + 1, "\nloop ");
	assert_non_null(second);
	assert_null(memchr(first, '%', (size_t)(strchr(first, '\n') - first)));
	assert_non_null(memchr(second + 1, '%', (size_t)(strchr(second + 1, '\n') - second - 1)));
	free(text);
	ir_free(&b);
}

/* Some lanes: cleared before they are loaded, and said of the instruction. */
static void test_lanes(void **state)
{
	begin_kernel();
	ir_fstore(&b, out, ir_fload(&b, in, 0, 5), 0, 7);
	char *text = select_text(RDNA_GFX11);
	assert_non_null(strstr(text, "exec:"));
	assert_int_equal(count(text, "v_mov_b32"), 1);
	free(text);
	ir_free(&b);
}

static void test_refusals(void **state)
{
	struct rdna_lir l;
	struct error err = { 0 };
	begin_kernel();
	ir_a p = ir_var_a(&b, in);
	ir_set_a(&b, p, ir_local(&b, 64));
	ir_fstore(&b, p, ir_fconst(&b, 1), 0, 0);
	rdna_lir_init(&l, RDNA_GFX11);
	assert_false(rdna_select(&l, &b, target_find("gfx1100"), RDNA_SCALAR_WORDS, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "of global memory and of LDS"));
	rdna_lir_free(&l);
	ir_free(&b);
}

static void test_random(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		random_ir(&b, 32, seed, 400);
		char *once = select_text((enum rdna_gen)(seed % RDNA_GEN_COUNT)),
		     *twice = select_text((enum rdna_gen)(seed % RDNA_GEN_COUNT));
		assert_string_equal(once, twice);
		free(once);
		free(twice);
		ir_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strided_loads),
		cmocka_unit_test(test_stores_keep_loads_apart),
		cmocka_unit_test(test_broadcasts),
		cmocka_unit_test(test_broadcasts_within_budget),
		cmocka_unit_test(test_displacements),
		cmocka_unit_test(test_lds),
		cmocka_unit_test(test_folded_operations),
		cmocka_unit_test(test_dot_products),
		cmocka_unit_test(test_scalars_and_repetition),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
