/* tests/encoders/rdna_random.h - random RDNA instructions, right and wrong ones, the same for the same seed. */
#ifndef TESTS_RDNA_RANDOM_H
#define TESTS_RDNA_RANDOM_H

#include "tests/encoders/rdna_golden.h"

/* An instruction of the generation: plausible operands mostly, now and then one that may break a rule. Everything about
 * it can be said in the assembler's text. */
void rdna_random_case(uint64_t *seed, enum rdna_gen gen, struct rdna_case *c);

#endif
