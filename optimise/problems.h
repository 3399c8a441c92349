/* optimise/problems.h - problems with many objectives whose fronts are known: ZDT and DTLZ.
 *
 * E. Zitzler, K. Deb, L. Thiele, Evolutionary Computation 8(2), 2000; K. Deb, L. Thiele, M. Laumanns, E. Zitzler, CEC
 * 2002.
 */
#ifndef OPTIMISE_PROBLEMS_H
#define OPTIMISE_PROBLEMS_H

#include "base/error.h"

enum { PROBLEM_DIMENSION_MAX = 10000 };

/* Of a problem by its name, "zdt1" to "zdt4", "zdt6", "dtlz1" to "dtlz4". */
struct problem {
	int kind;
	int n, objectives;
};
/* n 0: as published, 30 or 10 (ZDT), objectives + 4 (DTLZ1) or + 9; objectives 0: 2 (ZDT) or 3. False: err. */
bool problem_find(struct problem *p, const char *name, int n, int objectives, struct error *err);
/* n numbers each. */
void problem_bounds(const struct problem *p, double *lower, double *upper);
void problem_values(const struct problem *p, const double *x, double *f);

#endif
