/* jit/rdna/emit_branch.c - how loops are counted, and how branches of loops and ifs go and reach.
 *
 * A loop counts in its index's register as long as nothing in its body writes there, and compares with its count's
 * register likewise; where the allocator has given them away, spare registers do it. Branches beyond 16 bits go through
 * a register pair: found out in a first pass over the whole kernel, which is then emitted again. Rule for editors: as
 * in emit.c, what this file adds must be safe by itself on every generation.
 */
#include <assert.h>

#include "jit/rdna/emit.h"

/* A pair of scalar registers that the kernel does not use, on gfx12 one that stands apart if there is any. Never half a
 * pair: gfx12 minds what is written to its other half, which rdna_hazard does not see. */
static unsigned spare(struct emitter *e)
{
	const unsigned all = RDNA_ABI_SGPRS - RDNA_ABI_FREE_SGPR,
		       first = e->l->gen == RDNA_GFX12 ? RDNA_ABI_APART - RDNA_ABI_FREE_SGPR : 0;
	for (unsigned i = 0; i < all; i += 2) {
		unsigned k = RDNA_ABI_FREE_SGPR + (first + i) % all;
		if (e->taken.w[k / 64] >> k % 64 & 3)
			continue;
		rdna_map_add(&e->taken, (struct rdna_range){ (uint16_t)k, 2 });
		e->scalar_regs = k + 2 > e->scalar_regs ? (uint16_t)(k + 2) : e->scalar_regs;
		return k;
	}
	e->why = "no scalar register is left to count a loop";
	return RDNA_ABI_FREE_SGPR;
}

static void give_back(struct emitter *e, unsigned pair) { e->taken.w[pair / 64] &= ~(UINT64_C(3) << pair % 64); }

/* --- branches */

static enum rdna_op opposite(enum rdna_op op)
{
	return op == RDNA_S_CBRANCH_SCC0 ? RDNA_S_CBRANCH_SCC1 : RDNA_S_CBRANCH_SCC0;
}

/* SCC means nothing behind it. */
static void branch(struct emitter *e, enum rdna_op op, int label, bool far, bool forward)
{
	if (!far) {
		put(e, &(struct rdna_ins){ .op = op, .s = { rdna_to(label) } });
		return;
	}
	unsigned pc = spare(e);
	int here = rdna_label(&e->r), over = rdna_label(&e->r);
	if (op != RDNA_S_BRANCH)
		put(e, &(struct rdna_ins){ .op = opposite(op), .s = { rdna_to(over) } });
	put(e, &(struct rdna_ins){ .op = RDNA_S_GETPC_B64, .d = { rdna_sn(pc, 2) } });
	rdna_bind(&e->r, here);
	wait_scalar_write(e);
	put2(e, RDNA_S_ADD_CO_U32, rdna_s(pc), rdna_s(pc), rdna_distance(label, here));
	wait_scalar_write(e);
	put2(e, RDNA_S_ADD_CO_CI_U32, rdna_s(pc + 1), rdna_s(pc + 1), rdna_imm(forward ? 0 : -1));
	wait_scalar_write(e);
	put(e, &(struct rdna_ins){ .op = RDNA_S_SETPC_B64, .s = { rdna_sn(pc, 2) } });
	rdna_bind(&e->r, over);
	give_back(e, pc);
}

/* Behind a block: whether its branches must be far ones when the kernel is emitted once more. */
static void note_far(struct emitter *e, const struct block *p)
{
	if (!(e->is[p->at] & IS_FAR) && e->r.size - p->start > NEAR_BYTES) {
		e->is[p->at] |= IS_FAR;
		e->any_new_far = true;
	}
}

/* --- loops */

static struct rdna_operand count_of(const struct emitter *e, const struct rdna_lir_ins *i)
{
	struct rdna_range r = rdna_machine_range(&i->s[0]);
	return r.n ? rdna_s(r.reg) : rdna_imm((int32_t)i->s[0].value);
}

/* Where the count is kept while the loop runs. */
static struct rdna_operand limit_of(struct emitter *e, const struct rdna_lir_ins *i, struct rdna_operand count)
{
	struct rdna_range c = rdna_machine_range(&i->s[0]), d = rdna_machine_range(&i->d[0]);
	if (!c.n || (!(d.n && rdna_range_meets(c, d)) && !(e->is[e->at] & WRITES_COUNT)))
		return count;
	unsigned reg = spare(e);
	put1(e, RDNA_S_MOV_B32, rdna_s(reg), count);
	return rdna_s(reg);
}

static void emit_loop(struct emitter *e, const struct rdna_lir_ins *i)
{
	assert(e->depth < IR_LOWERED_DEPTH);
	struct block *p = &e->block[e->depth++];
	struct rdna_range d = rdna_machine_range(&i->d[0]);
	struct rdna_operand count = count_of(e, i);
	bool constant = count.kind == RDNA_CONST;

	*p = (struct block){
		.at = e->at, .loop = true, .head = rdna_label(&e->r), .exit = rdna_label(&e->r), .start = e->r.size
	};
	p->counts = !constant || (int32_t)count.value > 1;
	if (constant && (int32_t)count.value < 1) {
		branch(e, RDNA_S_BRANCH, p->exit, e->is[e->at] & IS_FAR, true);
	} else if (!constant) {
		compare(e, RDNA_S_CMP_LT_I32, count, rdna_imm(1));
		branch(e, RDNA_S_CBRANCH_SCC1, p->exit, e->is[e->at] & IS_FAR, true);
	}
	p->limit = limit_of(e, i, count);
	p->spare = p->counts && (!d.n || e->is[e->at] & WRITES_INDEX);
	p->counter = p->spare ? spare(e) : d.reg;
	if (d.n || p->counts)
		put1(e, RDNA_S_MOV_B32, rdna_s(p->counter), rdna_imm(0));
	rdna_bind(&e->r, p->head);
	if (p->spare && d.n) {
		wait_scalar_write(e);
		put1(e, RDNA_S_MOV_B32, rdna_s(d.reg), rdna_s(p->counter));
	}
}

static void emit_endloop(struct emitter *e)
{
	struct block *p = &e->block[--e->depth];
	struct rdna_operand count = count_of(e, &e->l->ins[p->at]);
	if (p->counts) {
		if (p->spare || p->limit.reg != count.reg)
			wait_scalar_write(e);
		put2(e, RDNA_S_ADD_CO_I32, rdna_s(p->counter), rdna_s(p->counter), rdna_imm(1));
		if (p->counter < RDNA_ABI_APART || (p->spare && rdna_is_register(&e->l->ins[p->at].d[0])))
			wait_scalar_write(e);
		compare(e, RDNA_S_CMP_LT_I32, rdna_s(p->counter), p->limit);
		branch(e, RDNA_S_CBRANCH_SCC1, p->head, e->is[p->at] & IS_FAR, false);
	}
	rdna_bind(&e->r, p->exit);
	if (p->spare)
		give_back(e, p->counter);
	if (p->limit.kind == RDNA_REG && p->limit.reg != count.reg)
		give_back(e, p->limit.reg);
	note_far(e, p);
}

/* --- ifs */

static void test(struct emitter *e, const struct rdna_lir_ins *i)
{
	compare(e, RDNA_S_CMP_LG_U32, rdna_s(rdna_machine_range(&i->s[0]).reg), rdna_imm(0));
}

static void emit_if(struct emitter *e, const struct rdna_lir_ins *i)
{
	assert(e->depth < IR_LOWERED_DEPTH);
	struct block *p = &e->block[e->depth++];
	*p = (struct block){ .at = e->at, .exit = rdna_label(&e->r), .start = e->r.size };
	test(e, i);
	branch(e, RDNA_S_CBRANCH_SCC0, p->exit, e->is[e->at] & IS_FAR, true);
}

static void emit_else(struct emitter *e)
{
	struct block *p = &e->block[e->depth - 1];
	int end = rdna_label(&e->r);
	size_t start = e->r.size;
	branch(e, RDNA_S_BRANCH, end, e->is[e->at] & IS_FAR, true);
	rdna_bind(&e->r, p->exit);
	note_far(e, p);
	*p = (struct block){ .at = e->at, .exit = end, .start = start };
}

static void emit_endif(struct emitter *e)
{
	struct block *p = &e->block[--e->depth];
	rdna_bind(&e->r, p->exit);
	note_far(e, p);
}

static void emit_break(struct emitter *e, const struct rdna_lir_ins *i)
{
	const struct block *p = &e->block[e->depth - 1];
	while (!p->loop)
		p--;
	test(e, i);
	branch(e, RDNA_S_CBRANCH_SCC1, p->exit, e->is[p->at] & IS_FAR, true);
}

void rdna_emit_branch(struct emitter *e, const struct rdna_lir_ins *i)
{
	switch (i->op) {
	case RDNA_LIR_LOOP: emit_loop(e, i); break;
	case RDNA_LIR_ENDLOOP: emit_endloop(e); break;
	case RDNA_LIR_IF: emit_if(e, i); break;
	case RDNA_LIR_ELSE: emit_else(e); break;
	case RDNA_LIR_ENDIF: emit_endif(e); break;
	default: emit_break(e, i); break;
	}
}
