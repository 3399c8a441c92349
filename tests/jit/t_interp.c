/* tests/jit/t_interp.c - what the interpreter computes: every row with an expression against a second, independent
 * formula on edge values; every row written by hand on memory whose neighbours must stay untouched. Loops, locals and
 * whole kernels: t_interp_kernels.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/jit/interp_check.h"

static float as_float(uint32_t u)
{
	float f;
	memcpy(&f, &u, 4);
	return f;
}

/* ---- rows with an expression ---- */

static uint32_t exact_fma(uint32_t a, uint32_t b, uint32_t c)
{
	/* the product is exact in double; the sum is rounded to odd there, so that the second rounding, to float, is
	 * right */
	const double x = (double)as_float(a) * as_float(b), y = as_float(c), sum = x + y, part = sum - x;
	const double rest = (x - (sum - part)) + (y - part);
	uint64_t bits;
	double odd = sum;

	memcpy(&bits, &odd, 8);
	if (isfinite(sum) && rest != 0 && !(bits & 1)) {
		bits += (rest > 0) == (sum > 0) ? 1 : (uint64_t)-1;
		memcpy(&odd, &bits, 8);
	}
	return as_bits((float)odd);
}

static int64_t wide(uint32_t u) { return u < 0x80000000u ? (int64_t)u : (int64_t)u - 0x100000000; }
static int is_nan(uint32_t u) { return (u & 0x7fffffff) > 0x7f800000; }
/* Order of two floats by their bits: -1, 0, 1; 2 when either is NaN. */
static int order(uint32_t x, uint32_t y)
{
	const int64_t p = x & 0x80000000u ? -(int64_t)(x & 0x7fffffff) : x,
		      q = y & 0x80000000u ? -(int64_t)(y & 0x7fffffff) : y;

	return is_nan(x) || is_nan(y) ? 2 : p < q ? -1 : p > q;
}

static uint32_t nearest(uint32_t u)
{
	const double v = as_float(u), down = floor(v), rest = v - down;

	return (uint32_t)(int32_t)(rest < 0.5 ? down : rest > 0.5 ? down + 1 : fmod(down, 2) == 0 ? down : down + 1);
}

static uint32_t shift(uint32_t u, uint32_t by, int left)
{
	uint64_t v = u;

	for (uint32_t k = 0; k < by && v; k++)
		v = left ? v * 2 & 0xffffffff : v / 2;
	return (uint32_t)v;
}

static uint32_t dot(uint32_t a, uint32_t b, uint32_t c)
{
	int64_t sum = wide(c);

	for (int k = 0; k < 32; k += 8)
		sum += (wide(a << (24 - k)) >> 24) * (wide(b << (24 - k)) >> 24);
	return (uint32_t)sum;
}

static int64_t dot_bytes(uint32_t a, uint32_t b, int at)
{
	return (wide(a << (24 - at)) >> 24 & 0xff) * (wide(b << (24 - at)) >> 24) +
	       (wide(a << (16 - at)) >> 24 & 0xff) * (wide(b << (16 - at)) >> 24);
}

/* The tables' own rules: FP4 is a sign, two bits of exponent and one of mantissa; the levels of IQ4, IQ2 and IQ3 as the
 * formats list them, with a bit of sign. */
static int level(int entry, int64_t table)
{
	static const int levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
	const int exponent = entry >> 1 & 3, mantissa = entry & 1,
		  doubled = exponent ? (2 + mantissa) << (exponent - 1) : mantissa;

	static const int lower[16] = { 126, 114, 103, 92, 83, 74, 65, 57, 50, 43, 36, 30, 24, 18, 12, 6 },
			 upper[16] = { -1, 5, 11, 17, 23, 29, 36, 43, 51, 59, 68, 77, 87, 97, 109, 121 };

	if (table == LANES_TABLE_IQ4_RAISED)
		return levels[entry] + 128;
	if (table == LANES_TABLE_IQ5_LOWER)
		return 128 - lower[entry];
	if (table == LANES_TABLE_IQ5_UPPER)
		return 128 + upper[entry];
	if (table == LANES_TABLE_IQ2_KS)
		return (entry < 8) * ((int[]){ 0, 18, 32, 48 }[entry & 3] + (entry & 4 ? 5 : 0));
	if (table == LANES_TABLE_IQ2)
		return (int[]){ 8, 25, 43, 0 }[entry & 3] * (entry & 4 ? -1 : 1) * (entry < 8);
	if (table == LANES_TABLE_IQ3)
		return ((entry & 7) * 8 + 4 + 2 * ((entry & 7) == 7)) * (entry & 8 ? -1 : 1);
	return table == LANES_TABLE_IQ4 ? levels[entry] : entry & 8 ? 12 - doubled : 12 + doubled;
}

static uint32_t look_up(uint32_t a, int64_t table)
{
	uint32_t out = 0;

	for (int k = 0; k < 32; k += 8)
		out |= (uint32_t)(level((int)(a >> k & 15), table) & 0xff) << k;
	return out;
}

static double flushed(uint32_t bits) { return bits & 0x7f800000 ? as_float(bits) : copysign(0, as_float(bits)); }

/* c + x * y, rounded to odd in 64 bits, then to 24 whatever the exponent is. */
static uint32_t add_flushed(double x, double y, double c)
{
	const long double product = (long double)x * y, sum = product + c;
	const long double of_c = sum - product, error = (product - (sum - of_c)) + (c - of_c);
	int exponent, ignored;

	if (sum == 0 || !isfinite(sum))
		return as_bits((float)sum);
	const bool odd = fmodl(ldexpl(frexpl(sum, &ignored), 64), 2) != 0;
	const long double to_odd = error == 0 || odd ? sum : nextafterl(sum, error > 0 ? INFINITY : -INFINITY);
	const float part = (float)frexpl(to_odd, &exponent);
	const double rounded = ldexp(part, exponent);
	return as_bits(fabs(rounded) < 0x1p-126 ? copysignf(0, part) : (float)rounded);
}

static uint32_t dot_pair(uint32_t a, uint32_t b, uint32_t c)
{
	const uint32_t upper = add_flushed(flushed(a >> 16 << 16), flushed(b >> 16 << 16), flushed(c));

	return add_flushed(flushed(a << 16), flushed(b << 16), as_float(upper));
}

static uint32_t dot_halves(uint32_t a, uint32_t b, uint32_t c)
{
	return (uint32_t)(wide(c) + (wide(a << 16) >> 16) * (wide(b << 16) >> 16) + (wide(a) >> 16) * (wide(b) >> 16));
}

/* The second formula for vector rows. a, b, c: bits of the lane (masks: 0 or 1); masks come back as 0 or 1. */
static uint32_t formula(enum ir_op op, uint32_t a, uint32_t b, uint32_t c, int64_t imm, uint32_t lane)
{
	const double x = as_float(a), y = as_float(b);
	uint32_t out = 0;

	switch (op) {
	case IR_fconst:
	case IR_iconst: return (uint32_t)imm;
	case IR_fadd: return as_bits((float)(x + y)); /* 53 bits hold 2*24+2: rounding twice is harmless */
	case IR_fsub: return as_bits((float)(x - y));
	case IR_fmul: return as_bits((float)(x * y));
	case IR_fdiv: return as_bits((float)(x / y));
	case IR_fsqrt: return as_bits((float)sqrt(x));
	case IR_ffma: return exact_fma(a, b, c);
	case IR_fdot2: return dot_pair(a, b, c);
	case IR_fmin: return order(a, b) == -1 ? a : b;
	case IR_fmax: return order(a, b) == 1 ? a : b;
	case IR_fabs: return a % 0x80000000u;
	case IR_fneg: return a + 0x80000000u;
	case IR_flt: return order(a, b) == -1;
	case IR_fle: return order(a, b) <= 0;
	case IR_fsel:
	case IR_isel: return a ? b : c;
	case IR_f2i: return nearest(a);
	case IR_fbits:
	case IR_ibits:
	case IR_fmov:
	case IR_imov:
	case IR_mmov: return a;
	case IR_fhalf: return widened(imm ? a / 65536 : a % 65536);
	case IR_ilane: return lane;
	case IR_iadd: return (uint32_t)(wide(a) + wide(b));
	case IR_isub: return (uint32_t)(wide(a) - wide(b));
	case IR_imul: return (uint32_t)((uint64_t)a * b);
	case IR_iand: return ~(~a | ~b);
	case IR_ior: return ~(~a & ~b);
	case IR_ixor: return (a | b) - (a & b);
	case IR_ibsel: return a - (a & ~b) + (c - (a & c));
	case IR_ishl: return shift(a, (uint32_t)imm, 1);
	case IR_ishr: return shift(a, (uint32_t)imm, 0);
	case IR_isar: return (uint32_t)(int64_t)floor(ldexp((double)wide(a), -(int)imm));
	case IR_irotl: return shift(a, (uint32_t)imm, 1) + (imm ? shift(a, 32 - (uint32_t)imm, 0) : 0);
	case IR_ishlv: return shift(a, b, 1);
	case IR_ishrv: return shift(a, b, 0);
	case IR_i2f: return as_bits((float)(double)wide(a));
	case IR_dot4: return dot(a, b, c);
	case IR_dot2b: return halves(dot_bytes(a, b, 0), dot_bytes(a, b, 16));
	case IR_iadd_16: return halves((a % 65536 + b % 65536), (a / 65536 + b / 65536));
	case IR_dot2h: return dot_halves(a, b, c);
	case IR_ilut16: return look_up(a, imm);
	case IR_dot4u: return dot(a & 0x7f7f7f7f, b, dot(a >> 1 & 0x40404040, b, dot(a >> 1 & 0x40404040, b, c)));
	default:
		if (!number_formula(op, a, b, &out))
			fail_msg("%s has no second formula", ir_facts[op].name);
		return out;
	}
}

static const uint32_t float_edges[] = {
	0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
	0x00800001, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0xbf7fffff, 0x3f000000, 0x3fc00000,
	0x40200000, 0xc0200000, 0x40490fdb, 0x3dcccccd, 0xbdcccccd, 0x4b000000, 0x4b7fffff, 0x4b800000,
	0xcb800001, 0x34000000, 0x33800000, 0x1fffffff, 0x20000001, 0x5f000000, 0x7f7fffff, 0xff7fffff,
	0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x66800000, 0x0c000001, 0x477fe000,
};
static const uint32_t integer_edges[] = {
	0,          1,          2,          3,          0xffffffff, 0xfffffffe, 0x80000000, 0x80000001, 0x7fffffff,
	0x7ffffffe, 31,         32,         33,         63,         64,         127,        128,        129,
	255,        256,        0x7f,       0x80,       0x7f7f7f7f, 0x80808080, 0x81818181, 0x00ff00ff, 0x12345678,
	0xdeadbeef, 0x01000001, 0x00ffffff, 0xff000001, 0x01000003, 0x55555555,
};

enum { EDGES_MAX = 40, CASES_MAX = EDGES_MAX * EDGES_MAX * EDGES_MAX + 32 };

struct cases {
	enum ir_op op;
	unsigned lanes;
	int64_t imm;
	size_t n;
	uint32_t a[CASES_MAX], b[CASES_MAX], c[CASES_MAX], out[CASES_MAX];
};

static size_t edges(uint8_t kind, uint32_t *values)
{
	size_t n = 0;

	if (kind == IR_TYPE_f32)
		for (; n < sizeof float_edges / 4; n++)
			values[n] = float_edges[n];
	else if (kind == IR_TYPE_i32)
		for (; n < sizeof integer_edges / 4; n++)
			values[n] = integer_edges[n];
	else if (kind == IR_TYPE_m)
		for (; n < 2; n++)
			values[n] = (uint32_t)n;
	else
		values[n++] = 0;
	return n;
}

static bool has_byte_128(uint32_t u)
{
	return (u & 0xff) == 0x80 || (u >> 8 & 0xff) == 0x80 || (u >> 16 & 0xff) == 0x80 || u >> 24 == 0x80;
}

/* All combinations that the row allows, filled up to whole vectors. */
static void combine(struct cases *t)
{
	const struct ir_facts *f = &ir_facts[t->op];
	uint32_t a[EDGES_MAX], b[EDGES_MAX], c[EDGES_MAX];
	const size_t na = edges(f->a, a), nb = edges(f->b, b), nc = edges(f->c, c);

	t->n = 0;
	for (size_t k = 0; k < na * nb * nc; k++) {
		const uint32_t x = a[k % na], y = b[k / na % nb], z = c[k / na / nb];

		if ((t->op == IR_f2i && !(fabsf(as_float(x)) <= 0x1p30f)) || (t->op == IR_dot4 && has_byte_128(y)))
			continue;
		t->a[t->n] = t->op == IR_dot2b ? x & 0x7f7f7f7f : t->op == IR_ilut16 ? x & 0x0f0f0f0f : x;
		t->b[t->n] = y;
		t->c[t->n++] = z;
	}
	for (; t->n % t->lanes; t->n++) {
		t->a[t->n] = t->a[0];
		t->b[t->n] = t->b[0];
		t->c[t->n] = t->c[0];
	}
}

static uint16_t load_operand(struct ir *b, uint8_t kind, ir_a from, ir_s offset)
{
	ir_i v;

	if (kind == IR_TYPE__)
		return 0;
	v = ir_iload(b, ir_aadd(b, from, offset), 0);
	if (kind == IR_TYPE_f32)
		return ir_fbits(b, v).r;
	return kind == IR_TYPE_m ? ir_igt(b, v, ir_iconst(b, 0)).r : v.r;
}

/* One unit is one vector of cases. */
static void build_row(struct ir *b, const struct cases *t)
{
	const struct ir_facts *f = &ir_facts[t->op];
	uint16_t r;
	ir_a p[4], arg;
	ir_s i, offset;

	ir_init(b, t->lanes);
	arg = ir_arg(b);
	for (int k = 0; k < 4; k++)
		p[k] = ir_aload(b, arg, 8 * k);
	i = ir_loop(b, ir_ssub(b, ir_end(b), ir_begin(b)));
	offset = ir_smuli(b, ir_sadd(b, i, ir_begin(b)), 4 * (int)t->lanes);
	const uint16_t x = load_operand(b, f->a, p[0], offset), y = load_operand(b, f->b, p[1], offset),
		       z = load_operand(b, f->c, p[2], offset);
	const bool move = f->op == IR_mov;
	r = ir_emit(b, t->op, move ? ir_new_var(b, (enum ir_type)f->dst) : 0, x, y, z, t->imm);
	if (f->dst == IR_TYPE_m)
		r = ir_isel(b, (ir_m){ r }, ir_iconst(b, 1), ir_iconst(b, 0)).r;
	if (f->dst != IR_TYPE_f32)
		r = ir_fbits(b, (ir_i){ r }).r;
	ir_fstore(b, ir_aadd(b, p[3], offset), (ir_f){ r }, 0, 0);
	ir_endloop(b);
}

static void check_row(void *context, const char *instance)
{
	const struct cases *t = context;
	const struct ir_facts *f = &ir_facts[t->op];

	for (size_t k = 0; k < t->n; k++) {
		const uint32_t want = formula(t->op, t->a[k], t->b[k], t->c[k], t->imm, (uint32_t)(k % t->lanes));
		/* which NaN arithmetic gives is not defined; moves keep the bits */
		const bool any_nan = f->dst == IR_TYPE_f32 && t->op != IR_fmov && t->op != IR_fbits &&
		                     t->op != IR_fsel && t->op != IR_fabs && t->op != IR_fneg;

		if (t->out[k] != want && !(any_nan && is_nan(t->out[k]) && is_nan(want)))
			fail_msg("%s (%u lanes, %s): a %08x b %08x c %08x imm %lld: found %08x, expected %08x", f->name,
			         t->lanes, instance, t->a[k], t->b[k], t->c[k], (long long)t->imm, t->out[k], want);
	}
}

static void reset_row(void *context)
{
	struct cases *t = context;

	memset(t->out, 0xcd, sizeof t->out);
}

static void test_vector_rows(void **unused)
{
	static const int64_t constants[] = { 0, 1, 0x3f800000, 0x7fc00001, 0x80000000, 0xffffffff, 0x00000001 };
	struct cases *t = malloc(sizeof *t);

	assert_non_null(t);
	for (unsigned op = 0; op < IR_ROWS; op++) {
		const struct ir_facts *f = &ir_facts[op];
		const bool shifts = op == IR_ishl || op == IR_ishr || op == IR_isar || op == IR_irotl;
		const int immediates =
			f->imm == IR_IMM__ ? 1
			: shifts           ? 32
			: op == IR_fhalf   ? 2
			: op == IR_ilut16  ? LANES_TABLES
					   : (int)(sizeof constants / sizeof *constants);

		if (!ir_is_row(op) || !f->expression[0] || f->dst == IR_TYPE_s || f->dst == IR_TYPE_c ||
		    f->dst == IR_TYPE_a || f->dst == IR_TYPE_t || op == IR_isplat || ir_types[f->dst].bytes == 8 ||
		    ir_types[f->a].bytes == 8)
			continue;
		for (t->lanes = 8; t->lanes <= 32; t->lanes *= 2)
			for (int k = 0; k < immediates; k++) {
				const uint64_t arg[] = { (uintptr_t)t->a, (uintptr_t)t->b, (uintptr_t)t->c,
					                 (uintptr_t)t->out };
				struct ir b;

				t->op = (enum ir_op)op;
				t->imm = f->imm == IR_IMM__                            ? 0
				         : shifts || op == IR_ilut16 || op == IR_fhalf ? k
				                                                       : constants[k];
				combine(t);
				build_row(&b, t);
				run_both(&b, arg, 0, (int64_t)(t->n / t->lanes), reset_row, check_row, t);
			}
	}
	free(t);
}

/* dst may be an operand too: the same register, lane for lane. */
static void test_one_buffer(void **unused)
{
	struct cases *t = calloc(1, sizeof *t);

	assert_non_null(t);
	for (t->lanes = 8; t->lanes <= 32; t->lanes *= 2) {
		const uint64_t arg[] = { (uintptr_t)t->a, (uintptr_t)t->out };
		struct ir b;

		ir_init(&b, t->lanes);
		ir_f v = ir_var_f(&b, ir_fload(&b, ir_aload(&b, ir_arg(&b), 0), 0, 0));
		ir_set_f(&b, v, ir_fadd(&b, v, v));
		ir_set_f(&b, v, ir_ffma(&b, v, v, v));
		ir_set_f(&b, v, ir_fxor(&b, v, 4));
		ir_fstore(&b, ir_aload(&b, ir_arg(&b), 8), v, 0, 0);
		for (unsigned l = 0; l < t->lanes; l++)
			t->a[l] = as_bits((float)l);
		assert_true(ir_verify(&b, NULL));
		ir_interp(&b, arg, 0, 1);
		for (unsigned l = 0; l < t->lanes; l++) {
			const float w = 2 * (float)(l ^ 4);

			assert_int_equal(t->out[l], as_bits(w * w + w));
		}
		ir_free(&b);
	}
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_rows),
		cmocka_unit_test(test_one_buffer),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += interp_memory_tests();
	failed += interp_scalar_tests();
	failed += interp_wide_tests();
	return failed;
}
