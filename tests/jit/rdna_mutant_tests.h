/* tests/jit/rdna_mutant_tests.h - the driver with one thing wrong at a time. */
#ifndef TESTS_JIT_RDNA_MUTANT_TESTS_H
#define TESTS_JIT_RDNA_MUTANT_TESTS_H

void test_driver_mutants(void **unused);

#endif
