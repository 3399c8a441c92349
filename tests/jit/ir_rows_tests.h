/* tests/jit/ir_rows_tests.h - the tests of ops.def's rows: how many failed. */
#ifndef TESTS_JIT_IR_ROWS_TESTS_H
#define TESTS_JIT_IR_ROWS_TESTS_H

int ir_rows_tests(void);

#endif
