/* tests/jit/interp_check.h - one operation interpreted. */
#ifndef TESTS_JIT_INTERP_CHECK_H
#define TESTS_JIT_INTERP_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

uint32_t as_bits(float f);
/* Runs a finished kernel twice, on the host's instance and the portable one; frames start as garbage. check() looks at
 * memory after each. */
void run_both(struct ir *b, const uint64_t *arg, int64_t begin, int64_t end, void (*reset)(void *),
              void (*check)(void *, const char *), void *context);
uint32_t halves(int64_t low, int64_t high);
/* Sign, exponent and mantissa apart. */
uint32_t widened(uint32_t half);

/* The second formula of a row of numbers, where it is one of interp_number_formulas.c; masks are 0 or 1. */
bool number_formula(unsigned row, uint32_t a, uint32_t b, uint32_t *out);

/* The tests of the other files of the program: the number that failed. */
int interp_memory_tests(void);
int interp_scalar_tests(void);
int interp_wide_tests(void);

#endif
