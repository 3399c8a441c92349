#include "runtime/sampling/filters.h"

#include <float.h>
#include <math.h>

#include "base/math_host.h"

void filter_top_k(struct candidates *c, int32_t k)
{
	if (k > 0 && c->n)
		candidates_keep_first(c, k);
}

void filter_top_p(struct candidates *c, float p, int32_t min_keep)
{
	if (!(p < 1) || !c->n)
		return;
	candidates_softmax(c);
	candidates_key_logits(c);
	candidates_keep_mass(c, p, false, min_keep);
	c->sorted = true;
}

/* A sorted list's head of those at least as great, filled up to min_keep. */
static void keep_head_from(struct candidates *c, float min, int32_t min_keep)
{
	int32_t n = 1;

	candidates_sort(c);
	while (n < c->n && (c->logit[n] >= min || n < min_keep))
		n++;
	c->n = n;
}

void filter_min_p(struct candidates *c, float p, int32_t min_keep)
{
	int32_t enough = min_keep > 1 ? min_keep : 1, n = 0;

	if (!(p > 0) || !c->n)
		return;
	float max = candidates_max(c), ln_p = (float)math_host_log((double)p),
	      min = (max < -FLT_MAX ? -FLT_MAX : max) + ln_p;
	for (int32_t i = 0; i < c->n; i++)
		n += c->logit[i] >= min;
	if (c->sorted || n < enough)
		keep_head_from(c, min, min_keep);
	else
		candidates_keep_from(c, min);
}

/* The entropy of the softmax that is there: each surprise is log_sum - (logit - max). What has probability 0 adds
 * nothing. */
static double entropy(const struct candidates *c, float max, double log_sum)
{
	double h = 0;

	for (int32_t i = 0; i < c->n; i++)
		if (c->p[i] > 0 && c->logit[i] != max)
			h += (double)c->p[i] * (log_sum - ((double)c->logit[i] - max));
		else if (c->p[i] > 0)
			h += (double)c->p[i] * log_sum;
	return h;
}

void filter_typical(struct candidates *c, float p, int32_t min_keep)
{
	if (!(p < 1) || !c->n)
		return;
	float max = candidates_max(c);
	double log_sum = candidates_softmax(c), h = entropy(c, max, log_sum);
	for (int32_t i = 0; i < c->n; i++) {
		double below = c->logit[i] == max ? 0 : (double)c->logit[i] - max;
		c->key[i] = c->p[i] > 0 ? (float)fabs(log_sum - below - h) : INFINITY;
	}
	candidates_keep_mass(c, p, true, min_keep);
	c->sorted = false;
}

void filter_top_n_sigma(struct candidates *c, float n)
{
	double sum = 0, squares = 0;
	int32_t count = 0;

	if (!(n > 0) || c->n <= 1)
		return;
	for (int32_t i = 0; i < c->n; i++)
		if (isfinite(c->logit[i])) {
			sum += (double)c->logit[i];
			count++;
		}
	float mean = count ? (float)(sum / count) : 0;
	for (int32_t i = 0; i < c->n; i++)
		if (isfinite(c->logit[i]))
			squares += ((double)c->logit[i] - mean) * ((double)c->logit[i] - mean);
	float deviation = count ? (float)math_host_sqrt(squares / count) : 0, min = candidates_max(c) - n * deviation;
	for (int32_t i = 0; i < c->n; i++)
		if (c->logit[i] < min)
			c->logit[i] = -INFINITY;
}

void filter_xtc(struct candidates *c, float probability, float threshold, int32_t min_keep, double u)
{
	int32_t likely = 0;

	if (!(probability > 0) || threshold > 0.5f || c->n < 2 || u > (double)probability)
		return;
	candidates_sort(c);
	candidates_softmax(c);
	while (likely < c->n && c->p[likely] >= threshold)
		likely++;
	if (likely > 1 && c->n - (likely - 1) >= min_keep)
		candidates_drop_head(c, likely - 1);
}

void temperature_scale(struct candidates *c, float t)
{
	int32_t first = candidates_first_max(c);

	for (int32_t i = 0; i < c->n; i++)
		if (t > 0)
			c->logit[i] /= t;
		else if (i != first)
			c->logit[i] = -INFINITY;
}

void temperature_dynamic(struct candidates *c, float t, float range, float exponent)
{
	if (!(range > 0)) {
		temperature_scale(c, t);
		return;
	}
	if (c->n < 2)
		return;
	candidates_sort(c);
	double log_sum = candidates_softmax(c), h = entropy(c, c->logit[0], log_sum), part = h / math_host_log(c->n);
	float low = t > range ? t - range : 0, high = t + range;
	float power = part > 0 ? (float)math_host_pow(part, (double)exponent) : exponent > 0 ? 0 : 1;
	temperature_scale(c, low + (high - low) * power);
	candidates_softmax(c);
}
