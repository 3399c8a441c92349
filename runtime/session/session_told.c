/* runtime/session/session_told.c - functions of the caller's that a session calls: before a token is chosen, and while
 * a prompt is computed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_logits.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

int jit_session_set_logits_fn(jit_session *s, jit_logits_fn fn, void *user, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e))
		return model_report(err, &e);
	if (fn && !s->told.logits)
		s->told.logits = malloc(s->model->file.spec.vocab * sizeof *s->told.logits);
	if (fn && !s->told.logits) {
		error_set(&e, ERROR_MEMORY, "no memory for a session's logits");
		return model_report(err, &e);
	}
	s->told.logits_fn = fn;
	s->told.logits_user = user;
	return JIT_OK;
}

const float *session_ask_logits(jit_session *s, const float *logits, struct error *err)
{
	const uint32_t vocab = s->model->file.spec.vocab;
	float *own = s->told.logits;

	if (!s->told.logits_fn)
		return logits;
	memcpy(own, logits, vocab * sizeof *own);
	const int answer = s->told.logits_fn(s->told.logits_user, own, vocab, s->ids, s->length);
	if (answer) {
		error_set(err, ERROR_CANCELLED, "the function for logits gave %d behind %zu tokens", answer, s->length);
		return NULL;
	}
	for (uint32_t i = 0; i < vocab; i++)
		if (!(own[i] < INFINITY)) {
			error_set(err, ERROR_ARGUMENT,
			          "the function for logits made that of token %u %s; expected a finite number or "
			          "-infinity",
			          i, own[i] != own[i] ? "nan" : "inf");
			return NULL;
		}
	return own;
}

int jit_session_set_prompt_fn(jit_session *s, jit_prompt_fn fn, void *user, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e))
		return model_report(err, &e);
	s->told.prompt_fn = fn;
	s->told.prompt_user = user;
	return JIT_OK;
}

void session_tell_prompt(jit_session *s)
{
	if (s->told.prompt_fn && s->told.prompt_fn(s->told.prompt_user, s->computed, s->length) &&
	    s->computed < s->length)
		jit_session_cancel(s);
}
