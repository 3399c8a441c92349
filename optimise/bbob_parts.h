/* optimise/bbob_parts.h - what the files of the benchmark share: rows of functions, and an instance. */
#ifndef OPTIMISE_BBOB_PARTS_H
#define OPTIMISE_BBOB_PARTS_H

#include <stdbool.h>

#include "optimise/bbob.h"

/* How an optimum is drawn: in [-4, 4], and what becomes of it. */
enum bbob_optimum {
	OPTIMUM_PLAIN,
	OPTIMUM_CORNER,       /* of [-5, 5] */
	OPTIMUM_NEAR,         /* three quarters of it */
	OPTIMUM_ODD_POSITIVE, /* coordinates 0, 2, 4, ... are positive */
	OPTIMUM_OTHER_SEED,   /* from the seed of the rotation */
	OPTIMUM_SCHWEFEL,     /* half of +-4.2096874633 */
	OPTIMUM_SIGNS         /* half of +-2.5 */
};
/* Of which factors the matrix `linear` consists: a rotation, lengths, the other rotation. */
enum bbob_linear { LINEAR_NONE, LINEAR_WHOLE, LINEAR_HALF, LINEAR_SCALED };

struct bbob;
struct bbob_row {
	const char *name;
	/* The value at x above the least, without the penalty. work: 2n numbers. */
	double (*value)(const struct bbob *b, const double *x, double *work);
	double seed;    /* functions that share their instances share it */
	double penalty; /* what the squared distance to [-5, 5] costs; -1: 10 / n */
	enum bbob_optimum optimum;
	bool rotated;
	enum bbob_linear linear;
	double condition; /* of `linear`; of peaks the highest one's */
	double scale;     /* `graded` goes from 1 to it */
	int peaks;
	double spread; /* of peaks: how much of [-5, 5] they take */
};
extern const struct bbob_row bbob_rows[BBOB_FUNCTIONS + 1];

struct bbob {
	const struct bbob_row *row;
	int n;
	double seed, min;
	double *optimum, *graded;         /* n each */
	double *rotation, *linear;        /* n x n; a vector is multiplied from the left */
	double *peaks, *scales, *heights; /* peaks x n, rotated; the same, squared inverse lengths; peaks */
};

#define FUNCTION(name) double bbob_##name(const struct bbob *b, const double *x, double *work)
FUNCTION(sphere);
FUNCTION(ellipsoid);
FUNCTION(rastrigin);
FUNCTION(bueche);
FUNCTION(slope);
FUNCTION(sector);
FUNCTION(steps);
FUNCTION(rosenbrock);
FUNCTION(rosenbrock_rotated);
FUNCTION(ellipsoid_rotated);
FUNCTION(discus);
FUNCTION(cigar);
FUNCTION(ridge);
FUNCTION(powers);
FUNCTION(rastrigin_rotated);
FUNCTION(weierstrass);
FUNCTION(schaffers);
FUNCTION(griewank);
FUNCTION(schwefel);
FUNCTION(gallagher);
FUNCTION(katsuura);
FUNCTION(lunacek);
#undef FUNCTION

#endif
