/* quantise/quantise.h - encoders of weights: rows of floats into the blocks of a quantised type.
 *
 * Owns: what the bits of a quantised row are. docs/quantisation.md defines them in words. A row's bits depend on its
 * numbers and their importances alone, never on threads, compiler or machine: all arithmetic is IEEE single and double
 * precision in a fixed order, without a math library.
 *
 *   fit.c         which scale, or scale and minimum, serves a run of numbers best
 *   blocks_32.c   types with one scale for 32 numbers, and plain floats
 *   super.c       two levels of scales for 256 numbers: the search
 *   blocks_256.c  the types that have them: how their bits lie
 *   rows.c        types with a scale for a whole row and steps of it for 32 numbers
 *   blocks_levels.c  types of two, three or four levels
 *   points.c      points of a codebook: the search
 *   blocks_points.c  the types that name them: how their bits lie
 *
 * Never: allocates, reads files, knows of models.
 */
#ifndef QUANTISE_QUANTISE_H
#define QUANTISE_QUANTISE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* Whether rows can be made of this type. */
bool quantise_supported(enum dtype type);
/* The largest magnitude that the type can hold; 0: not supported. */
float quantise_max(enum dtype type);
/* One row of n numbers, a multiple of the type's block, all finite and none beyond quantise_max(). importance: for
 * each column how much a squared error there counts, finite and not negative, or NULL: all the same. out: the row's
 * blocks. */
void quantise_row(enum dtype type, const float *x, const float *importance, uint64_t n, uint8_t *out);

/* The types that rows are made from: F32, F16 and BF16. */
bool quantise_readable(enum dtype type);
void quantise_read(enum dtype type, const uint8_t *row, uint64_t n, float *x);

#endif
