/* runtime/plan/weights_bias.c - what scores get by how far a position is from the query's, as tables.
 *
 * Owns: ALiBi's slopes, and the buckets of distances of MPNet. Both are made in double by our own functions, but for
 * the buckets' logarithms: these are rounded to float after each step, as the class does it, because a bucket's border
 * is where that rounding falls.
 */
#include "base/math_host.h"
#include "runtime/plan/weights.h"

uint32_t weights_bias_reach(const struct model_spec *s)
{
	const uint32_t positions = s->encodes ? s->context_train : 0;

	return s->alibi != 0 || s->buckets ? (positions + NUMERICS_CHUNK - 1) / NUMERICS_CHUNK * NUMERICS_CHUNK : 0;
}

uint64_t weights_bias_count(const struct model_spec *s)
{
	return s->encodes ? 2ull * weights_bias_reach(s) * s->heads : s->alibi != 0 ? s->heads : 0;
}

/* Of so many heads, those up to a power of two, then those between. */
static double slope(const struct model_spec *s, uint32_t head)
{
	uint32_t power = 1;

	while (power * 2 <= s->heads)
		power *= 2;
	return head < power ? math_host_pow(2, -s->alibi / power * (head + 1))
	                    : math_host_pow(2, -s->alibi / 2 / power * (2 * (head - power) + 1));
}

/* Half of them for each side: single distances first, then ever more of them, up to 128. */
static uint32_t bucket_of(uint32_t buckets, int64_t distance)
{
	enum { FARTHEST = 128 };
	const uint32_t half = buckets / 2, exact = half / 2, first = distance > 0 ? half : 0,
		       n = (uint32_t)(distance < 0 ? -distance : distance);

	if (n < exact)
		return first + n;
	const float ln = (float)math_host_log((double)((float)n / (float)exact)),
		    max = (float)math_host_log((double)FARTHEST / exact), share = ln / max;
	const uint32_t far = exact + (uint32_t)(share * (float)(half - exact));
	return first + (far < half - 1 ? far : half - 1);
}

void weights_fill_bias(float *out, const struct model_spec *s, const float *bucket)
{
	const int64_t reach = weights_bias_reach(s);

	for (uint32_t h = 0; h < s->heads && !s->encodes; h++)
		out[h] = (float)slope(s, h);
	for (uint32_t h = 0; h < s->heads; h++)
		for (int64_t d = -reach; d < reach; d++)
			*out++ = bucket ? bucket[(uint64_t)bucket_of(s->buckets, d) * s->heads + h]
			                : (float)(-slope(s, h) * (double)(d < 0 ? -d : d));
}
