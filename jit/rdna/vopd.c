/* jit/rdna/vopd.c - pairs of vector instructions into dual ones (gfx11 and later, 32 lanes).
 *
 * Owns: the search for partners and the proof that moving one to the other changes nothing. What may be a pair (banks,
 * parity, scalar values) is the encoder's to say: it is asked. Rule for editors: a half only ever moves over
 * instructions that neither read nor write what it writes, nor write what it reads; both halves read before either
 * writes, so the first must not make what the second reads.
 *
 * The later instruction moves up to the earlier one, or the earlier down: the latter first, as it can only relax what
 * has to be waited for. Nothing moves over memory instructions, whose position the scheduler chose, nor over anything
 * of fixed order.
 */
#include "jit/rdna/machine.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 12, FORMS = 2 };

/* What the search asks of an instruction again and again. Filled once; pairing moves numbers of instructions, not
 * instructions. */
struct candidate {
	uint16_t banks[FORMS]; /* by way round: what no partner may share with it, banks_of */
	bool known;            /* its registers are */
	uint8_t half;          /* 0, or which half of a pair it has become, 1 or 2 */
	uint8_t forms, form;   /* ways round there are, the second with sources 0 and 1 exchanged; the one taken */
};

/* vcc that is not named is there, too. */
struct registers {
	struct rdna_map reads, writes;
};

/* An instruction's number, and below it what the search looks for: others may move over it; it may yet become a half;
 * its result's register has an odd number. */
enum { MOVABLE = 1, MAY = 2, ODD = 4, NUMBER_SHIFT = 3 };

struct pairing {
	struct rdna_lir *l;
	struct candidate *c;    /* by instruction, as they came */
	struct rdna_half *as;   /* by instruction: what the encoder makes of a candidate as it stands */
	struct registers *regs; /* by instruction: of those that another moves over, or may */
	uint32_t *order;        /* the instructions as they are now */
};

static uint32_t number(const struct pairing *p, size_t at) { return p->order[at] >> NUMBER_SHIFT; }

/* --- what can be a half */

/* What the encoder refuses as it stands it may take with the sources the other way round. */
static bool commutes(unsigned op)
{
	return op == RDNA_V_FMAC_F32 || op == RDNA_V_MUL_F32 || op == RDNA_V_ADD_F32 || op == RDNA_V_ADD_NC_U32 ||
	       op == RDNA_V_AND_B32;
}

static void swap(struct rdna_lir_ins *i)
{
	struct rdna_lir_operand t = i->s[0];
	i->s[0] = i->s[1];
	i->s[1] = t;
}

/* The ways round. Where one source is no vector register the short form has but one. */
static unsigned forms_of(unsigned op, const struct rdna_half *h)
{
	return commutes(op) && h->vgpr[0] && h->vgpr[1] && h->vgpr[0] != h->vgpr[1] ? 2 : 1;
}

/* Instruction n as a half, that way round. */
static const struct rdna_half *half_as(const struct pairing *p, uint32_t n, unsigned form, struct rdna_half *swapped)
{
	const struct rdna_half *h = &p->as[n];
	if (!form)
		return h;
	*swapped = *h;
	swapped->vgpr[0] = h->vgpr[1];
	swapped->vgpr[1] = h->vgpr[0];
	return swapped;
}

static unsigned bank(unsigned reg, unsigned of) { return reg ? 1u << reg % of : 0; }

/* A bit for each bank that a half reads by each of its ways: two halves with a bit in common are no pair. Where
 * descriptions of the hardware differ, the stricter one
 * holds: sources 0 lie in different banks also of two moves on gfx12, which the encoder lets pass, and the addend of
 * fmamk, whose field is that of source 1, counts as source 1 as well as as source 2. */
static uint16_t banks_of(const struct rdna_half *h, bool fmamk)
{
	return (uint16_t)(bank(h->vgpr[0], 4) | bank(h->vgpr[fmamk ? 2 : 1], 4) << 4 | bank(h->vgpr[1], 4) << 8 |
	                  bank(h->vgpr[2], 2) << 12);
}

/* As the instruction stands, and the other way round. */
static void find_half(struct pairing *p, uint32_t n)
{
	const struct rdna_lir_ins *i = &p->l->ins[n];
	struct candidate *c = &p->c[n];
	struct rdna_half swapped;
	rdna_machine_half(p->l->gen, i, &p->as[n]);
	c->forms = (uint8_t)forms_of(i->op, &p->as[n]);
	for (unsigned k = 0; k < c->forms; k++)
		c->banks[k] = banks_of(half_as(p, n, k, &swapped), i->op == RDNA_V_FMAMK_F32);
}

/* Returns what the search looks for. */
static uint32_t look_at(struct pairing *p, uint32_t n)
{
	const struct rdna_lir_ins *i = &p->l->ins[n];
	struct candidate *c = &p->c[n];
	unsigned facts = rdna_lir_facts(i->op);
	c->half = c->form = 0;
	c->known = false;
	if (facts & (RDNA_IS_FIXED | RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS))
		return 0;
	if (!(facts & RDNA_IS_VALU) || i->dpp.kind || i->e64 || i->exec || !rdna_dual_rows[i->op])
		return MOVABLE;
	find_half(p, n);
	return MOVABLE | (p->as[n].error ? 0 : MAY) | (p->as[n].dst % 2 ? ODD : 0);
}

/* --- dependencies */

static void find_registers(const struct rdna_lir_ins *i, struct registers *r)
{
	const struct rdna_range vcc = { RDNA_VCC_LO, 2 };
	static const struct registers none;
	unsigned facts = rdna_lir_facts(i->op);
	*r = none;
	rdna_map_add_sources(&r->reads, i);
	rdna_map_add_results(&r->writes, i);
	if (rdna_lir_reads_dst(i))
		rdna_map_add_operand(&r->reads, &i->d[0]);
	if (facts & RDNA_READS_VCC)
		rdna_map_add(&r->reads, vcc);
	if (facts & RDNA_WRITES_VCC)
		rdna_map_add(&r->writes, vcc);
}

static const struct registers *registers_of(struct pairing *p, uint32_t n)
{
	if (!p->c[n].known)
		find_registers(&p->l->ins[n], &p->regs[n]);
	p->c[n].known = true;
	return &p->regs[n];
}

/* Whether the second half reads what the first makes. One does not write what the other does: their results' numbers
 * are an odd and an even one. */
static bool feeds(const struct rdna_half *first, const struct rdna_half *second)
{
	return first->dst == second->vgpr[0] || first->dst == second->vgpr[1] || first->dst == second->vgpr[2];
}

/* Whether half n, whose result is all it writes, and another instruction may not be exchanged. */
static bool depend(struct pairing *p, uint32_t n, uint32_t other)
{
	const struct registers *half = registers_of(p, n), *with = registers_of(p, other);
	unsigned dst = p->as[n].dst;
	return (with->reads.w[dst / 64] | with->writes.w[dst / 64]) >> dst % 64 & 1 ||
	       rdna_map_meets(&with->writes, &half->reads);
}

/* --- the search */

/* The next ways round, from number *k on, whose banks differ: that of a in bit 1 and that of b in bit 0. */
static bool next_ways(const struct candidate *a, const struct candidate *b, unsigned *k)
{
	for (; *k < FORMS * FORMS; ++*k)
		if (*k >> 1 < a->forms && (*k & 1) < b->forms && !(a->banks[*k >> 1] & b->banks[*k & 1]))
			return true;
	return false;
}

/* Finds an order and a way round that the encoder takes. The pair means the same when its halves are read one after the
 * other. */
static bool fits(struct pairing *p, uint32_t na, uint32_t nb, bool *b_first)
{
	struct candidate *a = &p->c[na], *b = &p->c[nb];
	struct rdna_half swapped[2];
	unsigned k = 0;
	if (!next_ways(a, b, &k) || feeds(&p->as[na], &p->as[nb]))
		return false;
	*b_first = p->as[na].second_only;
	if (*b_first && (p->as[nb].second_only || feeds(&p->as[nb], &p->as[na])))
		return false;
	for (; next_ways(a, b, &k); k++) {
		const struct rdna_half *x = half_as(p, na, k >> 1, &swapped[0]),
				       *y = half_as(p, nb, k & 1, &swapped[1]);
		if (*b_first ? rdna_halves_refused(y, x) : rdna_halves_refused(x, y))
			continue;
		a->form = (uint8_t)(k >> 1);
		b->form = (uint8_t)(k & 1);
		return true;
	}
	return false;
}

enum way { NO_WAY, DOWN, UP };

static enum way way_between(struct pairing *p, size_t a, size_t b)
{
	bool down = true, up = true;
	for (size_t k = a + 1; k < b && (down || up); k++) {
		down = down && !depend(p, number(p, a), number(p, k));
		up = up && !depend(p, number(p, b), number(p, k));
	}
	return down ? DOWN : up ? UP : NO_WAY;
}

/* Puts a pair where one of its halves stood, and closes the gap that the other leaves. */
static void put_pair(struct pairing *p, size_t a, size_t b, enum way w, bool b_first)
{
	uint32_t *order = p->order, x = order[b_first ? b : a] & ~(uint32_t)MAY,
		 y = order[b_first ? a : b] & ~(uint32_t)MAY;
	size_t at = w == DOWN ? b - 1 : a, from = a + 1, n = b - a - 1, to = w == DOWN ? a : a + 2;
	memmove(&order[to], &order[from], n * sizeof *order);
	order[at] = x;
	order[at + 1] = y;
	p->c[x >> NUMBER_SHIFT].half = 1;
	p->c[y >> NUMBER_SHIFT].half = 2;
}

/* True: instruction a is in a pair, and something else may stand in its place. */
static bool pair_from(struct pairing *p, size_t a)
{
	uint32_t first = p->order[a],
		 partner = MAY |
	                   (~first &
	                    ODD); /* one result goes to an even register and one to an odd one, whichever way round */
	size_t end = a + WINDOW < p->l->n_ins ? a + WINDOW + 1 : p->l->n_ins;
	bool b_first;
	if (!(first & MAY))
		return false;
	for (size_t b = a + 1; b < end && p->order[b] & MOVABLE; b++) {
		if ((p->order[b] & (MAY | ODD)) != partner || !fits(p, first >> NUMBER_SHIFT, number(p, b), &b_first))
			continue;
		enum way w = way_between(p, a, b);
		if (w != NO_WAY) {
			put_pair(p, a, b, w, b_first);
			return true;
		}
	}
	return false;
}

/* --- the pass */

/* The instructions as they are now, each pair behind a mark. */
static bool rewrite(const struct pairing *p, size_t pairs)
{
	struct rdna_lir *l = p->l;
	size_t to = 0, capacity = l->n_ins + pairs + l->n_ins / 2 + 64; /* what waits and hints will add fits as well */
	struct rdna_lir_ins *ins = malloc(capacity * sizeof *ins);
	if (!ins)
		return false;
	for (size_t at = 0; at < l->n_ins; at++) {
		const struct candidate *c = &p->c[number(p, at)];
		const struct rdna_lir_ins *i = &l->ins[number(p, at)];
		if (c->half == 1)
			ins[to++] = (struct rdna_lir_ins){ .op = RDNA_LIR_DUAL, .ir = i->ir };
		ins[to] = *i;
		if (c->half && c->form)
			swap(&ins[to]);
		to++;
	}
	free(l->ins);
	l->ins = ins;
	l->n_ins = to;
	l->ins_capacity = capacity;
	return true;
}

bool rdna_vopd(struct rdna_lir *l, struct error *err)
{
	struct pairing p = { .l = l };
	size_t pairs = 0;
	if (l->gen == RDNA_GFX10_3 || !l->n_ins)
		return true;
	p.c = malloc(l->n_ins * sizeof *p.c);
	p.as = malloc(l->n_ins * sizeof *p.as);
	p.regs = malloc(l->n_ins * sizeof *p.regs);
	p.order = malloc(l->n_ins * sizeof *p.order);
	bool ok = p.c && p.as && p.regs && p.order;
	for (uint32_t at = 0; ok && at < l->n_ins; at++)
		p.order[at] = at << NUMBER_SHIFT | look_at(&p, at);
	for (size_t a = 0; ok && a < l->n_ins;) {
		bool paired = pair_from(&p, a);
		pairs += paired;
		a += !paired;
	}
	ok = ok && (!pairs || rewrite(&p, pairs));
	free(p.c);
	free(p.as);
	free(p.regs);
	free(p.order);
	return ok || error_set(err, ERROR_MEMORY, "no memory to look at a kernel of %zu instructions", l->n_ins);
}
