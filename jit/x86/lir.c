/* jit/x86/lir.c - the machine-level form: growth, the table of forms, the verifier, the printer.
 *
 * Never changes an instruction. Rule for editors: the verifier derives everything from the table of forms in lir.h, so
 * that a new form is checked by having a row.
 */
#include "jit/x86/lir.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const struct lir_facts lir_facts[LIR_FORM_COUNT] = {
#define X(name, dst, a, b, c, fold, shares, what) { #name, LIR_##dst, LIR_##a, LIR_##b, LIR_##c, fold, shares },
	LIR_FORMS(X)
#undef X
};

void lir_init(struct lir *l, unsigned lanes)
{
	*l = (struct lir){ .lanes = lanes, .n_regs = LIR_FIRST };
	l->failed = !array_grow((void **)&l->cls, &l->regs_capacity, LIR_FIRST, 1);
	if (!l->failed)
		memset(l->cls, LIR_NONE, LIR_FIRST);
}

void lir_free(struct lir *l)
{
	free(l->ins);
	free(l->cls);
	free(l->phys);
	free(l->pool);
	*l = (struct lir){ 0 };
}

uint32_t lir_reg(struct lir *l, enum lir_class cls)
{
	if (!array_grow((void **)&l->cls, &l->regs_capacity, l->n_regs + 1, 1)) {
		l->failed = true;
		return LIR_FIRST;
	}
	l->cls[l->n_regs] = (uint8_t)cls;
	return (uint32_t)l->n_regs++;
}

struct lir_ins *lir_add(struct lir *l, enum lir_form form, enum x86_op op)
{
	static _Thread_local struct lir_ins lost;
	if (l->failed || !array_grow((void **)&l->ins, &l->ins_capacity, l->n_ins + 1, sizeof *l->ins)) {
		l->failed = true;
		return &lost;
	}
	struct lir_ins *i = &l->ins[l->n_ins++];
	*i = (struct lir_ins){ .form = (uint8_t)form, .op = (uint16_t)op };
	return i;
}

uint32_t lir_pool(struct lir *l, const uint32_t *lanes)
{
	size_t at = l->n_pool;
	if (!array_grow((void **)&l->pool, &l->pool_capacity, at + l->lanes, sizeof *l->pool)) {
		l->failed = true;
		return 0;
	}
	memcpy(l->pool + at, lanes, l->lanes * sizeof *lanes);
	l->n_pool += l->lanes;
	return (uint32_t)(at * 4);
}

/* --- the verifier */

enum { CHECK_DEPTH = 64 /* of loops and ifs */ };
/* What machine registers hold: the number of the value, 0: not known. */
struct contents {
	uint32_t of[LIR_CLASSES][32];
};
/* A loop, or a part of an if, that is open. */
struct check_block {
	uint32_t serial;       /* its number */
	uint8_t form;          /* LIR_LOOP, LIR_IF, LIR_ELSE */
	struct contents other; /* of a loop: on every way that leaves it before its end; else at the if; else's: behind
	                          the if's first part */
};
struct check {
	const struct lir *l;
	struct error *err;
	size_t at;
	uint32_t *open; /* by virtual register: 1 + the serial of the block it was first written in; 0: not written */
	struct contents holds;
	struct check_block block[CHECK_DEPTH];
	unsigned depth;
	uint32_t serial;
};

static bool check_fail(struct check *c, const char *what, uint32_t reg)
{
	return error_set(c->err, ERROR_ARGUMENT, "machine instruction %zu (%s): %s (register %u)", c->at,
	                 lir_facts[c->l->ins[c->at].form].name, what, (unsigned)reg);
}

/* Whether a value first written in block `serial` (0: outside blocks) is written on every path to here. */
static bool check_open(const struct check *c, uint32_t serial)
{
	for (unsigned k = 0; k < c->depth; k++)
		if (c->block[k].serial == serial)
			return true;
	return serial == 0;
}

static bool check_use(struct check *c, uint32_t reg, uint8_t cls)
{
	const struct lir *l = c->l;
	if (reg < LIR_FIRST || reg >= l->n_regs || l->cls[reg] != cls)
		return check_fail(c, "operand of the wrong class", reg);
	if (!c->open[reg] || !check_open(c, c->open[reg] - 1))
		return check_fail(c, "operand used before it is written on every path", reg);
	if (l->phys && c->holds.of[cls][l->phys[reg]] != reg)
		return check_fail(c, "operand's machine register holds another value", reg);
	return true;
}

static bool check_operand(struct check *c, uint32_t reg, uint8_t cls, bool may_fold, bool optional)
{
	if (cls == LIR_NONE)
		return !reg || check_fail(c, "operand where the form has none", reg);
	if (reg == LIR_MEM)
		return (may_fold && c->l->ins[c->at].mem) ||
		       check_fail(c, "memory operand where the form takes none", reg);
	return (optional && !reg) || check_use(c, reg, cls);
}

static bool check_reads(struct check *c)
{
	const struct lir_ins *i = &c->l->ins[c->at];
	const struct lir_facts *f = &lir_facts[i->form];
	bool structure = i->form == LIR_LOOP || i->form == LIR_ENDLOOP;
	if (!check_operand(c, i->a, f->a, f->fold & LIR_A, i->form == LIR_LOOP) ||
	    !check_operand(c, i->b, f->b, f->fold & LIR_B, structure) ||
	    !check_operand(c, i->c, f->c, f->fold & LIR_C, false))
		return false;
	if ((i->a == LIR_MEM) + (i->b == LIR_MEM) + (i->c == LIR_MEM) > 1)
		return check_fail(c, "two memory operands", 0);
	if (i->mem == LIR_AT_BASE)
		return check_use(c, i->base, LIR_GPR) && (!i->index || check_use(c, i->index, LIR_GPR));
	return (!i->base && !i->index) || check_fail(c, "address register without an address", i->base);
}

static bool shares_register(const struct lir *l, const struct lir_ins *i, char operand)
{
	uint32_t r = operand == 'a' ? i->a : operand == 'b' ? i->b : i->c;
	return r >= LIR_FIRST && l->cls[r] == l->cls[i->dst] && l->phys[r] == l->phys[i->dst];
}

/* What '!' asks for, with registers assigned; and the index and the mask of a gather must differ too. */
static bool check_early_clobber(const struct lir *l, const struct lir_ins *i)
{
	const char *h = lir_facts[i->form].shares;
	for (; *h && *h != '!'; h++)
		if (shares_register(l, i, *h))
			return true;
	if (*h && (shares_register(l, i, 'a') || shares_register(l, i, 'b') || shares_register(l, i, 'c')))
		return false;
	return i->form != LIR_GATHER || l->phys[i->b] != l->phys[i->c];
}

static bool check_write(struct check *c)
{
	const struct lir *l = c->l;
	const struct lir_ins *i = &l->ins[c->at];
	uint8_t cls = lir_facts[i->form].dst;
	if (cls == LIR_NONE)
		return !i->dst || check_fail(c, "destination where the form has none", i->dst);
	if (i->dst < LIR_FIRST || i->dst >= l->n_regs || l->cls[i->dst] != cls)
		return check_fail(c, "destination of the wrong class", i->dst);
	if (!c->open[i->dst] || !check_open(c, c->open[i->dst] - 1))
		c->open[i->dst] = 1 + (c->depth ? c->block[c->depth - 1].serial : 0);
	if (l->phys) {
		uint8_t p = l->phys[i->dst];
		if (!check_early_clobber(l, i))
			return check_fail(c, "the destination must differ from the other operands", i->dst);
		c->holds.of[cls][p] = i->dst;
		if (i->form == LIR_GATHER || i->form == LIR_MGATHER)
			c->holds.of[l->cls[i->c]][l->phys[i->c]] = 0;
	}
	return true;
}

/* At a loop's head a register keeps its value only if nothing in the body writes another value there: what the first
 * pass through the body finds, the next ones must find too. */
static void check_forget(struct check *c)
{
	const struct lir *l = c->l;
	unsigned depth = 0;
	for (size_t k = c->at; k < l->n_ins; k++) {
		const struct lir_ins *i = &l->ins[k];
		uint8_t cls = lir_facts[i->form].dst;
		depth += i->form == LIR_LOOP;
		if (cls != LIR_NONE && c->holds.of[cls][l->phys[i->dst]] != i->dst)
			c->holds.of[cls][l->phys[i->dst]] = 0;
		if (i->form == LIR_ENDLOOP && !--depth)
			break;
	}
}

/* Where ways meet, a register holds what it holds on both. */
static void check_meet(struct contents *c, const struct contents *other)
{
	for (unsigned cls = 0; cls < LIR_CLASSES; cls++)
		for (unsigned p = 0; p < 32; p++)
			if (c->of[cls][p] != other->of[cls][p])
				c->of[cls][p] = 0;
}

static bool check_enter(struct check *c, uint8_t form)
{
	if (c->depth == CHECK_DEPTH)
		return check_fail(c, "loops and ifs nested deeper than 64", 0);
	struct check_block *b = &c->block[c->depth++];
	b->serial = ++c->serial;
	b->form = form;
	b->other = c->holds;
	if (form == LIR_LOOP && c->l->phys)
		check_forget(c);
	return true;
}

static bool check_else(struct check *c, struct check_block *b)
{
	if (!b || b->form != LIR_IF)
		return check_fail(c, "the second part of an if that is not open", 0);
	struct contents first = c->holds;
	c->holds = b->other;
	b->other = first;
	b->serial = ++c->serial;
	b->form = LIR_ELSE;
	return true;
}

static bool check_leave(struct check *c, const struct check_block *b, bool loop)
{
	if (!b || (b->form == LIR_LOOP) != loop)
		return check_fail(c, loop ? "end of a loop that is not open" : "end of an if that is not open", 0);
	check_meet(&c->holds, &b->other);
	c->depth--;
	return true;
}

static bool check_break(struct check *c)
{
	unsigned d = c->depth;
	while (d && c->block[d - 1].form != LIR_LOOP)
		d--;
	if (!d)
		return check_fail(c, "a break outside of loops", 0);
	check_meet(&c->block[d - 1].other, &c->holds);
	return true;
}

static bool check_structure(struct check *c)
{
	uint8_t form = c->l->ins[c->at].form;
	struct check_block *b = c->depth ? &c->block[c->depth - 1] : NULL;
	switch (form) {
	case LIR_LOOP:
	case LIR_IF: return check_enter(c, form);
	case LIR_ELSE: return check_else(c, b);
	case LIR_ENDIF: return check_leave(c, b, false);
	case LIR_ENDLOOP: return check_leave(c, b, true);
	case LIR_BREAK: return check_break(c);
	default: return true;
	}
}

bool lir_verify(const struct lir *l, struct error *err)
{
	struct check c = { .l = l, .err = err };
	if (l->failed || !(c.open = calloc(l->n_regs, sizeof *c.open)))
		return error_set(err, ERROR_MEMORY, "no memory for the machine instructions of a kernel");
	bool ok = true;
	for (c.at = 0; ok && c.at < l->n_ins; c.at++)
		ok = check_reads(&c) && check_structure(&c) && check_write(&c);
	if (ok && c.depth) {
		c.at--;
		ok = check_fail(&c, "a loop or an if stays open", 0);
	}
	free(c.open);
	return ok;
}

/* --- the printer */
