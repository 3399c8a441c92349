/* tests/support/shared.h - where tests find files, and their bytes; behind cmocka.h: the source tree's own, and the
 * shared reference data when it is there. */
#ifndef TESTS_SHARED_H
#define TESTS_SHARED_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static inline int test_asked(const char *variable)
{
	const char *v = getenv(variable);
	return v && *v && *v != '0';
}
static inline int test_quick(void) { return test_asked("JITRUN_TEST_QUICK"); }
/* Whether piece number i of a test's work is this process's. Whose turn it is goes by the sum of i's digits: whatever
 * alternates from piece to piece, each build then has all of it. Builds take turns at what does not depend on the
 * compiler that built them, such as generated code: $JITRUN_TEST_SHARE, as check.sh sets it, is 1/2 or 2/2. All are
 * without it. */
static inline int test_mine(unsigned i)
{
	static unsigned share, shares;

	if (!shares) {
		const char *v = getenv("JITRUN_TEST_SHARE");
		if (!v || sscanf(v, "%u/%u", &share, &shares) != 2 || share < 1 || share > shares)
			share = shares = 1;
	}
	unsigned turn = 0;
	for (; shares > 1 && i; i /= shares)
		turn += i % shares;
	return turn % shares == share - 1;
}
/* The same of many pieces that are alike. With sanitizers each takes several times as long, and the quick size has a
 * third of them. */
static inline int test_mine_of_many(unsigned i)
{
#if defined(__SANITIZE_ADDRESS__)
	if (test_quick() && i / 2 % 3)
		return 0;
#endif
	return test_mine(i);
}
/* Whole products where tests otherwise take turns: many minutes. */
static inline int test_full(void) { return test_asked("JITRUN_TEST_FULL"); }

#endif
