/* jit/x86_select.c - IR operations to x86 instructions on virtual registers.
 *
 * Owns: the table that says which instruction does which operation on which target, and the loops' shape. Decides no
 * registers and no order: instructions come out in the IR's order. Rule for editors: a row of the table first, a function
 * only for what a row cannot say; an operand's own instructions (a constant, a sum of addresses) must be appended before
 * the instruction that uses it is.
 */
#include "jit/x86_select.h"

#include "jit/lanes.h"

#include <stdlib.h>
#include <string.h>

/* A vector constant: made once, before the outermost loop that needs it first. */
enum constant_kind { CONSTANT_SPLAT, CONSTANT_LANES, CONSTANT_FIRST_N, CONSTANT_TABLE };
struct constant { uint8_t kind; uint32_t value, reg; size_t before; };

struct open_loop { uint32_t counter, count; int64_t last; bool down; size_t at; };
enum { MAX_DEPTH = 64, MEMO = 4 };

struct sel {
	const struct ir *ir;
	const struct sel_rule *rules;
	struct lir *l;
	struct scan scan;
	uint32_t *reg;                   /* virtual register by IR register; 0: none yet */
	uint32_t entry[3];               /* arg, begin, end */
	size_t at;                       /* IR instruction being selected */
	uint8_t width;                   /* enum x86_class of a whole vector */
	struct constant *constant; size_t n_constants, constants_capacity;
	struct open_loop loop[MAX_DEPTH]; unsigned depth;
	struct { uint32_t of, abs; } memo[MEMO]; unsigned memo_next;
};

/* A memory operand on its way into an instruction. */
struct place { uint8_t mem; uint32_t base; int32_t disp; };

/* --- operands */

static struct lir_ins *sel_add(struct sel *s, enum lir_form form, unsigned op)
{
	struct lir_ins *i = lir_add(s->l, form, (enum x86_op)op);
	i->wd = i->ws = s->width;
	i->ir = (uint32_t)s->at;
	return i;
}

static uint32_t sel_reg(struct sel *s, uint16_t r)
{
	if (!s->reg[r])
		s->reg[r] = lir_reg(s->l, s->ir->kind[r] == IR_KIND_S || s->ir->kind[r] == IR_KIND_A ? LIR_GPR : LIR_VEC);
	return s->reg[r];
}

static uint32_t sel_dst(struct sel *s, const struct ir_ins *i)
{
	return sel_reg(s, s->scan.into[s->at] ? s->scan.into[s->at] : i->dst);
}

static uint32_t sel_constant(struct sel *s, enum constant_kind kind, uint32_t value)
{
	for (size_t k = 0; k < s->n_constants; k++)
		if (s->constant[k].kind == kind && s->constant[k].value == value)
			return s->constant[k].reg;
	if (!lir_grow((void **)&s->constant, &s->constants_capacity, s->n_constants + 1, sizeof *s->constant)) {
		s->l->failed = true;
		return LIR_FIRST;
	}
	struct constant *c = &s->constant[s->n_constants++];
	*c = (struct constant){ .kind = (uint8_t)kind, .value = value, .reg = lir_reg(s->l, LIR_VEC) };
	c->before = s->depth ? s->loop[0].at : s->l->n_ins;
	return c->reg;
}

static const struct ir_ins *definition(const struct sel *s, uint16_t r)
{
	return &s->ir->ins[s->scan.reg[r].def];
}

/* The vector constant an IR register stands for, if it does. */
static bool constant_of(const struct sel *s, uint16_t r, enum constant_kind *kind, uint32_t *value)
{
	if (s->scan.reg[r].fold != SCAN_CONST)
		return false;
	const struct ir_ins *i = definition(s, r);
	*kind = i->op == IR_ilane ? CONSTANT_LANES : CONSTANT_SPLAT;
	*value = i->op == IR_ilane ? 0 : (uint32_t)i->imm;
	return true;
}

static bool scalar_of(const struct sel *s, uint16_t r, int64_t *value)
{
	const struct ir_ins *i = definition(s, r);
	if (s->scan.reg[r].fold != SCAN_CONST || i->op != IR_sconst)
		return false;
	*value = i->imm;
	return true;
}

static uint32_t sel_vec(struct sel *s, uint16_t r)
{
	enum constant_kind kind;
	uint32_t value;
	while (s->scan.reg[r].fold == SCAN_ALIAS)
		r = definition(s, r)->a;
	return constant_of(s, r, &kind, &value) ? sel_constant(s, kind, value) : sel_reg(s, r);
}

static uint32_t sel_scalar_constant(struct sel *s, uint32_t dst, int64_t value)
{
	struct lir_ins *n = sel_add(s, LIR_SCONST, X86_MOV);
	n->dst = dst;
	n->imm = value;
	return dst;
}

static bool fits32(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

/* An address and a displacement as one memory operand. */
static struct place sel_place(struct sel *s, uint16_t r, int64_t disp);

static void put(struct lir_ins *n, struct place p)
{
	n->mem = p.mem;
	n->base = p.base;
	n->disp = p.disp;
}

static uint32_t sel_address(struct sel *s, uint32_t dst, struct place p)
{
	struct lir_ins *n = sel_add(s, p.mem == LIR_AT_LOCAL ? LIR_LEA : LIR_SOPI, p.mem == LIR_AT_LOCAL ? X86_LEA : X86_ADD);
	n->dst = dst;
	if (p.mem == LIR_AT_LOCAL) {
		put(n, p);
	} else {
		n->a = p.base;
		n->imm = p.disp;
	}
	return dst;
}

static uint32_t sel_gpr(struct sel *s, uint16_t r)
{
	int64_t value;
	if (scalar_of(s, r, &value))
		return sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), value);
	switch (s->scan.reg[r].fold) {
	case SCAN_CONST:
		return s->entry[definition(s, r)->op - IR_arg];
	case SCAN_ADDRESS:
		return sel_address(s, lir_reg(s->l, LIR_GPR), sel_place(s, r, 0));
	default:
		return sel_reg(s, r);
	}
}

static struct place sel_place(struct sel *s, uint16_t r, int64_t disp)
{
	while (s->scan.reg[r].fold == SCAN_ADDRESS && definition(s, r)->op == IR_aaddi) {
		disp += definition(s, r)->imm;
		r = definition(s, r)->a;
	}
	if (s->scan.reg[r].fold == SCAN_ADDRESS)
		return (struct place){ LIR_AT_LOCAL, 0, (int32_t)(s->scan.reg[r].offset + disp) };
	uint32_t base = sel_gpr(s, r);
	if (fits32(disp))
		return (struct place){ LIR_AT_BASE, base, (int32_t)disp };
	uint32_t far = sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), disp);
	struct lir_ins *n = sel_add(s, LIR_SOPC, X86_ADD);
	n->dst = lir_reg(s->l, LIR_GPR);
	n->a = far;
	n->b = base;
	return (struct place){ LIR_AT_BASE, n->dst, 0 };
}

/* A vector operand: a register, or LIR_MEM with *p filled when its load was folded into this use. */
static uint32_t sel_operand(struct sel *s, uint16_t r, struct place *p)
{
	if (s->scan.reg[r].fold != SCAN_LOAD)
		return sel_vec(s, r);
	const struct ir_ins *load = definition(s, r);
	*p = sel_place(s, load->a, load->op == IR_fload ? ir_x_disp(load->imm) : load->imm);
	return LIR_MEM;
}

/* Appends an instruction with these operands; those that are LIR_MEM stand at p. */
static struct lir_ins *sel_ins(struct sel *s, enum lir_form form, unsigned op, uint32_t dst, uint32_t a, uint32_t b, struct place p)
{
	struct lir_ins *n = sel_add(s, form, op);
	n->dst = dst;
	n->a = a;
	n->b = b;
	put(n, p);
	return n;
}

static const struct place no_place = { LIR_NO_MEM, 0, 0 };

/* --- vectors */

static void sel_unary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = no_place;
	uint32_t a = sel_operand(s, i->a, &p);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, 0, p)->imm = r->form == LIR_OP2I ? i->imm : 0;
}

static void sel_binary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = no_place;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_operand(s, i->b, &p);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, b, p)->imm = r->imm;
}

/* a and the constant of the row */
static void sel_with_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = no_place;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_constant(s, CONSTANT_SPLAT, r->imm);
	sel_ins(s, LIR_OP3C, r->op, sel_dst(s, i), a, b, p);
}

static void sel_fma(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = no_place;
	uint32_t a = sel_operand(s, i->a, &p), b = sel_operand(s, i->b, &p), c = sel_operand(s, i->c, &p);
	sel_ins(s, LIR_FMA, r->op, sel_dst(s, i), a, b, p)->c = c;
}

/* Masks are whole vectors here: the blend takes its second source where the mask's sign bit is set. */
static void sel_select(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = no_place;
	uint32_t mask = sel_vec(s, i->a), yes = sel_operand(s, i->b, &p), no = sel_vec(s, i->c);
	sel_ins(s, LIR_BLEND, r->op, sel_dst(s, i), no, yes, p)->c = mask;
}

static void sel_move(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum constant_kind kind;
	uint32_t value;
	if (constant_of(s, i->a, &kind, &value) && kind == CONSTANT_SPLAT && !value)
		sel_ins(s, LIR_IDIOM, X86_VXORPS, sel_dst(s, i), 0, 0, no_place);
	else
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i), sel_vec(s, i->a), 0, no_place);
}

/* A constant written into a variable; others are made where they are used. */
static void sel_vector_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	if (i->op != IR_ilane && !i->imm)
		sel_ins(s, LIR_IDIOM, X86_VXORPS, sel_dst(s, i), 0, 0, no_place);
	else
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i), i->op == IR_ilane ? sel_constant(s, CONSTANT_LANES, 0)
		        : sel_constant(s, CONSTANT_SPLAT, (uint32_t)i->imm), 0, no_place);
}

static void sel_splat(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t value;
	if (scalar_of(s, i->a, &value)) {
		sel_ins(s, LIR_MOV, X86_VMOVAPS, sel_dst(s, i), sel_constant(s, CONSTANT_SPLAT, (uint32_t)(uint64_t)value), 0, no_place);
		return;
	}
	uint32_t a = sel_gpr(s, i->a), t = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_FROM_GPR, X86_VMOVD, t, a, 0, no_place);
	n->wd = X86_XMM;
	n->ws = X86_GPR32;
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), t, 0, no_place)->ws = X86_XMM;
}

static uint32_t sel_abs_memo(struct sel *s, uint32_t a)
{
	for (unsigned k = 0; k < MEMO; k++)
		if (s->memo[k].of == a && a)
			return s->memo[k].abs;
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2, X86_VPABSB, t, a, 0, no_place);
	s->memo[s->memo_next].of = a;
	s->memo[s->memo_next].abs = t;
	s->memo_next = (s->memo_next + 1) % MEMO;
	return t;
}

/* |a| times b with a's sign: u8 times s8 pairs to 16 bits (32512 at most), pairs of those to 32 bits. */
static void sel_dot4(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum constant_kind kind;
	uint32_t value;
	bool first = constant_of(s, i->c, &kind, &value) && kind == CONSTANT_SPLAT && !value;        /* nothing to add to */
	uint32_t a = sel_vec(s, i->a), b = sel_vec(s, i->b), c = first ? 0 : sel_vec(s, i->c);
	uint32_t size = sel_abs_memo(s, a), ones = sel_constant(s, CONSTANT_SPLAT, 0x00010001);
	uint32_t sign = lir_reg(s->l, LIR_VEC), pair = lir_reg(s->l, LIR_VEC), four = first ? sel_dst(s, i) : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3, X86_VPSIGNB, sign, b, a, no_place);
	sel_ins(s, LIR_OP3, X86_VPMADDUBSW, pair, size, sign, no_place);
	sel_ins(s, LIR_OP3C, X86_VPMADDWD, four, pair, ones, no_place);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, sel_dst(s, i), c, four, no_place);
}

static void sel_dot2h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	enum constant_kind kind;
	uint32_t value;
	struct place p = no_place;
	bool first = constant_of(s, i->c, &kind, &value) && kind == CONSTANT_SPLAT && !value;
	uint32_t a = sel_vec(s, i->a), b = sel_operand(s, i->b, &p), c = first ? 0 : sel_vec(s, i->c);
	uint32_t both = first ? sel_dst(s, i) : lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP3C, r->op, both, a, b, p);
	if (!first)
		sel_ins(s, LIR_OP3C, X86_VPADDD, sel_dst(s, i), c, both, no_place);
}

static void sel_table(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = no_place;
	uint32_t a = sel_operand(s, i->a, &p), table = sel_constant(s, CONSTANT_TABLE, (uint32_t)i->imm);
	sel_ins(s, LIR_OP3, r->op, sel_dst(s, i), table, a, p);
}

static void sel_fxor(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_vec(s, i->a);
	if (i->imm == 4)
		sel_ins(s, LIR_OP3I, X86_VPERM2F128, sel_dst(s, i), a, a, no_place)->imm = 1;
	else
		sel_ins(s, LIR_OP2I, X86_VPERMILPS, sel_dst(s, i), a, 0, no_place)->imm = i->imm == 1 ? 0xb1 : 0x4e;
}

/* --- memory */

static void sel_load(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), LIR_MEM, 0, sel_place(s, i->a, i->imm));
}

static void sel_fload(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = sel_place(s, i->a, ir_x_disp(i->imm));
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	if (n == s->l->lanes) {
		sel_ins(s, LIR_MOV, r->op, sel_dst(s, i), LIR_MEM, 0, p);
	} else if (n == 1 || n == 2 || n == 4) {
		unsigned op = n == 1 ? X86_VMOVSS : n == 2 ? X86_VMOVSD : X86_VMOVUPS;
		sel_ins(s, LIR_OP2, op, sel_dst(s, i), LIR_MEM, 0, p)->wd = X86_XMM;
	} else {
		uint32_t mask = sel_constant(s, CONSTANT_FIRST_N, n);
		sel_ins(s, LIR_OP3, X86_VMASKMOVPS, sel_dst(s, i), mask, LIR_MEM, p);
	}
}

static void sel_fbcast_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2, X86_VPBROADCASTW, t, LIR_MEM, 0, sel_place(s, i->a, i->imm))->wd = X86_XMM;
	sel_ins(s, LIR_OP2, r->op, sel_dst(s, i), t, 0, no_place)->ws = X86_XMM;
}

static void sel_gather(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = sel_place(s, i->a, i->imm);
	uint32_t index = sel_vec(s, i->b), mask = lir_reg(s->l, LIR_VEC), dst = sel_dst(s, i);
	if (index == dst) {
		index = lir_reg(s->l, LIR_VEC);
		sel_ins(s, LIR_MOV, X86_VMOVAPS, index, dst, 0, no_place);
	}
	sel_ins(s, LIR_IDIOM, X86_VPCMPEQD, mask, 0, 0, no_place);
	sel_ins(s, LIR_GATHER, r->op, dst, 0, index, p)->c = mask;
}

static void store(struct sel *s, unsigned op, uint32_t a, uint8_t width, struct place p)
{
	sel_ins(s, LIR_STORE, op, 0, a, 0, p)->ws = width;
}

static void store_part(struct sel *s, unsigned op, uint32_t a, unsigned part, struct place p)
{
	struct lir_ins *n = sel_ins(s, LIR_STOREI, op, 0, a, 0, p);
	n->ws = X86_XMM;
	n->imm = part;
}

static void sel_fstore(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = sel_place(s, i->a, ir_x_disp(i->imm));
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	uint32_t a = sel_vec(s, i->b);
	if (n == s->l->lanes)
		store(s, r->op, a, s->width, p);
	else if (n == 1 || n == 2 || n == 4)
		store(s, n == 1 ? X86_VMOVSS : n == 2 ? X86_VMOVQ : X86_VMOVUPS, a, X86_XMM, p);
	else
		sel_ins(s, LIR_STOREM, X86_VMASKMOVPS, 0, sel_constant(s, CONSTANT_FIRST_N, n), a, p);
}

static void sel_fstore1(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = sel_place(s, i->a, i->imm);
	store(s, r->op, sel_vec(s, i->b), X86_XMM, p);
}

/* All lanes as f16 in an xmm. */
static uint32_t sel_halves(struct sel *s, uint16_t r)
{
	uint32_t a = sel_vec(s, r), t = lir_reg(s->l, LIR_VEC);
	sel_ins(s, LIR_OP2I, X86_VCVTPS2PH, t, a, 0, no_place)->wd = X86_XMM;
	return t;
}

static void sel_fstore_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes);
	int64_t disp = ir_x_disp(i->imm);
	if (n == s->l->lanes) {
		struct place p = sel_place(s, i->a, disp);
		sel_ins(s, LIR_STOREI, r->op, 0, sel_vec(s, i->b), 0, p);
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

static void sel_fstore_s(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes), stride = ir_x_stride(i->imm);
	uint32_t a = sel_vec(s, i->b), high = 0;
	for (unsigned lane = 0; lane < n; lane++) {
		struct place p = sel_place(s, i->a, ir_x_disp(i->imm) + (int64_t)lane * stride);
		if (lane == 4) {
			high = lir_reg(s->l, LIR_VEC);
			struct lir_ins *x = sel_ins(s, LIR_OP2I, X86_VEXTRACTF128, high, a, 0, no_place);
			x->wd = X86_XMM;
			x->imm = 1;
		}
		if (lane % 4)
			store_part(s, r->op, high ? high : a, lane % 4, p);
		else
			store(s, X86_VMOVSS, high ? high : a, X86_XMM, p);
	}
}

static void sel_fstore_hs(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	unsigned n = ir_x_lanes(i->imm, s->l->lanes), stride = ir_x_stride(i->imm);
	uint32_t t = sel_halves(s, i->b);
	for (unsigned lane = 0; lane < n; lane++)
		store_part(s, r->op, t, lane, sel_place(s, i->a, ir_x_disp(i->imm) + (int64_t)lane * stride));
}

static void sel_istore_8(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = sel_place(s, i->a, i->imm);
	uint32_t a = sel_vec(s, i->b), high = lir_reg(s->l, LIR_VEC), words = lir_reg(s->l, LIR_VEC), bytes = lir_reg(s->l, LIR_VEC);
	struct lir_ins *n = sel_ins(s, LIR_OP2I, X86_VEXTRACTI128, high, a, 0, no_place);
	n->wd = X86_XMM;
	n->imm = 1;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSDW, words, a, high, no_place);
	n->wd = n->ws = X86_XMM;
	n = sel_ins(s, LIR_OP3, X86_VPACKSSWB, bytes, words, words, no_place);
	n->wd = n->ws = X86_XMM;
	store(s, r->op, bytes, X86_XMM, p);
}

static void sel_prefetch(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct place p = sel_place(s, i->a, i->imm);
	sel_ins(s, LIR_PREFETCH, r->op, 0, 0, 0, p);
}

/* --- scalars and addresses */

static void sel_sop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_gpr(s, i->a), b = sel_gpr(s, i->b);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, b, no_place);
}

static void sop_imm(struct sel *s, unsigned op, uint32_t dst, uint32_t a, int64_t imm)
{
	sel_ins(s, LIR_SOPI, op, dst, a, 0, no_place)->imm = imm;
}

/* Sums: a constant operand becomes an immediate. */
static void sel_sum(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t v;
	if (scalar_of(s, i->b, &v) && fits32(v) && fits32(-v))
		sop_imm(s, X86_ADD, sel_dst(s, i), sel_gpr(s, i->a), r->op == X86_SUB ? -v : v);
	else if (r->op == X86_ADD && scalar_of(s, i->a, &v) && fits32(v))
		sop_imm(s, X86_ADD, sel_dst(s, i), sel_gpr(s, i->b), v);
	else
		sel_sop(s, i, r);
}

static void times(struct sel *s, uint32_t dst, uint32_t a, int64_t v)
{
	if (v > 0 && !(v & (v - 1)))
		sop_imm(s, X86_SHL, dst, a, __builtin_ctzll((uint64_t)v));
	else
		sop_imm(s, X86_IMUL, dst, a, v);
}

static void sel_smul(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t v;
	if (scalar_of(s, i->b, &v) && fits32(v))
		times(s, sel_dst(s, i), sel_gpr(s, i->a), v);
	else if (scalar_of(s, i->a, &v) && fits32(v))
		times(s, sel_dst(s, i), sel_gpr(s, i->b), v);
	else
		sel_sop(s, i, r);
}

static void sel_smuli(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	times(s, sel_dst(s, i), sel_gpr(s, i->a), i->imm);
}

static void sel_sopi(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_gpr(s, i->a);
	if (fits32(i->imm)) {
		sop_imm(s, r->op, sel_dst(s, i), a, i->imm);
		return;
	}
	uint32_t b = sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), i->imm);
	sel_ins(s, LIR_SOPC, r->op, sel_dst(s, i), a, b, no_place);
}

/* 0 <= a < 2^31: a / d is a times ceil(2^(31+n) / d) shifted right by 31+n, where 2^n is the first power of two not below
 * d: the factor is off by less than d / 2^(31+n) <= 2^-31, too little to reach the next quotient. */
static void sel_sdivi(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint64_t d = (uint64_t)i->imm;
	unsigned n = 0;
	while ((UINT64_C(1) << n) < d)
		n++;
	uint32_t a = sel_gpr(s, i->a);
	if (UINT64_C(1) << n == d) {
		sop_imm(s, r->op, sel_dst(s, i), a, n);
		return;
	}
	uint32_t m = sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), (int64_t)(((UINT64_C(1) << (31 + n)) + d - 1) / d));
	uint32_t t = lir_reg(s->l, LIR_GPR);
	sel_ins(s, LIR_SOPC, X86_IMUL, t, m, a, no_place);
	sop_imm(s, r->op, sel_dst(s, i), t, 31 + n);
}

static void sel_sload(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), LIR_MEM, 0, sel_place(s, i->a, i->imm));
}

static void sel_aaddi(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_address(s, sel_dst(s, i), sel_place(s, i->a, i->imm));
}

/* sconst, arg, begin, end and local, written into a variable, and moves of scalars */
static void sel_smove(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t v;
	if (i->op == IR_sconst)
		sel_scalar_constant(s, sel_dst(s, i), i->imm);
	else if (i->op == IR_local)
		sel_address(s, sel_dst(s, i), (struct place){ LIR_AT_LOCAL, 0, (int32_t)s->scan.reg[i->dst].offset });
	else if (i->op >= IR_arg && i->op <= IR_end)
		sel_ins(s, LIR_SMOV, r->op, sel_dst(s, i), s->entry[i->op - IR_arg], 0, no_place);
	else if (scalar_of(s, i->a, &v))
		sel_scalar_constant(s, sel_dst(s, i), v);
	else if (s->scan.reg[i->a].fold == SCAN_ADDRESS)
		sel_address(s, sel_dst(s, i), sel_place(s, i->a, 0));
	else
		sel_ins(s, LIR_SMOV, r->op, sel_dst(s, i), sel_gpr(s, i->a), 0, no_place);
}

/* --- loops: an entry test unless the count is known to be positive, then a test at the bottom. Counted down when nobody
 * reads the index. */

static void sel_loop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	bool var = s->ir->is_var[i->dst];
	struct open_loop *o = &s->loop[s->depth];
	int64_t n = 0;
	bool known = scalar_of(s, i->a, &n) && n > 0 && fits32(n);
	*o = (struct open_loop){ .at = s->l->n_ins, .down = !var && !s->scan.reg[i->dst].uses };
	o->count = known ? 0 : sel_gpr(s, i->a);
	o->counter = var || o->down ? lir_reg(s->l, LIR_GPR) : sel_reg(s, i->dst);
	if (!o->down)
		o->last = n;
	if (!known && !o->down && s->ir->is_var[i->a] && s->scan.reg[i->a].def > s->at) {
		uint32_t copy = lir_reg(s->l, LIR_GPR);      /* the body writes the variable; the count was read once */
		sel_ins(s, LIR_SMOV, X86_MOV, copy, o->count, 0, no_place);
		o->count = copy;
	}
	if (o->down && !known)
		sel_ins(s, LIR_SMOV, X86_MOV, o->counter, o->count, 0, no_place);
	else
		sel_scalar_constant(s, o->counter, o->down ? n : 0);
	sel_ins(s, LIR_LOOP, X86_TEST, 0, known ? 0 : o->down ? o->counter : o->count, 0, no_place);
	s->depth++;
	memset(s->memo, 0, sizeof s->memo);
	if (var)
		sel_ins(s, LIR_SMOV, X86_MOV, sel_reg(s, i->dst), o->counter, 0, no_place);
}

static void sel_endloop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct open_loop *o = &s->loop[--s->depth];
	sop_imm(s, X86_ADD, o->counter, o->counter, o->down ? -1 : 1);
	struct lir_ins *n = sel_ins(s, LIR_ENDLOOP, o->down ? X86_JNE : X86_JL, 0, o->counter, o->down ? 0 : o->count, no_place);
	n->imm = o->last;
	memset(s->memo, 0, sizeof s->memo);
}

/* --- the targets' tables */

#define BINARY(x)         { sel_binary, X86_##x, LIR_OP3, LIR_B, 0 }
#define BINARY_EITHER(x)  { sel_binary, X86_##x, LIR_OP3C, LIR_A | LIR_B, 0 }
#define COMPARE(x, how)   { sel_binary, X86_##x, LIR_OP3I, LIR_B, how }
#define UNARY(x)          { sel_unary, X86_##x, LIR_OP2, LIR_A, 0 }
#define SHIFT(x)          { sel_unary, X86_##x, LIR_OP2I, 0, 0 }
#define LOAD(x)           { sel_load, X86_##x, LIR_OP2, 0, 0 }
#define MOVE              { sel_move, X86_VMOVAPS, LIR_MOV, 0, 0 }
#define SMOVE             { sel_smove, X86_MOV, LIR_SMOV, 0, 0 }
#define RULE(fn, x)       { fn, X86_##x, 0, 0, 0 }

static const struct sel_rule avx2[IR_OP_COUNT] = {
	[IR_fconst] = RULE(sel_vector_constant, VMOVAPS), [IR_iconst] = RULE(sel_vector_constant, VMOVAPS),
	[IR_ilane] = RULE(sel_vector_constant, VMOVAPS), [IR_isplat] = RULE(sel_splat, VPBROADCASTD),
	[IR_fadd] = BINARY_EITHER(VADDPS), [IR_fsub] = BINARY(VSUBPS), [IR_fmul] = BINARY_EITHER(VMULPS),
	[IR_ffma] = { sel_fma, X86_VFMADD231PS, LIR_FMA, LIR_A | LIR_B | LIR_C, 0 },
	[IR_fdiv] = BINARY(VDIVPS), [IR_fsqrt] = UNARY(VSQRTPS), [IR_fmin] = BINARY(VMINPS), [IR_fmax] = BINARY(VMAXPS),
	[IR_fabs] = { sel_with_constant, X86_VANDPS, LIR_OP3C, LIR_A, 0x7fffffff },
	[IR_fneg] = { sel_with_constant, X86_VXORPS, LIR_OP3C, LIR_A, 0x80000000 },
	[IR_flt] = COMPARE(VCMPPS, 0x11), [IR_fle] = COMPARE(VCMPPS, 0x12),        /* ordered, quiet */
	[IR_fsel] = { sel_select, X86_VBLENDVPS, LIR_BLEND, LIR_B, 0 }, [IR_isel] = { sel_select, X86_VBLENDVPS, LIR_BLEND, LIR_B, 0 },
	[IR_f2i] = UNARY(VCVTPS2DQ), [IR_i2f] = UNARY(VCVTDQ2PS),
	[IR_fbits] = MOVE, [IR_ibits] = MOVE, [IR_fmov] = MOVE, [IR_imov] = MOVE,
	[IR_iadd] = BINARY_EITHER(VPADDD), [IR_isub] = BINARY(VPSUBD), [IR_imul] = BINARY_EITHER(VPMULLD),
	[IR_iand] = BINARY_EITHER(VPAND), [IR_ior] = BINARY_EITHER(VPOR), [IR_ixor] = BINARY_EITHER(VPXOR),
	[IR_ishl] = SHIFT(VPSLLD), [IR_ishr] = SHIFT(VPSRLD), [IR_isar] = SHIFT(VPSRAD),
	[IR_ishlv] = BINARY(VPSLLVD), [IR_ishrv] = BINARY(VPSRLVD),
	[IR_imin] = BINARY_EITHER(VPMINSD), [IR_imax] = BINARY_EITHER(VPMAXSD),
	[IR_ieq] = BINARY_EITHER(VPCMPEQD), [IR_igt] = BINARY(VPCMPGTD),
	[IR_dot4] = RULE(sel_dot4, VPMADDUBSW),
	[IR_dot2b] = BINARY(VPMADDUBSW), [IR_iadd_16] = BINARY_EITHER(VPADDW), [IR_dot2h] = { sel_dot2h, X86_VPMADDWD, LIR_OP3C, LIR_B, 0 },
	[IR_ilut16] = { sel_table, X86_VPSHUFB, LIR_OP3, LIR_A, 0 },
	[IR_mand] = BINARY_EITHER(VPAND), [IR_mor] = BINARY_EITHER(VPOR),
	[IR_mnot] = { sel_with_constant, X86_VPXOR, LIR_OP3C, 0, 0xffffffff },
	[IR_fxor] = RULE(sel_fxor, VPERMILPS),

	[IR_fload] = RULE(sel_fload, VMOVUPS), [IR_fload_h] = LOAD(VCVTPH2PS),
	[IR_iload] = { sel_load, X86_VMOVUPS, LIR_MOV, 0, 0 },
	[IR_iload_u8] = LOAD(VPMOVZXBD), [IR_iload_s8] = LOAD(VPMOVSXBD), [IR_iload_u16] = LOAD(VPMOVZXWD),
	[IR_fbcast] = LOAD(VBROADCASTSS), [IR_ibcast] = LOAD(VPBROADCASTD), [IR_fbcast_h] = RULE(sel_fbcast_h, VCVTPH2PS),
	[IR_igather] = RULE(sel_gather, VPGATHERDD),
	[IR_fstore] = RULE(sel_fstore, VMOVUPS), [IR_fstore_h] = RULE(sel_fstore_h, VCVTPS2PH),
	[IR_istore_8] = RULE(sel_istore_8, VMOVQ), [IR_fstore_s] = RULE(sel_fstore_s, VEXTRACTPS),
	[IR_fstore_hs] = RULE(sel_fstore_hs, VPEXTRW), [IR_fstore1] = RULE(sel_fstore1, VMOVSS),
	[IR_prefetch] = RULE(sel_prefetch, PREFETCHT0),

	[IR_sconst] = SMOVE, [IR_smov] = SMOVE, [IR_amov] = SMOVE, [IR_local] = SMOVE,
	[IR_arg] = SMOVE, [IR_begin] = SMOVE, [IR_end] = SMOVE,
	[IR_sadd] = { sel_sum, X86_ADD, LIR_SOPC, 0, 0 }, [IR_aadd] = { sel_sum, X86_ADD, LIR_SOPC, 0, 0 },
	[IR_ssub] = { sel_sum, X86_SUB, LIR_SOP, 0, 0 }, [IR_smul] = { sel_smul, X86_IMUL, LIR_SOPC, 0, 0 },
	[IR_smin] = { sel_sop, X86_CMOVG, LIR_SMINMAX, 0, 0 }, [IR_smax] = { sel_sop, X86_CMOVL, LIR_SMINMAX, 0, 0 },
	[IR_saddi] = RULE(sel_sopi, ADD), [IR_sshli] = RULE(sel_sopi, SHL), [IR_sshri] = RULE(sel_sopi, SAR),
	[IR_sandi] = RULE(sel_sopi, AND), [IR_smuli] = RULE(sel_smuli, IMUL), [IR_sdivi] = RULE(sel_sdivi, SHR),
	[IR_sload32] = { sel_sload, X86_MOV, LIR_SLOAD32, 0, 0 }, [IR_sload64] = { sel_sload, X86_MOV, LIR_SMOV, 0, 0 },
	[IR_aload] = { sel_sload, X86_MOV, LIR_SMOV, 0, 0 }, [IR_aaddi] = RULE(sel_aaddi, ADD),
	[IR_loop] = RULE(sel_loop, JL), [IR_endloop] = RULE(sel_endloop, JL),
};

/* --- the pass */

static bool is_folded(const struct sel *s, const struct ir_ins *i)
{
	return i->dst && !s->ir->is_var[i->dst] && s->scan.reg[i->dst].fold != SCAN_NO;
}

/* The call's arguments arrive in rdi, rsi, rdx: taken first thing, those that are used. */
static void sel_entry(struct sel *s)
{
	static const uint8_t comes_in[3] = { X86_RDI, X86_RSI, X86_RDX };
	bool used[3] = { false };
	for (size_t k = 0; k < s->ir->n_ins; k++) {
		uint8_t op = s->ir->ins[k].op;
		if (op >= IR_arg && op <= IR_end && !s->scan.skip[k])
			used[op - IR_arg] = true;
	}
	for (unsigned k = 0; k < 3; k++)
		if (used[k]) {
			s->entry[k] = lir_reg(s->l, LIR_GPR);
			sel_ins(s, LIR_ENTRY, X86_MOV, s->entry[k], 0, 0, no_place)->imm = comes_in[k];
		}
}

static void constant_lanes(const struct constant *c, uint32_t *lane, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		if (c->kind == CONSTANT_TABLE)
			memcpy(&lane[k], lanes_table[c->value] + k % 4 * 4, 4);
		else
			lane[k] = c->kind == CONSTANT_SPLAT ? c->value : c->kind == CONSTANT_LANES ? k : k < c->value ? UINT32_MAX : 0;
}

/* Puts the constants in their places, which were noted in ascending order. */
static void sel_place_constants(struct sel *s)
{
	struct lir *l = s->l;
	size_t n = l->n_ins, k = s->n_constants;
	if (l->failed || !lir_grow((void **)&l->ins, &l->ins_capacity, n + k, sizeof *l->ins)) {
		l->failed = true;
		return;
	}
	l->n_ins = n + k;
	for (size_t to = n + k; k > 0;) {
		struct constant *c = &s->constant[k - 1];
		while (n > c->before)
			l->ins[--to] = l->ins[--n];
		struct lir_ins *i = &l->ins[--to];
		bool idiom = c->kind == CONSTANT_SPLAT && (c->value == 0 || c->value == UINT32_MAX);
		*i = (struct lir_ins){ .form = idiom ? LIR_IDIOM : LIR_CONST, .wd = s->width, .ws = s->width, .dst = c->reg };
		i->op = idiom ? (c->value ? X86_VPCMPEQD : X86_VXORPS) : X86_VMOVUPS;
		i->ir = UINT32_MAX;
		if (!idiom) {
			uint32_t lane[16];
			constant_lanes(c, lane, l->lanes);
			i->mem = LIR_AT_POOL;
			i->disp = (int32_t)lir_pool(l, lane);
		}
		k--;
	}
}

/* What a variable's new value makes stale. */
static void sel_forget(struct sel *s, uint32_t reg)
{
	for (unsigned k = 0; k < MEMO; k++)
		if (s->memo[k].of == reg)
			s->memo[k].of = 0;
}

bool x86_select(struct lir *l, const struct ir *ir, const struct target *target, struct error *err)
{
	struct sel s = { .ir = ir, .l = l, .rules = avx2, .width = X86_YMM };
	lir_init(l, target->lanes);
	if (!scan_ir(&s.scan, ir, s.rules, err))
		return false;
	l->local_bytes = s.scan.local_bytes;
	s.reg = calloc(ir->n_regs + 1, sizeof *s.reg);
	l->failed |= !s.reg;
	if (!l->failed)
		sel_entry(&s);
	for (s.at = 0; !l->failed && s.at < ir->n_ins; s.at++) {
		const struct ir_ins *i = &ir->ins[s.at];
		if (s.scan.skip[s.at] || is_folded(&s, i))
			continue;
		s.rules[i->op].select(&s, i, &s.rules[i->op]);
		if (i->dst && (ir->is_var[i->dst] || s.scan.into[s.at]))
			sel_forget(&s, sel_dst(&s, i));
	}
	sel_place_constants(&s);
	free(s.reg);
	free(s.constant);
	scan_free(&s.scan);
	return !l->failed || error_set(err, ERROR_MEMORY, "no memory for the machine instructions of a kernel");
}
