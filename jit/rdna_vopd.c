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

enum { WINDOW = 12, TRIES = 8, NO_HALF = 4 };

struct pairing {
	struct rdna_lir *l;
	struct rdna trial;                   /* the encoder that is asked */
	uint8_t *half;                       /* by instruction: 0, or which half of a pair it has become, 1 or 2; NO_HALF: it cannot become one */
};

/* --- what can be a half */

static bool is_half(const struct rdna_lir *l, const struct rdna_lir_ins *i)
{
	struct rdna_ins x;
	if (i->op >= RDNA_OP_COUNT || !(rdna_lir_facts(i->op) & RDNA_IS_VALU) || i->dpp.kind || i->e64 || i->exec)
		return false;
	rdna_machine_ins(l, i, &x);
	return rdna_dual_opcode(x.op, l->gen, NULL) >= 0;
}

/* What the encoder refuses as it stands it may take with the sources the other way round. */
static bool commutes(unsigned op)
{
	return op == RDNA_V_FMAC_F32 || op == RDNA_V_FMA_F32 || op == RDNA_V_MUL_F32 || op == RDNA_V_ADD_F32 || op == RDNA_V_ADD_NC_U32 || op == RDNA_V_AND_B32;
}

/* An instruction and, if that makes a difference, the same the other way round. */
struct forms { struct rdna_lir_ins lir[2]; struct rdna_ins machine[2]; unsigned n; };

static void find_forms(const struct rdna_lir *l, const struct rdna_lir_ins *i, struct forms *f)
{
	f->n = 1;
	f->lir[0] = *i;
	rdna_machine_ins(l, i, &f->machine[0]);
	if (!commutes(i->op))
		return;
	f->lir[1] = *i;
	f->lir[1].s[0] = i->s[1];
	f->lir[1].s[1] = i->s[0];
	rdna_machine_ins(l, &f->lir[1], &f->machine[1]);
	f->n += memcmp(&f->machine[0], &f->machine[1], sizeof f->machine[0]) != 0;
}

static bool one_bank(const struct rdna_operand *a, const struct rdna_operand *b)
{
	return a->kind == RDNA_REG && b->kind == RDNA_REG && a->reg >= RDNA_V0 && b->reg >= RDNA_V0 && (a->reg ^ b->reg) % 4 == 0;
}

/* Where descriptions of the hardware differ, the stricter one holds: sources 0 lie in different banks also of two moves on gfx12, which the encoder lets pass, and
 * the addend of fmamk, whose field is that of source 1, counts as source 1 as well as as source 2. */
static bool doubtful(const struct rdna_ins *a, const struct rdna_ins *b)
{
	return one_bank(&a->s[0], &b->s[0]) || one_bank(&a->s[a->op == RDNA_V_FMAMK_F32 ? 2 : 1], &b->s[b->op == RDNA_V_FMAMK_F32 ? 2 : 1]);
}

static bool encodes(struct pairing *p, const struct rdna_ins *x, const struct rdna_ins *y)
{
	if (doubtful(x, y))
		return false;
	p->trial.size = 0;
	p->trial.error = NULL;
	rdna_put_dual(&p->trial, x, y);
	return !p->trial.error;
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

/* Whether a and b may not change places. */
static bool depend(const struct rdna_lir *l, const struct rdna_lir_ins *a, const struct rdna_lir_ins *b)
{
	struct rdna_touch ta, tb;
	unsigned fa = rdna_lir_facts(a->op), fb = rdna_lir_facts(b->op);
	rdna_machine_touch(l, a, &ta);
	rdna_machine_touch(l, b, &tb);
	for (unsigned k = 0; k < ta.n_writes; k++)
		if (rdna_touch_reads(&tb, ta.writes[k]) || rdna_touch_writes(&tb, ta.writes[k]))
			return true;
	for (unsigned k = 0; k < tb.n_writes; k++)
		if (rdna_touch_reads(&ta, tb.writes[k]))
			return true;
	return vcc_between(fa, fb) || implied_vcc(&tb, fa) || implied_vcc(&ta, fb);
}

/* Whether the second reads or writes what the first makes. */
static bool feeds(const struct rdna_lir *l, const struct rdna_lir_ins *first, const struct rdna_lir_ins *second)
{
	struct rdna_touch a, b;
	rdna_machine_touch(l, first, &a);
	rdna_machine_touch(l, second, &b);
	return rdna_touch_reads(&b, a.writes[0]) || rdna_touch_writes(&b, a.writes[0]);
}

static bool movable_over(const struct rdna_lir_ins *i)
{
	return i->op < RDNA_OP_COUNT && !(rdna_lir_facts(i->op) & (RDNA_IS_FIXED | RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS));
}

/* --- the search */

/* Finds an order and a way round that the encoder takes. The pair means the same when its halves are read one after the other. */
static bool fits(struct pairing *p, const struct rdna_lir_ins *a, const struct rdna_lir_ins *b, struct rdna_lir_ins *x, struct rdna_lir_ins *y)
{
	struct forms fa, fb;
	/* One result goes to an even register and one to an odd one, whichever way round. */
	if ((rdna_machine_range(p->l, &a->d[0]).reg ^ rdna_machine_range(p->l, &b->d[0]).reg) % 2 == 0 || feeds(p->l, a, b))
		return false;
	bool swaps = !feeds(p->l, b, a);
	find_forms(p->l, a, &fa);
	find_forms(p->l, b, &fb);
	for (unsigned k = 0; k < TRIES; k++) {
		unsigned ia = k >> 1 & 1, ib = k & 1;
		if (ia >= fa.n || ib >= fb.n || (k & 4 && !swaps))
			continue;
		*x = k & 4 ? fb.lir[ib] : fa.lir[ia];
		*y = k & 4 ? fa.lir[ia] : fb.lir[ib];
		if (k & 4 ? encodes(p, &fb.machine[ib], &fa.machine[ia]) : encodes(p, &fa.machine[ia], &fb.machine[ib]))
			return true;
	}
	return false;
}

enum way { NO_WAY, DOWN, UP };

static enum way way_between(const struct rdna_lir_ins *ins, const struct rdna_lir *l, size_t a, size_t b)
{
	bool down = true, up = true;
	for (size_t k = a + 1; k < b && (down || up); k++) {
		down = down && !depend(l, &ins[a], &ins[k]);
		up = up && !depend(l, &ins[k], &ins[b]);
	}
	return down ? DOWN : up ? UP : NO_WAY;
}

/* Puts a pair where one of its halves stood, and closes the gap that the other leaves. */
static void put_pair(struct pairing *p, size_t a, size_t b, enum way w, const struct rdna_lir_ins *x, const struct rdna_lir_ins *y)
{
	struct rdna_lir_ins *ins = p->l->ins;
	size_t at = w == DOWN ? b - 1 : a, from = a + 1, n = b - a - 1, to = w == DOWN ? a : a + 2;
	memmove(&ins[to], &ins[from], n * sizeof *ins);
	memmove(&p->half[to], &p->half[from], n);
	ins[at] = *x;
	ins[at + 1] = *y;
	p->half[at] = 1;
	p->half[at + 1] = 2;
}

/* True: instruction a is in a pair, and something else may stand in its place. */
static bool pair_from(struct pairing *p, size_t a)
{
	const struct rdna_lir *l = p->l;
	if (p->half[a])
		return false;
	for (size_t b = a + 1; b < l->n_ins && b <= a + WINDOW && movable_over(&l->ins[b]); b++) {
		struct rdna_lir_ins x, y;
		enum way w = NO_WAY;
		if (!p->half[b] && fits(p, &l->ins[a], &l->ins[b], &x, &y))
			w = way_between(l->ins, l, a, b);
		if (w != NO_WAY) {
			put_pair(p, a, b, w, &x, &y);
			return true;
		}
	}
	return false;
}

/* --- the pass */

bool rdna_vopd(struct rdna_lir *l, struct error *err)
{
	struct pairing p = { .l = l };
	struct rdna_patch marks = {0};
	if (l->gen == RDNA_GFX10_3 || !l->n_ins)
		return true;
	p.half = calloc(l->n_ins, 1);
	if (!p.half)
		return error_set(err, ERROR_MEMORY, "no memory to look at a kernel of %zu instructions", l->n_ins);
	rdna_init(&p.trial, l->gen);
	for (size_t at = 0; at < l->n_ins; at++)
		p.half[at] = is_half(l, &l->ins[at]) ? 0 : NO_HALF;
	for (size_t a = 0; a < l->n_ins;)
		a += !pair_from(&p, a);
	for (size_t at = 0; at < l->n_ins; at++)
		if (p.half[at] == 1) {
			struct rdna_lir_ins mark = { .op = RDNA_LIR_DUAL, .ir = l->ins[at].ir };
			rdna_patch_add(&marks, at, &mark);
		}
	p.trial.error = NULL;
	rdna_free(&p.trial);
	free(p.half);
	return rdna_patch_apply(l, &marks, err);
}
