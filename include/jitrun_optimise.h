/* jitrun_optimise.h - evolution: least values of functions without derivatives, of one objective or many, with the same
 * bits on every machine.
 *
 * Everything here follows jitrun.h: ERRORS, MEMORY, and STRUCTS AND VERSIONS. docs/evolution.md describes the methods.
 * An optimiser draws candidates, the caller computes their values, and the optimiser learns from them:
 *
 *     jit_optimiser *o = jit_optimiser_open(&JIT_OPTIMISE_OPTIONS(.dimension = 2, .start = start, .sigma = 1), &err);
 *     while (!state.over) {
 *         jit_optimiser_ask(o, x, &err);                  // jit_optimiser_count(o) candidates of 2 numbers each
 *         for (size_t i = 0; i < jit_optimiser_count(o); i++)
 *             values[i] = f(x + 2 * i);
 *         jit_optimiser_tell(o, values, &err);
 *         jit_optimiser_get_state(o, &state, &err);
 *     }
 *
 * or jit_optimiser_run() does that. The values alone decide what comes next: how many threads or which device computed
 * them does not show.
 *
 * THREADS. A jit_optimiser belongs to one thread at a time.
 */
#ifndef JITRUN_OPTIMISE_H
#define JITRUN_OPTIMISE_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

enum { JIT_OPTIMISE_CMA, JIT_OPTIMISE_NSGA2, JIT_OPTIMISE_NSGA3, JIT_OPTIMISE_MOEAD };
enum { JIT_BOUNDS_BOX, JIT_BOUNDS_PENALTY };
enum { JIT_RESTARTS_NONE, JIT_RESTARTS_SAME, JIT_RESTARTS_IPOP, JIT_RESTARTS_BIPOP };

typedef struct jit_optimiser jit_optimiser;
/* Arrays have `dimension` numbers each, and are copied. */
typedef struct jit_optimise_options {
	size_t size;
	const double *start;                  /* CMA-ES: the first mean; NULL: drawn */
	const double *start_low, *start_high; /* CMA-ES without `start`: where each run's first mean is drawn */
	const double *lower, *upper;          /* bounds; CMA-ES: NULL or infinite: none. The others need finite ones */
	uint64_t seed;
	double sigma;                       /* CMA-ES: the first step size, above 0 */
	double crossover_eta, mutation_eta; /* not of CMA-ES: how near children are to their parents; 0: 15 (NSGA-II),
	                                       30 (NSGA-III) or 20 (MOEA/D), and 20; at most 1000 */
	double crossover, mutation; /* not of CMA-ES: how often parents are crossed, and each coordinate mutates;
	                               0: 0.9 (NSGA-II) or 1, and 1 / dimension */
	int method;                 /* JIT_OPTIMISE_CMA and so on */
	int dimension;              /* CMA-ES: at most 1000, separable 100 000 */
	int objectives;             /* 0: 1 (CMA-ES) or 2; the others at most 16 */
	int population; /* 0: 4 + floor(3 ln dimension) (CMA-ES), 100 (NSGA-II), as many as directions (the others) */
	int divisions; /* NSGA-III, MOEA/D: steps of an axis of the directions; 0: 99 with two objectives, 12 with three
	                */
	int separable; /* CMA-ES: non-zero: a diagonal covariance matrix */
	int passive;   /* CMA-ES: non-zero: no negative weights */
	int bounds; /* CMA-ES: JIT_BOUNDS_BOX: candidates outside are folded back; JIT_BOUNDS_PENALTY: the nearest point
	               inside is the candidate, and the distance costs */
	int restarts; /* CMA-ES: JIT_RESTARTS_NONE and so on: what follows a run that is over */
	int runs;     /* CMA-ES: at most so many, small ones of BIPOP not counted; 0: 10 */
} jit_optimise_options;
#define JIT_OPTIMISE_OPTIONS(...) JIT_STRUCT(jit_optimise_options, __VA_ARGS__)

jit_optimiser *jit_optimiser_open(const jit_optimise_options *options, jit_error *err);
void jit_optimiser_close(jit_optimiser *o);

/* How many candidates jit_optimiser_ask() gives next, or gave. */
size_t jit_optimiser_count(const jit_optimiser *o);
/* Draws candidates: count x dimension numbers. They are within the bounds. */
int jit_optimiser_ask(jit_optimiser *o, double *x, jit_error *err);
/* values: count x objectives numbers, in the candidates' order; NaN is worse than every number. JIT_ERROR_ARGUMENT: no
 * candidates were asked for. */
int jit_optimiser_tell(jit_optimiser *o, const double *values, jit_error *err);

typedef struct jit_optimise_state {
	size_t size;
	uint64_t evaluations, generations; /* of all runs */
	double best_value;       /* CMA-ES: of all candidates; infinite before the first jit_optimiser_tell() */
	double sigma, condition; /* CMA-ES: of the run at hand: step size; condition number of the covariance */
	const char *why;         /* CMA-ES: why the last run that is over ended; "": none is. A constant text */
	int method, dimension, objectives;
	int run;   /* CMA-ES: from 0 */
	int small; /* CMA-ES: non-zero: one of BIPOP's small populations */
	int over;  /* CMA-ES: non-zero: the last run is over; the methods for many objectives never end by themselves */
} jit_optimise_state;
#define JIT_OPTIMISE_STATE() JIT_STRUCT(jit_optimise_state, )
int jit_optimiser_get_state(const jit_optimiser *o, jit_optimise_state *out, jit_error *err);
/* CMA-ES: the best candidate so far, and its value; either may be NULL. */
int jit_optimiser_best(const jit_optimiser *o, double *x, double *value, jit_error *err);
/* Not of CMA-ES: the population: count x dimension, count x objectives, and which front each is on: 0 where no other is
 * better in one objective and worse in none. Each may be NULL. */
int jit_optimiser_population(const jit_optimiser *o, double *x, double *values, int32_t *front, jit_error *err);

/* Writes the state to a file, whole or not at all; not between ask and tell. What is loaded goes on with the same bits.
 */
int jit_optimiser_save(const jit_optimiser *o, const char *path, jit_error *err);
jit_optimiser *jit_optimiser_load(const char *path, jit_error *err);

/* Computes values: count x objectives, of x: count x dimension. Non-zero: the run ends. */
typedef int (*jit_objective_fn)(void *user, const double *x, size_t count, double *values);
/* Asks, computes and tells until the optimiser is over, `evaluations` were spent (of all runs; 0: any number), the best
 * value is `target` or less (CMA-ES; NULL: no target), or f returns non-zero, which is JIT_ERROR_CANCELLED. */
int jit_optimiser_run(jit_optimiser *o, jit_objective_fn f, void *user, uint64_t evaluations, const double *target,
                      jit_error *err);

/* The volume that count points of `objectives` numbers, 2 or 3, dominate below a reference point, exactly. */
int jit_hypervolume(const double *points, size_t count, int objectives, const double *reference, double *volume,
                    jit_error *err);

#ifdef __cplusplus
}
#endif

#endif
