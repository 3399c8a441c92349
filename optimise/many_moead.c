/* optimise/many_moead.c - MOEA/D: a subproblem for each direction, solved together with its neighbours. */
#include "optimise/many_parts.h"

/* The nearest directions of each, itself first. */
void many_set_neighbours(struct many *m)
{
	const int count = m->directions < MANY_NEIGHBOURS ? m->directions : MANY_NEIGHBOURS;

	for (int i = 0; i < m->directions; i++) {
		int *list = m->neighbour + (size_t)i * MANY_NEIGHBOURS, n = 0;
		double far[MANY_NEIGHBOURS];
		for (int j = 0; j < m->directions; j++) {
			double d = 0;
			for (int k = 0; k < m->m; k++) {
				const double apart = m->direction[(size_t)i * (size_t)m->m + (size_t)k] -
				                     m->direction[(size_t)j * (size_t)m->m + (size_t)k];
				d += apart * apart;
			}
			if (n == count && d >= far[n - 1])
				continue;
			int at = n < count ? n++ : n - 1;
			for (; at > 0 && far[at - 1] > d; at--) {
				far[at] = far[at - 1];
				list[at] = list[at - 1];
			}
			far[at] = d;
			list[at] = j;
		}
	}
}

/* Two different parents: of ten times, nine among the neighbours. */
void many_mate_neighbours(struct many *m, int subproblem, int *p, int *q)
{
	const int near = m->directions < MANY_NEIGHBOURS ? m->directions : MANY_NEIGHBOURS;
	const bool wide = draw_uniform(&m->draw) >= 0.9;
	const size_t count = (size_t)(wide ? m->size : near);
	const size_t a = draw_below(&m->draw, count), b = (a + 1 + draw_below(&m->draw, count - 1)) % count;
	const int *list = m->neighbour + (size_t)subproblem * MANY_NEIGHBOURS;

	m->wide[subproblem] = wide;
	*p = wide ? (int)a : list[a];
	*q = wide ? (int)b : list[b];
}

/* How far a point lies from the ideal one along a direction: with two objectives the greatest weighted distance
 * (Tchebycheff), else the distance along the direction and five times the distance from it. */
static double cost(const struct many *m, const double *f, int d)
{
	const double *w = m->direction + (size_t)d * (size_t)m->m;
	double max = 0, along = 0, length = 0, off = 0;

	if (m->m == 2) {
		for (int k = 0; k < 2; k++)
			max = fmax(max, fmax(w[k], 1e-4) * fabs(f[k] - m->ideal[k]));
		return max;
	}
	for (int k = 0; k < m->m; k++) {
		along += (f[k] - m->ideal[k]) * w[k];
		length += w[k] * w[k];
	}
	along = fabs(along) / sqrt(length);
	for (int k = 0; k < m->m; k++) {
		const double apart = f[k] - (m->ideal[k] + along * w[k] / sqrt(length));
		off += apart * apart;
	}
	const double value = along + 5 * sqrt(off);
	return isnan(value) ? (double)INFINITY : value;
}

/* Each offspring takes the place of those subproblems' points that it is better than, at most two of them. */
void many_replace_neighbours(struct many *m)
{
	enum { REPLACED_MAX = 2 };
	const int near = m->directions < MANY_NEIGHBOURS ? m->directions : MANY_NEIGHBOURS;
	const size_t n = (size_t)m->n, k = (size_t)m->m;

	for (int i = 0; i < m->size; i++) {
		const double *x = m->x + (size_t)(m->size + i) * n, *f = m->f + (size_t)(m->size + i) * k;
		const int count = m->wide[i] ? m->size : near;
		int replaced = 0, at = (int)draw_below(&m->draw, (size_t)count);
		for (int c = 0; c < count && replaced < REPLACED_MAX; c++, at = (at + 1) % count) {
			const int j = m->wide[i] ? at : m->neighbour[(size_t)i * MANY_NEIGHBOURS + (size_t)at];
			if (!(cost(m, f, j) < cost(m, m->f + (size_t)j * k, j)))
				continue;
			for (size_t t = 0; t < n; t++)
				m->x[(size_t)j * n + t] = x[t];
			for (size_t t = 0; t < k; t++)
				m->f[(size_t)j * k + t] = f[t];
			replaced++;
		}
	}
}
