/* tests/jit/wide_rows_tests.h - the other files of t_numbers: the number of tests that failed. */
#ifndef TESTS_JIT_WIDE_ROWS_TESTS_H
#define TESTS_JIT_WIDE_ROWS_TESTS_H

int wide_rows_tests(void);
int random_numbers_tests(void);

#endif
