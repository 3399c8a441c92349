/* jit/ir/ir_functions_integer.h - quotients, remainders, high products and counts of lanes of 64 bits as sequences of
 * instructions.
 *
 * They mean what the rows for 32 bits mean (ops.def): every divisor gives a quotient, and a is quotient times b plus
 * remainder, wrapping.
 */
#ifndef JIT_IR_FUNCTIONS_INTEGER_H
#define JIT_IR_FUNCTIONS_INTEGER_H

#include "jit/ir/ir_build_numbers.h"

/* x / y as doubles say, a little less, so that it is never more than the quotient. */
static inline ir_l ir_quotient_below(struct ir *b, ir_l x, ir_d y)
{
	const ir_d quotient = ir_ddiv(b, ir_ul2d(b, x), y);

	return ir_d2ul_cut(b, ir_dmul(b, quotient, ir_dconst(b, 1 - 0x1p-50)));
}

struct ir_divided {
	ir_l quotient, left;
};
/* A step of the division: where the remainder is not less than y, the quotient grows by 1 and the remainder loses y. */
static inline struct ir_divided ir_divided_again(struct ir *b, struct ir_divided d, ir_l y)
{
	const ir_m more = ir_lule(b, y, d.left);
	const ir_l one = ir_lconst(b, 1), zero = ir_lconst(b, 0);
	const ir_l by = ir_lsel(b, more, one, zero), less = ir_lsel(b, more, y, zero);

	return (struct ir_divided){ ir_ladd(b, d.quotient, by), ir_lsub(b, d.left, less) };
}

/* The first quotient is at most 2^15 too small. The second is then of a number below 2^16 and at most 1 too small, for
 * its error is below 2^-33; none is too large. By 0: all bits. */
static inline ir_l ir_fn_div_u64(struct ir *b, ir_l x, ir_l y)
{
	const ir_d by = ir_ul2d(b, y);
	const ir_l first = ir_quotient_below(b, x, by), left = ir_lsub(b, x, ir_lmul(b, first, y));
	const ir_l second = ir_quotient_below(b, left, by), rest = ir_lsub(b, left, ir_lmul(b, second, y));
	struct ir_divided d = { ir_ladd(b, first, second), rest };
	const ir_l zero = ir_lconst(b, 0), ones = ir_lconst(b, -1);

	d = ir_divided_again(b, d, y);
	return ir_lsel(b, ir_leq(b, y, zero), ones, d.quotient);
}

static inline ir_l ir_fn_rem_u64(struct ir *b, ir_l x, ir_l y)
{
	const ir_l quotient = ir_fn_div_u64(b, x, y);

	return ir_lsub(b, x, ir_lmul(b, quotient, y));
}

/* Cut towards zero; by 0 it is -1, and the least number by -1 is itself. */
static inline ir_l ir_fn_div_i64(struct ir *b, ir_l x, ir_l y)
{
	const ir_l sign_x = ir_lsar(b, x, 63), sign_y = ir_lsar(b, y, 63), sign = ir_lxor(b, sign_x, sign_y);
	const ir_l size_x = ir_lsub(b, ir_lxor(b, x, sign_x), sign_x),
		   size_y = ir_lsub(b, ir_lxor(b, y, sign_y), sign_y);
	const ir_l size = ir_fn_div_u64(b, size_x, size_y), quotient = ir_lsub(b, ir_lxor(b, size, sign), sign);
	const ir_l zero = ir_lconst(b, 0), minus_one = ir_lconst(b, -1);

	return ir_lsel(b, ir_leq(b, y, zero), minus_one, quotient);
}

static inline ir_l ir_fn_rem_i64(struct ir *b, ir_l x, ir_l y)
{
	const ir_l quotient = ir_fn_div_i64(b, x, y);

	return ir_lsub(b, x, ir_lmul(b, quotient, y));
}

/* The upper 64 bits of the product, by products of the halves. */
static inline ir_l ir_fn_mul_high_u64(struct ir *b, ir_l x, ir_l y)
{
	const ir_l low = ir_lconst(b, UINT32_MAX), x_low = ir_land(b, x, low), y_low = ir_land(b, y, low);
	const ir_l x_high = ir_lshr(b, x, 32), y_high = ir_lshr(b, y, 32);
	const ir_l lows = ir_lmul(b, x_low, y_low), one = ir_lmul(b, x_high, y_low), other = ir_lmul(b, x_low, y_high);
	const ir_l middle = ir_ladd(b, one, ir_lshr(b, lows, 32));
	const ir_l carries = ir_ladd(b, other, ir_land(b, middle, low));
	const ir_l upper = ir_ladd(b, ir_lmul(b, x_high, y_high), ir_lshr(b, middle, 32));

	return ir_ladd(b, upper, ir_lshr(b, carries, 32));
}

/* A negative factor, taken as one without sign, adds the other one to it. */
static inline ir_l ir_fn_mul_high_i64(struct ir *b, ir_l x, ir_l y)
{
	const ir_l of_y = ir_land(b, ir_lsar(b, x, 63), y), of_x = ir_land(b, ir_lsar(b, y, 63), x);

	return ir_lsub(b, ir_lsub(b, ir_fn_mul_high_u64(b, x, y), of_y), of_x);
}

static inline ir_i ir_upper_word(struct ir *b, ir_l x) { return ir_l2i(b, ir_lshr(b, x, 32)); }

/* How many bits are set. */
static inline ir_l ir_fn_ones_i64(struct ir *b, ir_l x)
{
	const ir_i low = ir_iones(b, ir_l2i(b, x)), high = ir_iones(b, ir_upper_word(b, x));

	return ir_u2l(b, ir_iadd(b, low, high));
}

/* 64 of 0. */
static inline ir_l ir_fn_leading_zeros_i64(struct ir *b, ir_l x)
{
	const ir_i upper = ir_upper_word(b, x), zero = ir_iconst(b, 0), low = ir_iclz(b, ir_l2i(b, x));
	const ir_i below = ir_iadd(b, low, ir_iconst(b, 32)), above = ir_iclz(b, upper);

	return ir_u2l(b, ir_isel(b, ir_ieq(b, upper, zero), below, above));
}

#endif
