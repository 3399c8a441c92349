/* train/adamw.c - AdamW, its rate, and norms of gradients. */
#include "train/adamw.h"

#include "base/math_host.h"

/* b^n by squaring: the same bits on every machine. */
static double power(double b, uint64_t n)
{
	double result = 1;

	for (; n; n >>= 1) {
		if (n & 1)
			result *= b;
		b *= b;
	}
	return result;
}

void adamw_step(const struct adamw *a, uint64_t step, float *value, const float *gradient, double scale, float *mean,
                float *square, uint64_t n)
{
	const double first = 1 - power(a->beta1, step), second = 1 - power(a->beta2, step);
	const float b1 = (float)a->beta1, b2 = (float)a->beta2, c1 = (float)(1 - a->beta1), c2 = (float)(1 - a->beta2);
	const float keep = (float)(1 - a->rate * a->decay), size = (float)(a->rate / first), by = (float)scale,
		    root = (float)(1 / math_host_sqrt(second)), eps = (float)a->epsilon;

	for (uint64_t i = 0; i < n; i++) {
		const float g = gradient[i] * by;
		mean[i] = mean[i] * b1 + g * c1;
		square[i] = square[i] * b2 + g * g * c2;
		value[i] = value[i] * keep - size * (mean[i] / (__builtin_sqrtf(square[i]) * root + eps));
	}
}

double adamw_squares(const float *x, uint64_t n, double sum)
{
	for (uint64_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

double adamw_rate_of(const struct adamw_rate *r, uint64_t step)
{
	double part, s, c;

	if (step <= r->warmup)
		return r->rate * (double)step / (double)r->warmup;
	if (r->schedule == ADAMW_CONSTANT || r->steps <= r->warmup)
		return r->rate;
	part = step > r->steps ? 1 : (double)(step - 1 - r->warmup) / (double)(r->steps - r->warmup);
	if (r->schedule == ADAMW_LINEAR)
		return r->rate * (r->min + (1 - r->min) * (1 - part));
	math_host_sincos(part * 3.14159265358979323846, &s, &c);
	return r->rate * (r->min + (1 - r->min) * 0.5 * (1 + c));
}
