/* runtime/session/session_text.c - the text of the tokens, as it becomes whole, up to the text that ends it. */
#include <stdlib.h>

#include "runtime/sampling/stop.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

/* The bytes a token completes, in s->text. False: no memory, and the token was not taken. */
static bool spell(jit_session *s, int32_t id, size_t *n)
{
	enum { MIN = 64 };

	if (!s->text) {
		if (!(s->text = malloc(MIN)))
			return false;
		s->text_capacity = MIN;
	}
	*n = id < 0 ? tokenizer_stream_end(&s->stream, s->text)
	     : s->model->file.tokenizer
	             ? tokenizer_stream(s->model->file.tokenizer, &s->stream, id, false, &s->text, &s->text_capacity)
	             : 0;
	return *n != SIZE_MAX;
}

/* What of the n bytes in s->text may be given out, *n of them. NULL: no memory. */
static const char *without_stops(jit_session *s, int32_t id, size_t *n)
{
	return !s->stop ? s->text : id < 0 ? stop_rest(s->stop, s->text, *n, n) : stop_take(s->stop, s->text, *n, n);
}

const char *jit_session_text(jit_session *s, int32_t id, size_t *n, jit_error *err)
{
	struct error e = { 0 };
	const char *text = NULL;

	if (n)
		*n = 0;
	if (!NEEDED(s, &e) || !NEEDED(n, &e)) {
		model_report(err, &e);
		return NULL;
	}
	const struct utf8_stream before = s->stream;
	if (id < -1 || (id >= 0 && (uint32_t)id >= s->model->file.spec.vocab)) {
		error_set(&e, ERROR_ARGUMENT, "the token %d is not in -1..%u", id, s->model->file.spec.vocab - 1);
	} else if (!spell(s, id, n) || !(text = without_stops(s, id, n))) {
		s->stream = before;
		*n = 0;
		error_set(&e, ERROR_MEMORY, "no memory for the text of token %d", id);
	}
	model_report(err, &e);
	return text;
}

static bool set_stop(jit_session *s, const char *const *texts, size_t n, struct error *err)
{
	struct stop *stop = n ? stop_open(texts, n, err) : NULL;

	if (n && !stop)
		return false;
	stop_close(s->stop);
	s->stop = stop;
	return true;
}

bool session_usual_stop(jit_session *s, struct error *err)
{
	const struct model_sampling *of = &s->model->file.sampling;

	return set_stop(s, (const char *const *)of->stop, of->n_stop, err);
}

int jit_session_set_stop(jit_session *s, const char *const *texts, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(s, &e) && NEEDED_LIST(texts, n, &e) && n)
		set_stop(s, texts, n, &e);
	else if (s && !n)
		session_usual_stop(s, &e);
	return model_report(err, &e);
}

int jit_session_stopped(const jit_session *s) { return s && s->stop ? stop_found(s->stop) : -1; }
