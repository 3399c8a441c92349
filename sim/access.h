/* sim/access.h - what issue and completion of memory instructions share. */
#ifndef SIM_ACCESS_H
#define SIM_ACCESS_H

#include "sim/wave.h"

static inline unsigned access_bytes(const struct sim_op *op)
{
	return op->kind == MK_ATOMIC ? op->size : (unsigned)op->size * op->words;
}

/* --- exec_memory.c */

void sim_lds_written(struct sim_wave *w, uint64_t addr, unsigned bytes);
bool sim_lds_defined(struct sim_wave *w, uint64_t addr, unsigned bytes);

#endif
