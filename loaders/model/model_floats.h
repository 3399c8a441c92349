/* loaders/model/model_floats.h - rows of a file's weights as floats.
 *
 * For the few small matrices that no kernel computes with: everything else is packed and read by kernels. The floats
 * are the numbers that the bits mean, each product rounded once, so that they are the same on every machine.
 */
#ifndef LOADERS_MODEL_FLOATS_H
#define LOADERS_MODEL_FLOATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* Not every type that kernels read: plain floats, and those that published files keep small matrices in. */
bool model_floats_known(enum dtype type);
/* n elements, a multiple of the type's block. */
void model_floats(enum dtype type, const uint8_t *bytes, uint64_t n, float *out);

#endif
