/* bench/jitbench_options.h - jitbench's command line. */
#ifndef BENCH_JITBENCH_OPTIONS_H
#define BENCH_JITBENCH_OPTIONS_H

#include <stdbool.h>

#include "programs/common/options.h"

enum { EXIT_NOISY = 3, EXIT_SLOWER = 4, MAX_OPERANDS = 3, MAX_LIST = 16, MAX_TOKENS = 1 << 20 };

struct list {
	long value[MAX_LIST];
	int n;
};

struct jitbench_options {
	const char *operand[MAX_OPERANDS];
	int n_operands;
	const char *model, *prompt, *generate, *depth, *small, *sequences, *threads, *isa, *ranks, *split, *kv_type,
		*activations, *numerics, *format, *cache, *shape, *weights, *write, *device;
	long repetitions, batch;
	double noise, threshold, read_gb;
	const char *report;
	bool all_small, no_start, no_cache, force, predict, kernels, profile;
	struct option_about about;
	struct {
		struct list prompt, generate, depth, small, sequences, threads;
	} list; /* what the options of these names say */
};
extern struct jitbench_options opt;

/* Fills opt. False: the program ends with *status, and all that there is to say was said. */
bool jitbench_parse_options(int argc, char **argv, int *status);
/* One sentence and a hint on stderr; the exit status. */
int jitbench_usage(const char *text);

#endif
