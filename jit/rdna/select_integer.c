/* jit/rdna/select_integer.c - arithmetic on integers in vectors, and dot products of bytes and halves.
 *
 * Integers that lie in scalar registers are computed there. Rule for editors: a sequence writes its destination last,
 * for it may be an operand.
 */
#include "jit/ir/lanes.h"
#include "jit/rdna/select.h"

/* --- integers */

/* Computed in scalar registers when all operands lie there. */
static bool on_scalars(struct rsel *s, const struct ir_ins *i, rsel_op a, rsel_op b)
{
	unsigned op = rscan_uniform_op[ir_row(i)];

	if (!op || s->ir->is_var[i->dst] || rsel_in_vgpr(s, a) || rsel_in_vgpr(s, b))
		return false;
	rsel_op d = rsel_new_sgpr(s);
	rsel_salu(s, op, d, a, b);
	rsel_give_uniform(s, i, d);
	return true;
}

/* A float of a byte: of inner's operand, or of what a shift that is fused into inner moves down. */
static void rsel_byte(struct rsel *s, const struct ir_ins *i, const struct ir_ins *inner, unsigned op)
{
	uint16_t r = inner->a;

	if (op == RDNA_V_CVT_F32_UBYTE0 && !s->ir->is_var[r] && s->scan.reg[r].fold == RSCAN_FUSED) {
		op = rsel_definition(s, r)->imm == 8 ? RDNA_V_CVT_F32_UBYTE1 : RDNA_V_CVT_F32_UBYTE2;
		r = rsel_definition(s, r)->a;
	}
	rsel_op a = rsel_any(s, r);
	rsel_valu(s, op, rsel_dst(s, i), a, rsel_none(), rsel_none());
}

/* This operation and the one behind an operand in one instruction. */
static bool fused(struct rsel *s, const struct ir_ins *i)
{
	const uint16_t operand[2] = { i->a, i->b };
	unsigned slot = 0;

	while (slot < 2 && s->scan.reg[operand[slot]].fold != RSCAN_FUSED)
		slot++;
	if (slot == 2)
		return false;
	const struct ir_ins *inner = rsel_definition(s, operand[slot]);
	unsigned op = rscan_fused_op(s->ir, i, inner, slot);
	if (ir_row(i) == IR_i2f) {
		rsel_byte(s, i, inner, op);
		return true;
	}
	rsel_op x = rsel_any(s, inner->a), y = inner->b ? rsel_any(s, inner->b) : rdna_lir_imm((uint32_t)inner->imm);
	rsel_op z = i->b ? rsel_any(s, operand[1 - slot]) : rsel_none();
	if (ir_row(i) == IR_iand) { /* a field: its position and width */
		z = rdna_lir_imm((uint32_t)__builtin_popcount(z.value));
	} else if (op == RDNA_V_BFE_I32 || op == RDNA_V_BFE_U32) {
		y = rdna_lir_imm((uint32_t)(i->imm - inner->imm));
		z = rdna_lir_imm((uint32_t)(32 - i->imm));
	}
	rsel_valu(s, op, rsel_dst(s, i), x, y, z);
	return true;
}

void rsel_integer(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	if (fused(s, i))
		return;
	rsel_op a = rsel_any(s, i->a), b = rsel_any(s, i->b);
	if (!on_scalars(s, i, a, b))
		rsel_binary(s, i, r);
}

void rsel_shift(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op n = rdna_lir_imm((uint32_t)i->imm);

	if (fused(s, i))
		return;
	rsel_op a = rsel_any(s, i->a);
	if (!on_scalars(s, i, a, n))
		rsel_valu(s, r->op, rsel_dst(s, i), n, a, rsel_none());
}

void rsel_shift_lanes(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a), n = rsel_any(s, i->b);

	if (n.kind == RDNA_LIR_CONST) {
		if (n.value < 32)
			rsel_valu(s, r->op, rsel_dst(s, i), n, a, rsel_none());
		else
			rsel_mov(s, rsel_dst(s, i), rdna_lir_imm(0));
		return;
	}
	rsel_op inside = rsel_new_sgpr(s), t = rsel_new_vgpr(s);
	rsel_valu(s, RDNA_V_CMP_GT_U32, inside, rdna_lir_imm(32), n, rsel_none());
	rsel_valu(s, r->op, t, n, a, rsel_none());
	rsel_choose(s, rsel_dst(s, i), inside, t, rdna_lir_imm(0));
}

void rsel_i2f(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	if (!fused(s, i))
		rsel_unary(s, i, r);
}

void rsel_f2i(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a), t = rsel_new_vgpr(s);

	rsel_valu(s, RDNA_V_RNDNE_F32, t, a, rsel_none(), rsel_none());
	rsel_valu(s, RDNA_V_CVT_I32_F32, rsel_dst(s, i), t, rsel_none(), rsel_none());
}

void rsel_fhalf(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_vgpr(s, i->a);

	if (i->imm) {
		rsel_op t = rsel_new_vgpr(s);
		rsel_valu(s, RDNA_V_LSHRREV_B32, t, rdna_lir_imm(16), a, rsel_none());
		a = t;
	}
	rsel_valu(s, RDNA_V_CVT_F32_F16, rsel_dst(s, i), a, rsel_none(), rsel_none());
}

/* --- dot products of bytes and halves */

static rsel_op in_register(struct rsel *s, rsel_op o) { return o.kind == RDNA_LIR_CONST ? rsel_to_vgpr(s, o) : o; }

void rsel_choose_bits(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a), b = rsel_any(s, i->b), c = rsel_any(s, i->c);

	rsel_valu(s, r->op, rsel_dst(s, i), a, b, c);
}

void rsel_rotate(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = in_register(s, rsel_any(s, i->a));

	rsel_valu(s, r->op, rsel_dst(s, i), a, a, rdna_lir_imm((32 - (uint32_t)i->imm) & 31));
}

/* d = c + the sum of a's bytes times b's, which have signs; a's too if a_signed. The older cards know bytes with signs
 * alone. */
static void dot4(struct rsel *s, rsel_op d, rsel_op a, bool a_signed, rsel_op b, rsel_op c)
{
	if (s->gen == RDNA_GFX10_3) {
		rsel_valu(s, RDNA_V_DOT4_I32_I8, d, a, b, c);
		return;
	}
	b.mods = RDNA_NEG; /* which here says that there are signs */
	if (a_signed)
		a.mods = RDNA_NEG;
	rsel_valu(s, RDNA_V_DOT4_I32_IU8, d, a, b, c);
}

void rsel_dot4(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = in_register(s, rsel_any(s, i->a)), b = in_register(s, rsel_any(s, i->b)), c = rsel_any(s, i->c);

	dot4(s, rsel_dst(s, i), a, true, b, c);
}

void rsel_dot4u(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = in_register(s, rsel_any(s, i->a)), b = in_register(s, rsel_any(s, i->b)), c = rsel_any(s, i->c);

	if (s->gen != RDNA_GFX10_3) {
		dot4(s, rsel_dst(s, i), a, false, b, c);
		return;
	}
	rsel_op sum = rsel_new_vgpr(s), all = rsel_new_vgpr(s), less = rsel_new_vgpr(s);
	rsel_valu(s, RDNA_V_DOT4_I32_I8, sum, b, rsel_at_entry(s, RSEL_CONSTANT, 0x01010101), rdna_lir_imm(0));
	rsel_valu(s, RDNA_V_LSHL_ADD_U32, all, sum, rdna_lir_imm(7), c);
	rsel_valu(s, RDNA_V_XOR_B32, less, rdna_lir_imm(0x80808080u), rsel_to_vgpr(s, a), rsel_none());
	rsel_valu(s, RDNA_V_DOT4_I32_I8, rsel_dst(s, i), less, b, all);
}

void rsel_dot2b(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_vgpr(s, i->a), b = in_register(s, rsel_any(s, i->b));
	rsel_op half = rsel_new_vgpr(s), low = rsel_new_vgpr(s), other = rsel_new_vgpr(s), high = rsel_new_vgpr(s);

	rsel_valu(s, RDNA_V_AND_B32, half, rdna_lir_imm(0xffff), a, rsel_none());
	dot4(s, low, half, true, b, rdna_lir_imm(0));
	rsel_valu(s, RDNA_V_AND_B32, other, rdna_lir_imm(0xffff0000u), a, rsel_none());
	dot4(s, high, other, true, b, rdna_lir_imm(0));
	rsel_valu(s, RDNA_V_PERM_B32, rsel_dst(s, i), high, low, rdna_lir_imm(0x05040100));
}

void rsel_dot2h(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = in_register(s, rsel_any(s, i->a)), b = in_register(s, rsel_any(s, i->b)), c = rsel_any(s, i->c);

	if (rdna_has(RDNA_V_DOT2_I32_I16, s->gen)) {
		rsel_valu(s, RDNA_V_DOT2_I32_I16, rsel_dst(s, i), a, b, c);
		return;
	}
	rsel_op low = rsel_new_vgpr(s);
	rsel_valu(s, RDNA_V_MAD_I32_I16, low, a, b, c);
	a.mods = b.mods = RDNA_HIGH;
	rsel_valu(s, RDNA_V_MAD_I32_I16, rsel_dst(s, i), a, b, low);
}

void rsel_iadd_16(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = in_register(s, rsel_any(s, i->a)), b = in_register(s, rsel_any(s, i->b));

	rsel_valu(s, RDNA_V_PK_ADD_U16, rsel_dst(s, i), a, b, rsel_none());
}

void rsel_ilut16(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_vgpr(s, i->a), t[4];
	rsel_op index = rsel_new_vgpr(s), low = rsel_new_vgpr(s), high = rsel_new_vgpr(s), shifted = rsel_new_vgpr(s),
		which = rsel_new_vgpr(s);

	for (unsigned k = 0; k < 4; k++) {
		uint32_t word;
		memcpy(&word, lanes_table[i->imm] + 4 * k, 4);
		t[k] = rsel_at_entry(s, RSEL_CONSTANT, word);
	}
	rsel_valu(s, RDNA_V_AND_B32, index, rdna_lir_imm(0x07070707), a, rsel_none());
	rsel_valu(s, RDNA_V_PERM_B32, low, t[1], t[0], index);
	rsel_valu(s, RDNA_V_PERM_B32, high, t[3], t[2], index);
	rsel_valu(s, RDNA_V_LSHRREV_B32, shifted, rdna_lir_imm(1), a, rsel_none());
	rsel_valu(s, RDNA_V_AND_OR_B32, which, shifted, rsel_at_entry(s, RSEL_CONSTANT, 0x04040404),
	          rdna_lir_imm(0x03020100));
	rsel_valu(s, RDNA_V_PERM_B32, rsel_dst(s, i), high, low, which);
}
