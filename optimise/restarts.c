/* optimise/restarts.c - which run of CMA-ES follows which. */
#include <stdlib.h>
#include <string.h>

#include "optimise/restarts_parts.h"

bool restarts_allocate(struct restarts *r, struct error *err)
{
	const size_t n = (size_t)r->n;
	double **all[] = { &r->start, &r->start_low, &r->start_high, &r->best, &r->lower, &r->upper };
	const size_t count = r->bounds == CMA_FREE ? 4 : 6;

	for (size_t i = 0; i < count; i++)
		if (!(*all[i] = calloc(n ? n : 1, sizeof(double))))
			return error_set(err, ERROR_MEMORY, "out of memory for a point in %d dimensions", r->n);
	return true;
}

void restarts_close(struct restarts *r)
{
	if (!r)
		return;
	cma_close(r->cma);
	free(r->start);
	free(r->start_low);
	free(r->start_high);
	free(r->best);
	free(r->lower);
	free(r->upper);
	free(r);
}

/* Opens a run of this population and step size. */
static bool begin(struct restarts *r, int population, double sigma, struct error *err)
{
	if (r->drawn)
		for (int i = 0; i < r->n; i++)
			r->start[i] = r->start_low[i] + draw_uniform(&r->draw) * (r->start_high[i] - r->start_low[i]);
	const struct cma_options o = {
		.n = r->n,
		.population = population,
		.separable = r->separable,
		.passive = r->passive,
		.sigma = sigma,
		.start = r->start,
		.lower = r->lower,
		.upper = r->upper,
		.bounds = r->bounds,
		.seed = draw_bits(&r->draw)
	};
	struct cma *cma = cma_open(&o, err);

	if (!cma)
		return false;
	cma_close(r->cma);
	r->cma = cma;
	return true;
}

struct restarts *restarts_open(const struct restarts_options *o, struct error *err)
{
	const int max = o->cma.separable ? CMA_SEPARABLE_MAX : CMA_DIMENSION_MAX;
	struct restarts *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	*r = (struct restarts){
		.kind = o->kind,
		.n = o->cma.n < 1 || o->cma.n > max ? 0 : o->cma.n,
		.runs = o->runs,
		.large_runs = 1,
		.separable = o->cma.separable,
		.passive = o->cma.passive,
		.drawn = !o->cma.start,
		.bounds = o->cma.bounds,
		.sigma = o->cma.sigma,
		.draw = { .seed = o->cma.seed },
		.best_value = (double)INFINITY
	};
	if (!r->n)
		error_set(err, ERROR_ARGUMENT, "dimension %d: expected 1 to %d", o->cma.n, max);
	else if (r->drawn && (!o->start_low || !o->start_high))
		error_set(err, ERROR_ARGUMENT, "start: a point is missing, or a region to draw it from");
	else if (r->bounds != CMA_FREE && (!o->cma.lower || !o->cma.upper))
		error_set(err, ERROR_ARGUMENT, "bounds: expected both of lower and upper");
	else if (restarts_allocate(r, err)) {
		const size_t bytes = (size_t)r->n * sizeof(double);
		if (r->drawn) {
			memcpy(r->start_low, o->start_low, bytes);
			memcpy(r->start_high, o->start_high, bytes);
		} else {
			memcpy(r->start, o->cma.start, bytes);
		}
		if (r->bounds != CMA_FREE) {
			memcpy(r->lower, o->cma.lower, bytes);
			memcpy(r->upper, o->cma.upper, bytes);
		}
		if (begin(r, o->cma.population, r->sigma, err)) {
			memcpy(r->best, r->start, bytes);
			r->first_population = cma_population(r->cma);
			return r;
		}
	}
	restarts_close(r);
	return NULL;
}

int restarts_dimension(const struct restarts *r) { return r->n; }
int restarts_population(const struct restarts *r) { return cma_population(r->cma); }

const double *restarts_ask(struct restarts *r, int *count)
{
	*count = cma_population(r->cma);
	return cma_ask(r->cma);
}

/* The run is over: what it spent is booked, and the next one begins. */
static bool next(struct restarts *r, const struct cma_state *s, struct error *err)
{
	const uint64_t spent = s->evaluations;
	double sigma = r->sigma;
	int population = r->first_population;

	r->last = s->stop;
	*(r->small ? &r->spent_small : &r->spent_large) += spent;
	if (r->kind == RESTARTS_NONE || r->large_runs >= r->runs) {
		r->over = true;
		return true;
	}
	const bool small = r->kind == RESTARTS_BIPOP && r->run > 0 && r->spent_small < r->spent_large;
	const double large = ldexp(r->first_population, r->kind == RESTARTS_SAME ? 0 : r->large_runs - small);
	if (large > CMA_POPULATION_MAX) {
		r->over = true;
		return true;
	}
	if (small) {
		const double u = draw_uniform(&r->draw), v = draw_uniform(&r->draw);
		population = (int)floor(r->first_population * math_host_pow(0.5 * large / r->first_population, u * u));
		sigma *= math_host_exp(-2 * v * 2.302585092994045684); /* 10^-2v */
	} else {
		population = (int)large;
		r->large_runs++;
	}
	if (population < r->first_population)
		population = r->first_population;
	if (!r->small)
		r->last_large = spent;
	r->limit = small ? r->last_large / 2 : 0;
	r->before += spent;
	r->generations_before += s->generation;
	r->small = small;
	r->run++;
	return begin(r, population, sigma, err);
}

bool restarts_tell(struct restarts *r, const double *values, struct error *err)
{
	cma_tell(r->cma, values);
	const struct cma_state s = cma_get_state(r->cma);

	if (s.best_value < r->best_value) {
		r->best_value = s.best_value;
		memcpy(r->best, s.best, (size_t)r->n * sizeof(double));
	}
	if (s.stop == CMA_RUNS && (!r->limit || s.evaluations < r->limit))
		return true;
	return next(r, &s, err);
}

struct restarts_state restarts_get_state(const struct restarts *r)
{
	const struct cma_state now = cma_get_state(r->cma);

	return (struct restarts_state){
		.best = r->best,
		.best_value = r->best_value,
		.evaluations = r->before + now.evaluations,
		.generations = r->generations_before + now.generation,
		.run = r->run,
		.small = r->small,
		.over = r->over,
		.last = r->last,
		.now = now
	};
}
