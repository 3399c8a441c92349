/* quantise/fit.h - the scale, or the scale and minimum, by which integer levels come nearest to a run of numbers.
 *
 * Owns: the search. "Nearest" is always the same: the sum over the run of importance * (number - value)^2 is small.
 * For given scales the best levels are those nearest to the numbers; for given levels the best scales solve a linear
 * equation (weighted least squares). The search starts from several scales, goes from the one to the other until
 * nothing is gained, and keeps the best.
 *
 * Numbers have been scaled by a power of two so that the largest is about 1. n is a multiple of 4. Sums are those of
 * four lanes, lane 0 and 2 first.
 */
#ifndef QUANTISE_FIT_H
#define QUANTISE_FIT_H

#include <stdbool.h>
#include <stdint.h>

enum { FIT_MAX_LEVELS = 32 };

/* Which levels there are: all integers between two, or a list in rising order. */
struct fit_levels {
	float min, max;
	int listed; /* 0: all integers */
	float list[FIT_MAX_LEVELS];
};

/* The scale s for which s * level is nearest. 0: all numbers are 0. */
float fit_scale(const struct fit_levels *l, const float *x, const float *w, int n);

struct fit_line {
	float scale, minimum;
};
/* The same of scale * level + minimum, for integers from 0 to max. not_above: the minimum may not be above 0. */
struct fit_line fit_line(float max, bool not_above, const float *x, const float *w, int n);

/* The levels nearest to the numbers for such scales, and the error that is left. level may be NULL. scale 0: level 0,
 * or the one nearest to it. */
float fit_error(const struct fit_levels *l, struct fit_line line, const float *x, const float *w, int n, int8_t *level);

#endif
