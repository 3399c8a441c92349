/* runtime/session/session_embed.c - what a model holds of a text: rows of hidden state behind the final norm, and what
 * is made of them (pooling.h).
 *
 * Rows come from plans that end with the final norm of all tokens, in passes as wide as a prompt's. They are kernels'
 * results, so that the numerics contract makes their bits. Models that encode have texts whole in a pass, several at
 * once where there is room (session_encode.c).
 */
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"
#include "include/jitrun_texts.h"
#include "runtime/model/options.h"
#include "runtime/session/pooling.h"
#include "runtime/session/session_encode.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

/* An embedding in the making. */
struct embedding {
	struct pooling pooling;
	size_t first, n; /* its tokens, by position */
	float *rows;     /* of a pass */
};

/* The rows of a pass over n tokens from `computed` on. */
static bool take_rows(struct embedding *e, const jit_session *s, uint32_t n, struct error *err)
{
	struct device *d = s->model->device;
	const uint64_t stride = numerics_pad(e->pooling.hidden);

	if (!d->read(d, e->rows, plan_normed(&s->engine->memory.buf), n * stride * sizeof *e->rows, err))
		return false;
	for (uint32_t c = 0; c < n; c++) {
		const float *row = e->rows + c * stride;
		const size_t position = s->computed + c;
		if (!pooling_check_row(&e->pooling, row, position, s->ids[position], err))
			return false;
		if (position >= e->first)
			pooling_row(&e->pooling, position - e->first, row);
	}
	return true;
}

/* Computes tokens computed .. length-1, of which some before the first may be due, too. */
static bool compute_rows(struct embedding *e, jit_session *s, struct error *err)
{
	speculate_drop(&s->speculate);
	while (s->computed < s->length) {
		const size_t left = s->length - s->computed;
		const uint32_t n = session_adapted_alike(s, s->computed,
		                                         left < s->engine->batch ? (uint32_t)left : s->engine->batch);
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

static bool check_sizes(const struct pooling *p, size_t n, size_t n_out, struct error *err)
{
	const size_t want = pooling_floats(p, n);

	if (n == 0)
		return error_set(err, ERROR_ARGUMENT, "an embedding of 0 tokens was asked for; expected at least 1");
	if (!pooling_check(p, err))
		return false;
	if (p->options.pooling == JIT_POOL_RANK)
		return n_out == 1 ||
		       error_set(err, ERROR_ARGUMENT, "n_out: %zu floats were given for a score; expected 1", n_out);
	return n_out == want ||
	       error_set(err, ERROR_ARGUMENT, "n_out: %zu floats were given for an embedding; expected %zu times %u",
	                 n_out, want / p->width, p->width);
}

/* Behind what the session has. */
static bool append(struct embedding *e, jit_session *s, const int32_t *ids, float *out, struct error *err)
{
	e->rows = malloc(s->engine->batch * numerics_pad(e->pooling.hidden) * sizeof *e->rows);
	if (!e->rows)
		return error_set(err, ERROR_MEMORY, "no memory for the rows of %u tokens", s->engine->batch);
	memcpy(s->ids + s->length, ids, e->n * sizeof *ids);
	s->length += e->n;
	pooling_begin(&e->pooling, e->n, out);
	const bool ok = compute_rows(e, s, err) && pooling_end(&e->pooling, err);
	free(e->rows);
	return ok;
}

static int embed(jit_session *s, const int32_t *ids, size_t n, const jit_embedding_options *o, float *out, size_t n_out,
                 jit_error *err)
{
	struct embedding e = { .first = s->length, .n = n };
	const struct session_mark before = session_mark(s);
	const double start = system_seconds();
	struct error why = { 0 };
	int status = JIT_OK;

	bool ok = pooling_open(&e.pooling, &s->model->file, o, &why) && check_sizes(&e.pooling, n, n_out, &why);
	if (ok && (status = session_check_tokens(s, ids, n, err)) == JIT_OK && !append(&e, s, ids, out, &why))
		status = session_take_back(s, before, &why, err);
	pooling_close(&e.pooling);
	if (!ok)
		return model_report(err, &why);
	if (status == JIT_OK) {
		s->prompt_tokens += s->computed - before.computed;
		s->prompt_seconds += system_seconds() - start;
	}
	return status;
}

int jit_session_embed(jit_session *s, const int32_t *ids, size_t n, const jit_embedding_options *options, float *out,
                      size_t n_out, jit_error *err)
{
	struct error e = { 0 };
	jit_embedding_options o;

	if (!NEEDED(s, &e) || !NEEDED_LIST(ids, n, &e) || !NEEDED(out, &e) || !options_embedding(&o, options, &e))
		return model_report(err, &e);
	if (s->model->file.spec.encodes)
		return jit_session_embed_texts(s, &(jit_embedding_text){ .ids = ids, .n = n }, 1, &o, out, n_out, err);
	return embed(s, ids, n, &o, out, n_out, err);
}

/* ---- several texts */

/* What all texts together become. */
static bool check_texts(const struct pooling *p, const jit_embedding_text *texts, size_t n, size_t n_out,
                        struct error *err)
{
	size_t all = 0;

	if (!pooling_check(p, err))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (texts[i].n == 0)
			return error_set(err, ERROR_ARGUMENT, "text %zu has 0 tokens; expected at least 1", i);
		if (!texts[i].ids)
			return error_set(err, ERROR_ARGUMENT, "text %zu has no ids (NULL)", i);
		all += pooling_floats(p, texts[i].n);
	}
	return n_out == all || error_set(err, ERROR_ARGUMENT,
	                                 "n_out: %zu floats were given for %zu texts; expected %zu", n_out, n, all);
}

/* One after the other, each in an empty session. */
static int embed_one_by_one(jit_session *s, const jit_embedding_text *texts, size_t n, const struct pooling *p,
                            float *out, jit_error *err)
{
	int status = JIT_OK;

	for (size_t i = 0; status == JIT_OK && i < n; i++) {
		const size_t floats = pooling_floats(p, texts[i].n);
		status = jit_session_rewind(s, 0, err);
		if (status == JIT_OK)
			status = embed(s, texts[i].ids, texts[i].n, &p->options, out, floats, err);
		out += floats;
	}
	return status;
}

int jit_session_embed_texts(jit_session *s, const jit_embedding_text *texts, size_t n,
                            const jit_embedding_options *options, float *out, size_t n_out, jit_error *err)
{
	struct error e = { 0 };
	jit_embedding_options o;
	struct pooling p;

	if (!NEEDED(s, &e) || !NEEDED_LIST(texts, n, &e) || !NEEDED_LIST(out, n, &e) ||
	    !options_embedding(&o, options, &e))
		return model_report(err, &e);
	if (!pooling_open(&p, &s->model->file, &o, &e) || !check_texts(&p, texts, n, n_out, &e)) {
		pooling_close(&p);
		return model_report(err, &e);
	}
	const int status = s->model->file.spec.encodes ? session_encode(s, texts, n, &p, out, err)
	                                               : embed_one_by_one(s, texts, n, &p, out, err);
	pooling_close(&p);
	return status;
}

int session_mean(const jit_model *m, const double *sum, size_t n, float *out, jit_error *err)
{
	struct error why = { 0 };

	pooling_mean(&m->file, sum, n, true, out, &why);
	return model_report(err, &why);
}
