/* jit/x86/regalloc.h - virtual registers to machine registers.
 *
 * Linear scan over one interval per value. Loops are structured, so a value's interval is exact without a fixed point:
 * a use that some pass around a loop reads before writing keeps the value to that loop's end. When registers run out
 * the value that costs least per instruction is spilled everywhere: constants are made again or read from the pool,
 * others live in a slot of the frame, read as memory operands where the form allows. Spilling rewrites the instructions
 * and scans again until all fits.
 * At least REGALLOC_MIN_VEC, REGALLOC_MIN_GPR and, where there are masks, REGALLOC_MIN_MASK registers are needed: the
 * most that one instruction can name.
 */
#ifndef JIT_REGALLOC_H
#define JIT_REGALLOC_H

#include "jit/x86/lir.h"

enum { REGALLOC_MIN_VEC = 4, REGALLOC_MIN_GPR = 4, REGALLOC_MIN_MASK = 2 };

struct regalloc_rules {
	const uint8_t *order[LIR_CLASSES]; /* machine registers, most wanted first */
	unsigned count[LIR_CLASSES];       /* how many of them may be used, 32 at most */
	uint32_t seed;                     /* not 0: tests: scrambles every free choice */
};

struct regalloc_result {
	uint32_t used[LIR_CLASSES];             /* bit by machine register */
	uint32_t spills, spills_in_inner_loops; /* instructions that read or write a slot; inner: in loops that have
	                                           none inside */
	uint32_t rounds;
};

/* Sets l->phys. False: out of memory. */
bool regalloc(struct lir *l, const struct regalloc_rules *rules, struct regalloc_result *result, struct error *err);

#endif
