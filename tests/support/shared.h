/* tests/support/shared.h - where tests find files, and their bytes; behind cmocka.h: the source tree's own, and the
 * shared reference data when it is there. */
#ifndef TESTS_SHARED_H
#define TESTS_SHARED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/sanitized.h"

/* A file of the source tree. Returns out. */
static inline const char *source_path(char out[1024], const char *relative)
{
	const char *src = getenv("srcdir");
	snprintf(out, 1024, "%s/%s", src ? src : ".", relative);
	return out;
}

/* That file opened for reading; fails the test when it is not there. */
static inline FILE *source_open(const char *relative)
{
	char path[1024];
	FILE *f = fopen(source_path(path, relative), "rb");
	if (!f)
		fail_msg("%s cannot be opened", path);
	return f;
}

/* A file's bytes, of which there may be none; free() them. Fails the test when they cannot be read. */
static inline uint8_t *file_bytes(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	uint8_t *p = malloc(*n + 1);
	assert_non_null(p);
	assert_int_equal(fread(p, 1, *n, f), *n);
	fclose(f);
	return p;
}

/* The card that JITRUN_TEST_CUDA asks tests for: "cuda:0,1" or the like, else the machine's first. NULL without it. */
static inline const char *test_real_card(void)
{
	const char *name = getenv("JITRUN_TEST_CUDA");
	return !name || strncmp(name, "cuda", 4) == 0 ? name : "cuda";
}

/* A file of the shared data: $JITRUN_SHARED, else ../shared beside the source tree. NULL, said on stdout, when it is
 * not there: the test skips. */
static inline const char *shared_path(char out[1024], const char *relative)
{
	const char *shared = getenv("JITRUN_SHARED"), *src = getenv("srcdir");
	if (shared)
		snprintf(out, 1024, "%s/%s", shared, relative);
	else
		snprintf(out, 1024, "%s/../shared/%s", src ? src : ".", relative);
	if (access(out, R_OK) == 0)
		return out;
	printf("# skipped: %s is not there\n", relative);
	return NULL;
}

static inline int test_is_set(const char *variable)
{
	const char *v = getenv(variable);
	return v && *v && *v != '0';
}
static inline int test_quick(void) { return test_is_set("JITRUN_TEST_QUICK"); }
/* $JITRUN_TEST_SHARE: which of how many shares this process has, "1/8", or several of them, "2-8/8". All without it. */
struct test_share {
	unsigned first, last, of;
};
static inline const struct test_share *test_share(void)
{
	static struct test_share s;

	if (s.of)
		return &s;
	const char *v = getenv("JITRUN_TEST_SHARE");
	if (v && sscanf(v, "%u/%u", &s.first, &s.of) == 2)
		s.last = s.first;
	else if (!v || sscanf(v, "%u-%u/%u", &s.first, &s.last, &s.of) != 3)
		s.of = 0;
	if (!s.of || s.first < 1 || s.first > s.last || s.last > s.of)
		s = (struct test_share){ 1, 1, 1 };
	return &s;
}
/* Goes by the sum of i's digits: whatever alternates from unit to unit of the work, each share has all of it. */
static inline unsigned test_share_of(unsigned i, unsigned shares)
{
	unsigned sum = 0;

	for (; shares > 1 && i; i /= shares)
		sum += i % shares;
	return sum % shares;
}
/* Whether unit number i of a test's work is this process's. Builds share what does not depend on the compiler that
 * built them, such as generated code, and check.sh gives the build with sanitizers a small share. */
static inline int test_mine(unsigned i)
{
	const struct test_share *s = test_share();
	const unsigned share = test_share_of(i, s->of) + 1;

	return share >= s->first && share <= s->last;
}
/* The same where it is the library's own code that differs from unit to unit, which sanitizers judge: halves, one
 * of them for the first share. */
static inline int test_mine_of_halves(unsigned i)
{
	const struct test_share *s = test_share();

	return s->of == 1 || (test_share_of(i, 2) == 0) == (s->first == 1);
}
/* The same of many units that are alike. With sanitizers each takes several times as long, and the quick size has a
 * third of them. */
static inline int test_mine_of_many(unsigned i) { return (SANITIZED && test_quick() && i / 2 % 3) ? 0 : test_mine(i); }
/* Whether builds share the work and this one has little of it: at the quick size the build with sanitizers, which takes
 * several times as long and sees nothing of generated code. A case for each way through the C code is then enough, as
 * the build without sanitizers has all cases: check.sh has it run each test that calls this. */
static inline int test_small_share(void)
{
	const struct test_share *s = test_share();

	return 2 * (s->last - s->first + 1) < s->of;
}
/* Whole products where builds otherwise share them: many minutes. */
static inline int test_full(void) { return test_is_set("JITRUN_TEST_FULL"); }
/* The full size of tests that take longest, over several processes: $JITRUN_TEST_PART, "3/16", is the part of this one.
 * Whether piece number i of the work is in it; all are without it. */
static inline int test_in_part(uint64_t i)
{
	static unsigned part, of;

	if (!of) {
		const char *v = getenv("JITRUN_TEST_PART");
		if (!v || sscanf(v, "%u/%u", &part, &of) != 2 || !of)
			of = 1;
	}
	return i % of == part % of;
}

#endif
