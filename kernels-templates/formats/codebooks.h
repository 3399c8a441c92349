/* kernels-templates/formats/codebooks.h - the points that the IQ1, IQ2 and IQ3 formats name by number.
 *
 * Owns: which points of a lattice each codebook has, and their order, for readers and writers of such blocks. A point
 * is 8 or 4 neighbouring weights, each a digit that names one of 3 or 8 levels. What scales and signs go with them is
 * the formats' own.
 */
#ifndef KERNELS_CODEBOOKS_H
#define KERNELS_CODEBOOKS_H

#include <stdint.h>

enum codebook_name {
	CODEBOOK_IQ2_XXS,
	CODEBOOK_IQ2_XS,
	CODEBOOK_IQ2_S,
	CODEBOOK_IQ3_XXS,
	CODEBOOK_IQ3_S,
	CODEBOOK_IQ1, /* of IQ1_S and IQ1_M */
	CODEBOOKS
};

enum { CODEBOOK_MAX_LEVELS = 8 };

struct codebook {
	uint16_t points;
	uint8_t width;        /* digits of a point: 8 or 4 */
	uint8_t levels;       /* 3 or 8 */
	const uint8_t *digit; /* [points][width] */
	int8_t level[CODEBOOK_MAX_LEVELS];
};

/* Never NULL. */
const struct codebook *codebook(enum codebook_name name);

/* The signs of eight weights that seven bits name: the eighth makes the number of minuses even. */
static inline uint8_t codebook_even_signs(uint32_t seven)
{
	seven &= 127;
	return (uint8_t)(seven | (uint32_t)__builtin_parity(seven) << 7);
}

#endif
