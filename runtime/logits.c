#include "runtime/logits.h"

#include <stdbool.h>
#include <string.h>

#include "base/math_host.h"

enum { CHAINS = 32, BLOCK = 1024 };

/* Infinite or NaN: all bits of the exponent are set, so that one more in it reaches the sign's place. */
static uint32_t bad_bit(const float *f)
{
	uint32_t u;

	memcpy(&u, f, 4);
	return ((u & 0x7fffffffu) + 0x00800000u) & 0x80000000u;
}

/* Whether a whole block is finite: many chains side by side, and no branch. */
static bool block_finite(const float *x)
{
	uint32_t bad[CHAINS] = { 0 }, any = 0;

	for (int i = 0; i < BLOCK; i += CHAINS)
		for (int j = 0; j < CHAINS; j++)
			bad[j] |= bad_bit(x + i + j);
	for (int j = 0; j < CHAINS; j++)
		any |= bad[j];
	return !any;
}

uint32_t logits_first_bad(const float *logits, uint32_t n)
{
	uint32_t at = 0;

	while (at + BLOCK <= n && block_finite(logits + at))
		at += BLOCK;
	while (at < n && !bad_bit(logits + at))
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
