/* jit/rdna/select_divide.c - quotients of integers, and bits that are counted.
 *
 * Rule for editors: a sequence writes its destination last, for it may be an operand.
 */
#include "jit/ir/lanes.h"
#include "jit/rdna/select.h"

static rsel_op made(struct rsel *s, unsigned op, rsel_op a, rsel_op b)
{
	rsel_op d = rsel_new_vgpr(s);

	rsel_valu(s, op, d, a, b, rsel_none());
	return d;
}

static rsel_op mask_of(struct rsel *s, unsigned op, rsel_op a, rsel_op b)
{
	rsel_op m = rsel_new_sgpr(s);

	rsel_valu(s, op, m, a, b, rsel_none());
	return m;
}

void rsel_shift_down(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a), n = rsel_any(s, i->b);

	if (n.kind == RDNA_LIR_CONST)
		n.value = n.value < 31 ? n.value : 31;
	else
		n = made(s, RDNA_V_MIN_U32, rdna_lir_imm(31), rsel_to_vgpr(s, n));
	rsel_valu(s, r->op, rsel_dst(s, i), n, a, rsel_none());
}

void rsel_ones(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a);

	rsel_valu(s, r->op, rsel_dst(s, i), a, rdna_lir_imm(0), rsel_none());
}

void rsel_leading_zeros(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op found = made(s, r->op, rsel_any(s, i->a), rsel_none());

	rsel_valu(s, RDNA_V_MIN_U32, rsel_dst(s, i), rdna_lir_imm(32), found, rsel_none());
}

/* a, negated where sign is all ones: a signed number from or to its magnitude. */
static rsel_op with_sign(struct rsel *s, rsel_op a, rsel_op sign)
{
	return made(s, RDNA_V_SUB_NC_U32, made(s, RDNA_V_XOR_B32, a, sign), sign);
}

struct quotient {
	rsel_op q, rest;
};

/* If the rest reaches b, one more. */
static struct quotient corrected(struct rsel *s, struct quotient x, rsel_op b)
{
	struct quotient y = { rsel_new_vgpr(s), rsel_new_vgpr(s) };
	rsel_op more = mask_of(s, RDNA_V_CMP_GE_U32, x.rest, b);

	rsel_op next = made(s, RDNA_V_ADD_NC_U32, rdna_lir_imm(1), x.q), less = made(s, RDNA_V_SUB_NC_U32, x.rest, b);

	rsel_choose(s, y.q, more, next, x.q);
	rsel_choose(s, y.rest, more, less, x.rest);
	return y;
}

/* Without signs, a and b in vector registers. Let Z be 2^32 / b. A factor of 1 - 2^-21 outweighs the errors of two
 * roundings and of an inverse that is off by a unit, 2^-22 in all, so that the first z is at most Z, and short of it by
 * e = 1 - z / Z, at most 2^-20 + 1 / Z. z + z * e is short by no more than Z * e * e, and 1 for the part that is cut
 * off: 1 + 1 / Z + 2^-7. So a * z / 2^32 is short of the quotient by less than 2, or 3 where Z is less than 2, and
 * there the quotient is 0 or 1: two corrections are enough. Nothing of this holds for b = 0, where the rest is a
 * all the same. */
static struct quotient divide(struct rsel *s, rsel_op a, rsel_op b)
{
	rsel_op none = rsel_none(), zero = rdna_lir_imm(0);
	rsel_op inverse = made(s, RDNA_V_RCP_IFLAG_F32, made(s, RDNA_V_CVT_F32_U32, b, none), none);
	rsel_op scaled = made(s, RDNA_V_MUL_F32, rdna_lir_imm(f32_bits(0x1p32f - 0x1p11f)), inverse);
	rsel_op z = made(s, RDNA_V_CVT_U32_F32, scaled, none);
	rsel_op error = made(s, RDNA_V_MUL_LO_U32, made(s, RDNA_V_SUB_NC_U32, zero, b), z);
	rsel_op better = made(s, RDNA_V_ADD_NC_U32, made(s, RDNA_V_MUL_HI_U32, z, error), z);
	rsel_op q = made(s, RDNA_V_MUL_HI_U32, a, better);
	struct quotient x = { q, made(s, RDNA_V_SUB_NC_U32, a, made(s, RDNA_V_MUL_LO_U32, q, b)) };

	return corrected(s, corrected(s, x, b), b);
}

void rsel_divide_lanes(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	const bool has_sign = i->op == IR_div || i->op == IR_rem,
		   wants_rest = i->op == IR_rem || i->op == IR_rem_unsigned;
	rsel_op a = rsel_vgpr(s, i->a), b = rsel_vgpr(s, i->b), sign = rsel_none();
	struct quotient x;

	if (has_sign) {
		rsel_op sign_a = made(s, RDNA_V_ASHRREV_I32, rdna_lir_imm(31), a),
			sign_b = made(s, RDNA_V_ASHRREV_I32, rdna_lir_imm(31), b);
		rsel_op size_a = with_sign(s, a, sign_a), size_b = with_sign(s, b, sign_b);
		sign = wants_rest ? sign_a : made(s, RDNA_V_XOR_B32, sign_a, sign_b);
		x = divide(s, size_a, size_b);
	} else {
		x = divide(s, a, b);
	}
	rsel_op size = wants_rest ? x.rest : x.q, result = has_sign ? with_sign(s, size, sign) : size;
	rsel_op d = rsel_dst(s, i);
	if (wants_rest) {
		rsel_mov(s, d, result);
		return;
	}
	rsel_op none = mask_of(s, RDNA_V_CMP_EQ_U32, rdna_lir_imm(0), b);
	rsel_choose(s, d, none, rdna_lir_imm(UINT32_MAX), result);
}
