/* optimise/cma.h - CMA-ES: one run of the evolution strategy with adapted covariance matrix.
 *
 * Owns: a normal distribution over candidates, and what moves it. cma_ask() draws a population, the caller computes the
 * value of each candidate, cma_tell() learns from their order. Everything is in double precision and in a fixed order;
 * random numbers come by counter. So a run has the same bits on every machine.
 *
 * Constants and equations: N. Hansen, The CMA Evolution Strategy: A Tutorial (arXiv 1604.00772), with negative weights
 * (active); separable: R. Ros and N. Hansen, PPSN 2008; the penalty of bounds: N. Hansen et al., IEEE TEC 13(1), 2009.
 */
#ifndef OPTIMISE_CMA_H
#define OPTIMISE_CMA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "optimise/draw.h"
#include "optimise/state_text.h"

enum { CMA_DIMENSION_MAX = 1000, CMA_SEPARABLE_MAX = 100000, CMA_POPULATION_MAX = 1000000 };

/* How bounds are kept. BOX: what lies outside is folded back smoothly before it is evaluated, and the fold is part of
 * the function. PENALTY: the nearest point inside is evaluated, and the distance to it costs. */
enum cma_bounds { CMA_FREE, CMA_BOX, CMA_PENALTY };

struct cma_options {
	int n;                       /* dimension */
	int population;              /* 0: 4 + floor(3 ln n) */
	bool separable;              /* a diagonal matrix */
	bool passive;                /* no negative weights */
	double sigma;                /* first step size, > 0 */
	const double *start;         /* n numbers: the first mean; copied */
	const double *lower, *upper; /* n numbers each, or NULL: unbounded; copied */
	enum cma_bounds bounds;
	uint64_t seed;
};

/* Why a run is over. */
enum cma_stop {
	CMA_RUNS,
	CMA_STOP_VALUES,     /* the best values of many generations differ by less than 1e-11 */
	CMA_STOP_STEPS,      /* steps became smaller than 1e-11 of the first step size */
	CMA_STOP_GROWTH,     /* steps became 1e4 times as large as the first ones */
	CMA_STOP_CONDITION,  /* the condition number of the matrix exceeds 1e14 */
	CMA_STOP_NO_EFFECT,  /* a step changes no coordinate, or none along an axis */
	CMA_STOP_STAGNATION, /* neither the best nor the median value became better for long */
	CMA_STOP_GENERATIONS,
	CMA_STOP_NUMBERS /* the matrix has no eigenvalues: a number is not finite */
};

struct cma;
/* NULL: err. */
struct cma *cma_open(const struct cma_options *o, struct error *err);
void cma_close(struct cma *c);
int cma_dimension(const struct cma *c);
int cma_population(const struct cma *c);
/* Draws the population: population x n numbers, within the bounds; it lives until the next call. */
const double *cma_ask(struct cma *c);
/* The candidates' values in the order of cma_ask(); NaN counts as the worst. */
void cma_tell(struct cma *c, const double *values);

struct cma_state {
	const double *best;      /* n numbers: the best candidate so far; its value is best_value */
	double best_value;       /* infinite before the first cma_tell() */
	const double *mean;      /* n numbers, within the bounds */
	double sigma, condition; /* step size; ratio of the longest axis to the shortest, squared */
	uint64_t generation, evaluations;
	enum cma_stop stop;
};
struct cma_state cma_get_state(const struct cma *c);
/* One clause: "steps became smaller than ...". */
const char *cma_stop_name(enum cma_stop stop);

/* Everything that cma_tell() left, and back. Between cma_tell() and cma_ask() alone. cma_load(): NULL: the reader has
 * the error. */
void cma_save(const struct cma *c, FILE *file);
struct cma *cma_load(struct state_reader *r);

#endif
