/* jit/x86/select_vector.c - IR operations on vectors and masks to x86 instructions on virtual registers.
 *
 * Owns: the tables that say which instruction does which operation on which target. Targets with mask registers
 * (AVX-512) keep IR masks and lane counts in them and fold one element for all lanes into the instruction that uses it;
 * the others keep masks in vectors. Rule for editors: a row of a table first, a function only for what a row cannot
 * say; branch on capabilities of s->target.
 */
#include "jit/x86/select_state.h"

#include <string.h>

/* --- vectors */

static void sel_unary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	uint32_t a = sel_operand(s, i->a, &p);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, 0, p)->imm = r->form == LIR_OP2I ? i->imm : 0;
}

static void sel_binary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_operand(s, i->b, &p);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, b, p)->imm = r->imm;
}

/* A constant whose complement is in a register already needs none of its own. */
static void sel_and(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	enum sel_constant_kind kind;
	uint32_t value, complement = 0;
	for (size_t k = 0; sel_constant_of(s, i->b, &kind, &value) && kind == SEL_SPLAT && k < s->n_constants; k++)
		if (s->constant[k].kind == SEL_SPLAT && s->constant[k].value == ~value)
			complement = s->constant[k].reg;
	if (!complement) {
		sel_binary(s, i, r);
		return;
	}
	uint32_t a = sel_operand(s, i->a, &p);
	sel_ins(s, LIR_OP3, r->imm, sel_dst(s, i), complement, a, p);
}

/* a and the constant of the row */
static void sel_with_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_constant(s, SEL_SPLAT, r->imm);
	sel_ins(s, LIR_OP3C, r->op, sel_dst(s, i), a, b, p);
}

static void sel_fma(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_operand(s, i->b, &p), c = sel_operand(s, i->c, &p);
	sel_ins(s, LIR_FMA, r->op, sel_dst(s, i), a, b, p)->c = c;
}

/* Where masks are vectors, the blend takes its second source where the mask's sign bit is set. */
static void sel_select(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	uint32_t mask = sel_vec(s, i->a), yes = sel_operand(s, i->b, &p), no = sel_vec(s, i->c);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), no, yes, p)->c = mask;
}

static void sel_move(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum sel_constant_kind kind;
	uint32_t value;
	if (sel_constant_of(s, i->a, &kind, &value) && kind == SEL_SPLAT && !value)
		sel_ins(s, LIR_IDIOM, X86_VXORPS, sel_dst(s, i), 0, 0, sel_no_place);
	else {
		uint32_t from = sel_vec(s, i->a);
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i), from, 0, sel_no_place);
	}
}

/* A constant written into a variable; others are made where they are used. */
static void sel_vector_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	if (i->op != IR_ilane && !i->imm)
		sel_ins(s, LIR_IDIOM, X86_VXORPS, sel_dst(s, i), 0, 0, sel_no_place);
	else
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i),
		        i->op == IR_ilane ? sel_constant(s, SEL_LANES, 0)
		                          : sel_constant(s, SEL_SPLAT, (uint32_t)i->imm),
		        0, sel_no_place);
}

static void sel_splat(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t value;
	if (sel_scalar_of(s, i->a, &value)) {
		sel_ins(s, LIR_MOV, X86_VMOVAPS, sel_dst(s, i), sel_constant(s, SEL_SPLAT, (uint32_t)(uint64_t)value),
		        0, sel_no_place);
		return;
	}
	uint32_t a = sel_gpr(s, i->a);
	if (s->target->mask_regs) {
		sel_ins(s, LIR_FROM_GPR, r->op, sel_dst(s, i), a, 0, sel_no_place)->ws = X86_GPR32;
		return;
	}
	uint32_t t = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_FROM_GPR, X86_VMOVD, t, a, 0, sel_no_place);
	n->wd = X86_XMM;
	n->ws = X86_GPR32;
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), t, 0, sel_no_place)->ws = X86_XMM;
}

/* --- dot products */

static uint32_t sel_memo_find(const struct sel *s, enum sel_memo_kind kind, uint32_t of)
{
	for (unsigned k = 0; k < SEL_MEMO; k++)
		if (s->memo[k].of == of && of && s->memo[k].kind == kind)
			return s->memo[k].is;
	return 0;
}

static uint32_t sel_memo_keep(struct sel *s, enum sel_memo_kind kind, uint32_t of, uint32_t is)
{
	s->memo[s->memo_next] = (struct sel_memo){ (uint8_t)kind, of, is };
	s->memo_next = (s->memo_next + 1) % SEL_MEMO;
	return is;
}

static uint32_t sel_abs(struct sel *s, uint32_t a)
{
	uint32_t t = sel_memo_find(s, SEL_ABS, a);
	if (t)
		return t;
	t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2, X86_VPABSB, t, a, 0, sel_no_place);
	return sel_memo_keep(s, SEL_ABS, a, t);
}

static uint32_t sel_signs(struct sel *s, uint32_t a)
{
	uint32_t t = sel_memo_find(s, SEL_SIGNS, a);
	if (t)
		return t;
	t = lir_reg(s->l, LIR_MASK);
	sel_ins(s, LIR_MSIGN, X86_VPMOVB2M, t, a, 0, sel_no_place);
	return sel_memo_keep(s, SEL_SIGNS, a, t);
}

static uint32_t sel_negative(struct sel *s, uint32_t b)
{
	uint32_t t = sel_memo_find(s, SEL_NEGATIVE, b);
	if (t)
		return t;
	t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3, X86_VPSUBB, t, sel_constant(s, SEL_SPLAT, 0), b, sel_no_place);
	return sel_memo_keep(s, SEL_NEGATIVE, b, t);
}

/* b's bytes with the signs of a's; where a is zero they do not matter. */
static uint32_t sel_signed_like(struct sel *s, uint32_t a, uint32_t b)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	if (s->target->mask_regs) {
		uint32_t negative = sel_negative(s, b), signs = sel_signs(s, a);
		sel_ins(s, LIR_MBLEND, X86_VPBLENDMB, t, b, negative, sel_no_place)->c = signs;
	} else {
		sel_ins(s, LIR_OP3, X86_VPSIGNB, t, b, a, sel_no_place);
	}
	return t;
}

static bool sel_is_zero(const struct sel *s, uint16_t r)
{
	enum sel_constant_kind kind;
	uint32_t value;
	return sel_constant_of(s, r, &kind, &value) && kind == SEL_SPLAT && !value;
}

/* dst = c + the products of a and b in each lane, as op makes them. c 0: nothing to add to. b may be LIR_MEM at p. */
static void sel_dot(struct sel *s, unsigned op, uint32_t dst, uint32_t a, uint32_t b, uint32_t c, struct sel_place p)
{
	uint32_t to = dst != c && (dst == a || dst == b) ? lir_reg(s->l, LIR_VEC) : dst;
	if (!c) {
		c = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_IDIOM, X86_VXORPS, c, 0, 0, sel_no_place);
	}
	sel_ins(s, LIR_DOT, op, to, a, b, p)->c = c;
	if (to != dst)
		sel_ins(s, LIR_MOV, X86_VMOVAPS, dst, to, 0, sel_no_place);
}

/* |a| times b with a's sign. Without VNNI: u8 times s8 pairs to 16 bits (32512 at most), pairs of those to 32 bits. */
static void sel_dot4(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	bool first = sel_is_zero(s, i->c);
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), c = first ? 0 : sel_vec(s, i->c);
	uint32_t size = sel_abs(s, a), sign = sel_signed_like(s, a, b), dst = sel_dst(s, i);
	if (s->target->has_vnni) {
		sel_dot(s, X86_VPDPBUSD, dst, size, sign, c, sel_no_place);
		return;
	}
	uint32_t ones = sel_constant(s, SEL_SPLAT, 0x00010001), pair = lir_reg(s->l, LIR_VEC),
		 four = first ? dst : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3, r->op, pair, size, sign, sel_no_place);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, four, pair, ones, sel_no_place);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, dst, c, four, sel_no_place);
}

static uint32_t sel_shift(struct sel *s, unsigned op, uint32_t a, unsigned count)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, op, t, a, 0, sel_no_place)->imm = count;
	return t;
}

/* The bytes of even and of odd number apart, widened to words: products and their sums of two are exact in 32 bits. */
static void sel_dot4u(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	bool first = sel_is_zero(s, i->c);
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), c = first ? 0 : sel_vec(s, i->c);
	uint32_t even = lir_reg(s->l, LIR_VEC), low = lir_reg(s->l, LIR_VEC), high = lir_reg(s->l, LIR_VEC);
	uint32_t sum = first ? sel_dst(s, i) : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3C, r->op, even, a, sel_constant(s, SEL_SPLAT, 0x00ff00ff), sel_no_place);
	uint32_t signed_even = sel_shift(s, X86_VPSRAW, sel_shift(s, X86_VPSLLW, b, 8), 8);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, low, even, signed_even, sel_no_place);
	uint32_t odd = sel_shift(s, X86_VPSRLW, a, 8), signed_odd = sel_shift(s, X86_VPSRAW, b, 8);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, high, odd, signed_odd, sel_no_place);
	sel_ins(s, LIR_OP3C, X86_VPADDD, sum, low, high, sel_no_place);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, sel_dst(s, i), c, sum, sel_no_place);
}

static void sel_dot_vnni(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	uint32_t a = sel_vec(s, i->a), b = sel_operand(s, i->b, &p), c = sel_is_zero(s, i->c) ? 0 : sel_vec(s, i->c);
	sel_dot(s, r->op, sel_dst(s, i), a, b, c, p);
}

/* An operand that is read from the pool when it is a constant, for registers are few where there is no VNNI. */
static uint32_t sel_from_memory(struct sel *s, uint16_t r, struct sel_place *p)
{
	enum sel_constant_kind kind;
	uint32_t value, lane[16];
	if (!sel_constant_of(s, r, &kind, &value) || kind != SEL_SPLAT)
		return sel_operand(s, r, p);
	for (unsigned k = 0; k < s->l->lanes; k++)
		lane[k] = value;
	if (!s->pooled || s->pooled_value != value)
		s->pooled = lir_pool(s->l, lane) + 1;
	s->pooled_value = value;
	*p = (struct sel_place){ .mem = LIR_AT_POOL, .disp = (int32_t)s->pooled - 1 };
	return LIR_MEM;
}

static void sel_dot2h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	bool first = sel_is_zero(s, i->c);
	uint32_t a = sel_vec(s, i->a), b = sel_from_memory(s, i->b, &p), c = first ? 0 : sel_vec(s, i->c);
	uint32_t both = first ? sel_dst(s, i) : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3C, r->op, both, a, b, p);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, sel_dst(s, i), c, both, sel_no_place);
}

/* a has the bits that choose. Without the instruction for it: both parts, and what is chosen of them. */
static void sel_choose_bits(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), yes = sel_vec(s, i->b), no = sel_vec(s, i->c), part = lir_reg(s->l, LIR_VEC),
		 rest = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3C, X86_VPAND, part, a, yes, sel_no_place);
	sel_ins(s, LIR_OP3, X86_VPANDN, rest, a, no, sel_no_place);
	sel_ins(s, LIR_OP3C, r->op, sel_dst(s, i), part, rest, sel_no_place);
}

/* The register of an operand that nobody else wants becomes the destination's. In the immediate's table dst, a and b
 * are bits 2, 1 and 0 of the index. */
static void sel_ternary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum { IF_A_THEN_B_ELSE_DST = 0xb8, IF_A_THEN_DST_ELSE_B = 0xe2 };
	bool over_yes = s->scan.reg[i->b].uses == 1 && !s->ir->is_var[i->b];
	uint32_t a = sel_vec(s, i->a), yes = sel_vec(s, i->b), no = sel_vec(s, i->c), b = over_yes ? no : yes,
		 c = over_yes ? yes : no;
	uint32_t dst = sel_dst(s, i), to = dst != c && (dst == a || dst == b) ? lir_reg(s->l, LIR_VEC) : dst;
	struct lir_ins *n = sel_ins(s, LIR_TERNARY, r->op, to, a, b, sel_no_place);
	n->c = c;
	n->imm = over_yes ? IF_A_THEN_DST_ELSE_B : IF_A_THEN_B_ELSE_DST;
	if (to != dst)
		sel_ins(s, LIR_MOV, X86_VMOVAPS, dst, to, 0, sel_no_place);
}

static void sel_rotate(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), left = sel_shift(s, X86_VPSLLD, a, (unsigned)i->imm),
		 right = sel_shift(s, X86_VPSRLD, a, 32 - (unsigned)i->imm);
	sel_ins(s, LIR_OP3C, r->op, sel_dst(s, i), left, right, sel_no_place);
}

static void sel_table(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_no_place;
	uint32_t a = sel_operand(s, i->a, &p), table = sel_constant(s, SEL_TABLE, (uint32_t)i->imm);
	sel_ins(s, LIR_OP3, r->op, sel_dst(s, i), table, a, p);
}

/* --- halves of words */

static uint32_t sel_shifted(struct sel *s, unsigned op, uint32_t a)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, op, t, a, 0, sel_no_place)->imm = 16;
	return t;
}

/* The half as a signed number in 32 bits, so that packing with saturation changes nothing; then as f16. Packing 256
 * bits takes the halves in turns of 64, which a permutation puts right. */
static void sel_fhalf(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), high = lir_reg(s->l, LIR_VEC), words = lir_reg(s->l, LIR_VEC);
	uint32_t one = sel_shifted(s, X86_VPSRAD, i->imm ? a : sel_shifted(s, X86_VPSLLD, a));
	bool wide = s->width == X86_ZMM;
	struct lir_ins *n =
		sel_ins(s, LIR_OP2I, wide ? X86_VEXTRACTI64X4 : X86_VEXTRACTI128, high, one, 0, sel_no_place);
	n->wd = s->half;
	n->imm = 1;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSDW, words, one, high, sel_no_place);
	n->wd = n->ws = s->half;
	if (wide) {
		uint32_t turns = words;
		words = lir_reg(s->l, LIR_VEC);
		n = sel_ins(s, LIR_OP2I, X86_VPERMQ, words, turns, 0, sel_no_place);
		n->wd = n->ws = X86_YMM;
		n->imm = 0xd8;
	}
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), words, 0, sel_no_place)->ws = s->half;
}

/* --- across lanes */

/* Within 128 bits by one permutation; parts of 128 bits by another. */
static void sel_fxor(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a);
	if (i->imm < 4)
		sel_ins(s, LIR_OP2I, X86_VPERMILPS, sel_dst(s, i), a, 0, sel_no_place)->imm = i->imm == 1 ? 0xb1 : 0x4e;
	else
		sel_ins(s, LIR_OP3I, r->op, sel_dst(s, i), a, a, sel_no_place)->imm =
			s->width == X86_YMM ? 1
			: i->imm == 4       ? 0xb1
					    : 0x4e;
}

/* --- memory */

static void sel_load(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), LIR_MEM, 0, sel_place(s, i->a, i->imm));
}

/* The class of a vector of n lanes that moves as a whole; X86_NONE: there is none. */
static uint8_t sel_part_class(const struct sel *s, unsigned n)
{
	return n == s->l->lanes ? s->width : n == 8 ? X86_YMM : n == 4 ? X86_XMM : X86_NONE;
}

static void sel_fload(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, ir_x_disp(i->imm));
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	uint8_t part = sel_part_class(s, n);
	if (n == s->l->lanes) {
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i), LIR_MEM, 0, p);
	} else if (part != X86_NONE || n <= 2) {
		unsigned op = n == 1 ? X86_VMOVSS : n == 2 ? X86_VMOVSD : X86_VMOVUPS;
		sel_ins(s, LIR_OP2, op, sel_dst(s, i), LIR_MEM, 0, p)->wd = n <= 2 ? X86_XMM : part;
	} else if (s->target->mask_regs) {
		uint32_t mask = sel_constant(s, SEL_FIRST_N, n);
		sel_ins(s, LIR_MLOAD, r->op, sel_dst(s, i), 0, 0, p)->c = mask;
	} else {
		uint32_t mask = sel_constant(s, SEL_FIRST_N, n);
		sel_ins(s, LIR_OP3, X86_VMASKMOVPS, sel_dst(s, i), mask, LIR_MEM, p);
	}
}

static void sel_fbcast_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2, X86_VPBROADCASTW, t, LIR_MEM, 0, sel_place(s, i->a, i->imm))->wd = s->half;
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), t, 0, sel_no_place)->ws = s->half;
}

/* Words at p plus the lanes of index. */
static void gather(struct sel *s, const struct ir_ins *i, const struct sel_rule *r, uint32_t index, struct sel_place p)
{
	bool wide = s->target->mask_regs != 0;
	uint32_t mask = lir_reg(s->l, wide ? LIR_MASK : LIR_VEC), dst = sel_dst(s, i);
	if (index == dst) {
		index = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_MOV, X86_VMOVAPS, index, dst, 0, sel_no_place);
	}
	sel_ins(s, wide ? LIR_MIDIOM : LIR_IDIOM, wide ? X86_KXNORW : X86_VPCMPEQD, mask, 0, 0, sel_no_place);
	sel_ins(s, wide ? LIR_MGATHER : LIR_GATHER, r->op, dst, 0, index, p)->c = mask;
}

static void sel_gather(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, i->imm);
	gather(s, i, r, sel_vec(s, i->b), p);
}

static void sel_strided(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, ir_x_disp(i->imm));
	gather(s, i, r, sel_constant(s, SEL_STEPS, ir_x_stride(i->imm)), p);
}

static void store(struct sel *s, unsigned op, uint32_t a, uint8_t width, struct sel_place p)
{
	sel_ins(s, LIR_STORE, op, 0, a, 0, p)->ws = width;
}

static void store_part(struct sel *s, unsigned op, uint32_t a, unsigned part, struct sel_place p)
{
	struct lir_ins *n = sel_ins(s, LIR_STOREI, op, 0, a, 0, p);
	n->ws = X86_XMM;
	n->imm = part;
}

static void store_first(struct sel *s, unsigned op, uint32_t a, unsigned n, struct sel_place p)
{
	uint32_t mask = sel_constant(s, SEL_FIRST_N, n);
	if (s->target->mask_regs)
		sel_ins(s, LIR_MSTORE, op, 0, a, 0, p)->c = mask;
	else
		sel_ins(s, LIR_STOREM, X86_VMASKMOVPS, 0, mask, a, p);
}

static void sel_fstore(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, ir_x_disp(i->imm));
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	uint8_t part = sel_part_class(s, n);
	uint32_t a = sel_vec(s, i->b);
	if (part != X86_NONE)
		store(s, r->op, a, part, p);
	else if (n <= 2)
		store(s, n == 1 ? X86_VMOVSS : X86_VMOVQ, a, X86_XMM, p);
	else
		store_first(s, r->op, a, n, p);
}

static void sel_fstore1(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, i->imm);
	store(s, r->op, sel_vec(s, i->b), X86_XMM, p);
}

/* All lanes as f16, in a vector half as long. */
static uint32_t sel_halves(struct sel *s, uint16_t r)
{
	uint32_t a = sel_vec(s, r), t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, X86_VCVTPS2PH, t, a, 0, sel_no_place)->wd = s->half;
	return t;
}

static void sel_fstore_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	int64_t disp = ir_x_disp(i->imm);
	uint8_t part = sel_part_class(s, n);
	if (part != X86_NONE || s->target->mask_regs) {
		struct sel_place p = sel_place(s, i->a, disp);
		uint32_t a = sel_vec(s, i->b), mask = part == X86_NONE ? sel_constant(s, SEL_FIRST_N, n) : 0;
		struct lir_ins *x = sel_ins(s, mask ? LIR_MSTOREI : LIR_STOREI, r->op, 0, a, 0, p);
		x->c = mask;
		x->ws = mask ? s->width : part;
		return;
	}
	uint32_t t = sel_halves(s, i->b);
	unsigned lane = 0;
	if (n & 4)
		store(s, X86_VMOVQ, t, X86_XMM, sel_place(s, i->a, disp)), lane = 4;
	if (n & 2)
		store_part(s, X86_VPEXTRD, t, lane / 2, sel_place(s, i->a, disp + 2 * lane)), lane += 2;
	if (n & 1)
		store_part(s, X86_VPEXTRW, t, lane, sel_place(s, i->a, disp + 2 * lane));
}

/* The 128 bits of a that begin with lane 4 * number. */
static uint32_t sel_xmm(struct sel *s, uint32_t a, uint8_t width, unsigned number)
{
	if (!number)
		return a;
	uint32_t t = lir_reg(s->l, LIR_VEC);
	struct lir_ins *x = sel_ins(s, LIR_OP2I, s->target->mask_regs ? X86_VEXTRACTF32X4 : X86_VEXTRACTF128, t, a, 0,
	                            sel_no_place);
	x->wd = X86_XMM;
	x->ws = width;
	x->imm = number;
	return t;
}

static void sel_fstore_s(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes), stride = ir_x_stride(i->imm);
	uint32_t a = sel_vec(s, i->b), four = a;
	for (unsigned lane = 0; lane < n; lane++) {
		struct sel_place p = sel_place(s, i->a, ir_x_disp(i->imm) + (int64_t)lane * stride);
		if (lane % 4 == 0)
			four = sel_xmm(s, a, s->width, lane / 4);
		if (lane % 4)
			store_part(s, r->op, four, lane % 4, p);
		else
			store(s, X86_VMOVSS, four, X86_XMM, p);
	}
}

static void sel_fstore_hs(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes), stride = ir_x_stride(i->imm);
	uint32_t t = sel_halves(s, i->b), eight = t;
	for (unsigned lane = 0; lane < n; lane++) {
		if (lane % 8 == 0)
			eight = sel_xmm(s, t, s->half, lane / 8);
		store_part(s, r->op, eight, lane % 8, sel_place(s, i->a, ir_x_disp(i->imm) + (int64_t)lane * stride));
	}
}

static void sel_istore_8(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, i->imm);
	uint32_t a = sel_vec(s, i->b), high = lir_reg(s->l, LIR_VEC), words = lir_reg(s->l, LIR_VEC),
		 bytes = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_OP2I, X86_VEXTRACTI128, high, a, 0, sel_no_place);
	n->wd = X86_XMM;
	n->imm = 1;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSDW, words, a, high, sel_no_place);
	n->wd = n->ws = X86_XMM;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSWB, bytes, words, words, sel_no_place);
	n->wd = n->ws = X86_XMM;
	store(s, r->op, bytes, X86_XMM, p);
}

static void sel_istore_8_wide(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, i->imm);
	store(s, r->op, sel_vec(s, i->b), s->width, p);
}

static void sel_prefetch(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place p = sel_place(s, i->a, i->imm);
	sel_ins(s, LIR_PREFETCH, r->op, 0, 0, 0, p);
}

/* A register and as much displacement as the form has room for. */
static struct sel_place sel_factor(struct sel *s, uint16_t r)
{
	struct sel_place p = sel_place(s, r, 0);
	if (p.mem == LIR_AT_BASE && p.disp >= 0 && p.disp <= LIR_DOTS_MOST_DISP)
		return p;
	return (struct sel_place){ LIR_AT_BASE, false, sel_gpr(s, r), 0 };
}

static void sel_dots(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_place sums = sel_place(s, i->a, ir_x_disp(i->imm)), x = sel_factor(s, i->b), w = sel_factor(s, i->c);
	uint32_t strip = sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), IR_DOTS_STRIP);
	struct lir_ins *n = sel_ins(s, LIR_DOTS, r->op, 0, x.base, w.base, sums);
	n->c = strip;
	n->imm = lir_dots(ir_x_lanes(i->imm, 0), x.disp, w.disp);
}

/* --- the targets' tables */

#define BINARY(x) \
	{ \
		sel_binary, X86_##x, LIR_OP3, LIR_B, 0, false \
	}
#define BINARY_EITHER(x) \
	{ \
		sel_binary, X86_##x, LIR_OP3C, LIR_A | LIR_B, 0, false \
	}
#define COMPARE(x, how) \
	{ \
		sel_binary, X86_##x, LIR_OP3I, LIR_B, how, false \
	}
#define UNARY(x) \
	{ \
		sel_unary, X86_##x, LIR_OP2, LIR_A, 0, false \
	}
#define SHIFT(x) \
	{ \
		sel_unary, X86_##x, LIR_OP2I, 0, 0, false \
	}
#define LOAD(x) \
	{ \
		sel_load, X86_##x, LIR_OP2, 0, 0, false \
	}
#define MOVE \
	{ \
		sel_move, X86_VMOVAPS, LIR_MOV, 0, 0, false \
	}
#define RULE(fn, x) \
	{ \
		fn, X86_##x, 0, 0, 0, false \
	}

static const struct sel_rule avx2[IR_OP_COUNT] = {
	[IR_fconst] = RULE(sel_vector_constant, VMOVAPS),
	[IR_iconst] = RULE(sel_vector_constant, VMOVAPS),
	[IR_ilane] = RULE(sel_vector_constant, VMOVAPS),
	[IR_isplat] = RULE(sel_splat, VPBROADCASTD),
	[IR_fadd] = BINARY_EITHER(VADDPS),
	[IR_fsub] = BINARY(VSUBPS),
	[IR_fmul] = BINARY_EITHER(VMULPS),
	[IR_ffma] = { sel_fma, X86_VFMADD231PS, LIR_FMA, LIR_A | LIR_B | LIR_C, 0, false },
	[IR_fdiv] = BINARY(VDIVPS),
	[IR_fsqrt] = UNARY(VSQRTPS),
	[IR_fmin] = BINARY(VMINPS),
	[IR_fmax] = BINARY(VMAXPS),
	[IR_fabs] = { sel_with_constant, X86_VANDPS, LIR_OP3C, LIR_A, 0x7fffffff, false },
	[IR_fneg] = { sel_with_constant, X86_VXORPS, LIR_OP3C, LIR_A, 0x80000000, false },
	[IR_flt] = COMPARE(VCMPPS, 0x11),
	[IR_fle] = COMPARE(VCMPPS, 0x12), /* ordered, quiet */
	[IR_fsel] = { sel_select, X86_VBLENDVPS, LIR_BLEND, LIR_B, 0, false },
	[IR_isel] = { sel_select, X86_VBLENDVPS, LIR_BLEND, LIR_B, 0, false },
	[IR_f2i] = UNARY(VCVTPS2DQ),
	[IR_i2f] = UNARY(VCVTDQ2PS),
	[IR_fbits] = MOVE,
	[IR_ibits] = MOVE,
	[IR_fmov] = MOVE,
	[IR_imov] = MOVE,
	[IR_iadd] = BINARY_EITHER(VPADDD),
	[IR_isub] = BINARY(VPSUBD),
	[IR_imul] = BINARY_EITHER(VPMULLD),
	[IR_iand] = { sel_and, X86_VPAND, LIR_OP3C, LIR_A | LIR_B, X86_VPANDN, false },
	[IR_ior] = BINARY_EITHER(VPOR),
	[IR_ixor] = BINARY_EITHER(VPXOR),
	[IR_ibsel] = RULE(sel_choose_bits, VPOR),
	[IR_ishl] = SHIFT(VPSLLD),
	[IR_ishr] = SHIFT(VPSRLD),
	[IR_isar] = SHIFT(VPSRAD),
	[IR_irotl] = RULE(sel_rotate, VPOR),
	[IR_ishlv] = BINARY(VPSLLVD),
	[IR_ishrv] = BINARY(VPSRLVD),
	[IR_imin] = BINARY_EITHER(VPMINSD),
	[IR_imax] = BINARY_EITHER(VPMAXSD),
	[IR_ieq] = BINARY_EITHER(VPCMPEQD),
	[IR_igt] = BINARY(VPCMPGTD),
	[IR_dot4] = RULE(sel_dot4, VPMADDUBSW),
	[IR_dot4u] = RULE(sel_dot4u, VPAND),
	[IR_dot2b] = { sel_binary, X86_VPMADDUBSW, LIR_OP3, LIR_B, 0, true },
	[IR_iadd_16] = { sel_binary, X86_VPADDW, LIR_OP3C, LIR_A | LIR_B, 0, true },
	[IR_dot2h] = { sel_dot2h, X86_VPMADDWD, LIR_OP3C, LIR_B, 0, true },
	[IR_ilut16] = { sel_table, X86_VPSHUFB, LIR_OP3, LIR_A, 0, true },
	[IR_mand] = BINARY_EITHER(VPAND),
	[IR_mor] = BINARY_EITHER(VPOR),
	[IR_mnot] = { sel_with_constant, X86_VPXOR, LIR_OP3C, 0, 0xffffffff, false },
	[IR_fxor] = RULE(sel_fxor, VPERM2F128),

	[IR_fload] = RULE(sel_fload, VMOVUPS),
	[IR_fload_h] = LOAD(VCVTPH2PS),
	[IR_iload] = { sel_load, X86_VMOVUPS, LIR_MOV, 0, 0, false },
	[IR_iload_u8] = LOAD(VPMOVZXBD),
	[IR_iload_s8] = LOAD(VPMOVSXBD),
	[IR_iload_u16] = LOAD(VPMOVZXWD),
	[IR_fbcast] = LOAD(VBROADCASTSS),
	[IR_ibcast] = LOAD(VPBROADCASTD),
	[IR_fbcast_h] = RULE(sel_fbcast_h, VCVTPH2PS),
	[IR_igather] = RULE(sel_gather, VPGATHERDD),
	[IR_iload_s] = RULE(sel_strided, VPGATHERDD),
	[IR_fhalf] = RULE(sel_fhalf, VCVTPH2PS),
	[IR_fstore] = RULE(sel_fstore, VMOVUPS),
	[IR_fstore_h] = RULE(sel_fstore_h, VCVTPS2PH),
	[IR_istore_8] = RULE(sel_istore_8, VMOVQ),
	[IR_fstore_s] = RULE(sel_fstore_s, VEXTRACTPS),
	[IR_fstore_hs] = RULE(sel_fstore_hs, VPEXTRW),
	[IR_fstore1] = RULE(sel_fstore1, VMOVSS),
	[IR_prefetch] = RULE(sel_prefetch, PREFETCHT0),
	[IR_prefetch2] = RULE(sel_prefetch, PREFETCHT1),
};

/* What differs with mask registers and 512 bits. */
static const struct sel_rule avx512[IR_OP_COUNT] = {
	[IR_flt] = { sel_binary, X86_VCMPPS, LIR_MCMPI, LIR_B, 0x11, false },
	[IR_fle] = { sel_binary, X86_VCMPPS, LIR_MCMPI, LIR_B, 0x12, false },
	[IR_ieq] = { sel_binary, X86_VPCMPEQD, LIR_MCMP, LIR_B, 0, false },
	[IR_igt] = { sel_binary, X86_VPCMPGTD, LIR_MCMP, LIR_B, 0, false },
	[IR_fsel] = { sel_select, X86_VBLENDMPS, LIR_MBLEND, LIR_B, 0, false },
	[IR_isel] = { sel_select, X86_VBLENDMPS, LIR_MBLEND, LIR_B, 0, false },
	[IR_mand] = { sel_binary, X86_KANDW, LIR_MOP, 0, 0, false },
	[IR_mor] = { sel_binary, X86_KORW, LIR_MOP, 0, 0, false },
	[IR_mnot] = { sel_unary, X86_KNOTW, LIR_MNOT, 0, 0, false },
	[IR_iand] = { sel_and, X86_VPANDD, LIR_OP3C, LIR_A | LIR_B, X86_VPANDND, false },
	[IR_ior] = BINARY_EITHER(VPORD),
	[IR_ixor] = BINARY_EITHER(VPXORD),
	[IR_ibsel] = RULE(sel_ternary, VPTERNLOGD),
	[IR_irotl] = SHIFT(VPROLD),
	[IR_dot4u] = RULE(sel_dot4u, VPANDD),
	[IR_fxor] = RULE(sel_fxor, VSHUFF32X4),
	[IR_istore_8] = RULE(sel_istore_8_wide, VPMOVDB),
};

static const struct sel_rule vnni[IR_OP_COUNT] = {
	[IR_dot4u] = { sel_dot_vnni, X86_VPDPBUSD, LIR_DOT, LIR_B, 0, false },
	[IR_dot2h] = { sel_dot_vnni, X86_VPDPWSSD, LIR_DOT, LIR_B, 0, false },
};

static const struct sel_rule tiles[IR_OP_COUNT] = { [IR_idots] = RULE(sel_dots, TDPBSSD) };

static void overlay(struct sel *s, const struct sel_rule *rules)
{
	for (unsigned op = 0; op < IR_OP_COUNT; op++)
		if (rules[op].select)
			s->rules[op] = rules[op];
}

void sel_vector_rules(struct sel *s)
{
	overlay(s, avx2);
	if (s->target->mask_regs)
		overlay(s, avx512);
	if (s->target->has_vnni)
		overlay(s, vnni);
	if (s->target->has_tiles)
		overlay(s, tiles);
}
