/* optimise/bbob.h - the 24 noiseless functions of the black-box optimisation benchmark.
 *
 * Definitions: N. Hansen, S. Finck, R. Ros, A. Auger, Real-Parameter Black-Box Optimization Benchmarking 2009:
 * Noiseless Functions Definitions (INRIA RR-6829). An instance has an optimum, rotations and an offset of its own,
 * drawn by the benchmark's generator; so values are those of other programs, up to rounding.
 */
#ifndef OPTIMISE_BBOB_H
#define OPTIMISE_BBOB_H

#include "base/error.h"

enum { BBOB_FUNCTIONS = 24, BBOB_DIMENSION_MAX = 320, BBOB_INSTANCE_MAX = 100000 };

struct bbob;
/* function: 1 to 24; dimension: 2 to BBOB_DIMENSION_MAX; instance: 0 to BBOB_INSTANCE_MAX. NULL: err. */
struct bbob *bbob_open(int function, int dimension, int instance, struct error *err);
void bbob_close(struct bbob *b);
const char *bbob_name(int function);
/* May be called by several threads at a time. */
double bbob_value(const struct bbob *b, const double *x);
/* The least value there is, and where. */
double bbob_min(const struct bbob *b);
const double *bbob_optimum(const struct bbob *b);

#endif
