/* tests/jit/cache_company_tests.h - tests of a cache directory with company. */
#ifndef TESTS_JIT_CACHE_COMPANY_TESTS_H
#define TESTS_JIT_CACHE_COMPANY_TESTS_H

#include "tests/jit/stored.h"

struct cache *open_cache(void);

/* The tests of the other files of the program: the number that failed. */
int cache_company_tests(void);

#endif
