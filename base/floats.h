/* base/floats.h - arrays of F32, F16 and BF16 as floats, and back.
 *
 * Owns: the walk. What a half or a bfloat16 is stands in number.h. Arrays may lie at any address.
 */
#ifndef BASE_FLOATS_H
#define BASE_FLOATS_H

#include <stdbool.h>

#include "base/dtype.h"

static inline bool floats_hold(enum dtype type) { return type == DTYPE_F32 || type == DTYPE_F16 || type == DTYPE_BF16; }
/* n elements, of one of these types. */
void floats_read(float *out, const void *from, enum dtype type, uint64_t n);
/* Each becomes the nearest of the type, ties to even. */
void floats_write(void *out, enum dtype type, const float *x, uint64_t n);

#endif
