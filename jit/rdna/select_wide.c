/* jit/rdna/select_wide.c - lanes of 64 bits, in pairs of vector registers.
 *
 * Nothing is folded here: constants and names of other values are moved to registers of their own. Rule for editors: a
 * sequence writes its destination last, for it may be an operand; word by word it may, where no later word reads an
 * earlier one.
 */
#include "jit/ir/lanes.h"
#include "jit/rdna/select.h"

static rsel_op word(rsel_op pair, unsigned k) { return rdna_lir_words(pair.reg, pair.sub + k, 1); }
static rsel_op pair_of(struct rsel *s, uint16_t r) { return rsel_home(s, r)->o; }
static rsel_op imm(uint32_t value) { return rdna_lir_imm(value); }

static rsel_op negative(rsel_op o)
{
	o.mods ^= RDNA_NEG;
	return o;
}

/* A result of one word, or of two. */
static rsel_op made(struct rsel *s, unsigned op, rsel_op a, rsel_op b)
{
	rsel_op d = rsel_new_vgpr(s);

	rsel_valu(s, op, d, a, b, rsel_none());
	return d;
}

static rsel_op made_pair(struct rsel *s, unsigned op, rsel_op a, rsel_op b, rsel_op c)
{
	rsel_op d = rsel_new_pair(s);

	rsel_valu(s, op, d, a, b, c);
	return d;
}

static rsel_op mask_of(struct rsel *s, unsigned op, rsel_op a, rsel_op b)
{
	rsel_op m = rsel_new_sgpr(s);

	rsel_valu(s, op, m, a, b, rsel_none());
	return m;
}

static void set_pair(struct rsel *s, rsel_op d, uint64_t value)
{
	rsel_mov(s, word(d, 0), imm((uint32_t)value));
	rsel_mov(s, word(d, 1), imm((uint32_t)(value >> 32)));
}

static rsel_op constant(struct rsel *s, uint64_t value)
{
	rsel_op d = rsel_new_pair(s);

	set_pair(s, d, value);
	return d;
}

static rsel_op number(struct rsel *s, double d) { return constant(s, f64_bits(d)); }

static void move_pair(struct rsel *s, rsel_op d, rsel_op a)
{
	for (unsigned k = 0; k < 2; k++)
		rsel_mov(s, word(d, k), word(a, k));
}

static void choose_pair(struct rsel *s, rsel_op d, rsel_op mask, rsel_op yes, rsel_op no)
{
	for (unsigned k = 0; k < 2; k++)
		rsel_choose(s, word(d, k), mask, word(yes, k), word(no, k));
}

static rsel_op chosen_pair(struct rsel *s, rsel_op mask, rsel_op yes, rsel_op no)
{
	rsel_op d = rsel_new_pair(s);

	choose_pair(s, d, mask, yes, no);
	return d;
}

/* d = a + b, or a - b, of 64 bits. */
static void sum_pair(struct rsel *s, rsel_op d, rsel_op a0, rsel_op a1, rsel_op b0, rsel_op b1, bool minus)
{
	rsel_op carry = rsel_new_sgpr(s);

	rsel_valu(s, minus ? RDNA_V_SUB_CO_U32 : RDNA_V_ADD_CO_U32, word(d, 0), a0, b0, rsel_none())->d[1] = carry;
	rsel_valu(s, minus ? RDNA_V_SUB_CO_CI_U32 : RDNA_V_ADD_CO_CI_U32, word(d, 1), a1, b1, carry)->d[1] =
		rdna_lir_fixed(RDNA_NULL, 1);
}

/* --- constants and moves */

static void wide_move(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = i->op == IR_const ? rsel_none() : pair_of(s, i->a), d = rsel_dst(s, i);

	if (i->op == IR_const)
		set_pair(s, d, (uint64_t)i->imm);
	else
		move_pair(s, d, a);
}

static void wide_splat(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value v = rsel_scalar(s, i->a);
	rsel_op d = rsel_dst(s, i);

	rsel_mov(s, word(d, 0), v.o);
	rsel_mov(s, word(d, 1), v.high);
}

static void wide_exchange(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), d = rsel_dst(s, i);

	for (unsigned k = 0; k < 2; k++)
		rsel_exchange(s, word(d, k), word(a, k), (unsigned)i->imm);
}

/* --- memory */

static void wide_broadcast(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, i->imm);

	rsel_load_lanes(s, &p, 0, rsel_dst(s, i));
}

/* --- one instruction */

/* extra: the second source is subtracted. */
static void wide_binary(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b);

	rsel_valu(s, r->op, rsel_dst(s, i), a, r->extra ? negative(b) : b, rsel_none());
}

static void wide_fma(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b), c = pair_of(s, i->c);

	rsel_valu(s, r->op, rsel_dst(s, i), a, b, c);
}

static void wide_unary(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a);

	rsel_valu(s, r->op, rsel_dst(s, i), a, rsel_none(), rsel_none());
}

static void wide_of_narrow(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_vgpr(s, i->a);

	rsel_valu(s, r->op, rsel_dst(s, i), a, rsel_none(), rsel_none());
}

/* dabs, dneg: of the upper word. extra: its other operand. */
static void wide_sign(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), d = rsel_dst(s, i);

	rsel_mov(s, word(d, 0), word(a, 0));
	rsel_valu(s, r->op, word(d, 1), imm(r->extra), word(a, 1), rsel_none());
}

static void wide_compare(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b);

	rsel_valu(s, r->op, rsel_dst(s, i), a, b, rsel_none());
}

static void wide_select(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op mask = rsel_mask(s, i->a), yes = pair_of(s, i->b), no = pair_of(s, i->c);

	choose_pair(s, rsel_dst(s, i), mask, yes, no);
}

/* op: the comparison that says "take a". */
static void wide_min(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b), mask = mask_of(s, r->op, a, b);

	choose_pair(s, rsel_dst(s, i), mask, a, b);
}

/* --- integers */

static void wide_sum(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b), d = rsel_dst(s, i);

	sum_pair(s, d, word(a, 0), word(a, 1), word(b, 0), word(b, 1), i->op == IR_sub);
}

static void wide_bits(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b), d = rsel_dst(s, i);

	for (unsigned k = 0; k < 2; k++)
		rsel_valu(s, r->op, word(d, k), word(a, k), word(b, k), rsel_none());
}

static void wide_multiply(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b);
	rsel_op low = made(s, RDNA_V_MUL_LO_U32, word(a, 0), word(b, 0)),
		high = made(s, RDNA_V_MUL_HI_U32, word(a, 0), word(b, 0)),
		x = made(s, RDNA_V_MUL_LO_U32, word(a, 0), word(b, 1)),
		y = made(s, RDNA_V_MUL_LO_U32, word(a, 1), word(b, 0)), d = rsel_dst(s, i);

	rsel_mov(s, word(d, 0), low);
	rsel_valu(s, RDNA_V_ADD3_U32, word(d, 1), high, x, y);
}

static void wide_shift(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a);

	rsel_valu(s, r->op, rsel_dst(s, i), imm((uint32_t)i->imm), a, rsel_none());
}

/* The instructions take counts modulo 64. */
static void wide_shift_by(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), n = pair_of(s, i->b), max = constant(s, 64);
	rsel_op inside = mask_of(s, RDNA_V_CMP_LT_U64, n, max), count = word(n, 0);

	if (i->op == IR_sar_by) {
		count = rsel_new_vgpr(s);
		rsel_choose(s, count, inside, word(n, 0), imm(63));
	}
	rsel_op t = made_pair(s, r->op, count, a, rsel_none()), d = rsel_dst(s, i);
	if (i->op == IR_sar_by) {
		move_pair(s, d, t);
		return;
	}
	for (unsigned k = 0; k < 2; k++)
		rsel_choose(s, word(d, k), inside, word(t, k), imm(0));
}

/* --- conversions of integers */

/* i2l, u2l */
static void wide_of_int(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_vgpr(s, i->a), d = rsel_dst(s, i);

	rsel_mov(s, word(d, 0), a);
	if (i->op == IR_widen_int)
		rsel_valu(s, RDNA_V_ASHRREV_I32, word(d, 1), imm(31), a, rsel_none());
	else
		rsel_mov(s, word(d, 1), imm(0));
}

static void wide_low(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a);

	rsel_mov(s, rsel_dst(s, i), word(a, 0));
}

/* Both words are exact; their sum rounds once. op: the upper word's conversion. */
static void wide_from_int(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), none = rsel_none();
	rsel_op high = made_pair(s, r->op, word(a, 1), none, none),
		low = made_pair(s, RDNA_V_CVT_F64_U32, word(a, 0), none, none),
		moved = made_pair(s, RDNA_V_LDEXP_F64, high, imm(32), none);

	rsel_valu(s, RDNA_V_ADD_F64, rsel_dst(s, i), moved, low, none);
}

/* The upper word is how often 2^32 goes in, downwards, and the lower one the rest. Conversions of what is too large or
 * too small, or no number, give the upper word that is wanted; the lower one is then chosen. */
static void wide_to_int(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	const bool has_sign = i->op == IR_to_int_cut;
	rsel_op a = pair_of(s, i->a), none = rsel_none(), whole = made_pair(s, RDNA_V_TRUNC_F64, a, none, none);
	rsel_op part = made_pair(s, RDNA_V_LDEXP_F64, whole, imm((uint32_t)-32), none),
		high = made_pair(s, RDNA_V_FLOOR_F64, part, none, none), unit = number(s, -0x1p32),
		rest = made_pair(s, RDNA_V_FMA_F64, high, unit, whole);
	rsel_op end = number(s, has_sign ? 0x1p63 : 0x1p64), first = number(s, has_sign ? -0x1p63 : 0);
	rsel_op small = mask_of(s, RDNA_V_CMP_LT_F64, whole, first), large = mask_of(s, RDNA_V_CMP_GE_F64, whole, end);
	rsel_op low = made(s, RDNA_V_CVT_U32_F64, rest, none), above = rsel_new_vgpr(s), d = rsel_dst(s, i);

	rsel_choose(s, above, small, imm(0), low);
	rsel_choose(s, word(d, 0), large, imm(UINT32_MAX), above);
	rsel_valu(s, r->op, word(d, 1), high, none, none);
}

/* --- division and square root */

/* 1 where the significand of d is all ones, else 0. */
static rsel_op all_ones(struct rsel *s, rsel_op d)
{
	rsel_op next = made(s, RDNA_V_ADD_NC_U32, imm(1), word(d, 1)), one = rsel_new_vgpr(s), both = rsel_new_vgpr(s);
	rsel_op carry = made(s, RDNA_V_XOR_B32, next, word(d, 1));

	rsel_valu(s, RDNA_V_BFE_U32, one, carry, imm(20), imm(1));
	rsel_choose(s, both, mask_of(s, RDNA_V_CMP_EQ_U32, imm(UINT32_MAX), word(d, 0)), one, imm(0));
	return both;
}

static rsel_op fma_of(struct rsel *s, rsel_op a, rsel_op b, rsel_op c) { return made_pair(s, RDNA_V_FMA_F64, a, b, c); }

/* As rsel_fdiv() does it. The approximation may have half of the digits, so there are three steps to the inverse: the
 * error of the second one is below 2^-52, and that of the last below its square before it is rounded. */
static void wide_divide(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = pair_of(s, i->a), b = pair_of(s, i->b), none = rsel_none(), one = number(s, 1);
	rsel_op below = rsel_new_pair(s), above = rsel_new_pair(s), q = rsel_new_pair(s);

	rsel_valu(s, RDNA_V_DIV_SCALE_F64, below, b, b, a)->d[1] = rdna_lir_fixed(RDNA_NULL, 1);
	rsel_op inverse = made_pair(s, RDNA_V_RCP_F64, below, none, none);
	for (unsigned k = 0; k < 3; k++) {
		rsel_op error = fma_of(s, negative(below), inverse, one);
		inverse = fma_of(s, error, inverse, inverse);
	}
	rsel_op better = rsel_new_pair(s), ones = all_ones(s, below);
	rsel_valu(s, RDNA_V_OR_B32, word(better, 0), ones, word(inverse, 0), none);
	rsel_mov(s, word(better, 1), word(inverse, 1));
	rsel_valu(s, RDNA_V_DIV_SCALE_F64, above, a, b, a)->d[1] = rdna_lir_fixed(RDNA_VCC_LO, 1);
	rsel_op first = made_pair(s, RDNA_V_MUL_F64, above, better, none);
	rsel_op second = fma_of(s, fma_of(s, negative(below), first, above), better, first);
	rsel_op rest = fma_of(s, negative(below), second, above);
	rsel_valu(s, RDNA_V_DIV_FMAS_F64, q, rest, better, second);
	rsel_valu(s, RDNA_V_DIV_FIXUP_F64, rsel_dst(s, i), q, b, a);
}

/* x's root by Goldschmidt's steps from an approximation of the inverse root, off by one unit at most; then, as
 * rsel_fsqrt() does it, the signs of x - root * neighbour say which is right. */
static rsel_op rooted(struct rsel *s, rsel_op x)
{
	rsel_op none = rsel_none(), half = number(s, 0.5), inverse = made_pair(s, RDNA_V_RSQ_F64, x, none, none);
	rsel_op root = made_pair(s, RDNA_V_MUL_F64, x, inverse, none),
		halved = made_pair(s, RDNA_V_MUL_F64, inverse, half, none);

	for (unsigned k = 0; k < 2; k++) {
		rsel_op error = fma_of(s, negative(halved), root, half);
		root = fma_of(s, root, error, root);
		halved = fma_of(s, halved, error, halved);
	}
	for (unsigned k = 0; k < 2; k++) {
		rsel_op rest = fma_of(s, negative(root), root, x);
		root = fma_of(s, rest, halved, root);
	}
	return root;
}

static void wide_sqrt(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	enum { ZEROS_AND_INFINITY = 32 | 64 | 512 };
	rsel_op x = pair_of(s, i->a), none = rsel_none(), limit = number(s, 0x1p-767), zero = number(s, 0);
	rsel_op small = mask_of(s, RDNA_V_CMP_LT_F64, x, limit);
	rsel_op moved = chosen_pair(s, small, made_pair(s, RDNA_V_LDEXP_F64, x, imm(256), none), x);
	rsel_op root = rooted(s, moved), below = rsel_new_pair(s), above = rsel_new_pair(s);

	sum_pair(s, below, word(root, 0), word(root, 1), imm(UINT32_MAX), imm(UINT32_MAX), false);
	sum_pair(s, above, word(root, 0), word(root, 1), imm(1), imm(0), false);
	rsel_op rest_below = fma_of(s, negative(below), root, moved),
		rest_above = fma_of(s, negative(above), root, moved);
	rsel_op is_lower = mask_of(s, RDNA_V_CMP_LE_F64, rest_below, zero);
	rsel_op lower = chosen_pair(s, is_lower, below, root);
	rsel_op is_higher = mask_of(s, RDNA_V_CMP_GT_F64, rest_above, zero);
	rsel_op right = chosen_pair(s, is_higher, above, lower);
	rsel_op back = chosen_pair(s, small, made_pair(s, RDNA_V_LDEXP_F64, right, imm((uint32_t)-128), none), right);
	rsel_op itself = mask_of(s, RDNA_V_CMP_CLASS_F64, x, rsel_to_vgpr(s, imm(ZEROS_AND_INFINITY)));
	choose_pair(s, rsel_dst(s, i), itself, x, back);
}

/* --- the rows */

#define WIDE(fn, x) \
	{ \
		.select = fn, .op = RDNA_##x \
	}
#define WIDE_LOAD \
	{ \
		.select = rsel_load, .op = RDNA_GLOBAL_LOAD_B64, .other = RDNA_DS_LOAD_B64, .extra = 8 \
	}
#define WIDE_STORE \
	{ \
		.select = rsel_store, .op = RDNA_GLOBAL_STORE_B64, .other = RDNA_DS_STORE_B64, .extra = 8 \
	}

const struct rsel_rule rsel_wide_rules[IR_ROWS] = {
	[IR_dconst] = { .select = wide_move },
	[IR_lconst] = { .select = wide_move },
	[IR_dmov] = { .select = wide_move },
	[IR_lmov] = { .select = wide_move },
	[IR_dbits] = { .select = wide_move },
	[IR_lbits] = { .select = wide_move },
	[IR_lsplat] = { .select = wide_splat },
	[IR_dxor] = { .select = wide_exchange },
	[IR_dload] = WIDE_LOAD,
	[IR_lload] = WIDE_LOAD,
	[IR_dbcast] = { .select = wide_broadcast },
	[IR_lbcast] = { .select = wide_broadcast },
	[IR_dstore] = WIDE_STORE,
	[IR_lstore] = WIDE_STORE,
	[IR_dadd] = WIDE(wide_binary, V_ADD_F64),
	[IR_dsub] = { .select = wide_binary, .op = RDNA_V_ADD_F64, .extra = true },
	[IR_dmul] = WIDE(wide_binary, V_MUL_F64),
	[IR_dfma] = WIDE(wide_fma, V_FMA_F64),
	[IR_ddiv] = { .select = wide_divide },
	[IR_dsqrt] = { .select = wide_sqrt },
	[IR_dmin] = WIDE(wide_min, V_CMP_LT_F64),
	[IR_dmax] = WIDE(wide_min, V_CMP_GT_F64),
	[IR_dabs] = { .select = wide_sign, .op = RDNA_V_AND_B32, .extra = 0x7fffffffu },
	[IR_dneg] = { .select = wide_sign, .op = RDNA_V_XOR_B32, .extra = 0x80000000u },
	[IR_dround] = WIDE(wide_unary, V_RNDNE_F64),
	[IR_dfloor] = WIDE(wide_unary, V_FLOOR_F64),
	[IR_dceil] = WIDE(wide_unary, V_CEIL_F64),
	[IR_dtrunc] = WIDE(wide_unary, V_TRUNC_F64),
	[IR_dlt] = WIDE(wide_compare, V_CMP_LT_F64),
	[IR_dle] = WIDE(wide_compare, V_CMP_LE_F64),
	[IR_deq] = WIDE(wide_compare, V_CMP_EQ_F64),
	[IR_dne] = WIDE(wide_compare, V_CMP_NEQ_F64),
	[IR_dsel] = { .select = wide_select },
	[IR_lsel] = { .select = wide_select },
	[IR_f2d] = WIDE(wide_of_narrow, V_CVT_F64_F32),
	[IR_i2d] = WIDE(wide_of_narrow, V_CVT_F64_I32),
	[IR_u2d] = WIDE(wide_of_narrow, V_CVT_F64_U32),
	[IR_d2f] = WIDE(wide_unary, V_CVT_F32_F64),
	[IR_d2i_cut] = WIDE(wide_unary, V_CVT_I32_F64),
	[IR_d2u_cut] = WIDE(wide_unary, V_CVT_U32_F64),
	[IR_l2d] = WIDE(wide_from_int, V_CVT_F64_I32),
	[IR_ul2d] = WIDE(wide_from_int, V_CVT_F64_U32),
	[IR_d2l_cut] = WIDE(wide_to_int, V_CVT_I32_F64),
	[IR_d2ul_cut] = WIDE(wide_to_int, V_CVT_U32_F64),
	[IR_i2l] = { .select = wide_of_int },
	[IR_u2l] = { .select = wide_of_int },
	[IR_l2i] = { .select = wide_low },
	[IR_ladd] = { .select = wide_sum },
	[IR_lsub] = { .select = wide_sum },
	[IR_lmul] = { .select = wide_multiply },
	[IR_land] = WIDE(wide_bits, V_AND_B32),
	[IR_lor] = WIDE(wide_bits, V_OR_B32),
	[IR_lxor] = WIDE(wide_bits, V_XOR_B32),
	[IR_lshl] = WIDE(wide_shift, V_LSHLREV_B64),
	[IR_lshr] = WIDE(wide_shift, V_LSHRREV_B64),
	[IR_lsar] = WIDE(wide_shift, V_ASHRREV_I64),
	[IR_lshlv] = WIDE(wide_shift_by, V_LSHLREV_B64),
	[IR_lshrv] = WIDE(wide_shift_by, V_LSHRREV_B64),
	[IR_lsarv] = WIDE(wide_shift_by, V_ASHRREV_I64),
	[IR_lmin] = WIDE(wide_min, V_CMP_LT_I64),
	[IR_lmax] = WIDE(wide_min, V_CMP_GT_I64),
	[IR_lumin] = WIDE(wide_min, V_CMP_LT_U64),
	[IR_lumax] = WIDE(wide_min, V_CMP_GT_U64),
	[IR_llt] = WIDE(wide_compare, V_CMP_LT_I64),
	[IR_lle] = WIDE(wide_compare, V_CMP_LE_I64),
	[IR_leq] = WIDE(wide_compare, V_CMP_EQ_I64),
	[IR_lne] = WIDE(wide_compare, V_CMP_NE_I64),
	[IR_lult] = WIDE(wide_compare, V_CMP_LT_U64),
	[IR_lule] = WIDE(wide_compare, V_CMP_LE_U64),
};
