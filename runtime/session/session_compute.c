/* runtime/session/session_compute.c - which passes compute the tokens that are due, and whether their logits may be
 * given out.
 *
 * A decoding pass may go on over draft tokens (speculate.h). The cache then holds positions beyond `computed`; they
 * count for nothing until a chosen token equals the draft, and are overwritten otherwise.
 */
#include "kernels-templates/numerics.h"
#include "runtime/session/logits.h"
#include "runtime/session/session_draft.h"

static bool refuse_logits(const jit_session *s, size_t position, uint32_t bad, float value, struct error *err)
{
	return error_set(err, ERROR_FORMAT,
	                 "the logits after token %zu (id %d) are not finite: that of id %u is %s; the model's weights "
	                 "hold, or lead to, numbers that are none",
	                 position, s->ids[position], bad,
	                 value != value ? "nan"
	                 : value > 0    ? "inf"
	                                : "-inf");
}

const float *session_greatest(const jit_session *s, const float *row)
{
	const struct pass_memory *m = &s->engine->memory;
	const uint64_t vocab = numerics_pad(s->model->file.spec.vocab);
	const uint64_t at = m->all_logits ? (uint64_t)((uintptr_t)row - (uintptr_t)m->all_logits) / sizeof *row : 0;

	if (!s->engine->keeps_greatest)
		return NULL;
	if (row == m->buf.logits)
		return m->buf.greatest;
	return m->all_logits && at < (uint64_t)(m->all_greatest - m->all_logits)
	               ? m->all_greatest + at / vocab * (vocab / 32)
	               : NULL;
}

bool session_check_row(const jit_session *s, size_t position, const float *row, struct error *err)
{
	uint32_t vocab = s->model->file.spec.vocab;
	const float *greatest = session_greatest(s, row);

	if (greatest && logits_are_finite(greatest, vocab))
		return true;
	uint32_t bad = logits_first_bad(row, vocab);
	return bad == vocab || refuse_logits(s, position, bad, row[bad], err);
}

bool session_check_rows(const jit_session *s, uint32_t tokens, struct error *err)
{
	uint64_t stride = numerics_pad(s->model->file.spec.vocab);

	for (uint32_t c = 0; c < tokens; c++)
		if (!session_check_row(s, s->computed + c, s->engine->memory.all_logits + c * stride, err))
			return false;
	return true;
}

bool session_refuse_prompt(jit_session *s, size_t from, struct error *err)
{
	const struct error last = *err;
	struct error first = { 0 };
	double seconds;
	uint32_t max = s->engine->batch < SESSION_ALL_LOGITS ? s->engine->batch : SESSION_ALL_LOGITS, n;

	session_go_back(s, from);
	for (; s->computed < s->length; s->computed += n) {
		n = s->length - s->computed < max ? (uint32_t)(s->length - s->computed) : max;
		n = session_pass_tokens(s, s->computed, n);
		const bool all = n <= max; /* a picture whose tokens see each other has more: its last one's logits */
		if (!session_compute_pass(s, s->ids + s->computed, n, all ? PLAN_ALL_LOGITS : PLAN_LAST_LOGITS,
		                          PROFILE_PROMPT, &seconds, &first) ||
		    !(all ? session_check_rows(s, n, &first)
		          : session_check_row(s, s->computed + n - 1, s->logits, &first)))
			break;
	}
	*err = first.code == last.code ? first : last;
	session_go_back(s, from);
	return false;
}

bool session_compute_passes(jit_session *s, enum profile_pass kind, uint32_t once, struct error *err)
{
	const uint32_t limit = once && once < s->engine->batch ? once : s->engine->batch;
	size_t rest = (s->length - s->computed) % s->engine->batch, from = s->computed;

	speculate_drop(&s->speculate);
	if (!once && s->engine->compile_ahead && rest && rest < s->length - s->computed)
		compile_ahead_request(s->engine->compile_ahead, (uint32_t)rest, PLAN_LAST_LOGITS, false);
	while (s->computed < s->length) {
		size_t left = s->length - s->computed;
		uint32_t n = left < limit ? (uint32_t)left : limit;
		n = session_pass_tokens(s, s->computed, n);
		double seconds;
		if (!session_compute_pass(s, s->ids + s->computed, n, n == left ? PLAN_LAST_LOGITS : PLAN_NO_LOGITS,
		                          kind, &seconds, err))
			return false;
		speculate_prompt_took(&s->speculate, n, seconds);
		s->computed += n;
		if (kind == PROFILE_PROMPT)
			session_tell_prompt(s);
		if (once)
			break;
	}
	if (s->computed < s->length)
		return true;
	if (from < s->computed && !session_check_row(s, s->computed - 1, s->logits, err)) {
		session_refuse_prompt(s, from, err);
		return false;
	}
	s->logits_valid = s->computed > 0;
	return true;
}

bool session_compute(jit_session *s, enum profile_pass kind, struct error *err)
{
	return session_compute_passes(s, kind, 0, err);
}

void session_prompt_done(jit_session *s)
{
	if (!s->engine->compile_ahead)
		return;
	compile_ahead_wait(s->engine->compile_ahead, 1, PLAN_LAST_LOGITS);
	if (s->speculate.mode == SPECULATE_FIXED)
		compile_ahead_wait(s->engine->compile_ahead, speculate_tokens[s->speculate.fixed], PLAN_ALL_LOGITS);
}

/* The most tokens the next pass may have: drafts wait for their kernels, tokens do not wait for drafts. */
static uint32_t widest_pass(const jit_session *s)
{
	uint32_t room = (uint32_t)(s->context - s->computed), max = 1;

	for (unsigned w = 1; s->engine->compile_ahead && w < SPECULATE_WIDTHS; w++)
		if (s->engine->plan[speculate_tokens[w] * ENGINE_LOGIT_KINDS + PLAN_ALL_LOGITS] ||
		    compile_ahead_ready(s->engine->compile_ahead, speculate_tokens[w], PLAN_ALL_LOGITS))
			max = speculate_tokens[w];
	return session_adapted_alike(s, s->computed, s->engine->compile_ahead && max < room ? max : room);
}

bool session_compute_chosen(jit_session *s, struct error *err)
{
	if (cancel_any(&s->cancel))
		return cancel_error(err);
	if (speculate_hit(&s->speculate, s->computed, s->ids[s->computed])) {
		s->logits += numerics_pad(s->model->file.spec.vocab);
	} else {
		const uint32_t room = widest_pass(s);
		double seconds;
		session_draft(s, room);
		const struct speculate_window *w = speculate_next(&s->speculate, (uint32_t)s->length, room);
		if (!session_compute_pass(s, w->ids, w->tokens, w->tokens > 1 ? PLAN_ALL_LOGITS : PLAN_LAST_LOGITS,
		                          PROFILE_DECODE, &seconds, err)) {
			speculate_drop(&s->speculate);
			return false;
		}
		speculate_again(&s->speculate, s->again_seconds);
		speculate_took(&s->speculate, seconds);
		s->decode_passes++;
	}
	if (!session_check_row(s, s->computed, s->logits, err)) {
		speculate_drop(&s->speculate);
		s->logits_valid = false;
		return false;
	}
	s->computed++;
	s->logits_valid = true;
	return true;
}
