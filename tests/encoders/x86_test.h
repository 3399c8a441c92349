/* tests/encoders/x86_test.h - the other tests of the x86 encoder. */
#ifndef TESTS_ENCODERS_X86_TEST_H
#define TESTS_ENCODERS_X86_TEST_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/x86_form.h"

#define Y(n) x86_ymm(n)

#define T(n) x86_tmm(n)

void hex_of(char *out, const uint8_t *p, size_t n);

/* The tests of the other files of the program: the number that failed. */
int x86_refusal_tests(void);
int x86_label_tests(void);

#endif
