/* runtime/model/dense.h - what the layers behind pooling make of a text's row.
 *
 * Each layer makes of its inputs x the outputs act(W x + b). An output's sum is made in double, from the first input to
 * the last, then its bias is added; act follows in double, and the output is rounded to float once. Layers follow each
 * other by these floats.
 */
#ifndef RUNTIME_DENSE_H
#define RUNTIME_DENSE_H

#include "base/error.h"
#include "loaders/model/model.h"

/* row: hidden floats; out: model_embedding() of them, which may be row. False: one is no number, or there is no memory.
 */
bool dense_apply(const struct model *m, const float *row, float *out, struct error *err);

#endif
