/* tests/jit/same_address_tests.h - scatters of which two lanes have the same place: see same_address_tests.c. */
#ifndef TESTS_JIT_SAME_ADDRESS_TESTS_H
#define TESTS_JIT_SAME_ADDRESS_TESTS_H

int same_address_tests(void);

#endif
