#include "bench/measurement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Of sorted values, between neighbours in proportion. */
static double quantile(const double *v, long n, double q)
{
	double at = q * (double)(n - 1);
	long i = (long)at;
	return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

static struct summary summarise(double *v, long n)
{
	struct summary s = { 0 };

	qsort(v, (size_t)n, sizeof *v, ascending);
	for (long i = 0; i < n; i++)
		s.mean += v[i] / (double)n;
	for (long i = 0; i < n && n > 1; i++)
		s.deviation += (v[i] - s.mean) * (v[i] - s.mean) / (double)(n - 1);
	s.deviation = sqrt(s.deviation);
	s.median = quantile(v, n, 0.5);
	s.min = v[0];
	s.greatest = v[n - 1];
	s.spread = s.median > 0 ? (quantile(v, n, 0.75) - quantile(v, n, 0.25)) / s.median : 0;
	return s;
}

void row_fill(struct row *r, struct series *s, double limit)
{
	if (r->work > 0) {
		double share[MAX_REPETITIONS];
		for (long i = 0; i < s->n; i++)
			share[i] = s->value[i] * r->work / s->limit[i];
		r->share = summarise(share, s->n).median;
		r->limit = summarise(s->limit, s->n);
	}
	r->repetitions = s->n;
	r->value = summarise(s->value, s->n);
	if (limit > 0 && r->value.spread > limit)
		snprintf(r->noisy, sizeof r->noisy,
		         "its repetitions spread %.0f %% between the quartiles, expected at most %.3g %%",
		         100 * r->value.spread, 100 * limit);
	else if (limit > 0 && r->limit.spread > limit)
		snprintf(r->noisy, sizeof r->noisy,
		         "%s around its repetitions spread %.0f %% between the quartiles, expected at most %.3g %%",
		         r->limit_name, 100 * r->limit.spread, 100 * limit);
}
