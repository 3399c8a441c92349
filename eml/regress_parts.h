/* eml/regress_parts.h - what the parts of a regression share: the targets, the formulas so far, and how functions
 * become formulas.
 */
#ifndef EML_REGRESS_PARTS_H
#define EML_REGRESS_PARTS_H

#include "eml/functions.h"
#include "eml/regress.h"

enum { ROWS = FUNCTIONS_ROWS, WIDTH = FUNCTIONS_WIDTH, TARGETS = FUNCTIONS_TARGETS };
enum undone { AS_IT_IS, RECIPROCAL, SQUARE, LOGARITHM, EXPONENTIAL, ROOT };

struct target {
	enum undone undone; /* what was done to y */
	double *value;      /* [rows] */
};

struct regression {
	const struct dataset *data;
	const struct regress_options *options;
	struct front *front;
	struct regress_report *report;
	jit_compute *compute;
	jit_error *err;
	size_t row[ROWS]; /* of the data, that functions are compared at */
	double *x;        /* [variables][ROWS] */
	struct target target[TARGETS];
	unsigned targets;
	double *value;              /* [rows] */
	struct expression *started; /* functions whose constants are to be fitted */
	unsigned n_started;
};
enum { STARTED = 160 };

/* ---- regress.c */

bool regression_fail(jit_error *err, int code, const char *sentence);
bool regression_is_enough(const struct regression *w);
/* Its values at all rows; NAN where they are none. */
void regression_values(const struct regression *w, const struct expression *e, double *out);
/* t = a v + b, of least squares; whole: b is 0. */
void regression_line(const double *v, const double *t, size_t n, bool whole, double *a, double *b);
/* y of an expression for what was done to it; returns the node. */
uint32_t regression_undo(const struct regression *w, struct expression *e, enum undone u, uint32_t a);
/* The rows at which functions are compared, less the mean and with length 1. */
void regression_normalise(const struct regression *w, const double *value, double *t);
uint32_t regression_codes(const struct regression *w);
/* NULL: err. */
struct functions *regression_functions(struct regression *w, uint32_t codes, const double *t, unsigned targets,
                                       uint64_t examined);

/* ---- meet.c: T - f, T / f, T f and f / T are a g + b. False: err. */
bool regression_meet(struct regression *w, const struct functions *f);

/* ---- terms.c: numbers inside of functions, and sums. False: err. */
bool regression_constants(struct regression *w);
bool regression_term(struct regression *w);

#endif
