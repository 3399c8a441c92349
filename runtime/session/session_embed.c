/* runtime/session/session_embed.c - what a model holds of a text: rows of hidden state behind the final norm, and what
 * is made of them.
 *
 * Rows come from plans that end with the final norm of all tokens, in passes as wide as a prompt's. They are kernels'
 * results, so that the numerics contract makes their bits; a mean and a length are made here, in double, in the order
 * that jitrun.h states.
 */
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"
#include "runtime/model/classifier.h"
#include "runtime/session/logits.h"
#include "runtime/model/options.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

/* An embedding in the making. */
struct embedding {
	jit_embedding_options options;
	uint32_t hidden;
	size_t first, n; /* its tokens, by position */
	float *rows;     /* of a pass */
	double *sum;     /* with JIT_POOL_MEAN */
	float *out;
	float *row; /* with JIT_POOL_RANK, the last token's */
};

static bool embedding_open(struct embedding *e, const jit_session *s, struct error *err)
{
	e->rows = malloc(s->engine->batch * numerics_pad(e->hidden) * sizeof *e->rows);
	e->sum = calloc(e->hidden, sizeof *e->sum);
	e->row = calloc(e->hidden, sizeof *e->row);
	return (e->rows && e->sum && e->row) ||
	       error_set(err, ERROR_MEMORY, "no memory for the rows of %u tokens", s->engine->batch);
}

static void embedding_close(struct embedding *e)
{
	free(e->rows);
	free(e->sum);
	free(e->row);
}

/* The row of the token at a position, from the first on in their order. */
static void take_row(struct embedding *e, size_t position, const float *row)
{
	const size_t at = position - e->first;

	if (e->options.pooling == JIT_POOL_NONE)
		memcpy(e->out + at * e->hidden, row, e->hidden * sizeof *row);
	else if (e->options.pooling == JIT_POOL_LAST && at + 1 == e->n)
		memcpy(e->out, row, e->hidden * sizeof *row);
	else if (e->options.pooling == JIT_POOL_RANK && at + 1 == e->n)
		memcpy(e->row, row, e->hidden * sizeof *row);
	else if (e->options.pooling == JIT_POOL_MEAN)
		for (uint32_t i = 0; i < e->hidden; i++)
			e->sum[i] += (double)row[i];
}

static void normalise(float *row, uint32_t n)
{
	double squares = 0;

	for (uint32_t i = 0; i < n; i++)
		squares += (double)row[i] * (double)row[i];
	const double length = math_host_sqrt(squares);
	for (uint32_t i = 0; i < n && length > 0; i++)
		row[i] = (float)((double)row[i] / length);
}

static void embedding_finish(struct embedding *e)
{
	const size_t rows = e->options.pooling == JIT_POOL_NONE ? e->n : 1;

	if (e->options.pooling == JIT_POOL_MEAN)
		for (uint32_t i = 0; i < e->hidden; i++)
			e->out[i] = (float)(e->sum[i] / (double)e->n);
	for (size_t r = 0; e->options.normalise && r < rows; r++)
		normalise(e->out + r * e->hidden, e->hidden);
}

/* The rows of a pass over n tokens from `computed` on. */
static bool take_rows(struct embedding *e, const jit_session *s, uint32_t n, struct error *err)
{
	struct device *d = s->model->device;
	const uint64_t stride = numerics_pad(e->hidden);

	if (!d->read(d, e->rows, plan_normed(&s->engine->memory.buf), n * stride * sizeof *e->rows, err))
		return false;
	for (uint32_t c = 0; c < n; c++) {
		const float *row = e->rows + c * stride;
		const size_t position = s->computed + c;
		if (logits_first_bad(row, e->hidden) < e->hidden)
			return error_set(
				err, ERROR_FORMAT,
				"the hidden state of token %zu (id %d) is not finite; the model's weights hold, "
				"or lead to, numbers that are none",
				position, s->ids[position]);
		if (position >= e->first)
			take_row(e, position, row);
	}
	return true;
}

/* Computes tokens computed .. length-1, of which some before the first may be due, too. */
static bool compute_rows(struct embedding *e, jit_session *s, struct error *err)
{
	speculate_drop(&s->speculate);
	while (s->computed < s->length) {
		const size_t left = s->length - s->computed;
		const uint32_t n = left < s->engine->batch ? (uint32_t)left : s->engine->batch;
		double seconds;
		if (!session_compute_pass(s, s->ids + s->computed, n, PLAN_ALL_NORMED, PROFILE_PROMPT, &seconds, err) ||
		    !take_rows(e, s, n, err))
			return false;
		speculate_prompt_took(&s->speculate, n, seconds);
		s->computed += n;
		session_tell_prompt(s);
	}
	return true;
}

static bool check_rank(const struct embedding *e, const struct model *m, size_t n_out, struct error *err)
{
	if (!m->classifier.classes)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "a score was asked for of a model that has no classifier: its files do not say that "
		                 "it ranks texts");
	if (e->options.normalise)
		return error_set(err, ERROR_ARGUMENT, "normalise: %d is not 0, and a score has no length",
		                 e->options.normalise);
	return n_out == 1 ||
	       error_set(err, ERROR_ARGUMENT, "n_out: %zu floats were given for a score; expected 1", n_out);
}

static bool check_sizes(const struct embedding *e, const struct model *m, size_t n_out, struct error *err)
{
	const size_t rows = e->options.pooling == JIT_POOL_NONE ? e->n : 1;

	if (e->n == 0)
		return error_set(err, ERROR_ARGUMENT, "an embedding of 0 tokens was asked for; expected at least 1");
	if (e->options.pooling == JIT_POOL_RANK)
		return check_rank(e, m, n_out, err);
	return n_out / e->hidden == rows && n_out % e->hidden == 0
	               ? true
	               : error_set(err, ERROR_ARGUMENT,
	                           "n_out: %zu floats were given for an embedding; expected %zu times %u", n_out, rows,
	                           e->hidden);
}

int jit_session_embed(jit_session *s, const int32_t *ids, size_t n, const jit_embedding_options *options, float *out,
                      size_t n_out, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED_LIST(ids, n, &e) || !NEEDED(out, &e))
		return model_report(err, &e);
	struct embedding embedding = { .hidden = s->model->file.spec.hidden, .first = s->length, .n = n, .out = out };
	const struct session_mark before = session_mark(s);
	const double start = system_seconds();
	int status;

	if (!options_embedding(&embedding.options, options, &e) || !check_sizes(&embedding, &s->model->file, n_out, &e))
		return model_report(err, &e);
	if ((status = session_check_tokens(s, ids, n, err)) != JIT_OK)
		return status;
	memcpy(s->ids + s->length, ids, n * sizeof *ids);
	s->length += n;
	bool ok = embedding_open(&embedding, s, &e) && compute_rows(&embedding, s, &e);
	if (ok && embedding.options.pooling == JIT_POOL_RANK)
		ok = classifier_score(&s->model->file.classifier, embedding.hidden, embedding.row, out, &e);
	else if (ok)
		embedding_finish(&embedding);
	embedding_close(&embedding);
	if (!ok)
		return session_take_back(s, before, &e, err);
	s->prompt_tokens += s->computed - before.computed;
	s->prompt_seconds += system_seconds() - start;
	return JIT_OK;
}
