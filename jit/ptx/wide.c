/* jit/ptx/wide.c - rows of lanes of 64 bits that take more than one instruction.
 *
 * Rule for editors: that of math.c.
 */
#include "jit/ptx/ptx.h"

typedef struct ptx_operand op;

/* As choose() of math.c. */
static void choose(struct ptx_emitter *e, const struct ir_ins *i, enum ptx_op compare)
{
	op p = ptx_new(&e->w, PTX_PRED), a = ptx_reg(e, i->a), b = ptx_reg(e, i->b);

	PTX_PUT_OP(&e->w, compare, p, a, b);
	PTX_PUT(&e->w, SELP_B64, ptx_reg(e, i->dst), a, b, p);
}

/* The instructions take counts of 32 bits, and those beyond the width as the width. */
static void shift_by(struct ptx_emitter *e, const struct ir_ins *i, enum ptx_op shift)
{
	op max = ptx_new(&e->w, PTX_B64), count = ptx_new(&e->w, PTX_B32);

	PTX_PUT(&e->w, MIN_U64, max, ptx_reg(e, i->b), ptx_imm(64));
	PTX_PUT(&e->w, CVT_U32_U64, count, max);
	PTX_PUT_OP(&e->w, shift, ptx_reg(e, i->dst), ptx_reg(e, i->a), count);
}

/* Of a NaN the instruction gives another number than 0. */
static void cut(struct ptx_emitter *e, const struct ir_ins *i, enum ptx_op convert)
{
	const bool wide = ir_facts_of(i)->dst == IR_TYPE_i64;
	op number = ptx_new(&e->w, PTX_PRED), some = ptx_new(&e->w, wide ? PTX_B64 : PTX_B32), a = ptx_reg(e, i->a);

	PTX_PUT(&e->w, EQ_F64, number, a, a);
	PTX_PUT_OP(&e->w, convert, some, a);
	if (!wide) {
		PTX_PUT(&e->w, SELP_B32, ptx_reg(e, i->dst), some, ptx_imm(0), number);
		return;
	}
	op zero = ptx_new(&e->w, PTX_B64);
	PTX_PUT(&e->w, MOV_B64, zero, ptx_imm(0));
	PTX_PUT(&e->w, SELP_B64, ptx_reg(e, i->dst), some, zero, number);
}

static op pair_of(const op half[2])
{
	return (op){ .kind = PTX_TUPLE, .class = PTX_B32, .n = 2, .reg = { half[0].reg[0], half[1].reg[0] } };
}

static void exchange(struct ptx_emitter *e, const struct ir_ins *i)
{
	op from[2], to[2];

	for (unsigned k = 0; k < 2; k++) {
		from[k] = ptx_new(&e->w, PTX_B32);
		to[k] = ptx_new(&e->w, PTX_B32);
	}
	PTX_PUT(&e->w, UNPACK_B64, pair_of(from), ptx_reg(e, i->a));
	for (unsigned k = 0; k < 2; k++)
		PTX_PUT(&e->w, SHFL_BFLY, to[k], from[k], ptx_imm(i->imm), ptx_imm(31), ptx_imm(0xffffffff));
	PTX_PUT(&e->w, PACK_B64, ptx_reg(e, i->dst), pair_of(to));
}

bool ptx_wide(struct ptx_emitter *e, const struct ir_ins *i)
{
	switch (ir_row(i)) {
	case IR_dmin: choose(e, i, PTX_LT_F64); return true;
	case IR_dmax: choose(e, i, PTX_GT_F64); return true;
	case IR_dabs: PTX_PUT(&e->w, AND_B64, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_imm(INT64_MAX)); return true;
	case IR_dneg: PTX_PUT(&e->w, XOR_B64, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_imm(INT64_MIN)); return true;
	case IR_lshlv: shift_by(e, i, PTX_SHL_B64); return true;
	case IR_lshrv: shift_by(e, i, PTX_SHR_U64); return true;
	case IR_lsarv: shift_by(e, i, PTX_SHR_S64); return true;
	case IR_d2i_cut: cut(e, i, PTX_CUT_S32_F64); return true;
	case IR_d2u_cut: cut(e, i, PTX_CUT_U32_F64); return true;
	case IR_d2l_cut: cut(e, i, PTX_CUT_S64_F64); return true;
	case IR_d2ul_cut: cut(e, i, PTX_CUT_U64_F64); return true;
	case IR_dxor: exchange(e, i); return true;
	default: return false;
	}
}
