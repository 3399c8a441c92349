/* tests/jit/rdna_sweep_tests.c - many values through one kernel on simulated cards: quotients, roots, conversions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/jit/op_kernels.h"
#include "tests/jit/rdna_call.h"
#include "tests/jit/rdna_sweep_tests.h"
#include "tests/support/shared.h"

/* --- division, roots, conversions: many values through one kernel */

/* Elements of a sweep through random floats; JITRUN_SWEEP: more of them. */
static size_t sweep_size(void)
{
	const char *more = getenv("JITRUN_SWEEP");
	return more ? strtoul(more, NULL, 10) / 32 * 32 : 1 << 14;
}

/* Where an f32 or f16 from a, and b, goes for each of n elements, 32 at a time. */
static void sweep(struct ir *b, enum ir_op op)
{
	begin_ir(b);
	ir_a arg = ir_arg(b), x = ir_var_a(b, ir_aload(b, arg, 0)), y = ir_var_a(b, ir_aload(b, arg, 8)),
	     out = ir_var_a(b, ir_aload(b, arg, 16));
	ir_loop(b, ir_end(b));
	if (op == IR_fload_h)
		ir_fstore(b, out, ir_fload_h(b, x, 0), 0, 0);
	else if (op == IR_fhalf)
		ir_fstore(b, out, ir_fhalf(b, ir_ishl(b, ir_iload_u16(b, x, 0), 16), 1), 0, 0);
	else if (op == IR_fstore_h)
		ir_fstore_h(b, out, ir_fload(b, x, 0, 0), 0, 0);
	else if (op == IR_fsqrt)
		ir_fstore(b, out, ir_fsqrt(b, ir_fload(b, x, 0, 0)), 0, 0);
	else
		ir_fstore(b, out, ir_fdiv(b, ir_fload(b, x, 0, 0), ir_fload(b, y, 0, 0)), 0, 0);
	ir_set_a(b, x, ir_aaddi(b, x, op == IR_fload_h || op == IR_fhalf ? 64 : V));
	ir_set_a(b, y, ir_aaddi(b, y, V));
	ir_set_a(b, out, ir_aaddi(b, out, op == IR_fstore_h ? 64 : V));
	ir_endloop(b);
}

static void check_sweep(enum ir_op op, void *x, void *y, size_t n, enum nans nans)
{
	struct ir b;
	struct object o;
	struct error err = { 0 };
	uint32_t *want = calloc(n, 4), *got = calloc(n, 4);
	assert_true(want && got);
	uint64_t arg[3] = { (uintptr_t)x, (uintptr_t)y, (uintptr_t)want };
	sweep(&b, op);
	if (!compile_card(&o, &b, NULL, &err))
		fail_msg("%s", err.text);
	ir_interp(&b, arg, 0, (int64_t)n / 32);
	arg[2] = (uintptr_t)got;
	const struct rdna_call c = {
		.object = &o,
		.gen = card_gen,
		.arg = arg,
		.n_args = 3,
		.end = (int64_t)n / 32,
		.memory = { { x, n * (op == IR_fload_h || op == IR_fhalf ? 2 : 4), false },
		            { got, n * 4, true },
		            { y != x ? y : NULL, n * 4, false } }
	};
	for (unsigned m = 1; m < MODES; m++) {
		memset(got, 0, n * 4);
		if (!rdna_call(&c, &modes[m], &err))
			fail_msg("%s: %s", rdna_call_targets[card_gen], err.text);
		for (size_t k = 0; k < n; k++)
			if (want[k] != got[k] && !(nans == NANS_ALIKE && op_is_nan(want[k]) && op_is_nan(got[k])))
				fail_msg("%s, %s of element %zu (%08x, %08x) is %08x, expected %08x",
				         rdna_call_targets[card_gen], ir_facts[op].name, k,
				         op == IR_fload_h || op == IR_fhalf ? ((uint16_t *)x)[k] : ((uint32_t *)x)[k],
				         op == IR_fdiv ? ((uint32_t *)y)[k] : 0, got[k], want[k]);
	}
	object_free(&o);
	ir_free(&b);
	free(want);
	free(got);
}

static void test_halves(void **state)
{
	uint16_t *h = malloc(65536 * 2);
	for (unsigned k = 0; k < 65536; k++)
		h[k] = (uint16_t)k;
	check_sweep(IR_fload_h, h, h, 65536, NANS_ALIKE);
	check_sweep(IR_fhalf, h, h, 65536, NANS_ALIKE);
	free(h);
	uint32_t *f = malloc(4 * 65536);
	for (unsigned k = 0; k < 65536;
	     k++) /* every half's neighbourhood: on it, on the middle to the next, beside these */
		f[k] = f32_bits(f16_f32((uint16_t)(k * 11))) +
		       (k % 7 == 0   ? 0
		        : k % 7 == 1 ? 0x1000
		        : k % 7 == 2 ? 0xfff
		        : k % 7 == 3 ? 0x1001
		                     : k * 40503u >> 3 & 0x1fff);
	for (unsigned k = 0; k < 65536; k++) /* the NaN of a negative sign and no payload: see nans */
		f[k] &= op_is_nan(f[k]) ? 0x7fffffff : UINT32_MAX;
	check_sweep(IR_fstore_h, f, f, 65536, NANS_EXACT);
	free(f);
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 32) ^ (uint32_t)(*state >> 15);
}

/* Floats of every size: random bits, edges, quotients that are nearly representable, squares and their neighbours. */
static void test_division_and_roots(void **state)
{
	size_t n = sweep_size();
	uint32_t *x = malloc(4 * n), *y = malloc(4 * n);
	uint64_t seed = 99 + n;
	for (size_t k = 0; k < n; k++) {
		x[k] = next_random(&seed);
		y[k] = next_random(&seed);
		if (k % 8 == 1)
			x[k] = op_edges[k / 8 % OP_EDGES];
		if (k % 8 == 2)
			y[k] = op_edges[k / 8 % OP_EDGES];
		if (k % 8 == 3) /* both small */
			x[k] &= 0x80ffffff, y[k] &= 0x81ffffff;
		if (k % 8 == 4) /* both large */
			x[k] |= 0x7e000000, y[k] |= 0x7d000000;
		if (k % 8 == 5) /* x is a product, so that the quotient is near a float */
			x[k] = f32_bits(
				bits_f32((y[k] & 0x807fffff) | 0x3f000000) * bits_f32((x[k] & 0x7fffff) | 0x3f800000)),
			y[k] = (y[k] & 0x807fffff) | 0x3f000000;
		if (k % 8 == 6)
			x[k] = op_edges[k / 8 % OP_EDGES], y[k] = op_edges[k / 256 % OP_EDGES];
		if (k % 8 == 7) /* quotients among the denormals */
			x[k] = (x[k] & 0x807fffff) | 0x08000000,
			y[k] = (y[k] & 0x807fffff) | (0x40000000 + ((uint32_t)k << 20 & 0x0f800000));
		if (k % 16 == 0) /* divisors whose inverses are hardest */
			y[k] |= k % 32 ? 0x7fffff : 0x7ffffe;
		if (k % 64 == 32)
			x[k] &= 0xff80000f;
	}
	check_sweep(IR_fdiv, x, y, n, NANS_ALIKE);
	for (size_t k = 0; k < n; k += 2) {
		float root = bits_f32((x[k] & 0x7fffff) | ((x[k] >> 23 & 127) + 64) << 23);
		x[k] = k % 4 ? x[k] & 0x7fffffff : f32_bits(root * root) + (uint32_t)(k >> 2) % 3 - 1;
	}
	check_sweep(IR_fsqrt, x, x, n, NANS_ALIKE);
	free(x);
	free(y);
}

/* --- scalars */

/* round: that of the first operand, so that a build with little of this has all operations and all second operands. */
static void check_scalar(const struct ir *ir, const void *in, size_t in_bytes, unsigned round)
{
	if (!test_small_share() || round % 4 == 0)
		check_modes(ir, NULL, in, in_bytes, 1, 0, 1, NANS_EXACT, 1, 2);
}

static void test_scalar_ops(void **state) { op_each_scalar(begin_ir, check_scalar); }

/* Every quotient is right near its steps, for divisors of every size. */
static void test_scalar_division(void **state)
{
	for (int64_t d = 1; d < INT32_MAX; d = d < 40 ? d + 1 : d * 3 + 1) {
		struct ir b;
		uint64_t in[OP_DIVIDENDS];
		begin_ir(&b);
		op_build_division(&b, d, in);
		check_modes(&b, NULL, in, sizeof in, 1, 0, 1, NANS_EXACT, 1, 2);
		ir_free(&b);
	}
}

int rdna_sweep_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_division_and_roots),
		cmocka_unit_test(test_scalar_ops),
		cmocka_unit_test(test_scalar_division),
	};

	return cmocka_run_group_tests_name("rdna_sweep_tests", tests, NULL, NULL);
}
