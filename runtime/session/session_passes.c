/* runtime/session/session_passes.c - a pass over some tokens: its plan, which is built when it is first needed, and its
 * run, watched by the profile and the tuner. */
#include <string.h>

#include "runtime/host/system.h"
#include "runtime/session/session_state.h"

bool session_begin_run(jit_session *s, uint64_t position, uint32_t tokens, struct plan_sequence *at, struct error *err)
{
	struct session_memory *m = &s->memory;
	uint8_t *before = NULL, *behind = NULL;

	if (s->member && !batch_member_may_write(s, position, tokens, err))
		return false;
	session_memory_slide(m, &s->model->file.spec, position, tokens);
	if (m->states.bytes && !states_begin(&m->states, m->device, position, &before, &behind, err))
		return false;
	*at = (struct plan_sequence){ .position = position, .before = before, .behind = behind };
	return session_memory_tables(m, &at->pages, &at->window_pages, err);
}

void session_end_run(jit_session *s, const struct plan_sequence *at, uint32_t tokens)
{
	if (at->behind)
		states_done(&s->memory.states, at->behind, at->position + tokens);
}

bool session_run(jit_session *s, struct plan *p, uint64_t position, const int32_t *ids, enum profile_pass kind,
                 struct error *err)
{
	const struct plan_buffers *buf = &s->engine->memory.buf;
	struct plan_sequence at;

	memcpy(buf->ids, ids, p->tokens * sizeof *ids);
	engine_read_rows(s->engine, session_adapters_at(s, position), 0, p->tokens);
	plan_fill_positions(buf, &s->model->file.spec, 0, position, p->tokens);
	session_fill_angles(s, buf, 0, position, p->tokens);
	if (s->engine->shows)
		session_fill_shown(s, buf, position, p->tokens);
	if (!session_begin_run(s, position, p->tokens, &at, err))
		return false;
	if (!engine_run(s->engine, p, &at, kind, &s->cancel, err))
		return false;
	session_end_run(s, &at, p->tokens);
	return true;
}

void session_adapt(jit_session *s, uint64_t position)
{
	const struct adapters_chosen *chosen = session_adapters_at(s, position);

	engine_adapt(s->engine, &chosen, 1);
}

/* The tokens from the last state on that is kept are computed once more, up to where the next pass begins: the text was
 * taken back there, or draft tokens were refused. */
static bool replay(jit_session *s, enum profile_pass kind, struct error *err)
{
	struct session_states *t = &s->memory.states;
	uint64_t at;

	while (t->bytes && (at = states_position(t, states_find(t, s->computed))) < s->computed) {
		session_adapt(s, at);
		uint32_t n = s->computed - at < s->engine->batch ? (uint32_t)(s->computed - at) : s->engine->batch;
		n = session_pass_tokens(s, at, n);
		engine_show(s->engine, session_shows(s, at));
		struct plan *p = engine_find_plan(s->engine, n, at, PLAN_NO_LOGITS, kind, err);
		if (!p || (cancel_any(&s->cancel) && !cancel_error(err)) ||
		    !session_run(s, p, at, s->ids + at, kind, err))
			return false;
	}
	return true;
}

bool session_compute_pass(jit_session *s, const int32_t *ids, uint32_t n, enum plan_logits logits,
                          enum profile_pass kind, double *seconds, struct error *err)
{
	if (cancel_any(&s->cancel))
		return cancel_error(err);
	if ((s->member && !batch_member_ready(s, s->computed + n, err)) ||
	    (logits == PLAN_ALL_LOGITS && !engine_map_all_logits(s->engine, err)))
		return false;
	double start = system_seconds();
	if (!replay(s, kind, err))
		return false;
	s->again_seconds = system_seconds() - start;
	session_adapt(s, s->computed);
	engine_show(s->engine, session_shows(s, s->computed));
	struct plan *p = engine_find_plan(s->engine, n, s->computed, logits, kind, err);
	if (!p)
		return false;
	s->logits_valid = false;
	start = system_seconds();
	if (!session_run(s, p, s->computed, ids, kind, err))
		return false;
	s->logits = logits == PLAN_ALL_LOGITS ? s->engine->memory.all_logits : s->engine->memory.buf.logits;
	*seconds = system_seconds() - start;
	return true;
}

struct stream *session_stream(jit_session *s) { return s->engine->stream; }

struct plan *session_plan(jit_session *s, uint32_t tokens, bool logits, struct error *err)
{
	session_adapt(s, s->computed);
	if (tokens > 1 && logits && !engine_map_all_logits(s->engine, err))
		return NULL;
	return engine_find_plan(s->engine, tokens, s->computed,
	                        !logits      ? PLAN_NO_LOGITS
	                        : tokens > 1 ? PLAN_ALL_LOGITS
	                                     : PLAN_LAST_LOGITS,
	                        PROFILE_PROMPT, err);
}

bool session_prepare(jit_session *s, struct plan *p, struct error *err)
{
	return s->engine->stream->prepare(s->engine->stream, p, s->engine->pool, err);
}

bool session_pass(jit_session *s, const struct plan *p, struct error *err)
{
	static const int32_t ids[SESSION_MAX_TOKENS];
	double ignored;

	return session_compute_pass(s, ids, p->tokens, p->logits, PROFILE_PROMPT, &ignored, err);
}

void session_pin_general(jit_session *s) { s->engine->general = true; }

void session_part_context(jit_session *s, uint64_t from)
{
	s->engine->parts = true;
	s->engine->parts_from = from;
}

void session_rest(jit_session *s)
{
	if (s->engine->compile_ahead)
		compile_ahead_drain(s->engine->compile_ahead);
}
