/* graph/eval_elements.c - what operations on single elements mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval_rules.h"
#include "graph/functions.h"

static unsigned bits_of(int wide) { return tensor_type_bytes(wide) * 8; }

/* Integers of 32 bits wrap as such. */
static union number wrapped(int wide, uint64_t u)
{
	union number x = { .u = u };

	if (wide == JIT_TYPE_I32)
		x.i = (int32_t)(uint32_t)u;
	else if (wide == JIT_TYPE_U32)
		x.u = (uint32_t)u;
	return x;
}

bool eval_less(int wide, union number x, union number y)
{
	switch (wide) {
	case JIT_TYPE_F32: return x.f < y.f;
	case JIT_TYPE_F64: return x.d < y.d;
	case JIT_TYPE_I32:
	case JIT_TYPE_I64: return x.i < y.i;
	default: return x.u < y.u;
	}
}

static bool equal(int wide, union number x, union number y)
{
	return wide == JIT_TYPE_F32 ? x.f == y.f : wide == JIT_TYPE_F64 ? x.d == y.d : x.u == y.u;
}

union number eval_fused(int wide, union number a, union number b, union number c)
{
	union number x = { .u = 0 };

	if (wide == JIT_TYPE_F32)
		x.f = fmaf(a.f, b.f, c.f);
	else if (wide == JIT_TYPE_F64)
		x.d = fma(a.d, b.d, c.d);
	else
		x = wrapped(wide, a.u * b.u + c.u);
	return x;
}

union number eval_neutral(enum tensor_op op, int wide)
{
	const bool max = op == OP_min;
	union number x = { .u = 0 };

	if (op == OP_add || op == OP_or)
		return x;
	if (op == OP_mul || op == OP_and)
		return tensor_convert((union number){ .u = 1 }, JIT_TYPE_BOOL, wide);
	switch (wide) {
	case JIT_TYPE_F32: x.f = max ? INFINITY : -INFINITY; break;
	case JIT_TYPE_F64: x.d = max ? (double)INFINITY : -(double)INFINITY; break;
	case JIT_TYPE_I32: x.i = max ? INT32_MAX : INT32_MIN; break;
	case JIT_TYPE_I64: x.i = max ? INT64_MAX : INT64_MIN; break;
	default: x.u = !max ? 0 : wide == JIT_TYPE_U32 ? UINT32_MAX : UINT64_MAX; break;
	}
	return x;
}

static union number divided(int wide, union number x, union number y)
{
	if (y.u == 0)
		return wrapped(wide, UINT64_MAX);
	if (!tensor_is_signed(wide))
		return wrapped(wide, x.u / y.u);
	if (y.i == -1)
		return wrapped(wide, (uint64_t)0 - x.u);
	return wrapped(wide, (uint64_t)(x.i / y.i));
}

static union number remainder_of(int wide, union number x, union number y)
{
	if (wide == JIT_TYPE_F32)
		return (union number){ .f = fmodf(x.f, y.f) };
	if (wide == JIT_TYPE_F64)
		return (union number){ .d = fmod(x.d, y.d) };
	if (y.u == 0)
		return x;
	if (!tensor_is_signed(wide))
		return wrapped(wide, x.u % y.u);
	return y.i == -1 ? (union number){ .u = 0 } : wrapped(wide, (uint64_t)(x.i % y.i));
}

static union number shifted(enum tensor_op op, int wide, union number x, union number y)
{
	const unsigned bits = bits_of(wide);
	const bool all = y.u >= bits;

	if (op == OP_shift_left)
		return wrapped(wide, all ? 0 : x.u << y.u);
	if (!tensor_is_signed(wide))
		return wrapped(wide, all ? 0 : x.u >> y.u);
	const uint64_t size = all ? bits - 1 : y.u;
	return wrapped(wide, x.i < 0 ? ~(~x.u >> size) : x.u >> size);
}

union number eval_pair(enum tensor_op op, int wide, union number x, union number y)
{
	const bool narrow = wide == JIT_TYPE_F32, real = narrow || wide == JIT_TYPE_F64;
	union number z = { .u = 0 };

#define ARITHMETIC(operator) \
	if (narrow) \
		z.f = x.f operator y.f; \
	else if (real) \
		z.d = x.d operator y.d; \
	else \
		z = wrapped(wide, x.u operator y.u); \
	return z
	switch (op) {
	case OP_add: ARITHMETIC(+);
	case OP_sub: ARITHMETIC(-);
	case OP_mul: ARITHMETIC(*);
	case OP_div:
		if (narrow)
			z.f = x.f / y.f;
		else if (real)
			z.d = x.d / y.d;
		else
			z = divided(wide, x, y);
		return z;
	case OP_rem: return remainder_of(wide, x, y);
	case OP_max: return eval_less(wide, y, x) ? x : y;
	case OP_min: return eval_less(wide, x, y) ? x : y;
	case OP_and: z.u = x.u & y.u; return z;
	case OP_or: z.u = x.u | y.u; return z;
	case OP_xor: z.u = x.u ^ y.u; return z;
	case OP_shift_left:
	case OP_shift_right: return shifted(op, wide, x, y);
	case OP_eq: z.u = equal(wide, x, y); return z;
	case OP_ne: z.u = !equal(wide, x, y); return z;
	case OP_lt: z.u = eval_less(wide, x, y); return z;
	case OP_le: z.u = eval_less(wide, x, y) || equal(wide, x, y); return z;
	case OP_gt: z.u = eval_less(wide, y, x); return z;
	default: z.u = eval_less(wide, y, x) || equal(wide, x, y); return z;
	}
#undef ARITHMETIC
}

static union number sign_of(int wide, union number x)
{
	if (wide == JIT_TYPE_F32)
		x.f = x.f > 0 ? 1 : x.f < 0 ? -1 : x.f;
	else if (wide == JIT_TYPE_F64)
		x.d = x.d > 0 ? 1 : x.d < 0 ? -1 : x.d;
	else if (tensor_is_signed(wide))
		x.i = (x.i > 0) - (x.i < 0);
	else
		x.u = x.u != 0;
	return x;
}

static float narrow_of(enum tensor_op op, float x)
{
	switch (op) {
	case OP_sqrt: return sqrtf(x);
	case OP_rsqrt: return 1 / sqrtf(x);
	case OP_floor: return floorf(x);
	case OP_ceil: return ceilf(x);
	case OP_round: return rintf(x);
	case OP_trunc: return truncf(x);
	default: return op == OP_neg ? -x : fabsf(x);
	}
}

static double wide_of(enum tensor_op op, double x)
{
	switch (op) {
	case OP_sqrt: return sqrt(x);
	case OP_rsqrt: return 1 / sqrt(x);
	case OP_floor: return floor(x);
	case OP_ceil: return ceil(x);
	case OP_round: return rint(x);
	case OP_trunc: return trunc(x);
	default: return op == OP_neg ? -x : fabs(x);
	}
}

static union number of_one(enum tensor_op op, int wide, union number x)
{
	if (op == OP_sign)
		return sign_of(wide, x);
	if (op == OP_not)
		return wide == JIT_TYPE_BOOL ? (union number){ .u = !x.u } : wrapped(wide, ~x.u);
	if (wide == JIT_TYPE_F32)
		x.f = narrow_of(op, x.f);
	else if (wide == JIT_TYPE_F64)
		x.d = wide_of(op, x.d);
	else if (op == OP_neg || (tensor_is_signed(wide) && x.i < 0))
		x = wrapped(wide, (uint64_t)0 - x.u);
	return x;
}

static bool is_function(enum tensor_op op)
{
	return op == OP_exp || op == OP_log || op == OP_sin || op == OP_cos || op == OP_tanh || op == OP_erf ||
	       op == OP_pow || op == OP_logistic;
}

/* 1 / (1 + exp(-x)), of which exp(-x) is there. */
static union number logistic(int wide, union number e)
{
	if (wide == JIT_TYPE_F32)
		e.f = 1 / (1 + e.f);
	else
		e.d = 1 / (1 + e.d);
	return e;
}

static bool functions(struct evaluation *e, int wide, uint64_t elements)
{
	const enum tensor_op op = e->n->op;
	enum { AT_ONCE = 256 };
	union number x[AT_ONCE], y[AT_ONCE], z[AT_ONCE];

	for (uint64_t i = 0; i < elements; i += AT_ONCE) {
		const uint64_t n = elements - i < AT_ONCE ? elements - i : AT_ONCE;
		for (uint64_t k = 0; k < n; k++) {
			x[k] = tensor_get(e->in[0], i + k);
			if (op == OP_logistic)
				x[k] = of_one(OP_neg, wide, x[k]);
			y[k] = op == OP_pow ? tensor_get(e->in[1], i + k) : x[k];
		}
		if (!function_apply(op == OP_logistic ? OP_exp : op, wide, x, y, z, n, e->err))
			return false;
		for (uint64_t k = 0; k < n; k++)
			tensor_put(&e->out[0], i + k, op == OP_logistic ? logistic(wide, z[k]) : z[k]);
	}
	return true;
}

/* min(max(round(x / scale), min), max) * scale */
static union number quantised(int wide, union number x, union number scale, union number min, union number max)
{
	const union number q = of_one(OP_round, wide, eval_pair(OP_div, wide, x, scale));

	return eval_pair(OP_mul, wide, eval_pair(OP_min, wide, eval_pair(OP_max, wide, q, min), max), scale);
}

bool eval_elements(struct evaluation *e)
{
	const enum tensor_op op = e->n->op;
	const uint64_t elements = shape_elements(&e->out[0].shape);
	const int wide = tensor_wide_type(e->in[e->n->operands > 1 && op == OP_select ? 1 : 0]->type);

	if (is_function(op))
		return functions(e, wide, elements);
	for (uint64_t i = 0; i < elements; i++) {
		const union number x = tensor_get(e->in[0], i);
		union number z;
		if (e->n->operands == 1)
			z = of_one(op, wide, x);
		else if (op == OP_select)
			z = tensor_get(e->in[x.u ? 1 : 2], i);
		else if (op == OP_fma)
			z = eval_fused(wide, x, tensor_get(e->in[1], i), tensor_get(e->in[2], i));
		else if (op == OP_fake_quantise)
			z = quantised(wide, x, tensor_get(e->in[1], i), tensor_get(e->in[2], i),
			              tensor_get(e->in[3], i));
		else
			z = eval_pair(op, wide, x, tensor_get(e->in[1], i));
		tensor_put(&e->out[0], i, z);
	}
	return true;
}

bool eval_convert(struct evaluation *e)
{
	const int from = tensor_wide_type(e->in[0]->type), to = tensor_wide_type(e->out[0].type);
	const uint64_t elements = shape_elements(&e->out[0].shape);

	for (uint64_t i = 0; i < elements; i++)
		tensor_put(&e->out[0], i, tensor_convert(tensor_get(e->in[0], i), from, to));
	return true;
}

bool eval_bitcast(struct evaluation *e)
{
	if (e->out[0].data)
		memcpy(e->out[0].data, e->in[0]->data, (size_t)tensor_bytes(&e->out[0]));
	return true;
}
