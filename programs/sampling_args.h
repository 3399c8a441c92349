/* programs/sampling_args.h - the options of a command line that say how tokens are chosen, for any program that
 * generates text.
 *
 * Owns: the values they begin with, and how they become a jit_sampling. Their rows for the program's table (options.h)
 * are programs/sampling_rows.def, which is included there and wants the struct to be called SAMPLING.
 */
#ifndef PROGRAMS_SAMPLING_ARGS_H
#define PROGRAMS_SAMPLING_ARGS_H

#include <stdbool.h>

#include "programs/options.h"
#include "runtime/jitrun.h"

struct sampling_args {
	double temp, top_p, min_p, typical, top_nsigma, repeat_penalty, presence_penalty, frequency_penalty;
	double dynatemp_range, dynatemp_exp, xtc_probability, xtc_threshold, dry_multiplier, dry_base;
	double mirostat_lr, mirostat_ent, adaptive_target, adaptive_decay;
	long top_k, repeat_last_n, seed, dry_allowed_length, dry_penalty_last_n, mirostat, min_keep;
	const char *samplers;
	struct option_list dry_breakers, logit_bias;
	jit_logit_bias bias[OPTION_LIST_MOST];
};

/* Before the command line is read. */
#define SAMPLING_ARGS_USUAL \
	{ \
		.top_p = 1, .typical = 1, .repeat_penalty = 1, .dynatemp_exp = 1, .xtc_threshold = 0.1, \
		.dry_base = 1.75, .dry_allowed_length = 2, .mirostat_lr = 0.1, .mirostat_ent = 5, \
		.adaptive_decay = 0.9 \
	}

/* After it was read: whether what are texts in it say something. False: why not, one sentence without its end. */
bool sampling_args_check(struct sampling_args *a, char why[400]);
/* Then: what they are for the library. What that points to is in *a. */
jit_sampling sampling_args_make(const struct sampling_args *a);

#endif
