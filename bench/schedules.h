/* bench/schedules.h - what each field of a schedule gains on this machine, one at a time.
 *
 * Owns: the measurement behind the tables of schedules in docs/performance/log/: a layer with all its matmuls going in
 * one other way, beside the usual one, in turns; and the usual way beside itself, which says what such ratios are
 * worth. Times are of the processor, lower quartiles. jitwarm tune looks for the best of all fields together, kernel by
 * kernel, on a model's own weights.
 */
#ifndef BENCH_SCHEDULES_H
#define BENCH_SCHEDULES_H

#include <stdio.h>

#include "base/error.h"
#include "programs/shapes.h"
#include "jit/target.h"

struct schedules_options {
	const struct target *target;
	const struct shape *shape;
	const struct mixture *mixture; /* NULL: bf16, q8_0, q4_k and q6_k in turn */
	int threads;
	long rounds;
};

bool schedules_run(const struct schedules_options *o, FILE *out, struct error *err);

#endif
