/* tests/jit/interp_wide_tests.c - rows of the interpreter with lanes of 64 bits, against second formulas: integers in
 * 128 bits, floats in the larger format and rounded once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/ir/ir_build_numbers.h"
#include "jit/ir/lanes.h"
#include "tests/jit/interp_check.h"

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;
typedef __float128 quad; /* 113 digits: sums, products and quotients of 53 may be rounded twice */

static const uint64_t values[] = {
	0,
	UINT64_C(1) << 63,
	1,
	UINT64_MAX,
	INT64_MAX,
	UINT64_C(0x8000000000000001),
	UINT64_C(0x000fffffffffffff),
	UINT64_C(0x0010000000000000),
	UINT64_C(0x7fefffffffffffff),
	UINT64_C(0x7ff0000000000000),
	UINT64_C(0xfff0000000000000),
	UINT64_C(0x7ff8000000000000),
	UINT64_C(0x3ff0000000000000),
	UINT64_C(0xbff8000000000000),
	UINT64_C(0x4004000000000000),
	UINT64_C(0x41dfffffffe00000),
	UINT64_C(0xc1e0000000100000),
	UINT64_C(0x41efffffffe00000),
	UINT64_C(0x41f0000000000000),
	UINT64_C(0x43dfffffffffffff),
	UINT64_C(0x43e0000000000000),
	UINT64_C(0xc3e0000000000001),
	UINT64_C(0x43f0000000000000),
	UINT64_C(0x4340000000000001),
	UINT64_C(0x0020000000000001),
	UINT64_C(0xfffffffffffffc00),
	UINT64_C(0x47effffff0000000),
	UINT64_C(0x3690000000000001),
	31,
	32,
	63,
	64,
	UINT64_C(0x100000000),
	UINT64_C(0x123456789abcdef0),
};
enum { VALUES = sizeof values / sizeof *values, CASES = 1280 };

struct cases {
	uint16_t row;
	unsigned lanes;
	int64_t imm;
	uint64_t a[CASES], b[CASES], c[CASES], out[CASES];
};

static double num(uint64_t u) { return bits_f64(u); }
static bool is_nan(uint64_t u) { return (u & INT64_MAX) > UINT64_C(0x7ff0000000000000); }

/* a * b + c, rounded to odd and then to 53 digits. */
static uint64_t fused(double a, double b, double c)
{
	const quad product = (quad)a * b, sum = product + c, of_c = sum - product;
	const quad error = (product - (sum - of_c)) + (c - of_c);
	unsigned_wide bits;
	quad odd = sum;

	memcpy(&bits, &odd, 16);
	if (isfinite((double)sum) && error != 0 && !(bits & 1)) {
		bits += (error > 0) == (sum > 0) ? 1 : (unsigned_wide)-1;
		memcpy(&odd, &bits, 16);
	}
	return f64_bits((double)odd);
}

/* The float whose square is nearest: the middle between two has 54 digits, and its square 108. */
static uint64_t rooted(double x)
{
	double r = sqrt(x);

	if (!(x > 0) || isinf(x))
		return f64_bits(r);
	for (int round = 0; round < 3; round++) {
		const double up = nextafter(r, INFINITY), down = nextafter(r, 0);
		const quad above = ((quad)r + up) / 2, below = ((quad)r + down) / 2;
		r = above * above < x ? up : below * below > x ? down : r;
	}
	return f64_bits(r);
}

static uint64_t rounded(double x, int how)
{
	double whole, part = modf(fabs(x), &whole);

	if (!(fabs(x) < 0x1p53))
		return f64_bits(x);
	const bool up = how == 2 ? part > 0.5 || (part == 0.5 && fmod(whole, 2) == 1)
	                         : part > 0 && ((how == 1 && x > 0) || (how == -1 && x < 0));
	return f64_bits(copysign(whole + up, x));
}

static uint64_t cut(double x, quad low, quad high)
{
	const quad whole = isnan(x) ? 0 : (quad)trunc(x);

	return (uint64_t)(wide)(whole < low ? low : whole > high ? high : whole);
}

static float narrow(uint64_t u) { return bits_f32((uint32_t)u); }
static int32_t low(uint64_t u) { return (int32_t)(uint32_t)u; }

static bool floats(const struct cases *t, uint64_t a, uint64_t b, uint64_t c, uint64_t *out)
{
	const double x = num(a), y = num(b);

	switch (t->row) {
	case IR_dadd: *out = f64_bits((double)((quad)x + y)); return true;
	case IR_dsub: *out = f64_bits((double)((quad)x - y)); return true;
	case IR_dmul: *out = f64_bits((double)((quad)x * y)); return true;
	case IR_ddiv: *out = f64_bits((double)((quad)x / y)); return true;
	case IR_dfma: *out = fused(x, y, num(c)); return true;
	case IR_dsqrt: *out = rooted(x); return true;
	case IR_dmin: *out = !isnan(x) && !isnan(y) && x < y ? a : b; return true;
	case IR_dmax: *out = !isnan(x) && !isnan(y) && x > y ? a : b; return true;
	case IR_dabs: *out = a % (UINT64_C(1) << 63); return true;
	case IR_dneg: *out = a + (UINT64_C(1) << 63); return true;
	case IR_dround: *out = rounded(x, 2); return true;
	case IR_dfloor: *out = rounded(x, -1); return true;
	case IR_dceil: *out = rounded(x, 1); return true;
	case IR_dtrunc: *out = rounded(x, 0); return true;
	case IR_dlt: *out = !is_nan(a) && !is_nan(b) && !(x >= y); return true;
	case IR_dle: *out = !is_nan(a) && !is_nan(b) && !(x > y); return true;
	case IR_deq: *out = !is_nan(a) && !is_nan(b) && !(x > y) && !(x < y); return true;
	case IR_dne: *out = is_nan(a) || is_nan(b) || x > y || x < y; return true;
	case IR_f2d: *out = f64_bits((double)(quad)narrow(a)); return true;
	case IR_d2f: *out = f32_bits((float)(quad)x); return true;
	case IR_d2l_cut: *out = cut(x, -0x1p63, (quad)INT64_MAX); return true;
	case IR_d2ul_cut: *out = cut(x, 0, (quad)UINT64_MAX); return true;
	case IR_d2i_cut: *out = (uint32_t)cut(x, INT32_MIN, INT32_MAX); return true;
	case IR_d2u_cut: *out = (uint32_t)cut(x, 0, UINT32_MAX); return true;
	case IR_l2d: *out = f64_bits((double)(quad)(int64_t)a); return true;
	case IR_ul2d: *out = f64_bits((double)(quad)a); return true;
	case IR_i2d: *out = f64_bits((double)(quad)low(a)); return true;
	case IR_u2d: *out = f64_bits((double)(quad)(uint32_t)a); return true;
	default: return false;
	}
}

static uint64_t formula(const struct cases *t, uint64_t a, uint64_t b, uint64_t c)
{
	const wide x = (int64_t)a, y = (int64_t)b;
	uint64_t out;

	if (floats(t, a, b, c, &out))
		return out;
	switch (t->row) {
	case IR_dconst:
	case IR_lconst: return (uint64_t)t->imm;
	case IR_dsel:
	case IR_lsel: return low(a) > 0 ? b : c;
	case IR_dbits:
	case IR_lbits:
	case IR_dmov:
	case IR_lmov: return a;
	case IR_ladd: return (uint64_t)(x + y);
	case IR_lsub: return (uint64_t)(x - y);
	case IR_lmul: return (uint64_t)((unsigned_wide)a * b);
	case IR_land: return ~(~a | ~b);
	case IR_lor: return ~(~a & ~b);
	case IR_lxor: return (a | b) - (a & b);
	case IR_lmin: return (uint64_t)(x < y ? x : y);
	case IR_lmax: return (uint64_t)(x < y ? y : x);
	case IR_lumin: return a < b ? a : b;
	case IR_lumax: return a < b ? b : a;
	case IR_llt: return x - y < 0;
	case IR_lle: return x - y <= 0;
	case IR_leq: return !(a ^ b);
	case IR_lne: return (a ^ b) != 0;
	case IR_lult: return (unsigned_wide)a < b;
	case IR_lule: return (unsigned_wide)a <= b;
	case IR_lshl: return (uint64_t)((unsigned_wide)a << t->imm);
	case IR_lshr: return (uint64_t)((unsigned_wide)a >> t->imm);
	case IR_lsar: return (uint64_t)(x >> t->imm);
	case IR_lshlv: return b > 63 ? 0 : (uint64_t)((unsigned_wide)a << b);
	case IR_lshrv: return b > 63 ? 0 : (uint64_t)((unsigned_wide)a >> b);
	case IR_lsarv: return (uint64_t)(x >> (b > 63 ? 63 : b));
	case IR_i2l: return (uint64_t)(wide)low(a);
	case IR_u2l: return (uint32_t)a;
	case IR_l2i: return a % (UINT64_C(1) << 32);
	default: fail_msg("%s has no second formula", ir_facts[t->row].name); return 0;
	}
}

static bool is_wide(uint8_t type) { return type == IR_TYPE_f64 || type == IR_TYPE_i64; }

/* Operands of 32 bits are the lower halves. */
static uint16_t operand(struct ir *b, uint8_t type, ir_a from, ir_s at)
{
	if (!type)
		return 0;
	ir_l l = ir_lload(b, ir_aadd(b, from, at), 0, 0);
	ir_i i = is_wide(type) ? (ir_i){ 0 } : ir_l2i(b, l);
	switch (type) {
	case IR_TYPE_f64: return ir_dbits(b, l).r;
	case IR_TYPE_i64: return l.r;
	case IR_TYPE_f32: return ir_fbits(b, i).r;
	case IR_TYPE_m: return ir_igt(b, i, ir_iconst(b, 0)).r;
	default: return i.r;
	}
}

static void build(struct ir *b, const struct cases *t)
{
	const struct ir_facts *f = &ir_facts[t->row];
	ir_a p[4], arg;

	ir_init(b, t->lanes);
	arg = ir_arg(b);
	for (int k = 0; k < 4; k++)
		p[k] = ir_aload(b, arg, 8 * k);
	ir_s at = ir_smuli(b, ir_loop(b, ir_sconst(b, CASES / (int)t->lanes)), 8 * (int)t->lanes);
	const uint16_t x = operand(b, f->a, p[0], at), y = operand(b, f->b, p[1], at), z = operand(b, f->c, p[2], at);
	uint16_t r = ir_emit(b, t->row, f->op == IR_mov ? ir_new_var(b, f->dst) : 0, x, y, z, t->imm);
	if (f->dst == IR_TYPE_m)
		r = ir_isel(b, (ir_m){ r }, ir_iconst(b, 1), ir_iconst(b, 0)).r;
	if (f->dst == IR_TYPE_f32)
		r = ir_ibits(b, (ir_f){ r }).r;
	const ir_l out = f->dst == IR_TYPE_f64   ? ir_lbits(b, (ir_d){ r })
	                 : f->dst == IR_TYPE_i64 ? (ir_l){ r }
	                                         : ir_u2l(b, (ir_i){ r });
	ir_lstore(b, ir_aadd(b, p[3], at), out, 0, 0);
	ir_endloop(b);
}

static bool same(const struct cases *t, uint64_t x, uint64_t y)
{
	const uint8_t type = ir_facts[t->row].dst;
	const bool nan = type == IR_TYPE_f64   ? is_nan(x) && is_nan(y)
	                 : type == IR_TYPE_f32 ? isnan(narrow(x)) && isnan(narrow(y))
	                                       : false;
	return x == y || nan;
}

static void check_row(void *context, const char *instance)
{
	const struct cases *t = context;

	for (size_t k = 0; k < CASES; k++) {
		const uint64_t want = formula(t, t->a[k], t->b[k], t->c[k]);
		if (!same(t, t->out[k], want))
			fail_msg("%s (%u lanes, %s): a %llx b %llx c %llx imm %lld: found %llx, expected %llx",
			         ir_facts[t->row].name, t->lanes, instance, (unsigned long long)t->a[k],
			         (unsigned long long)t->b[k], (unsigned long long)t->c[k], (long long)t->imm,
			         (unsigned long long)t->out[k], (unsigned long long)want);
	}
}

static void reset_row(void *context)
{
	struct cases *t = context;

	memset(t->out, 0xcd, sizeof t->out);
}

static void test_wide_rows(void **unused)
{
	static const int64_t imms[] = { 0, 1, 31, 32, 63 };
	struct cases *t = calloc(1, sizeof *t);

	assert_non_null(t);
	for (size_t k = 0; k < CASES; k++) {
		t->a[k] = values[k % VALUES];
		t->b[k] = values[k / VALUES % VALUES];
		t->c[k] = values[(k * 7 + k / VALUES) % VALUES];
	}
	for (t->row = 0; t->row < IR_ROWS; t->row++) {
		const struct ir_facts *f = &ir_facts[t->row];
		if (!ir_is_row(t->row) || !f->expression[0] || (!is_wide(f->dst) && !is_wide(f->a)) ||
		    f->a == IR_TYPE_s)
			continue;
		for (t->lanes = 8; t->lanes <= 32; t->lanes *= 2)
			for (unsigned k = 0; k < (f->imm == IR_IMM__ ? 1 : sizeof imms / sizeof *imms); k++) {
				const uint64_t arg[] = { (uintptr_t)t->a, (uintptr_t)t->b, (uintptr_t)t->c,
					                 (uintptr_t)t->out };
				struct ir b;
				t->imm = imms[k];
				if (f->imm == IR_IMM__)
					t->imm = 0;
				build(&b, t);
				run_both(&b, arg, 0, 1, reset_row, check_row, t);
			}
	}
	free(t);
}

int interp_wide_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_wide_rows) };

	return cmocka_run_group_tests_name("wide rows", tests, NULL, NULL);
}
