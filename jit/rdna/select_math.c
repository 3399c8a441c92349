/* jit/rdna/select_math.c - arithmetic on vectors of floats, masks, choices.
 *
 * Owns: the rows for F, I and M; integers and dot products are select_integer.c's. Division and square root are
 * sequences around the hardware's approximations that end in the correctly rounded result, whichever way the
 * approximation was off. Rule for editors: a sequence writes its destination last, for it may be an operand.
 */
#include "jit/ir/lanes.h"
#include "jit/rdna/select.h"

static rsel_op negative(rsel_op o)
{
	o.mods ^= RDNA_NEG;
	return o;
}

static rsel_op bits(float f) { return rdna_lir_imm(f32_bits(f)); }

/* --- plain rows */

void rsel_unary(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a);

	rsel_valu(s, r->op, rsel_dst(s, i), a, rsel_none(), rsel_none());
}

void rsel_binary(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a), b = rsel_any(s, i->b);

	if (r->other && !rsel_in_vgpr(s, b) && rsel_in_vgpr(s, a))
		rsel_valu(s, r->other, rsel_dst(s, i), b, a, rsel_none());
	else
		rsel_valu(s, r->op, rsel_dst(s, i), a, b, rsel_none());
}

/* The short encoding of a sum of products adds to its destination; two more have a constant for a factor or the
 * summand. */
static void rsel_fma(struct rsel *s, const struct ir_ins *i, rsel_op a, rsel_op b, rsel_op c)
{
	rsel_op d = rsel_dst(s, i);

	if (rsel_in_vgpr(s, a) && !rsel_in_vgpr(s, b)) {
		rsel_op t = a;
		a = b;
		b = t;
	}
	bool plain = !a.mods && !b.mods && !c.mods, literal = c.kind == RDNA_LIR_CONST && !rsel_inline(c.value);
	if (plain && rsel_in_vgpr(s, c) && c.reg == d.reg && c.sub == d.sub && rsel_in_vgpr(s, b))
		rsel_valu(s, RDNA_V_FMAC_F32, d, a, b, rsel_none());
	else if (plain && literal && rsel_in_vgpr(s, a) && rsel_in_vgpr(s, b))
		rsel_valu(s, RDNA_V_FMAAK_F32, d, a, b, c);
	else if (plain && a.kind == RDNA_LIR_CONST && !rsel_inline(a.value) && rsel_in_vgpr(s, b) && rsel_in_vgpr(s, c))
		rsel_valu(s, RDNA_V_FMAMK_F32, d, b, a, c);
	else
		rsel_valu(s, RDNA_V_FMA_F32, d, a, b, c);
}

/* The register of a half that was not widened, as an operand that is widened in the instruction; else false. */
static bool as_half(struct rsel *s, uint16_t r, rsel_op *o)
{
	const struct ir_ins *i = rsel_definition(s, r);

	if (s->scan.reg[r].fold != RSCAN_HALF)
		return false;
	*o = i->op == IR_load ? s->value[r].o : rsel_any(s, i->a);
	if (o->kind == RDNA_LIR_CONST)
		*o = rsel_to_vgpr(s, *o);
	o->mods = RDNA_FLIP | (i->op == IR_half && i->imm ? RDNA_HIGH : 0);
	return true;
}

/* A sum of products, halves among them, which takes constants as registers alone. A product is one plus -0, which
 * changes no result. */
static bool rsel_mixed(struct rsel *s, const struct ir_ins *i)
{
	const uint16_t reg[3] = { i->a, i->b, i->c };
	const struct rscan_reg *scan = s->scan.reg;
	rsel_op o[3];
	bool half[3];

	if (scan[i->a].fold != RSCAN_HALF && scan[i->b].fold != RSCAN_HALF && scan[i->c].fold != RSCAN_HALF)
		return false;
	for (unsigned k = 0; k < 3; k++)
		half[k] = as_half(s, reg[k], &o[k]);
	for (unsigned k = 0; k < 3; k++) {
		if (!half[k])
			o[k] = reg[k] ? rsel_any(s, reg[k]) : rsel_at_entry(s, RSEL_CONSTANT, 0x80000000u);
		if (o[k].kind == RDNA_LIR_CONST)
			o[k] = rsel_to_vgpr(s, o[k]);
	}
	rsel_valu(s, RDNA_V_FMA_MIX_F32, rsel_dst(s, i), o[0], o[1], o[2]);
	return true;
}

static void rsel_ffma(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	if (rsel_mixed(s, i))
		return;
	/* operands may append instructions: in a fixed order, whichever compiles this */
	rsel_op c = rsel_any(s, i->c), b = rsel_any(s, i->b), a = rsel_any(s, i->a);
	rsel_fma(s, i, a, b, c);
}

static void rsel_fmul(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	if (!rsel_mixed(s, i))
		rsel_binary(s, i, r);
}

/* fneg, fabs where a user takes no modifiers. */
static void rsel_sign(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a);

	if (a.mods & RDNA_ABS || (a.mods && i->op == IR_abs)) {
		bool minus = i->op == IR_neg && !(a.mods & RDNA_NEG);
		a.mods = 0;
		rsel_valu(s, minus ? RDNA_V_OR_B32 : RDNA_V_AND_B32, rsel_dst(s, i),
		          rdna_lir_imm(minus ? 0x80000000u : 0x7fffffffu), a, rsel_none());
	} else if (a.mods) { /* the sign flipped twice */
		a.mods = 0;
		rsel_mov(s, rsel_dst(s, i), a);
	} else {
		rsel_valu(s, r->op, rsel_dst(s, i), rdna_lir_imm(r->extra), a, rsel_none());
	}
}

/* fmov, imov, fbits, ibits and constants written into variables; isplat of a variable. */
static void rsel_move(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = i->op == IR_const   ? rdna_lir_imm((uint32_t)i->imm)
	            : i->op == IR_lane  ? rsel_at_entry(s, RSEL_LANES, 1)
	            : i->op == IR_splat ? rsel_scalar(s, i->a).o
	                                : rsel_any(s, i->a);

	if (i->op == IR_splat && !s->ir->is_var[i->dst]) {
		rsel_op copy = rsel_new_sgpr(s);
		rsel_mov(s, copy, a);
		rsel_give_uniform(s, i, copy);
	} else {
		rsel_mov(s, rsel_dst(s, i), a);
	}
}

/* --- comparisons, masks, choices */

static void rsel_compare(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a), b = rsel_any(s, i->b);

	rsel_valu(s, r->op, rsel_dst(s, i), a, b, rsel_none());
}

static void rsel_mask_op(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_mask(s, i->a), b = i->b ? rsel_mask(s, i->b) : rsel_none();

	rsel_salu(s, r->op, rsel_dst(s, i), a, b);
}

void rsel_choose(struct rsel *s, rsel_op d, rsel_op mask, rsel_op yes, rsel_op no)
{
	rsel_valu(s, RDNA_V_CNDMASK_B32, d, no, yes, mask);
}

static void rsel_select(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op yes = rsel_any(s, i->b), no = rsel_any(s, i->c);

	rsel_op mask = rsel_mask(s, i->a), d = rsel_dst(s, i);
	rsel_choose(s, d, mask, yes, no);
}

/* The instructions' minimum and maximum give the other operand for a NaN and order the zeros: they mean what ops.def
 * does when b is a constant that is neither. op: that instruction; other: the comparison that says "take a". */
static void rsel_fminmax(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_any(s, i->a), b = rsel_any(s, i->b);
	uint32_t magnitude = b.value & 0x7fffffffu;

	if (b.kind == RDNA_LIR_CONST && magnitude && magnitude <= 0x7f800000u) {
		rsel_valu(s, r->op, rsel_dst(s, i), b, a, rsel_none());
		return;
	}
	rsel_op less = rsel_new_sgpr(s);
	rsel_valu(s, r->other, less, a, b, rsel_none());
	rsel_choose(s, rsel_dst(s, i), less, a, b);
}

/* --- across lanes */

void rsel_exchange(struct rsel *s, rsel_op d, rsel_op a, unsigned by)
{
	if (by < 16) {
		struct rdna_lir_ins *n = rsel_valu(s, RDNA_V_MOV_B32, d, a, rsel_none(), rsel_none());
		n->dpp = rdna_dpp16(RDNA_ROW_XMASK(by));
		return;
	}
	/* each of 16 takes the lane of its own number in the other 16 */
	rsel_op high = rsel_at_entry(s, RSEL_CONSTANT, 0xfedcba98u), low = rsel_at_entry(s, RSEL_CONSTANT, 0x76543210);
	rsel_valu(s, RDNA_V_PERMLANEX16_B32, d, a, low, high);
}

static void rsel_fxor(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_vgpr(s, i->a), d = rsel_dst(s, i);

	rsel_exchange(s, d, a, (unsigned)i->imm);
}

/* --- division and square root */

/* 1 where the significand of d is all ones, else 0. */
static rsel_op all_ones(struct rsel *s, rsel_op d)
{
	rsel_op next = rsel_new_vgpr(s), carry = rsel_new_vgpr(s), one = rsel_new_vgpr(s);

	rsel_valu(s, RDNA_V_ADD_NC_U32, next, rdna_lir_imm(1), d, rsel_none());
	rsel_valu(s, RDNA_V_XOR_B32, carry, next, d, rsel_none());
	rsel_valu(s, RDNA_V_BFE_U32, one, carry, rdna_lir_imm(23), rdna_lir_imm(1));
	return one;
}

/* The operands are scaled to where nothing over- or underflows, the inverse and the quotient are refined, and the last
 * sum of products rounds. That is right if the inverse is the correctly rounded one; an approximation off by one unit
 * is made that by one step of refinement, with the exception of divisors whose significand is all ones: there it can
 * get stuck at the power of two just below. VCC says which lanes' results are scaled back; the fixup does all that is
 * no number. */
static void rsel_fdiv(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_vgpr(s, i->a), b = rsel_vgpr(s, i->b), none = rsel_none(), one = bits(1);
	rsel_op v[10];
	enum { BELOW, ABOVE, INVERSE, E0, REFINED, BETTER, Q0, E1, Q1, E2 };

	for (unsigned k = 0; k < 10; k++)
		v[k] = rsel_new_vgpr(s);
	rsel_valu(s, RDNA_V_DIV_SCALE_F32, v[BELOW], b, b, a)->d[1] = rdna_lir_fixed(RDNA_NULL, 1);
	rsel_valu(s, RDNA_V_RCP_F32, v[INVERSE], v[BELOW], none, none);
	rsel_valu(s, RDNA_V_FMA_F32, v[E0], negative(v[BELOW]), v[INVERSE], one);
	rsel_valu(s, RDNA_V_FMA_F32, v[REFINED], v[E0], v[INVERSE], v[INVERSE]);
	rsel_valu(s, RDNA_V_OR_B32, v[BETTER], all_ones(s, v[BELOW]), v[REFINED], none);
	rsel_valu(s, RDNA_V_DIV_SCALE_F32, v[ABOVE], a, b, a)->d[1] = rdna_lir_fixed(RDNA_VCC_LO, 1);
	rsel_valu(s, RDNA_V_MUL_F32, v[Q0], v[ABOVE], v[BETTER], none);
	rsel_valu(s, RDNA_V_FMA_F32, v[E1], negative(v[BELOW]), v[Q0], v[ABOVE]);
	rsel_valu(s, RDNA_V_FMA_F32, v[Q1], v[E1], v[BETTER], v[Q0]);
	rsel_valu(s, RDNA_V_FMA_F32, v[E2], negative(v[BELOW]), v[Q1], v[ABOVE]);
	rsel_op q = rsel_new_vgpr(s);
	rsel_valu(s, RDNA_V_DIV_FMAS_F32, q, v[E2], v[BETTER], v[Q1]);
	rsel_valu(s, RDNA_V_DIV_FIXUP_F32, rsel_dst(s, i), q, b, a);
}

static rsel_op mask_of(struct rsel *s, unsigned op, rsel_op a, rsel_op b)
{
	rsel_op m = rsel_new_sgpr(s);

	rsel_valu(s, op, m, a, b, rsel_none());
	return m;
}

static rsel_op chosen(struct rsel *s, rsel_op mask, rsel_op yes, rsel_op no)
{
	rsel_op d = rsel_new_vgpr(s);

	rsel_choose(s, d, mask, yes, no);
	return d;
}

static rsel_op computed(struct rsel *s, unsigned op, rsel_op a, rsel_op b, rsel_op c)
{
	rsel_op d = rsel_new_vgpr(s);

	rsel_valu(s, op, d, a, b, c);
	return d;
}

/* The hardware's root is off by one unit at most: the sign of x - root * neighbour says on which side of the middle
 * between them x's root lies. Small arguments are moved up by 2^32 first, so that products are exact enough; zeros and
 * infinity are their own roots. */
static void rsel_fsqrt(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	enum { ZEROS_AND_INFINITY = 32 | 64 | 512 };
	rsel_op x = rsel_vgpr(s, i->a), none = rsel_none(), zero = rdna_lir_imm(0);

	rsel_op small = mask_of(s, RDNA_V_CMP_GT_F32, bits(0x1p-96f), x);
	rsel_op moved = chosen(s, small, computed(s, RDNA_V_MUL_F32, bits(0x1p32f), x, none), x);
	rsel_op root = computed(s, RDNA_V_SQRT_F32, moved, none, none);
	rsel_op below = computed(s, RDNA_V_ADD_NC_U32, rdna_lir_imm(UINT32_MAX), root, none),
		above = computed(s, RDNA_V_ADD_NC_U32, rdna_lir_imm(1), root, none);
	rsel_op rest_below = computed(s, RDNA_V_FMA_F32, negative(below), root, moved),
		rest_above = computed(s, RDNA_V_FMA_F32, negative(above), root, moved);
	rsel_op lower = chosen(s, mask_of(s, RDNA_V_CMP_GE_F32, zero, rest_below), below, root);
	rsel_op right = chosen(s, mask_of(s, RDNA_V_CMP_LT_F32, zero, rest_above), above, lower);
	rsel_op back = chosen(s, small, computed(s, RDNA_V_MUL_F32, bits(0x1p-16f), right, none), right);
	rsel_choose(s, rsel_dst(s, i), mask_of(s, RDNA_V_CMP_CLASS_F32, x, rdna_lir_imm(ZEROS_AND_INFINITY)), x, back);
}

/* --- the rows */

#define RSEL(fn, x) \
	{ \
		.select = fn, .op = RDNA_##x \
	}
#define RSEL_SWAP(fn, x, y) \
	{ \
		.select = fn, .op = RDNA_##x, .other = RDNA_##y \
	}
#define RSEL_BOTH(fn, x) RSEL_SWAP(fn, x, x)
#define RSEL_MOVE \
	{ \
		.select = rsel_move \
	}

const struct rsel_rule rsel_math_rules[IR_ROWS] = {
	[IR_fconst] = RSEL_MOVE,
	[IR_iconst] = RSEL_MOVE,
	[IR_ilane] = RSEL_MOVE,
	[IR_isplat] = RSEL_MOVE,
	[IR_fmov] = RSEL_MOVE,
	[IR_imov] = RSEL_MOVE,
	[IR_fbits] = RSEL_MOVE,
	[IR_ibits] = RSEL_MOVE,
	[IR_fadd] = RSEL_BOTH(rsel_binary, V_ADD_F32),
	[IR_fsub] = RSEL_SWAP(rsel_binary, V_SUB_F32, V_SUBREV_F32),
	[IR_fmul] = RSEL_BOTH(rsel_fmul, V_MUL_F32),
	[IR_ffma] = { .select = rsel_ffma },
	[IR_fdiv] = { .select = rsel_fdiv },
	[IR_fsqrt] = { .select = rsel_fsqrt },
	[IR_fmin] = RSEL_SWAP(rsel_fminmax, V_MIN_NUM_F32, V_CMP_LT_F32),
	[IR_fmax] = RSEL_SWAP(rsel_fminmax, V_MAX_NUM_F32, V_CMP_GT_F32),
	[IR_fabs] = { .select = rsel_sign, .op = RDNA_V_AND_B32, .extra = 0x7fffffffu },
	[IR_fneg] = { .select = rsel_sign, .op = RDNA_V_XOR_B32, .extra = 0x80000000u },
	[IR_flt] = RSEL(rsel_compare, V_CMP_LT_F32),
	[IR_fle] = RSEL(rsel_compare, V_CMP_LE_F32),
	[IR_fsel] = { .select = rsel_select },
	[IR_f2i] = { .select = rsel_f2i },
	[IR_fhalf] = { .select = rsel_fhalf },
	[IR_iadd] = RSEL_BOTH(rsel_integer, V_ADD_NC_U32),
	[IR_isub] = RSEL_SWAP(rsel_integer, V_SUB_NC_U32, V_SUBREV_NC_U32),
	[IR_imul] = RSEL_BOTH(rsel_integer, V_MUL_LO_U32),
	[IR_iand] = RSEL_BOTH(rsel_integer, V_AND_B32),
	[IR_ior] = RSEL_BOTH(rsel_integer, V_OR_B32),
	[IR_ixor] = RSEL_BOTH(rsel_integer, V_XOR_B32),
	[IR_imin] = RSEL_BOTH(rsel_integer, V_MIN_I32),
	[IR_imax] = RSEL_BOTH(rsel_integer, V_MAX_I32),
	[IR_ishl] = RSEL(rsel_shift, V_LSHLREV_B32),
	[IR_ishr] = RSEL(rsel_shift, V_LSHRREV_B32),
	[IR_isar] = RSEL(rsel_shift, V_ASHRREV_I32),
	[IR_ibsel] = RSEL(rsel_choose_bits, V_BFI_B32),
	[IR_irotl] = RSEL(rsel_rotate, V_ALIGNBIT_B32),
	[IR_ishlv] = RSEL(rsel_shift_lanes, V_LSHLREV_B32),
	[IR_ishrv] = RSEL(rsel_shift_lanes, V_LSHRREV_B32),
	[IR_ieq] = RSEL(rsel_compare, V_CMP_EQ_U32),
	[IR_igt] = RSEL(rsel_compare, V_CMP_GT_I32),
	[IR_isel] = { .select = rsel_select },
	[IR_feq] = RSEL(rsel_compare, V_CMP_EQ_F32),
	[IR_fne] = RSEL(rsel_compare, V_CMP_NEQ_F32),
	[IR_ilt] = RSEL(rsel_compare, V_CMP_LT_I32),
	[IR_ile] = RSEL(rsel_compare, V_CMP_LE_I32),
	[IR_ine] = RSEL(rsel_compare, V_CMP_NE_U32),
	[IR_ult] = RSEL(rsel_compare, V_CMP_LT_U32),
	[IR_ule] = RSEL(rsel_compare, V_CMP_LE_U32),
	[IR_umin] = RSEL_BOTH(rsel_binary, V_MIN_U32),
	[IR_umax] = RSEL_BOTH(rsel_binary, V_MAX_U32),
	[IR_imulh] = RSEL_BOTH(rsel_binary, V_MUL_HI_I32),
	[IR_umulh] = RSEL_BOTH(rsel_binary, V_MUL_HI_U32),
	[IR_isarv] = RSEL(rsel_shift_down, V_ASHRREV_I32),
	[IR_iones] = RSEL(rsel_ones, V_BCNT_U32_B32),
	[IR_iclz] = RSEL(rsel_leading_zeros, V_CLZ_I32_U32),
	[IR_idiv] = { .select = rsel_divide_lanes },
	[IR_irem] = { .select = rsel_divide_lanes },
	[IR_udiv] = { .select = rsel_divide_lanes },
	[IR_urem] = { .select = rsel_divide_lanes },
	[IR_fround] = RSEL(rsel_unary, V_RNDNE_F32),
	[IR_ffloor] = RSEL(rsel_unary, V_FLOOR_F32),
	[IR_fceil] = RSEL(rsel_unary, V_CEIL_F32),
	[IR_ftrunc] = RSEL(rsel_unary, V_TRUNC_F32),
	[IR_u2f] = RSEL(rsel_unary, V_CVT_F32_U32),
	[IR_f2i_cut] = RSEL(rsel_unary, V_CVT_I32_F32),
	[IR_f2u_cut] = RSEL(rsel_unary, V_CVT_U32_F32),
	[IR_mxor] = RSEL(rsel_mask_op, S_XOR_B32),
	[IR_i2f] = RSEL(rsel_i2f, V_CVT_F32_I32),
	[IR_dot4] = { .select = rsel_dot4 },
	[IR_dot4u] = { .select = rsel_dot4u },
	[IR_dot2b] = { .select = rsel_dot2b },
	[IR_iadd_16] = { .select = rsel_iadd_16 },
	[IR_dot2h] = { .select = rsel_dot2h },
	[IR_ilut16] = { .select = rsel_ilut16 },
	[IR_mand] = RSEL(rsel_mask_op, S_AND_B32),
	[IR_mor] = RSEL(rsel_mask_op, S_OR_B32),
	[IR_mnot] = RSEL(rsel_mask_op, S_NOT_B32),
	[IR_fxor] = { .select = rsel_fxor },
};
