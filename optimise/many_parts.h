/* optimise/many_parts.h - what the files of evolution towards many objectives share.
 *
 *   many.c            opening, offspring, which method selects
 *   many_variation.c  crossover and mutation
 *   many_rank.c       fronts and crowding distances
 *   many_nsga3.c      selection by niches around directions
 *   many_moead.c      selection by neighbouring subproblems
 *   many_file.c       saving and loading
 */
#ifndef OPTIMISE_MANY_PARTS_H
#define OPTIMISE_MANY_PARTS_H

#include "optimise/draw.h"
#include "optimise/many.h"

enum { MANY_NEIGHBOURS = 20 };

struct many {
	enum many_method method;
	int n, m, size; /* m: objectives; size: of the population */
	int divisions, directions;
	double crossover_eta, mutation_eta, crossover, mutation;
	double *lower, *upper; /* n */
	struct random_stream draw;
	uint64_t generation, evaluations;
	/* The population, and behind it the offspring, then room for as many again while they are put in order. */
	double *x, *f; /* 2 size x n; 2 size x m */
	double *x_next, *f_next;
	int *rank;         /* 2 size */
	double *crowding;  /* 2 size */
	int *list;         /* 2 size: in which order they were selected */
	int *parent;       /* MOEA/D: of each offspring, the subproblem it was made for */
	bool *wide;        /* MOEA/D: whether its parents came from the whole population */
	double *direction; /* directions x m */
	int *neighbour;    /* directions x MANY_NEIGHBOURS */
	double *ideal;     /* m: the least value of each objective so far */
	double *extreme;   /* NSGA-III: m x m: the points that lie furthest along an axis */
	double *nadir;     /* m */
};

/* many_variation.c: children a and b of parents p and q. */
void many_cross(struct many *m, const double *p, const double *q, double *a, double *b);
void many_mutate(struct many *m, double *x);

/* many_rank.c */
/* Of `count` points: which front each is on. Returns the number of fronts; -1: out of memory. */
int many_fronts(const double *f, int count, int m, int *rank);
/* Crowding distances within each front. False: out of memory. */
bool many_crowd(const double *f, int count, int m, const int *rank, double *crowding);
static inline bool many_dominates(const double *a, const double *b, int m)
{
	bool better = false;

	for (int k = 0; k < m; k++) {
		if (a[k] > b[k])
			return false;
		better = better || a[k] < b[k];
	}
	return better;
}

/* many_nsga3.c, many_moead.c: which of population and offspring go on: m->list gets `size` numbers. False: err. */
bool many_select_niches(struct many *m, struct error *err);
void many_set_neighbours(struct many *m);
void many_mate_neighbours(struct many *m, int subproblem, int *p, int *q);
void many_replace_neighbours(struct many *m);

/* many.c: the memory of one whose sizes are set. False: err. */
bool many_allocate(struct many *m, struct error *err);
/* How many directions there are with that many objectives and divisions; beyond `max`: max + 1. */
int many_count_directions(int m, int divisions, int max);
void many_set_directions(struct many *m);
void many_note_ideal(struct many *m, int from, int to);

#endif
