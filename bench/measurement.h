/* bench/measurement.h - one row of results: what was measured, against which limit, and whether it is reliable.
 *
 * Owns: the statistics over repetitions, and the rule that calls a number noisy. The limit (memory bandwidth or
 * arithmetic peak) is read before and after each repetition, and the faster reading counts. So another process that
 * slows the machine slows both.
 */
#ifndef BENCH_MEASUREMENT_H
#define BENCH_MEASUREMENT_H

#include <stdbool.h>

enum { MAX_REPETITIONS = 100 };

struct series {
	long n;
	double value[MAX_REPETITIONS], limit[MAX_REPETITIONS];
};

struct summary {
	double median, min, greatest, mean, deviation, spread;
}; /* spread: between the quartiles, of the median */

struct row {
	char test[48];    /* "pp512 @ d1024" */
	const char *unit; /* "t/s", "s", "ms", "MiB" */
	long n_prompt, n_gen, depth;
	int threads;
	long count;       /* of the kernels generated; otherwise 0 */
	long repetitions; /* that were measured */
	struct summary value;
	double work; /* bytes or operations for one of the unit's tokens; 0: there is no limit to compare with */
	const char *limit_name, *limit_unit; /* "vpdpbusd 512", "op/s" */
	struct summary limit;                /* of work per second */
	double share;                        /* median over the repetitions */
	char noisy[128];                     /* why the number is not to be believed; empty: it may be */
};

/* Sorts the series. limit: the greatest spread that is believed, 0.1 for 10 %; 0: any. */
void row_fill(struct row *r, struct series *s, double limit);

#endif
