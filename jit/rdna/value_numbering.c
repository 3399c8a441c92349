/* jit/rdna/value_numbering.c - gives computations that a straight run does twice one name, before RDNA selection.
 *
 * Templates compute again what is easily computed again, for CPUs have few registers; cards have many. Owns a copy of
 * the instructions in which operands name the first of equal results; the others die in the scan, for nobody uses them.
 * Never touches variables, memory or the order. Rule for editors: only rows whose result is a function of their
 * operands and immediate alone may be equal.
 */
#include "jit/rdna/select.h"

#include <stdlib.h>

struct rsame {
	const struct ir *ir;
	struct ir_ins *ins;
	uint16_t *name;      /* by register: the first of its equals */
	uint32_t *slot;      /* by hash: an instruction, plus one, of the run that began at instruction `run` */
	uint32_t run, slots; /* slots: a power of two that is never full, so that what is found hangs on no hash */
};

static inline bool is_function(const struct ir *ir, const struct ir_ins *i)
{
	return rscan_row(i) & RSCAN_IS_FUNCTION &&
	       !(ir->is_var[i->dst] | ir->is_var[i->a] | ir->is_var[i->b] | ir->is_var[i->c]);
}

static uint32_t hash(const struct ir_ins *i)
{
	uint64_t h = (uint64_t)i->imm * 0x9e3779b97f4a7c15u ^
	             ((uint64_t)ir_row(i) << 48 | (uint64_t)i->a << 32 | (uint64_t)i->b << 16 | i->c);
	return (uint32_t)((h * 0xd6e8feb86659fd93u) >> 40);
}

/* The first instruction of the run that computes what number k does, which may be k itself. */
static uint32_t rsame_first(struct rsame *c, uint32_t k)
{
	const struct ir_ins *i = &c->ins[k];

	for (uint32_t at = hash(i);; at++) {
		uint32_t other = c->slot[at &= c->slots - 1];
		if (other <= c->run) { /* empty, or of another run */
			c->slot[at] = k + 1;
			return k;
		}
		const struct ir_ins *o = &c->ins[other - 1];
		if (o->op == i->op && o->type == i->type && o->a == i->a && o->b == i->b && o->c == i->c &&
		    o->imm == i->imm)
			return other - 1;
	}
}

static void rsame_run(struct rsame *c)
{
	for (uint32_t k = 0; k < c->ir->n_ins; k++) {
		struct ir_ins *i = &c->ins[k];
		*i = c->ir->ins[k];
		i->a = c->name[i->a];
		i->b = c->name[i->b];
		i->c = c->name[i->c];
		i->mask = c->name[i->mask];
		if (rscan_row(i) & RSCAN_ENDS_RUN)
			c->run = k + 1;
		if (is_function(c->ir, i))
			c->name[i->dst] = c->ins[rsame_first(c, k)].dst;
	}
}

struct ir_ins *rsame_instructions(const struct ir *ir)
{
	struct rsame c = { .ir = ir, .slots = 256 };

	while (c.slots < 2 * ir->n_ins)
		c.slots *= 2;
	c.slot = calloc(c.slots, sizeof *c.slot);
	c.ins = malloc((ir->n_ins + 1) * sizeof *c.ins);
	c.name = malloc((ir->n_regs + 1) * sizeof *c.name);
	if (c.ins && c.name && c.slot) {
		for (size_t r = 0; r < ir->n_regs; r++)
			c.name[r] = (uint16_t)r;
		rsame_run(&c);
	} else {
		free(c.ins);
		c.ins = NULL;
	}
	free(c.name);
	free(c.slot);
	return c.ins;
}
