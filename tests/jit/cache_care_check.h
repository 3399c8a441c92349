/* tests/jit/cache_care_check.h - packs and sources for the tests that look after a cache. */
#ifndef TESTS_JIT_CACHE_CARE_CHECK_H
#define TESTS_JIT_CACHE_CARE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "jit/store/registry.h"
#include "tests/jit/stored.h"

/* Numbers first to last - 1 in a pack. */
void write_pack(const char *path, uint32_t first, uint32_t last);
struct cache_source pack_source(const struct cache *c, unsigned i);
void flip_byte(const char *path, size_t at);
uint64_t size_of(struct cache *c);

/* The tests of the other files of the program: the number that failed. */
int cache_upkeep_tests(void);

#endif
