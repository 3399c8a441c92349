/* bench/passes.h - what kernels made for one kind of pass gain over the kernels of another.
 *
 * Owns: the measurement behind the tables of passes in docs/performance/log/. A layer over exactly n tokens is compared
 * with the next width of draft passes, and with the kernels of one token run n times; a prompt's tiles are compared
 * with passes of 16. Attention is timed for each position at several depths, which bounds what kernels for a range of
 * depths could gain. All is measured in alternation, many short times, and the least time counts. Only ratios are
 * printed.
 */
#ifndef BENCH_PASSES_H
#define BENCH_PASSES_H

#include <stdio.h>

#include "base/error.h"
#include "programs/common/shapes.h"
#include "jit/target.h"

struct passes_options {
	const struct target *target;
	const struct model_shape *shape;
	const struct mixture *mixture; /* NULL: bf16, q8_0 and q4_k in turn */
	int threads;
	long rounds;
};

bool passes_run(const struct passes_options *o, FILE *out, struct error *err);

#endif
