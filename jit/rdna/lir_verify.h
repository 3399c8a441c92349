/* jit/rdna/lir_verify.h - what the checks of machine instructions share: the state of the walk, and how it fails. */
#ifndef JIT_RDNA_LIR_VERIFY_H
#define JIT_RDNA_LIR_VERIFY_H

#include "base/memfile.h"
#include "jit/ir/ir.h"
#include "jit/rdna/live.h"

enum {
	MACHINE = 512, /* machine registers, scalar and vector */
	SPECIALS = 4,  /* machine registers whose definition is followed like a word's */
	OUTSIDE = 1    /* the serial number of what is in no block */
};

struct check {
	const struct rdna_lir *l;
	struct error *err;
	size_t at;
	uint32_t *first_word; /* by register */
	uint32_t *open; /* by word, specials behind them: 1 + serial number of the block it was first written in; 0: not
	                   written */
	uint32_t n_words;
	uint32_t holds[MACHINE]; /* by machine register: content() of the word in it; 0: nothing known */
	uint32_t stack[IR_LOWERED_DEPTH], serial; /* of loops and parts of ifs that are open */
	uint16_t opened_by[IR_LOWERED_DEPTH];     /* RDNA_LIR_LOOP, RDNA_LIR_IF, RDNA_LIR_ELSE */
	uint32_t (*other)[MACHINE]; /* with registers assigned, by depth: what they hold on other ways: those
	                               that leave a loop before its end; at the if, then behind its first part */
	unsigned depth;
	bool ok;
};

/* The name of an operand's first word; those of the others follow it. */
static inline uint32_t content(const struct rdna_lir_operand *o) { return 1 + (o->reg << 4) + o->sub; }

/* --- lir_verify_shape.c */

bool rdna_verify_check_instruction(struct check *c);

/* --- lir_verify.c */

bool rdna_verify_fail(struct check *c, const char *what);
/* Two destinations in one register; a destination that is written before all sources are read. */
bool rdna_verify_check_early_clobber(struct check *c, const struct rdna_lir_ins *i);

#endif
