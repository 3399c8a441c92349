/* jit/spirv/fma64.c - the sum of a product of doubles and a double, rounded once, by integers: for drivers whose own
 * instruction rounds twice.
 *
 * The product of two 53-bit numbers and the third number are laid over each other in 128 bits. What does not fit is
 * remembered in the last bit (a sticky bit), which lies far below where the sum is rounded. Zeros, infinities and NaNs
 * are what the sum and the product of doubles make of them.
 */
#include "jit/spirv/spirv.h"

#define U32(op, ...) SPIRV_VALUE(w, SPIRV_U32, op, __VA_ARGS__)
#define U64(op, ...) SPIRV_VALUE(w, SPIRV_U64, op, __VA_ARGS__)
#define F64(op, ...) SPIRV_VALUE(w, SPIRV_F64, op, __VA_ARGS__)
#define BOOL(op, ...) SPIRV_VALUE(w, SPIRV_BOOL, op, __VA_ARGS__)

typedef struct spirv_writer writer;
struct wide { /* 128 bits */
	uint32_t high, low;
};
/* |x| = mantissa * 2^exponent, and the mantissa's bit 52 is set. */
struct parts {
	uint32_t bits, mantissa, exponent, sign, special; /* special: zero, infinite, no number */
};

static uint32_t number(writer *w, int64_t v) { return spirv_u64(w, (uint64_t)v); }

/* Counts of 0 and more: all that is shifted out is gone. */
static uint32_t shift(writer *w, enum spv_op op, uint32_t x, uint32_t n)
{
	const uint32_t small = BOOL(ULessThan, n, number(w, 64)),
		       operand[] = { x, U64(Select, small, n, number(w, 0)) },
		       shifted = spirv_make_value(w, SPIRV_U64, op, operand, 2);

	return U64(Select, small, shifted, number(w, 0));
}

static uint32_t left(writer *w, uint32_t x, uint32_t n) { return shift(w, SPV_ShiftLeftLogical, x, n); }
static uint32_t right(writer *w, uint32_t x, uint32_t n) { return shift(w, SPV_ShiftRightLogical, x, n); }

static struct wide left_wide(writer *w, struct wide x, uint32_t n)
{
	const uint32_t far = BOOL(UGreaterThanEqual, n, number(w, 64)), beyond = U64(ISub, n, number(w, 64)),
		       back = U64(ISub, number(w, 64), n),
		       near = U64(BitwiseOr, left(w, x.high, n), right(w, x.low, back));
	struct wide r;

	r.high = U64(Select, far, left(w, x.low, beyond), near);
	r.low = left(w, x.low, n);
	return r;
}

static uint32_t if_any(writer *w, uint32_t x)
{
	return U64(Select, BOOL(INotEqual, x, number(w, 0)), number(w, 1), number(w, 0));
}

/* What is shifted out shows in the last bit. */
static struct wide right_sticky(writer *w, struct wide x, uint32_t n)
{
	const uint32_t far = BOOL(UGreaterThanEqual, n, number(w, 64)), beyond = U64(ISub, n, number(w, 64)),
		       back = U64(ISub, number(w, 64), n),
		       near = U64(BitwiseOr, right(w, x.low, n), left(w, x.high, back)),
		       low = U64(Select, far, right(w, x.high, beyond), near), high = right(w, x.high, n);
	const struct wide kept = { high, low }, again = left_wide(w, kept, n);
	const uint32_t lost = U64(BitwiseOr, U64(BitwiseXor, again.high, x.high), U64(BitwiseXor, again.low, x.low));

	return (struct wide){ high, U64(BitwiseOr, low, if_any(w, lost)) };
}

/* Of a number that is not 0. */
static uint32_t highest_bit(writer *w, uint32_t x)
{
	const uint32_t high = U32(UConvert, U64(ShiftRightLogical, x, spirv_u32(w, 32))), low = U32(UConvert, x),
		       is_high = BOOL(INotEqual, high, spirv_u32(w, 0)),
		       in_high = U32(IAdd, SPIRV_GLSL(w, SPIRV_U32, FindUMsb, high), spirv_u32(w, 32)),
		       in_low = SPIRV_GLSL(w, SPIRV_U32, FindUMsb, low);

	return U64(UConvert, U32(Select, is_high, in_high, in_low));
}

static struct parts take_apart(writer *w, uint32_t x)
{
	struct parts p = { .bits = U64(Bitcast, x) };
	const uint32_t field = U64(BitwiseAnd, U64(ShiftRightLogical, p.bits, spirv_u32(w, 52)), number(w, 0x7ff)),
		       rest = U64(BitwiseAnd, p.bits, number(w, (INT64_C(1) << 52) - 1)),
		       small = BOOL(IEqual, field, number(w, 0)), by = U64(ISub, number(w, 52), highest_bit(w, rest)),
		       normal = U64(BitwiseOr, rest, number(w, INT64_C(1) << 52)),
		       zero = BOOL(LogicalAnd, small, BOOL(IEqual, rest, number(w, 0)));

	p.mantissa = U64(Select, small, left(w, rest, by), normal);
	p.exponent = U64(Select, small, U64(ISub, number(w, -1074), by), U64(ISub, field, number(w, 1075)));
	p.sign = U64(BitwiseAnd, p.bits, number(w, INT64_MIN));
	p.special = BOOL(LogicalOr, zero, BOOL(IEqual, field, number(w, 0x7ff)));
	return p;
}

static struct wide multiply(writer *w, uint32_t x, uint32_t y)
{
	const uint32_t half = spirv_u32(w, 32), lower = number(w, UINT32_MAX), x1 = U64(ShiftRightLogical, x, half),
		       x0 = U64(BitwiseAnd, x, lower), y1 = U64(ShiftRightLogical, y, half),
		       y0 = U64(BitwiseAnd, y, lower), low = U64(IMul, x0, y0),
		       middle = U64(IAdd, U64(IAdd, U64(IMul, x1, y0), U64(IMul, x0, y1)),
	                            U64(ShiftRightLogical, low, half)); /* the upper halves have 21 bits */
	struct wide r;

	r.high = U64(IAdd, U64(IMul, x1, y1), U64(ShiftRightLogical, middle, half));
	r.low = U64(BitwiseOr, U64(ShiftLeftLogical, middle, half), U64(BitwiseAnd, low, lower));
	return r;
}

static struct wide add(writer *w, struct wide x, struct wide y)
{
	const uint32_t low = U64(IAdd, x.low, y.low),
		       carry = U64(Select, BOOL(ULessThan, low, y.low), number(w, 1), number(w, 0));

	return (struct wide){ U64(IAdd, U64(IAdd, x.high, y.high), carry), low };
}

/* x or its negative. */
static struct wide negate_if(writer *w, uint32_t is, struct wide x)
{
	const struct wide one = { number(w, 0), number(w, 1) }, inverted = { U64(Not, x.high), U64(Not, x.low) },
			  minus = add(w, inverted, one);
	struct wide r;

	r.high = U64(Select, is, minus.high, x.high);
	r.low = U64(Select, is, minus.low, x.low);
	return r;
}

/* Rounds to nearest even: x * 2^exponent, of which the highest bit is the one of number `top`. */
static uint32_t round_off(writer *w, struct wide x, uint32_t top, uint32_t exponent)
{
	const struct wide at_top = left_wide(w, x, U64(ISub, number(w, 127), top));
	const uint32_t one = spirv_u32(w, 1), sticky = U64(BitwiseOr, at_top.high, if_any(w, at_top.low)),
		       m = U64(BitwiseOr, U64(ShiftRightLogical, sticky, one), U64(BitwiseAnd, sticky, number(w, 1))),
		       e = U64(IAdd, exponent, top), normal = BOOL(SGreaterThanEqual, e, number(w, -1022)),
		       tiny = BOOL(SLessThan, e, number(w, -1075)), huge = BOOL(SGreaterThan, e, number(w, 1023)),
		       more = U64(Select, normal, number(w, 0), U64(ISub, number(w, -1022), e)),
		       drop = U64(IAdd, number(w, 10), U64(Select, tiny, number(w, 0), more)),
		       kept = U64(ShiftRightLogical, m, drop), rest = U64(ISub, m, U64(ShiftLeftLogical, kept, drop)),
		       half = U64(ShiftLeftLogical, number(w, 1), U64(ISub, drop, number(w, 1))),
		       odd = BOOL(INotEqual, U64(BitwiseAnd, kept, number(w, 1)), number(w, 0)),
		       tie = BOOL(LogicalAnd, BOOL(IEqual, rest, half), odd),
		       up = BOOL(LogicalOr, BOOL(UGreaterThan, rest, half), tie),
		       rounded = U64(IAdd, kept, U64(Select, up, number(w, 1), number(w, 0))),
		       field = U64(ShiftLeftLogical, U64(IAdd, e, number(w, 1022)), spirv_u32(w, 52)),
		       bits = U64(IAdd, rounded, U64(Select, normal, field, number(w, 0))),
		       finite = U64(Select, tiny, number(w, 0), bits);

	return U64(Select, huge, number(w, INT64_C(0x7ff) << 52), finite);
}

enum { UP = 20, FREE = 72 }; /* the product is shifted up so far, and has 106 bits; the third number at most so far */

static uint32_t sum_of(writer *w, const struct parts *a, const struct parts *b, const struct parts *c)
{
	const uint32_t zero = number(w, 0), up = number(w, UP), e = U64(ISub, U64(IAdd, a->exponent, b->exponent), up),
		       d = U64(ISub, c->exponent, e), far = BOOL(SGreaterThan, d, number(w, FREE)),
		       below = BOOL(SLessThan, d, zero);
	const struct wide product = left_wide(w, multiply(w, a->mantissa, b->mantissa), up),
			  third = { zero, c->mantissa },
			  lowered = right_sticky(w, product, U64(Select, far, U64(ISub, d, number(w, FREE)), zero)),
			  raised = left_wide(w, third, U64(Select, far, number(w, FREE), U64(Select, below, zero, d))),
			  other = right_sticky(w, raised, U64(Select, below, U64(ISub, zero, d), zero));
	const uint32_t base = U64(Select, far, U64(ISub, c->exponent, number(w, FREE)), e),
		       sign = U64(BitwiseXor, a->sign, b->sign), differ = BOOL(INotEqual, sign, c->sign);
	const struct wide sum = add(w, lowered, negate_if(w, differ, other));
	const uint32_t minus = BOOL(SLessThan, sum.high, zero);
	const struct wide size = negate_if(w, minus, sum);
	const uint32_t of_high = U64(IAdd, highest_bit(w, size.high), number(w, 64)), of_low = highest_bit(w, size.low),
		       in_high = BOOL(INotEqual, size.high, zero), top = U64(Select, in_high, of_high, of_low),
		       none = BOOL(IEqual, U64(BitwiseOr, size.high, size.low), zero),
		       signed_as = U64(BitwiseXor, sign, U64(Select, minus, number(w, INT64_MIN), zero)),
		       rounded = U64(BitwiseOr, round_off(w, size, top, base), signed_as);

	return U64(Select, none, zero, rounded);
}

uint32_t spirv_fma_by_integers(struct spirv_writer *w, const uint32_t *p)
{
	const struct parts a = take_apart(w, p[0]), b = take_apart(w, p[1]), c = take_apart(w, p[2]);
	const uint32_t product = F64(FMul, p[0], p[1]), sum = F64(FAdd, product, p[2]),
		       none = spirv_constant(w, SPIRV_F64, 0), c_zero = BOOL(FOrdEqual, p[2], none),
		       factors = BOOL(LogicalOr, a.special, b.special),
		       with_zero = F64(Select, c_zero, product, p[2]), /* an infinity, or a NaN, stays itself */
		plain = F64(Select, factors, sum, with_zero), any = BOOL(LogicalOr, factors, c.special),
		       exact = F64(Bitcast, sum_of(w, &a, &b, &c));

	return F64(Select, any, plain, exact);
}
