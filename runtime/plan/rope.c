#include "runtime/plan/rope.h"

#include "base/math_host.h"


static const double pi = 3.14159265358979323846;

/* llama3: long wavelengths are divided by factor, short ones kept, a linear ramp between. */
static double scale_llama3(double f, const struct model_rope *r)
{
	double wavelength = 2 * pi / f, old = r->original_context;

	if (wavelength < old / r->high_freq_factor)
		return f;
	if (wavelength > old / r->low_freq_factor)
		return f / r->factor;
	double smooth = (old / wavelength - r->low_freq_factor) / (r->high_freq_factor - r->low_freq_factor);
	return (1 - smooth) * f / r->factor + smooth * f;
}

/* YaRN: which pair index turns `rotations` times within the original context. */
static double yarn_dimension(double rotations, const struct model_rope *r)
{
	return r->dims * math_host_log(r->original_context / (rotations * 2 * pi)) / (2 * math_host_log(r->theta));
}

static double floor_of(double x)
{
	double t = (double)(int64_t)x;
	return t > x ? t - 1 : t;
}

static double scale_yarn(double f, uint32_t i, const struct model_rope *r)
{
	double low = yarn_dimension(r->beta_fast, r), high = yarn_dimension(r->beta_slow, r);
	if (r->yarn_truncate) {
		low = floor_of(low);
		high = -floor_of(-high);
	}
	if (low < 0)
		low = 0;
	if (high > r->dims - 1)
		high = r->dims - 1;
	if (low == high)
		high += 0.001;
	double ramp = (i - low) / (high - low);
	ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
	return f / r->factor * ramp + f * (1 - ramp);
}

float rope_frequencies(float *inv_freq, const struct model_rope *r)
{
	for (uint32_t i = 0; i < r->dims / 2; i++) {
		double f = 1.0 / math_host_pow(r->theta, 2.0 * i / r->dims);
		if (r->freq_factors)
			f /= (double)r->freq_factors[i];
		switch (r->scaling) {
		case ROPE_NONE: break;
		case ROPE_LINEAR: f /= r->factor; break;
		case ROPE_LLAMA3: f = r->freq_factors ? f : scale_llama3(f, r); break;
		case ROPE_YARN: f = scale_yarn(f, i, r); break;
		}
		inv_freq[i] = (float)f;
	}
	return r->scaling == ROPE_YARN ? (float)r->attention_factor : 1.0f;
}

void rope_rows(float *cos, float *sin, const float *inv_freq, uint32_t half, float factor, uint64_t pos0, uint32_t n)
{
	for (uint32_t c = 0; c < n; c++)
		for (uint32_t i = 0; i < half; i++) {
			float angle = (float)(pos0 + c) * inv_freq[i];
			double s, k;
			math_host_sincos(angle, &s, &k);
			cos[(uint64_t)c * half + i] = (float)k * factor;
			sin[(uint64_t)c * half + i] = (float)s * factor;
		}
}
