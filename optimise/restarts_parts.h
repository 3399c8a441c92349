/* optimise/restarts_parts.h - the state of a sequence of runs; restarts.c and restarts_file.c share it. */
#ifndef OPTIMISE_RESTARTS_PARTS_H
#define OPTIMISE_RESTARTS_PARTS_H

#include "optimise/restarts.h"

struct restarts {
	enum restarts_kind kind;
	int n, runs, run, large_runs; /* large_runs: how many of the runs that count began */
	int first_population;         /* of the first run */
	bool separable, passive, drawn, small, over;
	enum cma_bounds bounds;
	double sigma;
	uint64_t spent_large, spent_small, before,
		generations_before; /* evaluations of each kind, and of all runs before */
	uint64_t last_large;        /* of the last large run; a small one may take half of that */
	uint64_t limit;             /* evaluations that the run at hand may take; 0: any number */
	struct random_stream draw;
	double *start, *start_low, *start_high, *lower, *upper; /* n each; lower and upper may be NULL */
	double *best, best_value;
	enum cma_stop last;
	struct cma *cma;
};

/* The memory of one whose n and bounds are set. */
bool restarts_allocate(struct restarts *r, struct error *err);

#endif
