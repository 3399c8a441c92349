/* tests/encoders/rdna_test.h - short names of operands and generations, for tests that write many instructions. */
#ifndef TESTS_ENCODERS_RDNA_TEST_H
#define TESTS_ENCODERS_RDNA_TEST_H

#include "tests/encoders/rdna_golden.h"

#define V(i) rdna_v(i)
#define S(i) rdna_s(i)

#define S2(i) rdna_sn(i, 2)
#define I(v) rdna_imm(v)
#define G10 RDNA_GFX10_3
#define G11 RDNA_GFX11
#define G115 RDNA_GFX11_5
#define G12 RDNA_GFX12
#define OP(name) .op = RDNA_##name

/* The tests of the other files of the program: the number that failed. */
int rdna_refusal_tests(void);

#endif
