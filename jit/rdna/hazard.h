/* jit/rdna/hazard.h - what the passes over machine instructions ask of one. */
#ifndef JIT_RDNA_HAZARD_H
#define JIT_RDNA_HAZARD_H

#include "jit/rdna/machine.h"

/* --- facts */

/* A dual instruction's facts are those of both halves. */
static inline unsigned facts_of(const struct rdna_lir_ins *i)
{
	if (i->op < RDNA_OP_COUNT)
		return rdna_lir_facts(i->op);
	return i->op == RDNA_LIR_DUAL ? rdna_lir_facts(i[1].op) | rdna_lir_facts(i[2].op) : RDNA_IS_SALU;
}

static inline bool is_vector(unsigned facts) { return facts & (RDNA_IS_VALU | RDNA_IS_TRANS | RDNA_IS_WMMA); }

/* --- hints.c */

/* Both kinds of hints in one walk. */
bool rdna_hints(struct rdna_lir *l, bool clauses, bool with_delays, struct error *err);

#endif
