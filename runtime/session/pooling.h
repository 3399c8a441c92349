/* runtime/session/pooling.h - what a text's embedding is made of, row by row: the rows of hidden state behind the final
 * norm, of its tokens in their order, and the dense layers that a pooled row goes through (dense.h).
 *
 * Sums and lengths are made in double, in the order that jitrun.h states, so that their bits depend on the rows alone.
 */
#ifndef RUNTIME_POOLING_H
#define RUNTIME_POOLING_H

#include "include/jitrun_texts.h"
#include "runtime/model/model.h"

struct pooling {
	const struct model *model;
	jit_embedding_options options;
	uint32_t hidden, width; /* numbers of a token's row, and of a row that is given */
	size_t n;               /* tokens of the text */
	float *out;             /* pooling_floats() of them */
	double *sum;            /* hidden each */
	float *row;
};

bool pooling_open(struct pooling *p, const struct model *m, const jit_embedding_options *options, struct error *err);
void pooling_close(struct pooling *p);
/* Floats that a text of n tokens becomes. */
size_t pooling_floats(const struct pooling *p, size_t n);
/* Whether what is asked for can be. */
bool pooling_check(const struct pooling *p, struct error *err);

/* The text's first row is to come. */
void pooling_begin(struct pooling *p, size_t n, float *out);
/* That of token `at`. */
void pooling_row(struct pooling *p, size_t at, const float *row);
bool pooling_end(struct pooling *p, struct error *err);

/* What the sums of all n rows of a text become by JIT_POOL_MEAN. */
bool pooling_mean(const struct model *m, const double *sum, size_t n, bool normalise, float *out, struct error *err);

/* Whether rows hold finite numbers; the first that does not is a sentence. */
bool pooling_check_row(const struct pooling *p, const float *row, size_t position, int32_t id, struct error *err);

#endif
