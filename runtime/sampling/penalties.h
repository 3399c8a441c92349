/* runtime/sampling/penalties.h - samplers that change single logits: biases that a user gives, and penalties for what
 * the text says already. */
#ifndef RUNTIME_SAMPLING_PENALTIES_H
#define RUNTIME_SAMPLING_PENALTIES_H

#include "include/jitrun.h"
#include "runtime/sampling/candidates.h"

/* Each is added to the logit of its token; several for one token add up. Those of tokens that are not in the list do
 * nothing. */
void penalties_bias(struct candidates *c, const jit_logit_bias *bias, size_t n);

struct penalties {
	float repeat;    /* 1: none */
	float frequency; /* for every time that the token was said */
	float presence;  /* once */
	int32_t window;  /* of so many last tokens; 0 or less: none */
};
static inline bool penalties_are_off(const struct penalties *p)
{
	return p->window <= 0 || (p->repeat == 1 && p->frequency == 0 && p->presence == 0);
}

/* Tokens among the last of the text: a logit above 0 is divided by `repeat`, another multiplied; then the others are
 * taken off. tally: room for each token of the vocabulary, all 0, and so again afterwards. */
void penalties_apply(struct candidates *c, const struct penalties *p, const int32_t *text, size_t n, int32_t *tally);

#endif
