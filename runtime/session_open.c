/* runtime/session_open.c - a session from its options to its end: what is asked for, what of it there is, and all that
 * it owns. */
#include <stdlib.h>

#include "runtime/host/system.h"
#include "runtime/options.h"
#include "runtime/plan/key_list.h"
#include "runtime/sampling/stop.h"
#include "runtime/session_state.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_BATCH = 264 /* whole tiles of 12 and 24 tokens */ };

uint32_t session_usual_context(const struct model_spec *s)
{
	return s->context_train && s->context_train < DEFAULT_CONTEXT ? s->context_train : DEFAULT_CONTEXT;
}

uint32_t session_usual_batch(uint32_t context) { return DEFAULT_BATCH < context ? DEFAULT_BATCH : context; }

static bool open_memory(jit_session *s, struct error *err)
{
	const struct model_spec *spec = &s->model->file.spec;

	s->tokens = s->speculate.mode != SPECULATE_OFF && s->batch < SPECULATE_MOST ? SPECULATE_MOST : s->batch;
	if (!session_memory_open(&s->memory, s->model->device, spec, s->tokens, s->context, err))
		return false;
	s->ids = malloc(((size_t)s->context + 1) * sizeof *s->ids);
	s->plan = calloc(((size_t)s->tokens + 1) * SESSION_LOGIT_KINDS, sizeof *s->plan);
	s->sampling.tokenizer = s->model->file.tokenizer;
	if (!s->ids || !s->plan || !sampling_open(&s->sampling, (int32_t)spec->vocab) ||
	    !speculate_open(&s->speculate, s->ids, s->context))
		return error_set(err, ERROR_MEMORY, "no memory for a session of %u tokens", s->context);
	return true;
}

static bool open_stream(jit_session *s, const jit_card_options *card, struct error *err)
{
	struct device *d = s->model->device;
	const struct stream_options so = { .registry = s->model->registry,
		                           .launch = (enum stream_launch)card->launch,
		                           .units = (uint32_t)card->units,
		                           .workgroups = (uint32_t)card->workgroups };

	if (!(s->device_stream = d->stream(d, &so, err)))
		return false;
	s->device_stream->cancel = &s->cancel;
	return true;
}

/* Nothing can be generated later on: better refused now than in the middle of a text. Where schedules are missing that
 * this machine likes, the usual ones do. */
static bool need_kernels(const jit_session *s, struct error *err)
{
	const jit_model *m = s->model;
	const struct warm_options o = {
		.target = m->target,
		.activations = m->f32_activations ? WARM_F32_ACTIVATIONS : WARM_INT8_ACTIVATIONS,
		.kv = warm_kv(s->memory.kv.type),
		.numerics = m->bounded ? WARM_BOUNDED : WARM_EXACT,
		.tokens = s->batch,
		.usual = true
	};
	struct key *keys;
	size_t n;

	if (!warm_keys(&m->file.spec, &o, &keys, &n, err))
		return false;
	bool ok = true;
	for (size_t i = 0; ok && i < n; i++)
		ok = (!cancel_any(&s->cancel) || cancel_error(err)) &&
		     registry_get(m->registry, &keys[i], NULL, err) != NULL;
	free(keys);
	return ok;
}

/* What decoding will need is made while the prompt is fed. Not where all kernels are there (sealed), where no code is
 * kept, as programs are made of kernels pass by pass (cards) or none is made (reference), or a dump should show kernels
 * in the order of their use. */
static bool open_regime(jit_session *s, struct error *err)
{
	const jit_model *m = s->model;
	const struct compile_ahead_options o = {
		.registry = m->registry,
		.spec = &m->file.spec,
		.plan = session_plan_options(s),
		.kv = s->memory.kv.type,
		.profile = s->profile,
		.finish = m->cache != NULL
	};

	if (m->sealed || !m->device->facts.keeps_code || m->dump_ir || m->dump_asm)
		return true;
	if (!(s->compile_ahead = compile_ahead_open(&o, err)))
		return false;
	compile_ahead_request(s->compile_ahead, 1, PLAN_LAST_LOGITS, s->tune_passes != 0);
	session_request_drafts(s);
	return true;
}

/* What is asked for, as numbers of the session. */
static void take_options(jit_session *s, const jit_session_options *o)
{
	s->context = o->context ? (uint32_t)o->context : session_usual_context(&s->model->file.spec);
	s->batch = o->batch ? (uint32_t)o->batch : session_usual_batch(s->context);
	if (s->batch > s->context)
		s->batch = s->context;
	s->speculate.fixed = speculate_width(o->speculate);
	s->speculate.mode = o->speculate == JIT_SPECULATE_OFF ? SPECULATE_OFF
	                    : s->speculate.fixed              ? SPECULATE_FIXED
	                                                      : SPECULATE_AUTO;
	s->memory.kv.type = options_kv_type(o->kv);
	s->cancel.from = o->cancel;
}

static bool open_profile(jit_session *s, int mode, struct error *err)
{
	if (mode == JIT_PROFILE_OFF)
		return true;
	s->profile = profile_open(pool_threads(s->pool), mode == JIT_PROFILE_EVENTS, err);
	s->device_stream->profile = s->profile;
	return s->profile != NULL;
}

static bool session_open(jit_session *s, const jit_session_options *options, struct error *err)
{
	const jit_model *m = s->model;
	jit_session_options o;
	jit_sampling sampling;
	jit_card_options card;

	if (!options_session(&o, options, err) || !options_sampling(&sampling, o.sampling, err) ||
	    !options_card(&card, o.card, err))
		return false;
	take_options(s, &o);
	if (cancel_any(&s->cancel))
		return cancel_error(err);
	if ((m->packed && !container_same(packed_container(m->packed), err)) ||
	    (m->kept_weights && !container_same(m->kept_weights, err)) ||
	    (m->sealed && !m->has_all && !need_kernels(s, err)) || !open_memory(s, err) ||
	    !rope_open(&s->rope, &m->file.spec, s->context, err) ||
	    !sampling_set(&s->sampling, &sampling, s->context, err) ||
	    !(s->pool = pool_open(o.threads ? o.threads : system_default_threads(), err)) ||
	    !open_stream(s, &card, err))
		return false;
	s->tune_passes = m->tune_passes;
	return open_profile(s, o.profile, err) && open_regime(s, err);
}

jit_session *jit_session_open(jit_model *m, const jit_session_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_session *s = calloc(1, sizeof *s);

	if (!s) {
		error_set(&e, ERROR_MEMORY, "no memory for a session");
	} else {
		s->model = m;
		if (session_open(s, options, &e))
			return s;
	}
	model_report(err, &e);
	jit_session_close(s);
	return NULL;
}

void jit_session_close(jit_session *s)
{
	if (!s)
		return;
	compile_ahead_close(s->compile_ahead);
	if (s->device_stream)
		s->device_stream->close(s->device_stream);
	pool_close(s->pool);
	profile_close(s->profile);
	tuner_close(s->tuner);
	if (s->model->tune && !s->model->sealed)
		tune_save(s->model->tune, NULL); /* what cannot be kept is found out again */
	for (size_t i = 0; s->plan && i < ((size_t)s->tokens + 1) * SESSION_LOGIT_KINDS; i++)
		if (s->plan[i]) {
			plan_free(s->plan[i]);
			free(s->plan[i]);
		}
	free(s->plan);
	sampling_close(&s->sampling);
	stop_close(s->stop);
	session_grammar_close(s->grammar);
	speculate_close(&s->speculate);
	session_memory_close(&s->memory);
	rope_close(&s->rope);
	free(s->ids);
	free(s->text);
	free(s);
}
