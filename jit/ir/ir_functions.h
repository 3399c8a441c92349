/* jit/ir/ir_functions.h - exp, log and tanh of floats as sequences of instructions, the same bits on every target.
 *
 * Owns: the series and the reductions of arguments. Of exp and log, in floats alone, results are less than 1 unit in
 * the last place from exact ones (t_functions looks at all arguments). tanh is computed in lanes of 64 bits and rounded
 * once, so that it is the exact function but where that is within 2^-20 units of the middle between two floats. A NaN
 * gives itself.
 */
#ifndef JIT_IR_FUNCTIONS_H
#define JIT_IR_FUNCTIONS_H

#include "jit/ir/ir_build_numbers.h"

/* Horner's rule: coefficient[0] * x^(n-1) + ... + coefficient[n-1]. */
static inline ir_d ir_series(struct ir *b, ir_d x, const double *coefficient, unsigned n)
{
	ir_d sum = ir_dconst(b, coefficient[0]);

	for (unsigned k = 1; k < n; k++) {
		const ir_d next = ir_dconst(b, coefficient[k]);
		sum = ir_dfma(b, sum, x, next);
	}
	return sum;
}

/* 1.5 2^52 plus a whole number below 2^51 has that number in its lowest bits. So a double that is no NaN becomes an
 * integer by two instructions; a conversion that handles NaNs and large numbers takes several times as many. */
#define IR_WHOLE_F64 0x1.8p52
static inline ir_l ir_whole_l(struct ir *b, ir_d whole)
{
	const ir_d magic = ir_dconst(b, IR_WHOLE_F64);

	return ir_lsub(b, ir_lbits(b, ir_dadd(b, whole, magic)), ir_lconst(b, (int64_t)INT64_C(0x4338000000000000)));
}

/* e^d of -700 <= d <= 700, which is no NaN: 2^k e^r, where k is the whole number nearest to d / ln 2. Taylor's series
 * of e^r up to r^13, which leaves out 2^-57. */
static inline ir_d ir_exp_wide(struct ir *b, ir_d d)
{
	static const double inverse_factorial[] = {
		1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
		1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1,           1
	};
	const ir_d per_ln2 = ir_dconst(b, 0x1.71547652b82fep0), ln2 = ir_dconst(b, -0x1.62e42fefa39efp-1),
		   ln2_rest = ir_dconst(b, -0x1.abc9e3b39803fp-56);
	const ir_d k = ir_dround(b, ir_dmul(b, d, per_ln2));
	const ir_d near = ir_dfma(b, k, ln2, d), r = ir_dfma(b, k, ln2_rest, near);
	const ir_d sum = ir_series(b, r, inverse_factorial, sizeof inverse_factorial / sizeof *inverse_factorial);
	const ir_l exponent = ir_lbits(b, ir_dadd(b, k, ir_dconst(b, IR_WHOLE_F64 + 1023)));

	return ir_dmul(b, sum, ir_dbits(b, ir_lshl(b, exponent, 52)));
}

/* x where it is a NaN, else y. */
static inline ir_f ir_or_nan(struct ir *b, ir_f x, ir_f y)
{
	const ir_m nan = ir_fne(b, x, x);

	return ir_fsel(b, nan, x, y);
}

/* Horner's rule of floats. */
static inline ir_f ir_series_f32(struct ir *b, ir_f x, const float *coefficient, unsigned n)
{
	ir_f sum = ir_fconst(b, coefficient[0]);

	for (unsigned k = 1; k < n; k++) {
		const ir_f next = ir_fconst(b, coefficient[k]);
		sum = ir_ffma(b, sum, x, next);
	}
	return sum;
}

/* ln 2 as the sum of two floats; whole numbers below 2^8 times the first one are exact. */
#define IR_LN2_F32 0x1.62e400p-1f
#define IR_LN2_REST_F32 0x1.7f7d1cp-20f

/* 2^k e^r, k the whole number nearest to x / ln 2. e^r is 1 + r + r^2 q, q a polynomial of 4 degrees that is fitted for
 * the least relative error (2^-28). 2^k goes in two steps, so that results below the normal numbers are rounded once:
 * half of k is added to an exponent, which is exact. Beyond -150 and 100 the result is 0 or infinity all the same. */
static inline ir_f ir_fexp(struct ir *b, ir_f x)
{
	static const float series[] = {
		0x1.6a2434p-10f, 0x1.1239e2p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1, 1
	};
	const ir_f min = ir_fconst(b, -150), max = ir_fconst(b, 100), per_ln2 = ir_fconst(b, 0x1.715476p+0f),
		   ln2 = ir_fconst(b, -IR_LN2_F32), ln2_rest = ir_fconst(b, -IR_LN2_REST_F32);
	const ir_f inside = ir_fmin(b, ir_fmax(b, x, min), max);
	const ir_f k = ir_fround(b, ir_fmul(b, inside, per_ln2));
	const ir_f near = ir_ffma(b, k, ln2, inside), r = ir_ffma(b, k, ln2_rest, near);
	const ir_f sum = ir_series_f32(b, r, series, sizeof series / sizeof *series);
	const ir_i whole = ir_f2i(b, k), half = ir_isar(b, whole, 1), other = ir_isub(b, whole, half);
	const ir_f scaled = ir_fbits(b, ir_iadd(b, ir_ibits(b, sum), ir_ishl(b, half, 23)));
	const ir_i power = ir_ishl(b, ir_iadd(b, other, ir_iconst(b, 127)), 23);

	return ir_or_nan(b, x, ir_fmul(b, scaled, ir_fbits(b, power)));
}

/* x = 2^e m, m between the roots of 1/2 and of 2, and f = m - 1. ln m = f - f^2 / 2 + f^3 q, q a polynomial of 7
 * degrees that is fitted for the least relative error (2^-27). Of 0 it is minus infinity, of what is less a NaN. */
static inline ir_f ir_flog(struct ir *b, ir_f x)
{
	static const float series[] = { -0x1.38b580p-4f, 0x1.055b6ap-3f, -0x1.0d8542p-3f, 0x1.22da1cp-3f,
		                        -0x1.547244p-3f, 0x1.99a008p-3f, -0x1.000226p-2f, 0x1.555554p-2f };
	const ir_f one = ir_fconst(b, 1), zero = ir_fconst(b, 0), infinity = ir_fconst(b, __builtin_inff()),
		   lowest = ir_fconst(b, -__builtin_inff()), nan = ir_fbits(b, ir_iconst(b, 0x7fc00000)),
		   ln2 = ir_fconst(b, IR_LN2_F32), ln2_rest = ir_fconst(b, IR_LN2_REST_F32);
	const ir_m is_small = ir_flt(b, x, ir_fconst(b, 0x1p-126f)), is_zero = ir_feq(b, x, zero),
		   is_less = ir_flt(b, x, zero), is_infinity = ir_feq(b, x, infinity);
	const ir_f large = ir_fmul(b, x, ir_fconst(b, 0x1p23f));
	const ir_i bits = ir_ibits(b, ir_fsel(b, is_small, large, x)), from = ir_iconst(b, 0x3f3504f3);
	const ir_i exponent = ir_isar(b, ir_isub(b, bits, from), 23), whole = ir_ishl(b, exponent, 23);
	const ir_f e = ir_i2f(b, ir_isub(b, exponent, ir_isel(b, is_small, ir_iconst(b, 23), ir_iconst(b, 0))));
	const ir_f f = ir_fsub(b, ir_fbits(b, ir_isub(b, bits, whole)), one);
	const ir_f q = ir_series_f32(b, f, series, sizeof series / sizeof *series), square = ir_fmul(b, f, f);
	const ir_f half = ir_fmul(b, square, ir_fconst(b, -0.5f));
	const ir_f low = ir_ffma(b, ir_fmul(b, square, f), q, ir_ffma(b, e, ln2_rest, half));
	const ir_f number = ir_ffma(b, e, ln2, ir_fadd(b, f, low));
	const ir_f finite = ir_fsel(b, is_infinity, x, number);

	return ir_or_nan(b, x, ir_fsel(b, is_less, nan, ir_fsel(b, is_zero, lowest, finite)));
}

/* 1 - 2 / (e^2|x| + 1) with x's sign; near 0, where that would cancel, x - x^3 / 3. Beyond 20 the result is 1. */
static inline ir_f ir_ftanh(struct ir *b, ir_f x)
{
	const ir_d one = ir_dconst(b, 1), two = ir_dconst(b, 2), max = ir_dconst(b, 40), limit = ir_dconst(b, 0x1p-12),
		   third = ir_dconst(b, -1.0 / 3);
	const ir_d size = ir_dabs(b, ir_f2d(b, x)), twice = ir_dmin(b, ir_dadd(b, size, size), max);
	const ir_d above = ir_dadd(b, ir_exp_wide(b, twice), one), far = ir_dsub(b, one, ir_ddiv(b, two, above));
	const ir_d cube = ir_dmul(b, ir_dmul(b, size, size), size), near = ir_dfma(b, cube, third, size);
	const ir_m is_near = ir_dlt(b, size, limit);
	const ir_i sign = ir_iand(b, ir_ibits(b, x), ir_iconst(b, (int32_t)0x80000000u)),
		   result = ir_ibits(b, ir_d2f(b, ir_dsel(b, is_near, near, far)));

	return ir_or_nan(b, x, ir_fbits(b, ir_ior(b, result, sign)));
}

#endif
