/* tests/runtime/carrier_tests.h - tests of carriers alone (carrier_tests.c), which are run with those of ranks. */
#ifndef TESTS_RUNTIME_CARRIER_TESTS_H
#define TESTS_RUNTIME_CARRIER_TESTS_H

void test_carrier_bytes(void **state);
void test_carrier_gathers(void **state);
void test_carrier_ends(void **state);
double carrier_test_seconds(void);

#endif
