/* optimise/many_nsga3.c - NSGA-III: of the front that does not fit whole, those go on that fill niches around
 * directions.
 */
#include <stdlib.h>

#include "optimise/many_parts.h"

/* Extreme points: of each axis, the one whose other objectives are least (an achievement function). The best so far are
 * kept. */
static void find_extremes(struct many *m, int first_front)
{
	for (int axis = 0; axis < m->m; axis++) {
		double *extreme = m->extreme + (size_t)axis * (size_t)m->m;
		const double *best = NULL;
		double min = (double)INFINITY;
		for (int i = -1; i < 2 * m->size; i++) {
			if (i >= 0 && m->rank[i] != first_front)
				continue;
			const double *f = i < 0 ? extreme : m->f + (size_t)i * (size_t)m->m;
			double max = 0;
			for (int k = 0; k < m->m; k++)
				max = fmax(max, (f[k] - m->ideal[k]) * (k == axis ? 1 : 1e6));
			if (max < min) {
				min = max;
				best = f;
			}
		}
		if (best && best != extreme)
			for (int k = 0; k < m->m; k++)
				extreme[k] = best[k];
	}
}

/* The plane through the extreme points meets the axes at `intercept`, from the ideal point. False: it does not. */
static bool find_intercepts(const struct many *m, double *intercept)
{
	const int n = m->m;
	double a[MANY_OBJECTIVES_MAX][MANY_OBJECTIVES_MAX + 1];

	for (int r = 0; r < n; r++) {
		for (int k = 0; k < n; k++)
			a[r][k] = m->extreme[(size_t)r * (size_t)n + (size_t)k] - m->ideal[k];
		a[r][n] = 1;
	}
	for (int c = 0; c < n; c++) {
		int pivot = c;
		for (int r = c + 1; r < n; r++)
			if (fabs(a[r][c]) > fabs(a[pivot][c]))
				pivot = r;
		if (!(fabs(a[pivot][c]) > 1e-12) || !isfinite(a[pivot][c]))
			return false;
		for (int k = 0; k <= n; k++) {
			const double t = a[c][k];
			a[c][k] = a[pivot][k];
			a[pivot][k] = t;
		}
		for (int r = 0; r < n; r++)
			if (r != c) {
				const double factor = a[r][c] / a[c][c];
				for (int k = c; k <= n; k++)
					a[r][k] -= factor * a[c][k];
			}
	}
	for (int k = 0; k < n; k++) {
		intercept[k] = a[k][k] / a[k][n];
		if (!(intercept[k] > 1e-6) || !isfinite(intercept[k]))
			return false;
	}
	return true;
}

/* How wide each objective is: by the plane, or by the worst of the first front. */
static void find_widths(struct many *m, double *width)
{
	double worst[MANY_OBJECTIVES_MAX], everywhere[MANY_OBJECTIVES_MAX];

	for (int k = 0; k < m->m; k++)
		worst[k] = everywhere[k] = -(double)INFINITY;
	for (int i = 0; i < 2 * m->size; i++)
		for (int k = 0; k < m->m; k++) {
			const double f = m->f[(size_t)i * (size_t)m->m + (size_t)k];
			if (isfinite(f))
				everywhere[k] = fmax(everywhere[k], f);
			if (isfinite(f) && m->rank[i] == 0)
				worst[k] = fmax(worst[k], f);
		}
	const bool plane = find_intercepts(m, width);
	for (int k = 0; k < m->m; k++) {
		if (!plane)
			width[k] = worst[k] - m->ideal[k];
		else
			width[k] = fmin(width[k], everywhere[k] - m->ideal[k]);
		if (!(width[k] > 1e-12) || !isfinite(width[k]))
			width[k] = everywhere[k] - m->ideal[k] > 1e-12 ? everywhere[k] - m->ideal[k] : 1;
	}
}

struct niche {
	int direction;
	double far; /* the distance of a point from the line along its direction */
};

static struct niche nearest(const struct many *m, const double *f, const double *width)
{
	double g[MANY_OBJECTIVES_MAX], squares = 0;
	struct niche best = { 0, (double)INFINITY };

	for (int k = 0; k < m->m; k++) {
		g[k] = fmin((f[k] - m->ideal[k]) / width[k], 1e100);
		squares += g[k] * g[k];
	}
	for (int d = 0; d < m->directions; d++) {
		const double *w = m->direction + (size_t)d * (size_t)m->m;
		double along = 0, length = 0;
		for (int k = 0; k < m->m; k++) {
			along += g[k] * w[k];
			length += w[k] * w[k];
		}
		const double far = fmax(0, squares - along * along / length);
		if (far < best.far)
			best = (struct niche){ d, far };
	}
	return best;
}

/* The number of whole fronts that fit; *taken: how many points these are. */
static int whole_fronts(const struct many *m, int *taken)
{
	int front = 0;

	for (*taken = 0;; front++) {
		int more = 0;
		for (int i = 0; i < 2 * m->size; i++)
			more += m->rank[i] == front;
		if (*taken + more > m->size || more == 0)
			return front;
		*taken += more;
		if (*taken == m->size)
			return front + 1;
	}
}

/* Fills m->list from `taken` on from the points of `front`, niche by niche. */
static void fill(struct many *m, int front, int taken, const struct niche *niche, int *count, bool *closed)
{
	while (taken < m->size) {
		int min = 2 * m->size + 1, ties = 0, chosen = -1;
		for (int d = 0; d < m->directions; d++)
			if (!closed[d] && count[d] <= min) {
				ties = count[d] < min ? 1 : ties + 1;
				min = count[d];
			}
		int pick = (int)draw_below(&m->draw, (size_t)ties), d = 0;
		for (; closed[d] || count[d] != min || pick-- > 0; d++)
			;
		int of_it = 0;
		for (int i = 0; i < 2 * m->size; i++)
			if (m->rank[i] == front && niche[i].direction == d) {
				of_it++;
				if (chosen < 0 || (min == 0 && niche[i].far < niche[chosen].far))
					chosen = i;
			}
		if (chosen < 0) {
			closed[d] = true;
			continue;
		}
		if (min > 0) { /* any of them */
			int number = (int)draw_below(&m->draw, (size_t)of_it);
			for (chosen = 0; m->rank[chosen] != front || niche[chosen].direction != d || number-- > 0;
			     chosen++)
				;
		}
		m->list[taken++] = chosen;
		m->rank[chosen] = -1; /* taken */
		count[d]++;
	}
}

bool many_select_niches(struct many *m, struct error *err)
{
	struct niche *niche = calloc(2 * (size_t)m->size, sizeof *niche);
	int *count = calloc((size_t)m->directions, sizeof *count);
	bool *closed = calloc((size_t)m->directions, sizeof *closed);
	double width[MANY_OBJECTIVES_MAX];
	int taken = 0;

	if (niche && count && closed) {
		find_extremes(m, 0);
		find_widths(m, width);
		const int front = whole_fronts(m, &taken);
		int at = 0;
		for (int i = 0; i < 2 * m->size; i++)
			if (m->rank[i] <= front) {
				niche[i] = nearest(m, m->f + (size_t)i * (size_t)m->m, width);
				if (m->rank[i] < front) {
					m->list[at++] = i;
					count[niche[i].direction]++;
				}
			}
		fill(m, front, taken, niche, count, closed);
	}
	const bool done = niche && count && closed;
	free(niche);
	free(count);
	free(closed);
	return done || error_set(err, ERROR_MEMORY, "out of memory for %d niches", m->directions);
}
