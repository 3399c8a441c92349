/* tests/jit/interp_number_formulas.c - the second formulas of quotients, comparisons, bits that are counted, rounding
 * conversions between numbers, and masks: digit by digit, or from their bits. */
#include <math.h>

#include "jit/ir/ir.h"
#include "tests/jit/interp_check.h"

/* Long division, a bit at a time; by 0 every bit of the quotient is set. */
static uint32_t divide(uint32_t a, uint32_t b, uint32_t *rest)
{
	uint32_t q = 0;
	uint64_t r = 0;

	for (int k = 31; k >= 0; k--) {
		r = r * 2 + (a >> k & 1);
		if (r >= b) {
			r -= b;
			q += (uint32_t)1 << k;
		}
	}
	*rest = (uint32_t)r;
	return q;
}

static uint32_t size_of(uint32_t a) { return a >> 31 ? 0 - a : a; }

static uint32_t divide_signed(uint32_t a, uint32_t b, uint32_t *rest)
{
	const uint32_t q = divide(size_of(a), size_of(b), rest);

	if (a >> 31)
		*rest = 0 - *rest;
	return !b ? 0xffffffff : (a ^ b) >> 31 ? 0 - q : q;
}

/* The product's upper half, of 16 bits by 16. */
static uint32_t product_high(uint32_t a, uint32_t b)
{
	const uint64_t al = a & 0xffff, ah = a >> 16, bl = b & 0xffff, bh = b >> 16;
	const uint64_t middle = (al * bl >> 16) + (ah * bl & 0xffff) + (al * bh & 0xffff);

	return (uint32_t)(ah * bh + (ah * bl >> 16) + (al * bh >> 16) + (middle >> 16));
}

static uint32_t ones(uint32_t a)
{
	uint32_t n = 0;

	for (; a; a &= a - 1)
		n++;
	return n;
}

static uint32_t leading_zeros(uint32_t a)
{
	uint32_t n = 32;

	for (; a; a /= 2)
		n--;
	return n;
}

static double value(uint32_t u)
{
	const int exponent = u >> 23 & 255;
	const double size =
		exponent == 255 ? (u & 0x7fffff ? (double)NAN : (double)INFINITY)
				: ldexp((u & 0x7fffff) + (exponent ? 0x800000 : 0), (exponent ? exponent : 1) - 150);

	return u >> 31 ? -size : size;
}

/* What whole number x becomes: how says which way it goes, -1 down, 1 up, 0 towards zero, 2 to the nearest. */
static uint32_t rounded(uint32_t u, int how)
{
	const double x = value(u), size = fabs(x);
	double part, whole;

	if (!(size < 0x1p24))
		return u;
	part = modf(size, &whole);
	const int up = how == 2 ? part > 0.5 || (part == 0.5 && fmod(whole, 2) == 1)
	                        : part > 0 && ((how == 1 && x > 0) || (how == -1 && x < 0));
	return as_bits((float)(whole + up)) | (u & 0x80000000u);
}

static uint32_t cut(uint32_t u, double low, double high)
{
	double whole;

	if ((u & 0x7fffffff) > 0x7f800000)
		return 0;
	modf(value(u), &whole);
	whole = whole < low ? low : whole > high ? high : whole;
	return (uint32_t)(int64_t)whole;
}

/* 1, 0, -1; 2 when either is NaN. */
static int order(double x, double y) { return isnan(x) || isnan(y) ? 2 : x < y ? -1 : x > y; }

bool number_formula(unsigned row, uint32_t a, uint32_t b, uint32_t *out)
{
	uint32_t rest;
	const uint32_t flipped_a = a ^ 0x80000000u, flipped_b = b ^ 0x80000000u;

	switch (row) {
	case IR_idiv: *out = divide_signed(a, b, &rest); return true;
	case IR_irem: divide_signed(a, b, out); return true;
	case IR_udiv: *out = divide(a, b, &rest); return true;
	case IR_urem: divide(a, b, out); return true;
	case IR_imin: *out = flipped_a < flipped_b ? a : b; return true;
	case IR_imax: *out = flipped_a < flipped_b ? b : a; return true;
	case IR_ieq: *out = !(a ^ b); return true;
	case IR_igt: *out = flipped_b < flipped_a; return true;
	case IR_umin: *out = a < b ? a : b; return true;
	case IR_umax: *out = a < b ? b : a; return true;
	case IR_umulh: *out = product_high(a, b); return true;
	case IR_imulh: *out = product_high(a, b) - (a >> 31 ? b : 0) - (b >> 31 ? a : 0); return true;
	case IR_isarv: *out = b > 31 ? 0 - (a >> 31) : (a >> b) | ~(0xffffffffu >> b) * (a >> 31); return true;
	case IR_iones: *out = ones(a); return true;
	case IR_iclz: *out = leading_zeros(a); return true;
	case IR_ilt: *out = flipped_a < flipped_b; return true;
	case IR_ile: *out = flipped_a <= flipped_b; return true;
	case IR_ine: *out = (a ^ b) != 0; return true;
	case IR_ult: *out = (uint64_t)a - b > UINT32_MAX; return true;
	case IR_ule: *out = (uint64_t)b - a <= UINT32_MAX; return true;
	case IR_feq: *out = order(value(a), value(b)) == 0; return true;
	case IR_fne: *out = order(value(a), value(b)) != 0; return true;
	case IR_fround: *out = rounded(a, 2); return true;
	case IR_ffloor: *out = rounded(a, -1); return true;
	case IR_fceil: *out = rounded(a, 1); return true;
	case IR_ftrunc: *out = rounded(a, 0); return true;
	case IR_u2f: *out = as_bits((float)(ldexp(a >> 16, 16) + (a & 0xffff))); return true;
	case IR_f2i_cut: *out = cut(a, INT32_MIN, INT32_MAX); return true;
	case IR_f2u_cut: *out = cut(a, 0, UINT32_MAX); return true;
	case IR_mand: *out = a & b; return true;
	case IR_mor: *out = a | b; return true;
	case IR_mnot: *out = 1 - a; return true;
	case IR_mxor: *out = a != b; return true;
	default: return false;
	}
}
