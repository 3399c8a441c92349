/* runtime/sampling/draws.h - samplers that choose: one candidate, by a number u drawn from [0, 1).
 *
 * Each returns the place of the chosen one in the list, whose probabilities are those it was drawn by. There is at
 * least one candidate; where all logits are -inf, all are as likely. The chosen one is the first at which the
 * probabilities, added up in the order of the list, reach u of the whole; one that has none is never chosen.
 */
#ifndef RUNTIME_SAMPLING_DRAWS_H
#define RUNTIME_SAMPLING_DRAWS_H

#include "runtime/sampling/candidates.h"

/* The first of the greatest; makes no probabilities. */
int32_t draw_greedy(struct candidates *c);
int32_t draw_token(struct candidates *c, double u);

/* Mirostat keeps the surprise of what is chosen near tau bits: it cuts the list by mu, and moves mu after each draw. */
struct mirostat {
	float tau, eta;
};
float mirostat_begin(const struct mirostat *m); /* mu before the first draw */
/* Version 1 estimates from the most likely 100 (`counted`) how steep the distribution over `vocab` tokens is; version 2
 * needs no estimate. */
int32_t draw_mirostat(struct candidates *c, const struct mirostat *m, int32_t counted, int32_t vocab, double u,
                      float *mu);
int32_t draw_mirostat_v2(struct candidates *c, const struct mirostat *m, double u, float *mu);

/* Adaptive-p prefers tokens of a probability that makes the mean of what is chosen approach the target. */
struct adaptive {
	float target, decay;
}; /* target below 0: off, it is draw_token() */
struct adaptive_state {
	float sum, weight;
	int32_t drawn;
	float drawn_p;
}; /* drawn: -1, nothing is due */
struct adaptive_state adaptive_begin(const struct adaptive *a);
int32_t draw_adaptive(struct candidates *c, const struct adaptive *a, double u, struct adaptive_state *s);
/* The token that the text went on with; what was drawn counts when it is that. */
void adaptive_accept(const struct adaptive *a, struct adaptive_state *s, int32_t id);

#endif
