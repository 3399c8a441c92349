/* jit/x86/emit.c - machine instructions with registers assigned, to bytes.
 *
 * Owns: the frame, the choice of the two-operand and FMA encodings once it is known which registers coincide, the
 * layout of code and constant pool, the listing. Decides no register and no order. Rule for editors: a sequence written
 * here must not write its destination before the last read of every other operand, unless the case excludes that they
 * coincide.
 *
 * The frame, from rsp upwards: locals (64-byte aligned), vector slots, general slots, the caller's rsp.
 */
#include "jit/x86/select.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const uint8_t x86_gpr_order[15] = {
	X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_RAX, X86_R8,  X86_R9,  X86_R10,
	X86_R11, X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15,
};

enum { MAX_DEPTH = 64, PAGE = 4096 };

struct note {
	uint32_t offset;
	uint32_t ins;
}; /* listing: where an instruction's bytes begin, what they are for */

struct emitter {
	struct x86 x;
	const struct lir *l;
	const struct emit_options *opt;
	struct {
		int head, exit;
	} loop[MAX_DEPTH];
	unsigned depth;
	int pool;
	uint32_t vec_slots_at, gpr_slots_at, frame;
	uint32_t saved;           /* callee-saved registers pushed, bit by number */
	uint32_t count, at, dots; /* instructions; the one at work; products of matrices so far */
	bool flags_of_counter;    /* the last instruction was the loop counter's addition: flags tell zero */
	struct note *note;
	size_t n_notes, notes_capacity;
	bool failed;
};

/* --- operands */

static void take_note(struct emitter *e)
{
	if (!e->opt->dump_asm)
		return;
	e->failed |= !array_grow((void **)&e->note, &e->notes_capacity, e->n_notes + 1, sizeof *e->note);
	if (!e->failed)
		e->note[e->n_notes++] = (struct note){ (uint32_t)e->x.size, e->at };
}

static void emit4(struct emitter *e, unsigned op, struct x86_operand a, struct x86_operand b, struct x86_operand c,
                  struct x86_operand d)
{
	take_note(e);
	x86_ins(&e->x, (enum x86_op)op, a, b, c, d);
	e->count++;
}

static void emit0(struct emitter *e, unsigned op) { emit4(e, op, X86_0, X86_0, X86_0, X86_0); }
static void emit1(struct emitter *e, unsigned op, struct x86_operand a) { emit4(e, op, a, X86_0, X86_0, X86_0); }
static void emit2(struct emitter *e, unsigned op, struct x86_operand a, struct x86_operand b)
{
	emit4(e, op, a, b, X86_0, X86_0);
}
static void emit3(struct emitter *e, unsigned op, struct x86_operand a, struct x86_operand b, struct x86_operand c)
{
	emit4(e, op, a, b, c, X86_0);
}

static struct x86_operand machine(uint8_t cls, unsigned number)
{
	switch (cls) {
	case X86_XMM: return x86_xmm((int)number);
	case X86_YMM: return x86_ymm((int)number);
	case X86_ZMM: return x86_zmm((int)number);
	case X86_GPR32: return x86_r32((int)number);
	case X86_KREG: return x86_k((int)number);
	default: return x86_r64((int)number);
	}
}

static struct x86_operand place(const struct emitter *e, const struct lir_ins *i)
{
	const uint8_t *phys = e->l->phys;
	unsigned vector = e->l->lanes * 4;
	switch (i->mem) {
	case LIR_AT_BASE:
		return i->index ? x86_mem_index(phys[i->base], phys[i->index], 1, i->disp)
		                : x86_mem(phys[i->base], i->disp);
	case LIR_AT_POOL: return x86_mem_label(e->pool, i->disp);
	case LIR_AT_LOCAL: return x86_mem(X86_RSP, i->disp);
	case LIR_AT_VEC_SLOT: return x86_mem(X86_RSP, (int32_t)(e->vec_slots_at + (uint32_t)i->disp * vector));
	default: return x86_mem(X86_RSP, (int32_t)(e->gpr_slots_at + (uint32_t)i->disp * 8));
	}
}

static struct x86_operand memory(const struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand m = place(e, i);
	return i->broadcast ? x86_mem_broadcast(m) : m;
}

/* A source operand: register or memory. */
static struct x86_operand source(const struct emitter *e, const struct lir_ins *i, uint32_t r)
{
	return r == LIR_MEM ? memory(e, i) : machine(i->ws, e->l->phys[r]);
}

static struct x86_operand target_of(const struct emitter *e, const struct lir_ins *i)
{
	return machine(i->wd, e->l->phys[i->dst]);
}

static bool same(const struct emitter *e, uint32_t x, uint32_t y)
{
	return x >= LIR_FIRST && y >= LIR_FIRST && e->l->phys[x] == e->l->phys[y];
}

static struct x86_operand g(const struct emitter *e, uint32_t r) { return x86_r64(e->l->phys[r]); }
static struct x86_operand g_or_mem(const struct emitter *e, const struct lir_ins *i, uint32_t r)
{
	return r == LIR_MEM ? memory(e, i) : g(e, r);
}

/* --- vectors */

static void emit_load(struct emitter *e, const struct lir_ins *i)
{
	emit2(e, i->broadcast ? X86_VBROADCASTSS : X86_VMOVUPS, target_of(e, i), place(e, i));
}

static void emit_move(struct emitter *e, const struct lir_ins *i)
{
	if (i->a == LIR_MEM)
		emit_load(e, i);
	else if (!same(e, i->dst, i->a))
		emit2(e, X86_VMOVAPS, target_of(e, i), source(e, i, i->a));
}

static void emit_op3(struct emitter *e, const struct lir_ins *i)
{
	uint32_t a = i->a, b = i->b;
	if (a == LIR_MEM) {
		a = i->b;
		b = LIR_MEM;
	}
	struct x86_operand imm = i->form == LIR_OP3I ? x86_imm(i->imm) : X86_0;
	emit4(e, i->op, target_of(e, i), source(e, i, a), source(e, i, b), imm);
}

/* dst = a*b + c. 231 adds to its destination, 213 and 132 multiply theirs; the last source may be memory. */
static void emit_fma(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = target_of(e, i);
	uint32_t a = i->a, b = i->b, c = i->c;
	if (a == LIR_MEM || same(e, i->dst, b)) {
		a = i->b;
		b = i->a;
	}
	if (c != LIR_MEM && same(e, i->dst, c)) {
		emit3(e, X86_VFMADD231PS, d, source(e, i, a), source(e, i, b));
	} else if (b == LIR_MEM && !same(e, i->dst, a)) {
		emit2(e, X86_VMOVAPS, d, source(e, i, c));
		emit3(e, X86_VFMADD231PS, d, source(e, i, a), memory(e, i));
	} else if (b == LIR_MEM) {
		emit3(e, X86_VFMADD132PS, d, source(e, i, c), memory(e, i));
	} else if (same(e, i->dst, a)) {
		emit3(e, X86_VFMADD213PS, d, source(e, i, b), source(e, i, c));
	} else if (c == LIR_MEM) {
		emit_load(e, i);
		emit3(e, X86_VFMADD231PS, d, source(e, i, a), source(e, i, b));
	} else {
		emit2(e, X86_VMOVAPS, d, source(e, i, c));
		emit3(e, X86_VFMADD231PS, d, source(e, i, a), source(e, i, b));
	}
}

/* All zeros or all ones. Writing 128 bits of zeros clears the rest too, and is shorter. */
static void emit_idiom(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = target_of(e, i);
	if (i->wd == X86_ZMM && i->op == X86_VXORPS && d.reg < 16)
		d = x86_xmm(d.reg);
	emit4(e, i->op, d, d, d, i->op == X86_VPTERNLOGD ? x86_imm(0xff) : X86_0);
}

/* The destination is cleared first: a gather merges into it, and would wait for whatever wrote it last. */
static void emit_gather(struct emitter *e, const struct lir_ins *i)
{
	emit3(e, X86_VXORPS, target_of(e, i), target_of(e, i), target_of(e, i));
	int base = i->mem == LIR_AT_LOCAL ? X86_RSP : e->l->phys[i->base];
	struct x86_operand m = x86_mem_index(base, e->l->phys[i->b], 1, i->disp);
	bool masked = i->form == LIR_MGATHER;
	e->x.mask = masked ? e->l->phys[i->c] : 0;
	emit3(e, i->op, target_of(e, i), m, masked ? X86_0 : machine(i->ws, e->l->phys[i->c]));
}

/* dst = c and what the instruction adds of a and b; dst is the register of a or b only if it is c's too. */
static void emit_dot(struct emitter *e, const struct lir_ins *i)
{
	if (!same(e, i->dst, i->c))
		emit2(e, X86_VMOVAPS, target_of(e, i), source(e, i, i->c));
	emit4(e, i->op, target_of(e, i), source(e, i, i->a), source(e, i, i->b),
	      i->form == LIR_TERNARY ? x86_imm(i->imm) : X86_0);
}

static void emit_vector(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = i->dst ? target_of(e, i) : X86_0;
	switch (i->form) {
	case LIR_IDIOM: emit_idiom(e, i); break;
	case LIR_CONST: emit2(e, i->op, d, memory(e, i)); break;
	case LIR_MOV: emit_move(e, i); break;
	case LIR_OP2:
	case LIR_FROM_GPR: emit2(e, i->op, d, source(e, i, i->a)); break;
	case LIR_OP2I: emit3(e, i->op, d, source(e, i, i->a), x86_imm(i->imm)); break;
	case LIR_OP3:
	case LIR_OP3C:
	case LIR_OP3I: emit_op3(e, i); break;
	case LIR_FMA: emit_fma(e, i); break;
	case LIR_BLEND: emit4(e, i->op, d, source(e, i, i->a), source(e, i, i->b), source(e, i, i->c)); break;
	case LIR_GATHER: emit_gather(e, i); break;
	case LIR_DOT:
	case LIR_TERNARY: emit_dot(e, i); break;
	case LIR_STORE: emit2(e, i->op, memory(e, i), source(e, i, i->a)); break;
	case LIR_STOREI: emit3(e, i->op, memory(e, i), source(e, i, i->a), x86_imm(i->imm)); break;
	case LIR_STOREM: emit3(e, i->op, memory(e, i), source(e, i, i->a), source(e, i, i->b)); break;
	default: emit1(e, i->op, memory(e, i)); break;
	}
}

/* --- products of matrices. The strides of rows in memory are index registers: one, times 1 or 4. */

enum { HALF = 64 /* bytes of a tile's row */ };
_Static_assert(IR_DOTS_ROW == 4 * IR_DOTS_STRIP, "one register holds both strides");

static void emit_dots(struct emitter *e, const struct lir_ins *i)
{
	struct x86_tiles t = x86_tiles_of(&e->l->tiles, i->imm, e->dots++);
	int x = e->l->phys[i->a], w = e->l->phys[i->b], strip = e->l->phys[i->c], row = IR_DOTS_ROW / IR_DOTS_STRIP;
	struct x86_operand sums = place(e, i);

	emit2(e, X86_TILELOADD, x86_tmm(t.x), x86_mem_index(x, strip, 1, lir_dots_disp_a(i->imm)));
	for (int half = 0; half < 2; half++) {
		emit2(e, X86_TILELOADD, x86_tmm(t.w[half]),
		      x86_mem_index(w, strip, row, lir_dots_disp_b(i->imm) + half * HALF));
		emit1(e, X86_TILEZERO, x86_tmm(t.sum[half]));
		emit3(e, i->op, x86_tmm(t.sum[half]), x86_tmm(t.x), x86_tmm(t.w[half]));
	}
	for (int half = 0; half < 2; half++)
		emit2(e, X86_TILESTORED, x86_mem_index(sums.reg, strip, row, sums.disp + half * HALF),
		      x86_tmm(t.sum[half]));
}

/* --- masks. What a mask lets through is merged into memory, and into registers zeroed. */

static struct x86_operand k(const struct emitter *e, uint32_t r) { return x86_k(e->l->phys[r]); }

static void emit_mask(struct emitter *e, const struct lir_ins *i)
{
	switch (i->form) {
	case LIR_MIDIOM: emit3(e, i->op, k(e, i->dst), k(e, i->dst), k(e, i->dst)); break;
	case LIR_MCONST: emit2(e, i->op, k(e, i->dst), memory(e, i)); break;
	case LIR_MMOV:
		if (i->a == LIR_MEM || !same(e, i->dst, i->a))
			emit2(e, i->op, k(e, i->dst), i->a == LIR_MEM ? memory(e, i) : k(e, i->a));
		break;
	case LIR_MSAVE: emit2(e, i->op, memory(e, i), k(e, i->a)); break;
	case LIR_MOP: emit3(e, i->op, k(e, i->dst), k(e, i->a), k(e, i->b)); break;
	case LIR_MNOT: emit2(e, i->op, k(e, i->dst), k(e, i->a)); break;
	case LIR_MSIGN: emit2(e, i->op, k(e, i->dst), source(e, i, i->a)); break;
	case LIR_MCMP: emit3(e, i->op, k(e, i->dst), source(e, i, i->a), source(e, i, i->b)); break;
	default: emit4(e, i->op, k(e, i->dst), source(e, i, i->a), source(e, i, i->b), x86_imm(i->imm)); break;
	}
}

static void emit_masked(struct emitter *e, const struct lir_ins *i)
{
	if (i->form == LIR_MGATHER) {
		emit_gather(e, i);
		return;
	}
	e->x.mask = e->l->phys[i->c];
	e->x.zeroing = i->form == LIR_MLOAD;
	switch (i->form) {
	case LIR_MBLEND: emit3(e, i->op, target_of(e, i), source(e, i, i->a), source(e, i, i->b)); break;
	case LIR_MLOAD: emit2(e, i->op, target_of(e, i), memory(e, i)); break;
	case LIR_MSTORE: emit2(e, i->op, memory(e, i), source(e, i, i->a)); break;
	default: emit3(e, i->op, memory(e, i), source(e, i, i->a), x86_imm(i->imm)); break;
	}
}

/* --- scalars */

static void move_gpr(struct emitter *e, struct x86_operand d, struct x86_operand s)
{
	if (s.cls == X86_MEM || d.reg != s.reg)
		emit2(e, X86_MOV, d, s);
}

static void emit_sconst(struct emitter *e, const struct lir_ins *i)
{
	unsigned r = e->l->phys[i->dst];
	if (!i->imm)
		emit2(e, X86_XOR, x86_r32((int)r), x86_r32((int)r));
	else if (i->imm > 0 && i->imm <= UINT32_MAX)
		emit2(e, X86_MOV, x86_r32((int)r), x86_imm(i->imm));
	else
		emit2(e, X86_MOV, x86_r64((int)r), x86_imm(i->imm));
}

/* dst = a op b, op two-operand. */
static void emit_sop(struct emitter *e, const struct lir_ins *i)
{
	uint32_t a = i->a, b = i->b;
	bool either = i->form == LIR_SOPC;
	if (a == LIR_MEM || (either && same(e, i->dst, b) && !same(e, i->dst, a))) {
		a = i->b;
		b = i->a;
	}
	struct x86_operand d = g(e, i->dst);
	if (!same(e, i->dst, a) && same(e, i->dst, b)) { /* a difference into its subtrahend */
		emit1(e, X86_NEG, d);
		emit2(e, X86_ADD, d, g(e, a));
	} else if (i->op == X86_ADD && b != LIR_MEM && !same(e, i->dst, a)) {
		emit2(e, X86_LEA, d, x86_mem_index(e->l->phys[a], e->l->phys[b], 1, 0));
	} else {
		move_gpr(e, d, g(e, a));
		emit2(e, i->op, d, g_or_mem(e, i, b));
	}
}

/* dst = the condition (cmovg: minimum, cmovl: maximum) holds for a against b ? b : a. */
static void emit_minmax(struct emitter *e, const struct lir_ins *i)
{
	uint32_t a = i->a, b = i->b;
	if (a == LIR_MEM || same(e, i->dst, b)) {
		a = i->b;
		b = i->a;
	}
	move_gpr(e, g(e, i->dst), g(e, a));
	emit2(e, X86_CMP, g(e, i->dst), g_or_mem(e, i, b));
	emit2(e, i->op, g(e, i->dst), g_or_mem(e, i, b));
}

static void emit_sopi(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = g(e, i->dst), a = g(e, i->a);
	if (i->op == X86_IMUL) {
		emit3(e, X86_IMUL, d, a, x86_imm(i->imm));
	} else if (i->op == X86_ADD && d.reg != a.reg) {
		if (i->imm)
			emit2(e, X86_LEA, d, x86_mem(a.reg, (int32_t)i->imm));
		else
			emit2(e, X86_MOV, d, a);
	} else {
		move_gpr(e, d, a);
		if (i->imm || i->op == X86_AND)
			emit2(e, i->op, d, x86_imm(i->imm));
		e->flags_of_counter = i->op == X86_ADD && i->imm;
	}
}

static void emit_scalar(struct emitter *e, const struct lir_ins *i)
{
	switch (i->form) {
	case LIR_SCONST: emit_sconst(e, i); break;
	case LIR_SMOV: move_gpr(e, g(e, i->dst), g_or_mem(e, i, i->a)); break;
	case LIR_SLOAD32:
		emit2(e, X86_MOV, x86_r32(e->l->phys[i->dst]),
		      i->a == LIR_MEM ? memory(e, i) : x86_r32(e->l->phys[i->a]));
		break;
	case LIR_SSTORE: emit2(e, X86_MOV, memory(e, i), g(e, i->a)); break;
	case LIR_LEA: emit2(e, X86_LEA, g(e, i->dst), memory(e, i)); break;
	case LIR_SOP:
	case LIR_SOPC: emit_sop(e, i); break;
	case LIR_SMINMAX: emit_minmax(e, i); break;
	case LIR_SOPI: emit_sopi(e, i); break;
	default: move_gpr(e, g(e, i->dst), x86_r64((int)i->imm)); break;
	}
}

/* --- loops and the frame */

static bool innermost(const struct emitter *e, uint32_t at)
{
	const struct lir_ins *i = &e->l->ins[at + 1];
	while (i->form != LIR_LOOP && i->form != LIR_ENDLOOP)
		i++;
	return i->form == LIR_ENDLOOP;
}

static void emit_loop(struct emitter *e, const struct lir_ins *i)
{
	assert(e->depth < MAX_DEPTH);
	int head = x86_label(&e->x), out = x86_label(&e->x);
	if (i->a) {
		emit2(e, X86_TEST, g(e, i->a), g(e, i->a));
		emit1(e, X86_JLE, x86_mem_label(out, 0));
	}
	if (innermost(e, e->at)) {
		take_note(e);
		x86_align(&e->x, 32);
	}
	x86_bind(&e->x, head);
	e->loop[e->depth].head = head;
	e->loop[e->depth++].exit = out;
}

static void emit_endloop(struct emitter *e, const struct lir_ins *i, bool flags)
{
	e->depth--;
	if (i->b)
		emit2(e, X86_CMP, g(e, i->a), g_or_mem(e, i, i->b));
	else if (i->imm)
		emit2(e, X86_CMP, g(e, i->a), x86_imm(i->imm));
	else if (!(flags && same(e, e->l->ins[e->at - 1].dst, i->a)))
		emit2(e, X86_TEST, g(e, i->a), g(e, i->a));
	emit1(e, i->op, x86_mem_label(e->loop[e->depth].head, 0));
	x86_bind(&e->x, e->loop[e->depth].exit);
}

static uint32_t used_gprs(const struct lir *l)
{
	uint32_t used = 0;
	for (size_t k = 0; k < l->n_ins; k++)
		if (l->ins[k].dst && l->cls[l->ins[k].dst] == LIR_GPR)
			used |= UINT32_C(1) << l->phys[l->ins[k].dst];
	return used;
}

/* Every page of a large frame is touched in order, so that the stack's guard page is met and not jumped. */
static void emit_probe(struct emitter *e, uint32_t bytes)
{
	int again = x86_label(&e->x);
	emit2(e, X86_LEA, x86_r64(X86_R11), x86_mem(X86_RSP, -(int32_t)bytes));
	x86_bind(&e->x, again);
	emit2(e, X86_SUB, x86_r64(X86_RSP), x86_imm(PAGE));
	emit2(e, X86_MOV, x86_mem(X86_RSP, 0), x86_r64(X86_RAX));
	emit2(e, X86_CMP, x86_r64(X86_RSP), x86_r64(X86_R11));
	emit1(e, X86_JA, x86_mem_label(again, 0));
	emit2(e, X86_MOV, x86_r64(X86_RSP), x86_r64(X86_R11));
}

static void emit_prologue(struct emitter *e)
{
	static const uint32_t callee_saved = 1u << X86_RBX | 1u << X86_RBP | 0xfu << X86_R12;
	const struct lir *l = e->l;
	e->saved = used_gprs(l) & callee_saved;
	for (int r = 0; r < 16; r++)
		if (e->saved >> r & 1)
			emit1(e, X86_PUSH, x86_r64(r));
	e->vec_slots_at = l->local_bytes;
	e->gpr_slots_at = e->vec_slots_at + l->vec_slots * l->lanes * 4;
	e->frame = e->gpr_slots_at + l->gpr_slots * 8;
	if (!e->frame)
		return;
	e->frame += 8;
	if (l->local_bytes)
		e->frame = (e->frame + 63) & ~63u;
	if (l->local_bytes || e->frame > PAGE)
		emit2(e, X86_MOV, x86_r64(X86_RAX), x86_r64(X86_RSP));
	if (e->frame > PAGE)
		emit_probe(e, e->frame);
	else
		emit2(e, X86_SUB, x86_r64(X86_RSP), x86_imm(e->frame));
	if (l->local_bytes) {
		emit2(e, X86_AND, x86_r64(X86_RSP), x86_imm(-64));
		emit2(e, X86_MOV, x86_mem(X86_RSP, (int32_t)e->frame - 8), x86_r64(X86_RAX));
	}
}

static void emit_epilogue(struct emitter *e)
{
	if (e->frame && e->l->local_bytes)
		emit2(e, X86_MOV, x86_r64(X86_RSP), x86_mem(X86_RSP, (int32_t)e->frame - 8));
	else if (e->frame)
		emit2(e, X86_ADD, x86_r64(X86_RSP), x86_imm(e->frame));
	for (int r = 15; r >= 0; r--)
		if (e->saved >> r & 1)
			emit1(e, X86_POP, x86_r64(r));
	emit0(e, X86_VZEROUPPER);
	emit0(e, X86_RET);
}

/* --- the listing */

static void list_bytes(const struct emitter *e, size_t from, size_t to, FILE *out)
{
	fprintf(out, "\t.byte ");
	for (size_t k = from; k < to; k++)
		fprintf(out, "%s0x%02x", k > from ? "," : "", e->x.code[k]);
}

static void list_origin(const struct emitter *e, const struct lir_ins *i, FILE *out)
{
	if (i->ir != UINT32_MAX && e->opt->ir && i->ir < e->opt->ir->n_ins) {
		const struct ir_ins *o = &e->opt->ir->ins[i->ir];
		fprintf(out, "\t# ");
		if (o->dst)
			fprintf(out, "%%%u = ", o->dst);
		fprintf(out, "%s", ir_facts[o->op].name);
		if (o->a)
			fprintf(out, " %%%u", o->a);
		if (o->b)
			fprintf(out, " %%%u", o->b);
		if (o->c)
			fprintf(out, " %%%u", o->c);
	} else {
		fprintf(out, "\t# constant");
	}
}

static void list(const struct emitter *e, uint32_t code_end)
{
	FILE *out = e->opt->dump_asm;
	const char *title = e->opt->title ? e->opt->title : "kernel";
	fprintf(out, "# %s\n\t.text\n%s:\n", title,
	        title); /* a key's text is a symbol, so one file may hold many kernels */
	for (size_t k = 0; k < e->n_notes; k++) {
		const struct note *n = &e->note[k];
		size_t to = k + 1 < e->n_notes ? e->note[k + 1].offset : code_end;
		if (to == n->offset)
			continue;
		list_bytes(e, n->offset, to, out);
		if (n->ins < e->l->n_ins)
			list_origin(e, &e->l->ins[n->ins], out);
		fprintf(out, "\n");
	}
	fprintf(out, "\t.section .rodata\n%s.constants:\n", title);
	for (size_t k = code_end; k < e->x.size; k += 16) {
		list_bytes(e, k, k + 16 < e->x.size ? k + 16 : e->x.size, out);
		fprintf(out, "\n");
	}
}

/* --- the pass */

static void emit_body(struct emitter *e)
{
	const struct lir *l = e->l;
	for (e->at = 0; e->at < l->n_ins; e->at++) {
		const struct lir_ins *i = &l->ins[e->at];
		bool flags = e->flags_of_counter;
		e->flags_of_counter = false;
		if (i->form == LIR_LOOP)
			emit_loop(e, i);
		else if (i->form == LIR_ENDLOOP)
			emit_endloop(e, i, flags);
		else if (i->form == LIR_DOTS)
			emit_dots(e, i);
		else if (i->form < LIR_DOTS)
			emit_vector(e, i);
		else if (i->form <= LIR_MCMPI)
			emit_mask(e, i);
		else if (i->form <= LIR_MGATHER)
			emit_masked(e, i);
		else
			emit_scalar(e, i);
	}
	e->at = UINT32_MAX;
}

static bool emit_object(struct emitter *e, struct object *out, struct error *err)
{
	uint32_t code_end = (uint32_t)e->x.size;
	x86_align(&e->x, 64);
	uint32_t pool = (uint32_t)e->x.size;
	x86_bind(&e->x, e->pool);
	x86_bytes(&e->x, e->l->pool, e->l->n_pool * 4);
	if (!x86_finish(&e->x))
		return error_set(err, e->x.error_op == X86_OP_COUNT ? ERROR_MEMORY : ERROR_ARGUMENT,
		                 "cannot encode %s: %s",
		                 e->x.error_op == X86_OP_COUNT ? "a kernel" : x86_op_name(e->x.error_op), e->x.error);
	if (e->opt->dump_asm)
		list(e, code_end);
	*out = (struct object){
		.code = e->x.code, .code_bytes = (uint32_t)e->x.size, .pool_offset = pool, .frame_bytes = e->frame
	};
	e->x.code = NULL;
	e->x.size = e->x.capacity = 0;
	return true;
}

bool x86_emit(struct object *out, const struct lir *l, const struct emit_options *opt, uint32_t *instructions,
              struct error *err)
{
	struct emitter e = { .l = l, .opt = opt, .at = UINT32_MAX };
	x86_init(&e.x);
	e.x.evex = l->lanes == 16; /* else VNNI, too, is said with VEX */
	e.pool = x86_label(&e.x);
	emit_prologue(&e);
	if (l->tiles.rows[0])
		emit1(&e, X86_LDTILECFG, x86_mem_label(e.pool, (int32_t)l->tiles.config));
	emit_body(&e);
	if (l->tiles.rows[0])
		emit0(&e, X86_TILERELEASE); /* tiles in use would be saved at every change of threads */
	emit_epilogue(&e);
	bool ok = e.failed ? error_set(err, ERROR_MEMORY, "no memory to list a kernel") : emit_object(&e, out, err);
	*instructions = e.count;
	x86_free(&e.x);
	free(e.note);
	return ok;
}
