/* bench/predict.h - predicts how long a token would take on a card that is not here, from what its simulator counts
 * and what the card's data sheet says.
 *
 * Owns: the model of time, which is a few lines of arithmetic, and its assumptions, which are printed with every
 * prediction. Nothing is measured here; constants that somebody measured may be read from a report. The kernels are
 * counted one by one in a model of a few layers; the plan says how many of each a whole pass has.
 */
#ifndef BENCH_PREDICT_H
#define BENCH_PREDICT_H

#include <stdio.h>

#include "base/error.h"
#include "programs/common/shapes.h"

/* What a card was measured to take, by jitrun doctor --report; 0: it was not. */
struct predict_measured {
	char name[64];
	unsigned units;
	double clock, bandwidth; /* as its driver tells them, Hz and bytes/s */
	double launch, barrier;  /* seconds */
	double read;             /* bytes/s of weights, in passes of one token over a large model */
};
/* False: err says which field of the file is wrong. */
bool predict_report_read(struct predict_measured *out, const char *path, const char *target, struct error *err);

struct predict_options {
	const char *target; /* "gfx1100" */
	const char *path;   /* the model; NULL: one made up of the next two */
	const struct model_shape *shape;
	const struct mixture *mixture;
	uint32_t depth;  /* positions in the context already */
	uint32_t tokens; /* of the pass, 16 at most; logits for each, as in passes over draft tokens */
	int kv, f32_activations;
	const char *report; /* of jitrun doctor, on such a card; NULL: none */
};

/* Prints the prediction as markdown. */
bool predict(const struct predict_options *o, FILE *out, struct error *err);

#endif
