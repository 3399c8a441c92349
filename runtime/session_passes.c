/* runtime/session_passes.c - a pass over some tokens: its plan, which is built when it is first needed, and its run,
 * watched by the profile and the tuner. */
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"
#include "runtime/plan/rope.h"
#include "runtime/session_state.h"

struct plan_options session_plan_options(const jit_session *s)
{
	const jit_model *m = s->model;
	return (struct plan_options){ .target = m->target,
		                      .f32_activations = m->f32_activations,
		                      .bounded = m->bounded,
		                      .tune = m->tune,
		                      .only = m->sealed ? m->registry : NULL,
		                      .general = s->general };
}

void session_request_drafts(jit_session *s)
{
	for (unsigned w = 1; s->compile_ahead && w < SPECULATE_WIDTHS; w++)
		if (s->speculate.mode == SPECULATE_AUTO ||
		    (s->speculate.mode == SPECULATE_FIXED && w == s->speculate.fixed))
			compile_ahead_request(s->compile_ahead, speculate_tokens[w], PLAN_ALL_LOGITS, false);
}

static uint64_t count_missing(const jit_session *s, const struct plan *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_kernels; i++)
		n += !registry_ready(s->model->registry, &p->kernel[i].key);
	return n;
}

struct plan *session_find_plan(jit_session *s, uint32_t tokens, enum plan_logits logits, enum profile_pass kind,
                               struct error *err)
{
	struct plan **slot = &s->plan[(size_t)tokens * SESSION_LOGIT_KINDS + logits];
	struct plan_options opt = session_plan_options(s);
	struct plan_buffers buf = s->memory.buf;
	bool tuned = s->tune_passes && tokens == 1 && logits == PLAN_LAST_LOGITS;

	if (*slot)
		return *slot;
	struct plan *p = calloc(1, sizeof *p);
	if (!p) {
		error_set(err, ERROR_MEMORY, "no memory for a plan");
		return NULL;
	}
	if (logits == PLAN_ALL_LOGITS) {
		buf.logits = s->memory.all_logits;
		buf.logit_tokens = SESSION_ALL_LOGITS;
	}
	bool built =
		plan_build(p, &s->model->file.spec, &s->model->weights, &buf, &s->memory.kv, tokens, logits, &opt, err);
	if (built && tuned) {
		s->tuner = tuner_open_quick(s->model->tune, p, s->tune_passes, pool_threads(s->pool), opt.only, err);
		s->tune_passes = 0;
		built = s->tuner || err->code == ERROR_NONE;
	}
	if (built && kind == PROFILE_DECODE)
		s->stalls += count_missing(s, p);
	if (!built || !s->device_stream->prepare(s->device_stream, p, s->pool, err) ||
	    (s->profile && !profile_add_plan(s->profile, p, err))) {
		if (tuned) {
			tuner_close(s->tuner);
			s->tuner = NULL;
		}
		plan_free(p);
		free(p);
		return NULL;
	}
	return *slot = p;
}

bool session_map_all_logits(jit_session *s, struct error *err)
{
	return session_memory_logits(&s->memory, &s->model->file.spec, SESSION_ALL_LOGITS, err);
}

/* Runs a plan, watched by the profile, and by the tuner while it is the tuner's. */
static bool run_plan(jit_session *s, struct plan *p, uint64_t position, enum profile_pass kind, struct error *err)
{
	bool tuned = s->tuner && p->took;
	uint64_t began = s->profile ? profile_now() : 0;

	if (tuned)
		tuner_before(s->tuner);
	if (!s->device_stream->run(s->device_stream, p, s->pool, err))
		return false;
	if (s->profile)
		profile_ran(s->profile, kind, p, position, began, profile_now());
	if (tuned) {
		unsigned judged = tuner_judged(s->tuner);
		bool over = tuner_after(s->tuner);
		if (judged != tuner_judged(s->tuner))
			session_request_drafts(s); /* with schedules like those found */
		if (over) {
			tuner_close(s->tuner);
			s->tuner = NULL;
		}
	}
	return true;
}

/* A plan over these tokens, from a position on, and from the state there where layers have one. */
static bool run_at(jit_session *s, struct plan *p, uint64_t position, const int32_t *ids, enum profile_pass kind,
                   struct error *err)
{
	struct session_memory *m = &s->memory;
	uint8_t *before, *behind = NULL;

	memcpy(m->buf.ids, ids, p->tokens * sizeof *ids);
	rope_fill(&s->rope, m->buf.cos, m->buf.sin, m->buf.tokens, position, p->tokens);
	if (!session_memory_slide(m, &s->model->file.spec, position, p->tokens, err))
		return false;
	plan_set_position(p, position, m->kv.window_base ? m->window_first * (uint64_t)NUMERICS_CHUNK : 0);
	if (m->states.bytes) {
		if (!states_begin(&m->states, m->device, position, &before, &behind, err))
			return false;
		plan_set_state(p, before, behind);
	}
	if (!run_plan(s, p, position, kind, err))
		return false;
	if (behind)
		states_done(&m->states, behind, position + p->tokens);
	return true;
}

/* The tokens from the last state on that is kept are computed once more, up to where the next pass begins: the text was
 * taken back there, or draft tokens were refused. */
static bool replay(jit_session *s, enum profile_pass kind, struct error *err)
{
	struct session_states *t = &s->memory.states;
	uint64_t at;

	while (t->bytes && (at = states_position(t, states_find(t, s->computed))) < s->computed) {
		uint32_t n = s->computed - at < s->batch ? (uint32_t)(s->computed - at) : s->batch;
		struct plan *p = session_find_plan(s, n, PLAN_NO_LOGITS, kind, err);
		if (!p || (cancel_any(&s->cancel) && !cancel_error(err)) || !run_at(s, p, at, s->ids + at, kind, err))
			return false;
	}
	return true;
}

bool session_compute_pass(jit_session *s, const int32_t *ids, uint32_t n, enum plan_logits logits,
                          enum profile_pass kind, double *seconds, struct error *err)
{
	if (cancel_any(&s->cancel))
		return cancel_error(err);
	if (logits == PLAN_ALL_LOGITS && !session_map_all_logits(s, err))
		return false;
	struct plan *p = session_find_plan(s, n, logits, kind, err);
	if (!p)
		return false;
	s->logits_valid = false;
	double start = system_seconds();
	if (!replay(s, kind, err) || !run_at(s, p, s->computed, ids, kind, err))
		return false;
	s->logits = logits == PLAN_ALL_LOGITS ? s->memory.all_logits : s->memory.buf.logits;
	*seconds = system_seconds() - start;
	return true;
}

struct stream *session_stream(jit_session *s) { return s->device_stream; }

struct plan *session_plan(jit_session *s, uint32_t tokens, bool logits, struct error *err)
{
	if (tokens > 1 && logits && !session_map_all_logits(s, err))
		return NULL;
	return session_find_plan(s, tokens,
	                         !logits      ? PLAN_NO_LOGITS
	                         : tokens > 1 ? PLAN_ALL_LOGITS
	                                      : PLAN_LAST_LOGITS,
	                         PROFILE_PROMPT, err);
}

bool session_prepare(jit_session *s, struct plan *p, struct error *err)
{
	return s->device_stream->prepare(s->device_stream, p, s->pool, err);
}

bool session_pass(jit_session *s, const struct plan *p, struct error *err)
{
	static const int32_t ids[SESSION_MAX_TOKENS];
	double ignored;

	return session_compute_pass(s, ids, p->tokens, p->logits, PROFILE_PROMPT, &ignored, err);
}

void session_pin_general(jit_session *s) { s->general = true; }

void session_rest(jit_session *s)
{
	if (s->compile_ahead)
		compile_ahead_drain(s->compile_ahead);
}
