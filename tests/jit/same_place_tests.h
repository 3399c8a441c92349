/* tests/jit/same_place_tests.h - scatters of which two lanes have the same place: see same_place_tests.c. */
#ifndef TESTS_JIT_SAME_PLACE_TESTS_H
#define TESTS_JIT_SAME_PLACE_TESTS_H

int same_place_tests(void);

#endif
