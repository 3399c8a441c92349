/* jit/spirv/math.c - the rows of ops.def that one instruction of SPIR-V does, those of floats, masks and conditions,
 * and what is exchanged between lanes.
 *
 * Rule for editors: an instruction's own rounding and its way with NaN, -0 and denormals are what ops.def says, or it
 * is not used (the minimum of GLSL is not). What a driver may do otherwise is a choice (launch.h).
 */
#include "jit/spirv/spirv.h"

/* operands: in their order; 'i': the immediate, of the type of the result. */
static const struct row {
	uint16_t op;
	char operands[4];
} rows[IR_ROWS] = {
	[IR_fadd] = { SPV_FAdd, "ab" },
	[IR_fsub] = { SPV_FSub, "ab" },
	[IR_fmul] = { SPV_FMul, "ab" },
	[IR_dadd] = { SPV_FAdd, "ab" },
	[IR_dsub] = { SPV_FSub, "ab" },
	[IR_dmul] = { SPV_FMul, "ab" },
	[IR_ddiv] = { SPV_FDiv, "ab" },
	[IR_iadd] = { SPV_IAdd, "ab" },
	[IR_isub] = { SPV_ISub, "ab" },
	[IR_imul] = { SPV_IMul, "ab" },
	[IR_sadd] = { SPV_IAdd, "ab" },
	[IR_ssub] = { SPV_ISub, "ab" },
	[IR_smul] = { SPV_IMul, "ab" },
	[IR_aadd] = { SPV_IAdd, "ab" },
	[IR_ladd] = { SPV_IAdd, "ab" },
	[IR_lsub] = { SPV_ISub, "ab" },
	[IR_lmul] = { SPV_IMul, "ab" },
	[IR_saddi] = { SPV_IAdd, "ai" },
	[IR_aaddi] = { SPV_IAdd, "ai" },
	[IR_smuli] = { SPV_IMul, "ai" },
	[IR_sandi] = { SPV_BitwiseAnd, "ai" },
	[IR_sshli] = { SPV_ShiftLeftLogical, "ai" },
	[IR_sshri] = { SPV_ShiftRightArithmetic, "ai" },
	[IR_ishl] = { SPV_ShiftLeftLogical, "ai" },
	[IR_ishr] = { SPV_ShiftRightLogical, "ai" },
	[IR_isar] = { SPV_ShiftRightArithmetic, "ai" },
	[IR_lshl] = { SPV_ShiftLeftLogical, "ai" },
	[IR_lshr] = { SPV_ShiftRightLogical, "ai" },
	[IR_lsar] = { SPV_ShiftRightArithmetic, "ai" },
	[IR_iand] = { SPV_BitwiseAnd, "ab" },
	[IR_ior] = { SPV_BitwiseOr, "ab" },
	[IR_ixor] = { SPV_BitwiseXor, "ab" },
	[IR_land] = { SPV_BitwiseAnd, "ab" },
	[IR_lor] = { SPV_BitwiseOr, "ab" },
	[IR_lxor] = { SPV_BitwiseXor, "ab" },
	[IR_mand] = { SPV_LogicalAnd, "ab" },
	[IR_mor] = { SPV_LogicalOr, "ab" },
	[IR_mxor] = { SPV_LogicalNotEqual, "ab" },
	[IR_mnot] = { SPV_LogicalNot, "a" },
	[IR_cand] = { SPV_LogicalAnd, "ab" },
	[IR_cor] = { SPV_LogicalOr, "ab" },
	[IR_cxor] = { SPV_LogicalNotEqual, "ab" },
	[IR_cnot] = { SPV_LogicalNot, "a" },
	[IR_flt] = { SPV_FOrdLessThan, "ab" },
	[IR_fle] = { SPV_FOrdLessThanEqual, "ab" },
	[IR_feq] = { SPV_FOrdEqual, "ab" },
	[IR_fne] = { SPV_FUnordNotEqual, "ab" },
	[IR_dlt] = { SPV_FOrdLessThan, "ab" },
	[IR_dle] = { SPV_FOrdLessThanEqual, "ab" },
	[IR_deq] = { SPV_FOrdEqual, "ab" },
	[IR_dne] = { SPV_FUnordNotEqual, "ab" },
	[IR_ilt] = { SPV_SLessThan, "ab" },
	[IR_ile] = { SPV_SLessThanEqual, "ab" },
	[IR_ieq] = { SPV_IEqual, "ab" },
	[IR_ine] = { SPV_INotEqual, "ab" },
	[IR_igt] = { SPV_SGreaterThan, "ab" },
	[IR_ult] = { SPV_ULessThan, "ab" },
	[IR_ule] = { SPV_ULessThanEqual, "ab" },
	[IR_slt] = { SPV_SLessThan, "ab" },
	[IR_sle] = { SPV_SLessThanEqual, "ab" },
	[IR_seq] = { SPV_IEqual, "ab" },
	[IR_llt] = { SPV_SLessThan, "ab" },
	[IR_lle] = { SPV_SLessThanEqual, "ab" },
	[IR_leq] = { SPV_IEqual, "ab" },
	[IR_lne] = { SPV_INotEqual, "ab" },
	[IR_lult] = { SPV_ULessThan, "ab" },
	[IR_lule] = { SPV_ULessThanEqual, "ab" },
	[IR_fsel] = { SPV_Select, "abc" },
	[IR_isel] = { SPV_Select, "abc" },
	[IR_ssel] = { SPV_Select, "abc" },
	[IR_dsel] = { SPV_Select, "abc" },
	[IR_lsel] = { SPV_Select, "abc" },
	[IR_i2f] = { SPV_ConvertSToF, "a" },
	[IR_u2f] = { SPV_ConvertUToF, "a" },
	[IR_i2d] = { SPV_ConvertSToF, "a" },
	[IR_u2d] = { SPV_ConvertUToF, "a" },
	[IR_l2d] = { SPV_ConvertSToF, "a" },
	[IR_ul2d] = { SPV_ConvertUToF, "a" },
	[IR_f2d] = { SPV_FConvert, "a" },
	[IR_d2f] = { SPV_FConvert, "a" },
	[IR_i2l] = { SPV_SConvert, "a" },
	[IR_u2l] = { SPV_UConvert, "a" },
	[IR_l2i] = { SPV_UConvert, "a" },
	[IR_isplat] = { SPV_UConvert, "a" },
	[IR_fbits] = { SPV_Bitcast, "a" },
	[IR_ibits] = { SPV_Bitcast, "a" },
	[IR_dbits] = { SPV_Bitcast, "a" },
	[IR_lbits] = { SPV_Bitcast, "a" },
	[IR_iones] = { SPV_BitCount, "a" },
};

static const uint8_t glsl_rows[IR_ROWS] = {
	[IR_fround] = GLSL_RoundEven, [IR_dround] = GLSL_RoundEven, [IR_ffloor] = GLSL_Floor,
	[IR_dfloor] = GLSL_Floor,     [IR_fceil] = GLSL_Ceil,       [IR_dceil] = GLSL_Ceil,
	[IR_ftrunc] = GLSL_Trunc,     [IR_dtrunc] = GLSL_Trunc,     [IR_dsqrt] = GLSL_Sqrt,
};

enum spirv_type spirv_type_of(const struct spirv_emitter *e, uint16_t r)
{
	static const uint8_t types[] = { [IR_TYPE_f32] = SPIRV_F32, [IR_TYPE_i32] = SPIRV_U32, [IR_TYPE_m] = SPIRV_BOOL,
		                         [IR_TYPE_s] = SPIRV_U64,   [IR_TYPE_c] = SPIRV_BOOL,  [IR_TYPE_a] = SPIRV_U64,
		                         [IR_TYPE_f64] = SPIRV_F64, [IR_TYPE_i64] = SPIRV_U64 };
	return (enum spirv_type)types[e->ir->type[r]];
}

uint32_t spirv_get(struct spirv_emitter *e, uint16_t r)
{
	return e->ir->is_var[r] ? SPIRV_VALUE(&e->w, spirv_type_of(e, r), Load, e->value[r]) : e->value[r];
}

void spirv_set(struct spirv_emitter *e, uint16_t r, uint32_t value)
{
	if (e->ir->is_var[r])
		SPIRV_PUT(&e->w, e->w.code, Store, e->value[r], value);
	else
		e->value[r] = value;
}

static uint32_t immediate(struct spirv_emitter *e, const struct ir_ins *i)
{
	const enum spirv_type type = spirv_type_of(e, i->dst);
	const uint64_t bits = (uint64_t)i->imm;

	return spirv_constant(&e->w, type, type == SPIRV_U32 || type == SPIRV_F32 ? (uint32_t)bits : bits);
}

static bool one_instruction(struct spirv_emitter *e, const struct ir_ins *i)
{
	const struct row *r = &rows[ir_row(i)];
	uint32_t operand[3];
	size_t n = 0;

	if (!r->op)
		return false;
	for (const char *s = r->operands; *s; s++)
		operand[n++] = *s == 'i' ? immediate(e, i) : spirv_get(e, *s == 'a' ? i->a : *s == 'b' ? i->b : i->c);
	spirv_set(e, i->dst, spirv_make_value(&e->w, spirv_type_of(e, i->dst), (enum spv_op)r->op, operand, n));
	return true;
}

static bool one_of_glsl(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint8_t op = glsl_rows[ir_row(i)];
	const uint32_t a = op ? spirv_get(e, i->a) : 0;

	if (op)
		spirv_set(e, i->dst, spirv_glsl(&e->w, spirv_type_of(e, i->dst), (enum spv_glsl)op, &a, 1));
	return op != 0;
}

/* a where the comparison holds, else b, which is what NaNs give, and zeros of either sign. */
static void choose(struct spirv_emitter *e, const struct ir_ins *i, enum spv_op compare)
{
	const uint32_t operand[] = { spirv_get(e, i->a), spirv_get(e, i->b) },
		       is = spirv_make_value(&e->w, SPIRV_BOOL, compare, operand, 2);

	spirv_set(e, i->dst, SPIRV_VALUE(&e->w, spirv_type_of(e, i->dst), Select, is, operand[0], operand[1]));
}

/* Of the bits. */
static void change_sign(struct spirv_emitter *e, const struct ir_ins *i)
{
	struct spirv_writer *w = &e->w;
	const bool wide = i->type == IR_TYPE_f64, clears = i->op == IR_abs;
	const enum spirv_type bits = wide ? SPIRV_U64 : SPIRV_U32;
	const uint64_t sign = wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31,
		       by = clears ? (wide ? ~sign : (uint32_t)~sign) : sign;
	const uint32_t operand[] = { SPIRV_VALUE(w, bits, Bitcast, spirv_get(e, i->a)), spirv_constant(w, bits, by) },
		       changed = spirv_make_value(w, bits, clears ? SPV_BitwiseAnd : SPV_BitwiseXor, operand, 2);

	spirv_set(e, i->dst, SPIRV_VALUE(w, spirv_type_of(e, i->dst), Bitcast, changed));
}

/* The halves of doubles one by one: not every driver exchanges 64 bits. */
static void exchange(struct spirv_emitter *e, const struct ir_ins *i)
{
	struct spirv_writer *w = &e->w;
	const uint32_t a = spirv_get(e, i->a), scope = spirv_u32(w, SPV_SCOPE_Subgroup),
		       by = spirv_u32(w, (uint32_t)i->imm);
	uint32_t half[2];

	if (i->type == IR_TYPE_f32) {
		spirv_set(e, i->dst, SPIRV_VALUE(w, SPIRV_F32, GroupNonUniformShuffleXor, scope, a, by));
		return;
	}
	const uint32_t pair = SPIRV_VALUE(w, SPIRV_PAIR, Bitcast, a);
	for (uint32_t k = 0; k < 2; k++)
		half[k] = SPIRV_VALUE(w, SPIRV_U32, GroupNonUniformShuffleXor, scope,
		                      SPIRV_VALUE(w, SPIRV_U32, CompositeExtract, pair, k), by);
	spirv_set(e, i->dst,
	          SPIRV_VALUE(w, SPIRV_F64, Bitcast, SPIRV_VALUE(w, SPIRV_PAIR, CompositeConstruct, half[0], half[1])));
}

static void vote(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t operand[] = { spirv_u32(&e->w, SPV_SCOPE_Subgroup), spirv_get(e, i->a) };
	const enum spv_op op = i->op == IR_any ? SPV_GroupNonUniformAny : SPV_GroupNonUniformAll;

	spirv_set(e, i->dst, spirv_make_value(&e->w, SPIRV_BOOL, op, operand, 2));
}

bool spirv_math(struct spirv_emitter *e, const struct ir_ins *i)
{
	struct spirv_writer *w = &e->w;

	if (i->op == IR_const) {
		spirv_set(e, i->dst, immediate(e, i));
		return true;
	}
	if (i->op == IR_mov) {
		spirv_set(e, i->dst, spirv_get(e, i->a));
		return true;
	}
	switch (ir_row(i)) {
	case IR_ffma:
		spirv_set(e, i->dst, SPIRV_CALL(w, FMA, spirv_get(e, i->a), spirv_get(e, i->b), spirv_get(e, i->c)));
		return true;
	case IR_dfma:
		spirv_set(e, i->dst, SPIRV_CALL(w, FMA64, spirv_get(e, i->a), spirv_get(e, i->b), spirv_get(e, i->c)));
		return true;
	case IR_fdiv: spirv_set(e, i->dst, SPIRV_CALL(w, DIV, spirv_get(e, i->a), spirv_get(e, i->b))); return true;
	case IR_fsqrt: spirv_set(e, i->dst, SPIRV_CALL(w, SQRT, spirv_get(e, i->a))); return true;
	case IR_fmin:
	case IR_dmin: choose(e, i, SPV_FOrdLessThan); return true;
	case IR_fmax:
	case IR_dmax: choose(e, i, SPV_FOrdGreaterThan); return true;
	case IR_fabs:
	case IR_dabs:
	case IR_fneg:
	case IR_dneg: change_sign(e, i); return true;
	case IR_fxor:
	case IR_dxor: exchange(e, i); return true;
	case IR_any:
	case IR_all: vote(e, i); return true;
	case IR_imin:
	case IR_smin:
	case IR_lmin: choose(e, i, SPV_SLessThan); return true;
	case IR_imax:
	case IR_smax:
	case IR_lmax: choose(e, i, SPV_SGreaterThan); return true;
	case IR_umin:
	case IR_lumin: choose(e, i, SPV_ULessThan); return true;
	case IR_umax:
	case IR_lumax: choose(e, i, SPV_UGreaterThan); return true;
	case IR_lsplat:
		spirv_set(e, i->dst, spirv_get(e, i->a)); /* both are numbers of 64 bits */
		return true;
	default: return one_instruction(e, i) || one_of_glsl(e, i);
	}
}
