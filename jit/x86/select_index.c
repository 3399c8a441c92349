/* jit/x86/select_index.c - memory by index: gathers of words, of which smaller elements are cut and larger ones put
 * together, and scatters and atomics lane by lane.
 *
 * Rule for editors: that of select_integer.c.
 */
#include "jit/x86/select_state.h"

static bool has_masks(const struct sel *s) { return s->target->mask_regs != 0; }

static unsigned log2_of(unsigned bytes) { return (unsigned)__builtin_ctz(bytes); }

/* --- gathers. They destroy their mask, and their destination is no operand. */

/* The word at p plus scale times the index, of each lane that takes part; 0 of others. */
static uint32_t words(struct sel *s, const struct ir_ins *i, uint32_t index, unsigned scale, struct sel_memory p)
{
	const bool apart = has_masks(s);
	uint32_t mask = lir_reg(s->l, apart ? LIR_MASK : LIR_VEC), t = lir_reg(s->l, LIR_VEC);
	if (i->mask)
		sel_ins(s, apart ? LIR_MMOV : LIR_MOV, apart ? X86_KMOVW : X86_VMOVAPS, mask, sel_vec(s, i->mask), 0,
		        sel_no_memory);
	else
		sel_ins(s, apart ? LIR_MIDIOM : LIR_IDIOM, apart ? X86_KXNORW : X86_VPCMPEQD, mask, 0, 0,
		        sel_no_memory);
	struct lir_ins *n = sel_ins(s, apart ? LIR_MGATHER : LIR_GATHER, X86_VPGATHERDD, t, 0, index, p);
	n->c = mask;
	n->imm = scale;
	return t;
}

void sel_gather_words(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, i->imm);
	uint32_t t = words(s, i, sel_vec(s, i->b), 4, p);
	sel_ins(s, LIR_MOV, X86_VMOVAPS, sel_dst(s, i), t, 0, sel_no_memory);
}

/* In every lane. */
static uint32_t splat_gpr(struct sel *s, uint32_t gpr)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	if (has_masks(s)) {
		sel_ins(s, LIR_FROM_GPR, X86_VPBROADCASTD, t, gpr, 0, sel_no_memory)->ws = X86_GPR32;
		return t;
	}
	uint32_t low = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_FROM_GPR, X86_VMOVD, low, gpr, 0, sel_no_memory);
	n->wd = X86_XMM;
	n->ws = X86_GPR32;
	sel_ins(s, LIR_OP2, X86_VPBROADCASTD, t, low, 0, sel_no_memory)->ws = X86_XMM;
	return t;
}

static uint32_t with_immediate(struct sel *s, unsigned op, uint32_t a, int64_t imm)
{
	uint32_t t = lir_reg(s->l, LIR_GPR);
	sel_ins(s, LIR_SOPI, op, t, a, 0, sel_no_memory)->imm = imm;
	return t;
}

/* Of the word that the element lies in, which is on the same page: only whole words are gathered. */
void sel_gather_parts(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	const unsigned bytes = ir_types[i->type].bytes;
	const unsigned op_and = has_masks(s) ? X86_VPANDD : X86_VPAND;
	uint32_t three = sel_constant(s, SEL_SPLAT, 3), bits = sel_constant(s, SEL_SPLAT, bytes == 1 ? 0xff : 0xffff);
	uint32_t index = sel_vec(s, i->b), base = sel_gpr(s, i->a);
	uint32_t begin = with_immediate(s, X86_ADD, base, i->imm), low = with_immediate(s, X86_AND, begin, 3);
	uint32_t word_begin = with_immediate(s, X86_AND, begin, -4);
	uint32_t offset = bytes == 1 ? index : sel_op2i(s, X86_VPSLLD, index, 1);
	uint32_t at = sel_op3(s, X86_VPADDD, offset, splat_gpr(s, low));
	uint32_t word = words(s, i, sel_op2i(s, X86_VPSRLD, at, 2), 4,
	                      (struct sel_memory){ LIR_AT_BASE, false, word_begin, 0 });
	uint32_t shift = sel_op2i(s, X86_VPSLLD, sel_op3(s, op_and, at, three), 3);
	uint32_t part = sel_op3(s, X86_VPSRLVD, word, shift);
	sel_ins(s, LIR_OP3C, op_and, sel_dst(s, i), part, bits, sel_no_memory);
}

/* The lower words and the upper ones. */
void sel_gather_wide(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, i->imm);
	uint32_t index = sel_vec(s, i->b), low = words(s, i, index, 8, p);
	p.disp += 4;
	uint32_t high = words(s, i, index, 8, p);
	struct sel_pair d = sel_dst_pair(s, i);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t half[2] = { sel_half(s, low, k), sel_half(s, high, k) }, t[2];
		for (unsigned n = 0; n < 2; n++) {
			t[n] = lir_reg(s->l, LIR_VEC);
			sel_ins(s, LIR_OP2, X86_VPMOVZXDQ, t[n], half[n], 0, sel_no_memory)->ws = s->half;
		}
		uint32_t upper = sel_op2i(s, X86_VPSLLQ, t[1], 32);
		sel_ins(s, LIR_OP3C, has_masks(s) ? X86_VPORQ : X86_VPOR, d.v[k], t[0], upper, sel_no_memory);
	}
}

/* --- lane by lane */

/* An element of a vector's lowest 128 bits. */
static uint32_t extracted(struct sel *s, unsigned op, uint32_t four, unsigned number)
{
	uint32_t t = lir_reg(s->l, LIR_GPR);
	struct lir_ins *n = sel_ins(s, LIR_EXTRACT, op, t, four, 0, sel_no_memory);
	n->ws = X86_XMM;
	n->imm = number;
	return t;
}

/* The 128 bits that lane l lies in, of what a row stores. */
static uint32_t sixteen_bytes(struct sel *s, const struct ir_ins *i, unsigned l)
{
	const unsigned half = s->l->lanes / 2;

	if (ir_types[i->type].bytes < 8)
		return sel_xmm(s, sel_vec(s, i->c), s->width, l / 4);
	return sel_xmm(s, sel_wide(s, i->c).v[l / half], s->width, l % half / 2);
}

static void at_lane(struct lir_ins *n, struct lir_ins to)
{
	n->mem = LIR_AT_BASE;
	n->base = to.base;
	n->index = to.index;
	n->disp = to.disp;
}

static void store_lane(struct sel *s, const struct ir_ins *i, uint32_t from, unsigned part, struct lir_ins to)
{
	const unsigned bytes = ir_types[i->type].bytes;
	const unsigned op = bytes == 1   ? X86_VPEXTRB
	                    : bytes == 2 ? X86_VPEXTRW
	                    : bytes == 4 ? X86_VPEXTRD
	                                 : X86_VPEXTRQ;
	struct lir_ins *n = sel_ins(s, LIR_STOREI, op, 0, from, 0, sel_no_memory);
	n->ws = X86_XMM;
	n->imm = bytes < 4 ? part * 4 / bytes : part;
	at_lane(n, to);
}

/* As a number of 64 bits that compares as one of 32 with a sign. */
static uint32_t in_order(struct sel *s, uint32_t v, bool has_sign)
{
	return has_sign ? with_immediate(s, X86_SHL, v, 32) : v;
}

/* The greatest, or the least, of what there is and v: they are exchanged until what comes out is no better than what
 * was put in. Each iteration puts in more than the one before, so there are less than 2^32 of them. */
static void exchange_until(struct sel *s, const struct ir_ins *i, uint32_t v, struct lir_ins to)
{
	const bool has_sign = i->op == IR_atomic_min || i->op == IR_atomic_max,
		   max = i->op == IR_atomic_max || i->op == IR_atomic_max_unsigned;
	uint32_t left = sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), INT64_MAX), put = lir_reg(s->l, LIR_GPR),
		 done = lir_reg(s->l, LIR_GPR);
	sel_ins(s, LIR_LOOP, X86_TEST, 0, 0, 0, sel_no_memory);
	sel_ins(s, LIR_SMOV, X86_MOV, put, v, 0, sel_no_memory);
	at_lane(sel_ins(s, LIR_XCHG, X86_XCHG, v, v, 0, sel_no_memory), to);
	uint32_t was = in_order(s, v, has_sign), is = in_order(s, put, has_sign);
	sel_ins(s, LIR_SCMP, X86_SETLE, done, max ? was : is, max ? is : was, sel_no_memory);
	sel_ins(s, LIR_BREAK, X86_JNE, 0, done, 0, sel_no_memory);
	sel_ins(s, LIR_SOPI, X86_ADD, left, left, 0, sel_no_memory)->imm = -1;
	sel_ins(s, LIR_ENDLOOP, X86_JNE, 0, left, 0, sel_no_memory);
}

/* Bytes of the frame, which nobody else reaches. */
static bool in_frame(const struct sel *s, uint16_t address)
{
	const struct ir_ins *i = &s->ir->ins[s->scan.reg[address].def];
	while (!s->ir->is_var[i->dst] && (i->op == IR_add || i->op == IR_addi) && i->type == IR_TYPE_a)
		i = &s->ir->ins[s->scan.reg[i->a].def];
	return !s->ir->is_var[i->dst] && i->op == IR_local;
}

/* constant: what every lane adds, or 0. */
static void update_lane(struct sel *s, const struct ir_ins *i, uint32_t constant, uint32_t from, unsigned part,
                        struct lir_ins to)
{
	const bool wide = ir_types[i->type].bytes == 8;
	uint32_t v = constant ? constant : extracted(s, wide ? X86_VPEXTRQ : X86_VPEXTRD, from, part);
	if (i->op != IR_atomic_add && i->op != IR_atomic_and && i->op != IR_atomic_or) {
		exchange_until(s, i, v, to);
		return;
	}
	struct lir_ins *n =
		sel_ins(s, LIR_LOCK,
	                i->op == IR_atomic_add   ? X86_ADD
	                : i->op == IR_atomic_and ? X86_AND
	                                         : X86_OR,
	                0, v, 0, sel_no_memory);
	n->ws = wide ? X86_GPR64 : X86_GPR32;
	n->imm = in_frame(s, i->a); /* of a frame's bytes: without lock */
	at_lane(n, to);
}

/* Whether lanes are equally far apart: the number of each times a constant. */
static bool has_steps(const struct sel *s, const struct ir_ins *i, int64_t *step)
{
	const int64_t last = (int64_t)s->l->lanes - 1, bytes = ir_types[i->type].bytes;
	const struct ir_ins *n = &s->ir->ins[s->scan.reg[i->b].def], *of[2];

	if (s->ir->is_var[i->b] || n->op != IR_mul || s->ir->is_var[n->a] || s->ir->is_var[n->b])
		return false;
	of[0] = &s->ir->ins[s->scan.reg[n->a].def];
	of[1] = &s->ir->ins[s->scan.reg[n->b].def];
	if (of[0]->op != IR_lane || of[1]->op != IR_const || of[1]->imm < 0)
		return false;
	*step = of[1]->imm * bytes;
	return *step <= INT32_MAX && i->imm + *step * last <= INT32_MAX && *step * last <= INT32_MAX;
}

/* scatters and atomics */
void sel_each_lane(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	const unsigned shift = log2_of(ir_types[i->type].bytes), each = shift < 3 ? 4 : 2; /* lanes in 16 bytes */
	const struct ir_ins *what = &s->ir->ins[s->scan.reg[i->c].def];
	const bool once =
		i->op == IR_atomic_add && !s->ir->is_var[i->c] && what->op == IR_const && ir_types[i->type].bytes == 4;
	uint32_t bits = i->mask ? sel_bits(s, i->mask) : 0;
	int64_t step = 0;
	const bool steps = has_steps(s, i, &step);
	uint32_t index = steps ? 0 : shift ? sel_op2i(s, X86_VPSLLD, sel_vec(s, i->b), shift) : sel_vec(s, i->b);
	uint32_t four = index, from = 0;
	uint32_t constant = once ? sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), what->imm) : 0;
	struct lir_ins to = { .base = sel_gpr(s, i->a), .disp = (int32_t)i->imm };
	for (unsigned l = 0; l < s->l->lanes; l++) {
		unsigned part = l % each;
		if (l % 4 == 0 && !steps)
			four = sel_xmm(s, index, s->width, l / 4);
		if (part == 0 && !once)
			from = sixteen_bytes(s, i, l);
		if (bits)
			sel_if_bit(s, bits, l);
		if (steps)
			to.disp = (int32_t)(i->imm + l * step);
		else
			to.index = extracted(s, X86_VPEXTRD, four, l % 4);
		if (i->op == IR_scatter)
			store_lane(s, i, from, part, to);
		else
			update_lane(s, i, constant, from, part, to);
		if (bits)
			sel_end_bit(s);
	}
}
