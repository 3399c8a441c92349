/* jit/x86/select.c - IR operations to x86 instructions on virtual registers: operands, scalars, constants, the pass.
 *
 * Owns: operands of select_state.h and the rows for scalars. Decides no registers and no order:
 * instructions come out in the IR's order. Rule for editors: a row of the table first, a function only for what a row
 * cannot say.
 */
#include "jit/x86/select_state.h"

#include "base/array.h"
#include "jit/ir/lanes.h"

#include <stdlib.h>
#include <string.h>

/* --- operands */

static struct lir_ins *sel_add(struct sel *s, enum lir_form form, unsigned op)
{
	struct lir_ins *i = lir_add(s->l, form, (enum x86_op)op);
	i->wd = i->ws = s->width;
	i->ir = (uint32_t)s->at;
	return i;
}

static enum lir_class class_of(const struct sel *s, uint8_t kind)
{
	return kind == IR_TYPE_s || kind == IR_TYPE_a || kind == IR_TYPE_c ? LIR_GPR
	       : kind == IR_TYPE_m && s->target->mask_regs                 ? LIR_MASK
	                                                                   : LIR_VEC;
}

uint32_t sel_reg(struct sel *s, uint16_t r)
{
	if (!s->reg[r])
		s->reg[r] = lir_reg(s->l, class_of(s, s->ir->type[r]));
	return s->reg[r];
}

uint32_t sel_dst(struct sel *s, const struct ir_ins *i)
{
	return sel_reg(s, s->scan.into[s->at] ? s->scan.into[s->at] : i->dst);
}

static uint32_t constant_of(struct sel *s, enum sel_constant_kind kind, uint32_t value, uint32_t upper)
{
	for (size_t k = 0; k < s->n_constants; k++)
		if (s->constant[k].kind == kind && s->constant[k].value == value && s->constant[k].upper == upper)
			return s->constant[k].reg;
	if (!array_grow((void **)&s->constant, &s->constants_capacity, s->n_constants + 1, sizeof *s->constant)) {
		s->l->failed = true;
		return LIR_FIRST;
	}
	struct sel_constant *c = &s->constant[s->n_constants++];
	*c = (struct sel_constant){ .kind = (uint8_t)kind, .value = value, .upper = upper };
	c->reg = lir_reg(s->l, kind == SEL_FIRST_N ? class_of(s, IR_TYPE_m) : LIR_VEC);
	c->before = s->blocks ? s->outermost : s->l->n_ins;
	return c->reg;
}

uint32_t sel_constant(struct sel *s, enum sel_constant_kind kind, uint32_t value)
{
	return constant_of(s, kind, value, 0);
}

uint32_t sel_wide_constant(struct sel *s, uint64_t value)
{
	const uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);

	return low == high ? sel_constant(s, SEL_SPLAT, low) : constant_of(s, SEL_WIDE, low, high);
}

static const struct ir_ins *definition(const struct sel *s, uint16_t r) { return &s->ir->ins[s->scan.reg[r].def]; }

bool sel_constant_of(const struct sel *s, uint16_t r, enum sel_constant_kind *kind, uint32_t *value)
{
	if (s->scan.reg[r].fold != SCAN_CONST)
		return false;
	const struct ir_ins *i = definition(s, r);
	*kind = i->op == IR_lane ? SEL_LANES : SEL_SPLAT;
	*value = i->op == IR_lane ? 0 : (uint32_t)i->imm;
	return true;
}

bool sel_scalar_of(const struct sel *s, uint16_t r, int64_t *value)
{
	const struct ir_ins *i = definition(s, r);
	if (s->scan.reg[r].fold != SCAN_CONST || i->op != IR_const)
		return false;
	*value = i->imm;
	return true;
}

uint32_t sel_vec(struct sel *s, uint16_t r)
{
	enum sel_constant_kind kind;
	uint32_t value;
	while (s->scan.reg[r].fold == SCAN_ALIAS)
		r = definition(s, r)->a;
	return sel_constant_of(s, r, &kind, &value) ? sel_constant(s, kind, value) : sel_reg(s, r);
}

uint32_t sel_scalar_constant(struct sel *s, uint32_t dst, int64_t value)
{
	struct lir_ins *n = sel_add(s, LIR_SCONST, X86_MOV);
	n->dst = dst;
	n->imm = value;
	return dst;
}

static bool fits32(int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

static void put(struct lir_ins *n, struct sel_memory p)
{
	n->mem = p.mem;
	n->broadcast = p.broadcast;
	n->base = p.base;
	n->disp = p.disp;
}

static uint32_t sel_address(struct sel *s, uint32_t dst, struct sel_memory p)
{
	struct lir_ins *n =
		sel_add(s, p.mem == LIR_AT_LOCAL ? LIR_LEA : LIR_SOPI, p.mem == LIR_AT_LOCAL ? X86_LEA : X86_ADD);
	n->dst = dst;
	if (p.mem == LIR_AT_LOCAL) {
		put(n, p);
	} else {
		n->a = p.base;
		n->imm = p.disp;
	}
	return dst;
}

/* Which of the call's arguments the operation gives; ENTRIES: none. */
enum { ENTRY_ARG, ENTRY_BEGIN, ENTRY_END, ENTRIES };
static unsigned entry_of(uint8_t op)
{
	return op == IR_arg ? ENTRY_ARG : op == IR_begin ? ENTRY_BEGIN : op == IR_end ? ENTRY_END : ENTRIES;
}

uint32_t sel_gpr(struct sel *s, uint16_t r)
{
	int64_t value;
	if (sel_scalar_of(s, r, &value))
		return sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), value);
	switch (s->scan.reg[r].fold) {
	case SCAN_CONST: return s->entry[entry_of(definition(s, r)->op)];
	case SCAN_ADDRESS: return sel_address(s, lir_reg(s->l, LIR_GPR), sel_memory(s, r, 0));
	default: return sel_reg(s, r);
	}
}

/* An address and a displacement as one memory operand. */
struct sel_memory sel_memory(struct sel *s, uint16_t r, int64_t disp)
{
	while (s->scan.reg[r].fold == SCAN_ADDRESS && definition(s, r)->op == IR_addi) {
		disp += definition(s, r)->imm;
		r = definition(s, r)->a;
	}
	if (s->scan.reg[r].fold == SCAN_ADDRESS)
		return (struct sel_memory){ LIR_AT_LOCAL, false, 0, (int32_t)(s->scan.reg[r].offset + disp) };
	uint32_t base = sel_gpr(s, r);
	if (fits32(disp))
		return (struct sel_memory){ LIR_AT_BASE, false, base, (int32_t)disp };
	uint32_t far = sel_scalar_constant(s, lir_reg(s->l, LIR_GPR), disp);
	struct lir_ins *n = sel_add(s, LIR_SOPC, X86_ADD);
	n->dst = lir_reg(s->l, LIR_GPR);
	n->a = far;
	n->b = base;
	return (struct sel_memory){ LIR_AT_BASE, false, n->dst, 0 };
}

uint32_t sel_operand(struct sel *s, uint16_t r, struct sel_memory *p)
{
	if (s->scan.reg[r].fold != SCAN_LOAD)
		return sel_vec(s, r);
	const struct ir_ins *load = definition(s, r);
	*p = sel_memory(s, load->a, ir_disp(load));
	p->broadcast = load->op == IR_bcast;
	return LIR_MEM;
}

struct lir_ins *sel_ins(struct sel *s, enum lir_form form, unsigned op, uint32_t dst, uint32_t a, uint32_t b,
                        struct sel_memory p)
{
	struct lir_ins *n = sel_add(s, form, op);
	n->dst = dst;
	n->a = a;
	n->b = b;
	put(n, p);
	return n;
}

const struct sel_memory sel_no_memory = { LIR_NO_MEM, false, 0, 0 };

/* --- scalars and addresses */

static void sel_sop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_gpr(s, i->a), b = sel_gpr(s, i->b);
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), a, b, sel_no_memory);
}

static void sop_imm(struct sel *s, unsigned op, uint32_t dst, uint32_t a, int64_t imm)
{
	sel_ins(s, LIR_SOPI, op, dst, a, 0, sel_no_memory)->imm = imm;
}

/* Sums: a constant operand becomes an immediate. */
static void sel_sum(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t v;
	if (sel_scalar_of(s, i->b, &v) && fits32(v) && fits32(-v))
		sop_imm(s, X86_ADD, sel_dst(s, i), sel_gpr(s, i->a), r->op == X86_SUB ? -v : v);
	else if (r->op == X86_ADD && sel_scalar_of(s, i->a, &v) && fits32(v))
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
	if (sel_scalar_of(s, i->b, &v) && fits32(v))
		times(s, sel_dst(s, i), sel_gpr(s, i->a), v);
	else if (sel_scalar_of(s, i->a, &v) && fits32(v))
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
	sel_ins(s, LIR_SOPC, r->op, sel_dst(s, i), a, b, sel_no_memory);
}

/* 0 <= a < 2^31: a / d is a times ceil(2^(31+n) / d) shifted right by 31+n, where 2^n is the first power of two not
 * below
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
	sel_ins(s, LIR_SOPC, X86_IMUL, t, m, a, sel_no_memory);
	sop_imm(s, r->op, sel_dst(s, i), t, 31 + n);
}

static void sel_sload(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_ins(s, (enum lir_form)r->form, r->op, sel_dst(s, i), LIR_MEM, 0, sel_memory(s, i->a, i->imm));
}

static void sel_aaddi(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_address(s, sel_dst(s, i), sel_memory(s, i->a, i->imm));
}

/* sconst, arg, begin, end and local, written into a variable, and moves of scalars */
static void sel_smove(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t v;
	if (i->op == IR_const)
		sel_scalar_constant(s, sel_dst(s, i), i->imm);
	else if (i->op == IR_wave) /* a group of one */
		sel_scalar_constant(s, sel_dst(s, i), 0);
	else if (i->op == IR_local || i->op == IR_shared)
		sel_address(s, sel_dst(s, i),
		            (struct sel_memory){ LIR_AT_LOCAL, false, 0, (int32_t)s->scan.reg[i->dst].offset });
	else if (entry_of(i->op) < ENTRIES)
		sel_ins(s, LIR_SMOV, r->op, sel_dst(s, i), s->entry[entry_of(i->op)], 0, sel_no_memory);
	else if (sel_scalar_of(s, i->a, &v))
		sel_scalar_constant(s, sel_dst(s, i), v);
	else if (s->scan.reg[i->a].fold == SCAN_ADDRESS)
		sel_address(s, sel_dst(s, i), sel_memory(s, i->a, 0));
	else {
		uint32_t from = sel_gpr(s, i->a);
		sel_ins(s, LIR_SMOV, r->op, sel_dst(s, i), from, 0, sel_no_memory);
	}
}

/* The only wave of its group waits for no one. */
static void sel_nothing(struct sel *s, const struct ir_ins *i, const struct sel_rule *r) { (void)s, (void)i, (void)r; }

/* --- the scalars' rows, the same on every target */

#define SMOVE \
	{ \
		sel_smove, X86_MOV, LIR_SMOV, 0, 0, false \
	}
#define RULE(fn, x) \
	{ \
		fn, X86_##x, 0, 0, 0, false \
	}

static const struct sel_rule scalars[IR_ROWS] = {
	[IR_sconst] = SMOVE,
	[IR_smov] = SMOVE,
	[IR_amov] = SMOVE,
	[IR_local] = SMOVE,
	[IR_shared] = SMOVE,
	[IR_wave] = SMOVE,
	[IR_arg] = SMOVE,
	[IR_begin] = SMOVE,
	[IR_end] = SMOVE,
	[IR_sadd] = { sel_sum, X86_ADD, LIR_SOPC, 0, 0, false },
	[IR_aadd] = { sel_sum, X86_ADD, LIR_SOPC, 0, 0, false },
	[IR_ssub] = { sel_sum, X86_SUB, LIR_SOP, 0, 0, false },
	[IR_smul] = { sel_smul, X86_IMUL, LIR_SOPC, 0, 0, false },
	[IR_smin] = { sel_sop, X86_CMOVG, LIR_SMINMAX, 0, 0, false },
	[IR_smax] = { sel_sop, X86_CMOVL, LIR_SMINMAX, 0, 0, false },
	[IR_saddi] = RULE(sel_sopi, ADD),
	[IR_sshli] = RULE(sel_sopi, SHL),
	[IR_sshri] = RULE(sel_sopi, SAR),
	[IR_sandi] = RULE(sel_sopi, AND),
	[IR_smuli] = RULE(sel_smuli, IMUL),
	[IR_sdivi] = RULE(sel_sdivi, SHR),
	[IR_sload32] = { sel_sload, X86_MOV, LIR_SLOAD32, 0, 0, false },
	[IR_sload64] = { sel_sload, X86_MOV, LIR_SMOV, 0, 0, false },
	[IR_aload] = { sel_sload, X86_MOV, LIR_SMOV, 0, 0, false },
	[IR_aaddi] = RULE(sel_aaddi, ADD),
	[IR_loop] = RULE(sel_loop, JL),
	[IR_endloop] = RULE(sel_endloop, JL),
	[IR_slt] = { sel_compare, X86_SETL, LIR_SCMP, 0, 0, false },
	[IR_sle] = { sel_compare, X86_SETLE, LIR_SCMP, 0, 0, false },
	[IR_seq] = { sel_compare, X86_SETE, LIR_SCMP, 0, 0, false },
	[IR_ssel] = RULE(sel_choose, CMOVNE),
	[IR_cand] = { sel_sop, X86_AND, LIR_SOPC, 0, 0, false },
	[IR_cxor] = { sel_sop, X86_XOR, LIR_SOPC, 0, 0, false },
	[IR_cor] = { sel_sop, X86_OR, LIR_SOPC, 0, 0, false },
	[IR_cnot] = RULE(sel_not, XOR),
	[IR_cmov] = SMOVE,
	[IR_any] = RULE(sel_mask_bits, SETNE),
	[IR_all] = RULE(sel_mask_bits, SETE),
	[IR_if] = RULE(sel_if, JE),
	[IR_else] = RULE(sel_else, JMP),
	[IR_endif] = RULE(sel_endif, JMP),
	[IR_break] = RULE(sel_break, JNE),
	[IR_barrier] = RULE(sel_nothing, MOV),
	[IR_barrier_all] = RULE(sel_nothing, MOV),
};

/* --- the pass */

static bool is_folded(const struct sel *s, const struct ir_ins *i)
{
	return i->dst && !s->ir->is_var[i->dst] && s->scan.reg[i->dst].fold != SCAN_NO;
}

/* The call's arguments arrive in rdi, rsi, rdx: taken first thing, those that are used. */
static void sel_entry(struct sel *s)
{
	static const uint8_t comes_in[ENTRIES] = { X86_RDI, X86_RSI, X86_RDX };
	bool used[ENTRIES + 1] = { false };
	for (size_t k = 0; k < s->ir->n_ins; k++)
		if (!s->scan.skip[k])
			used[entry_of(s->ir->ins[k].op)] = true;
	for (unsigned k = 0; k < ENTRIES; k++)
		if (used[k]) {
			s->entry[k] = lir_reg(s->l, LIR_GPR);
			sel_ins(s, LIR_ENTRY, X86_MOV, s->entry[k], 0, 0, sel_no_memory)->imm = comes_in[k];
		}
}

static void constant_lanes(const struct sel_constant *c, uint32_t *lane, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		if (c->kind == SEL_TABLE)
			memcpy(&lane[k], lanes_table[c->value] + k % 4 * 4, 4);
		else
			lane[k] = c->kind == SEL_SPLAT   ? c->value
			          : c->kind == SEL_WIDE  ? (k & 1 ? c->upper : c->value)
			          : c->kind == SEL_LANES ? k
			          : c->kind == SEL_STEPS ? k * c->value
			          : k < c->value         ? UINT32_MAX
			                                 : 0;
}

/* The instruction that makes a constant: an idiom, or a load from the pool. */
static struct lir_ins sel_make_constant(struct sel *s, const struct sel_constant *c)
{
	struct lir *l = s->l;
	struct lir_ins i = { .wd = s->width, .ws = s->width, .dst = c->reg, .ir = UINT32_MAX };
	uint32_t lane[16] = { 0 };
	bool mask = l->cls[c->reg] == LIR_MASK,
	     ones = mask ? c->value >= l->lanes : c->kind == SEL_SPLAT && c->value == UINT32_MAX;
	if (ones || (!mask && !c->value && c->kind == SEL_SPLAT)) {
		i.form = mask ? LIR_MIDIOM : LIR_IDIOM;
		i.op = mask ? X86_KXNORW : !ones ? X86_VXORPS : s->target->mask_regs ? X86_VPTERNLOGD : X86_VPCMPEQD;
		return i;
	}
	i.form = mask ? LIR_MCONST : LIR_CONST;
	i.op = mask ? X86_KMOVW : X86_VMOVUPS;
	if (mask)
		lane[0] = (1u << c->value) - 1;
	else
		constant_lanes(c, lane, l->lanes);
	i.mem = LIR_AT_POOL;
	i.disp = (int32_t)lir_pool(l, lane);
	return i;
}

/* Puts the constants where they belong, which was noted in ascending order. */
static void sel_put_constants(struct sel *s)
{
	struct lir *l = s->l;
	size_t n = l->n_ins, k = s->n_constants;
	if (l->failed || !array_grow((void **)&l->ins, &l->ins_capacity, n + k, sizeof *l->ins)) {
		l->failed = true;
		return;
	}
	l->n_ins = n + k;
	for (size_t to = n + k; k > 0; k--) {
		while (n > s->constant[k - 1].before)
			l->ins[--to] = l->ins[--n];
		l->ins[--to] = sel_make_constant(s, &s->constant[k - 1]);
	}
}

/* What a variable's new value makes stale. */
static void sel_forget(struct sel *s, uint32_t reg)
{
	for (unsigned k = 0; k < SEL_MEMO; k++)
		if (s->memo[k].of == reg)
			s->memo[k].of = 0;
}

bool x86_select(struct lir *l, const struct ir *ir, const struct target *target, struct error *err)
{
	struct sel s = { .ir = ir, .l = l, .target = target };
	s.width = target->lanes == 16 ? X86_ZMM : X86_YMM;
	s.half = target->lanes == 16 ? X86_YMM : X86_XMM;
	memcpy(s.rules, scalars, sizeof s.rules);
	sel_vector_rules(&s);
	lir_init(l, target->lanes);
	if (!scan_ir(&s.scan, ir, s.rules, target->mask_regs != 0, err))
		return false;
	l->local_bytes = s.scan.local_bytes;
	s.reg = calloc(2 * (ir->n_regs + 1), sizeof *s.reg);
	s.upper = s.reg ? s.reg + ir->n_regs + 1 : NULL;
	l->failed |= !s.reg;
	if (!l->failed)
		sel_entry(&s);
	for (s.at = 0; !l->failed && s.at < ir->n_ins; s.at++) {
		const struct ir_ins *i = &ir->ins[s.at];
		if (s.scan.skip[s.at] || is_folded(&s, i))
			continue;
		const struct sel_rule *rule = &s.rules[ir_row(i)];
		rule->select(&s, i, rule);
		if (i->dst && (ir->is_var[i->dst] || s.scan.into[s.at]))
			sel_forget(&s, sel_dst(&s, i));
	}
	sel_put_constants(&s);
	free(s.reg);
	free(s.constant);
	scan_free(&s.scan);
	return (l->failed || x86_tiles_set_up(l, err)) &&
	       (!l->failed || error_set(err, ERROR_MEMORY, "no memory for the machine instructions of a kernel"));
}
