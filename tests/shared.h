/* tests/shared.h - where tests find files: the source tree's own, and the shared reference data when it is there. */
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

/* A file of the shared data: $JITRUN_SHARED, else ../shared beside the source tree. NULL, said on stdout, when it is not there: the test skips. */
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

static inline int test_quick(void) { const char *q = getenv("JITRUN_TEST_QUICK"); return q && *q && *q != '0'; }

#endif
