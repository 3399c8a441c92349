/* kernels-templates/emit/math.h - the small arithmetic that several templates share, as IR.
 *
 * Owns: exp (numerics.h rule 10), the activation functions (rule 5), the cross-lane sum and maximum over 32 partials
 * (rule 6), the scale of a norm (rule 7). Holds no state and touches no memory. Every float operation here is one of
 * the contract's, in the contract's order.
 */
#ifndef KERNELS_MATH_H
#define KERNELS_MATH_H

#include "jit/ir/ir_build.h"
#include "jit/key.h"
#include "kernels-templates/numerics.h"

/* Vectors that hold the 32 partials: 32 / W of them, partial i in lane i % W of vector i / W. */
enum { MATH_MAX_PARTS = 4 };
static inline unsigned math_parts(const struct ir *b) { return 32 / b->lanes; }

/* Any x but NaN, infinities included. */
ir_f math_exp(struct ir *b, ir_f x);
/* The activation function of x; act is not ACT_NONE. */
ir_f math_act(struct ir *b, enum key_act act, ir_f x);
/* act(first) * second, as rule 5 has it. */
ir_f math_gate(struct ir *b, enum key_act act, ir_f first, ir_f second);
/* xIELU by a layer's numbers, as rule 5 has it. */
struct math_xielu {
	ir_f above, below, both, end;
};
ir_f math_xielu(struct ir *b, ir_f x, const struct math_xielu *by);
/* log(1 + exp(x)), as rule 17 has it. */
ir_f math_softplus(struct ir *b, ir_f x);
/* c * tanh(x / c), as rule 11 has it. */
ir_f math_cap(struct ir *b, ir_f x, ir_f c);

/* The result in every lane. The partials are read only. */
ir_f math_lane_sum(struct ir *b, const ir_f part[]);
/* The same over maxima: the order of +0 and -0 is left open, which exp(s - max) cannot tell. */
ir_f math_lane_max(struct ir *b, const ir_f part[]);

/* 1 / sqrt(ss / n + eps) in every lane (rule 7). */
ir_f math_rms_scale(struct ir *b, ir_f ss, uint32_t n, ir_f eps);

#endif
