/* kernels-templates/emit/math.c - exp and the cross-lane reductions of numerics.h, as IR.
 *
 * Owns: their one translation into instructions. Never loads or stores. An editor keeps the order of operations: it is
 * the contract.
 */
#include <assert.h>

#include "kernels-templates/emit/math.h"

ir_f math_exp(struct ir *b, ir_f x)
{
	static const float c[] = { NUMERICS_EXP_C5, NUMERICS_EXP_C4, NUMERICS_EXP_C3, NUMERICS_EXP_C2, 1.0f, 1.0f };
	ir_m tiny = ir_flt(b, x, ir_fconst(b, -87.0f));
	/* Both cuts keep f2i inside its range; what lies below -87 is replaced at the end. */
	ir_f cut = ir_fmax(b, ir_fmin(b, x, ir_fconst(b, 88.0f)), ir_fconst(b, -87.0f));
	ir_i n = ir_f2i(b, ir_fmul(b, cut, ir_fconst(b, NUMERICS_EXP_LOG2E)));
	ir_f nf = ir_i2f(b, n);
	ir_f r = ir_ffma(b, nf, ir_fconst(b, -NUMERICS_EXP_LN2_HI), cut);
	r = ir_ffma(b, nf, ir_fconst(b, -NUMERICS_EXP_LN2_LO), r);
	ir_f p = ir_fconst(b, NUMERICS_EXP_C6);
	for (unsigned i = 0; i < sizeof c / sizeof c[0]; i++)
		p = ir_ffma(b, p, r, ir_fconst(b, c[i]));
	ir_f power = ir_fbits(b, ir_ishl(b, ir_iadd(b, n, ir_iconst(b, 127)), 23));
	return ir_fsel(b, tiny, ir_fconst(b, 0.0f), ir_fmul(b, p, power));
}

static ir_f silu(struct ir *b, ir_f x)
{
	return ir_fdiv(b, x, ir_fadd(b, ir_fconst(b, 1.0f), math_exp(b, ir_fneg(b, x))));
}

static ir_f sigmoid(struct ir *b, ir_f x)
{
	ir_f one = ir_fconst(b, 1.0f);
	return ir_fdiv(b, one, ir_fadd(b, one, math_exp(b, ir_fneg(b, x))));
}

/* The first of gpt-oss's two factors. */
static ir_f swiglu_oai(struct ir *b, ir_f x)
{
	ir_f cut = ir_fmin(b, x, ir_fconst(b, NUMERICS_SWIGLU_MAX)),
	     slope = ir_fmul(b, cut, ir_fconst(b, NUMERICS_SWIGLU_SLOPE));
	return ir_fdiv(b, cut, ir_fadd(b, ir_fconst(b, 1.0f), math_exp(b, ir_fneg(b, slope))));
}

/* The usual approximation by tanh, for which 0.5 * (1 + tanh(z / 2)) is 1 / (1 + exp(-z)). */
static ir_f gelu(struct ir *b, ir_f x)
{
	ir_f curve = ir_ffma(b, ir_fmul(b, x, x), ir_fconst(b, NUMERICS_GELU_CUBE), ir_fconst(b, 1.0f));
	ir_f z = ir_fmul(b, ir_fmul(b, x, curve), ir_fconst(b, NUMERICS_GELU_SLOPE));
	return ir_fdiv(b, x, ir_fadd(b, ir_fconst(b, 1.0f), math_exp(b, ir_fneg(b, z))));
}

/* By the share of the normal distribution beyond |x|. While e^(-x*x/2) is made only x and t * p wait: there are CPUs
 * with 16 registers, half of which keep constants of a product. So |x| is made again. */
static ir_f gelu_erf(struct ir *b, ir_f x)
{
	static const float c[] = { NUMERICS_ERF_C6, NUMERICS_ERF_C5, NUMERICS_ERF_C4, NUMERICS_ERF_C3,
		                   NUMERICS_ERF_C2, NUMERICS_ERF_C1, NUMERICS_ERF_C0 };
	ir_f one = ir_fconst(b, 1.0f), a = ir_fabs(b, x);
	ir_f t = ir_fdiv(b, one, ir_ffma(b, a, ir_fconst(b, NUMERICS_ERF_SLOPE), one));
	ir_f p = ir_fconst(b, NUMERICS_ERF_C7);

	for (unsigned i = 0; i < sizeof c / sizeof c[0]; i++)
		p = ir_ffma(b, p, t, ir_fconst(b, c[i]));
	ir_f tp = ir_fmul(b, t, p), half = ir_fmul(b, a, ir_fconst(b, 0.5f));
	ir_f q = ir_fmul(b, tp, math_exp(b, ir_fneg(b, ir_fmul(b, a, half))));
	return ir_ffma(b, ir_fneg(b, ir_fabs(b, x)), q, ir_fmax(b, x, ir_fconst(b, 0.0f)));
}

ir_f math_act(struct ir *b, enum key_act act, ir_f x)
{
	switch (act) {
	case ACT_SILU: return silu(b, x);
	case ACT_GELU: return gelu(b, x);
	case ACT_RELU2: {
		ir_f positive = ir_fmax(b, x, ir_fconst(b, 0.0f));
		return ir_fmul(b, positive, positive);
	}
	case ACT_SIGMOID: return sigmoid(b, x);
	case ACT_SWIGLU_OAI: return swiglu_oai(b, x);
	case ACT_GELU_ERF: return gelu_erf(b, x);
	case ACT_RELU: return ir_fmax(b, x, ir_fconst(b, 0.0f));
	case ACT_SOFTPLUS: return math_softplus(b, x);
	case ACT_NONE:
	case KEY_ACT_COUNT: break;
	}
	assert(false && "an activation function");
	return x;
}

ir_f math_gate(struct ir *b, enum key_act act, ir_f first, ir_f second)
{
	ir_f max = ir_fconst(b, NUMERICS_SWIGLU_MAX), min = ir_fconst(b, -NUMERICS_SWIGLU_MAX);

	first = math_act(b, act, first);
	if (act == ACT_SWIGLU_OAI)
		second = ir_fadd(b, ir_fmax(b, ir_fmin(b, second, max), min), ir_fconst(b, 1.0f));
	return ir_fmul(b, first, second);
}

ir_f math_xielu(struct ir *b, ir_f x, const struct math_xielu *by)
{
	ir_f zero = ir_fconst(b, 0.0f), line = ir_fmul(b, by->both, x);
	ir_f above = ir_ffma(b, ir_fmul(b, by->above, x), x, line);
	ir_f rest = ir_fsub(b, ir_fsub(b, math_exp(b, ir_fmin(b, x, by->end)), ir_fconst(b, 1.0f)), x);

	return ir_fsel(b, ir_fle(b, x, zero), ir_ffma(b, rest, by->below, line), above);
}

/* log(1 + u) is twice the inverse hyperbolic tangent of u / (2 + u), which is 1/3 at most here. */
ir_f math_softplus(struct ir *b, ir_f x)
{
	static const float c[] = { 2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3, 2.0f };
	ir_f u = math_exp(b, ir_fneg(b, ir_fabs(b, x)));
	ir_f s = ir_fdiv(b, u, ir_fadd(b, ir_fconst(b, 2.0f), u)), z = ir_fmul(b, s, s);
	ir_f p = ir_fconst(b, 2.0f / 13);

	for (unsigned i = 0; i < sizeof c / sizeof c[0]; i++)
		p = ir_ffma(b, p, z, ir_fconst(b, c[i]));
	return ir_fadd(b, ir_fmax(b, x, ir_fconst(b, 0.0f)), ir_fmul(b, p, s));
}

ir_f math_cap(struct ir *b, ir_f x, ir_f c)
{
	ir_f one = ir_fconst(b, 1.0f), t = ir_fdiv(b, x, c);
	ir_f part = ir_fdiv(b, ir_fconst(b, 2.0f), ir_fadd(b, one, math_exp(b, ir_fadd(b, t, t))));
	return ir_fmul(b, c, ir_fadd(b, one, ir_fneg(b, part)));
}

/* Rule 6 adds at strides 16, 8, 4, 2, 1 in all lanes at once. Strides of W and more join whole vectors: both ends of a
 * pair get the same value (the operation commutes), so one of them is enough. */
static ir_f lane_reduce(struct ir *b, const ir_f part[], ir_f (*op)(struct ir *, ir_f, ir_f))
{
	unsigned n = math_parts(b);
	ir_f v[MATH_MAX_PARTS];
	assert(n >= 1 && n <= MATH_MAX_PARTS);
	for (unsigned i = 0; i < n; i++)
		v[i] = part[i];
	for (n /= 2; n >= 1; n /= 2)
		for (unsigned i = 0; i < n; i++)
			v[i] = op(b, v[i], v[i + n]);
	for (unsigned stride = b->lanes / 2; stride >= 1; stride /= 2)
		v[0] = op(b, v[0], ir_fxor(b, v[0], stride));
	return v[0];
}

ir_f math_lane_sum(struct ir *b, const ir_f part[]) { return lane_reduce(b, part, ir_fadd); }

ir_f math_lane_max(struct ir *b, const ir_f part[]) { return lane_reduce(b, part, ir_fmax); }

ir_f math_rms_scale(struct ir *b, ir_f ss, uint32_t n, ir_f eps)
{
	ir_f mean = ir_fdiv(b, ss, ir_fconst(b, (float)n));
	return ir_fdiv(b, ir_fconst(b, 1.0f), ir_fsqrt(b, ir_fadd(b, mean, eps)));
}
