/* tests/jit/rdna_lir_run.h - random RDNA machine programs, and what they compute.
 *
 * Owns: programs that pass the verifier, and a run of any program in which every instruction stands for an injective
 * function of all it reads: registers, scc, vcc, memory as it was. Two programs with the same outcome do the same thing
 * in the same order wherever order matters.
 */
#ifndef TESTS_RDNA_LIR_RUN_H
#define TESTS_RDNA_LIR_RUN_H

#include "jit/rdna/lir.h"

/* About `length` instructions. */
void rdna_lir_make(struct rdna_lir *l, enum rdna_gen gen, unsigned length, uint32_t seed);
void rdna_lir_copy(struct rdna_lir *to, const struct rdna_lir *from);

struct rdna_lir_outcome {
	uint64_t visible /* memory, barriers */,
		registers /* of virtual registers at the end; 0 once they are assigned */;
};
struct rdna_lir_outcome rdna_lir_run(const struct rdna_lir *l);

#endif
