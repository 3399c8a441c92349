/* optimise/bbob_functions.c - the benchmark's functions, each above its least value. */
#include <math.h>
#include <string.h>

#include "base/math_host.h"
#include "optimise/bbob_parts.h"
#include "optimise/waves.h"

/* ---- transformations */

/* out = v M */
static void times(const struct bbob *b, const double *v, const double *m, double *out)
{
	const int n = b->n;

	memset(out, 0, (size_t)n * sizeof *out);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			out[j] += v[i] * m[i * n + j];
}

/* out = x - optimum */
static void shift(const struct bbob *b, const double *x, double *out)
{
	for (int i = 0; i < b->n; i++)
		out[i] = x[i] - b->optimum[i];
}

/* Breaks symmetry by smooth waves. Below the least normal number it is left out: the waves are gone there. */
static double waves(double x)
{
	if (fabs(x) < 0x1p-1000 || !isfinite(x))
		return x;
	const double l = 10 * math_host_log(fabs(x));
	const double wave = x > 0 ? wave_sine(l) + wave_sine(0.79 * l) : wave_sine(0.55 * l) + wave_sine(0.31 * l);
	const double y = math_host_exp(0.1 * (l + 0.49 * wave));
	return x > 0 ? y : -y;
}
static void all_waves(const struct bbob *b, double *x)
{
	for (int i = 0; i < b->n; i++)
		x[i] = waves(x[i]);
}

/* Stretches what is positive, later coordinates more. */
static void skew(const struct bbob *b, double *x, double beta)
{
	for (int i = 0; i < b->n; i++)
		if (x[i] >= 0x1p-1000)
			x[i] = math_host_pow(x[i], 1 + beta * i / (b->n - 1) * sqrt(x[i]));
}

static double squares(const double *x, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sum;
}

/* 10 (n - sum cos 2 pi x) */
static double ripples(const double *x, int n)
{
	double sum = n;

	for (int i = 0; i < n; i++)
		sum -= wave_cosine(2 * M_PI * x[i]);
	return 10 * sum;
}

/* ---- the functions */

#define FUNCTION(name) double bbob_##name(const struct bbob *b, const double *x, double *work)

FUNCTION(sphere)
{
	shift(b, x, work);
	return squares(work, b->n);
}

static double graded_squares(const struct bbob *b, const double *x)
{
	double sum = 0;

	for (int i = 0; i < b->n; i++)
		sum += b->graded[i] * x[i] * x[i];
	return sum;
}

FUNCTION(ellipsoid)
{
	shift(b, x, work);
	all_waves(b, work);
	return graded_squares(b, work);
}

FUNCTION(rastrigin)
{
	shift(b, x, work);
	all_waves(b, work);
	skew(b, work, 0.2);
	for (int i = 0; i < b->n; i++)
		work[i] *= b->graded[i];
	return ripples(work, b->n) + squares(work, b->n);
}

FUNCTION(bueche)
{
	shift(b, x, work);
	all_waves(b, work);
	for (int i = 0; i < b->n; i++)
		work[i] *= b->graded[i] * (i % 2 == 0 && work[i] > 0 ? 10 : 1);
	return ripples(work, b->n) + squares(work, b->n);
}

FUNCTION(slope)
{
	double sum = 0;

	for (int i = 0; i < b->n; i++) { /* beyond the optimum it is as there */
		const double corner = b->optimum[i], at = x[i] * corner > 25 ? corner : x[i];
		sum += b->graded[i] * (5 - (corner > 0 ? at : -at));
	}
	return sum;
}

FUNCTION(sector)
{
	double *y = work + b->n;

	shift(b, x, work);
	times(b, work, b->linear, y);
	for (int i = 0; i < b->n; i++)
		if (y[i] * b->optimum[i] > 0)
			y[i] *= 100;
	const double value = waves(squares(y, b->n));
	return value < 0x1p-1000 ? 0 : math_host_pow(value, 0.9);
}

FUNCTION(steps)
{
	double *y = work + b->n;

	shift(b, x, work);
	times(b, work, b->linear, y);
	const double first = fabs(y[0]);
	for (int i = 0; i < b->n; i++)
		y[i] = fabs(y[i]) > 0.5 ? rint(y[i]) : rint(10 * y[i]) / 10;
	times(b, y, b->rotation, work);
	return 0.1 * fmax(1e-4 * first, graded_squares(b, work));
}

static double valley(const double *x, int n)
{
	double sum = 0;

	for (int i = 0; i + 1 < n; i++) {
		const double bend = x[i] * x[i] - x[i + 1], along = x[i] - 1;
		sum += 100 * bend * bend + along * along;
	}
	return sum;
}

FUNCTION(rosenbrock)
{
	const double scale = fmax(1, sqrt(b->n) / 8);

	shift(b, x, work);
	for (int i = 0; i < b->n; i++)
		work[i] = scale * work[i] + 1;
	return valley(work, b->n);
}

FUNCTION(rosenbrock_rotated)
{
	times(b, x, b->linear, work);
	for (int i = 0; i < b->n; i++)
		work[i] += 0.5;
	return valley(work, b->n);
}

FUNCTION(ellipsoid_rotated)
{
	double *y = work + b->n;

	shift(b, x, work);
	times(b, work, b->rotation, y);
	all_waves(b, y);
	return graded_squares(b, y);
}

FUNCTION(discus)
{
	double *y = work + b->n;

	shift(b, x, work);
	times(b, work, b->rotation, y);
	all_waves(b, y);
	return squares(y, b->n) + (1e6 - 1) * y[0] * y[0];
}

FUNCTION(cigar)
{
	double *y = work + b->n;

	shift(b, x, work);
	times(b, work, b->rotation, y);
	skew(b, y, 0.5);
	times(b, y, b->rotation, work);
	return work[0] * work[0] + 1e6 * squares(work + 1, b->n - 1);
}

FUNCTION(ridge)
{
	double *y = work + b->n;

	shift(b, x, work);
	times(b, work, b->linear, y);
	return y[0] * y[0] + 100 * sqrt(squares(y + 1, b->n - 1));
}

FUNCTION(powers)
{
	double *y = work + b->n, sum = 0;

	shift(b, x, work);
	times(b, work, b->rotation, y);
	for (int i = 0; i < b->n; i++)
		if (fabs(y[i]) >= 0x1p-300)
			sum += math_host_pow(fabs(y[i]), 2 + 4.0 * i / (b->n - 1));
	return sqrt(sum);
}

FUNCTION(rastrigin_rotated)
{
	double *y = work + b->n;

	shift(b, x, work);
	times(b, work, b->rotation, y);
	all_waves(b, y);
	skew(b, y, 0.2);
	times(b, y, b->linear, work);
	return ripples(work, b->n) + squares(work, b->n);
}

FUNCTION(weierstrass)
{
	double *y = work + b->n, sum = 0;

	shift(b, x, work);
	times(b, work, b->rotation, y);
	all_waves(b, y);
	times(b, y, b->linear, work);
	for (int i = 0; i < b->n; i++) {
		double height = 1, frequency = 2 * M_PI;
		for (int k = 0; k < 12; k++) { /* -cos(frequency / 2) is 1 */
			sum += height * (wave_cosine(frequency * (work[i] + 0.5)) + 1);
			height /= 2;
			frequency *= 3;
		}
	}
	sum /= b->n;
	return 10 * sum * sum * sum;
}

FUNCTION(schaffers)
{
	double *y = work + b->n, sum = 0;

	shift(b, x, work);
	times(b, work, b->rotation, y);
	skew(b, y, 0.5);
	times(b, y, b->linear, work);
	for (int i = 0; i + 1 < b->n; i++) {
		const double s = work[i] * work[i] + work[i + 1] * work[i + 1];
		const double wave = s < 0x1p-1000 ? 0 : wave_sine(50 * math_host_pow(s, 0.1));
		sum += sqrt(sqrt(s)) * (wave * wave + 1);
	}
	sum /= b->n - 1;
	return sum * sum;
}

FUNCTION(griewank)
{
	double sum = 0;

	times(b, x, b->linear, work);
	for (int i = 0; i < b->n; i++)
		work[i] += 0.5;
	for (int i = 0; i + 1 < b->n; i++) {
		const double s = valley(work + i, 2);
		sum += s / 4000 - wave_cosine(s);
	}
	return 10 + 10 * sum / (b->n - 1);
}

FUNCTION(schwefel)
{
	double penalty = 0, sum = 0, before = 0;

	for (int i = 0; i < b->n; i++) {
		const double corner = 2 * fabs(b->optimum[i]);
		double y = 2 * (b->optimum[i] > 0 ? x[i] : -x[i]);
		const double own = y;
		if (i)
			y += 0.25 * before;
		before = own - corner;
		y = 100 * (b->graded[i] * (y - corner) + corner);
		const double out = fmax(0, fabs(y) - 500);
		penalty += out * out;
		sum += y * wave_sine(sqrt(fabs(y)));
	}
	return 0.01 * (418.9828872724339 - sum / b->n) + 0.01 * penalty;
}

FUNCTION(gallagher)
{
	const int n = b->n;
	double highest = 0;

	times(b, x, b->rotation, work);
	for (int p = 0; p < b->row->peaks; p++) {
		double sum = 0;
		for (int i = 0; i < n; i++) {
			const double d = work[i] - b->peaks[p * n + i];
			sum += b->scales[p * n + i] * d * d;
		}
		highest = fmax(highest, b->heights[p] * math_host_exp(-0.5 / n * sum));
	}
	const double value = waves(10 - highest);
	return value * value;
}

FUNCTION(katsuura)
{
	const double n = b->n;
	double *y = work + b->n, product = 1;

	shift(b, x, work);
	times(b, work, b->linear, y);
	for (int i = 0; i < b->n; i++) {
		double sum = 0, power = 2;
		for (int k = 0; k < 32; k++) {
			sum += fabs(power * y[i] - rint(power * y[i])) / power;
			power *= 2;
		}
		product *= math_host_pow(1 + (i + 1) * sum, 10 / math_host_pow(n, 1.2));
	}
	return 10 / (n * n) * (product - 1);
}

FUNCTION(lunacek)
{
	const int n = b->n;
	const double near = 2.5, s = 1 - 0.5 / (sqrt(n + 20) - 4.1), far = -sqrt((near * near - 1) / s);
	double *y = work + n, first = 0, second = n;

	for (int i = 0; i < n; i++) {
		const double at = (b->optimum[i] > 0 ? 2 : -2) * x[i];
		first += (at - near) * (at - near);
		second += s * (at - far) * (at - far);
		work[i] = at - near;
	}
	times(b, work, b->linear, y);
	return fmin(first, second) + ripples(y, n);
}

double bbob_value(const struct bbob *b, const double *x)
{
	double work[2 * BBOB_DIMENSION_MAX], outside = 0;
	const double factor = b->row->penalty < 0 ? 10.0 / b->n : b->row->penalty;

	for (int i = 0; i < b->n; i++) {
		const double out = fmax(0, fabs(x[i]) - 5);
		outside += out * out;
	}
	return b->row->value(b, x, work) + b->min + factor * outside;
}
