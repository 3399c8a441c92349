/* train/adamw.h - the rule by which numbers that are trained change.
 *
 * Owns: AdamW with decoupled weight decay, its rate over time, and the norm by which gradients are clipped. All of it
 * is plain arithmetic in a fixed order, elements from the first to the last.
 */
#ifndef TRAIN_ADAMW_H
#define TRAIN_ADAMW_H

#include <stddef.h>
#include <stdint.h>

struct adamw {
	double rate, beta1, beta2, epsilon, decay;
};

/* Step number `step`, from 1: of n numbers with their gradients, each of which counts `scale`. */
void adamw_step(const struct adamw *a, uint64_t step, float *value, const float *gradient, double scale, float *mean,
                float *square, uint64_t n);
/* The sum of squares, added to sum. */
double adamw_squares(const float *x, uint64_t n, double sum);

enum adamw_schedule { ADAMW_CONSTANT, ADAMW_COSINE, ADAMW_LINEAR };
struct adamw_rate {
	enum adamw_schedule schedule;
	uint64_t warmup, steps;
	double rate, min; /* min: a part of the rate */
};
/* Of step number `step`, from 1. */
double adamw_rate_of(const struct adamw_rate *r, uint64_t step);

#endif
