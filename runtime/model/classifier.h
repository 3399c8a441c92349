/* runtime/model/classifier.h - the score of a text by the row x of its last token (JIT_POOL_RANK).
 *
 * With a dense layer, x becomes tanh(W x + b) first, each element rounded to float. Of each class the sum of its row
 * times x, and then of its bias, is made in double, from the first element to the last. The score is the only class's
 * sum, or of several the first one's share: 1 / (1 + exp(second - first) + ...).
 */
#ifndef RUNTIME_CLASSIFIER_H
#define RUNTIME_CLASSIFIER_H

#include "base/error.h"
#include "loaders/model/model.h"

/* row: hidden floats. False: the score is no number, or there is no memory. */
bool classifier_score(const struct model_classifier *c, uint32_t hidden, const float *row, float *score,
                      struct error *err);

#endif
