/* jit/rdna/hints.c - what is announced to the hardware: clauses of loads, and delays (s_delay_alu).
 *
 * Neither is needed for results: a clause keeps loads of one kind together, and a delay lets the hardware switch to
 * another wave while operands are on their way.
 */
#include "jit/rdna/hazard.h"

/* --- clauses: loads of one kind in a row, announced, so that the hardware does not switch to another wave between
 * them */

static unsigned clause_kind(const struct rdna_lir_ins *i)
{
	unsigned facts = i->op < RDNA_OP_COUNT ? rdna_lir_facts(i->op) : 0;
	if (!i->d[0].kind || facts & RDNA_IS_STORE || i->s[3].kind)
		return 0;
	return facts & RDNA_IS_SMEM ? RDNA_IS_SMEM : facts & RDNA_IS_VMEM ? RDNA_IS_VMEM : 0;
}

/* How many from instruction `at` on are one; 1: none is. */
static size_t clause_at(const struct rdna_lir *l, size_t at)
{
	size_t n = 1, max_of = l->gen == RDNA_GFX10_3 ? 63 : 32;
	unsigned kind = clause_kind(&l->ins[at]);
	while (kind && n < max_of && at + n < l->n_ins && clause_kind(&l->ins[at + n]) == kind &&
	       l->ins[at + n].exec == l->ins[at].exec)
		n++;
	return n;
}

/* --- delays: how long ago a vector instruction's operands were begun, so that the hardware switches to another wave at
 * once */

/* Who made a register: a kind in the lower bits, above them that kind's count when it was issued. Long ago is whatever
 * is further back than its kind's reach. */
enum {
	LONG_AGO,
	BY_VECTOR,
	BY_TRANS,
	BY_SCALAR,
	MAKERS,
	MAKER_BITS = 2, /* that hold one of them */
	DELAY_SKIP = 5  /* the most instructions between the two that one s_delay_alu is for */
};
static const uint8_t reach[MAKERS] = { [BY_VECTOR] = 4, [BY_TRANS] = 3, [BY_SCALAR] = 1 };
static const uint8_t nearest[MAKERS] = { RDNA_DELAY_NONE, RDNA_DELAY_VALU_1, RDNA_DELAY_TRANS_1, RDNA_DELAY_SALU_1 };
struct delays {
	uint32_t maker[RDNA_MACHINE_REGS];
	uint32_t count[MAKERS]; /* vector instructions, transcendental ones among them, all instructions */
	size_t open;            /* the patch whose second half is free */
	uint32_t open_any;
	unsigned first, second; /* the two nearest of what the instruction looked at waits for */
};

/* Keeps the two nearest. */
static void wait_for_maker(struct delays *d, unsigned id)
{
	if (id == d->first || id == d->second)
		return;
	if (!d->first || id < d->first) {
		d->second = d->first;
		d->first = id;
	} else if (!d->second || id < d->second) {
		d->second = id;
	}
}

static inline void wait_for(struct delays *d, const struct rdna_lir_operand *o)
{
	if (!rdna_is_register(o))
		return;
	for (const uint32_t *maker = &d->maker[o->reg], *end = maker + o->n; maker < end; maker++) {
		uint32_t by = *maker & (MAKERS - 1), back = d->count[by] - (*maker >> MAKER_BITS);
		if (back < reach[by])
			wait_for_maker(d, nearest[by] + back);
	}
}

static void wait_for_sources(struct delays *d, const struct rdna_lir_ins *i)
{
	wait_for(d, &i->s[0]);
	wait_for(d, &i->s[1]);
	wait_for(d, &i->s[2]);
	wait_for(d, &i->s[3]);
	if (rdna_lir_reads_dst(i))
		wait_for(d, &i->d[0]);
}

static void issue(struct delays *d, unsigned facts)
{
	d->count[BY_SCALAR]++;
	d->count[BY_VECTOR] += is_vector(facts);
	d->count[BY_TRANS] += (facts & RDNA_IS_TRANS) != 0;
}

static inline void make(struct delays *d, const struct rdna_lir_operand *o, uint32_t maker)
{
	for (unsigned k = 0; rdna_is_register(o) && k < o->n; k++)
		d->maker[o->reg + k] = maker;
}

static void make_results(struct delays *d, const struct rdna_lir_ins *i, unsigned facts)
{
	unsigned by = facts & RDNA_IS_TRANS  ? BY_TRANS
	              : is_vector(facts)     ? BY_VECTOR
	              : facts & RDNA_IS_SALU ? BY_SCALAR
	                                     : LONG_AGO;
	uint32_t maker = d->count[by] << MAKER_BITS | by;
	make(d, &i->d[0], maker);
	make(d, &i->d[1], maker);
}

/* All makers are of long ago. */
static void forget(struct delays *d)
{
	for (unsigned k = 0; k < MAKERS; k++)
		d->count[k] += reach[k];
	d->open = SIZE_MAX;
}

static void delay(struct delays *d, struct rdna_patch *p, size_t at)
{
	uint32_t skip = d->count[BY_SCALAR] - d->open_any;
	if (d->open != SIZE_MAX && skip && skip <= DELAY_SKIP && !d->second && !p->failed) {
		p->ins[d->open].s[0].value |= RDNA_DELAY(0, skip, d->first);
		d->open = SIZE_MAX;
		return;
	}
	d->open = d->second ? SIZE_MAX : p->n;
	d->open_any = d->count[BY_SCALAR];
	rdna_patch_op(p, at, RDNA_S_DELAY_ALU, (uint32_t)RDNA_DELAY(d->first, 0, d->second));
}

/* An instruction, or two halves, from i on; what is put in front has been counted. */
static void look_at(struct delays *d, struct rdna_patch *p, size_t at, const struct rdna_lir_ins *i, unsigned n,
                    unsigned facts)
{
	if (i->exec || i->s[3].kind) /* rdna_emit puts more in front of it */
		d->open = SIZE_MAX;
	d->first = d->second = RDNA_DELAY_NONE;
	for (unsigned k = 0; is_vector(facts) && k < n; k++)
		wait_for_sources(d, &i[k]);
	if (d->first)
		delay(d, p, at);
	issue(d, facts);
	for (unsigned k = 0; k < n; k++)
		make_results(d, &i[k], facts);
}

bool rdna_hints(struct rdna_lir *l, bool clauses, bool with_delays, struct error *err)
{
	struct delays d = { .open = SIZE_MAX };
	struct rdna_patch p = { 0 };
	size_t clause_end = 0;
	for (size_t at = 0; at < l->n_ins; at++) {
		const struct rdna_lir_ins *i = &l->ins[at];
		unsigned facts = rdna_lir_facts(i->op);
		if (clauses && at >= clause_end && facts & (RDNA_IS_SMEM | RDNA_IS_VMEM)) {
			size_t n = clause_at(l, at);
			clause_end = at + n;
			if (n > 1) {
				rdna_patch_op(&p, at, RDNA_S_CLAUSE, (uint32_t)n - 1);
				issue(&d, 0);
			}
		}
		if (!with_delays)
			continue;
		if (i->op == RDNA_LIR_DUAL) {
			look_at(&d, &p, at, i + 1, 2, facts_of(i));
			at += 2;
		} else if (facts & RDNA_IS_FIXED && i->op != RDNA_S_CLAUSE) {
			forget(&d);
		} else {
			look_at(&d, &p, at, i, 1, facts);
		}
	}
	return rdna_patch_apply(l, &p, err);
}
