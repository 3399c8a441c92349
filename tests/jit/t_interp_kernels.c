/* tests/jit/t_interp_kernels.c - the interpreter on kernels with a structure: addresses, loops, variables, locals,
 * units; random ones: portable = native instance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/ir/interp.h"
#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/jit/random_ir.h"
#include "tests/jit/run_ir.h"

static void store_scalar(struct ir *b, ir_a to, ir_s v, int32_t disp)
{
	ir_fstore(b, to, ir_fbits(b, ir_isplat(b, v)), disp, 1);
}

static void test_addresses(void **unused)
{
	uint32_t words[64], out[16] = { 0 };
	struct {
		uint32_t before, word;
		uint64_t wide;
		void *pointer;
	} s = { 1, 0xfedcba98, 0x8000000100000002, words + 3 };
	struct ir b;

	for (unsigned k = 0; k < 64; k++)
		words[k] = 500 + k;
	ir_init(&b, 8);
	ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8), w = ir_aload(&b, p, 16);
	store_scalar(&b, q, ir_sload32(&b, p, 4), 0);
	store_scalar(&b, q, ir_sshri(&b, ir_sload32(&b, p, 4), 32), 4);
	store_scalar(&b, q, ir_sload64(&b, p, 8), 8);
	store_scalar(&b, q, ir_sshri(&b, ir_sload64(&b, p, 8), 32), 12);
	store_scalar(&b, q, ir_sload32(&b, w, 0), 16);
	store_scalar(&b, q, ir_sload32(&b, ir_aadd(&b, w, ir_sconst(&b, -8)), 0), 20);
	store_scalar(&b, q, ir_sload32(&b, ir_aaddi(&b, w, 40), -4), 24);
	ir_a v = ir_var_a(&b, w);
	ir_loop(&b, ir_sconst(&b, 5));
	ir_set_a(&b, v, ir_aaddi(&b, v, 4));
	ir_endloop(&b);
	store_scalar(&b, q, ir_sload32(&b, v, 0), 28);
	ir_prefetch(&b, ir_aaddi(&b, p, INT32_MIN), INT32_MIN);
	run_here(&b, &s, out);
	assert_int_equal(out[0], 0xfedcba98);
	assert_int_equal(out[1], 0);
	assert_int_equal(out[2], 2);
	assert_int_equal(out[3], 0x80000001);
	assert_int_equal(out[4], 503);
	assert_int_equal(out[5], 501);
	assert_int_equal(out[6], 512);
	assert_int_equal(out[7], 508);
}

static void test_loops(void **unused)
{
	static const int64_t counts[] = { -5, 0, 1, 2, 7, INT64_MIN };

	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		const int64_t n = counts[k] > 0 ? counts[k] : 0;
		uint32_t out[4] = { 0 };
		struct ir b;

		ir_init(&b, 8);
		ir_a q = ir_aload(&b, ir_arg(&b), 8);
		ir_s zero = ir_sconst(&b, 0), times = ir_var_s(&b, zero), sum = ir_var_s(&b, zero),
		     inner = ir_var_s(&b, zero);
		ir_s count = ir_var_s(&b, ir_sconst(&b, counts[k]));
		ir_s i = ir_loop(&b, count);
		ir_set_s(&b, times, ir_saddi(&b, times, 1));
		ir_set_s(&b, sum, ir_sadd(&b, sum, i));
		ir_set_s(&b, count, ir_sconst(&b, 1)); /* read once, at entry */
		ir_loop(&b, i);                        /* none the first time */
		ir_set_s(&b, inner, ir_saddi(&b, inner, 1));
		ir_endloop(&b);
		ir_endloop(&b);
		store_scalar(&b, q, times, 0);
		store_scalar(&b, q, sum, 4);
		store_scalar(&b, q, inner, 8);
		run_here(&b, NULL, out);
		assert_int_equal(out[0], n);
		assert_int_equal(out[1], n * (n - 1) / 2);
		assert_int_equal(out[2], n * (n - 1) / 2);
	}
}

static void test_deep_loops(void **unused)
{
	uint32_t out[1] = { 0 };
	struct ir b;

	ir_init(&b, 8);
	ir_a q = ir_aload(&b, ir_arg(&b), 8);
	ir_s two = ir_sconst(&b, 2), n = ir_var_s(&b, ir_sconst(&b, 0));
	for (int k = 0; k < IR_MAX_LOOP_DEPTH; k++)
		ir_loop(&b, two);
	ir_set_s(&b, n, ir_saddi(&b, n, 1));
	for (int k = 0; k < IR_MAX_LOOP_DEPTH; k++)
		ir_endloop(&b);
	store_scalar(&b, q, n, 0);
	run_here(&b, NULL, out);
	assert_int_equal(out[0], 65536);
}

static void test_locals(void **unused)
{
	uint32_t out[32] = { 0 };
	struct ir b;

	ir_init(&b, 8);
	ir_a q = ir_aload(&b, ir_arg(&b), 8), small = ir_local(&b, 4), big = ir_local(&b, 100), last = ir_local(&b, 32);
	ir_fstore1(&b, small, ir_fconst(&b, 1.0f), 0);
	ir_fstore(&b, big, ir_fconst(&b, 2.0f), 0, 0);
	ir_fstore(&b, big, ir_fconst(&b, 3.0f), 68, 0);
	ir_fstore(&b, last, ir_fconst(&b, 4.0f), 0, 0);
	ir_fstore1(&b, q, ir_fload(&b, small, 0, 1), 0);
	ir_fstore(&b, q, ir_fload(&b, big, 0, 0), 4, 0);
	ir_fstore1(&b, q, ir_fbcast(&b, big, 96), 36);
	ir_fstore1(&b, q, ir_fbcast(&b, last, 28), 40);
	/* the order and the rounding that ops.def states */
	ir_fstore1(&b, q, ir_fbcast(&b, small, 64), 44);
	ir_fstore1(&b, q, ir_fbcast(&b, big, 128), 48);
	run_here(&b, NULL, out);
	assert_int_equal(out[0], f32_bits(1.0f));
	for (int k = 1; k < 9; k++)
		assert_int_equal(out[k], f32_bits(2.0f));
	assert_int_equal(out[9], f32_bits(3.0f));
	assert_int_equal(out[10], f32_bits(4.0f));
	assert_int_equal(out[11], f32_bits(2.0f));
	assert_int_equal(out[12], f32_bits(4.0f));
}

static void test_units_and_arguments(void **unused)
{
	uint32_t out[8] = { 0 };
	const uint64_t arg[] = { (uintptr_t)out, 0x1234567890 };
	struct ir b;

	ir_init(&b, 8);
	ir_a arguments = ir_arg(&b), q = ir_aload(&b, arguments, 0);
	store_scalar(&b, q, ir_begin(&b), 0);
	store_scalar(&b, q, ir_end(&b), 4);
	store_scalar(&b, q, ir_sload64(&b, arguments, 8), 8);
	store_scalar(&b, q, ir_sshri(&b, ir_sload64(&b, arguments, 8), 32), 12);
	assert_true(ir_verify(&b, NULL));
	ir_interp(&b, arg, -3, 1000000);
	assert_int_equal(out[0], (uint32_t)-3);
	assert_int_equal(out[1], 1000000);
	assert_int_equal(out[2], 0x34567890);
	assert_int_equal(out[3], 0x12);
	ir_free(&b);
}

/* ---- whole random kernels ---- */

static void test_random_kernels(void **unused)
{
	static struct random_ir_buffers host, portable, first;
	unsigned changed = 0;

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct ir b;
		struct interp_program *p;
		size_t bytes;
		char *frame;

		random_ir(&b, 8u << seed % 3, seed, 20 + (unsigned)seed);
		assert_true(ir_verify(&b, NULL));
		random_ir_fill(&first, seed);
		random_ir_fill(&host, seed);
		random_ir_fill(&portable, seed);
		p = interp_compile(&b);
		assert_non_null(p);
		bytes = (interp_frame_bytes(p) + 63) & ~(size_t)63;
		frame = aligned_alloc(64, bytes);
		assert_non_null(frame);
		memset(frame, 0, bytes);
		assert_int_equal(interp_run(p, frame, host.arg, 3, 90), INTERP_DONE);
		memset(frame, 0xff, bytes);
		interp_use_portable(p);
		assert_int_equal(interp_run(p, frame, portable.arg, 3, 90), INTERP_DONE);
		if (memcmp(host.out, portable.out, sizeof host.out))
			fail_msg("seed %u: the instances differ", (unsigned)seed);
		assert_memory_equal(host.in, first.in, sizeof first.in);
		changed += memcmp(host.out, first.out, sizeof host.out) != 0;
		free(frame);
		interp_free(p);
		ir_free(&b);
	}
	assert_int_equal(changed, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),           cmocka_unit_test(test_loops),
		cmocka_unit_test(test_deep_loops),          cmocka_unit_test(test_locals),
		cmocka_unit_test(test_units_and_arguments), cmocka_unit_test(test_random_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
