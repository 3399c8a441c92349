/* programs/sampling_args.h - the options of a command line that say how tokens are chosen, for any program that
 * generates text.
 *
 * Owns: the values they begin with, what stands for those that are not given, and how they become a jit_sampling. Their
 * rows for the program's table (options.h) are programs/sampling_rows.def, which is included there and wants the struct
 * to be called SAMPLING.
 */
#ifndef PROGRAMS_SAMPLING_ARGS_H
#define PROGRAMS_SAMPLING_ARGS_H

#include <limits.h>
#include <math.h>
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

/* Before the command line is read. What a model may have a default for is told from what was given by a value that no
 * option can have. */
#define SAMPLING_NOT_GIVEN LONG_MIN
#define SAMPLING_ARGS_USUAL \
	{ \
		.temp = NAN, .top_k = SAMPLING_NOT_GIVEN, .top_p = NAN, .min_p = NAN, .typical = NAN, \
		.repeat_penalty = NAN, .presence_penalty = NAN, .frequency_penalty = NAN, \
		.repeat_last_n = SAMPLING_NOT_GIVEN, .xtc_probability = NAN, .xtc_threshold = NAN, \
		.mirostat = SAMPLING_NOT_GIVEN, .mirostat_lr = NAN, .mirostat_ent = NAN, .dynatemp_exp = 1, \
		.dry_base = 1.75, .dry_allowed_length = 2, .adaptive_decay = 0.9, .seed = -1 \
	}

/* After it was read: whether what are texts in it say something. False: why not, one sentence without its end. */
bool sampling_args_check(struct sampling_args *a, char why[400]);
/* Then: what was not given becomes the model's default (jit_model_sampling_defaults), and a seed of -1 a random one.
 * path: the model's, for the sentence about samplers that its files name and nobody knows. The model must outlive *a.
 * False: err. */
bool sampling_args_fill(struct sampling_args *a, const jit_model *m, const char *path, jit_error *err);
/* Then: what they are for the library. What that points to is in *a. */
jit_sampling sampling_args_make(const struct sampling_args *a);

/* The other way, of a struct that sampling_args_make() made and jit_sampling_set() changed: all but lists. */
void sampling_args_take(struct sampling_args *a, const jit_sampling *p);
/* A random one, short enough to be typed again. */
long sampling_args_seed(void);

/* Before sampling_args_fill: what a preset says, by the name of an option; other names are passed over. False: the
 * value is wrong, which why[] says. */
bool sampling_args_set(struct sampling_args *a, const char *name, const char *value, char why[400]);

/* A line for people: "temp 0.8, top-k 40, seed 7", of what is not off. */
void sampling_args_describe(const struct sampling_args *a, char *out, size_t cap);

#endif
