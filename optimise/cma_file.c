/* optimise/cma_file.c - runs of CMA-ES as text, and back. */
#include <stdlib.h>

#include "optimise/cma_parts.h"

static size_t remembered(const struct cma *c)
{
	return c->generation < CMA_HISTORY ? (size_t)c->generation : CMA_HISTORY;
}
static int spread_room(const struct cma *c) { return 20 + 3 * c->n / c->lambda; }

void cma_save(const struct cma *c, FILE *f)
{
	const size_t n = (size_t)c->n, square = c->separable ? n : n * n;

	state_write_count(f, "dimension", n);
	state_write_count(f, "population", (uint64_t)c->lambda);
	state_write_count(f, "separable", c->separable);
	state_write_count(f, "passive", c->passive);
	state_write_count(f, "bounds", c->bounds);
	state_write_draw(f, &c->draw);
	state_write_count(f, "generation", c->generation);
	state_write_count(f, "evaluations", c->evaluations);
	state_write_count(f, "decomposed", c->decomposed);
	state_write_count(f, "stop", c->stop);
	state_write_reals(f, "sigma", (const double[]){ c->sigma, c->sigma0 }, 2);
	state_write_reals(f, "mean", c->mean, n);
	state_write_reals(f, "p-sigma", c->p_sigma, n);
	state_write_reals(f, "p-c", c->p_c, n);
	state_write_reals(f, "c", c->c, square);
	state_write_reals(f, "lengths", c->lengths, n);
	if (!c->separable)
		state_write_reals(f, "vectors", c->vectors, square);
	state_write_reals(f, "best", c->best, n);
	state_write_reals(f, "best-value", &c->best_value, 1);
	if (remembered(c)) {
		state_write_reals(f, "best-history", c->best_history, remembered(c));
		state_write_reals(f, "median-history", c->median_history, remembered(c));
	}
	if (c->bounds != CMA_FREE) {
		state_write_reals(f, "lower", c->lower, n);
		state_write_reals(f, "upper", c->upper, n);
	}
	if (c->bounds == CMA_PENALTY) {
		state_write_count(f, "penalised", c->penalised);
		state_write_count(f, "spreads", (uint64_t)c->n_spread);
		state_write_reals(f, "penalty", c->penalty, n);
		state_write_reals(f, "spread", c->spread, (size_t)spread_room(c));
	}
}

static void read_bounds(struct cma *c, struct state_reader *r)
{
	const size_t n = (size_t)c->n;

	if (c->bounds != CMA_FREE) {
		state_read_reals(r, "lower", c->lower, n, false);
		state_read_reals(r, "upper", c->upper, n, false);
	}
	if (c->bounds == CMA_PENALTY) {
		c->penalised = state_read_count(r, "penalised", 0, 1);
		c->n_spread = (int)state_read_count(r, "spreads", 0, INT32_MAX);
		state_read_reals(r, "penalty", c->penalty, n, true);
		state_read_reals(r, "spread", c->spread, (size_t)spread_room(c), true);
	}
}

static void read_learnt(struct cma *c, struct state_reader *r)
{
	const size_t n = (size_t)c->n, square = c->separable ? n : n * n;
	double sigma[2];

	state_read_reals(r, "sigma", sigma, 2, false);
	c->sigma = sigma[0];
	c->sigma0 = sigma[1];
	state_read_reals(r, "mean", c->mean, n, false);
	state_read_reals(r, "p-sigma", c->p_sigma, n, false);
	state_read_reals(r, "p-c", c->p_c, n, false);
	state_read_reals(r, "c", c->c, square, false);
	state_read_reals(r, "lengths", c->lengths, n, false);
	if (!c->separable)
		state_read_reals(r, "vectors", c->vectors, square, false);
	state_read_reals(r, "best", c->best, n, true);
	state_read_reals(r, "best-value", &c->best_value, 1, false);
	if (remembered(c)) {
		state_read_reals(r, "best-history", c->best_history, remembered(c), false);
		state_read_reals(r, "median-history", c->median_history, remembered(c), false);
	}
	read_bounds(c, r);
}

struct cma *cma_load(struct state_reader *r)
{
	struct cma *c = calloc(1, sizeof *c);

	if (!c) {
		r->failed = true;
		error_set(r->err, ERROR_MEMORY, "out of memory for CMA-ES");
		return NULL;
	}
	c->n = (int)state_read_count(r, "dimension", 1, CMA_SEPARABLE_MAX);
	c->lambda = (int)state_read_count(r, "population", 4, CMA_POPULATION_MAX);
	c->separable = state_read_count(r, "separable", c->n > CMA_DIMENSION_MAX, 1);
	c->passive = state_read_count(r, "passive", 0, 1);
	c->bounds = (enum cma_bounds)state_read_count(r, "bounds", CMA_FREE, CMA_PENALTY);
	c->draw = state_read_draw(r);
	c->generation = state_read_count(r, "generation", 0, INT64_MAX / CMA_POPULATION_MAX);
	c->evaluations = state_read_count(r, "evaluations", 0, INT64_MAX);
	c->decomposed = state_read_count(r, "decomposed", 0, c->evaluations);
	c->stop = (enum cma_stop)state_read_count(r, "stop", CMA_RUNS, CMA_STOP_NUMBERS);
	if (!r->failed && !cma_allocate(c, c->bounds != CMA_FREE, r->err))
		r->failed = true;
	if (!r->failed) {
		read_learnt(c, r);
		cma_constants(c);
	}
	if (!r->failed)
		return c;
	cma_close(c);
	return NULL;
}
