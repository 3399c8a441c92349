#include "optimise/problems.h"

#include <math.h>
#include <string.h>

#include "base/math_host.h"
#include "optimise/waves.h"

enum { ZDT1, ZDT2, ZDT3, ZDT4, ZDT6, DTLZ1, DTLZ2, DTLZ3, DTLZ4 };
static const struct {
	const char *name;
	int n; /* ZDT: dimensions; DTLZ: those beside the objectives' own */
} rows[] = { { "zdt1", 30 }, { "zdt2", 30 }, { "zdt3", 30 }, { "zdt4", 10 }, { "zdt6", 10 },
	     { "dtlz1", 4 }, { "dtlz2", 9 }, { "dtlz3", 9 }, { "dtlz4", 9 } };

bool problem_find(struct problem *p, const char *name, int n, int objectives, struct error *err)
{
	char quoted[60];

	for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		p->kind = i;
		p->objectives = objectives ? objectives : i < DTLZ1 ? 2 : 3;
		p->n = n ? n : rows[i].n + (i < DTLZ1 ? 0 : p->objectives);
		if (i < DTLZ1 && p->objectives != 2)
			return error_set(err, ERROR_ARGUMENT, "%s has 2 objectives, not %d", name, p->objectives);
		if (p->objectives < 2 || p->objectives > 16)
			return error_set(err, ERROR_ARGUMENT, "objectives: %d: expected 2 to 16", p->objectives);
		const int min = i < DTLZ1 ? 2 : p->objectives;
		if (p->n < min || p->n > PROBLEM_DIMENSION_MAX)
			return error_set(err, ERROR_ARGUMENT, "%s: dimension %d: expected %d to %d", name, p->n, min,
			                 PROBLEM_DIMENSION_MAX);
		return true;
	}
	return error_set(err, ERROR_ARGUMENT,
	                 "%s is no problem that is known: expected zdt1 to zdt4, zdt6, or dtlz1 to "
	                 "dtlz4",
	                 error_quote(quoted, sizeof quoted, name, strlen(name)));
}

void problem_bounds(const struct problem *p, double *lower, double *upper)
{
	for (int i = 0; i < p->n; i++) {
		lower[i] = p->kind == ZDT4 && i ? -5 : 0;
		upper[i] = p->kind == ZDT4 && i ? 5 : 1;
	}
}

static void zdt(const struct problem *p, const double *x, double *f)
{
	double sum = 0, first = x[0];

	for (int i = 1; i < p->n; i++)
		sum += p->kind == ZDT4 ? x[i] * x[i] - 10 * wave_cosine(4 * M_PI * x[i]) : x[i];
	double g = 1 + 9 * sum / (p->n - 1);
	if (p->kind == ZDT4) {
		g = 1 + 10 * (p->n - 1) + sum;
	} else if (p->kind == ZDT6) {
		const double wave = wave_sine(6 * M_PI * x[0]), cube = wave * wave * wave;
		first = 1 - math_host_exp(-4 * x[0]) * cube * cube;
		g = 1 + 9 * sqrt(sqrt(sum / (p->n - 1)));
	}
	const double ratio = first / g;
	const double shape = p->kind == ZDT2 || p->kind == ZDT6
	                             ? ratio * ratio
	                             : sqrt(ratio) + (p->kind == ZDT3 ? ratio * wave_sine(10 * M_PI * first) : 0);
	f[0] = first;
	f[1] = g * (1 - shape);
}

static void dtlz(const struct problem *p, const double *x, double *f)
{
	const int m = p->objectives, k = p->n - m + 1;
	double g = 0;

	for (int i = m - 1; i < p->n; i++) {
		const double d = x[i] - 0.5;
		g += d * d;
		if (p->kind == DTLZ1 || p->kind == DTLZ3)
			g -= wave_cosine(20 * M_PI * d);
	}
	if (p->kind == DTLZ1 || p->kind == DTLZ3)
		g = 100 * (k + g);
	for (int i = 0; i < m; i++) {
		f[i] = p->kind == DTLZ1 ? 0.5 * (1 + g) : 1 + g;
		for (int j = 0; j < m - i; j++) {
			const bool last = i > 0 && j == m - i - 1;
			const double y = p->kind == DTLZ4 ? (x[j] < 1e-3 ? 0 : math_host_pow(x[j], 100)) : x[j];
			if (j == m - 1)
				continue; /* the first objective has one factor fewer than coordinates here */
			if (p->kind == DTLZ1)
				f[i] *= last ? 1 - x[j] : x[j];
			else
				f[i] *= last ? wave_sine(M_PI / 2 * y) : wave_cosine(M_PI / 2 * y);
		}
	}
}

void problem_values(const struct problem *p, const double *x, double *f)
{
	if (p->kind < DTLZ1)
		zdt(p, x, f);
	else
		dtlz(p, x, f);
}
