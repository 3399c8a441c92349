/* language/tidy.h - the second walk over a kernel's IR: tidy.c. */
#ifndef LANGUAGE_TIDY_H
#define LANGUAGE_TIDY_H

#include "jit/ir/ir.h"

struct jk_tidy_rules {
	const uint64_t *steady;    /* a bit for each register: read of what no instance writes; NULL: none */
	bool loops;                /* what a loop does not change is moved out of it */
	bool late_stores;          /* stores come behind what is read of what no instance writes */
	bool early_reads;          /* such reads of a block stand together, some at a time */
	unsigned vectors, scalars; /* at most so many registers for that, of each loop */
};

/* False: no memory; ir is as it was. */
bool jk_tidy(struct ir *ir, const struct jk_tidy_rules *rules);

#endif
