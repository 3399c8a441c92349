/* runtime/sampling/filters.h - samplers that leave tokens out or change the temperature, one function each, with the
 * rules that llama.cpp gives them. Each works on what the one before left, and may leave it sorted.
 *
 * At least one candidate stays. min_keep: at least so many. Where a rule of llama.cpp breaks down, something plain
 * happens instead, and the comment says what.
 */
#ifndef RUNTIME_SAMPLING_FILTERS_H
#define RUNTIME_SAMPLING_FILTERS_H

#include "runtime/sampling/candidates.h"

/* The k first; k <= 0: all. */
void filter_top_k(struct candidates *c, int32_t k);
/* The shortest head with probability p or more; p >= 1: all. Probabilities stay those of the softmax before. */
void filter_top_p(struct candidates *c, float p, int32_t min_keep);
/* Those at least p times as likely as the likeliest; p <= 0: all. */
void filter_min_p(struct candidates *c, float p, int32_t min_keep);
/* Locally typical sampling: those whose surprise is nearest to the entropy, until they have more than p; p >= 1: all.
 * They come out by that distance. Tokens of probability 0 are the last, and count for nothing. */
void filter_typical(struct candidates *c, float p, int32_t min_keep);
/* Logits more than n standard deviations below the greatest become -inf; n <= 0: none. */
void filter_top_n_sigma(struct candidates *c, float n);
/* XTC ("exclude top choices"): when u <= probability, of the tokens with probability `threshold` or more all go but the
 * least likely. Off when probability <= 0 or threshold > 0.5. */
void filter_xtc(struct candidates *c, float probability, float threshold, int32_t min_keep, double u);

/* Logits divided by t; t <= 0: all but the first of the greatest become -inf. */
void temperature_scale(struct candidates *c, float t);
/* Dynamic temperature: from t - range to t + range by the entropy, as a part of its most, to the power; range <= 0:
 * t. */
void temperature_dynamic(struct candidates *c, float t, float range, float exponent);

#endif
