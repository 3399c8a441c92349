/* tests/runtime/ranks_tests.h - what the tests of ranks have in common (t_ranks.c). */
#ifndef TESTS_RANKS_TESTS_H
#define TESTS_RANKS_TESTS_H

#include "include/jitrun.h"

/* Fail where the library does. */
void must(int status, const jit_error *err);
jit_model *must_open(const char *path, const char *ranks, const char *split);
jit_session *must_session(jit_model *m, int speculate);
/* The small model that comes with the sources. */
const char *tale(char path[1024]);

void test_ranks_killed(void **state);
void test_ranks_killed_anywhere(void **state);
void test_ranks_bytes(void **state);
void test_ranks_saved(void **state);
void test_ranks_choose(void **state);
void test_ranks_auto(void **state);
void test_ranks_seconds(void **state);

#endif
