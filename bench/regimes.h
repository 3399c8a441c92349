/* bench/regimes.h - what kernels made for one regime gain over those of another.
 *
 * Owns: the measurement behind the tables of regimes in docs/performance/log/: a layer over exactly n tokens beside the
 * next width that guesses have, and beside the kernels of one token again and again; a prompt's tiles beside passes of
 * 16; and what attention takes for each position at several depths, which is what kernels for a class of contexts could
 * be faster by. Everything is measured in turn, many short times, and the least counts; ratios are all that is printed.
 */
#ifndef BENCH_REGIMES_H
#define BENCH_REGIMES_H

#include <stdio.h>

#include "base/error.h"
#include "programs/shapes.h"
#include "jit/target.h"

struct regimes_options {
	const struct target *target;
	const struct shape *shape;
	const struct mixture *mixture; /* NULL: bf16, q8_0 and q4_k in turn */
	int threads;
	long rounds;
};

bool regimes_run(const struct regimes_options *o, FILE *out, struct error *err);

#endif
