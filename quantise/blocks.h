/* quantise/blocks.h - what the parts of this room share: a block of numbers made ready, and the encoders.
 *
 * An encoder writes one block. Its numbers come scaled by 2^power, so that the largest is in [1, 2), or all are 0; a
 * stored scale is divided by that again.
 */
#ifndef QUANTISE_BLOCKS_H
#define QUANTISE_BLOCKS_H

#include <stdint.h>

#include "base/dtype.h"
#include "quantise/fit.h"

enum { BLOCK_MAX = 256 };

struct block {
	const float *source; /* as they came */
	float x[BLOCK_MAX], w[BLOCK_MAX];
	int power;
};

/* The half nearest to a scale, and what it stands for among the scaled numbers. */
uint16_t block_half(const struct block *b, float scale, float *is);
static inline void block_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

extern const struct fit_levels block_iq4_levels;
/* Where a level stands in that list. */
uint8_t block_iq4_code(int8_t level);

/* By type; NULL: not of this family. */
typedef void (*block_encoder)(const struct block *b, uint8_t *out);
block_encoder block_encoder_32(enum dtype type);
block_encoder block_encoder_256(enum dtype type);
block_encoder block_encoder_levels(enum dtype type);
block_encoder block_encoder_points(enum dtype type);

/* A row of a type whose blocks share a scale: its numbers come multiplied by one power of two, their importances
 * divided by one mean. */
struct row {
	const float *x, *importance; /* as they came */
	uint64_t n;
	int power;
	double mean; /* 0: importances say nothing */
};
/* Numbers at..at + 255 of it, made ready. */
void row_block(const struct row *r, uint64_t at, struct block *b);
/* Writes all of the row. */
typedef void (*row_encoder)(const struct row *r, uint8_t *out);
row_encoder row_encoder_of(enum dtype type);

#endif
