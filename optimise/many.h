/* optimise/many.h - evolution towards many objectives at once: NSGA-II, NSGA-III and MOEA/D.
 *
 * Owns: a population within bounds, and which of it and of its offspring go on. many_ask() gives the offspring, the
 * caller computes every objective of each, many_tell() selects. All objectives are made small. Double precision, a
 * fixed order, random numbers by counter: a run has the same bits on every machine.
 *
 * K. Deb et al., IEEE TEC 6(2), 2002 (NSGA-II); K. Deb and H. Jain, IEEE TEC 18(4), 2014 (NSGA-III); Q. Zhang and
 * H. Li, IEEE TEC 11(6), 2007 (MOEA/D); simulated binary crossover and polynomial mutation within bounds: K. Deb and
 * R. Agrawal 1995, K. Deb and M. Goyal 1996.
 */
#ifndef OPTIMISE_MANY_H
#define OPTIMISE_MANY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { MANY_DIMENSION_MAX = 100000, MANY_OBJECTIVES_MAX = 16, MANY_POPULATION_MAX = 20000 };
enum many_method { MANY_NSGA2, MANY_NSGA3, MANY_MOEAD };

struct many_options {
	enum many_method method;
	int n, objectives;
	/* NSGA-II: 0: 100. The others: as many as there are directions; 0 or that number. */
	int population;
	/* Of directions, how many steps an objective's axis has; 0: 99 with two objectives, 12 with three, else as many
	 * as give at most 300 directions. NSGA-II has no directions: 0. */
	int divisions;
	const double *lower, *upper; /* n finite numbers each; copied */
	/* Crossover and mutation: how near children are to their parents; 0: 15 (NSGA-II), 30 (NSGA-III), 20 (MOEA/D),
	 * and 20 for mutation. */
	double crossover_eta, mutation_eta;
	double crossover; /* how often parents are crossed; 0: 0.9 (NSGA-II), 1 (the others) */
	double mutation;  /* how often each coordinate mutates; 0: 1 / n */
	uint64_t seed;
};

struct many;
/* NULL: err. */
struct many *many_open(const struct many_options *o, struct error *err);
void many_close(struct many *m);
int many_population(const struct many *m);
enum many_method many_method_of(const struct many *m);
/* *count candidates of n numbers each; they live until the next call. */
const double *many_ask(struct many *m, int *count);
/* count x objectives values; NaN counts as infinite. False: err: out of memory. */
bool many_tell(struct many *m, const double *values, struct error *err);

struct many_state {
	const double *x, *values; /* count x n, count x objectives: the population; many_tell() changes it */
	const int *rank;          /* 0: no other of the population is better in one objective and worse in none */
	int count, n, objectives;
	uint64_t generation, evaluations;
};
struct many_state many_get_state(const struct many *m);

/* As restarts_save() and restarts_load(). */
char *many_save(const struct many *m, size_t *bytes);
struct many *many_load(const char *text, size_t bytes, const char *name, struct error *err);

#endif
