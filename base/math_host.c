#include "base/math_host.h"

#include <math.h>
#include <stdint.h>
#include <string.h>


static double from_bits(uint64_t u)
{
	double d;
	memcpy(&d, &u, 8);
	return d;
}
static uint64_t to_bits(double d)
{
	uint64_t u;
	memcpy(&u, &d, 8);
	return u;
}

/* Adding and subtracting 1.5 * 2^52 rounds to the nearest integer, ties to even. */
static double round_even(double x)
{
	const double magic = 6755399441055744.0;
	volatile double t = x + magic; /* volatile: no algebra may cancel it */
	return t - magic;
}

static const double ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;

double math_host_exp(double x)
{
	if (!(x >= -745.0))
		return x != x ? x : 0.0;
	if (x > 709.78)
		return (double)INFINITY;
	double n = round_even(x * 1.44269504088896338700);
	double r = (x - n * ln2_hi) - n * ln2_lo;
	double sum = 1.0; /* Taylor by Horner; |r| <= 0.347: 14 terms reach 2^-53 */
	for (int i = 14; i >= 1; i--)
		sum = 1.0 + r * sum / i;
	int e = (int)n, half = e / 2; /* two steps, so that denormal results are scaled once each */
	return sum * from_bits((uint64_t)(half + 1023) << 52) * from_bits((uint64_t)(e - half + 1023) << 52);
}

enum { LANES = 8 };

/* exp(x), lane by lane: -700 <= x <= 0. Without a branch or a division, every step for all lanes, so that compilers
 * make vectors of them. */
static inline void exp_lanes(double e[LANES], const double x[LANES])
{
	static const double magic = 6755399441055744.0, inverse[] = {
		1.0,
		1.0,
		1.0 / 2,
		1.0 / 6,
		1.0 / 24,
		1.0 / 120,
		1.0 / 720,
		1.0 / 5040,
		1.0 / 40320,
		1.0 / 362880,
		1.0 / 3628800,
		1.0 / 39916800,
		1.0 / 479001600,
		1.0 / 6227020800.0
	};
	double t[LANES], r[LANES];

	for (int l = 0; l < LANES; l++) {
		t[l] = x[l] * 1.44269504088896338700 + magic; /* its low bits are the nearest integer */
		double n = t[l] - magic;
		r[l] = (x[l] - n * ln2_hi) - n * ln2_lo;
		e[l] = inverse[13];
	}
	for (int k = 12; k >= 0; k--)
		for (int l = 0; l < LANES; l++)
			e[l] = inverse[k] + r[l] * e[l];
	for (int l = 0; l < LANES; l++)
		e[l] *= from_bits((to_bits(t[l]) << 52) + 0x3ff0000000000000ull);
}

double math_host_sum_exp(const float *x, size_t n, float max)
{
	double sum[LANES] = { 0 }, d[LANES], e[LANES];

	for (size_t i = 0; i < n; i += LANES) {
		for (size_t l = 0; l < LANES; l++)
			d[l] = i + l < n ? (double)x[i + l] - max : -700;
		for (size_t l = 0; l < LANES; l++)
			d[l] = d[l] > -700 ? d[l] : -700;
		exp_lanes(e, d);
		for (int l = 0; l < LANES; l++)
			sum[l] += e[l];
	}
	return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void math_host_exp_below(float *e, const float *x, size_t n, float max)
{
	double d[LANES], r[LANES];

	for (size_t i = 0; i < n; i += LANES) {
		size_t count = n - i < LANES ? n - i : LANES;
		for (size_t l = 0; l < LANES; l++)
			d[l] = l < count && x[i + l] != max ? (double)x[i + l] - max : 0;
		for (size_t l = 0; l < LANES; l++)
			d[l] = d[l] > -700 ? d[l] : -700;
		exp_lanes(r, d);
		for (size_t l = 0; l < count; l++)
			e[i + l] = (float)r[l];
	}
}

/* Lane by lane what math_host_exp() does, for -700 <= x <= 0, where scaling once is as exact as twice. */
static inline void exp_exact_lanes(double e[LANES], const double x[LANES])
{
	static const double magic = 6755399441055744.0;
	double t[LANES], r[LANES];

	for (int l = 0; l < LANES; l++) {
		t[l] = x[l] * 1.44269504088896338700 + magic;
		double n = t[l] - magic;
		r[l] = (x[l] - n * ln2_hi) - n * ln2_lo;
		e[l] = 1.0;
	}
	for (int k = 14; k >= 1; k--)
		for (int l = 0; l < LANES; l++)
			e[l] = 1.0 + r[l] * e[l] / k;
	for (int l = 0; l < LANES; l++)
		e[l] *= from_bits((to_bits(t[l]) << 52) + 0x3ff0000000000000ull);
}

void math_host_exps(double *x, size_t n)
{
	double e[LANES];
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		int within = 1;
		for (size_t l = 0; l < LANES; l++)
			within &= x[i + l] >= -700 && x[i + l] <= 0;
		if (within)
			exp_exact_lanes(e, x + i);
		for (size_t l = 0; l < LANES; l++)
			x[i + l] = within ? e[l] : math_host_exp(x[i + l]);
	}
	for (; i < n; i++)
		x[i] = math_host_exp(x[i]);
}

double math_host_log(double x)
{
	uint64_t u = to_bits(x);
	int e = (int)(u >> 52) - 1023;
	double m = from_bits((u & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
	if (m > 1.41421356237309504880) {
		m *= 0.5;
		e++;
	}
	/* log m = 2 atanh((m-1)/(m+1)); the argument is at most 0.1716, its square 0.0295 */
	double t = (m - 1.0) / (m + 1.0), t2 = t * t, sum = 0.0;
	for (int k = 25; k >= 1; k -= 2)
		sum = sum * t2 + 1.0 / k;
	return e * ln2_hi + (2.0 * t * sum + e * ln2_lo);
}

double math_host_pow(double x, double y) { return math_host_exp(y * math_host_log(x)); }

double math_host_sqrt(double x) { return sqrt(x); /* IEEE: one instruction, correctly rounded everywhere */ }

void math_host_sincos(double x, double *s, double *c)
{
	/* pi/2 in three parts of 33 bits: n times each of the first two is exact for |n| < 2^20, and beyond that the
	 * error stays far below a float's, which is what the tables are rounded to */
	const double p1 = 1.57079632673412561417e+00, p2 = 6.07710050630396597660e-11, p3 = 2.02226624879595063154e-21;
	double n = round_even(x * 6.36619772367581382433e-01);
	double r = ((x - n * p1) - n * p2) - n * p3, r2 = r * r;
	double sn = 0.0, cs = 0.0;
	for (int k = 17; k >= 3; k -= 2) /* sin r = r (1 - r2/(2*3) (1 - r2/(4*5) ...)) */
		sn = (1.0 - sn) * r2 / ((k - 1) * k);
	sn = r * (1.0 - sn);
	for (int k = 18; k >= 2; k -= 2)
		cs = (1.0 - cs) * r2 / ((k - 1) * k);
	cs = 1.0 - cs;
	switch ((int64_t)n & 3) {
	case 0:
		*s = sn;
		*c = cs;
		break;
	case 1:
		*s = cs;
		*c = -sn;
		break;
	case 2:
		*s = -sn;
		*c = -cs;
		break;
	default:
		*s = -cs;
		*c = sn;
		break;
	}
}

void math_host_normalise(float *row, size_t n)
{
	double squares = 0;

	for (size_t i = 0; i < n; i++)
		squares += (double)row[i] * (double)row[i];
	const double length = math_host_sqrt(squares);
	for (size_t i = 0; i < n && length > 0; i++)
		row[i] = (float)((double)row[i] / length);
}
