/* runtime/model/classifier.h - the score of a text by a row x of it (JIT_POOL_RANK).
 *
 * With a dense layer, x becomes act(W x + b) first, each element rounded to float; with a norm, that times its weights,
 * less the mean and to the usual length, each element rounded once. Of each class the sum of its row
 * times x, and then of its bias, is made in double, from the first element to the last. The score is the only class's
 * sum, or of several the first one's share: 1 / (1 + exp(second - first) + ...).
 */
#ifndef RUNTIME_CLASSIFIER_H
#define RUNTIME_CLASSIFIER_H

#include "base/error.h"
#include "loaders/model/model.h"

/* row: hidden floats. False: the score is no number, or there is no memory. */
bool classifier_score(const struct model_classifier *c, const struct model_spec *s, const float *row, float *score,
                      struct error *err);

#endif
