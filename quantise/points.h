/* quantise/points.h - 256 numbers as points of a codebook: the search for points, signs, and scales.
 *
 * Owns: the choice, not the bits. Each part of 16 or 32 numbers has an odd integer n, one half for all multiplies;
 * eight or four neighbours are a point, whose levels are magnitudes with signs beside them, or, shifted by an eighth,
 * numbers. A value is scale * unit * n * (sign * level, or level + shift).
 */
#ifndef QUANTISE_POINTS_H
#define QUANTISE_POINTS_H

#include "kernels-templates/formats/codebooks.h"
#include "quantise/blocks.h"

enum { POINTS_N = 256, POINTS_MAX_PARTS = 16, POINTS_MAX = 64, POINTS_EIGHTS = POINTS_N / 8 };

struct points_shape {
	enum codebook_name book;
	int parts;       /* 8 or 16 */
	int max;         /* n = 2 i + 1, i from 0 to this */
	int shift_over;  /* numbers that share a shift; 0: levels are magnitudes */
	bool even_signs; /* the number of minuses of eight is even */
	float unit;
};

struct points {
	uint16_t scale; /* a half */
	int i[POINTS_MAX_PARTS];
	uint16_t point[POINTS_MAX];   /* of each eight or four numbers */
	uint8_t sign[POINTS_EIGHTS];  /* of eight numbers, a bit each: minus */
	uint8_t shift[POINTS_EIGHTS]; /* of eight: 1: an eighth below the level, not above */
};

void points_fit(const struct points_shape *s, const struct block *b, struct points *out);

#endif
