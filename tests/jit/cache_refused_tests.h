/* tests/jit/cache_refused_tests.h - tests of a cache in bad circumstances. */
#ifndef TESTS_JIT_CACHE_REFUSED_TESTS_H
#define TESTS_JIT_CACHE_REFUSED_TESTS_H

#include "jit/store/registry.h"
#include "tests/jit/stored.h"

enum { AT_VERSION = 8, VERSION = 4, NOT_POSSIBLE = 77 };

/* The tests of the other files of the program: the number that failed. */
int cache_refused_tests(void);

#endif
