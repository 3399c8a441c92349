/* optimise/cma_parts.h - what the files of CMA-ES share: the state of a run.
 *
 *   cma.c         opening, constants, drawing and learning
 *   cma_bounds.c  bounds as a fold of space, and as a penalty
 *   cma_stop.c    when a run is over
 *   cma_file.c    saving and loading
 */
#ifndef OPTIMISE_CMA_PARTS_H
#define OPTIMISE_CMA_PARTS_H

#include "optimise/cma.h"

enum { CMA_HISTORY = 20000 }; /* generations that stagnation looks back */

struct cma {
	int n, lambda, mu;
	bool separable, passive;
	enum cma_bounds bounds;
	double sigma0;
	double mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi_n;
	double *weights;     /* lambda */
	uint64_t lazy;       /* evaluations between two eigendecompositions */
	uint64_t decomposed; /* evaluations at the last one */
	/* What is learnt. */
	struct random_stream draw;
	double sigma;
	double *mean, *p_sigma, *p_c; /* n each */
	double *c;                    /* n x n, or its diagonal */
	double *vectors, *lengths;    /* rows: axes of c; square roots of its eigenvalues; separable: lengths alone */
	double *best, best_value;
	uint64_t generation, evaluations;
	enum cma_stop stop;
	/* Best and median values of generations; ring buffers of CMA_HISTORY. */
	double *best_history, *median_history;
	/* Of the population that was asked for. */
	double *steps;         /* lambda x n: (x - mean) / sigma */
	double *whitened;      /* lambda: the squared length of C^-1/2 of each step, times the identity: |z|^2 */
	double *candidates;    /* lambda x n, within the bounds */
	double *values;        /* lambda, with penalties */
	int *order;            /* lambda: from the best to the worst; lambda more for sorting */
	double *lower, *upper; /* n, or NULL */
	double *shown_mean;    /* n: mean within the bounds */
	/* CMA_PENALTY: a weight for each coordinate, and the spread of values over generations. */
	double *penalty, *spread;
	int n_spread;
	bool penalised; /* weights were set */
	double *work;   /* 3n, at least 64, and as many as c has */
};

/* cma_bounds.c */
void cma_bounds_fold(const struct cma *c, const double *x, double *inside);
void cma_bounds_nearest(const struct cma *c, const double *x, double *inside);
/* What cma_bounds_fold() maps onto x. */
double cma_bounds_unfold(const struct cma *c, int i, double x);
/* Adds to the values what candidates outside of the bounds cost; the order is that of the plain values. */
void cma_bounds_penalise(struct cma *c);

/* cma_stop.c */
int cma_by_size(const void *a, const void *b); /* of two doubles, for qsort() */
/* Keeps the best and the median value of a generation, for cma_stop_now(). */
void cma_stop_note(struct cma *c);
enum cma_stop cma_stop_now(const struct cma *c);

/* cma.c */
/* The memory of a run whose sizes and flags are set. False: err. */
bool cma_allocate(struct cma *c, bool bounded, struct error *err);
void cma_constants(struct cma *c);
double cma_variance(const struct cma *c, int i); /* of coordinate i, for a step size of 1 */

#endif
