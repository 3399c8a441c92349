/* runtime/sampling/sampling.h - from logits to one token.
 *
 * Owns: the order of the filters (repeat penalty, top-k, top-p, min-p, temperature, choice) and the random numbers. The
 * random number for position p is a function of (seed, p) alone: rewinding and choosing again gives the same token,
 * however the text was computed. Arithmetic is our own, so that a seed gives the same text on every machine.
 */
#ifndef RUNTIME_SAMPLING_H
#define RUNTIME_SAMPLING_H

#include <stdbool.h>
#include "runtime/jitrun.h"

struct sampling {
	jit_sampling params;
	int32_t vocab;
	float *work; /* vocab: logits after the penalty */
	struct sampling_candidate *candidate;
};

bool sampling_open(struct sampling *s, int32_t vocab);
void sampling_close(struct sampling *s);
/* history: the tokens before this position (position of them). Allocates nothing. */
int32_t sampling_choose(struct sampling *s, const float *logits, const int32_t *history, size_t position);

#endif
