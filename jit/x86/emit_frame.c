/* jit/x86/emit_frame.c - loops and ifs, and the frame: prologue, probes of the stack, epilogue. */
#include <assert.h>

#include "jit/x86/emit.h"

static bool innermost(const struct emitter *e, uint32_t at)
{
	const struct lir_ins *i = &e->l->ins[at + 1];
	while (i->form != LIR_LOOP && i->form != LIR_ENDLOOP)
		i++;
	return i->form == LIR_ENDLOOP;
}

void x86_emit_loop(struct emitter *e, const struct lir_ins *i)
{
	assert(e->depth < IR_LOWERED_DEPTH);
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
	e->block[e->depth++] = (struct emit_block){ head, out, true };
}

void x86_emit_endloop(struct emitter *e, const struct lir_ins *i, bool flags)
{
	e->depth--;
	if (i->b)
		emit2(e, X86_CMP, g(e, i->a), x86_emit_g_or_mem(e, i, i->b));
	else if (i->imm)
		emit2(e, X86_CMP, g(e, i->a), x86_imm(i->imm));
	else if (!(flags && same(e, e->l->ins[e->at - 1].dst, i->a)))
		emit2(e, X86_TEST, g(e, i->a), g(e, i->a));
	emit1(e, i->op, x86_mem_label(e->block[e->depth].head, 0));
	x86_bind(&e->x, e->block[e->depth].exit);
}

static void emit_if(struct emitter *e, const struct lir_ins *i)
{
	assert(e->depth < IR_LOWERED_DEPTH);
	int out = x86_label(&e->x);
	emit2(e, X86_TEST, i->imm ? x86_r32(e->l->phys[i->a]) : g(e, i->a), i->imm ? x86_imm(i->imm) : g(e, i->a));
	emit1(e, X86_JE, x86_mem_label(out, 0));
	e->block[e->depth++] = (struct emit_block){ 0, out, false };
}

static void emit_else(struct emitter *e)
{
	struct emit_block *b = &e->block[e->depth - 1];
	int out = x86_label(&e->x);
	emit1(e, X86_JMP, x86_mem_label(out, 0));
	x86_bind(&e->x, b->exit);
	b->exit = out;
}

static void emit_break(struct emitter *e, const struct lir_ins *i)
{
	unsigned d = e->depth - 1;
	while (!e->block[d].loop)
		d--;
	emit2(e, X86_TEST, g(e, i->a), g(e, i->a));
	emit1(e, X86_JNE, x86_mem_label(e->block[d].exit, 0));
}

void x86_emit_branch(struct emitter *e, const struct lir_ins *i)
{
	switch (i->form) {
	case LIR_IF: emit_if(e, i); break;
	case LIR_ELSE: emit_else(e); break;
	case LIR_BREAK: emit_break(e, i); break;
	default: x86_bind(&e->x, e->block[--e->depth].exit); break;
	}
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

void x86_emit_prologue(struct emitter *e)
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

void x86_emit_epilogue(struct emitter *e)
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
