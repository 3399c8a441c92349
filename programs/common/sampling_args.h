/* programs/common/sampling_args.h - the options of a command line that say how tokens are chosen, for any program that
 * generates text.
 *
 * Owns: the values they begin with, what stands for those that are not given, and how they become a jit_sampling. Their
 * rows for the program's table (options.h) are programs/common/sampling_rows.def, which is included there and wants the
 * struct to be called SAMPLING.
 */
#ifndef PROGRAMS_SAMPLING_ARGS_H
#define PROGRAMS_SAMPLING_ARGS_H

#include <limits.h>
#include <math.h>
#include <stdbool.h>

#include "programs/common/options.h"
#include "include/jitrun.h"

/* Numbers have the names that they have in jit_sampling. */
struct sampling_args {
#define REAL double
#define WHOLE long
#define SAMPLING_FIELD(type, field, ...) type field;
#include "base/sampling.def"
#undef REAL
#undef WHOLE
	long seed;
	const char *samplers;
	struct option_list dry_breakers, logit_bias;
	jit_logit_bias bias[OPTION_LIST_MAX];
};

/* Before the command line is read: numbers are NaN and LONG_MIN, which no option can be given. */
extern const struct sampling_args sampling_args_usual;

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
