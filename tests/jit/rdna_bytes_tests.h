/* tests/jit/rdna_bytes_tests.h - tests of RDNA code as bytes. */
#ifndef TESTS_JIT_RDNA_BYTES_TESTS_H
#define TESTS_JIT_RDNA_BYTES_TESTS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/jit/rdna_call.h"

enum { G10 = RDNA_GFX10_3, G11 = RDNA_GFX11, G115 = RDNA_GFX11_5, G12 = RDNA_GFX12 };
struct text {
	uint8_t gen;
	const char *before, *after;
}; /* after NULL: unchanged */

void must_do(bool ok, const struct error *err);
void parse_rdna(struct rdna_lir *l, enum rdna_gen gen, const char *text);

/* The tests of the other files of the program: the number that failed. */
int rdna_bytes_tests(void);

#endif
