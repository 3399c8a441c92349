/* jit/ir/ir_functions.h - exp, log and tanh of floats as sequences of instructions, the same bits on every target.
 *
 * Owns: the series and the reductions of arguments. They are computed in lanes of 64 bits and rounded once, so that
 * results are those of exact functions but for arguments whose result is within 2^-20 units of the middle between two
 * floats (t_functions looks at all arguments). A NaN gives itself.
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
	const ir_l exponent = ir_ladd(b, ir_d2l_cut(b, k), ir_lconst(b, 1023));

	return ir_dmul(b, sum, ir_dbits(b, ir_lshl(b, exponent, 52)));
}

/* x where it is a NaN, else y. */
static inline ir_f ir_or_nan(struct ir *b, ir_f x, ir_f y)
{
	const ir_m nan = ir_fne(b, x, x);

	return ir_fsel(b, nan, x, y);
}

/* Beyond -120 and 100 the result is 0 or infinity all the same. */
static inline ir_f ir_fexp(struct ir *b, ir_f x)
{
	const ir_d least = ir_dconst(b, -120), most = ir_dconst(b, 100);
	const ir_d d = ir_dmin(b, ir_dmax(b, ir_f2d(b, x), least), most);

	return ir_or_nan(b, x, ir_d2f(b, ir_exp_wide(b, d)));
}

/* x = 2^e m, m between the roots of 1/2 and of 2. ln m = 2 artanh s, s = (m - 1) / (m + 1), by its series up to s^21,
 * which leaves out 2^-60 of it. Of 0 it is minus infinity, of what is less a NaN. */
static inline ir_f ir_flog(struct ir *b, ir_f x)
{
	static const double odd[] = { 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
		                      2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3,  2 };
	const ir_d one = ir_dconst(b, 1), ln2 = ir_dconst(b, 0x1.62e42fefa39efp-1);
	const ir_l root_half = ir_lconst(b, 0x3fe6a09e667f3bcd), bits = ir_lbits(b, ir_f2d(b, x));
	const ir_l e = ir_lsar(b, ir_lsub(b, bits, root_half), 52), whole = ir_lshl(b, e, 52);
	const ir_d m = ir_dbits(b, ir_lsub(b, bits, whole));
	const ir_d above = ir_dadd(b, m, one), below = ir_dsub(b, m, one), s = ir_ddiv(b, below, above);
	const ir_d sum = ir_series(b, ir_dmul(b, s, s), odd, sizeof odd / sizeof *odd);
	const ir_d exact = ir_dfma(b, ir_l2d(b, e), ln2, ir_dmul(b, s, sum));
	const ir_f zero = ir_fconst(b, 0), infinity = ir_fconst(b, __builtin_inff()),
		   lowest = ir_fconst(b, -__builtin_inff()), nan = ir_fbits(b, ir_iconst(b, 0x7fc00000));
	const ir_m is_zero = ir_feq(b, x, zero), is_less = ir_flt(b, x, zero), is_infinity = ir_feq(b, x, infinity);
	const ir_f finite = ir_fsel(b, is_infinity, x, ir_d2f(b, exact));

	return ir_or_nan(b, x, ir_fsel(b, is_less, nan, ir_fsel(b, is_zero, lowest, finite)));
}

/* 1 - 2 / (e^2|x| + 1) with x's sign; near 0, where that would cancel, x - x^3 / 3. Beyond 20 the result is 1. */
static inline ir_f ir_ftanh(struct ir *b, ir_f x)
{
	const ir_d one = ir_dconst(b, 1), two = ir_dconst(b, 2), most = ir_dconst(b, 40), limit = ir_dconst(b, 0x1p-12),
		   third = ir_dconst(b, -1.0 / 3);
	const ir_d size = ir_dabs(b, ir_f2d(b, x)), twice = ir_dmin(b, ir_dadd(b, size, size), most);
	const ir_d above = ir_dadd(b, ir_exp_wide(b, twice), one), far = ir_dsub(b, one, ir_ddiv(b, two, above));
	const ir_d cube = ir_dmul(b, ir_dmul(b, size, size), size), near = ir_dfma(b, cube, third, size);
	const ir_m is_near = ir_dlt(b, size, limit);
	const ir_i sign = ir_iand(b, ir_ibits(b, x), ir_iconst(b, (int32_t)0x80000000u)),
		   result = ir_ibits(b, ir_d2f(b, ir_dsel(b, is_near, near, far)));

	return ir_or_nan(b, x, ir_fbits(b, ir_ior(b, result, sign)));
}

#endif
