/* quantise/super.h - 256 numbers in parts, each with a small integer scale, and perhaps a minimum, that one half for
 * all multiplies: the search for those integers and halves.
 *
 * A part's value is scale * n * level, or scale * n * level - minimum * m * 1.
 */
#ifndef QUANTISE_SUPER_H
#define QUANTISE_SUPER_H

#include "quantise/blocks.h"

enum { SUPER = 256, SUPER_MAX_PARTS = 16 };

struct super_shape {
	const struct fit_levels *levels;
	int parts;
	int min, max; /* of n, and of m where there are minima */
	bool minima;
};

struct super {
	uint16_t scale, minimum; /* halves */
	int n[SUPER_MAX_PARTS], m[SUPER_MAX_PARTS];
	int8_t level[SUPER];
};

void super_fit(const struct super_shape *s, const struct block *b, struct super *out);

#endif
