/* jit/ir/ir_functions_narrow.h - functions of floats by the names that those of doubles have: ir_fn_sin_f32 and so
 * on, the same bits on every target.
 *
 * exp and log are computed as floats, and are less than 1 unit in the last place off. The others are computed as
 * doubles and rounded once, which makes them those of exact functions but for arguments whose result is next to the
 * middle between two floats (t_functions looks at all arguments). Ends are as in ir_functions_wide.h.
 */
#ifndef JIT_IR_FUNCTIONS_NARROW_H
#define JIT_IR_FUNCTIONS_NARROW_H

#include "jit/ir/ir_functions_wide.h"

static inline ir_f ir_fn_exp_f32(struct ir *b, ir_f x) { return ir_fexp(b, x); }
static inline ir_f ir_fn_log_f32(struct ir *b, ir_f x) { return ir_flog(b, x); }
static inline ir_f ir_fn_tanh_f32(struct ir *b, ir_f x) { return ir_ftanh(b, x); }

/* As a float. What bits a conversion leaves of a NaN is a target's affair: it becomes one and the same. */
static inline ir_f ir_narrowed(struct ir *b, ir_d wide)
{
	const ir_f y = ir_d2f(b, wide), nan = ir_fbits(b, ir_iconst(b, 0x7fc00000));
	const ir_m number = ir_feq(b, y, y);

	return ir_fsel(b, number, y, nan);
}

static inline ir_f ir_fn_sin_f32(struct ir *b, ir_f x)
{
	return ir_or_nan(b, x, ir_narrowed(b, ir_fn_sin_f64(b, ir_f2d(b, x))));
}

static inline ir_f ir_fn_cos_f32(struct ir *b, ir_f x)
{
	return ir_or_nan(b, x, ir_narrowed(b, ir_fn_cos_f64(b, ir_f2d(b, x))));
}

static inline ir_f ir_fn_erf_f32(struct ir *b, ir_f x)
{
	return ir_or_nan(b, x, ir_narrowed(b, ir_fn_erf_f64(b, ir_f2d(b, x))));
}

/* --- pow */

/* x^y of |x| = size, which is finite and not 0, in lanes of 64 bits. ln size as ir_log_finite() has it, with s up to
 * s^13, which leaves out 2^-36 of it; e^p with r up to r^8, which leaves out 2^-31. Every float is a normal double, so
 * that exponents are added as they are. What is added to 1.5 2^52 becomes whole, and stands in the lowest bits. */
static inline ir_d ir_pow_short(struct ir *b, ir_d size, ir_d y)
{
	static const double odd[] = { 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2 };
	static const double inverse_factorial[] = { 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
		                                    1.0 / 6,     0.5,        1,         1 };
	const ir_d one = ir_dconst(b, 1), ln2 = ir_dconst(b, 0x1.62e42fefa39efp-1),
		   per_ln2 = ir_dconst(b, 0x1.71547652b82fep0), minus_ln2 = ir_dconst(b, -0x1.62e42fefa39efp-1),
		   min = ir_dconst(b, -120), max = ir_dconst(b, 100), whole = ir_dconst(b, IR_WHOLE_F64);
	const ir_l bits = ir_lbits(b, size), from = ir_lconst(b, 0x3fe6a09e667f3bcd);
	const ir_l e = ir_lsar(b, ir_lsub(b, bits, from), 52);
	const ir_d m = ir_dbits(b, ir_lsub(b, bits, ir_lshl(b, e, 52)));
	const ir_d s = ir_ddiv(b, ir_dsub(b, m, one), ir_dadd(b, m, one));
	const ir_d sum = IR_SERIES(b, ir_dmul(b, s, s), odd), of_m = ir_dmul(b, s, sum);
	const ir_d log = ir_dfma(b, ir_l2d(b, e), ln2, of_m), product = ir_dmul(b, y, log);
	const ir_d p = ir_dmin(b, ir_dmax(b, product, min), max), t = ir_dfma(b, p, per_ln2, whole);
	const ir_d r = ir_dfma(b, ir_dsub(b, t, whole), minus_ln2, p), power = IR_SERIES(b, r, inverse_factorial);

	return ir_dbits(b, ir_ladd(b, ir_lbits(b, power), ir_lshl(b, ir_lbits(b, t), 52)));
}

/* x^y of all x and y; power: as ir_pow_ends() has it. */
static inline ir_f ir_pow_ends_f32(struct ir *b, ir_f x, ir_f y, ir_f power)
{
	const ir_f one = ir_fconst(b, 1), zero = ir_fconst(b, 0), infinity = ir_fconst(b, __builtin_inff()),
		   lowest = ir_fconst(b, -__builtin_inff()), nan = ir_fbits(b, ir_iconst(b, 0x7fc00000));
	const ir_f size = ir_fabs(b, x), half = ir_fmul(b, y, ir_fconst(b, 0.5f));
	const ir_m is_whole = ir_feq(b, ir_ftrunc(b, y), y), is_odd = ir_fne(b, ir_ftrunc(b, half), half);
	/* 0 and infinity, or their powers: infinite where it grows, else 0 */
	const ir_m grows = ir_mnot(b, ir_mxor(b, ir_flt(b, one, size), ir_flt(b, zero, y)));
	const ir_m ends = ir_mor(b, ir_feq(b, size, infinity), ir_feq(b, size, zero));
	const ir_m endless = ir_mor(b, ends, ir_feq(b, ir_fabs(b, y), infinity));
	const ir_f any_size = ir_fsel(b, endless, ir_fsel(b, grows, infinity, zero), power);
	/* |x| is 1; then the sign of an odd power */
	const ir_f some = ir_fsel(b, ir_feq(b, size, one), one, any_size);
	const ir_i sign = ir_iand(b, ir_ibits(b, x), ir_iconst(b, INT32_MIN));
	const ir_i minus = ir_isel(b, ir_mand(b, is_whole, is_odd), sign, ir_iconst(b, 0));
	const ir_f with_sign = ir_fbits(b, ir_ior(b, ir_ibits(b, some), minus));
	/* of a negative, finite x there are whole powers alone; an infinite y is whole */
	const ir_m negative = ir_mand(b, ir_flt(b, x, zero), ir_flt(b, lowest, x));
	const ir_m none =
		ir_mor(b, ir_mand(b, negative, ir_mnot(b, is_whole)), ir_mor(b, ir_fne(b, x, x), ir_fne(b, y, y)));
	const ir_f number = ir_fsel(b, none, nan, with_sign);
	const ir_m always = ir_mor(b, ir_feq(b, x, one), ir_feq(b, y, zero));

	return ir_fsel(b, always, one, number);
}

/* A NaN that it gives is that one, whichever it was given. */
static inline ir_f ir_fn_pow_f32(struct ir *b, ir_f x, ir_f y)
{
	const ir_d size = ir_f2d(b, ir_fabs(b, x)), power = ir_pow_short(b, size, ir_f2d(b, y));

	return ir_pow_ends_f32(b, x, y, ir_d2f(b, power));
}

#endif
