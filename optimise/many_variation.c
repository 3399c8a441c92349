/* optimise/many_variation.c - simulated binary crossover and polynomial mutation, within bounds. */
#include <string.h>

#include "optimise/many_parts.h"

/* How far a child lies from the middle of its parents, in halves of their distance. room: how far the nearer bound is
 * from the nearer parent, in distances of the parents. */
static double spread(double u, double room, double eta)
{
	const double alpha = 2 - math_host_pow(1 + 2 * room, -(eta + 1));
	const double base = u * alpha <= 1 ? u * alpha : 1 / (2 - u * alpha);

	return math_host_pow(base, 1 / (eta + 1));
}

void many_cross(struct many *m, const double *p, const double *q, double *a, double *b)
{
	const size_t bytes = (size_t)m->n * sizeof *a;

	memcpy(a, p, bytes);
	memcpy(b, q, bytes);
	if (draw_uniform(&m->draw) > m->crossover)
		return;
	for (int i = 0; i < m->n; i++) {
		const bool crossed = draw_uniform(&m->draw) < 0.5;
		const double low = fmin(p[i], q[i]), high = fmax(p[i], q[i]), apart = high - low;
		if (!crossed || apart < 1e-14)
			continue;
		const double u = draw_uniform(&m->draw);
		const double below = spread(u, (low - m->lower[i]) / apart, m->crossover_eta);
		const double above = spread(u, (m->upper[i] - high) / apart, m->crossover_eta);
		double first = 0.5 * (low + high - below * apart), second = 0.5 * (low + high + above * apart);
		first = fmin(fmax(first, m->lower[i]), m->upper[i]);
		second = fmin(fmax(second, m->lower[i]), m->upper[i]);
		const bool swapped = draw_uniform(&m->draw) < 0.5;
		a[i] = swapped ? second : first;
		b[i] = swapped ? first : second;
	}
}

void many_mutate(struct many *m, double *x)
{
	const double eta = m->mutation_eta + 1;

	for (int i = 0; i < m->n; i++) {
		if (draw_uniform(&m->draw) >= m->mutation)
			continue;
		const double width = m->upper[i] - m->lower[i], u = draw_uniform(&m->draw);
		/* How far the bound in this direction is away. */
		const double room = u < 0.5 ? (x[i] - m->lower[i]) / width : (m->upper[i] - x[i]) / width;
		const double near = 1 - room > 0 ? math_host_pow(1 - room, eta) : 0, v = u < 0.5 ? 2 * u : 2 - 2 * u;
		const double step = 1 - math_host_pow(v + (1 - v) * near, 1 / eta);
		x[i] += (u < 0.5 ? -step : step) * width;
		x[i] = fmin(fmax(x[i], m->lower[i]), m->upper[i]);
	}
}
