/* runtime/sampling/greatest.h - the greatest of many floats. */
#ifndef RUNTIME_SAMPLING_GREATEST_H
#define RUNTIME_SAMPLING_GREATEST_H

#include <stdint.h>

/* The place of the first of the greatest; NaN is not greater than anything. 0 where all are NaN, or -inf, or none. */
int32_t greatest_first(const float *x, int32_t n);

#endif
