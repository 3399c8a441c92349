#include "runtime/session/logits.h"

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

bool logits_are_finite(const float *greatest, uint32_t n)
{
	uint32_t bad = 0;

	for (uint32_t i = 0; i < n / 32; i++)
		bad |= bad_bit(greatest + i);
	return !bad;
}

enum { BELOW = 16 }; /* a hundred thousand logits so far below the greatest are a hundredth of it */

float logits_likely(const float *logits, const float *greatest, uint32_t n, int32_t id)
{
	float max = logits[id];
	double sum = 0;

	for (uint32_t i = 0; greatest && i < n / 32; i++)
		max = greatest[i] > max ? greatest[i] : max;
	for (uint32_t i = greatest ? n / 32 * 32 : 0; i < n; i++)
		max = logits[i] > max ? logits[i] : max;
	for (uint32_t i = 0; i < n; i += 32)
		if (!greatest || i + 32 > n || greatest[i / 32] > max - BELOW)
			sum += math_host_sum_exp(logits + i, n - i < 32 ? n - i : 32, max);
	return (float)(math_host_exp((double)logits[id] - max) / sum);
}

/* What a log probability is a logit less of. */
struct norm {
	float max;
	double log_sum;
};

static struct norm norm_of(const float *logits, uint32_t n)
{
	float max = logits[0];

	for (uint32_t i = 1; i < n; i++)
		max = logits[i] > max ? logits[i] : max;
	return (struct norm){ max, math_host_log(math_host_sum_exp(logits, n, max)) };
}

static float below(float logit, struct norm norm) { return (float)((double)logit - norm.max - norm.log_sum); }

float logits_log_probability(const float *logits, uint32_t n, int32_t id)
{
	return below(logits[id], norm_of(logits, n));
}

void logits_top(const float *logits, uint32_t n, int32_t id, float *chosen, jit_logprob *top, size_t n_top)
{
	const struct norm norm = norm_of(logits, n);
	size_t have = 0;

	if (chosen)
		*chosen = below(logits[id], norm);
	for (uint32_t i = 0; n_top && i < n; i++) {
		if (have == n_top && !(logits[i] > top[have - 1].logprob))
			continue;
		size_t at = have < n_top ? have++ : have - 1;
		for (; at > 0 && logits[i] > top[at - 1].logprob; at--)
			top[at] = top[at - 1];
		top[at] = (jit_logprob){ (int32_t)i, logits[i] };
	}
	for (size_t i = 0; i < have; i++)
		top[i].logprob = below(top[i].logprob, norm);
}
