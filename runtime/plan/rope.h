/* runtime/plan/rope.h - rotary frequencies and the cos/sin rows that rotation kernels read. Host code; no libm
 * (math_host.h). */
#ifndef RUNTIME_ROPE_H
#define RUNTIME_ROPE_H

#include "loaders/model.h"

/* Fills dims/2 frequencies, scaling applied. Returns the factor for cos and sin (1 but for YaRN).
 * Sources: RoFormer (Su et al. 2021); position interpolation (Chen et al. 2023); YaRN (Peng et al. 2023); llama3: as
 * published with Llama 3.1. */
float rope_frequencies(float *inv_freq, const struct model_rope *r);

/* cos and sin rows [n][half] for positions pos0 .. pos0+n-1: angle = (float)position * inv_freq in f32, its cosine
 * rounded once, times factor. */
void rope_rows(float *cos, float *sin, const float *inv_freq, uint32_t half, float factor, uint64_t pos0, uint32_t n);

#endif
