/* jit/x86/regalloc_state.h - what the files of x86 register allocation share: the state of the pass. */
#ifndef JIT_X86_REGALLOC_STATE_H
#define JIT_X86_REGALLOC_STATE_H

#include "jit/ir/ir.h"
#include "jit/x86/regalloc.h"

/* How a class of registers goes to memory and back. A mask's slot is a general one. */
static const struct {
	uint8_t load, save, slot;
	uint16_t load_op, save_op;
} ra_class[LIR_CLASSES] = {
	[LIR_VEC] = { LIR_MOV, LIR_STORE, LIR_AT_VEC_SLOT, X86_VMOVUPS, X86_VMOVUPS },
	[LIR_GPR] = { LIR_SMOV, LIR_SSTORE, LIR_AT_GPR_SLOT, X86_MOV, X86_MOV },
	[LIR_MASK] = { LIR_MMOV, LIR_MSAVE, LIR_AT_GPR_SLOT, X86_KMOVQ, X86_KMOVQ },
};

/* Flags of a register. */
enum {
	RA_TINY = 1,     /* made by a spill: lives for one instruction */
	RA_SPILLED = 2,  /* lives in memory */
	RA_MANY_DEFS = 4 /* written more than once */
};
enum { MAX_OPERANDS = 5 /* that an instruction reads */ };
#define RA_NONE UINT32_MAX

struct ra_reg {
	uint32_t start, end; /* instructions: first definition, last use */
	uint32_t next;       /* chain of those that end at the same instruction */
	uint32_t dominating; /* while scanning: the latest definition on every path to here */
	uint32_t slot;
	uint8_t flags;
	float weight; /* uses and definitions, weighted by loop depth */
};

struct ra {
	struct lir *l;
	const struct regalloc_rules *rules;
	struct regalloc_result *result;
	struct ra_reg *reg;
	size_t reg_capacity, n_reg;
	uint32_t *ends;
	size_t ends_capacity; /* by instruction: first register whose interval ends there */
	uint32_t *loop_end;
	size_t loop_end_capacity; /* by instruction: for LOOP, its ENDLOOP */
	struct {
		uint32_t reg, dominating;
	} * undo;
	size_t n_undo, undo_capacity;
	struct ra_block {
		uint32_t start, end, undo; /* end: of loops */
		bool loop;
	} block[IR_LOWERED_DEPTH]; /* loops and parts of ifs that are open */
	unsigned depth, loops;
	uint32_t holder[LIR_CLASSES][32]; /* by position in the order: the register's owner, 0: free */
	uint32_t free[LIR_CLASSES];
	uint8_t position[LIR_CLASSES][32]; /* by machine register: position in the order */
	bool spilled, inner;               /* inner: rewriting a loop that has none inside */
	uint32_t random;
	struct lir_ins *out;
	size_t n_out, out_capacity;
};

static inline bool ra_no_memory(struct ra *ra)
{
	ra->l->failed = true;
	return false;
}

/* The registers an instruction reads, each once. */
static inline unsigned ra_reads(const struct lir_ins *i, uint32_t reads[MAX_OPERANDS])
{
	const uint32_t all[MAX_OPERANDS] = { i->a, i->b, i->c, i->base, i->index };
	unsigned n = 0;
	for (unsigned k = 0; k < MAX_OPERANDS; k++) {
		if (all[k] < LIR_FIRST)
			continue;
		bool seen = false;
		for (unsigned j = 0; j < n; j++)
			seen |= reads[j] == all[k];
		if (!seen)
			reads[n++] = all[k];
	}
	return n;
}

/* --- spill.c */

bool ra_rewrite(struct ra *ra);

/* --- regalloc.c */

bool ra_made_again(const struct ra *ra, uint32_t v);

#endif
