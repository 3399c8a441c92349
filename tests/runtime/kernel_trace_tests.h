/* tests/runtime/kernel_trace_tests.h - a part of t_kernel_source. */
#ifndef TESTS_RUNTIME_KERNEL_TRACE_TESTS_H
#define TESTS_RUNTIME_KERNEL_TRACE_TESTS_H

void kernel_trace_test(void **state);

#endif
