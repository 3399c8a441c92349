/* jit/rdna_vopd.c - pairs of vector instructions into dual ones (gfx11 and later, 32 lanes).
 *
 * Owns: the search for partners and the proof that moving one to the other changes nothing. What may be a pair (banks, parity, scalar values) is the encoder's to say:
 * it is asked. Rule for editors: a half only ever moves over instructions that neither read nor write what it writes, nor write what it reads; both halves read
 * before either writes, so the first must not make what the second reads.
 *
 * The later instruction moves up to the earlier one, or the earlier down: the latter first, as it can only relax what has to be waited for. Nothing moves
 * over memory instructions, whose place the scheduler chose, nor over anything of fixed order.
 */
#include "jit/rdna_machine.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 12, TRIES = 8 };

/* What the search asks of an instruction again and again. Filled once; pairing moves numbers of instructions, not instructions. */
struct candidate {
	bool movable;                        /* others may move over it */
	bool may;                            /* be a half */
	uint8_t half;                        /* 0, or which half of a pair it has become, 1 or 2 */
	uint8_t forms, form;                 /* ways round looked at and to be had, 0: the second is not looked at yet; the one taken */
	bool odd;                            /* the number of its result's register */
	uint16_t facts;
	uint64_t reads, writes;              /* rdna_range_bits */
	struct rdna_touch touch;
	struct rdna_half as[2];
	bool is_fmamk[2];
};

struct pairing {
	struct rdna_lir *l;
	struct candidate *c;                 /* by instruction, as they came */
	uint32_t *order;                     /* their numbers as they are now */
};

/* --- what can be a half */

/* What the encoder refuses as it stands it may take with the sources the other way round. */
static bool commutes(unsigned op)
{
	return op == RDNA_V_FMAC_F32 || op == RDNA_V_FMA_F32 || op == RDNA_V_MUL_F32 || op == RDNA_V_ADD_F32 || op == RDNA_V_ADD_NC_U32 || op == RDNA_V_AND_B32;
}

static void turn(struct rdna_lir_ins *i)
{
	struct rdna_lir_operand t = i->s[0];
	i->s[0] = i->s[1];
	i->s[1] = t;
}

/* Instruction c's half number `form`: as it is, or, where that makes a difference, the other way round. False: there is no such. */
static bool has_form(const struct rdna_lir *l, const struct rdna_lir_ins *i, struct candidate *c, unsigned form)
{
	if (!form || c->forms)
		return !form || c->forms > 1;
	struct rdna_lir_ins turned = *i;
	struct rdna_ins x, y;
	c->forms = 1;
	if (!commutes(i->op))
		return false;
	turn(&turned);
	rdna_machine_ins(l, i, &x);
	rdna_machine_ins(l, &turned, &y);
	if (memcmp(&x, &y, sizeof x) == 0)
		return false;
	rdna_half_of(&c->as[1], l->gen, &y);
	c->is_fmamk[1] = y.op == RDNA_V_FMAMK_F32;
	c->forms = 2;
	return true;
}

static void look_at(const struct rdna_lir *l, const struct rdna_lir_ins *i, struct candidate *c)
{
	struct rdna_ins x;
	unsigned facts = rdna_lir_facts(i->op);
	c->reads = c->writes = 0;
	c->half = c->forms = c->form = 0;
	c->facts = (uint16_t)facts;
	c->may = false;
	c->movable = i->op < RDNA_OP_COUNT && !(facts & (RDNA_IS_FIXED | RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS));
	if (!c->movable)
		return;
	rdna_machine_touch(l, i, &c->touch);
	for (unsigned k = 0; k < c->touch.n_reads; k++)
		c->reads |= rdna_range_bits(c->touch.reads[k]);
	for (unsigned k = 0; k < c->touch.n_writes; k++)
		c->writes |= rdna_range_bits(c->touch.writes[k]);
	if (!(facts & RDNA_IS_VALU) || i->dpp.kind || i->e64 || i->exec)
		return;
	rdna_machine_ins(l, i, &x);
	c->may = rdna_dual_opcode(x.op, l->gen, NULL) >= 0;
	if (c->may)
		rdna_half_of(&c->as[0], l->gen, &x);
	c->is_fmamk[0] = x.op == RDNA_V_FMAMK_F32;
	c->odd = c->touch.writes[0].reg % 2;
}

static bool one_bank(unsigned a, unsigned b) { return a && b && (a ^ b) % 4 == 0; }

/* Where descriptions of the hardware differ, the stricter one holds: sources 0 lie in different banks also of two moves on gfx12, which the encoder lets pass, and
 * the addend of fmamk, whose field is that of source 1, counts as source 1 as well as as source 2. */
static bool doubtful(const struct candidate *a, unsigned ia, const struct candidate *b, unsigned ib)
{
	const struct rdna_half *x = &a->as[ia], *y = &b->as[ib];
	return one_bank(x->vgpr[0], y->vgpr[0]) || one_bank(x->vgpr[a->is_fmamk[ia] ? 2 : 1], y->vgpr[b->is_fmamk[ib] ? 2 : 1]);
}

/* --- dependencies */

static bool vcc_between(unsigned a, unsigned b)
{
	return (a & RDNA_WRITES_VCC && b & (RDNA_READS_VCC | RDNA_WRITES_VCC)) || (a & RDNA_READS_VCC && b & RDNA_WRITES_VCC);
}

static bool implied_vcc(const struct rdna_touch *t, unsigned facts)
{
	const struct rdna_range vcc = { RDNA_VCC_LO, 2 };
	return (facts & RDNA_WRITES_VCC && rdna_touch_reads(t, vcc)) || (facts & (RDNA_READS_VCC | RDNA_WRITES_VCC) && rdna_touch_writes(t, vcc));
}

static bool makes_what(const struct candidate *a, const struct candidate *b)
{
	for (unsigned k = 0; k < a->touch.n_writes; k++)
		if (rdna_touch_reads(&b->touch, a->touch.writes[k]))
			return true;
	return false;
}

/* Whether a and b may not change places. */
static bool depend(const struct candidate *a, const struct candidate *b)
{
	bool vcc = (a->facts | b->facts) & (RDNA_READS_VCC | RDNA_WRITES_VCC);
	if (!vcc && !(a->writes & (b->reads | b->writes)) && !(b->writes & a->reads))
		return false;
	if (makes_what(a, b) || makes_what(b, a))
		return true;
	for (unsigned k = 0; k < a->touch.n_writes; k++)
		if (rdna_touch_writes(&b->touch, a->touch.writes[k]))
			return true;
	return vcc_between(a->facts, b->facts) || implied_vcc(&b->touch, a->facts) || implied_vcc(&a->touch, b->facts);
}

/* Whether the second reads or writes what the first makes. */
static bool feeds(const struct candidate *first, const struct candidate *second)
{
	const struct rdna_touch *a = &first->touch, *b = &second->touch;
	return first->writes & (second->reads | second->writes) && (rdna_touch_reads(b, a->writes[0]) || rdna_touch_writes(b, a->writes[0]));
}

/* --- the search */

/* Finds an order and a way round that the encoder takes. The pair means the same when its halves are read one after the other. */
static bool fits(struct pairing *p, uint32_t na, uint32_t nb, bool *b_first)
{
	struct candidate *a = &p->c[na], *b = &p->c[nb];
	/* One result goes to an even register and one to an odd one, whichever way round. */
	if (a->odd == b->odd || feeds(a, b))
		return false;
	bool swaps = !feeds(b, a);
	for (unsigned k = 0; k < TRIES; k++) {
		unsigned ia = k >> 1 & 1, ib = k & 1;
		if ((k & 4 && !swaps) || !has_form(p->l, &p->l->ins[na], a, ia) || !has_form(p->l, &p->l->ins[nb], b, ib) || doubtful(a, ia, b, ib))
			continue;
		if (k & 4 ? rdna_halves_refused(&b->as[ib], &a->as[ia]) : rdna_halves_refused(&a->as[ia], &b->as[ib]))
			continue;
		a->form = (uint8_t)ia;
		b->form = (uint8_t)ib;
		*b_first = k & 4;
		return true;
	}
	return false;
}

enum way { NO_WAY, DOWN, UP };

static enum way way_between(const struct pairing *p, size_t a, size_t b)
{
	const struct candidate *ca = &p->c[p->order[a]], *cb = &p->c[p->order[b]];
	bool down = true, up = true;
	for (size_t k = a + 1; k < b && (down || up); k++) {
		down = down && !depend(ca, &p->c[p->order[k]]);
		up = up && !depend(&p->c[p->order[k]], cb);
	}
	return down ? DOWN : up ? UP : NO_WAY;
}

/* Puts a pair where one of its halves stood, and closes the gap that the other leaves. */
static void put_pair(struct pairing *p, size_t a, size_t b, enum way w, bool b_first)
{
	uint32_t *order = p->order, x = order[b_first ? b : a], y = order[b_first ? a : b];
	size_t at = w == DOWN ? b - 1 : a, from = a + 1, n = b - a - 1, to = w == DOWN ? a : a + 2;
	memmove(&order[to], &order[from], n * sizeof *order);
	order[at] = x;
	order[at + 1] = y;
	p->c[x].half = 1;
	p->c[y].half = 2;
}

/* True: instruction a is in a pair, and something else may stand in its place. */
static bool pair_from(struct pairing *p, size_t a)
{
	uint32_t na = p->order[a];
	bool b_first;
	if (p->c[na].half || !p->c[na].may)
		return false;
	for (size_t b = a + 1; b < p->l->n_ins && b <= a + WINDOW && p->c[p->order[b]].movable; b++) {
		const struct candidate *cb = &p->c[p->order[b]];
		enum way w = NO_WAY;
		if (!cb->half && cb->may && fits(p, na, p->order[b], &b_first))
			w = way_between(p, a, b);
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
	struct rdna_lir_ins *ins = malloc((l->n_ins + pairs) * sizeof *ins);
	size_t to = 0;
	if (!ins)
		return false;
	for (size_t at = 0; at < l->n_ins; at++) {
		const struct candidate *c = &p->c[p->order[at]];
		const struct rdna_lir_ins *i = &l->ins[p->order[at]];
		if (c->half == 1)
			ins[to++] = (struct rdna_lir_ins){ .op = RDNA_LIR_DUAL, .ir = i->ir };
		ins[to] = *i;
		if (c->half && c->form)
			turn(&ins[to]);
		to++;
	}
	free(l->ins);
	l->ins = ins;
	l->n_ins = l->ins_capacity = to;
	return true;
}

bool rdna_vopd(struct rdna_lir *l, struct error *err)
{
	struct pairing p = { .l = l };
	size_t pairs = 0;
	if (l->gen == RDNA_GFX10_3 || !l->n_ins)
		return true;
	p.c = malloc(l->n_ins * sizeof *p.c);
	p.order = malloc(l->n_ins * sizeof *p.order);
	bool ok = p.c && p.order;
	for (uint32_t at = 0; ok && at < l->n_ins; at++) {
		look_at(l, &l->ins[at], &p.c[at]);
		p.order[at] = at;
	}
	for (size_t a = 0; ok && a < l->n_ins;) {
		bool paired = pair_from(&p, a);
		pairs += paired;
		a += !paired;
	}
	ok = ok && (!pairs || rewrite(&p, pairs));
	free(p.c);
	free(p.order);
	return ok || error_set(err, ERROR_MEMORY, "no memory to look at a kernel of %zu instructions", l->n_ins);
}
