/* jit/rdna/lir_verify_places.c - can the places that an allocator chose be right?
 *
 * That the kernel was a good one before is taken for granted, and that the encoder looks at every operand.
 */
#include <assert.h>

#include "jit/rdna/lir_verify.h"

/* A machine register. Positions are instruction numbers, plus one; those of loops are their LOOPs'. */
struct place {
	uint32_t word;    /* content() of what it holds, 0: nothing known */
	uint32_t written; /* the latest write */
	uint32_t needed;  /* the outermost loop that read this word before writing it, so that it must be there again in
	                     the next turn; what is not open does not count */
};

struct places {
	struct check *c;
	struct place at[MACHINE];
	uint32_t begun; /* the innermost open loop; 0: none */
};

static bool in_loop(const struct check *c, uint32_t loop)
{
	for (unsigned d = 0; d < c->depth; d++)
		if (c->stack[d] == loop)
			return true;
	return false;
}

static void need_through_loops(const struct check *c, struct place *x)
{
	unsigned d = 0;
	while (c->stack[d] <= x->written)
		d++;
	if (c->stack[d] < x->needed || !in_loop(c, x->needed))
		x->needed = c->stack[d];
}

static inline void read_place(struct places *p, const struct rdna_lir_operand *o)
{
	if (o->kind != RDNA_LIR_VIRTUAL)
		return;
	struct place *x = &p->at[p->c->l->reg[o->reg].phys + o->sub];
	uint32_t word = content(o), end = word + o->n;
	for (; word < end; word++, x++) {
		if (x->word != word)
			rdna_verify_fail(p->c, "a source's machine register holds another value");
		else if (x->written < p->begun)
			need_through_loops(p->c, x);
	}
}

static inline void write_place(struct places *p, const struct rdna_lir_operand *o)
{
	bool virtual = o->kind == RDNA_LIR_VIRTUAL;
	unsigned reg = virtual ? p->c->l->reg[o->reg].phys + o->sub : o->reg;
	uint32_t word = virtual ? content(o) : 0;
	if (reg < RDNA_ABI_FREE_SGPR || reg + o->n > MACHINE) {
		rdna_verify_fail(p->c, "a destination's machine register is not one for a kernel to write");
		return;
	}
	for (struct place *x = &p->at[reg], *end = x + o->n; x < end; x++, word += virtual) {
		if (x->word != word && x->needed && in_loop(p->c, x->needed))
			rdna_verify_fail(p->c, "it replaces what a loop that it is in reads again in its next turn");
		*x = (struct place){
			.word = word, .written = (uint32_t)p->c->at + 1, .needed = x->word == word ? x->needed : 0
		};
	}
}

static void enter_or_leave(struct places *p, unsigned op)
{
	struct check *c = p->c;
	if (op == RDNA_LIR_LOOP && c->depth == MAX_DEPTH)
		rdna_verify_fail(c, "loops nested deeper than 64");
	else if (op == RDNA_LIR_LOOP)
		c->stack[c->depth++] = (uint32_t)c->at + 1;
	else if (op == RDNA_LIR_ENDLOOP && c->depth)
		c->depth--;
	p->begun = c->depth ? c->stack[c->depth - 1] : 0;
}

static inline void check_places(struct places *p, const struct rdna_lir_ins *i)
{
	for (unsigned k = 0; k < 4; k++)
		read_place(p, &i->s[k]);
	read_place(p, &i->saddr);
	if (rdna_lir_reads_dst(i))
		read_place(p, &i->d[0]);
	if (i->d[1].kind || rdna_lir_early_clobber(i))
		rdna_verify_check_early_clobber(p->c, i);
	if (i->op >= RDNA_OP_COUNT)
		enter_or_leave(p, i->op);
	if (i->d[0].kind)
		write_place(p, &i->d[0]);
	if (i->d[1].kind)
		write_place(p, &i->d[1]);
}

bool rdna_lir_verify_places(const struct rdna_lir *l, struct error *err)
{
	struct check c = { .l = l, .err = err, .ok = true };
	struct places p = { .c = &c };
	assert(l->allocated);
	for (size_t r = 1; r < l->n_regs; r++)
		if (l->reg[r].phys + l->reg[r].n > MACHINE)
			return error_set(err, ERROR_ARGUMENT, "machine register %u is not one for a tuple of %u words",
			                 (unsigned)l->reg[r].phys, (unsigned)l->reg[r].n);
	for (const struct rdna_lir_ins *i = l->ins; c.ok && c.at < l->n_ins; c.at++, i++)
		check_places(&p, i);
	return c.ok;
}
