/* jit/x86/select_vector.c - IR operations on vectors and masks to x86 instructions on virtual registers.
 *
 * Owns: what a row of vector_rules.c cannot say. Targets with mask registers (AVX-512) keep IR masks and lane counts in
 * them and fold one element for all lanes into the instruction that uses it; the others keep masks in vectors. Rule for
 * editors: a row of a table first, a function only for what a row cannot say; branch on capabilities of s->target.
 */
#include "jit/x86/select_state.h"

/* --- vectors */

void sel_unary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	uint32_t a = sel_operand(s, i->a, &p);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, 0, p)->imm = r->form == LIR_OP2I ? i->imm : 0;
}

void sel_binary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_operand(s, i->b, &p);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, b, p)->imm = r->imm;
}

void sel_and(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
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

void sel_with_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_constant(s, SEL_SPLAT, r->imm);
	sel_ins(s, LIR_OP3C, r->op, sel_dst(s, i), a, b, p);
}

void sel_fma(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_operand(s, i->b, &p), c = sel_operand(s, i->c, &p);
	sel_ins(s, LIR_FMA, r->op, sel_dst(s, i), a, b, p)->c = c;
}

void sel_select(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	uint32_t mask = sel_vec(s, i->a), yes = sel_operand(s, i->b, &p), no = sel_vec(s, i->c);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), no, yes, p)->c = mask;
}

void sel_move(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum sel_constant_kind kind;
	uint32_t value;
	if (sel_constant_of(s, i->a, &kind, &value) && kind == SEL_SPLAT && !value)
		sel_ins(s, LIR_IDIOM, X86_VXORPS, sel_dst(s, i), 0, 0, sel_no_memory);
	else {
		uint32_t from = sel_vec(s, i->a);
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i), from, 0, sel_no_memory);
	}
}

void sel_vector_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	if (i->op != IR_lane && !i->imm)
		sel_ins(s, LIR_IDIOM, X86_VXORPS, sel_dst(s, i), 0, 0, sel_no_memory);
	else
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i),
		        i->op == IR_lane ? sel_constant(s, SEL_LANES, 0) : sel_constant(s, SEL_SPLAT, (uint32_t)i->imm),
		        0, sel_no_memory);
}

void sel_splat(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t value;
	if (sel_scalar_of(s, i->a, &value)) {
		sel_ins(s, LIR_MOV, X86_VMOVAPS, sel_dst(s, i), sel_constant(s, SEL_SPLAT, (uint32_t)(uint64_t)value),
		        0, sel_no_memory);
		return;
	}
	uint32_t a = sel_gpr(s, i->a);
	if (s->target->mask_regs) {
		sel_ins(s, LIR_FROM_GPR, r->op, sel_dst(s, i), a, 0, sel_no_memory)->ws = X86_GPR32;
		return;
	}
	uint32_t t = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_FROM_GPR, X86_VMOVD, t, a, 0, sel_no_memory);
	n->wd = X86_XMM;
	n->ws = X86_GPR32;
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), t, 0, sel_no_memory)->ws = X86_XMM;
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
	sel_ins(s, LIR_OP2, X86_VPABSB, t, a, 0, sel_no_memory);
	return sel_memo_keep(s, SEL_ABS, a, t);
}

static uint32_t sel_signs(struct sel *s, uint32_t a)
{
	uint32_t t = sel_memo_find(s, SEL_SIGNS, a);
	if (t)
		return t;
	t = lir_reg(s->l, LIR_MASK);
	sel_ins(s, LIR_MSIGN, X86_VPMOVB2M, t, a, 0, sel_no_memory);
	return sel_memo_keep(s, SEL_SIGNS, a, t);
}

static uint32_t sel_negative(struct sel *s, uint32_t b)
{
	uint32_t t = sel_memo_find(s, SEL_NEGATIVE, b);
	if (t)
		return t;
	t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3, X86_VPSUBB, t, sel_constant(s, SEL_SPLAT, 0), b, sel_no_memory);
	return sel_memo_keep(s, SEL_NEGATIVE, b, t);
}

/* b's bytes with the signs of a's; where a is zero they do not matter. */
static uint32_t sel_signed_like(struct sel *s, uint32_t a, uint32_t b)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	if (s->target->mask_regs) {
		uint32_t negative = sel_negative(s, b), signs = sel_signs(s, a);
		sel_ins(s, LIR_MBLEND, X86_VPBLENDMB, t, b, negative, sel_no_memory)->c = signs;
	} else {
		sel_ins(s, LIR_OP3, X86_VPSIGNB, t, b, a, sel_no_memory);
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
static void sel_dot(struct sel *s, unsigned op, uint32_t dst, uint32_t a, uint32_t b, uint32_t c, struct sel_memory p)
{
	uint32_t to = dst != c && (dst == a || dst == b) ? lir_reg(s->l, LIR_VEC) : dst;
	if (!c) {
		c = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_IDIOM, X86_VXORPS, c, 0, 0, sel_no_memory);
	}
	sel_ins(s, LIR_DOT, op, to, a, b, p)->c = c;
	if (to != dst)
		sel_ins(s, LIR_MOV, X86_VMOVAPS, dst, to, 0, sel_no_memory);
}

void sel_dot4(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	bool first = sel_is_zero(s, i->c);
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), c = first ? 0 : sel_vec(s, i->c);
	uint32_t size = sel_abs(s, a), sign = sel_signed_like(s, a, b), dst = sel_dst(s, i);
	if (s->target->has_vnni) {
		sel_dot(s, X86_VPDPBUSD, dst, size, sign, c, sel_no_memory);
		return;
	}
	uint32_t ones = sel_constant(s, SEL_SPLAT, 0x00010001), pair = lir_reg(s->l, LIR_VEC),
		 four = first ? dst : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3, r->op, pair, size, sign, sel_no_memory);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, four, pair, ones, sel_no_memory);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, dst, c, four, sel_no_memory);
}

static uint32_t sel_shift(struct sel *s, unsigned op, uint32_t a, unsigned count)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, op, t, a, 0, sel_no_memory)->imm = count;
	return t;
}

void sel_dot4u(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	bool first = sel_is_zero(s, i->c);
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), c = first ? 0 : sel_vec(s, i->c);
	uint32_t even = lir_reg(s->l, LIR_VEC), low = lir_reg(s->l, LIR_VEC), high = lir_reg(s->l, LIR_VEC);
	uint32_t sum = first ? sel_dst(s, i) : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3C, r->op, even, a, sel_constant(s, SEL_SPLAT, 0x00ff00ff), sel_no_memory);
	uint32_t signed_even = sel_shift(s, X86_VPSRAW, sel_shift(s, X86_VPSLLW, b, 8), 8);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, low, even, signed_even, sel_no_memory);
	uint32_t odd = sel_shift(s, X86_VPSRLW, a, 8), signed_odd = sel_shift(s, X86_VPSRAW, b, 8);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, high, odd, signed_odd, sel_no_memory);
	sel_ins(s, LIR_OP3C, X86_VPADDD, sum, low, high, sel_no_memory);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, sel_dst(s, i), c, sum, sel_no_memory);
}

void sel_dot_at_once(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	uint32_t a = sel_vec(s, i->a), b = sel_operand(s, i->b, &p), c = sel_is_zero(s, i->c) ? 0 : sel_vec(s, i->c);
	sel_dot(s, r->op, sel_dst(s, i), a, b, c, p);
}

/* An operand that is read from the pool when it is a constant, for registers are few where there is no VNNI. */
static uint32_t sel_from_memory(struct sel *s, uint16_t r, struct sel_memory *p)
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
	*p = (struct sel_memory){ .mem = LIR_AT_POOL, .disp = (int32_t)s->pooled - 1 };
	return LIR_MEM;
}

void sel_dot2h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	bool first = sel_is_zero(s, i->c);
	uint32_t a = sel_vec(s, i->a), b = sel_from_memory(s, i->b, &p), c = first ? 0 : sel_vec(s, i->c);
	uint32_t both = first ? sel_dst(s, i) : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3C, r->op, both, a, b, p);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, sel_dst(s, i), c, both, sel_no_memory);
}

void sel_choose_bits(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), yes = sel_vec(s, i->b), no = sel_vec(s, i->c), part = lir_reg(s->l, LIR_VEC),
		 rest = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3C, X86_VPAND, part, a, yes, sel_no_memory);
	sel_ins(s, LIR_OP3, X86_VPANDN, rest, a, no, sel_no_memory);
	sel_ins(s, LIR_OP3C, r->op, sel_dst(s, i), part, rest, sel_no_memory);
}

void sel_ternary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum { IF_A_THEN_B_ELSE_DST = 0xb8, IF_A_THEN_DST_ELSE_B = 0xe2 };
	bool over_yes = s->scan.reg[i->b].uses == 1 && !s->ir->is_var[i->b];
	uint32_t a = sel_vec(s, i->a), yes = sel_vec(s, i->b), no = sel_vec(s, i->c), b = over_yes ? no : yes,
		 c = over_yes ? yes : no;
	uint32_t dst = sel_dst(s, i), to = dst != c && (dst == a || dst == b) ? lir_reg(s->l, LIR_VEC) : dst;
	struct lir_ins *n = sel_ins(s, LIR_TERNARY, r->op, to, a, b, sel_no_memory);
	n->c = c;
	n->imm = over_yes ? IF_A_THEN_DST_ELSE_B : IF_A_THEN_B_ELSE_DST;
	if (to != dst)
		sel_ins(s, LIR_MOV, X86_VMOVAPS, dst, to, 0, sel_no_memory);
}

void sel_rotate(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), left = sel_shift(s, X86_VPSLLD, a, (unsigned)i->imm),
		 right = sel_shift(s, X86_VPSRLD, a, 32 - (unsigned)i->imm);
	sel_ins(s, LIR_OP3C, r->op, sel_dst(s, i), left, right, sel_no_memory);
}

void sel_table(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_no_memory;
	uint32_t a = sel_operand(s, i->a, &p), table = sel_constant(s, SEL_TABLE, (uint32_t)i->imm);
	sel_ins(s, LIR_OP3, r->op, sel_dst(s, i), table, a, p);
}

/* --- halves of words */

static uint32_t sel_shifted(struct sel *s, unsigned op, uint32_t a)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, op, t, a, 0, sel_no_memory)->imm = 16;
	return t;
}

void sel_fhalf(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a), high = lir_reg(s->l, LIR_VEC), words = lir_reg(s->l, LIR_VEC);
	uint32_t one = sel_shifted(s, X86_VPSRAD, i->imm ? a : sel_shifted(s, X86_VPSLLD, a));
	bool wide = s->width == X86_ZMM;
	struct lir_ins *n =
		sel_ins(s, LIR_OP2I, wide ? X86_VEXTRACTI64X4 : X86_VEXTRACTI128, high, one, 0, sel_no_memory);
	n->wd = s->half;
	n->imm = 1;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSDW, words, one, high, sel_no_memory);
	n->wd = n->ws = s->half;
	if (wide) {
		uint32_t joined = words;
		words = lir_reg(s->l, LIR_VEC);
		n = sel_ins(s, LIR_OP2I, X86_VPERMQ, words, joined, 0, sel_no_memory);
		n->wd = n->ws = X86_YMM;
		n->imm = 0xd8;
	}
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), words, 0, sel_no_memory)->ws = s->half;
}

/* --- across lanes */

void sel_fxor(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a);
	if (i->imm < 4)
		sel_ins(s, LIR_OP2I, X86_VPERMILPS, sel_dst(s, i), a, 0, sel_no_memory)->imm =
			i->imm == 1 ? 0xb1 : 0x4e;
	else
		sel_ins(s, LIR_OP3I, r->op, sel_dst(s, i), a, a, sel_no_memory)->imm =
			s->width == X86_YMM ? 1
			: i->imm == 4       ? 0xb1
					    : 0x4e;
}
