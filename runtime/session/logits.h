/* runtime/session/logits.h - what is asked of one token's logits: whether they are numbers, and how likely they make a
 * token.
 *
 * Arithmetic is our own (math_host.h), so that a log probability is the same on every machine and with every C library.
 */
#ifndef RUNTIME_LOGITS_H
#define RUNTIME_LOGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/jitrun.h"

/* The first that is infinite or NaN; n: all are finite. */
uint32_t logits_first_bad(const float *logits, uint32_t n);
/* Whether all are finite, by the greatest of each 32 of them (plan_keeps_greatest()). */
bool logits_are_finite(const float *greatest, uint32_t n);
/* The softmax of one entry, but for what adds less than a thousandth. greatest: of each 32; NULL: not known. For who
 * estimates. */
float logits_likely(const float *logits, const float *greatest, uint32_t n, int32_t id);
/* ln of the softmax of one entry. All are finite. */
float logits_log_probability(const float *logits, uint32_t n, int32_t id);
/* The same of one entry (chosen NULL: of none) and of the n_top greatest, the lower id first among equals. */
void logits_top(const float *logits, uint32_t n, int32_t id, float *chosen, jit_logprob *top, size_t n_top);

#endif
