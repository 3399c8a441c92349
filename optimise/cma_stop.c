/* optimise/cma_stop.c - when a run of CMA-ES is over, and what is said of a run. */
#include <stdlib.h>

#include "optimise/cma_parts.h"

static const double steps_min = 1e-11, values_min = 1e-11, growth_max = 1e4, condition_max = 1e14;

void cma_stop_note(struct cma *c)
{
	const size_t at = c->generation % CMA_HISTORY;

	c->best_history[at] = c->values[c->order[0]];
	c->median_history[at] = c->values[c->order[c->lambda / 2]];
}

/* Of the `n` generations that ended `back` generations ago, the values of a history. */
static void past(const struct cma *c, const double *history, uint64_t back, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = history[(c->generation - 1 - back - i) % CMA_HISTORY];
}

int cma_by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The values of the last generations' best, and of this population, lie within values_min. */
static bool values_equal(const struct cma *c)
{
	const uint64_t n = 10 + (uint64_t)(30 * (long)c->n / c->lambda);
	double min = c->values[c->order[0]], max = c->values[c->order[c->lambda - 1]];

	if (c->generation < n || n > CMA_HISTORY)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const double v = c->best_history[(c->generation - 1 - i) % CMA_HISTORY];
		min = fmin(min, v);
		max = fmax(max, v);
	}
	return max - min < values_min;
}

/* The median over the newer third of the generations looked at is no better than over the older third. */
static bool no_better(const struct cma *c, const double *history, uint64_t span)
{
	const size_t third = (size_t)(span * 3 / 10);
	double *sorted = malloc(third * sizeof *sorted);
	double median[2];

	if (!sorted)
		return false;
	for (int old = 0; old < 2; old++) {
		past(c, history, old ? span - third : 0, third, sorted);
		qsort(sorted, third, sizeof *sorted, cma_by_size);
		median[old] = sorted[third / 2];
	}
	free(sorted);
	return median[0] >= median[1];
}

static bool stagnates(const struct cma *c)
{
	uint64_t span = 120 + (uint64_t)(30 * (long)c->n / c->lambda) + c->generation / 5;

	if (span > CMA_HISTORY)
		span = CMA_HISTORY;
	/* Looked at now and then: the two medians take longer than a generation. */
	if (c->generation < span || c->generation % (1 + span / 20) != 0)
		return false;
	return no_better(c, c->best_history, span) && no_better(c, c->median_history, span);
}

static double condition_of(const struct cma *c, double *longest)
{
	double min = c->lengths[0], max = c->lengths[0];

	for (int i = 1; i < c->n; i++) {
		min = fmin(min, c->lengths[i]);
		max = fmax(max, c->lengths[i]);
	}
	*longest = max;
	return max / min * (max / min);
}

static bool steps_small(const struct cma *c)
{
	for (int i = 0; i < c->n; i++)
		if (c->sigma * fmax(fabs(c->p_c[i]), sqrt(cma_variance(c, i))) > steps_min * c->sigma0)
			return false;
	return true;
}

/* A fifth of a standard deviation in some coordinate, or a tenth along one axis (the next one each generation), leaves
 * the mean as it is. */
static bool no_effect(const struct cma *c)
{
	const int k = (int)(c->generation % (uint64_t)c->n);
	bool axis = true;

	for (int i = 0; i < c->n; i++) {
		if (c->mean[i] + 0.2 * c->sigma * sqrt(cma_variance(c, i)) == c->mean[i])
			return true;
		const double along = c->separable ? (i == k) * c->lengths[k] : c->lengths[k] * c->vectors[k * c->n + i];
		if (c->mean[i] + 0.1 * c->sigma * along != c->mean[i])
			axis = false;
	}
	return axis;
}

enum cma_stop cma_stop_now(const struct cma *c)
{
	double longest;
	const double condition = condition_of(c, &longest), n = c->n;

	if (!isfinite(c->sigma) || !isfinite(longest))
		return CMA_STOP_NUMBERS;
	if (condition > condition_max)
		return CMA_STOP_CONDITION;
	if (c->sigma * longest > growth_max * c->sigma0)
		return CMA_STOP_GROWTH;
	if (steps_small(c))
		return CMA_STOP_STEPS;
	if (values_equal(c))
		return CMA_STOP_VALUES;
	if (no_effect(c))
		return CMA_STOP_NO_EFFECT;
	if ((double)c->generation >= 100 + 150 * (n + 3) * (n + 3) / sqrt(c->lambda))
		return CMA_STOP_GENERATIONS;
	return stagnates(c) ? CMA_STOP_STAGNATION : CMA_RUNS;
}

struct cma_state cma_get_state(const struct cma *c)
{
	struct cma_state s = { .best = c->best,
		               .best_value = c->best_value,
		               .mean = c->shown_mean,
		               .sigma = c->sigma,
		               .generation = c->generation,
		               .evaluations = c->evaluations,
		               .stop = c->stop };
	double longest;

	s.condition = condition_of(c, &longest);
	for (int i = 0; i < c->n; i++)
		c->shown_mean[i] = c->mean[i];
	if (c->bounds == CMA_BOX)
		cma_bounds_fold(c, c->mean, c->shown_mean);
	else if (c->bounds == CMA_PENALTY)
		cma_bounds_nearest(c, c->mean, c->shown_mean);
	return s;
}

const char *cma_stop_name(enum cma_stop stop)
{
	static const char *const name[] = {
		[CMA_RUNS] = "it goes on",
		[CMA_STOP_VALUES] = "the best values of the last generations are equal",
		[CMA_STOP_STEPS] = "steps are smaller than 1e-11 of the first ones",
		[CMA_STOP_GROWTH] = "steps are 10 000 times as large as the first ones",
		[CMA_STOP_CONDITION] = "the condition number of the covariance exceeds 1e14",
		[CMA_STOP_NO_EFFECT] = "a step changes no coordinate",
		[CMA_STOP_STAGNATION] = "neither the best nor the median value improved for long",
		[CMA_STOP_GENERATIONS] = "it had all its generations",
		[CMA_STOP_NUMBERS] = "a number is not finite"
	};
	return name[stop];
}
