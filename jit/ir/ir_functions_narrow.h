/* jit/ir/ir_functions_narrow.h - functions of floats by the names that those of doubles have: ir_fn_sin_f32 and so
 * on, the same bits on every target.
 *
 * They are computed as doubles and rounded once, which makes them those of exact functions but for arguments whose
 * result is next to the middle between two floats (t_functions looks at all arguments). Ends are as in
 * ir_functions_wide.h.
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

/* A NaN that it gives is that one, whichever it was given. */
static inline ir_f ir_fn_pow_f32(struct ir *b, ir_f x, ir_f y)
{
	const ir_d wide_x = ir_f2d(b, x), wide_y = ir_f2d(b, y), zero = ir_dconst(b, 0);
	const ir_d log = ir_log_finite(b, ir_dabs(b, wide_x)), power = ir_exp_of_sum(b, ir_dmul(b, wide_y, log), zero);

	return ir_narrowed(b, ir_pow_ends(b, wide_x, wide_y, power));
}

#endif
