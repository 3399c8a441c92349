/* bench/schedules.h - what each setting of a kernel schedule gains on this machine, one at a time.
 *
 * Owns: the measurement behind the tables of schedules in docs/performance/log/. A layer whose matmuls all use another
 * schedule is timed in alternation with the default. The default is also timed against itself, which shows how much
 * such ratios vary. Times are of the processor, lower quartiles. jitwarm tune searches for the best combination of
 * settings, kernel by kernel, with a model's own weights.
 */
#ifndef BENCH_SCHEDULES_H
#define BENCH_SCHEDULES_H

#include <stdio.h>

#include "base/error.h"
#include "programs/common/shapes.h"
#include "jit/target.h"

struct schedules_options {
	const struct target *target;
	const struct model_shape *shape;
	const struct mixture *mixture; /* NULL: bf16, q8_0, q4_k and q6_k in turn */
	int threads;
	long rounds;
};

bool schedules_run(const struct schedules_options *o, FILE *out, struct error *err);

#endif
