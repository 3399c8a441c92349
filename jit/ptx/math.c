/* jit/ptx/math.c - the rows of ops.def that compute: vectors of floats and integers, masks, scalars, conditions.
 *
 * Rule for editors: an instruction's own rounding and its way with NaN, -0 and denormals are what ops.def says, or it
 * is not used (min.f32 is not). A sequence writes its destination last, for it may be an operand.
 */
#include "jit/ir/lanes.h"
#include "jit/ptx/ptx.h"

typedef struct ptx_operand op;

static op word(struct ptx_emitter *e) { return ptx_new(&e->w, PTX_B32); }

/* Rows that one instruction does. shape: results and operands in the row's order; 'd', 'a', 'b', 'c', 'i'. */
static const struct row {
	uint16_t op;
	const char *shape;
} rows[IR_ROWS] = {
	[IR_fconst] = { PTX_MOV_B32, "di" },      [IR_fadd] = { PTX_ADD_F32, "dab" },
	[IR_fsub] = { PTX_SUB_F32, "dab" },       [IR_fmul] = { PTX_MUL_F32, "dab" },
	[IR_ffma] = { PTX_FMA_F32, "dabc" },      [IR_fdiv] = { PTX_DIV_F32, "dab" },
	[IR_fsqrt] = { PTX_SQRT_F32, "da" },      [IR_flt] = { PTX_LT_F32, "dab" },
	[IR_fle] = { PTX_LE_F32, "dab" },         [IR_fsel] = { PTX_SELP_B32, "dbca" },
	[IR_f2i] = { PTX_CVT_S32_F32, "da" },     [IR_fbits] = { PTX_MOV_B32, "da" },
	[IR_ibits] = { PTX_MOV_B32, "da" },       [IR_fmov] = { PTX_MOV_B32, "da" },
	[IR_imov] = { PTX_MOV_B32, "da" },        [IR_isplat] = { PTX_CVT_U32_U64, "da" },
	[IR_iadd] = { PTX_ADD_S32, "dab" },       [IR_isub] = { PTX_SUB_S32, "dab" },
	[IR_imul] = { PTX_MUL_S32, "dab" },       [IR_iand] = { PTX_AND_B32, "dab" },
	[IR_ior] = { PTX_OR_B32, "dab" },         [IR_ixor] = { PTX_XOR_B32, "dab" },
	[IR_ishl] = { PTX_SHL_B32, "dai" },       [IR_ishr] = { PTX_SHR_U32, "dai" },
	[IR_isar] = { PTX_SHR_S32, "dai" },       [IR_irotl] = { PTX_SHF_L_WRAP, "daai" },
	[IR_ishlv] = { PTX_SHL_B32, "dab" },      [IR_ishrv] = { PTX_SHR_U32, "dab" },
	[IR_imin] = { PTX_MIN_S32, "dab" },       [IR_imax] = { PTX_MAX_S32, "dab" },
	[IR_ieq] = { PTX_EQ_S32, "dab" },         [IR_igt] = { PTX_GT_S32, "dab" },
	[IR_isel] = { PTX_SELP_B32, "dbca" },     [IR_i2f] = { PTX_CVT_F32_S32, "da" },
	[IR_dot4] = { PTX_DP4A_S32, "dabc" },     [IR_dot4u] = { PTX_DP4A_U32, "dabc" },
	[IR_mand] = { PTX_AND_PRED, "dab" },      [IR_mor] = { PTX_OR_PRED, "dab" },
	[IR_mnot] = { PTX_NOT_PRED, "da" },       [IR_mmov] = { PTX_MOV_PRED, "da" },
	[IR_cand] = { PTX_AND_PRED, "dab" },      [IR_cor] = { PTX_OR_PRED, "dab" },
	[IR_cnot] = { PTX_NOT_PRED, "da" },       [IR_cmov] = { PTX_MOV_PRED, "da" },
	[IR_slt] = { PTX_LT_S64, "dab" },         [IR_sle] = { PTX_LE_S64, "dab" },
	[IR_seq] = { PTX_EQ_S64, "dab" },         [IR_ssel] = { PTX_SELP_B64, "dbca" },
	[IR_sconst] = { PTX_MOV_B64, "di" },      [IR_sadd] = { PTX_ADD_S64, "dab" },
	[IR_ssub] = { PTX_SUB_S64, "dab" },       [IR_smin] = { PTX_MIN_S64, "dab" },
	[IR_smax] = { PTX_MAX_S64, "dab" },       [IR_saddi] = { PTX_ADD_S64, "dai" },
	[IR_smuli] = { PTX_MUL_S64, "dai" },      [IR_sshli] = { PTX_SHL_B64, "dai" },
	[IR_sshri] = { PTX_SHR_S64, "dai" },      [IR_sandi] = { PTX_AND_B64, "dai" },
	[IR_smov] = { PTX_MOV_B64, "da" },        [IR_amov] = { PTX_MOV_B64, "da" },
	[IR_dconst] = { PTX_MOV_B64, "di" },      [IR_lconst] = { PTX_MOV_B64, "di" },
	[IR_dadd] = { PTX_ADD_F64, "dab" },       [IR_dsub] = { PTX_SUB_F64, "dab" },
	[IR_dmul] = { PTX_MUL_F64, "dab" },       [IR_dfma] = { PTX_FMA_F64, "dabc" },
	[IR_ddiv] = { PTX_DIV_F64, "dab" },       [IR_dsqrt] = { PTX_SQRT_F64, "da" },
	[IR_dlt] = { PTX_LT_F64, "dab" },         [IR_dle] = { PTX_LE_F64, "dab" },
	[IR_deq] = { PTX_EQ_F64, "dab" },         [IR_dne] = { PTX_NE_F64, "dab" },
	[IR_dsel] = { PTX_SELP_B64, "dbca" },     [IR_lsel] = { PTX_SELP_B64, "dbca" },
	[IR_dround] = { PTX_ROUND_F64, "da" },    [IR_dfloor] = { PTX_FLOOR_F64, "da" },
	[IR_dceil] = { PTX_CEIL_F64, "da" },      [IR_dtrunc] = { PTX_TRUNC_F64, "da" },
	[IR_dbits] = { PTX_MOV_B64, "da" },       [IR_lbits] = { PTX_MOV_B64, "da" },
	[IR_dmov] = { PTX_MOV_B64, "da" },        [IR_lmov] = { PTX_MOV_B64, "da" },
	[IR_lsplat] = { PTX_MOV_B64, "da" },      [IR_f2d] = { PTX_CVT_F64_F32, "da" },
	[IR_d2f] = { PTX_CVT_F32_F64, "da" },     [IR_i2d] = { PTX_CVT_F64_S32, "da" },
	[IR_u2d] = { PTX_CVT_F64_U32, "da" },     [IR_i2l] = { PTX_CVT_S64_S32, "da" },
	[IR_u2l] = { PTX_CVT_U64_U32, "da" },     [IR_l2i] = { PTX_CVT_U32_U64, "da" },
	[IR_l2d] = { PTX_CVT_F64_S64, "da" },     [IR_ul2d] = { PTX_CVT_F64_U64, "da" },
	[IR_ladd] = { PTX_ADD_S64, "dab" },       [IR_lsub] = { PTX_SUB_S64, "dab" },
	[IR_lmul] = { PTX_MUL_S64, "dab" },       [IR_land] = { PTX_AND_B64, "dab" },
	[IR_lor] = { PTX_OR_B64, "dab" },         [IR_lxor] = { PTX_XOR_B64, "dab" },
	[IR_lshl] = { PTX_SHL_B64, "dai" },       [IR_lshr] = { PTX_SHR_U64, "dai" },
	[IR_lsar] = { PTX_SHR_S64, "dai" },       [IR_lmin] = { PTX_MIN_S64, "dab" },
	[IR_lmax] = { PTX_MAX_S64, "dab" },       [IR_lumin] = { PTX_MIN_U64, "dab" },
	[IR_lumax] = { PTX_MAX_U64, "dab" },      [IR_llt] = { PTX_LT_S64, "dab" },
	[IR_lle] = { PTX_LE_S64, "dab" },         [IR_leq] = { PTX_EQ_S64, "dab" },
	[IR_lne] = { PTX_NE_S64, "dab" },         [IR_lult] = { PTX_LT_U64, "dab" },
	[IR_lule] = { PTX_LE_U64, "dab" },        [IR_feq] = { PTX_EQ_F32, "dab" },
	[IR_fne] = { PTX_NE_F32, "dab" },         [IR_ilt] = { PTX_LT_S32, "dab" },
	[IR_ile] = { PTX_LE_S32, "dab" },         [IR_ine] = { PTX_NE_S32, "dab" },
	[IR_ult] = { PTX_LT_U32, "dab" },         [IR_ule] = { PTX_LE_U32, "dab" },
	[IR_umin] = { PTX_MIN_U32, "dab" },       [IR_umax] = { PTX_MAX_U32, "dab" },
	[IR_imulh] = { PTX_MULHI_S32, "dab" },    [IR_umulh] = { PTX_MULHI_U32, "dab" },
	[IR_isarv] = { PTX_SHR_S32, "dab" },      [IR_iones] = { PTX_ONES_B32, "da" },
	[IR_iclz] = { PTX_CLZ_B32, "da" },        [IR_fround] = { PTX_ROUND_F32, "da" },
	[IR_ffloor] = { PTX_FLOOR_F32, "da" },    [IR_fceil] = { PTX_CEIL_F32, "da" },
	[IR_ftrunc] = { PTX_TRUNC_F32, "da" },    [IR_u2f] = { PTX_CVT_F32_U32, "da" },
	[IR_f2i_cut] = { PTX_CUT_S32_F32, "da" }, [IR_f2u_cut] = { PTX_CUT_U32_F32, "da" },
	[IR_mxor] = { PTX_XOR_PRED, "dab" },      [IR_cxor] = { PTX_XOR_PRED, "dab" },
	[IR_aadd] = { PTX_ADD_S64, "dab" },       [IR_aaddi] = { PTX_ADD_S64, "dai" },
};

/* Constants of 32 bits are written without a sign, as bits. */
static op immediate(const struct ir_ins *i)
{
	bool bits = i->op == IR_const && ir_types[i->type].bytes == 4;
	return ptx_imm(bits ? (int64_t)(uint32_t)(uint64_t)i->imm : i->imm);
}

/* 1 / x, which takes fewer instructions than other divisions. */
static bool reciprocal(struct ptx_emitter *e, const struct ir_ins *i)
{
	const struct ir_ins *one = &e->ir->ins[e->scan.reg[i->a].def];

	if (ir_row(i) != IR_fdiv || !e->ir->beside || e->ir->is_var[i->a] || ir_row(one) != IR_fconst ||
	    (uint32_t)(uint64_t)one->imm != UINT32_C(0x3f800000))
		return false;
	PTX_PUT(&e->w, RCP_F32, ptx_reg(e, i->dst), ptx_reg(e, i->b));
	return true;
}

static bool one_instruction(struct ptx_emitter *e, const struct ir_ins *i)
{
	const struct row *r = &rows[ir_row(i)];
	op operand[5];
	unsigned n = 0;

	if (!r->shape)
		return false;
	if (reciprocal(e, i))
		return true;
	for (const char *s = r->shape; *s; s++)
		operand[n++] = *s == 'd'   ? ptx_reg(e, i->dst)
		               : *s == 'a' ? ptx_reg(e, i->a)
		               : *s == 'b' ? ptx_reg(e, i->b)
		               : *s == 'c' ? ptx_reg(e, i->c)
		                           : immediate(i);
	ptx_put(&e->w, (enum ptx_op)r->op, operand, n);
	return true;
}

/* Whether a register is a constant float other than 0 and NaN. */
static bool is_number(const struct ptx_emitter *e, uint16_t r)
{
	const struct ir_ins *i = &e->ir->ins[e->scan.reg[r].def];
	const uint32_t size = (uint32_t)(uint64_t)i->imm & INT32_MAX;

	return !e->ir->is_var[r] && ir_row(i) == IR_fconst && size && size <= UINT32_C(0x7f800000);
}

/* a where it is less (greater), else b, which is what both NaN and zeros of either sign give. */
static void choose(struct ptx_emitter *e, const struct ir_ins *i, enum ptx_op compare)
{
	op p = ptx_new(&e->w, PTX_PRED), a = ptx_reg(e, i->a), b = ptx_reg(e, i->b);

	/* of a NaN and a number they give the number, and only zeros are equal and differ in bits */
	if (e->ir->beside && ir_facts_of(i)->dst == IR_TYPE_f32 && is_number(e, i->b)) {
		PTX_PUT_OP(&e->w, compare == PTX_LT_F32 ? PTX_MIN_F32 : PTX_MAX_F32, ptx_reg(e, i->dst), a, b);
		return;
	}
	PTX_PUT_OP(&e->w, compare, p, a, b);
	PTX_PUT(&e->w, SELP_B32, ptx_reg(e, i->dst), a, b, p);
}

static op halves(struct ptx_emitter *e, uint16_t r, op half[2])
{
	half[0] = ptx_new(&e->w, PTX_B16);
	half[1] = ptx_new(&e->w, PTX_B16);
	op both = { .kind = PTX_TUPLE, .class = PTX_B16, .n = 2, .reg = { half[0].reg[0], half[1].reg[0] } };
	PTX_PUT(&e->w, UNPACK_HALVES, both, ptx_reg(e, r));
	return both;
}

static void widen_half(struct ptx_emitter *e, const struct ir_ins *i)
{
	op half[2];

	halves(e, i->a, half);
	PTX_PUT(&e->w, CVT_F32_F16, ptx_reg(e, i->dst), half[i->imm]);
}

static void dot_halves(struct ptx_emitter *e, const struct ir_ins *i)
{
	op a[2], b[2], low = word(e);

	halves(e, i->a, a);
	halves(e, i->b, b);
	PTX_PUT(&e->w, MAD_WIDE_S16, low, a[0], b[0], ptx_reg(e, i->c));
	PTX_PUT(&e->w, MAD_WIDE_S16, ptx_reg(e, i->dst), a[1], b[1], low);
}

/* Two sums, of the lower two bytes and of the upper two. */
static void dot_bytes(struct ptx_emitter *e, const struct ir_ins *i)
{
	op a = ptx_reg(e, i->a), b = ptx_reg(e, i->b), low = word(e), high = word(e), x = word(e), y = word(e);

	PTX_PUT(&e->w, AND_B32, low, a, ptx_imm(0xffff));
	PTX_PUT(&e->w, AND_B32, high, a, ptx_imm(0xffff0000));
	PTX_PUT(&e->w, DP4A_U32, x, low, b, ptx_imm(0));
	PTX_PUT(&e->w, DP4A_U32, y, high, b, ptx_imm(0));
	PTX_PUT(&e->w, PRMT_B32, ptx_reg(e, i->dst), x, y, ptx_imm(0x5410));
}

static void add_halves(struct ptx_emitter *e, const struct ir_ins *i)
{
	op a = ptx_reg(e, i->a), b = ptx_reg(e, i->b), low = word(e), x = word(e), y = word(e), high = word(e);

	PTX_PUT(&e->w, ADD_S32, low, a, b);
	PTX_PUT(&e->w, AND_B32, x, a, ptx_imm(0xffff0000));
	PTX_PUT(&e->w, AND_B32, y, b, ptx_imm(0xffff0000));
	PTX_PUT(&e->w, ADD_S32, high, x, y);
	PTX_PUT(&e->w, PRMT_B32, ptx_reg(e, i->dst), low, high, ptx_imm(0x7610));
}

/* Four entries of a table as a word. */
static op entries(struct ptx_emitter *e, int64_t table, unsigned from)
{
	op o = word(e);
	uint32_t bytes = 0;

	for (unsigned k = 0; k < 4; k++)
		bytes |= (uint32_t)(uint8_t)lanes_table[table][from + k] << 8 * k;
	PTX_PUT(&e->w, MOV_B32, o, ptx_imm(bytes));
	return o;
}

/* Each byte's lower three bits choose among 8 entries, twice; its fourth bit between the two. prmt takes its choices as
 * four nibbles; a nibble's fourth bit would ask for a sign. */
static void look_up(struct ptx_emitter *e, const struct ir_ins *i)
{
	op a = ptx_reg(e, i->a), three = word(e), pairs = word(e), by = word(e), choice = word(e), low = word(e),
	   high = word(e), fourth = word(e), upper = word(e);

	PTX_PUT(&e->w, AND_B32, three, a, ptx_imm(0x07070707));
	PTX_PUT(&e->w, SHR_U32, pairs, three, ptx_imm(4));
	PTX_PUT(&e->w, OR_B32, by, three, pairs);
	PTX_PUT(&e->w, PRMT_B32, choice, by, ptx_imm(0), ptx_imm(0x4420));
	PTX_PUT(&e->w, PRMT_B32, low, entries(e, i->imm, 0), entries(e, i->imm, 4), choice);
	PTX_PUT(&e->w, PRMT_B32, high, entries(e, i->imm, 8), entries(e, i->imm, 12), choice);
	PTX_PUT(&e->w, SHL_B32, fourth, a, ptx_imm(4));
	PTX_PUT(&e->w, PRMT_B32, upper, fourth, ptx_imm(0), ptx_imm(0xba98));
	PTX_PUT(&e->w, LOP3_B32, ptx_reg(e, i->dst), upper, high, low, ptx_imm(0xca));
}

/* a / b without signs; by 0 the instruction may give anything. */
static op quotient(struct ptx_emitter *e, op a, op b)
{
	op q = word(e), defined = word(e), none = ptx_new(&e->w, PTX_PRED);

	PTX_PUT(&e->w, DIV_U32, q, a, b);
	PTX_PUT(&e->w, EQ_B32, none, b, ptx_imm(0));
	PTX_PUT(&e->w, SELP_B32, defined, ptx_imm(0xffffffff), q, none);
	return defined;
}

static op product(struct ptx_emitter *e, op a, op b)
{
	op p = word(e);

	PTX_PUT(&e->w, MUL_S32, p, a, b);
	return p;
}

/* a, negated where sign is all ones: a signed number from or to its magnitude. */
static op with_sign(struct ptx_emitter *e, op a, op sign)
{
	op inverted = word(e), d = word(e);

	PTX_PUT(&e->w, XOR_B32, inverted, a, sign);
	PTX_PUT(&e->w, SUB_S32, d, inverted, sign);
	return d;
}

/* By 0 the quotient is -1, whatever sign it would get. */
static op signed_quotient(struct ptx_emitter *e, op a, op b)
{
	op sign_a = word(e), sign_b = word(e), sign = word(e), q = word(e), none = ptx_new(&e->w, PTX_PRED);

	PTX_PUT(&e->w, SHR_S32, sign_a, a, ptx_imm(31));
	PTX_PUT(&e->w, SHR_S32, sign_b, b, ptx_imm(31));
	PTX_PUT(&e->w, XOR_B32, sign, sign_a, sign_b);
	op size_a = with_sign(e, a, sign_a), size_b = with_sign(e, b, sign_b),
	   d = with_sign(e, quotient(e, size_a, size_b), sign);
	PTX_PUT(&e->w, EQ_B32, none, b, ptx_imm(0));
	PTX_PUT(&e->w, SELP_B32, q, ptx_imm(0xffffffff), d, none);
	return q;
}

/* idiv, irem, udiv, urem */
static void divide_lanes(struct ptx_emitter *e, const struct ir_ins *i)
{
	op a = ptx_reg(e, i->a), b = ptx_reg(e, i->b);
	const bool has_sign = i->op == IR_div || i->op == IR_rem;
	op q = has_sign ? signed_quotient(e, a, b) : quotient(e, a, b);

	if (i->op == IR_div || i->op == IR_div_unsigned)
		PTX_PUT(&e->w, MOV_B32, ptx_reg(e, i->dst), q);
	else
		PTX_PUT(&e->w, SUB_S32, ptx_reg(e, i->dst), a, product(e, q, b));
}

bool ptx_math(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;

	switch (ir_row(i)) {
	case IR_fmin: choose(e, i, PTX_LT_F32); return true;
	case IR_fmax: choose(e, i, PTX_GT_F32); return true;
	case IR_fabs: PTX_PUT(w, AND_B32, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_imm(0x7fffffff)); return true;
	case IR_fneg: PTX_PUT(w, XOR_B32, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_imm(0x80000000)); return true;
	case IR_fhalf: widen_half(e, i); return true;
	case IR_iconst: PTX_PUT(w, MOV_B32, ptx_reg(e, i->dst), immediate(i)); return true;
	case IR_ilane: PTX_PUT(w, MOV_B32, ptx_reg(e, i->dst), e->lane); return true;
	case IR_ibsel:
		PTX_PUT(w, LOP3_B32, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_reg(e, i->b), ptx_reg(e, i->c),
		        ptx_imm(0xca));
		return true;
	case IR_idiv:
	case IR_irem:
	case IR_udiv:
	case IR_urem: divide_lanes(e, i); return true;
	case IR_dot2h: dot_halves(e, i); return true;
	case IR_dot2b: dot_bytes(e, i); return true;
	case IR_iadd_16: add_halves(e, i); return true;
	case IR_ilut16: look_up(e, i); return true;
	case IR_any: PTX_PUT(w, VOTE_ANY, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_imm(0xffffffff)); return true;
	case IR_all: PTX_PUT(w, VOTE_ALL, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_imm(0xffffffff)); return true;
	case IR_fxor:
		PTX_PUT(w, SHFL_BFLY, ptx_reg(e, i->dst), ptx_reg(e, i->a), ptx_imm(i->imm), ptx_imm(31),
		        ptx_imm(0xffffffff));
		return true;
	default: return ptx_wide(e, i) || one_instruction(e, i);
	}
}

/* Both within 32 bits, so half a product is enough. */
static void multiply(struct ptx_emitter *e, const struct ir_ins *i)
{
	op a = word(e), b = word(e);

	PTX_PUT(&e->w, CVT_U32_U64, a, ptx_reg(e, i->a));
	PTX_PUT(&e->w, CVT_U32_U64, b, ptx_reg(e, i->b));
	PTX_PUT(&e->w, MUL_WIDE_S32, ptx_reg(e, i->dst), a, b);
}

/* By a product, for the driver's compiler makes even a division by a constant some twenty instructions. Let l be the
 * least with d <= 2^l, and m be 2^(31+l) / d rounded up, which is below 2^32. Then m * d is less than 2^l too large,
 * and a * m >> 31 + l is the quotient of every a below 2^31 (Granlund and Montgomery). */
static void divide(struct ptx_emitter *e, const struct ir_ins *i)
{
	op a = word(e), product = ptx_new(&e->w, PTX_B64), d = ptx_reg(e, i->dst);
	int64_t log = 0;

	while (INT64_C(1) << log < i->imm)
		log++;
	if (INT64_C(1) << log == i->imm) {
		PTX_PUT(&e->w, SHR_S64, d, ptx_reg(e, i->a), ptx_imm(log));
		return;
	}
	int64_t factor = (int64_t)(((UINT64_C(1) << (31 + log)) + (uint64_t)i->imm - 1) / (uint64_t)i->imm);
	PTX_PUT(&e->w, CVT_U32_U64, a, ptx_reg(e, i->a));
	PTX_PUT(&e->w, MUL_WIDE_U32, product, a, ptx_imm(factor));
	PTX_PUT(&e->w, SHR_S64, d, product, ptx_imm(31 + log));
}

/* A program's calls are not in parts. */
static void number_of(struct ptx_emitter *e, const struct ir_ins *i, const char *special)
{
	op o = word(e);

	if (e->scan.shared_arg) {
		PTX_PUT(&e->w, MOV_B64, ptx_reg(e, i->dst), ptx_imm(i->op == IR_parts));
		return;
	}
	PTX_PUT(&e->w, MOV_U32_SPECIAL, o, ptx_name(special));
	PTX_PUT(&e->w, CVT_U64_U32, ptx_reg(e, i->dst), o);
}

bool ptx_scalar(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;

	switch (ir_row(i)) {
	case IR_smul: multiply(e, i); return true;
	case IR_sdivi: divide(e, i); return true;
	case IR_arg: PTX_PUT(w, MOV_B64, ptx_reg(e, i->dst), e->arg); return true;
	case IR_begin: PTX_PUT(w, MOV_B64, ptx_reg(e, i->dst), e->begin); return true;
	case IR_end: PTX_PUT(w, MOV_B64, ptx_reg(e, i->dst), e->end); return true;
	case IR_wave: PTX_PUT(w, CVT_U64_U32, ptx_reg(e, i->dst), e->wave); return true;
	case IR_part: number_of(e, i, "%ctaid.x"); return true;
	case IR_parts: number_of(e, i, "%nctaid.x"); return true;
	default: return false;
	}
}
