#include "optimise/hypervolume.h"

#include <stdlib.h>
#include <string.h>

/* By the last objective, then by the others. */
static int by_last_of_two(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return x[1] != y[1] ? (x[1] > y[1]) - (x[1] < y[1]) : (x[0] > y[0]) - (x[0] < y[0]);
}
static int by_last_of_three(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return x[2] != y[2] ? (x[2] > y[2]) - (x[2] < y[2]) : by_last_of_two(a, b);
}

/* The area that `count` pairs dominate, sorted by their second number. stride: numbers between them. */
static double area(const double *sorted, int count, int stride, const double *reference)
{
	double left = reference[0], sum = 0;

	/* From below: each pair that lies further left than all before adds a strip up to the reference. */
	for (int i = 0; i < count; i++) {
		const double *p = sorted + (long)i * stride;
		if (p[0] < left) {
			sum += (left - p[0]) * (reference[1] - p[1]);
			left = p[0];
		}
	}
	return sum;
}

/* Slices between the points' third numbers; each has the area of the points below it. */
static double slices(const double *sorted, int count, double *plane, const double *reference)
{
	double sum = 0;
	int n = 0;

	for (int i = 0; i < count; i++) {
		const double *p = sorted + 3L * i;
		int at = n++;
		for (; at > 0 && by_last_of_two(p, plane + 2L * (at - 1)) < 0; at--)
			memcpy(plane + 2L * at, plane + 2L * (at - 1), 2 * sizeof *plane);
		memcpy(plane + 2L * at, p, 2 * sizeof *plane);
		const double above = i + 1 < count ? p[5] : reference[2];
		if (above > p[2])
			sum += (above - p[2]) * area(plane, n, 2, reference);
	}
	return sum;
}

bool hypervolume(const double *points, int count, int m, const double *reference, double *volume)
{
	double *inside = malloc(((size_t)count + 1) * (size_t)(m + 2) * sizeof *inside);
	int n = 0;

	if (!inside)
		return false;
	for (int i = 0; i < count; i++) {
		bool below = true;
		for (int k = 0; k < m; k++)
			below = below && points[(long)i * m + k] < reference[k];
		if (below)
			memcpy(inside + (long)m * n++, points + (long)i * m, (size_t)m * sizeof *inside);
	}
	qsort(inside, (size_t)n, (size_t)m * sizeof *inside, m == 2 ? by_last_of_two : by_last_of_three);
	*volume = m == 2 ? area(inside, n, 2, reference) : slices(inside, n, inside + (long)m * count, reference);
	free(inside);
	return true;
}
