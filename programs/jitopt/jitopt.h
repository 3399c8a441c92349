/* programs/jitopt/jitopt.h - what the parts of jitopt share: its command line, objectives, and a run with its files. */
#ifndef PROGRAMS_JITOPT_H
#define PROGRAMS_JITOPT_H

#include "base/error.h"
#include "include/jitrun_optimise.h"
#include "programs/common/options.h"

enum { JITOPT_DONE, JITOPT_FAILED, JITOPT_USAGE, JITOPT_NOT_REACHED = 3, JITOPT_INTERRUPTED = 130 };

struct jitopt_arguments {
	const char *command, *operand;
	const char *method, *restarts, *bounds, *lower, *upper, *start, *device, *cache, *state, *log, *front;
	struct option_list constants, in;
	long function, dimension, instance, objectives, population, divisions, runs, evaluations, seed, threads,
		save_every;
	double target, sigma, reference;
	bool has_target, separable, passive, resume, json, quiet;
};
extern struct jitopt_arguments jitopt;
extern jit_cancel *jitopt_cancel; /* set by a signal */

/* Prints the sentence on standard error; returns JITOPT_FAILED, JITOPT_USAGE, or JITOPT_INTERRUPTED where that was why.
 */
int jitopt_fail(const char *sentence);
int jitopt_fail_error(const jit_error *err);
int jitopt_wrong(const char *sentence);

/* ---- jitopt_objective.c: what is made small */

struct jitopt_objective;
/* operand: FILE.jk, FILE.so or FILE.so:SYMBOL, or command:TEXT. NULL: err. */
struct jitopt_objective *jitopt_objective_open(const char *operand, int dimension, int objectives, jit_error *err);
void jitopt_objective_close(struct jitopt_objective *o);
/* A jit_objective_fn; user: the objective. Non-zero: jitopt_objective_error() says why. */
int jitopt_objective_values(void *user, const double *x, size_t count, double *values);
const jit_error *jitopt_objective_error(const struct jitopt_objective *o);

/* ---- jitopt_run.c */

/* Options for an optimiser from the command line, without what has the dimension's length. method: of --method, or
 * `usual`. */
jit_optimise_options jitopt_options(const char *usual);
/* Numbers of --lower and its like: one for all coordinates, or one for each, with commas between. NULL: err; text NULL:
 * `otherwise` everywhere. */
double *jitopt_numbers(const char *option, const char *text, double otherwise, int n, jit_error *err);
/* Runs to the end, with --state, --log and --evaluations; f may be called from this thread alone. A status. *left:
 * whether the optimiser was left without reaching the target. */
int jitopt_go(jit_optimiser *o, jit_objective_fn f, void *user, double offset, bool *reached);
/* Whether a state that was loaded is of a problem with these sizes. False: err. */
bool jitopt_fits(const jit_optimiser *o, int dimension, int objectives, jit_error *err);
/* A line of results, or JSON. names: of the problem. */
int jitopt_print(const jit_optimiser *o, const char *name, double offset, bool reached);
int jitopt_run(void);

/* ---- jitopt_problems.c: bbob, zdt and dtlz */
int jitopt_bbob(void);
int jitopt_problem(void);

#endif
