/* runtime/session/session_shift.c - tokens are taken out of the middle of a session's text, so that it can go on in a
 * context that is full.
 *
 * Owns: that what is left is computed again, as the text that it is now: no key or value is turned to another position,
 * so that the logits are those of a session that was fed the same tokens, whatever keeps them (attention, windows,
 * states). What was chosen stays chosen: grammar, limits and samplers go on where they were.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

/* Where a token is, or would be, behind the cut. */
size_t session_cut_position(const struct session_cut *c, size_t position)
{
	return position <= c->keep ? position : position < c->keep + c->n ? c->keep : position - c->n;
}

/* The pictures of what is left behind the cut, counted from there. */
static size_t behind(struct session_picture *list, size_t n, size_t from)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].first < from) {
			picture_release(list[i].of);
			continue;
		}
		list[kept] = list[i];
		list[kept++].first -= from;
	}
	return kept;
}

/* The tokens alone, and what is computed of them. */
static int cut_tokens(jit_session *s, const struct session_cut *c, jit_error *err)
{
	const size_t n = s->length - c->keep - c->n;
	int32_t *rest = malloc((n + 1) * sizeof *rest);
	struct session_picture *shown = NULL;
	size_t n_shown = 0;
	struct error e = { 0 };
	int status = JIT_OK;

	if (!rest || !session_pictures_take(s, s->length, &shown, &n_shown)) {
		error_set(&e, ERROR_MEMORY, "no memory for %zu tokens", n);
		status = model_report(err, &e);
	}
	if (status == JIT_OK) {
		memcpy(rest, s->ids + c->keep + c->n, n * sizeof *rest);
		n_shown = behind(shown, n_shown, c->keep + c->n);
		status = jit_session_rewind(s, c->keep, err);
	}
	if (status == JIT_OK) {
		adapters_begin(&s->adapters, session_cut_position(c, s->adapters.from));
		status = session_append_pictures(s, rest, n, shown, n_shown, err);
	}
	while (n_shown)
		picture_release(shown[--n_shown].of);
	free(shown);
	free(rest);
	return status;
}

int session_shift(jit_session *s, size_t keep, size_t n, jit_error *err)
{
	const struct session_cut cut = { keep, n };
	const size_t before = s->length, known = s->sampling.known, from = s->chosen_from, to = s->chosen_to;
	struct session_grammar *grammar = s->grammar;
	struct session_limited *limited = s->limited;
	struct error e = { 0 };

	if (n == 0 || keep > before || n >= before - keep) {
		error_set(&e, ERROR_ARGUMENT, "%zu tokens behind %zu cannot be taken out of a text of %zu", n, keep,
		          before);
		return model_report(err, &e);
	}
	if (session_pictures_whole(s, keep) != keep || session_pictures_whole(s, keep + n) != keep + n) {
		error_set(&e, ERROR_ARGUMENT, "%zu tokens behind %zu cannot be taken out: that is a part of a picture",
		          n, keep);
		return model_report(err, &e);
	}
	s->grammar = NULL;
	s->limited = NULL;
	const int status = cut_tokens(s, &cut, err);
	s->grammar = grammar;
	s->limited = limited;
	if (status != JIT_OK)
		return status;
	s->sampling.known = known;
	sampling_shift(&s->sampling, before, s->length);
	s->chosen_from = session_cut_position(&cut, from);
	s->chosen_to = session_cut_position(&cut, to);
	if (grammar)
		session_grammar_shift(grammar, &cut);
	if (limited)
		session_limits_shift(s, &cut);
	return JIT_OK;
}
