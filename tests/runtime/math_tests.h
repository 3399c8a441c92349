/* tests/runtime/math_tests.h - tests of the math of the host. */
#ifndef TESTS_RUNTIME_MATH_TESTS_H
#define TESTS_RUNTIME_MATH_TESTS_H

#include "runtime/host/pool.h"
#include "runtime/sampling/sampling.h"
#include "runtime/host/system.h"

/* The tests of the other files of the program: the number that failed. */
int math_tests(void);

#endif
