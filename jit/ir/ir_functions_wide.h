/* jit/ir/ir_functions_wide.h - exp, log, sin, cos, tanh, erf and pow of doubles as sequences of instructions, the same
 * bits on every target.
 *
 * Owns: the series. Results are less than 2 units in the last place from the exact ones (t_functions_wide); ends,
 * infinities, zeros and NaNs are those of Annex F of the C standard. A NaN gives itself, but where pow does not look.
 */
#ifndef JIT_IR_FUNCTIONS_WIDE_H
#define JIT_IR_FUNCTIONS_WIDE_H

#include "jit/ir/ir_functions.h"
#include "jit/ir/ir_reduce.h"

#define IR_SERIES(b, x, coefficients) ir_series(b, x, coefficients, sizeof(coefficients) / sizeof *(coefficients))

static inline ir_d ir_or_nan_wide(struct ir *b, ir_d x, ir_d y)
{
	const ir_m nan = ir_dne(b, x, x);

	return ir_dsel(b, nan, x, y);
}

static inline ir_d ir_nan_wide(struct ir *b) { return ir_dbits(b, ir_lconst(b, INT64_C(0x7ff8) << 48)); }

static inline ir_l ir_sign_wide(struct ir *b, ir_d x) { return ir_land(b, ir_lbits(b, x), ir_lconst(b, INT64_MIN)); }

/* A size, with the sign of something else. */
static inline ir_d ir_signed_wide(struct ir *b, ir_d size, ir_l sign)
{
	return ir_dbits(b, ir_lor(b, ir_lbits(b, size), sign));
}

/* 2^k of -1022 <= k <= 1023. */
static inline ir_d ir_two_to(struct ir *b, ir_l k)
{
	return ir_dbits(b, ir_lshl(b, ir_ladd(b, k, ir_lconst(b, 1023)), 52));
}

/* --- exp */

/* e^(x + rest) of |rest| below a unit in the last place of x, and of x that is no NaN. Beyond 710 and -746 it is
 * infinite, or 0. Taylor's series of e^r up to r^13 leaves out 2^-57; 2^k goes in two steps, so that results below the
 * normal numbers are rounded once. */
static inline ir_d ir_exp_of_sum(struct ir *b, ir_d x, ir_d rest)
{
	static const double inverse_factorial[] = { 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
		                                    1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
		                                    1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5 };
	const ir_d min = ir_dconst(b, -746), max = ir_dconst(b, 710), one = ir_dconst(b, 1);
	const ir_d inside = ir_dmin(b, ir_dmax(b, x, min), max);
	const ir_d per_ln2 = ir_dconst(b, 0x1.71547652b82fep0), ln2 = ir_dconst(b, -0x1.62e42fefa39efp-1),
		   ln2_rest = ir_dconst(b, -0x1.abc9e3b39803fp-56);
	const ir_d k = ir_dround(b, ir_dmul(b, inside, per_ln2));
	const ir_d near = ir_dfma(b, k, ln2, inside), r = ir_dadd(b, ir_dfma(b, k, ln2_rest, near), rest);
	const ir_d square = ir_dmul(b, r, r), tail = IR_SERIES(b, r, inverse_factorial);
	const ir_d sum = ir_dadd(b, ir_dfma(b, square, tail, r), one);
	const ir_l whole = ir_whole_l(b, k), half = ir_lsar(b, whole, 1), other = ir_lsub(b, whole, half);

	return ir_dmul(b, ir_dmul(b, sum, ir_two_to(b, half)), ir_two_to(b, other));
}

static inline ir_d ir_fn_exp_f64(struct ir *b, ir_d x)
{
	const ir_d zero = ir_dconst(b, 0);

	return ir_or_nan_wide(b, x, ir_exp_of_sum(b, x, zero));
}

/* --- log */

/* x = 2^e m, m between the roots of 1/2 and of 2; a positive, finite one. */
struct ir_scaled {
	ir_d e, m;
};
static inline struct ir_scaled ir_scale(struct ir *b, ir_d x)
{
	const ir_m is_small = ir_dlt(b, x, ir_dconst(b, 0x1p-1022));
	const ir_d large = ir_dmul(b, x, ir_dconst(b, 0x1p54)), normal = ir_dsel(b, is_small, large, x);
	const ir_l bits = ir_lbits(b, normal), from = ir_lconst(b, 0x3fe6a09e667f3bcd);
	const ir_l e = ir_lsar(b, ir_lsub(b, bits, from), 52), m = ir_lsub(b, bits, ir_lshl(b, e, 52));
	const ir_l less = ir_lsel(b, is_small, ir_lconst(b, 54), ir_lconst(b, 0));
	const ir_d exponent = ir_l2d(b, ir_lsub(b, e, less));

	return (struct ir_scaled){ exponent, ir_dbits(b, m) };
}

/* 2 / (2n + 1), down to n = 1. */
#define IR_ODD_INVERSES \
	2.0 / 25, 2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, \
		2.0 / 3

/* With f = m - 1 and s = f / (2 + f), ln m = f - (f^2 / 2 - s (f^2 / 2 + R)), R the series of 2 artanh s - 2 s, per s.
 */
static inline ir_d ir_log_finite(struct ir *b, ir_d x)
{
	static const double odd[] = { IR_ODD_INVERSES };
	const struct ir_scaled n = ir_scale(b, x);
	const ir_d f = ir_dsub(b, n.m, ir_dconst(b, 1)), s = ir_ddiv(b, f, ir_dadd(b, f, ir_dconst(b, 2)));
	const ir_d z = ir_dmul(b, s, s), r = ir_dmul(b, z, IR_SERIES(b, z, odd));
	const ir_d half = ir_dmul(b, ir_dmul(b, f, f), ir_dconst(b, 0.5));
	const ir_d ln2 = ir_dconst(b, 0x1.62e42fefa3800p-1), ln2_rest = ir_dconst(b, 0x1.ef35793c76730p-45);
	const ir_d back = ir_dfma(b, n.e, ln2_rest, ir_dmul(b, s, ir_dadd(b, half, r)));
	const ir_d minus = ir_dsub(b, ir_dsub(b, half, back), f);

	return ir_dfma(b, n.e, ln2, ir_dneg(b, minus));
}

static inline ir_d ir_fn_log_f64(struct ir *b, ir_d x)
{
	const ir_d zero = ir_dconst(b, 0), infinity = ir_dconst(b, __builtin_inf()),
		   lowest = ir_dconst(b, -__builtin_inf());
	const ir_m is_zero = ir_deq(b, x, zero), is_less = ir_dlt(b, x, zero), is_infinity = ir_deq(b, x, infinity);
	const ir_d finite = ir_dsel(b, is_infinity, x, ir_log_finite(b, x));

	return ir_or_nan_wide(b, x, ir_dsel(b, is_less, ir_nan_wide(b), ir_dsel(b, is_zero, lowest, finite)));
}

/* --- sin and cos */

/* Of an angle from -pi / 4 to pi / 4: Taylor's series up to r^17 and r^18, which leave out 2^-63. */
static inline ir_d ir_sin_rest(struct ir *b, struct ir_pair r)
{
	static const double series[] = { 1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
		                         1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6 };
	const ir_d z = ir_dmul(b, r.high, r.high), cube = ir_dmul(b, z, r.high);
	const ir_d less = ir_dfma(b, ir_dmul(b, z, ir_dconst(b, -0.5)), r.low, r.low);

	return ir_dadd(b, r.high, ir_dfma(b, cube, IR_SERIES(b, z, series), less));
}

static inline ir_d ir_cos_rest(struct ir *b, struct ir_pair r)
{
	static const double series[] = {
		-1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
		-1.0 / 3628800,          1.0 / 40320,          -1.0 / 720,         1.0 / 24
	};
	const ir_d z = ir_dmul(b, r.high, r.high), half = ir_dmul(b, z, ir_dconst(b, 0.5)), one = ir_dconst(b, 1);
	const ir_d near = ir_dsub(b, one, half), lost = ir_dsub(b, ir_dsub(b, one, near), half);
	const ir_d fourth = ir_dmul(b, ir_dmul(b, z, z), IR_SERIES(b, z, series));
	const ir_d slope = ir_dmul(b, r.high, r.low); /* what the low part changes */

	return ir_dadd(b, near, ir_dadd(b, lost, ir_dsub(b, fourth, slope)));
}

/* The sine of the angle plus `more` right angles. Its sign is changed where the top bit of `minus` is set. */
static inline ir_d ir_circle(struct ir *b, struct ir_angle a, int64_t more, ir_l minus)
{
	const ir_l quadrant = ir_ladd(b, a.right_angles, ir_lconst(b, more)), one = ir_lconst(b, 1);
	const ir_m across = ir_leq(b, ir_land(b, quadrant, one), one);
	const ir_d sine = ir_sin_rest(b, a.rest), cosine = ir_cos_rest(b, a.rest);
	const ir_l sign = ir_lxor(b, ir_lshl(b, ir_lshr(b, quadrant, 1), 63), minus);

	return ir_dbits(b, ir_lxor(b, ir_lbits(b, ir_dsel(b, across, cosine, sine)), sign));
}

/* y, but NaN where x is infinite (size: its magnitude); a NaN gives itself. */
static inline ir_d ir_of_angle(struct ir *b, ir_d x, ir_d size, ir_d y)
{
	const ir_m endless = ir_deq(b, size, ir_dconst(b, __builtin_inf()));

	return ir_or_nan_wide(b, x, ir_dsel(b, endless, ir_nan_wide(b), y));
}

static inline ir_d ir_fn_sin_f64(struct ir *b, ir_d x)
{
	const ir_d size = ir_dabs(b, x);
	const struct ir_angle angle = ir_reduce(b, size);
	const ir_d y = ir_circle(b, angle, 0, ir_sign_wide(b, x));

	return ir_of_angle(b, x, size, y);
}

static inline ir_d ir_fn_cos_f64(struct ir *b, ir_d x)
{
	const ir_d size = ir_dabs(b, x);
	const struct ir_angle angle = ir_reduce(b, size);

	return ir_of_angle(b, x, size, ir_circle(b, angle, 1, ir_lconst(b, 0)));
}

/* --- tanh */

/* e^x - 1 of 0 <= x <= 44: with x = k ln 2 + r it is 2^k (e^r - 1) + 2^k - 1, the first of which loses nothing where k
 * is 0. */
static inline struct ir_pair ir_exp_less_one(struct ir *b, ir_d x)
{
	static const double inverse_factorial[] = {
		1.0 / 87178291200,
		1.0 / 6227020800,
		1.0 / 479001600,
		1.0 / 39916800,
		1.0 / 3628800,
		1.0 / 362880,
		1.0 / 40320,
		1.0 / 5040,
		1.0 / 720,
		1.0 / 120,
		1.0 / 24,
		1.0 / 6,
		0.5
	};
	const ir_d per_ln2 = ir_dconst(b, 0x1.71547652b82fep0), ln2 = ir_dconst(b, -0x1.62e42fefa39efp-1),
		   ln2_rest = ir_dconst(b, -0x1.abc9e3b39803fp-56);
	const ir_d k = ir_dround(b, ir_dmul(b, x, per_ln2));
	const ir_d near = ir_dfma(b, k, ln2, x), r = ir_dfma(b, k, ln2_rest, near);
	const ir_d part = ir_dfma(b, ir_dmul(b, r, r), IR_SERIES(b, r, inverse_factorial), r);
	const ir_d power = ir_two_to(b, ir_whole_l(b, k));

	return ir_exact_sum(b, ir_dsub(b, power, ir_dconst(b, 1)), ir_dmul(b, power, part));
}

/* t / (t + 2) with t = e^2|x| - 1, both as sums, and what the quotient leaves; below 3/16 Taylor's series up to x^23,
 * which leaves out 2^-63. Beyond 22 it is 1. */
static inline ir_d ir_fn_tanh_f64(struct ir *b, ir_d x)
{
	static const double series[] = {
		-113927491862.0 / 2900518163668125,
		18888466084.0 / 194896477400625,
		-443861162.0 / 1856156927625,
		6404582.0 / 10854718875,
		-929569.0 / 638512875,
		21844.0 / 6081075,
		-1382.0 / 155925,
		62.0 / 2835,
		-17.0 / 315,
		2.0 / 15,
		-1.0 / 3
	};
	const ir_d size = ir_dmin(b, ir_dabs(b, x), ir_dconst(b, 22));
	const struct ir_pair t = ir_exp_less_one(b, ir_dadd(b, size, size));
	const struct ir_pair below = ir_exact_sum(b, t.high, ir_dconst(b, 2));
	const ir_d quotient = ir_ddiv(b, t.high, below.high), minus = ir_dneg(b, quotient);
	const ir_d below_low = ir_dadd(b, below.low, t.low), low = ir_dfma(b, minus, below_low, t.low);
	const ir_d left = ir_dadd(b, ir_dfma(b, minus, below.high, t.high), low);
	const ir_d far = ir_dadd(b, quotient, ir_ddiv(b, left, below.high));
	const ir_d z = ir_dmul(b, size, size), near = ir_dfma(b, ir_dmul(b, size, z), IR_SERIES(b, z, series), size);
	const ir_m is_near = ir_dlt(b, size, ir_dconst(b, 0.1875));
	const ir_d y = ir_dsel(b, is_near, near, far);

	return ir_or_nan_wide(b, x, ir_signed_wide(b, y, ir_sign_wide(b, x)));
}

/* --- erf */

/* Below 1 by its series (each term -x^2 n-th of 1 / n! (2n + 1)) up to x^41, which leaves out 2^-69. Above it is 1 less
 * e^-x^2 g(x) / (x + 2), g a polynomial of 17 degrees in (x - 2) / (x + 2): fitted at Chebyshev's points of 0.9 to 6.1,
 * where it is 2^-58 off at most. Beyond 6 it is 1. */
#define IR_ERF 0x1.20dd750429b6dp+0 /* 2 / sqrt(pi) */
static inline ir_d ir_fn_erf_f64(struct ir *b, ir_d x)
{
	static const double near[] = {
		IR_ERF / 2432902008176640000 / 41,
		-IR_ERF / 121645100408832000 / 39,
		IR_ERF / 6402373705728000 / 37,
		-IR_ERF / 355687428096000 / 35,
		IR_ERF / 20922789888000 / 33,
		-IR_ERF / 1307674368000 / 31,
		IR_ERF / 87178291200 / 29,
		-IR_ERF / 6227020800 / 27,
		IR_ERF / 479001600 / 25,
		-IR_ERF / 39916800 / 23,
		IR_ERF / 3628800 / 21,
		-IR_ERF / 362880 / 19,
		IR_ERF / 40320 / 17,
		-IR_ERF / 5040 / 15,
		IR_ERF / 720 / 13,
		-IR_ERF / 120 / 11,
		IR_ERF / 24 / 9,
		-IR_ERF / 6 / 7,
		IR_ERF / 2 / 5,
		-IR_ERF / 3
	};
	static const double far[] = {
		-0x1.06cc9f295f67fp-20, 0x1.ff89874be8a94p-20,  0x1.17ff053cba4d5p-18,  -0x1.3ee1800be64f0p-20,
		-0x1.109795dabc623p-16, -0x1.6b9699c05794ep-16, 0x1.1e99e014d3e47p-15,  0x1.2ef8265708099p-13,
		0x1.20515f6e958e3p-15,  -0x1.5ba42e63b2fafp-11, -0x1.b6fbf7b2f02a7p-11, 0x1.9517bb56f0e06p-9,
		0x1.a89eaff6f4effp-8,   -0x1.606e415519e39p-6,  -0x1.2a88e6107ccf9p-5,  0x1.1e2deea6b1156p-2,
		-0x1.5fd386754eff9p-1,  0x1.058671b52c776p+0
	};
	const ir_d size = ir_dabs(b, x), one = ir_dconst(b, 1), two = ir_dconst(b, 2);
	const ir_d z = ir_dmul(b, size, size), of_near = ir_dfma(b, z, IR_SERIES(b, z, near), ir_dconst(b, IR_ERF));
	const ir_d below = ir_dmul(b, size, of_near);
	const ir_d inside = ir_dmin(b, size, ir_dconst(b, 6)), above = ir_dadd(b, inside, two);
	const ir_d t = ir_ddiv(b, ir_dsub(b, inside, two), above), g = ir_ddiv(b, IR_SERIES(b, t, far), above);
	const struct ir_pair square = ir_exact_product(b, inside, inside);
	const ir_d power = ir_exp_of_sum(b, ir_dneg(b, square.high), ir_dneg(b, square.low));
	const ir_d beyond = ir_dsub(b, one, ir_dmul(b, power, g));
	const ir_m is_below = ir_dlt(b, size, one);
	const ir_d y = ir_dsel(b, is_below, below, beyond);

	return ir_or_nan_wide(b, x, ir_signed_wide(b, y, ir_sign_wide(b, x)));
}

/* --- pow */

/* ln x of a positive, finite x as a sum: 2 artanh s, s = (m - 1) / (m + 1), with s, s^2 and the first two terms as
 * sums, too. It is 2^-64 off, relatively. */
static inline struct ir_pair ir_log_pair(struct ir *b, ir_d x)
{
	static const double rest[] = { 1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15,
		                       1.0 / 13, 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5 };
	const struct ir_scaled n = ir_scale(b, x);
	const ir_d one = ir_dconst(b, 1), above = ir_dsub(b, n.m, one);
	const struct ir_pair below = ir_exact_sum(b, n.m, one);
	/* s, by a quotient and what it leaves */
	const ir_d s = ir_ddiv(b, above, below.high), minus = ir_dneg(b, s);
	const ir_d left = ir_dfma(b, minus, below.low, ir_dfma(b, minus, below.high, above));
	const ir_d s_low = ir_ddiv(b, left, below.high);
	/* z = s^2, and 1 + z / 3 + z^2 (1/5 + ...) */
	const struct ir_pair square = ir_exact_product(b, s, s);
	const ir_d z_low = ir_dfma(b, ir_dadd(b, s, s), s_low, square.low);
	const ir_d third = ir_dconst(b, 0x1.5555555555555p-2), third_low = ir_dconst(b, 0x1.5555555555555p-56);
	const struct ir_pair term = ir_exact_product(b, square.high, third);
	const ir_d term_low = ir_dadd(b, term.low, ir_dfma(b, z_low, third, ir_dmul(b, square.high, third_low)));
	const ir_d more = ir_dmul(b, ir_dmul(b, square.high, square.high), IR_SERIES(b, square.high, rest));
	const struct ir_pair two_terms = ir_quick_sum(b, term.high, more);
	const struct ir_pair factor = ir_quick_sum(b, one, two_terms.high);
	const ir_d factor_low = ir_dadd(b, factor.low, ir_dadd(b, two_terms.low, term_low));
	/* times 2 s */
	const ir_d twice = ir_dadd(b, s, s), twice_low = ir_dadd(b, s_low, s_low);
	const struct ir_pair product = ir_exact_product(b, twice, factor.high);
	const ir_d cross = ir_dfma(b, twice_low, factor.high, ir_dmul(b, twice, factor_low));
	const ir_d product_low = ir_dadd(b, product.low, cross);
	/* e ln 2, of which the first product is exact */
	const ir_d ln2 = ir_dmul(b, n.e, ir_dconst(b, 0x1.62e42fefa3800p-1)),
		   ln2_rest = ir_dconst(b, 0x1.ef35793c76730p-45);
	const struct ir_pair ln2_low = ir_exact_product(b, n.e, ln2_rest);
	const struct ir_pair large = ir_exact_sum(b, ln2, product.high),
			     small = ir_exact_sum(b, ln2_low.high, large.low);
	const ir_d small_low = ir_dadd(b, small.low, ir_dadd(b, product_low, ln2_low.low));

	return ir_quick_sum(b, large.high, ir_dadd(b, small.high, small_low));
}

/* What is asked of y: whether it is whole; a mask of its sign where it is odd. */
struct ir_whole {
	ir_m is_whole, is_odd;
};
static inline struct ir_whole ir_whole_of(struct ir *b, ir_d y)
{
	const ir_d half = ir_dmul(b, y, ir_dconst(b, 0.5));
	const ir_m is_whole = ir_deq(b, ir_dtrunc(b, y), y), is_odd = ir_dne(b, ir_dtrunc(b, half), half);

	return (struct ir_whole){ is_whole, ir_mand(b, is_whole, is_odd) };
}

/* x^y of x > 0 that is finite, and of finite y. */
static inline ir_d ir_pow_finite(struct ir *b, ir_d x, ir_d y)
{
	const ir_d max = ir_dconst(b, 0x1p70), min = ir_dconst(b, -0x1p70);
	const struct ir_pair log = ir_log_pair(b, x);
	const ir_d by = ir_dmin(b, ir_dmax(b, y, min), max); /* so large a power is infinite or 0 all the same */
	const struct ir_pair product = ir_exact_product(b, by, log.high);
	const ir_d low = ir_dfma(b, by, log.low, product.low), zero = ir_dconst(b, 0);
	/* beyond what exp takes, its rest must not count */
	const ir_m far = ir_dlt(b, ir_dconst(b, 1000), ir_dabs(b, product.high));
	const struct ir_pair sum = ir_quick_sum(b, product.high, ir_dsel(b, far, zero, low));

	return ir_exp_of_sum(b, sum.high, sum.low);
}

/* x^y of all x and y: power is that of |x|, where |x| is finite and not 0, and y finite. */
static inline ir_d ir_pow_ends(struct ir *b, ir_d x, ir_d y, ir_d power)
{
	const ir_d one = ir_dconst(b, 1), zero = ir_dconst(b, 0), infinity = ir_dconst(b, __builtin_inf());
	const ir_d size = ir_dabs(b, x);
	const struct ir_whole whole = ir_whole_of(b, y);
	/* 0 and infinity, or their powers: infinite where it grows, else 0 */
	const ir_m grows = ir_mnot(b, ir_mxor(b, ir_dlt(b, one, size), ir_dlt(b, zero, y)));
	const ir_m ends = ir_mor(b, ir_deq(b, size, infinity), ir_deq(b, size, zero));
	const ir_m endless = ir_mor(b, ends, ir_deq(b, ir_dabs(b, y), infinity));
	const ir_d any_size = ir_dsel(b, endless, ir_dsel(b, grows, infinity, zero), power);
	/* |x| is 1; then the sign of an odd power */
	const ir_d some = ir_dsel(b, ir_deq(b, size, one), one, any_size);
	const ir_l sign = ir_lsel(b, whole.is_odd, ir_sign_wide(b, x), ir_lconst(b, 0));
	const ir_d with_sign = ir_signed_wide(b, some, sign);
	/* of a negative, finite x there are whole powers alone; an infinite y is whole */
	const ir_m negative = ir_mand(b, ir_dlt(b, x, zero), ir_dlt(b, ir_dconst(b, -__builtin_inf()), x));
	const ir_m none = ir_mand(b, negative, ir_mnot(b, whole.is_whole));
	const ir_d number = ir_dsel(b, none, ir_nan_wide(b), with_sign);
	const ir_m always = ir_mor(b, ir_deq(b, x, one), ir_deq(b, y, zero));

	return ir_dsel(b, always, one, ir_or_nan_wide(b, x, ir_or_nan_wide(b, y, number)));
}

static inline ir_d ir_fn_pow_f64(struct ir *b, ir_d x, ir_d y)
{
	const ir_d power = ir_pow_finite(b, ir_dabs(b, x), y);

	return ir_pow_ends(b, x, y, power);
}

#endif
