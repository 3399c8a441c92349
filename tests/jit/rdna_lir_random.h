/* tests/jit/rdna_lir_random.h - random RDNA kernels on machine registers, for the passes behind register allocation. */
#ifndef TESTS_RDNA_LIR_RANDOM_H
#define TESTS_RDNA_LIR_RANDOM_H

#include "jit/rdna/lir.h"

enum { RDNA_LIR_RANDOM_IN = 8192, RDNA_LIR_RANDOM_OUT = 16384, RDNA_LIR_RANDOM_LDS = 4096 };

/* Uses loads, stores and arithmetic of every way there is, in loops that also run no time at all. Argument slot 0
 * points to RDNA_LIR_RANDOM_IN bytes that are only read, slot 1 to RDNA_LIR_RANDOM_OUT that are read and written. Every
 * register it used is stored at the end. Floats stay finite. */
void rdna_lir_random(struct rdna_lir *l, enum rdna_gen gen, uint64_t seed, unsigned size);

#endif
