/* jit/rdna/lir_verify.c - is this a kernel that the next pass may trust?
 *
 * Owns: the rules of lir.h, before and after registers are assigned. It believes neither the allocator nor its live
 * ranges: with registers assigned it follows the contents of every machine register, word by word, through loops and
 * ifs.
 * Operands one by one are lir_verify_shape.c's; what the encoder refuses (constant bus, offsets, modifiers) is its
 * own.
 */
#include <stdlib.h>
#include <string.h>

#include "jit/rdna/lir_verify.h"

bool rdna_verify_fail(struct check *c, const char *what)
{
	struct memfile f;
	struct rdna_lir one = *c->l;
	struct rdna_lir_ins copy = c->l->ins[c->at];
	one.ins = &copy;
	one.n_ins = 1;
	if (memfile_open(&f))
		rdna_lir_print(&one, f.out);
	char *text = memfile_take(&f, NULL);
	size_t n = text ? strcspn(text, "\n") : 0;
	error_set(c->err, ERROR_ARGUMENT, "machine instruction %zu (%.*s): %s", c->at, (int)n, text ? text : "", what);
	free(text);
	return c->ok = false;
}

/* --- definition on every path, contents of machine registers */

/* vcc_lo, vcc_hi and scc are words too, behind the registers'. */
static uint32_t special(const struct check *c, unsigned reg)
{
	switch (reg) {
	case RDNA_VCC_LO:
	case RDNA_VCC_HI: return c->n_words + reg - RDNA_VCC_LO;
	case RDNA_SCC: return c->n_words + 3;
	default: return UINT32_MAX;
	}
}

static bool is_open(const struct check *c, uint32_t word)
{
	uint32_t serial = c->open[word];
	if (serial == OUTSIDE)
		return true;
	for (unsigned k = c->depth; k-- > 0;)
		if (c->stack[k] == serial)
			return true;
	return false;
}

static void set_open(struct check *c, uint32_t word)
{
	if (!is_open(c, word))
		c->open[word] = c->depth ? c->stack[c->depth - 1] : OUTSIDE;
}

static void read_fixed(struct check *c, const struct rdna_lir_operand *o)
{
	for (unsigned k = 0; k < o->n; k++)
		if (special(c, o->reg + k) != UINT32_MAX && !is_open(c, special(c, o->reg + k)))
			rdna_verify_fail(c, "vcc or scc is read before it is written on every path");
}

static inline void read_operand(struct check *c, const struct rdna_lir_operand *o)
{
	if (o->kind == RDNA_LIR_FIXED)
		read_fixed(c, o);
	if (o->kind != RDNA_LIR_VIRTUAL || !c->ok)
		return;
	uint32_t word = c->first_word[o->reg] + o->sub;
	unsigned machine_register = c->l->reg[o->reg].phys + o->sub;
	for (unsigned k = 0; k < o->n; k++) {
		if (!is_open(c, word + k))
			rdna_verify_fail(c, "a word is read before it is written on every path");
		else if (c->l->allocated && c->holds[machine_register + k] != content(o) + k)
			rdna_verify_fail(c, "a source's machine register holds another value");
	}
}

static void write_fixed(struct check *c, const struct rdna_lir_operand *o)
{
	bool role = o->reg == RDNA_VCC_LO || o->reg == RDNA_VCC_HI || o->reg == RDNA_NULL;
	bool allocatable = (o->reg >= RDNA_ABI_FREE_SGPR && o->reg < RDNA_ABI_SGPRS) || o->reg >= RDNA_V0;
	if (!role && !allocatable)
		rdna_verify_fail(c, "a kernel may not write this register");
	for (unsigned k = 0; c->ok && k < o->n; k++) {
		if (special(c, o->reg + k) != UINT32_MAX)
			set_open(c, special(c, o->reg + k));
		c->holds[o->reg + k] = 0;
	}
}

static inline void write_operand(struct check *c, const struct rdna_lir_operand *o)
{
	if (!c->ok)
		return;
	if (o->kind == RDNA_LIR_FIXED)
		write_fixed(c, o);
	for (unsigned k = 0; o->kind == RDNA_LIR_VIRTUAL && k < o->n; k++) {
		uint32_t word = c->first_word[o->reg] + o->sub + k;
		set_open(c, word);
		if (c->l->allocated)
			c->holds[c->l->reg[o->reg].phys + o->sub + k] = content(o) + k;
	}
}

static void write_operands(struct check *c, const struct rdna_lir_ins *i)
{
	write_operand(c, &i->d[0]);
	write_operand(c, &i->d[1]);
}

static bool machine_register(const struct rdna_lir *l, const struct rdna_lir_operand *o, unsigned *reg)
{
	*reg = o->kind == RDNA_LIR_VIRTUAL ? l->reg[o->reg].phys + o->sub : o->reg;
	return o->kind == RDNA_LIR_VIRTUAL || o->kind == RDNA_LIR_FIXED;
}

static bool overlap(const struct rdna_lir *l, const struct rdna_lir_operand *a, const struct rdna_lir_operand *b)
{
	unsigned x, y;
	return machine_register(l, a, &x) && machine_register(l, b, &y) && x < y + b->n && y < x + a->n;
}

/* A pair that is read as a whole may be the one that is written: each word of it is read before. */
static bool may_be_source(const struct rdna_lir_ins *i, unsigned k)
{
	const bool product = i->op == RDNA_V_MAD_CO_U64_U32 || i->op == RDNA_V_MAD_CO_I64_I32;

	return rdna_lir_facts(i->op) & RDNA_IS_VALU && !product && i->s[k].n == i->d[0].n;
}

bool rdna_verify_check_early_clobber(struct check *c, const struct rdna_lir_ins *i)
{
	unsigned d, s;
	bool matrix = rdna_lir_facts(i->op) & RDNA_IS_WMMA;
	if (overlap(c->l, &i->d[0], &i->d[1]) && i->d[0].reg != RDNA_NULL)
		return rdna_verify_fail(c, "both destinations in one register");
	if (!rdna_lir_early_clobber(i))
		return true;
	for (unsigned k = 0; k < 4; k++) {
		if (!overlap(c->l, &i->d[0], &i->s[k]))
			continue;
		const bool same =
			machine_register(c->l, &i->d[0], &d) && machine_register(c->l, &i->s[k], &s) && d == s;
		if (!(same && (matrix ? k == 2 : may_be_source(i, k))))
			return rdna_verify_fail(c, "the destination overlaps a source that is read later");
	}
	return true;
}

static bool reads(struct check *c, const struct rdna_lir_ins *i)
{
	unsigned facts = rdna_lir_facts(i->op);
	for (unsigned k = 0; k < 4; k++)
		read_operand(c, &i->s[k]);
	read_operand(c, &i->saddr);
	if (c->ok && rdna_lir_reads_dst(i))
		read_operand(c, &i->d[0]);
	if (c->ok && facts & RDNA_READS_SCC && !is_open(c, special(c, RDNA_SCC)))
		rdna_verify_fail(c, "scc is read before it is written");
	if (c->ok && facts & RDNA_READS_VCC && !is_open(c, special(c, RDNA_VCC_LO)))
		rdna_verify_fail(c, "vcc is read before it is written on every path");
	return c->ok;
}

static bool writes(struct check *c, const struct rdna_lir_ins *i)
{
	unsigned d, s;
	bool same = i->op == RDNA_V_MOV_B32 && i->d[0].kind == RDNA_LIR_FIXED && machine_register(c->l, &i->s[0], &s) &&
	            machine_register(c->l, &i->d[0], &d) && s == d;
	if (!same)
		write_operands(c, i);
	if (c->ok && rdna_lir_facts(i->op) & RDNA_WRITES_SCC)
		set_open(c, special(c, RDNA_SCC));
	return c->ok;
}

/* --- structure */

/* At a loop's head a machine register holds for sure only what no instruction of the body replaces by something
 * else. */
static void forget_operand(struct check *c, const struct rdna_lir_operand *o)
{
	bool virtual = o->kind == RDNA_LIR_VIRTUAL;
	uint32_t *held = &c->holds[virtual ? c->l->reg[o->reg].phys + o->sub : o->reg], word = virtual ? content(o) : 0;
	for (unsigned k = 0; k < o->n; k++)
		held[k] = virtual && held[k] == word + k ? held[k] : 0;
}

static void forget(struct check *c)
{
	unsigned depth = 0;
	for (size_t k = c->at; k < c->l->n_ins; k++) {
		const struct rdna_lir_ins *i = &c->l->ins[k];
		depth += i->op == RDNA_LIR_LOOP;
		if (i->d[0].kind)
			forget_operand(c, &i->d[0]);
		if (i->d[1].kind)
			forget_operand(c, &i->d[1]);
		if (i->op == RDNA_LIR_ENDLOOP && !--depth)
			break;
	}
}

/* Where ways meet, a register holds what it holds on both. */
static void meet(uint32_t *holds, const uint32_t *other)
{
	for (unsigned k = 0; k < MACHINE; k++)
		holds[k] = holds[k] == other[k] ? holds[k] : 0;
}

static bool open_block(struct check *c, unsigned op)
{
	if (c->depth == IR_LOWERED_DEPTH)
		return rdna_verify_fail(c, "loops and ifs nested deeper than 64");
	c->stack[c->depth] = ++c->serial;
	c->opened_by[c->depth] = (uint16_t)op;
	if (c->other)
		memcpy(c->other[c->depth], c->holds, sizeof c->holds);
	c->depth++;
	if (op == RDNA_LIR_LOOP && c->l->allocated)
		forget(c);
	return true;
}

static bool second_part(struct check *c)
{
	if (!c->depth || c->opened_by[c->depth - 1] != RDNA_LIR_IF)
		return rdna_verify_fail(c, "the second part of an if that is not open");
	c->stack[c->depth - 1] = ++c->serial;
	c->opened_by[c->depth - 1] = RDNA_LIR_ELSE;
	for (unsigned k = 0; c->other && k < MACHINE; k++) {
		uint32_t first = c->holds[k];
		c->holds[k] = c->other[c->depth - 1][k];
		c->other[c->depth - 1][k] = first;
	}
	return true;
}

static bool close_block(struct check *c, bool loop)
{
	if (!c->depth || (c->opened_by[c->depth - 1] == RDNA_LIR_LOOP) != loop)
		return rdna_verify_fail(c, loop ? "end of a loop that is not open" : "end of an if that is not open");
	c->depth--;
	if (c->other)
		meet(c->holds, c->other[c->depth]);
	return true;
}

static bool leave_loop(struct check *c)
{
	unsigned d = c->depth;
	while (d && c->opened_by[d - 1] != RDNA_LIR_LOOP)
		d--;
	if (!d)
		return rdna_verify_fail(c, "a break outside of loops");
	if (c->other)
		meet(c->other[d - 1], c->holds);
	return true;
}

static bool check_structure(struct check *c)
{
	unsigned op = c->l->ins[c->at].op;
	bool ok = true;
	switch (op) {
	case RDNA_LIR_LOOP:
	case RDNA_LIR_IF: ok = open_block(c, op); break;
	case RDNA_LIR_ELSE: ok = second_part(c); break;
	case RDNA_LIR_ENDIF: ok = close_block(c, false); break;
	case RDNA_LIR_ENDLOOP: ok = close_block(c, true); break;
	case RDNA_LIR_BREAK: ok = leave_loop(c); break;
	default: return true;
	}
	c->open[special(c, RDNA_SCC)] = 0; /* counting and testing go through it */
	return ok;
}

static bool check_one(struct check *c)
{
	const struct rdna_lir_ins *i = &c->l->ins[c->at];
	bool structure = i->op >= RDNA_OP_COUNT;
	if (!rdna_verify_check_instruction(c) || !reads(c, i) || !check_structure(c))
		return false;
	if (c->l->allocated && !rdna_verify_check_early_clobber(c, i))
		return false;
	if (structure)
		write_operands(c, i);
	return structure ? c->ok : writes(c, i);
}

/* The halves of a dual instruction both read before either writes. */
static bool check_dual(struct check *c)
{
	const struct rdna_lir_ins *i = &c->l->ins[c->at];
	if (c->at + 2 >= c->l->n_ins || !c->l->allocated)
		return rdna_verify_fail(c, "a dual instruction without halves");
	for (unsigned k = 1; k <= 2; k++) {
		c->at++;
		if (i[k].op >= RDNA_OP_COUNT || !rdna_verify_check_instruction(c) || !reads(c, &i[k]))
			return c->ok && rdna_verify_fail(c, "half of a dual instruction that can be none");
	}
	if (overlap(c->l, &i[1].d[0], &i[2].d[0]))
		return rdna_verify_fail(c, "both halves of a dual instruction write one register");
	return writes(c, &i[1]) && writes(c, &i[2]);
}

static bool prepare(struct check *c)
{
	const struct rdna_lir *l = c->l;
	c->first_word = calloc(l->n_regs + 1, sizeof *c->first_word);
	for (size_t r = 0; c->first_word && r < l->n_regs; r++)
		c->first_word[r + 1] = c->first_word[r] + l->reg[r].n;
	if (!c->first_word)
		return false;
	c->n_words = c->first_word[l->n_regs];
	c->open = calloc(c->n_words + SPECIALS, sizeof *c->open);
	c->other = l->allocated ? malloc(IR_LOWERED_DEPTH * sizeof *c->other) : NULL;
	return c->open && (c->other || !l->allocated);
}

bool rdna_lir_verify(const struct rdna_lir *l, struct error *err)
{
	struct check c = { .l = l, .err = err, .ok = true, .serial = OUTSIDE };
	bool ok = !l->failed && prepare(&c);
	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for the machine instructions of a kernel");
	for (c.at = 0; ok && c.at < l->n_ins; c.at++)
		ok = l->ins[c.at].op == RDNA_LIR_DUAL ? check_dual(&c) : check_one(&c);
	if (ok && c.depth) {
		c.at--;
		ok = rdna_verify_fail(&c, "a loop or an if stays open");
	}
	free(c.first_word);
	free(c.open);
	free(c.other);
	return ok;
}
