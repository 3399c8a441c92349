/* runtime/session/session.c - the tokens of a session: fed, chosen, taken back. Whatever fails leaves those there
 * were. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/system.h"
#include "runtime/model/options.h"
#include "runtime/session/session_draft.h"
#include "runtime/session/session_encode.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

int session_check_room(const jit_session *s, size_t more, jit_error *err)
{
	if (more <= s->context && s->length <= s->context - more)
		return JIT_OK;
	if (err) {
		struct error e = { 0 };
		if (more)
			error_set(&e, ERROR_ARGUMENT,
			          "the context of %u tokens is full: %zu are in use and %zu more were asked for",
			          s->context, s->length, more);
		else
			error_set(&e, ERROR_ARGUMENT,
			          "the context of %u tokens is full, so that nothing can follow the token chosen last",
			          s->context);
		model_report(err, &e);
		err->code = JIT_ERROR_CONTEXT;
	}
	return JIT_ERROR_CONTEXT;
}

int session_check_ids(const jit_session *s, const int32_t *ids, size_t n, jit_error *err)
{
	struct error e = { 0 };

	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || (uint32_t)ids[i] >= s->model->file.spec.vocab) {
			error_set(&e, ERROR_ARGUMENT, "token %zu is %d, which is not in 0..%u", i, ids[i],
			          s->model->file.spec.vocab - 1);
			return model_report(err, &e);
		}
	return session_check_room(s, n, err);
}

int session_check_tokens(const jit_session *s, const int32_t *ids, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (!s->model->file.spec.encodes)
		return session_check_ids(s, ids, n, err);
	session_refuse_to_generate(&e);
	return model_report(err, &e);
}

struct session_mark session_mark(const jit_session *s)
{
	return (struct session_mark){ s->length, s->computed, s->logits_valid };
}

int session_take_back(jit_session *s, struct session_mark before, const struct error *e, jit_error *err)
{
	bool went_on = e->code == ERROR_CANCELLED && s->computed > before.computed;

	size_t computed = went_on ? s->computed : before.computed;

	s->length = session_pictures_whole(s, computed > before.length ? computed : before.length);
	computed = computed < s->length ? computed : s->length;
	session_pictures_rewind(s, s->length);
	if (s->grammar)
		session_grammar_rewind(s, s->length);
	session_go_back(s, computed - ((went_on || before.had_logits) && computed == s->length));
	return session_report(s, err, e);
}

void session_go_back(jit_session *s, size_t n)
{
	if (!session_memory_serves(&s->model->file.spec, n, s->memory.window_first)) {
		session_memory_begin_window(&s->memory, &s->model->file.spec, 0, 0);
		n = 0;
	}
	states_forget(&s->memory.states, n);
	s->computed = n;
	s->logits_valid = false;
}

int session_report(jit_session *s, jit_error *err, const struct error *e)
{
	if (e->code == ERROR_CANCELLED)
		atomic_store(&s->cancel.own.requested, 0);
	return model_report(err, e);
}

void jit_session_cancel(jit_session *s)
{
	if (s)
		atomic_store(&s->cancel.own.requested, 1);
}

int jit_session_feed(jit_session *s, const int32_t *ids, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED_LIST(ids, n, &e))
		return model_report(err, &e);
	const struct session_mark before = session_mark(s);
	double start = system_seconds();
	int status = n ? session_check_tokens(s, ids, n, err) : JIT_OK;

	if (n == 0 || status != JIT_OK)
		return status;
	if (s->grammar && !session_grammar_take(s, ids, n, &e))
		return model_report(err, &e);
	memcpy(s->ids + s->length, ids, n * sizeof *ids);
	s->length += n;
	if (!session_compute(s, PROFILE_PROMPT, &e))
		return session_take_back(s, before, &e, err);
	session_prompt_done(s);
	s->prompt_tokens += s->computed - before.computed;
	s->prompt_seconds += system_seconds() - start;
	return JIT_OK;
}

int jit_session_feed_text(jit_session *s, const char *text, size_t n, int parse_special, jit_error *err)
{
	struct error e = { 0 };
	int32_t *ids = NULL;
	size_t n_ids = 0;

	if (!NEEDED(s, &e) || !NEEDED_LIST(text, n, &e))
		return model_report(err, &e);
	int status = jit_model_tokenize(s->model, text, n, s->length == 0, parse_special, &ids, &n_ids, err);

	if (status == JIT_OK)
		status = jit_session_feed(s, ids, n_ids, err);
	free(ids);
	return status;
}

/* They are there, if they can be: whatever was pending is computed. */
static int give_logits(const jit_session *s, jit_error *err)
{
	struct error e = { 0 };

	if (s->model->file.spec.encodes)
		session_refuse_to_generate(&e);
	else if (!s->logits_valid)
		error_set(&e, ERROR_ARGUMENT, "there are no logits: feed at least one token first");
	return model_report(err, &e);
}

int session_ensure_logits(jit_session *s, jit_error *err)
{
	struct error e = { 0 };
	size_t before = s->computed;
	double start = system_seconds();
	int status;

	if (s->length > s->context)
		return session_check_room(s, 0, err);
	if (s->member && (status = batch_member_logits(s, err)) != JIT_OK)
		return status;
	if (s->computed < s->length) {
		bool draft = s->speculate.mode != SPECULATE_OFF && s->length - s->computed == 1 &&
		             !session_shows(s, s->computed); /* a picture's token goes alone */
		if (!(draft ? session_compute_chosen(s, &e) : session_compute(s, PROFILE_DECODE, &e)))
			return session_report(s, err, &e);
		s->decode_passes += !draft;
		s->decode_tokens += s->computed - before;
		s->decode_seconds += system_seconds() - start;
	}
	return give_logits(s, err);
}

/* The logits without what the model's own files forbid here. NULL: nothing is left. */
static const float *keep_rules(jit_session *s, const float *logits, struct error *err)
{
	const float *given = logits;
	const struct sampling *p = &s->sampling;
	const bool some_forbidden = s->grammar || s->told.logits_fn || (p->chain && p->params.n_logit_bias >= p->vocab);

	if (s->chosen_to != s->length)
		s->chosen_from = s->length;
	rules_apply(&s->rules, &logits, s->ids, s->length, s->chosen_from == s->length);
	if ((logits == given && !some_forbidden) || sampling_any_left(&s->sampling, logits))
		return logits;
	error_set(err, ERROR_ARGUMENT,
	          "no token may follow here: the grammar, logit_bias, a function for logits and the model's own files "
	          "(docs/sampling.md), as far as there are any, forbid all of them");
	return NULL;
}

int jit_session_next(jit_session *s, int32_t *id, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED(id, &e))
		return model_report(err, &e);
	int status = session_ensure_logits(s, err);
	if (status != JIT_OK)
		return status;
	double start = system_seconds();
	const float *logits = session_ask_logits(s, s->logits, &e);
	if (logits && s->grammar)
		logits = session_grammar_logits(s, logits, &e);
	if (!logits || !(logits = keep_rules(s, logits, &e)))
		return model_report(err, &e);
	if (!s->limited)
		*id = sampling_choose_knowing(&s->sampling, logits, session_greatest(s, logits), s->ids, s->length);
	else if (!session_limits_choose(s, logits, id, &e))
		return model_report(err, &e);
	if (s->length < s->n_forced)
		*id = s->forced[s->length];
	if (s->grammar && !session_grammar_take(s, id, 1, &e)) {
		sampling_rewind(&s->sampling, s->length);
		return model_report(err, &e);
	}
	s->ids[s->length++] = *id;
	s->chosen_to = s->length;
	s->decode_seconds += system_seconds() - start;
	return JIT_OK;
}

const float *jit_session_logits(jit_session *s, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e)) {
		model_report(err, &e);
		return NULL;
	}
	return session_ensure_logits(s, err) == JIT_OK ? s->logits : NULL;
}

size_t jit_session_length(const jit_session *s) { return s ? s->length : 0; }

size_t session_computed(const jit_session *s) { return s->computed; }

const int32_t *jit_session_ids(const jit_session *s) { return s ? s->ids : NULL; }

int jit_session_rewind(jit_session *s, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e))
		return model_report(err, &e);
	if (n > s->length) {
		error_set(&e, ERROR_ARGUMENT, "rewind to %zu: the session has %zu tokens", n, s->length);
		return model_report(err, &e);
	}
	if (session_pictures_whole(s, n) != n) {
		error_set(&e, ERROR_ARGUMENT, "rewind to %zu: that is within a picture, which begins at %zu", n,
		          session_pictures_whole(s, n));
		return model_report(err, &e);
	}
	if (n < s->computed)
		session_go_back(s, n);
	session_pictures_rewind(s, n);
	if (s->member)
		batch_member_changed(s);
	if (n < s->length)
		speculate_rewind(&s->speculate, (uint32_t)n);
	sampling_rewind(&s->sampling, n);
	if (s->grammar)
		session_grammar_rewind(s, n);
	if (s->limited)
		session_limits_rewind(s, n);
	s->length = n;
	s->chosen_from = s->chosen_from < n ? s->chosen_from : n;
	s->chosen_to = s->chosen_to < n ? s->chosen_to : n;
	return JIT_OK;
}

int jit_session_set_sampling(jit_session *s, const jit_sampling *p, jit_error *err)
{
	struct error e = { 0 };
	jit_sampling params;

	if (NEEDED(s, &e) && options_sampling(&params, p, &e) && sampling_set(&s->sampling, &params, s->context, &e))
		session_draft_sampling(s, &params);
	return model_report(err, &e);
}

bool session_skip(jit_session *s, size_t n)
{
	if (s->length || n >= s->context)
		return false;
	memset(s->ids, 0, n * sizeof *s->ids);
	s->length = s->computed = n;
	session_memory_begin_window(&s->memory, &s->model->file.spec, n, 0);
	if (s->memory.states.bytes)
		states_take(&s->memory.states, n); /* new memory, which is 0 */
	return true;
}

void session_force(jit_session *s, const int32_t *ids, size_t n)
{
	s->forced = ids;
	s->n_forced = n;
}
