/* jit/x86/select_integer.c - operations on integers, and conversions to and from them, that take several instructions.
 *
 * Rule for editors: a sequence writes its destination last, for it may be an operand, and asks for its registers in an
 * order of its own, never as arguments of one call.
 */
#include "jit/ir/lanes.h"
#include "jit/x86/select_state.h"

static bool wide(const struct sel *s) { return s->target->mask_regs != 0; }

uint32_t sel_op2(struct sel *s, unsigned op, uint32_t a)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2, op, t, a, 0, sel_no_memory);
	return t;
}

uint32_t sel_op3(struct sel *s, unsigned op, uint32_t a, uint32_t b)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3, op, t, a, b, sel_no_memory);
	return t;
}

uint32_t sel_op2i(struct sel *s, unsigned op, uint32_t a, unsigned n)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, op, t, a, 0, sel_no_memory)->imm = n;
	return t;
}

static unsigned op_and(const struct sel *s) { return wide(s) ? X86_VPANDD : X86_VPAND; }
static unsigned op_or(const struct sel *s) { return wide(s) ? X86_VPORD : X86_VPOR; }
static unsigned op_xor(const struct sel *s) { return wide(s) ? X86_VPXORD : X86_VPXOR; }

static uint32_t splat(struct sel *s, uint32_t value) { return sel_constant(s, SEL_SPLAT, value); }

static void give(struct sel *s, const struct ir_ins *i, uint32_t value)
{
	sel_ins(s, LIR_MOV, X86_VMOVAPS, sel_dst(s, i), value, 0, sel_no_memory);
}

/* A mask, as the target keeps them, of a comparison of floats. */
static uint32_t compared(struct sel *s, unsigned how, uint32_t a, uint32_t b)
{
	uint32_t t = lir_reg(s->l, wide(s) ? LIR_MASK : LIR_VEC);
	sel_ins(s, wide(s) ? LIR_MCMPI : LIR_OP3I, X86_VCMPPS, t, a, b, sel_no_memory)->imm = how;
	return t;
}

static uint32_t chosen(struct sel *s, uint32_t mask, uint32_t yes, uint32_t no)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, wide(s) ? LIR_MBLEND : LIR_BLEND, wide(s) ? X86_VBLENDMPS : X86_VBLENDVPS, t, no, yes, sel_no_memory)
		->c = mask;
	return t;
}

/* --- comparisons of AVX2, and masks */

static void complement(struct sel *s, const struct ir_ins *i, uint32_t mask)
{
	uint32_t ones = splat(s, UINT32_MAX);
	sel_ins(s, LIR_OP3C, X86_VPXOR, sel_dst(s, i), mask, ones, sel_no_memory);
}

void sel_less(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b);
	sel_ins(s, LIR_OP3, r->op, sel_dst(s, i), b, a, sel_no_memory);
}

void sel_not_more(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b);
	complement(s, i, sel_op3(s, r->op, a, b));
}

void sel_not_equal(struct sel *s, const struct ir_ins *i, const struct sel_rule *r) { sel_not_more(s, i, r); }

void sel_below(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), min = sel_op3(s, r->op, a, b);
	complement(s, i, sel_op3(s, X86_VPCMPEQD, min, b));
}

void sel_not_above(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), min = sel_op3(s, r->op, a, b);
	sel_ins(s, LIR_OP3C, X86_VPCMPEQD, sel_dst(s, i), min, a, sel_no_memory);
}

/* --- products and bits */

void sel_mul_high(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), even = sel_op3(s, r->op, a, b);
	uint32_t odd_a = sel_op2i(s, X86_VPSRLQ, a, 32), odd_b = sel_op2i(s, X86_VPSRLQ, b, 32);
	uint32_t odd = sel_op3(s, r->op, odd_a, odd_b), low = sel_op2i(s, X86_VPSRLQ, even, 32);
	if (!wide(s)) {
		sel_ins(s, LIR_OP3I, X86_VPBLENDD, sel_dst(s, i), low, odd, sel_no_memory)->imm = 0xaa;
		return;
	}
	uint32_t high = sel_op2i(s, X86_VPSLLQ, sel_op2i(s, X86_VPSRLQ, odd, 32), 32);
	sel_ins(s, LIR_OP3C, X86_VPORD, sel_dst(s, i), low, high, sel_no_memory);
}

static void count_ones(struct sel *s, const struct ir_ins *i, uint32_t a)
{
	uint32_t bit = splat(s, 0x55555555), pair = splat(s, 0x33333333), four = splat(s, 0x0f0f0f0f),
		 bytes = splat(s, 0x01010101), words = splat(s, 0x00010001);
	uint32_t twos = sel_op3(s, X86_VPSUBD, a, sel_op3(s, op_and(s), sel_op2i(s, X86_VPSRLD, a, 1), bit));
	uint32_t low = sel_op3(s, op_and(s), twos, pair);
	uint32_t fours = sel_op3(s, X86_VPADDD, low, sel_op3(s, op_and(s), sel_op2i(s, X86_VPSRLD, twos, 2), pair));
	uint32_t both = sel_op3(s, X86_VPADDD, fours, sel_op2i(s, X86_VPSRLD, fours, 4));
	uint32_t sums = sel_op3(s, X86_VPMADDUBSW, sel_op3(s, op_and(s), both, four), bytes);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, sel_dst(s, i), sums, words, sel_no_memory);
}

void sel_ones(struct sel *s, const struct ir_ins *i, const struct sel_rule *r) { count_ones(s, i, sel_vec(s, i->a)); }

/* All bits below the highest that is set are set too; those that are not are counted. */
void sel_leading_zeros(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a);
	for (unsigned n = 1; n < 32; n *= 2)
		a = sel_op3(s, op_or(s), a, sel_op2i(s, X86_VPSRLD, a, n));
	uint32_t ones = splat(s, UINT32_MAX);
	count_ones(s, i, sel_op3(s, op_xor(s), a, ones));
}

/* --- quotients, in numbers of 64 bits. Of integers of 32 bits that rounds none up: a quotient that is no whole number
 * is less than the next one by 1 / b or more, which is 2^-32 of it, and 2^-53 is what rounding changes. */

/* The lower or upper half of the lanes. */
uint32_t sel_half(struct sel *s, uint32_t a, unsigned number)
{
	if (!number)
		return a;
	uint32_t t = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n =
		sel_ins(s, LIR_OP2I, wide(s) ? X86_VEXTRACTI64X4 : X86_VEXTRACTI128, t, a, 0, sel_no_memory);
	n->wd = s->half;
	n->imm = 1;
	return t;
}

enum { EXPONENT_52 = 0x433 }; /* as bits of 2^52, a number below which is added to it is in its fraction */

uint32_t sel_widened(struct sel *s, uint32_t half, bool has_sign)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	unsigned op = has_sign ? X86_VCVTDQ2PD : wide(s) ? X86_VCVTUDQ2PD : X86_VPMOVZXDQ;
	sel_ins(s, LIR_OP2, op, t, half, 0, sel_no_memory)->ws = s->half;
	if (has_sign || wide(s))
		return t;
	uint32_t bias = sel_wide_constant(s, (uint64_t)EXPONENT_52 << 52);
	return sel_op3(s, X86_VSUBPD, sel_op3(s, X86_VPOR, t, bias), bias);
}

static uint32_t join(struct sel *s, const uint32_t half[2])
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3I, wide(s) ? X86_VSHUFI32X4 : X86_VPERM2I128, t, half[0], half[1], sel_no_memory)->imm =
		wide(s) ? 0x44 : 0x20;
	return t;
}

/* Numbers from 0 to 2^32 - 1, cut to whole ones. */
uint32_t sel_join_unsigned(struct sel *s, const uint32_t q[2])
{
	uint32_t bias = sel_wide_constant(s, (uint64_t)EXPONENT_52 << 52), part[2], joined = lir_reg(s->l, LIR_VEC);
	for (unsigned k = 0; k < 2; k++)
		part[k] = sel_op3(s, X86_VADDPD, sel_op2i(s, X86_VROUNDPD, q[k], 11), bias);
	sel_ins(s, LIR_OP3I, X86_VSHUFPS, joined, part[0], part[1], sel_no_memory)->imm = 0x88;
	return sel_op2i(s, X86_VPERMQ, joined, 0xd8);
}

static uint32_t quotient(struct sel *s, uint32_t a, uint32_t b, bool has_sign)
{
	uint32_t q[2];
	for (unsigned k = 0; k < 2; k++) {
		uint32_t x = sel_widened(s, sel_half(s, a, k), has_sign),
			 y = sel_widened(s, sel_half(s, b, k), has_sign);
		q[k] = sel_op3(s, X86_VDIVPD, x, y);
	}
	if (!has_sign && !wide(s))
		return sel_join_unsigned(s, q);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t t = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_OP2R, has_sign ? X86_VCVTTPD2DQ : X86_VCVTTPD2UDQ, t, q[k], 0, sel_no_memory)->wd =
			s->half;
		q[k] = t;
	}
	return join(s, q);
}

/* By 0 all bits are set: where b is 0, so is what is left of it by a comparison with 0. */
static uint32_t or_all_bits(struct sel *s, uint32_t q, uint32_t b)
{
	uint32_t zero = splat(s, 0), ones = splat(s, UINT32_MAX), none = lir_reg(s->l, wide(s) ? LIR_MASK : LIR_VEC);
	sel_ins(s, wide(s) ? LIR_MCMP : LIR_OP3, X86_VPCMPEQD, none, b, zero, sel_no_memory);
	return chosen(s, none, ones, q);
}

void sel_divide(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b);
	uint32_t q = or_all_bits(s, quotient(s, a, b, i->op == IR_div || i->op == IR_rem), b);
	if (i->op == IR_div || i->op == IR_div_unsigned) {
		give(s, i, q);
		return;
	}
	uint32_t product = sel_op3(s, X86_VPMULLD, q, b);
	sel_ins(s, LIR_OP3, X86_VPSUBD, sel_dst(s, i), a, product, sel_no_memory);
}

/* --- floats */

void sel_round(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a);
	sel_ins(s, LIR_OP2I, r->op, sel_dst(s, i), a, 0, sel_no_memory)->imm = r->imm;
}

/* Its halves are exact; their sum of products rounds once. */
void sel_from_unsigned(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), low = splat(s, 0xffff), scale = splat(s, f32_bits(0x1p16f));
	uint32_t high = sel_op2(s, r->op, sel_op2i(s, X86_VPSRLD, a, 16)),
		 rest = sel_op2(s, r->op, sel_op3(s, op_and(s), a, low));
	sel_ins(s, LIR_FMA, X86_VFMADD231PS, sel_dst(s, i), high, scale, sel_no_memory)->c = rest;
}

/* The instruction gives the least number for all that it cannot convert. */
void sel_to_int_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum { NOT_LESS = 0x1d, ORDERED = 0x07 };
	uint32_t a = sel_vec(s, i->a), limit = splat(s, f32_bits(0x1p31f)), max = splat(s, INT32_MAX),
		 zero = splat(s, 0);
	uint32_t cut = sel_op2(s, r->op, a), large = compared(s, NOT_LESS, a, limit);
	uint32_t number = compared(s, ORDERED, a, a), near = chosen(s, large, max, cut);
	give(s, i, chosen(s, number, near, zero));
}

/* Less than 0, and no number: 0, for the instruction gives its second source for a NaN. */
void sel_to_unsigned_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum { NOT_LESS = 0x1d };
	uint32_t zero = splat(s, 0), a = sel_op3(s, X86_VMAXPS, sel_vec(s, i->a), zero);
	if (wide(s)) { /* beyond the greatest number all bits are set */
		sel_ins(s, LIR_OP2, X86_VCVTTPS2UDQ, sel_dst(s, i), a, 0, sel_no_memory);
		return;
	}
	uint32_t limit = splat(s, f32_bits(0x1p31f)), end = splat(s, f32_bits(0x1p32f)), ones = splat(s, UINT32_MAX),
		 sign = splat(s, 0x80000000);
	uint32_t large = compared(s, NOT_LESS, a, limit), beyond = compared(s, NOT_LESS, a, end);
	uint32_t low = sel_op2(s, r->op, a), high = sel_op2(s, r->op, sel_op3(s, X86_VSUBPS, a, limit));
	uint32_t some = chosen(s, large, sel_op3(s, op_xor(s), high, sign), low);
	give(s, i, chosen(s, beyond, ones, some));
}
