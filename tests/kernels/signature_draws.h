/* tests/kernels/signature_draws.h - random numbers for the two files that draw launches. */
#ifndef TESTS_SIGNATURE_DRAWS_H
#define TESTS_SIGNATURE_DRAWS_H

#include "tests/kernels/signature_trial.h"

static inline uint32_t between(uint32_t min, uint32_t max) { return min + trial_draw(max - min + 1); }
static inline uint32_t one_of(uint32_t a, uint32_t b) { return trial_draw(2) ? a : b; }
static inline bool sometimes(void) { return trial_draw(3) == 0; }
static inline uint32_t flag(uint32_t f) { return trial_draw(2) ? f : 0; }

static inline bool draws_floats(const struct key *k) { return k->activation == key_type(DTYPE_F32); }

/* signature_draws_matmul.c: the format of weights, rows and k; a whole launch. */
void draw_weights(struct trial *t);
void draw_matmul(struct trial *t);

#endif
