/* programs/jittrain/jittrain.h - what the parts of the jittrain program share.
 *
 *   jittrain_main.c     the command line, and what is done
 *   jittrain_run.c      one training: data, steps, evaluations, checkpoints, what is saved
 *   jittrain_report.c   what a person and a program are told: lines, JSON, the curve
 *
 * stdout carries JSON alone (--json); everything said to a person goes to stderr.
 */
#ifndef PROGRAMS_JITTRAIN_H
#define PROGRAMS_JITTRAIN_H

#include <stdint.h>

#include "include/jitrun_train.h"
#include "programs/common/options.h"
#include "train/data.h"

/* Exit status: done; failed; a wrong command line; interrupted. */
enum { TRAIN_DONE, TRAIN_FAILED, TRAIN_USAGE, TRAIN_INTERRUPTED = 130 };

struct train_arguments {
	const char *command, *model, *out;
	struct option_list data;
	const char *eval, *targets, *schedule, *too_long, *template_file, *init, *format, *device, *isa, *cache;
	long steps, batch, context, rank, warmup, seed, threads, save_every, eval_every;
	double epochs, alpha, rate, least_rate, weight_decay, beta1, beta2, epsilon, clip, dropout;
	bool rslora, dora, apart, in_order, resume, json, quiet, no_cache, no_plot, keep;
};
extern struct train_arguments train;
extern jit_cancel *train_cancel;

int train_fail(const char *sentence);
int train_run(void);

/* ---- jittrain_report.c */

struct curve_point {
	uint64_t step, tokens;
	double loss, norm, rate,
		evaluated; /* evaluated: the loss of the data that is held back; below 0: not computed */
};
struct curve {
	struct curve_point *point;
	size_t n, room;
};
bool curve_add(struct curve *c, struct curve_point p);
/* OUT/losses.csv, whole or not at all. False: err. */
bool curve_write(const struct curve *c, const char *folder, struct error *err);
/* What was written, up to `steps`; a file that is not there is an empty one. */
void curve_read(struct curve *c, const char *folder, uint64_t steps);
/* OUT/losses.png, by gnuplot where that is installed; nothing is said otherwise. */
void curve_plot(const char *folder);

struct run_facts {
	uint64_t steps, first; /* first: the step behind which this run begins */
	size_t rows, documents, skipped;
	uint64_t tokens, counted;
	const char *device;
	int threads;
};
void report_begin(const struct run_facts *f);
void report_step(const struct run_facts *f, const jit_train_report *r);
void report_evaluation(const char *what, const jit_train_report *r);
void report_saved(const char *path);
void report_new(const char *path, uint64_t weights);

#endif
