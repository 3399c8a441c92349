/* tests/faults/judge.h - whether a program that a call failed for did as it should: all that it gives without the
 * fault, or one sentence; and nothing that was stored lost or left behind. */
#ifndef TESTS_FAULTS_JUDGE_H
#define TESTS_FAULTS_JUDGE_H

#include "tests/faults/run.h"
#include "tests/faults/scenes.h"

/* What a scene gives without a fault. */
struct expected {
	struct outcome o;
	char *file;
	size_t n_file;
};

/* NULL: as it should be. */
const char *judge(const struct scene *s, const struct expected *e, const struct outcome *o);
/* What was stored beside what was there before is good, too. */
const char *verify_cache(void);
/* Temporary files go, whatever happens, but where files cannot be removed; folders, where they can be listed as
 * well. */
const char *left_behind(const struct fault *f);

#endif
