/* tests/jit/pack_check.h - packs written and read for their tests. */
#ifndef TESTS_JIT_PACK_CHECK_H
#define TESTS_JIT_PACK_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "jit/store/pack.h"
#include "tests/support/ordered.h"
#include "tests/jit/stored.h"

enum {
	VERSION = 4,
	HEADER = 64,
	RECORD = 96,
	AT_VERSION = 8,
	AT_RECORD_BYTES = 12,
	AT_RECORDS = 16,
	AT_SLOTS = 20,
	AT_BYTES = 24,
	AT_INDEX_SUM = 32,
	AT_ZERO = 40,
	AT_SUM = 56,
	IN_OFFSET = 48,
	IN_BODY = 56,
	IN_CODE = 60,
	IN_POOL = 64,
	IN_ZERO = 76,
	IN_SUM = 88,
	MAX = 64
};

struct seen {
	struct ordered keys;
	size_t stop;
};

extern struct pack_item pack_items[MAX];
void make_items(size_t n);
void free_items(size_t n);
uint8_t *bytes_of(size_t n, size_t *bytes);
uint32_t get32(const uint8_t *p);
uint64_t get64(const uint8_t *p);
/* Makes every checksum of a forged pack fit; those of bodies only where they lie within the file. */
void seal(uint8_t *p, size_t n, size_t records);
void check_found(const struct pack *p, size_t n);

/* The tests of the other files of the program: the number that failed. */
int pack_damage_tests(void);

#endif
