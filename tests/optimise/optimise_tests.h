/* tests/optimise/optimise_tests.h - tests of the room, by file: t_optimise.c has their list. */
#ifndef TESTS_OPTIMISE_TESTS_H
#define TESTS_OPTIMISE_TESTS_H

/* optimise_api.c */
void test_api_cma(void **state);
void test_api_many(void **state);
void test_api_order(void **state);
void test_api_files(void **state);
void test_api_refused(void **state);

/* optimise_eigen.c */
void test_eigen(void **state);

/* optimise_many.c */
void test_hypervolume(void **state);
void test_fronts(void **state);
void test_variation(void **state);
void test_problems(void **state);
void test_many_goals(void **state);
void test_many_saved(void **state);
void test_many_refused(void **state);

/* optimise_parts.c */
void test_fold(void **state);
void test_bipop(void **state);
void test_parents(void **state);
void test_extremes(void **state);

#endif
