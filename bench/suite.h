/* bench/suite.h - a fixed set of matrices and attentions, one kernel at a time. bench/reports.h compares two of its
 * reports.
 *
 * Owns: the set, the report and the names of its rows. The names do not depend on how an operation is done, so reports
 * of two versions have the same rows. A row says how long an operation takes, how many operations and bytes a second
 * that is, and what share of the limiting peak. The peak is measured in the same run, right before and after.
 */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include <stdio.h>

#include "base/error.h"
#include "jit/target.h"

struct suite_options {
	const struct target *target;
	int threads;
	long repetitions;
	double noise;     /* as row_fill's limit */
	const char *only; /* rows whose name has this in it; NULL: all */
	bool json;
};

/* *noisy: how many rows' numbers were refused; each was named on stderr. */
bool suite_run(const struct suite_options *o, FILE *out, int *noisy, struct error *err);

#endif
