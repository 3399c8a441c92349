/* jit/x86/select_wide.c - lanes of 64 bits: each IR register is two vectors, of the lower and of the upper half of the
 * lanes, and a mask of lanes is split into two, or put together of two.
 *
 * Rule for editors: that of select_integer.c. Halves may be written one after the other, for no operand's upper half is
 * the destination's lower one.
 */
#include "jit/ir/lanes.h"
#include "jit/x86/select_state.h"

static bool has_masks(const struct sel *s) { return s->target->mask_regs != 0; }

static uint32_t upper_reg(struct sel *s, uint16_t r)
{
	if (!s->upper[r])
		s->upper[r] = lir_reg(s->l, LIR_VEC);
	return s->upper[r];
}

struct sel_pair sel_wide(struct sel *s, uint16_t r)
{
	const struct ir_ins *i = &s->ir->ins[s->scan.reg[r].def];
	while (s->scan.reg[r].fold == SCAN_ALIAS) {
		r = i->a;
		i = &s->ir->ins[s->scan.reg[r].def];
	}
	if (s->scan.reg[r].fold == SCAN_CONST) {
		uint32_t constant = sel_wide_constant(s, (uint64_t)i->imm);
		return (struct sel_pair){ { constant, constant } };
	}
	uint32_t low = sel_reg(s, r), high = upper_reg(s, r);
	return (struct sel_pair){ { low, high } };
}

struct sel_pair sel_dst_pair(struct sel *s, const struct ir_ins *i)
{
	uint32_t low = sel_dst(s, i), high = upper_reg(s, s->scan.into[s->at] ? s->scan.into[s->at] : i->dst);
	return (struct sel_pair){ { low, high } };
}

static uint32_t blended(struct sel *s, uint32_t a, uint32_t b)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3I, X86_VPBLENDD, t, a, b, sel_no_memory)->imm = 0xaa;
	return t;
}

static void move(struct sel *s, uint32_t to, uint32_t from)
{
	sel_ins(s, LIR_MOV, X86_VMOVAPS, to, from, 0, sel_no_memory);
}

static uint32_t number(struct sel *s, double d) { return sel_wide_constant(s, f64_bits(d)); }

/* --- masks of half the lanes */

struct sel_pair sel_mask_pair(struct sel *s, uint32_t mask)
{
	struct sel_pair p = { { mask, 0 } };
	if (has_masks(s)) {
		p.v[1] = lir_reg(s->l, LIR_MASK);
		sel_ins(s, LIR_MSHIFT, X86_KSHIFTRW, p.v[1], mask, 0, sel_no_memory)->imm = 8;
		return p;
	}
	for (unsigned k = 0; k < 2; k++) {
		uint32_t half = sel_half(s, mask, k), t = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_OP2, X86_VPMOVSXDQ, t, half, 0, sel_no_memory)->ws = s->half;
		p.v[k] = t;
	}
	return p;
}

/* The lower words of what has 64 bits a lane. */
static void give_lower(struct sel *s, const struct ir_ins *i, struct sel_pair p)
{
	uint32_t joined = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3I, X86_VSHUFPS, joined, p.v[0], p.v[1], sel_no_memory)->imm = 0x88;
	sel_ins(s, LIR_OP2I, X86_VPERMQ, sel_dst(s, i), joined, 0, sel_no_memory)->imm = 0xd8;
}

static void give_mask(struct sel *s, const struct ir_ins *i, struct sel_pair p)
{
	if (has_masks(s))
		sel_ins(s, LIR_MOP, X86_KUNPCKBW, sel_dst(s, i), p.v[1], p.v[0], sel_no_memory);
	else
		give_lower(s, i, p);
}

/* Of half the lanes. how: of vcmppd and vpcmpq; op: what compares into mask registers. */
static uint32_t compared(struct sel *s, unsigned op, unsigned how, uint32_t a, uint32_t b)
{
	uint32_t t = lir_reg(s->l, has_masks(s) ? LIR_MASK : LIR_VEC);
	sel_ins(s, has_masks(s) ? LIR_MCMPI : LIR_OP3I, op, t, a, b, sel_no_memory)->imm = how;
	return t;
}

static void choose(struct sel *s, uint32_t dst, uint32_t mask, uint32_t yes, uint32_t no)
{
	sel_ins(s, has_masks(s) ? LIR_MBLEND : LIR_BLEND, has_masks(s) ? X86_VBLENDMPD : X86_VBLENDVPD, dst, no, yes,
	        sel_no_memory)
		->c = mask;
}

static uint32_t chosen(struct sel *s, uint32_t mask, uint32_t yes, uint32_t no)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	choose(s, t, mask, yes, no);
	return t;
}

/* AVX2 compares integers with signs, for equality and for more. */
static uint32_t more(struct sel *s, uint32_t a, uint32_t b, bool has_sign)
{
	if (!has_sign) {
		uint32_t sign = sel_wide_constant(s, UINT64_C(1) << 63);
		a = sel_op3(s, X86_VPXOR, a, sign);
		b = sel_op3(s, X86_VPXOR, b, sign);
	}
	return sel_op3(s, X86_VPCMPGTQ, a, b);
}

static uint32_t complement(struct sel *s, uint32_t mask)
{
	uint32_t ones = sel_constant(s, SEL_SPLAT, UINT32_MAX);
	return sel_op3(s, X86_VPXOR, mask, ones);
}

enum { LESS = 1, NOT_MORE = 2, NOT_EQUAL = 4, EQUAL = 0 };

static uint32_t compared_ints(struct sel *s, unsigned how, bool has_sign, uint32_t a, uint32_t b)
{
	if (has_masks(s))
		return compared(s, has_sign ? X86_VPCMPQ : X86_VPCMPUQ, how, a, b);
	switch (how) {
	case LESS: return more(s, b, a, has_sign);
	case NOT_MORE: return complement(s, more(s, a, b, has_sign));
	case EQUAL: return sel_op3(s, X86_VPCMPEQQ, a, b);
	default: return complement(s, sel_op3(s, X86_VPCMPEQQ, a, b));
	}
}

void sel_wide_compare(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), b = sel_wide(s, i->b), m;
	for (unsigned k = 0; k < 2; k++)
		m.v[k] = compared(s, r->op, r->imm, a.v[k], b.v[k]);
	give_mask(s, i, m);
}

static bool is_unsigned(unsigned op)
{
	return op == IR_lt_unsigned || op == IR_le_unsigned || op == IR_min_unsigned || op == IR_max_unsigned;
}

void sel_wide_compare_ints(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), b = sel_wide(s, i->b), m;
	for (unsigned k = 0; k < 2; k++)
		m.v[k] = compared_ints(s, r->imm, !is_unsigned(i->op), a.v[k], b.v[k]);
	give_mask(s, i, m);
}

void sel_wide_select(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t mask = sel_vec(s, i->a);
	struct sel_pair m = sel_mask_pair(s, mask), yes = sel_wide(s, i->b), no = sel_wide(s, i->c),
			d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++)
		choose(s, d.v[k], m.v[k], yes.v[k], no.v[k]);
}

/* --- arithmetic */

void sel_wide_binary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), b = sel_wide(s, i->b), d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++)
		sel_ins(s, (enum lir_form)r->form, r->op, d.v[k], a.v[k], b.v[k], sel_no_memory);
}

void sel_wide_unary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++)
		sel_ins(s, (enum lir_form)r->form, r->op, d.v[k], a.v[k], 0, sel_no_memory)->imm =
			r->form != LIR_OP2I ? 0
			: r->imm            ? r->imm
					    : (uint32_t)i->imm;
}

void sel_wide_fma(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), b = sel_wide(s, i->b), c = sel_wide(s, i->c), d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++)
		sel_ins(s, LIR_FMA, r->op, d.v[k], a.v[k], b.v[k], sel_no_memory)->c = c.v[k];
}

/* dabs, dneg */
void sel_wide_sign(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), d = sel_dst_pair(s, i);
	uint32_t bits = sel_wide_constant(s, i->op == IR_abs ? INT64_MAX : UINT64_C(1) << 63);
	for (unsigned k = 0; k < 2; k++)
		sel_ins(s, LIR_OP3C, r->op, d.v[k], a.v[k], bits, sel_no_memory);
}

/* lmin, lmax and so on: a where it is less than b, or b less than a. */
void sel_wide_min(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), b = sel_wide(s, i->b), d = sel_dst_pair(s, i);
	const bool min = i->op == IR_min || i->op == IR_min_unsigned;
	for (unsigned k = 0; k < 2; k++) {
		uint32_t x = min ? a.v[k] : b.v[k], y = min ? b.v[k] : a.v[k];
		choose(s, d.v[k], compared_ints(s, LESS, !is_unsigned(i->op), x, y), a.v[k], b.v[k]);
	}
}

/* The products of the halves that do not come out of range. */
void sel_wide_multiply(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), b = sel_wide(s, i->b), d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t x = sel_op3(s, r->op, a.v[k], sel_op2i(s, X86_VPSRLQ, b.v[k], 32));
		uint32_t y = sel_op3(s, r->op, b.v[k], sel_op2i(s, X86_VPSRLQ, a.v[k], 32));
		uint32_t high = sel_op2i(s, X86_VPSLLQ, sel_op3(s, X86_VPADDQ, x, y), 32);
		uint32_t low = sel_op3(s, r->op, a.v[k], b.v[k]);
		sel_ins(s, LIR_OP3C, X86_VPADDQ, d.v[k], low, high, sel_no_memory);
	}
}

/* A negative number is complemented, shifted as others are, and complemented again. By lanes, or by the immediate. */
void sel_wide_shift_down(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), b = i->b ? sel_wide(s, i->b) : a, d = sel_dst_pair(s, i);
	uint32_t zero = sel_constant(s, SEL_SPLAT, 0);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t sign = sel_op3(s, X86_VPCMPGTQ, zero, a.v[k]), size = sel_op3(s, X86_VPXOR, a.v[k], sign);
		uint32_t t =
			i->b ? sel_op3(s, X86_VPSRLVQ, size, b.v[k]) : sel_op2i(s, X86_VPSRLQ, size, (unsigned)i->imm);
		sel_ins(s, LIR_OP3C, X86_VPXOR, d.v[k], t, sign, sel_no_memory);
	}
}

/* --- constants, moves, across lanes */

void sel_wide_constants(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t constant = sel_wide_constant(s, (uint64_t)i->imm);
	struct sel_pair d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++)
		move(s, d.v[k], constant);
}

void sel_wide_move(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++)
		move(s, d.v[k], a.v[k]);
}

void sel_wide_splat(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair d = sel_dst_pair(s, i);
	int64_t value;
	if (sel_scalar_of(s, i->a, &value)) {
		uint32_t constant = sel_wide_constant(s, (uint64_t)value);
		move(s, d.v[0], constant);
		move(s, d.v[1], constant);
		return;
	}
	uint32_t a = sel_gpr(s, i->a), t = has_masks(s) ? d.v[0] : lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_FROM_GPR, has_masks(s) ? r->op : X86_VMOVQ, t, a, 0, sel_no_memory);
	n->ws = X86_GPR64;
	if (!has_masks(s)) {
		n->wd = X86_XMM;
		sel_ins(s, LIR_OP2, r->op, d.v[0], t, 0, sel_no_memory)->ws = X86_XMM;
	}
	move(s, d.v[1], d.v[0]);
}

void sel_wide_exchange(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), d = sel_dst_pair(s, i);
	if ((unsigned)i->imm * 2 == s->l->lanes) {
		uint32_t low = lir_reg(s->l, LIR_VEC);
		move(s, low, a.v[0]);
		move(s, d.v[0], a.v[1]);
		move(s, d.v[1], low);
		return;
	}
	for (unsigned k = 0; k < 2; k++)
		if (i->imm < 4)
			sel_ins(s, LIR_OP2I, r->op, d.v[k], a.v[k], 0, sel_no_memory)->imm = i->imm == 1 ? 0xb1 : 0x4e;
		else
			sel_ins(s, LIR_OP3I, X86_VSHUFI32X4, d.v[k], a.v[k], a.v[k], sel_no_memory)->imm = 0x4e;
}

/* --- conversions */

/* From lanes of 32 bits, half of them each time. */
void sel_widen(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a);
	struct sel_pair d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t half = sel_half(s, a, k);
		sel_ins(s, LIR_OP2, r->op, d.v[k], half, 0, sel_no_memory)->ws = s->half;
	}
}

void sel_widen_unsigned(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a);
	struct sel_pair d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t half = sel_half(s, a, k);
		move(s, d.v[k], sel_widened(s, half, false));
	}
}

static struct sel_pair narrowed(struct sel *s, unsigned op, struct sel_pair p)
{
	for (unsigned k = 0; k < 2; k++) {
		uint32_t t = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_OP2R, op, t, p.v[k], 0, sel_no_memory)->wd = s->half;
		p.v[k] = t;
	}
	return p;
}

static void give_joined(struct sel *s, const struct ir_ins *i, struct sel_pair p)
{
	sel_ins(s, LIR_OP3I, has_masks(s) ? X86_VSHUFI32X4 : X86_VPERM2I128, sel_dst(s, i), p.v[0], p.v[1],
	        sel_no_memory)
		->imm = has_masks(s) ? 0x44 : 0x20;
}

void sel_narrow(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a);
	give_joined(s, i, narrowed(s, r->op, a));
}

void sel_wide_low(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a);
	if (has_masks(s))
		give_joined(s, i, narrowed(s, r->op, a));
	else
		give_lower(s, i, a);
}

/* 0 in place of a NaN. */
static uint32_t of_numbers(struct sel *s, uint32_t a)
{
	enum { ORDERED = 7 };
	uint32_t zero = sel_constant(s, SEL_SPLAT, 0), is_number = compared(s, X86_VCMPPD, ORDERED, a, a);
	return chosen(s, is_number, a, zero);
}

void sel_narrow_int_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a);
	uint32_t min = number(s, -0x1p31), max = number(s, 0x1p31 - 1);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t above = sel_op3(s, X86_VMAXPD, of_numbers(s, a.v[k]), min);
		a.v[k] = sel_op3(s, X86_VMINPD, above, max);
	}
	give_joined(s, i, narrowed(s, r->op, a));
}

/* The maximum gives its second source for a NaN. */
void sel_narrow_unsigned_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a);
	uint32_t min = sel_constant(s, SEL_SPLAT, 0), max = number(s, 0x1p32 - 1);
	for (unsigned k = 0; k < 2; k++)
		a.v[k] = sel_op3(s, X86_VMINPD, sel_op3(s, X86_VMAXPD, a.v[k], min), max);
	if (has_masks(s)) {
		give_joined(s, i, narrowed(s, r->op, a));
		return;
	}
	uint32_t joined = sel_join_unsigned(s, a.v);
	move(s, sel_dst(s, i), joined);
}

/* The upper word as the fraction of 2^84, the lower one as that of 2^52: their sum rounds once. */
void sel_wide_from_int(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	const bool has_sign = i->op == IR_from_int;
	struct sel_pair a = sel_wide(s, i->a), d = sel_dst_pair(s, i);
	uint32_t lower = number(s, 0x1p52), upper = number(s, has_sign ? 0x1p84 + 0x1p63 : 0x1p84);
	uint32_t both = number(s, has_sign ? 0x1p84 + 0x1p63 + 0x1p52 : 0x1p84 + 0x1p52);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t low = blended(s, a.v[k], lower);
		uint32_t high = sel_op3(s, X86_VPXOR, sel_op2i(s, X86_VPSRLQ, a.v[k], 32), upper);
		uint32_t rest = sel_op3(s, X86_VSUBPD, high, both);
		sel_ins(s, LIR_OP3C, X86_VADDPD, d.v[k], rest, low, sel_no_memory);
	}
}

enum { CUT = 11, DOWN = 9, NOT_LESS = 0x1d, IS_LESS = 0x11 };

/* A whole number of less than 64 bits, as its words. The upper one may be negative. */
static uint32_t whole_words(struct sel *s, uint32_t t, bool has_sign)
{
	uint32_t part = number(s, 0x1p-32), unit = number(s, 0x1p32), lower = number(s, 0x1p52),
		 upper = has_sign ? number(s, 0x1.8p52) : lower;
	uint32_t high = sel_op2i(s, X86_VROUNDPD, sel_op3(s, X86_VMULPD, t, part), DOWN);
	uint32_t low = sel_op3(s, X86_VSUBPD, t, sel_op3(s, X86_VMULPD, high, unit));
	uint32_t low_bits = sel_op3(s, X86_VADDPD, low, lower), high_bits = sel_op3(s, X86_VADDPD, high, upper);
	return blended(s, low_bits, sel_op2i(s, X86_VPSLLQ, high_bits, 32));
}

static uint32_t to_int_cut(struct sel *s, uint32_t a)
{
	uint32_t end = number(s, 0x1p63), first = number(s, -0x1p63), max = sel_wide_constant(s, INT64_MAX),
		 min = sel_wide_constant(s, UINT64_C(1) << 63), zero = sel_constant(s, SEL_SPLAT, 0);
	if (has_masks(s)) { /* the instruction gives the least number for all that it cannot convert */
		enum { ORDERED = 7 };
		uint32_t large = compared(s, X86_VCMPPD, NOT_LESS, a, end);
		uint32_t is_number = compared(s, X86_VCMPPD, ORDERED, a, a);
		return chosen(s, is_number, chosen(s, large, max, sel_op2(s, X86_VCVTTPD2QQ, a)), zero);
	}
	uint32_t t = sel_op2i(s, X86_VROUNDPD, of_numbers(s, a), CUT);
	uint32_t large = compared(s, X86_VCMPPD, NOT_LESS, t, end), small = compared(s, X86_VCMPPD, IS_LESS, t, first);
	return chosen(s, small, min, chosen(s, large, max, whole_words(s, t, true)));
}

static uint32_t to_unsigned_cut(struct sel *s, uint32_t a)
{
	uint32_t zero = sel_constant(s, SEL_SPLAT, 0), x = sel_op3(s, X86_VMAXPD, a, zero);
	if (has_masks(s)) /* beyond the greatest number all bits are set */
		return sel_op2(s, X86_VCVTTPD2UQQ, x);
	uint32_t end = number(s, 0x1p64), ones = sel_constant(s, SEL_SPLAT, UINT32_MAX);
	uint32_t t = sel_op2i(s, X86_VROUNDPD, x, CUT), large = compared(s, X86_VCMPPD, NOT_LESS, t, end);
	return chosen(s, large, ones, whole_words(s, t, false));
}

void sel_wide_to_int_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_pair a = sel_wide(s, i->a), d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++)
		move(s, d.v[k], i->op == IR_to_int_cut ? to_int_cut(s, a.v[k]) : to_unsigned_cut(s, a.v[k]));
}

/* --- memory */

/* Of half the lanes. */
static int32_t half_bytes(const struct sel *s) { return (int32_t)s->l->lanes * 4; }

void sel_wide_load(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	const unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	const bool whole = n == s->l->lanes && !i->mask;
	struct sel_pair m = { { 0, 0 } };
	if (!whole)
		m = sel_mask_pair(s, sel_lanes(s, i, n));
	struct sel_pair d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++, p.disp += half_bytes(s))
		if (whole)
			sel_ins(s, LIR_MOV, X86_VMOVUPS, d.v[k], LIR_MEM, 0, p);
		else if (has_masks(s))
			sel_ins(s, LIR_MLOAD, X86_VMOVDQU64, d.v[k], 0, 0, p)->c = m.v[k];
		else
			sel_ins(s, LIR_OP3, X86_VPMASKMOVQ, d.v[k], m.v[k], LIR_MEM, p);
}

void sel_wide_store(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	const unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	const bool whole = n == s->l->lanes && !i->mask;
	struct sel_pair v = sel_wide(s, i->b), m = { { 0, 0 } };
	if (!whole)
		m = sel_mask_pair(s, sel_lanes(s, i, n));
	for (unsigned k = 0; k < 2; k++, p.disp += half_bytes(s))
		if (whole)
			sel_ins(s, LIR_STORE, X86_VMOVUPS, 0, v.v[k], 0, p);
		else if (has_masks(s))
			sel_ins(s, LIR_MSTORE, X86_VMOVDQU64, 0, v.v[k], 0, p)->c = m.v[k];
		else
			sel_ins(s, LIR_STOREM, X86_VPMASKMOVQ, 0, m.v[k], v.v[k], p);
}

void sel_wide_broadcast(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, i->imm);
	struct sel_pair d = sel_dst_pair(s, i);
	sel_ins(s, LIR_OP2, r->op, d.v[0], LIR_MEM, 0, p);
	move(s, d.v[1], d.v[0]);
}
