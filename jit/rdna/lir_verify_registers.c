/* jit/rdna/lir_verify_registers.c - can the registers that an allocator chose be right?
 *
 * That the kernel was a good one before is taken for granted, and that the encoder looks at every operand.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/rdna/lir_verify.h"

/* A machine register. Positions are instruction numbers, plus one; those of loops are their LOOPs'. */
struct held {
	uint32_t word;    /* content() of what it holds, 0: nothing known */
	uint32_t written; /* the latest write */
	uint32_t needed;  /* the outermost loop that read this word before writing it, so that it must be there again in
	                     the next iteration; what is not open does not count */
};

struct registers {
	struct check *c;
	struct held at[MACHINE];
	uint32_t begun; /* the innermost open loop; 0: none */
	/* By depth, of ifs and of loops that a break leaves, else NULL: the registers on other ways to where the block
	 * ends. At the if; then behind its first part. */
	struct held *other[IR_LOWERED_DEPTH];
};

static bool in_loop(const struct check *c, uint32_t loop)
{
	for (unsigned d = 0; d < c->depth; d++)
		if (c->stack[d] == loop && c->opened_by[d] == RDNA_LIR_LOOP)
			return true;
	return false;
}

static void need_through_loops(const struct check *c, struct held *x)
{
	unsigned d = 0;
	while (c->opened_by[d] != RDNA_LIR_LOOP || c->stack[d] <= x->written)
		d++;
	if (c->stack[d] < x->needed || !in_loop(c, x->needed))
		x->needed = c->stack[d];
}

static inline void read_register(struct registers *p, const struct rdna_lir_operand *o)
{
	if (o->kind != RDNA_LIR_VIRTUAL)
		return;
	struct held *x = &p->at[p->c->l->reg[o->reg].phys + o->sub];
	uint32_t word = content(o), end = word + o->n;
	for (; word < end; word++, x++) {
		if (x->word != word)
			rdna_verify_fail(p->c, "a source's machine register holds another value");
		else if (x->written < p->begun)
			need_through_loops(p->c, x);
	}
}

static inline void write_register(struct registers *p, const struct rdna_lir_operand *o)
{
	bool virtual = o->kind == RDNA_LIR_VIRTUAL;
	unsigned reg = virtual ? p->c->l->reg[o->reg].phys + o->sub : o->reg;
	uint32_t word = virtual ? content(o) : 0;
	if (reg < RDNA_ABI_FREE_SGPR || reg + o->n > MACHINE) {
		rdna_verify_fail(p->c, "a destination's machine register is not one for a kernel to write");
		return;
	}
	for (struct held *x = &p->at[reg], *end = x + o->n; x < end; x++, word += virtual) {
		if (x->word != word && x->needed && in_loop(p->c, x->needed))
			rdna_verify_fail(p->c,
			                 "it replaces what a loop that it is in reads again in its next iteration");
		*x = (struct held){
			.word = word, .written = (uint32_t)p->c->at + 1, .needed = x->word == word ? x->needed : 0
		};
	}
}

/* --- where ways part and meet */

/* A copy of the registers as they are. NULL: no memory. */
static struct held *copy_registers(struct registers *p)
{
	struct held *copy = malloc(sizeof p->at);
	if (!copy) {
		error_set(p->c->err, ERROR_MEMORY, "no memory to verify the registers of a kernel");
		p->c->ok = false;
		return NULL;
	}
	return memcpy(copy, p->at, sizeof p->at);
}

static uint32_t outer_need(const struct check *c, const struct held *x, const struct held *y)
{
	uint32_t a = x->needed && in_loop(c, x->needed) ? x->needed : UINT32_MAX,
		 b = y->needed && in_loop(c, y->needed) ? y->needed : UINT32_MAX;
	return a == UINT32_MAX && b == UINT32_MAX ? 0 : a < b ? a : b;
}

/* What x and y are when ways with them meet, into x. What a loop reads again in its next iteration must be there on
 * both. */
static void meet(struct registers *p, struct held *x, const struct held *y)
{
	for (struct held *end = x + MACHINE; x < end; x++, y++) {
		uint32_t needed = outer_need(p->c, x, y);
		if (x->word != y->word && needed)
			rdna_verify_fail(p->c, "it replaces on one way what a loop reads again in its next iteration");
		*x = (struct held){ .word = x->word == y->word ? x->word : 0,
			            .written = x->written < y->written ? x->written : y->written,
			            .needed = needed };
	}
}

static void open_block(struct registers *p, unsigned op)
{
	struct check *c = p->c;
	if (c->depth == IR_LOWERED_DEPTH) {
		rdna_verify_fail(c, "loops and ifs nested deeper than 64");
		return;
	}
	p->other[c->depth] = op == RDNA_LIR_IF ? copy_registers(p) : NULL;
	c->opened_by[c->depth] = (uint16_t)op;
	c->stack[c->depth++] = (uint32_t)c->at + 1;
}

/* What the first part's reads need of a loop's next iteration it needs all the same. */
static void second_part(struct registers *p)
{
	struct held *other = p->c->depth ? p->other[p->c->depth - 1] : NULL;
	for (unsigned k = 0; other && k < MACHINE; k++) {
		struct held first = p->at[k];
		p->at[k] = other[k];
		if (first.word == other[k].word)
			p->at[k].needed = outer_need(p->c, &first, &other[k]);
		other[k] = first;
	}
}

static void close_block(struct registers *p)
{
	struct check *c = p->c;
	if (!c->depth)
		return;
	struct held *other = p->other[--c->depth];
	if (other)
		meet(p, p->at, other);
	free(other);
	p->other[c->depth] = NULL;
}

static void leave_loop(struct registers *p)
{
	unsigned d = p->c->depth;
	while (d && p->c->opened_by[d - 1] != RDNA_LIR_LOOP)
		d--;
	if (!d)
		rdna_verify_fail(p->c, "a break outside of loops");
	else if (p->other[d - 1])
		meet(p, p->other[d - 1], p->at);
	else
		p->other[d - 1] = copy_registers(p);
}

static void follow(struct registers *p, unsigned op)
{
	struct check *c = p->c;
	switch (op) {
	case RDNA_LIR_LOOP:
	case RDNA_LIR_IF: open_block(p, op); break;
	case RDNA_LIR_ELSE: second_part(p); break;
	case RDNA_LIR_ENDIF:
	case RDNA_LIR_ENDLOOP: close_block(p); break;
	case RDNA_LIR_BREAK: leave_loop(p); break;
	default: break;
	}
	p->begun = 0;
	for (unsigned d = 0; d < c->depth; d++)
		p->begun = c->opened_by[d] == RDNA_LIR_LOOP ? c->stack[d] : p->begun;
}

static inline void check_registers(struct registers *p, const struct rdna_lir_ins *i)
{
	for (unsigned k = 0; k < 4; k++)
		read_register(p, &i->s[k]);
	read_register(p, &i->saddr);
	if (rdna_lir_reads_dst(i))
		read_register(p, &i->d[0]);
	if (i->d[1].kind || rdna_lir_early_clobber(i))
		rdna_verify_check_early_clobber(p->c, i);
	if (i->op >= RDNA_OP_COUNT)
		follow(p, i->op);
	if (i->d[0].kind)
		write_register(p, &i->d[0]);
	if (i->d[1].kind)
		write_register(p, &i->d[1]);
}

bool rdna_lir_verify_registers(const struct rdna_lir *l, struct error *err)
{
	struct check c = { .l = l, .err = err, .ok = true };
	struct registers p = { .c = &c };
	assert(l->allocated);
	for (size_t r = 1; r < l->n_regs; r++)
		if (l->reg[r].phys + l->reg[r].n > MACHINE)
			return error_set(err, ERROR_ARGUMENT, "machine register %u is not one for a tuple of %u words",
			                 (unsigned)l->reg[r].phys, (unsigned)l->reg[r].n);
	for (const struct rdna_lir_ins *i = l->ins; c.ok && c.at < l->n_ins; c.at++, i++)
		check_registers(&p, i);
	for (unsigned d = 0; d < IR_LOWERED_DEPTH; d++)
		free(p.other[d]);
	return c.ok;
}
