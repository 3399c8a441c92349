/* tests/jit/t_numbers.c - rows of numbers that take sequences of instructions, on every kind of target, for values at
 * which such sequences go wrong: quotients at their steps, numbers at the ends of their ranges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "jit/ir/lanes.h"
#include "tests/jit/every_target.h"
#include "tests/jit/wide_rows_tests.h"
#include "tests/support/shared.h"

enum { WORDS = RANDOM_IR_IN_BYTES / 4, PAIRS = WORDS / 2 };

static uint64_t drawn = 0x9e3779b97f4a7c15;

static uint32_t draw(void)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 32);
}

/* Of every size, near powers of two, and at the ends. */
static uint32_t number(void)
{
	static const uint32_t ends[] = { 0,          1,          2,          3,         UINT32_MAX, UINT32_MAX - 1,
		                         0x80000000, 0x80000001, 0x7fffffff, 0x7ffffffe };
	const unsigned bits = draw() & 31;

	switch (draw() & 3) {
	case 0: return ends[draw() % (sizeof ends / sizeof *ends)];
	case 1: return ((uint32_t)1 << bits) + (draw() % 3 - 1);
	case 2: return UINT32_MAX - (draw() >> bits);
	default: return draw() >> bits;
	}
}

/* Pairs: a, then its b, at which the quotient of the two takes a step now and then. */
static void fill_pairs(uint32_t in[WORDS])
{
	for (unsigned k = 0; k < PAIRS; k++) {
		const uint32_t b = number(),
			       near = b && draw() & 1 ? (uint32_t)(draw() % ((uint64_t)UINT32_MAX / b + 1)) * b +
		                                                (draw() % 3 - 1)
		                                      : number();
		in[k] = draw() & 7 ? near : 0 - near;
		in[PAIRS + k] = draw() & 7 ? b : 0 - b;
	}
}

static ir_f as_stored(struct ir *b, const struct ir_facts *f, uint16_t r)
{
	if (f->dst == IR_TYPE_m)
		r = ir_isel(b, (ir_m){ r }, ir_iconst(b, 1), ir_iconst(b, 0)).r;
	return f->dst == IR_TYPE_f32 ? (ir_f){ r } : ir_fbits(b, (ir_i){ r });
}

/* The rows, one behind the other, of all pairs. */
struct rows {
	const uint16_t *row;
	unsigned n, values;
};
static void build_rows(struct ir *b, const void *user)
{
	const struct rows *rows = user;
	const int32_t vector = 4 * (int32_t)b->lanes, bytes = 4 * (int32_t)rows->values;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_s at = ir_smuli(b, ir_loop(b, ir_sconst(b, bytes / vector)), vector);

	in = ir_aadd(b, in, at);
	out = ir_aadd(b, out, at);
	ir_i x = ir_iload(b, in, 0), y = ir_iload(b, in, bytes < RANDOM_IR_IN_BYTES ? bytes : 0);
	for (unsigned k = 0; k < rows->n; k++) {
		const struct ir_facts *f = &ir_facts[rows->row[k]];
		const bool floats = f->a == IR_TYPE_f32;
		const uint16_t p = floats ? ir_fbits(b, x).r : x.r, q = floats ? ir_fbits(b, y).r : y.r;
		const uint16_t r = ir_emit(b, rows->row[k], 0, p, f->b ? q : 0, 0, 0);
		ir_fstore(b, out, as_stored(b, f, r), (int32_t)k * bytes, 0);
	}
	ir_endloop(b);
}

static void check_rows(const uint16_t *row, unsigned n, void (*fill)(uint32_t in[WORDS]), unsigned values,
                       enum every_nans nans)
{
	const struct rows rows = { row, n, values };
	uint32_t in[WORDS];

	for (unsigned round = 0; round < (test_quick() ? 4u : 400u); round++) {
		fill(in);
		every_target_check(build_rows, &rows, in, sizeof in, 1, nans, ir_facts[row[0]].name);
	}
}

static void test_quotients(void **unused)
{
	static const uint16_t row[] = { IR_idiv, IR_irem, IR_udiv, IR_urem, IR_imulh, IR_umulh };

	check_rows(row, sizeof row / sizeof *row, fill_pairs, PAIRS, EVERY_EXACT);
}

static void test_comparisons(void **unused)
{
	static const uint16_t row[] = { IR_ilt, IR_ile, IR_ine, IR_ult, IR_ule, IR_umin, IR_umax, IR_isarv };

	check_rows(row, sizeof row / sizeof *row, fill_pairs, PAIRS, EVERY_EXACT);
}

/* By a constant, and of one: what is the same for all lanes. */
static void build_uniform_quotients(struct ir *b, const void *user)
{
	static const uint16_t row[] = { IR_idiv, IR_irem, IR_udiv, IR_urem };
	static const int32_t by[] = { 0, 1, -1, 7, INT32_MIN, INT32_MAX };
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_i v = ir_iload(b, in, 0), u = ir_ibcast(b, in, 20);
	int32_t at = 0;

	for (unsigned k = 0; k < 4; k++)
		for (unsigned n = 0; n < sizeof by / sizeof *by; n++)
			for (unsigned way = 0; way < 3; way++, at += 4 * (int32_t)b->lanes) {
				ir_i c = ir_iconst(b, by[n]), p = way == 1 ? c : way == 2 ? u : v, q = way == 1 ? v : c;
				const uint16_t r = ir_emit(b, row[k], 0, p.r, q.r, 0, 0);
				ir_fstore(b, out, ir_fbits(b, (ir_i){ r }), at, 0);
			}
}

static void test_uniform_quotients(void **unused)
{
	uint32_t in[WORDS];

	fill_pairs(in);
	every_target_check(build_uniform_quotients, NULL, in, sizeof in, 1, EVERY_EXACT, "quotients by constants");
}

/* Floats of all sizes, at whole and half numbers, and where integers end. */
static void fill_floats(uint32_t in[WORDS])
{
	static const float ends[] = { 0x1p31f, 0x1p32f, 0x1p24f, 0x1p23f,   0x1p22f,  1,
		                      0.5f,    1.5f,    2.5f,    0x1p-126f, 0x1p-149f };

	for (unsigned k = 0; k < WORDS; k++) {
		const float end = ends[draw() % (sizeof ends / sizeof *ends)];
		const uint32_t sign = draw() & 0x80000000;
		switch (draw() & 3) {
		case 0: in[k] = draw(); break;
		case 1: in[k] = sign | (f32_bits(end) + draw() % 3 - 1); break;
		case 2: in[k] = sign | f32_bits((float)(draw() >> (draw() & 31)) * 0.5f); break;
		default: in[k] = (k & 1 ? 0x7f800000 : 0x7fc00001) | sign; break;
		}
	}
}

static void test_conversions(void **unused)
{
	static const uint16_t row[] = { IR_f2i_cut, IR_f2u_cut, IR_u2f };
	static const uint16_t of_pairs[] = { IR_feq, IR_fne };

	check_rows(row, 3, fill_floats, WORDS, EVERY_EXACT);
	check_rows(of_pairs, 2, fill_floats, PAIRS, EVERY_EXACT);
}

static void test_rounding(void **unused)
{
	static const uint16_t row[] = { IR_fround, IR_ffloor, IR_fceil, IR_ftrunc };

	check_rows(row, 4, fill_floats, WORDS, EVERY_NANS_OF_4);
}

static int open_all(void **state)
{
	every_target_open();
	return 0;
}

static int close_all(void **state)
{
	every_target_close();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quotients),         cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_uniform_quotients), cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_rounding),
	};

	int failed = cmocka_run_group_tests(tests, open_all, close_all);

	return failed + wide_rows_tests() + random_numbers_tests();
}
