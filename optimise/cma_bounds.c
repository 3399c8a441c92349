/* optimise/cma_bounds.c - how a run stays within bounds: by a fold of space, or by a penalty. */
#include <stdlib.h>

#include "optimise/cma_parts.h"

/* ---- the fold
 *
 * In the middle a coordinate is itself. Within `margin` of a bound a parabola meets the bound with slope 0, and from
 * there everything is mirrored. So the map is smooth, and every point inside is reached.
 */
struct fold {
	double low, high, below, above; /* bounds, and their margins; 0 where a bound is infinite */
};

static struct fold fold_of(const struct cma *c, int i)
{
	struct fold f = { c->lower[i], c->upper[i], 0, 0 };
	const double half = (f.high - f.low) / 2;

	if (isfinite(f.low))
		f.below = fmin(half, (1 + fabs(f.low)) / 20);
	if (isfinite(f.high))
		f.above = fmin(half, (1 + fabs(f.high)) / 20);
	return f;
}

static double fold_one(const struct fold *f, double x)
{
	const double low = f->low - f->below, high = f->high + f->above, width = high - low;

	if (x >= f->low + f->below && x <= f->high - f->above)
		return x; /* without rounding */
	if (isfinite(width)) {
		double t = fmod(x - low, 2 * width);
		if (t < 0)
			t += 2 * width;
		x = low + (t > width ? 2 * width - t : t);
	} else if (x < low) {
		x = 2 * low - x;
	} else if (x > high) {
		x = 2 * high - x;
	}
	if (f->below > 0 && x < f->low + f->below)
		x = f->low + (x - low) * (x - low) / (4 * f->below);
	else if (f->above > 0 && x > f->high - f->above)
		x = f->high - (x - high) * (x - high) / (4 * f->above);
	return fmin(fmax(x, f->low), f->high);
}

void cma_bounds_fold(const struct cma *c, const double *x, double *inside)
{
	for (int i = 0; i < c->n; i++) {
		const struct fold f = fold_of(c, i);
		inside[i] = fold_one(&f, x[i]);
	}
}

double cma_bounds_unfold(const struct cma *c, int i, double x)
{
	const struct fold f = fold_of(c, i);

	if (f.below > 0 && x < f.low + f.below)
		return f.low - f.below + 2 * sqrt(f.below * (x - f.low));
	if (f.above > 0 && x > f.high - f.above)
		return f.high + f.above - 2 * sqrt(f.above * (f.high - x));
	return x;
}

/* ---- the penalty */

void cma_bounds_nearest(const struct cma *c, const double *x, double *inside)
{
	for (int i = 0; i < c->n; i++)
		inside[i] = fmin(fmax(x[i], c->lower[i]), c->upper[i]);
}

/* The distance of x to the bounds of coordinate i. */
static double outside(const struct cma *c, int i, double x)
{
	return x < c->lower[i] ? c->lower[i] - x : x > c->upper[i] ? x - c->upper[i] : 0;
}

/* The median of how far the middle half of a generation's values lies apart, over the last generations. */
static double usual_spread(struct cma *c)
{
	const int max = 20 + 3 * c->n / c->lambda;
	const double spread = c->values[c->order[3 * c->lambda / 4]] - c->values[c->order[c->lambda / 4]];
	double *sorted = c->work;

	if (isfinite(spread) && spread > 0)
		c->spread[c->n_spread++ % max] = spread;
	const int n = c->n_spread < max ? c->n_spread : max;
	if (n == 0)
		return 0;
	for (int i = 0; i < n; i++)
		sorted[i] = c->spread[i];
	qsort(sorted, (size_t)n, sizeof *sorted, cma_by_size);
	return sorted[n / 2];
}

static void adapt(struct cma *c, double spread)
{
	const double n = c->n;
	double variance = 0;
	bool any = false;

	for (int i = 0; i < c->n; i++) {
		variance += cma_variance(c, i) / n;
		any = any || outside(c, i, c->mean[i]) > 0;
	}
	if (!any)
		return;
	if (!c->penalised && spread > 0) {
		c->penalised = true;
		for (int i = 0; i < c->n; i++)
			c->penalty[i] = 2 * spread / (c->sigma * c->sigma * variance);
	}
	for (int i = 0; i < c->n; i++) {
		const double far = 3 * c->sigma * sqrt(cma_variance(c, i)) * fmax(1, sqrt(n) / c->mu_eff);
		if (outside(c, i, c->mean[i]) > far)
			c->penalty[i] *= math_host_exp(0.09531017980432493 * fmin(1, c->mu_eff / (10 * n))); /* 1.1^ */
	}
}

void cma_bounds_penalise(struct cma *c)
{
	const int n = c->n;
	double mean_log = 0;

	adapt(c, usual_spread(c));
	for (int i = 0; i < n; i++)
		mean_log += math_host_log(cma_variance(c, i)) / n;
	for (int k = 0; k < c->lambda; k++) {
		const double *step = c->steps + (size_t)k * (size_t)n;
		double cost = 0;
		for (int i = 0; i < n; i++) {
			const double far = outside(c, i, c->mean[i] + c->sigma * step[i]);
			if (far > 0)
				cost += c->penalty[i] * far * far /
				        math_host_exp(0.9 * (math_host_log(cma_variance(c, i)) - mean_log));
		}
		c->values[k] += cost / n;
	}
}
