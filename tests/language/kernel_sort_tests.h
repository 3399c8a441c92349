/* tests/language/kernel_sort_tests.h - a part of t_kernel_examples. */
#ifndef TESTS_LANGUAGE_KERNEL_SORT_TESTS_H
#define TESTS_LANGUAGE_KERNEL_SORT_TESTS_H

void kernel_sort_steps(void **state);
void kernel_sort_merges(void **state);

#endif
