/* eml/regress.h - formulas of data: the smallest ones with the least errors.
 *
 *   regress.c     from functions of the data (functions.h) to formulas
 *   meet.c        formulas of two functions
 *   terms.c       numbers inside of functions, and sums
 *   front.c       which formulas are kept, and their constants as short numbers
 *   constants.c   constants inside of formulas, by derivatives of graphs of tensors
 *
 * Owns: formulas y = T(a f + b), where T undoes a function of y, products and sums of two functions, and sums of
 * several terms. Each is judged by its values at all rows.
 */
#ifndef EML_REGRESS_H
#define EML_REGRESS_H

#include "eml/expression.h"
#include "include/jitrun_graph.h"

struct dataset {
	size_t rows;
	unsigned variables;
	const double *x; /* [variables][rows] */
	const double *y; /* [rows] */
};

/* A formula of the Pareto front: each smaller one has a larger error. error: the root of the mean square of the
 * residuals, divided by the standard deviation of the target; of a constant target 0 or infinite. */
struct formula {
	struct expression e;
	size_t size;
	double error;
};
enum { FRONT_MAX = 64 };
struct front {
	const struct dataset *data;
	struct formula formula[FRONT_MAX]; /* ascending sizes, descending errors */
	unsigned n;
};

/* The error of an expression; INFINITY where it has no value at a row. */
double front_error(const struct dataset *d, const struct expression *e);
/* Takes a copy of the expression, made tidy, where it belongs to the front. Whether it did. */
bool front_add(struct front *f, const struct expression *e);
/* Numbers that stand for short ones are these: 2.9999999999 is 3, 0.7853981634 is pi/4. */
void front_shorten(struct front *f);
void front_free(struct front *f);

struct regress_options {
	uint32_t codes;    /* operations, as functions.h has them; 0: all but powers */
	uint64_t examined; /* functions to examine; 0: 20 million */
	unsigned terms;    /* of sums; 0: 3 */
	bool no_constants; /* leaves out constants inside of functions */
	double enough;     /* an error that ends it */
	const char *device, *cache;
	int threads;
	jit_cancel *cancel;
};
struct regress_report {
	uint64_t examined, kept, fitted; /* functions; formulas whose constants were fitted */
};
/* Fills the front. False: err. */
bool regress(const struct dataset *d, const struct regress_options *o, struct front *front,
             struct regress_report *report, jit_error *err);

/* Fits the numbers of an expression from where they are. compute: where the graphs run. Returns the error, and the
 * expression has the numbers. False: err; the expression may have none that fit. */
bool constants_fit(jit_compute *compute, const struct dataset *d, struct expression *e, unsigned steps, jit_error *err);

#endif
