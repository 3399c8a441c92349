/* tests/kernels/plain_quants.h - quantised weights one number at a time, read off the formats' descriptions. Shares no
 * code with the templates. */
#ifndef TESTS_PLAIN_QUANTS_H
#define TESTS_PLAIN_QUANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* The weight is scale * q + minimum. Scale and minimum are those of the 32 numbers around it, or of the 16 where halves
 * is set. */
struct plain_quant {
	int q;
	float scale, minimum;
	bool has_minimum, halves;
};

/* Element k of a row. */
struct plain_quant plain_quant(enum dtype type, const uint8_t *row, uint32_t k);

/* Fills k elements of a row of a quantised type with random bytes whose scales are small numbers. Returns p. */
uint8_t *plain_random_row(uint8_t *p, enum dtype type, uint32_t k, uint32_t (*draw)(uint32_t n));
/* So many rows, one behind the other. */
void plain_random_rows(uint8_t *p, enum dtype type, uint32_t rows, uint32_t k, uint32_t (*draw)(uint32_t n));

#endif
