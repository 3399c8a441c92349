/* jit/ir/ir_reduce.h - an angle as a multiple of a right angle and the rest of it, for every double.
 *
 * Owns: the reduction of sin and cos. Below 2^30 a right angle, in three parts, is taken away as often as it fits. From
 * there on (Payne and Hanek, Radian reduction for trigonometric functions, 1983) the bits of 2 / pi that count are
 * multiplied with the angle's as integers; lanes that need it make the wave go that way, and others keep what they
 * have.
 */
#ifndef JIT_IR_REDUCE_H
#define JIT_IR_REDUCE_H

#include "jit/ir/ir_functions.h"

/* A sum of two, of which the second one is less than a unit in the last place of the first. */
struct ir_pair {
	ir_d high, low;
};

/* The sum of any two, exactly. */
static inline struct ir_pair ir_exact_sum(struct ir *b, ir_d x, ir_d y)
{
	const ir_d sum = ir_dadd(b, x, y), of_y = ir_dsub(b, sum, x), of_x = ir_dsub(b, sum, of_y);
	const ir_d rest_x = ir_dsub(b, x, of_x), rest_y = ir_dsub(b, y, of_y);

	return (struct ir_pair){ sum, ir_dadd(b, rest_x, rest_y) };
}

/* The same where x is not less than y. */
static inline struct ir_pair ir_quick_sum(struct ir *b, ir_d x, ir_d y)
{
	const ir_d sum = ir_dadd(b, x, y), of_y = ir_dsub(b, sum, x);

	return (struct ir_pair){ sum, ir_dsub(b, y, of_y) };
}

/* The product, exactly. */
static inline struct ir_pair ir_exact_product(struct ir *b, ir_d x, ir_d y)
{
	const ir_d product = ir_dmul(b, x, y), minus = ir_dneg(b, product);

	return (struct ir_pair){ product, ir_dfma(b, x, y, minus) };
}

/* rest: from -pi / 4 to pi / 4; the angle less so many right angles, of which the lower two bits count. */
struct ir_angle {
	ir_l right_angles;
	struct ir_pair rest;
};

/* Words of 2 / pi; the first one stands in front of its binary point. */
enum { IR_PI_WORDS = 38, IR_PI_LIMBS = 6 /* of what is taken of them */ };
static const uint32_t ir_two_per_pi[IR_PI_WORDS] = {
	0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
	0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5,
	0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff,
	0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7,
	0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046
};

/* 192 bits of the table from bit `from` on, limb[0] the last ones. Half of what may be meant is left out at each step.
 */
static inline void ir_pi_bits(struct ir *b, ir_i from, ir_l limb[IR_PI_LIMBS])
{
	const ir_i word = ir_ishr(b, from, 5), shift = ir_iand(b, from, ir_iconst(b, 31));
	const ir_i back = ir_isub(b, ir_iconst(b, 32), shift);
	ir_i w[IR_PI_WORDS];

	for (unsigned k = 0; k < IR_PI_WORDS; k++)
		w[k] = ir_iconst(b, (int32_t)ir_two_per_pi[k]);
	for (unsigned bit = 16; bit; bit /= 2) {
		const ir_i some = ir_iand(b, word, ir_iconst(b, (int32_t)bit));
		const ir_m set = ir_igt(b, some, ir_iconst(b, 0));
		for (unsigned k = 0; k < IR_PI_LIMBS + bit; k++)
			w[k] = k + bit < IR_PI_WORDS ? ir_isel(b, set, w[k + bit], w[k]) : w[k];
	}
	for (unsigned k = 0; k < IR_PI_LIMBS; k++) {
		const ir_i upper = ir_ishlv(b, w[k], shift), lower = ir_ishrv(b, w[k + 1], back);
		limb[IR_PI_LIMBS - 1 - k] = ir_u2l(b, ir_ior(b, upper, lower));
	}
}

/* limb = limb * by, of 32 bits, + add, from limb `first` of the sum on; the last 32 bits of each. */
static inline void ir_pi_multiply(struct ir *b, ir_l sum[IR_PI_LIMBS], const ir_l limb[IR_PI_LIMBS], ir_l by,
                                  unsigned first)
{
	const ir_l low = ir_lconst(b, UINT32_MAX);
	ir_l carry = ir_lconst(b, 0);

	for (unsigned k = first; k < IR_PI_LIMBS; k++) {
		ir_l t = ir_ladd(b, ir_lmul(b, limb[k - first], by), carry);
		if (first)
			t = ir_ladd(b, t, sum[k]);
		sum[k] = ir_land(b, t, low);
		carry = ir_lshr(b, t, 32);
	}
}

static inline ir_l ir_pi_join(struct ir *b, ir_l upper, ir_l lower) { return ir_lor(b, ir_lshl(b, upper, 32), lower); }

/* size: 2^30 or more, and finite. It is m 2^e, with m of 53 bits; the first bit of 2 / pi that does not only add whole
 * circles has number e - 1 behind the binary point, which makes it bit e + 30 of the table. What m times 192 bits has
 * in its lower 192 is the quadrant in two bits, and then the rest. */
static inline struct ir_angle ir_reduce_large(struct ir *b, ir_d size)
{
	const ir_l bits = ir_lbits(b, size), exponent = ir_lshr(b, bits, 52);
	const ir_l fraction = ir_land(b, bits, ir_lconst(b, (INT64_C(1) << 52) - 1));
	const ir_l m = ir_lor(b, fraction, ir_lconst(b, INT64_C(1) << 52));
	const ir_l m_low = ir_land(b, m, ir_lconst(b, UINT32_MAX)), m_high = ir_lshr(b, m, 32);
	const ir_i from = ir_iadd(b, ir_l2i(b, exponent), ir_iconst(b, 30 - 1075));
	ir_l limb[IR_PI_LIMBS], sum[IR_PI_LIMBS];

	ir_pi_bits(b, ir_imin(b, ir_imax(b, from, ir_iconst(b, 0)), ir_iconst(b, 1023)), limb);
	ir_pi_multiply(b, sum, limb, m_low, 0);
	ir_pi_multiply(b, sum, limb, m_high, 1);
	const ir_l top = ir_pi_join(b, sum[5], sum[4]), middle = ir_pi_join(b, sum[3], sum[2]);
	const ir_l near = ir_lor(b, ir_lshl(b, top, 2), ir_lshr(b, middle, 62)), far = ir_lshl(b, middle, 2);
	/* the rest as a number with a sign, to the nearest right angle */
	const ir_l quadrant = ir_ladd(b, ir_lshr(b, top, 62), ir_lshr(b, near, 63));
	const ir_d first = ir_l2d(b, near);
	const ir_d second = ir_l2d(b, ir_lsub(b, near, ir_d2l_cut(b, first)));
	const ir_d third = ir_dmul(b, ir_ul2d(b, far), ir_dconst(b, 0x1p-64));
	const struct ir_pair rest = ir_exact_sum(b, first, ir_dadd(b, second, third));
	const ir_d high = ir_dmul(b, rest.high, ir_dconst(b, 0x1p-64)),
		   low = ir_dmul(b, rest.low, ir_dconst(b, 0x1p-64));
	const ir_d pi = ir_dconst(b, 0x1.921fb54442d18p+0), pi_rest = ir_dconst(b, 0x1.1a62633145c07p-54);
	const struct ir_pair product = ir_exact_product(b, high, pi);
	const ir_d more = ir_dfma(b, high, pi_rest, ir_dmul(b, low, pi));

	return (struct ir_angle){ quadrant, ir_quick_sum(b, product.high, ir_dadd(b, product.low, more)) };
}

/* Of |x| below 2^30. The first product takes nothing away but what a double holds; the second is known exactly. The
 * quadrant is in the lowest bits of what is returned for it. */
static inline struct ir_angle ir_reduce_small(struct ir *b, ir_d size)
{
	const ir_d per = ir_dconst(b, 0x1.45f306dc9c883p-1), one = ir_dconst(b, -0x1.921fb54442d18p+0),
		   two = ir_dconst(b, -0x1.1a62633145c07p-54), three = ir_dconst(b, 0x1.f1976b7ed8fbcp-110);
	const ir_d k = ir_dround(b, ir_dmul(b, size, per)), near = ir_dfma(b, k, one, size);
	const struct ir_pair product = ir_exact_product(b, k, two), rest = ir_exact_sum(b, near, product.high);
	const ir_d low = ir_dadd(b, rest.low, ir_dfma(b, k, three, product.low));

	const ir_l right_angles = ir_lbits(b, ir_dadd(b, k, ir_dconst(b, IR_WHOLE_F64)));

	return (struct ir_angle){ right_angles, ir_quick_sum(b, rest.high, low) };
}

/* size: not negative. What is infinite, or no number, has a rest that means nothing. */
static inline struct ir_angle ir_reduce(struct ir *b, ir_d size)
{
	const struct ir_angle small = ir_reduce_small(b, size);
	const ir_l quadrant = ir_var_l(b, small.right_angles);
	const ir_d high = ir_var_d(b, small.rest.high), low = ir_var_d(b, small.rest.low);
	const ir_m is_large = ir_dle(b, ir_dconst(b, 0x1p30), size);

	ir_if(b, ir_any(b, is_large));
	const struct ir_angle large = ir_reduce_large(b, size);
	ir_set_l(b, quadrant, ir_lsel(b, is_large, large.right_angles, quadrant));
	ir_set_d(b, high, ir_dsel(b, is_large, large.rest.high, high));
	ir_set_d(b, low, ir_dsel(b, is_large, large.rest.low, low));
	ir_endif(b);
	return (struct ir_angle){ quadrant, { high, low } };
}

#endif
