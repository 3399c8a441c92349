/* train/new.h - a model of random weights, made from a configuration. */
#ifndef TRAIN_NEW_H
#define TRAIN_NEW_H

#include <stdint.h>

#include "base/error.h"

/* from: a folder with config.json, perhaps a tokenizer and other texts, which are copied. to: a folder, in which
 * model.safetensors appears last: matrices are drawn from a normal distribution whose deviation is config.json's
 * initializer_range (0.02), norms are 1 and biases 0. weights: how many numbers it has. The same seed gives the same
 * bytes. */
bool train_new(const char *from, const char *to, uint64_t seed, uint64_t *weights, struct error *err);

#endif
