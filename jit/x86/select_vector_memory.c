/* jit/x86/select_vector_memory.c - vectors from and to memory: loads, gathers, stores, prefetches, and products of
 * matrices. */
#include "jit/x86/select_state.h"

/* The class of a vector of n lanes that moves as a whole; X86_NONE: there is none. */
static uint8_t sel_part_class(const struct sel *s, unsigned n)
{
	return n == s->l->lanes ? s->width : n == 8 ? X86_YMM : n == 4 ? X86_XMM : X86_NONE;
}

uint32_t sel_lanes(struct sel *s, const struct ir_ins *i, unsigned n)
{
	bool apart = s->target->mask_regs != 0;
	if (!i->mask)
		return sel_constant(s, SEL_FIRST_N, n);
	uint32_t mask = sel_vec(s, i->mask);
	if (n == s->l->lanes)
		return mask;
	uint32_t first = sel_constant(s, SEL_FIRST_N, n), both = lir_reg(s->l, apart ? LIR_MASK : LIR_VEC);
	sel_ins(s, apart ? LIR_MOP : LIR_OP3C, apart ? X86_KANDW : X86_VPAND, both, mask, first, sel_no_memory);
	return both;
}

/* Elements of one or two bytes by themselves: without mask registers there is no instruction that leaves some alone. */
static void sel_load_each(struct sel *s, const struct ir_ins *i, const struct sel_rule *r, unsigned n)
{
	unsigned bytes = ir_types[i->type].bytes;
	uint32_t bits = i->mask ? sel_bits(s, i->mask) : 0, t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_IDIOM, X86_VXORPS, t, 0, 0, sel_no_memory)->wd = X86_XMM;
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	for (unsigned lane = 0; lane < n; lane++, p.disp += (int32_t)bytes) {
		if (bits)
			sel_if_bit(s, bits, lane);
		struct lir_ins *x = sel_ins(s, LIR_OP3I, bytes == 1 ? X86_VPINSRB : X86_VPINSRW, t, t, LIR_MEM, p);
		x->imm = lane;
		x->wd = x->ws = X86_XMM;
		if (bits)
			sel_end_bit(s);
	}
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), t, 0, sel_no_memory)->ws = X86_XMM;
}

void sel_load(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = i->op == IR_load ? ir_x_lanes(i->imm, s->l->lanes) : s->l->lanes;
	if (n == s->l->lanes && !i->mask) {
		sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), LIR_MEM, 0, sel_memory(s, i->a, ir_disp(i)));
	} else if (s->target->mask_regs) {
		struct sel_memory p = sel_memory(s, i->a, ir_disp(i));
		uint32_t mask = sel_lanes(s, i, n);
		sel_ins(s, LIR_MLOAD, r->op, sel_dst(s, i), 0, 0, p)->c = mask;
	} else {
		sel_load_each(s, i, r, n);
	}
}

void sel_fload(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	uint8_t part = i->mask ? X86_NONE : sel_part_class(s, n);
	if (n == s->l->lanes && !i->mask) {
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i), LIR_MEM, 0, p);
	} else if (part != X86_NONE || (n <= 2 && !i->mask)) {
		unsigned op = n == 1 ? X86_VMOVSS : n == 2 ? X86_VMOVSD : X86_VMOVUPS;
		sel_ins(s, LIR_OP2, op, sel_dst(s, i), LIR_MEM, 0, p)->wd = n <= 2 ? X86_XMM : part;
	} else if (s->target->mask_regs) {
		uint32_t mask = sel_lanes(s, i, n);
		sel_ins(s, LIR_MLOAD, r->op, sel_dst(s, i), 0, 0, p)->c = mask;
	} else {
		uint32_t mask = sel_lanes(s, i, n);
		sel_ins(s, LIR_OP3, X86_VMASKMOVPS, sel_dst(s, i), mask, LIR_MEM, p);
	}
}

void sel_fbcast_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2, X86_VPBROADCASTW, t, LIR_MEM, 0, sel_memory(s, i->a, i->imm))->wd = s->half;
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), t, 0, sel_no_memory)->ws = s->half;
}

/* Words at p plus the lanes of index. */
static void gather(struct sel *s, const struct ir_ins *i, const struct sel_rule *r, uint32_t index, struct sel_memory p)
{
	bool wide = s->target->mask_regs != 0;
	uint32_t mask = lir_reg(s->l, wide ? LIR_MASK : LIR_VEC), dst = sel_dst(s, i);
	if (index == dst) {
		index = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_MOV, X86_VMOVAPS, index, dst, 0, sel_no_memory);
	}
	if (i->mask) /* the instruction clears it */
		sel_ins(s, wide ? LIR_MMOV : LIR_MOV, wide ? X86_KMOVW : X86_VMOVAPS, mask, sel_vec(s, i->mask), 0,
		        sel_no_memory);
	else
		sel_ins(s, wide ? LIR_MIDIOM : LIR_IDIOM, wide ? X86_KXNORW : X86_VPCMPEQD, mask, 0, 0, sel_no_memory);
	sel_ins(s, wide ? LIR_MGATHER : LIR_GATHER, r->op, dst, 0, index, p)->c = mask;
}

void sel_gather(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, i->imm);
	gather(s, i, r, sel_vec(s, i->b), p);
}

void sel_strided(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	gather(s, i, r, sel_constant(s, SEL_STEPS, ir_x_stride(i->imm)), p);
}

/* A plan's barriers stand between who gives and who awaits. */
void sel_fawait(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	static const struct sel_rule strided = { .op = X86_VPGATHERDD };

	if (ir_x_stride(i->imm) == 4)
		sel_fload(s, i, r);
	else
		sel_strided(s, i, &strided);
}

static void store(struct sel *s, unsigned op, uint32_t a, uint8_t width, struct sel_memory p)
{
	sel_ins(s, LIR_STORE, op, 0, a, 0, p)->ws = width;
}

static void store_part(struct sel *s, unsigned op, uint32_t a, unsigned part, struct sel_memory p)
{
	struct lir_ins *n = sel_ins(s, LIR_STOREI, op, 0, a, 0, p);
	n->ws = X86_XMM;
	n->imm = part;
}

static void store_some(struct sel *s, unsigned op, uint32_t a, uint32_t mask, struct sel_memory p)
{
	if (s->target->mask_regs)
		sel_ins(s, LIR_MSTORE, op, 0, a, 0, p)->c = mask;
	else
		sel_ins(s, LIR_STOREM, X86_VMASKMOVPS, 0, mask, a, p);
}

void sel_fstore(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	uint8_t part = i->mask ? X86_NONE : sel_part_class(s, n);
	uint32_t a = sel_vec(s, i->b);
	if (part != X86_NONE)
		store(s, r->op, a, part, p);
	else if (n <= 2 && !i->mask)
		store(s, n == 1 ? X86_VMOVSS : X86_VMOVQ, a, X86_XMM, p);
	else
		store_some(s, r->op, a, sel_lanes(s, i, n), p);
}

void sel_fstore1(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, i->imm);
	store(s, r->op, sel_vec(s, i->b), X86_XMM, p);
}

/* All lanes as f16, in a vector half as long. */
static uint32_t sel_halves(struct sel *s, uint16_t r)
{
	uint32_t a = sel_vec(s, r), t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, X86_VCVTPS2PH, t, a, 0, sel_no_memory)->wd = s->half;
	return t;
}

/* The first n elements of one or two bytes in the lowest 128 bits of t, those of the mask. */
static void store_each(struct sel *s, const struct ir_ins *i, unsigned op, uint32_t t, unsigned n)
{
	uint32_t bits = i->mask ? sel_bits(s, i->mask) : 0;
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	for (unsigned lane = 0; lane < n; lane++, p.disp += ir_types[i->type].bytes) {
		if (bits)
			sel_if_bit(s, bits, lane);
		store_part(s, op, t, lane, p);
		if (bits)
			sel_end_bit(s);
	}
}

void sel_fstore_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	int64_t disp = ir_x_disp(i->imm);
	uint8_t part = i->mask ? X86_NONE : sel_part_class(s, n);
	if (part != X86_NONE || s->target->mask_regs) {
		struct sel_memory p = sel_memory(s, i->a, disp);
		uint32_t a = sel_vec(s, i->b), mask = part == X86_NONE ? sel_lanes(s, i, n) : 0;
		struct lir_ins *x = sel_ins(s, mask ? LIR_MSTOREI : LIR_STOREI, r->op, 0, a, 0, p);
		x->c = mask;
		x->ws = mask ? s->width : part;
		return;
	}
	uint32_t t = sel_halves(s, i->b);
	unsigned lane = 0;
	if (i->mask) {
		store_each(s, i, X86_VPEXTRW, t, n);
		return;
	}
	if (n & 4)
		store(s, X86_VMOVQ, t, X86_XMM, sel_memory(s, i->a, disp)), lane = 4;
	if (n & 2)
		store_part(s, X86_VPEXTRD, t, lane / 2, sel_memory(s, i->a, disp + 2 * lane)), lane += 2;
	if (n & 1)
		store_part(s, X86_VPEXTRW, t, lane, sel_memory(s, i->a, disp + 2 * lane));
}

uint32_t sel_xmm(struct sel *s, uint32_t a, uint8_t width, unsigned number)
{
	if (!number)
		return a;
	uint32_t t = lir_reg(s->l, LIR_VEC);
	struct lir_ins *x = sel_ins(s, LIR_OP2I, s->target->mask_regs ? X86_VEXTRACTF32X4 : X86_VEXTRACTF128, t, a, 0,
	                            sel_no_memory);
	x->wd = X86_XMM;
	x->ws = width;
	x->imm = number;
	return t;
}

void sel_fstore_s(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes), stride = ir_x_stride(i->imm);
	uint32_t bits = i->mask ? sel_bits(s, i->mask) : 0, a = sel_vec(s, i->b), four = a;
	for (unsigned lane = 0; lane < n; lane++) {
		struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm) + (int64_t)lane * stride);
		if (lane % 4 == 0)
			four = sel_xmm(s, a, s->width, lane / 4);
		if (bits)
			sel_if_bit(s, bits, lane);
		if (lane % 4)
			store_part(s, r->op, four, lane % 4, p);
		else
			store(s, X86_VMOVSS, four, X86_XMM, p);
		if (bits)
			sel_end_bit(s);
	}
}

void sel_fstore_hs(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes), stride = ir_x_stride(i->imm);
	uint32_t bits = i->mask ? sel_bits(s, i->mask) : 0, t = sel_halves(s, i->b), eight = t;
	for (unsigned lane = 0; lane < n; lane++) {
		if (lane % 8 == 0)
			eight = sel_xmm(s, t, s->half, lane / 8);
		struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm) + (int64_t)lane * stride);
		if (bits)
			sel_if_bit(s, bits, lane);
		store_part(s, r->op, eight, lane % 8, p);
		if (bits)
			sel_end_bit(s);
	}
}

void sel_istore_8(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned lanes = ir_x_lanes(i->imm, s->l->lanes);
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	uint32_t a = sel_vec(s, i->b), high = lir_reg(s->l, LIR_VEC), words = lir_reg(s->l, LIR_VEC),
		 bytes = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_OP2I, X86_VEXTRACTI128, high, a, 0, sel_no_memory);
	n->wd = X86_XMM;
	n->imm = 1;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSDW, words, a, high, sel_no_memory);
	n->wd = n->ws = X86_XMM;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSWB, bytes, words, words, sel_no_memory);
	n->wd = n->ws = X86_XMM;
	if (i->mask || lanes < s->l->lanes)
		store_each(s, i, X86_VPEXTRB, bytes, lanes);
	else
		store(s, r->op, bytes, X86_XMM, p);
}

/* The lower halves, so that packing with saturation changes nothing. */
void sel_istore_16(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned lanes = ir_x_lanes(i->imm, s->l->lanes);
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	uint32_t a = sel_op3(s, X86_VPAND, sel_vec(s, i->b), sel_constant(s, SEL_SPLAT, 0xffff)),
		 high = sel_half(s, a, 1), words = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_OP3, X86_VPACKUSDW, words, a, high, sel_no_memory);
	n->wd = n->ws = X86_XMM;
	if (i->mask || lanes < s->l->lanes)
		store_each(s, i, X86_VPEXTRW, words, lanes);
	else
		store(s, r->op, words, X86_XMM, p);
}

void sel_istore_8_wide(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	struct sel_memory p = sel_memory(s, i->a, ir_x_disp(i->imm));
	uint32_t a = sel_vec(s, i->b);
	if (i->mask || n < s->l->lanes)
		store_some(s, r->op, a, sel_lanes(s, i, n), p);
	else
		store(s, r->op, a, s->width, p);
}

void sel_prefetch(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory p = sel_memory(s, i->a, i->imm);
	sel_ins(s, LIR_PREFETCH, r->op, 0, 0, 0, p);
}

/* A register and as much displacement as the form has room for. */
static struct sel_memory sel_factor(struct sel *s, uint16_t r)
{
	struct sel_memory p = sel_memory(s, r, 0);
	if (p.mem == LIR_AT_BASE && p.disp >= 0 && p.disp <= LIR_DOTS_MAX_DISP)
		return p;
	return (struct sel_memory){ LIR_AT_BASE, false, sel_gpr(s, r), 0 };
}

void sel_dots(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_memory sums = sel_memory(s, i->a, ir_x_disp(i->imm)), x = sel_factor(s, i->b),
			  w = sel_factor(s, i->c);
	uint32_t strip = sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), IR_DOTS_STRIP);
	struct lir_ins *n = sel_ins(s, LIR_DOTS, r->op, 0, x.base, w.base, sums);
	n->c = strip;
	n->imm = lir_dots(ir_x_lanes(i->imm, 0), x.disp, w.disp);
}
