/* runtime/sampling/greatest.h - the greatest of many floats. */
#ifndef RUNTIME_SAMPLING_GREATEST_H
#define RUNTIME_SAMPLING_GREATEST_H

#include <stdint.h>

/* The place of the first of the greatest; NaN is not greater than anything. 0 where all are NaN, or -inf, or none. */
int32_t greatest_first(const float *x, int32_t n);
/* The same where the greatest of each 32 is known, and all are finite; n: a multiple of 32. */
int32_t greatest_of_blocks(const float *x, const float *greatest, int32_t n);

#endif
