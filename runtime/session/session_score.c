/* runtime/session/session_score.c - how likely a model holds the tokens of a known text. */
#include <math.h>
#include <string.h>

#include "base/math_host.h"
#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"
#include "runtime/session/logits.h"
#include "runtime/session/session.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

/* What is wanted of the tokens that are scored: logprob and top may be NULL. */
struct wanted {
	float *logprob;
	jit_logprob *top; /* n_top of each */
	size_t n_top;
	float *logits; /* a row of each; NULL */
};

/* What the logits of the token before say of the token number i. */
static void score_token(const struct wanted *w, size_t i, const float *logits, uint32_t vocab, int32_t id)
{
	float *logprob = w->logprob ? w->logprob + i : NULL;

	if (w->n_top)
		logits_top(logits, vocab, id, logprob, w->top + i * w->n_top, w->n_top);
	else if (logprob)
		*logprob = logits_log_probability(logits, vocab, id);
}

/* The first token of a text has none before it. */
static void score_nothing(const struct wanted *w)
{
	if (w->logprob)
		w->logprob[0] = 0;
	for (size_t k = 0; k < w->n_top; k++)
		w->top[k] = (jit_logprob){ .id = -1 };
}

/* The n tokens from `computed` on, whose ids stand in s->ids: what is wanted of all but the first, which the caller
 * knows. Leaves the logits of the last. */
static bool score_tokens(jit_session *s, size_t n, const struct wanted *w, struct error *err)
{
	uint32_t vocab = s->model->file.spec.vocab,
		 max = s->engine->batch < SESSION_ALL_LOGITS ? s->engine->batch : SESSION_ALL_LOGITS;
	uint64_t stride = numerics_pad(vocab);

	speculate_drop(&s->speculate);
	for (size_t done = 0; done < n;) {
		uint32_t tokens = n - done < max ? (uint32_t)(n - done) : max;
		tokens = session_adapted_alike(s, s->computed, tokens);
		const int32_t *next = s->ids + s->computed + 1;
		double seconds;
		if (!session_compute_pass(s, s->ids + s->computed, tokens, PLAN_ALL_LOGITS, PROFILE_PROMPT, &seconds,
		                          err) ||
		    !session_check_rows(s, tokens, err))
			return false;
		for (uint32_t c = 0; c < tokens && done + c + 1 < n; c++)
			score_token(w, done + c + 1, s->engine->memory.all_logits + c * stride, vocab, next[c]);
		for (uint32_t c = 0; c < tokens && w->logits; c++)
			memcpy(w->logits + (done + c) * vocab, s->engine->memory.all_logits + c * stride,
			       vocab * sizeof *w->logits);
		done += tokens;
		s->computed += tokens;
		session_tell_prompt(s);
		s->logits = s->engine->memory.all_logits + (tokens - 1) * stride;
	}
	s->logits_valid = true;
	return true;
}

static int score(jit_session *s, const int32_t *ids, size_t n, const struct wanted *w, jit_error *err)
{
	const uint32_t vocab = s->model->file.spec.vocab;
	const bool scores = w->logprob || w->n_top;
	struct error e = { 0 };
	const size_t length = s->length;
	int status = n ? session_check_tokens(s, ids, n, err) : JIT_OK;

	if (n == 0 || status != JIT_OK ||
	    (length && (scores || s->computed < length) && (status = session_ensure_logits(s, err)) != JIT_OK))
		return status;
	if (s->grammar && !session_grammar_take(s, ids, n, &e))
		return model_report(err, &e);
	const struct session_mark before = session_mark(s);
	double start = system_seconds();
	if (length)
		score_token(w, 0, s->logits, vocab, ids[0]);
	else
		score_nothing(w);
	memcpy(s->ids + length, ids, n * sizeof *ids);
	s->length += n;
	if (!score_tokens(s, n, w, &e))
		return session_take_back(s, before, &e, err);
	session_prompt_done(s);
	s->prompt_tokens += n;
	s->prompt_seconds += system_seconds() - start;
	return JIT_OK;
}

int jit_session_score(jit_session *s, const int32_t *ids, size_t n, float *logprob, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED_LIST(ids, n, &e))
		return model_report(err, &e);
	return score(s, ids, n, &(struct wanted){ .logprob = logprob }, err);
}

int jit_session_feed_logits(jit_session *s, const int32_t *ids, size_t n, float *logits, size_t n_logits,
                            jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED_LIST(ids, n, &e) || !NEEDED_LIST(logits, n, &e))
		return model_report(err, &e);
	const uint32_t vocab = s->model->file.spec.vocab;
	if (n_logits / vocab != n || n_logits % vocab)
		error_set(&e, ERROR_ARGUMENT, "n_logits: %zu floats were given for %zu tokens; expected %zu times %u",
		          n_logits, n, n, vocab);
	return e.code ? model_report(err, &e) : score(s, ids, n, &(struct wanted){ .logits = logits }, err);
}

int session_score_top(jit_session *s, const int32_t *ids, size_t n, float *logprob, jit_logprob *top, size_t n_top,
                      jit_error *err)
{
	return score(s, ids, n, &(struct wanted){ logprob, top, n_top, NULL }, err);
}

/* Whether a token was chosen last and so many may be asked for. */
static bool may_ask(const jit_session *s, const char *who, size_t n, struct error *err)
{
	uint32_t vocab = s->model->file.spec.vocab, max = vocab < JIT_LOGPROBS_MOST ? vocab : JIT_LOGPROBS_MOST;

	if (!s->logits_valid || s->length != s->computed + 1)
		return error_set(err, ERROR_ARGUMENT,
		                 "no token was chosen last: %s is for the choice of jit_session_next", who);
	return n <= max ||
	       error_set(err, ERROR_ARGUMENT, "log probabilities of %zu tokens were asked for; expected 0..%u", n, max);
}

int jit_session_logprobs(jit_session *s, float *chosen, jit_logprob *top, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(s, &e) && NEEDED_LIST(top, n, &e) && may_ask(s, "jit_session_logprobs", n, &e))
		logits_top(s->logits, s->model->file.spec.vocab, s->ids[s->length - 1], chosen, top, n);
	return model_report(err, &e);
}

/* Puts a token where it belongs among those had so far, the likeliest first; returns how many there are then. */
static size_t put_among(jit_logprob *top, size_t have, size_t max, jit_logprob x)
{
	size_t at = have < max ? have : max;

	for (;
	     at > 0 && (x.logprob > top[at - 1].logprob || (x.logprob == top[at - 1].logprob && x.id < top[at - 1].id));
	     at--)
		if (at < max)
			top[at] = top[at - 1];
	if (at == max)
		return have;
	top[at] = x;
	return have < max ? have + 1 : max;
}

int jit_session_sampled_logprobs(jit_session *s, float *chosen, jit_logprob *top, size_t n, size_t *n_top,
                                 jit_error *err)
{
	struct error e = { 0 };
	size_t have = 0;

	if (!NEEDED(s, &e) || !NEEDED_LIST(top, n, &e) || !may_ask(s, "jit_session_sampled_logprobs", n, &e))
		return model_report(err, &e);
	if (chosen)
		*chosen = -INFINITY;
	for (int32_t i = 0, left = sampling_left(&s->sampling); i < left; i++) {
		double p;
		jit_logprob x = { .id = sampling_left_at(&s->sampling, i, &p) };
		if (!(p > 0))
			continue;
		x.logprob = (float)math_host_log(p);
		if (chosen && x.id == s->ids[s->length - 1])
			*chosen = x.logprob;
		have = put_among(top, have, n, x);
	}
	if (n_top)
		*n_top = have;
	return model_report(err, &e);
}
