#include "runtime/logits.h"

#include <string.h>

#include "runtime/math_host.h"

static uint32_t bits_of(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }

/* Infinite or NaN: all bits of the exponent are set. */
static uint32_t bad_bits(float f) { return (bits_of(f) & 0x7f800000u) == 0x7f800000u; }

uint32_t logits_first_bad(const float *logits, uint32_t n)
{
	enum { BLOCK = 64 };
	uint32_t at = 0;

	for (uint32_t bad = 0; at + BLOCK <= n; at += BLOCK) {       /* whole blocks without a branch, so that lanes go side by side */
		for (uint32_t i = 0; i < BLOCK; i++)
			bad |= bad_bits(logits[at + i]);
		if (bad)
			break;
	}
	while (at < n && !bad_bits(logits[at]))
		at++;
	return at;
}

float logits_log_probability(const float *logits, uint32_t n, int32_t id)
{
	float most = logits[0];

	for (uint32_t i = 1; i < n; i++)
		most = logits[i] > most ? logits[i] : most;
	return (float)((double)logits[id] - most - math_host_log(math_host_sum_exp(logits, n, most)));
}
