/* tests/vision/tower_tests.h - what the files of t_tower share. */
#ifndef TESTS_TOWER_TESTS_H
#define TESTS_TOWER_TESTS_H

#include "include/jitrun_kernel.h"
#include "vision/tower.h"

jit_compute *compute_open(const char *device, const char *isa, int threads);
struct tower_features tower_encoded(struct tower *t, const struct tower_pixels *p);
/* The greatest difference beside the greatest number of y. */
double tower_difference(const float *x, const float *y, uint64_t n);

/* own_tower.c: a tower of Qwen 2 VL with weights of its own beside plain loops; files that are refused. */
void test_own_tower(void **state);
void test_refused(void **state);

#endif
