/* tests/kernels/by_head_tests.h - the tests of matrices by head, which t_latent runs. */
#ifndef TESTS_KERNELS_BY_HEAD_TESTS_H
#define TESTS_KERNELS_BY_HEAD_TESTS_H

/* The number that failed. */
int by_head_tests(void);

#endif
