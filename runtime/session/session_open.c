/* runtime/session/session_open.c - a session from its options to its end: what is asked for, what of it there is, and
 * all that it owns. */
#include <stdlib.h>

#include "kernels-templates/numerics.h"
#include "runtime/model/load_weights.h"
#include "runtime/host/system.h"
#include "runtime/model/options.h"
#include "runtime/sampling/stop.h"
#include "runtime/session/session_draft.h"
#include "runtime/model/sized.h"

enum {
	MIN_CONTEXT = 4096, /* where nobody asks for a size, memory makes it no smaller */
	DEFAULT_BATCH = 264 /* whole tiles of 12 and 24 tokens */,
	DEFAULT_CARD_BATCH = 512 /* whole tiles of matrix products on cards that fill them with so many */
};

/* Of free memory, what a text that nobody gave a size may take at most. A card's is taken at once. */
enum { SHARE_OF_HOST = 2, SHARE_OF_CARD = 4 };

/* Longer contexts than the original one have other factors of rotation with LongRoPE: which ones a text gets may not
 * depend on how much memory there is, so that those are for who asks. */
static uint32_t trained_context(const struct model_spec *s)
{
	uint32_t n = s->context_train ? s->context_train : MIN_CONTEXT;

	if (s->rope.scaling == ROPE_LONG && s->rope.original_context && s->rope.original_context < n)
		n = s->rope.original_context;
	return n;
}

uint32_t session_usual_context(const struct model_spec *s, enum dtype kv, uint64_t memory)
{
	const uint32_t trained = trained_context(s), min = trained < MIN_CONTEXT ? trained : MIN_CONTEXT;
	struct session_memory m = { .kv.type = kv };

	session_memory_measure(&m, s, DEFAULT_CARD_BATCH, trained);
	if (m.kv_bytes <= memory || !m.kv.page_bytes)
		return trained;
	uint64_t fixed = m.kv_bytes - m.chunks * m.kv.page_bytes,
		 chunks = memory > fixed ? (memory - fixed) / m.kv.page_bytes : 0;
	return chunks * NUMERICS_CHUNK > min ? (uint32_t)(chunks * NUMERICS_CHUNK) : min;
}

uint32_t session_card_context(const struct model_spec *s, uint32_t context)
{
	if (!plan_dataflow_bytes(s, MIN_CONTEXT, 1))
		return context;
	while (context > MIN_CONTEXT && !plan_dataflow_bytes(s, context, 1))
		context -= NUMERICS_CHUNK;
	return context;
}

/* Of a session that is alone; of a model that is only measured, which has no device, on the host. */
static uint32_t own_usual_context(const jit_model *m, enum dtype kv)
{
	const struct device *d = m->device;
	uint64_t free_bytes = UINT64_MAX;

	if (!d || d->facts.host_runs)
		return session_usual_context(&m->file.spec, kv, system_available_memory() / SHARE_OF_HOST);
	if (!d->available || !d->available(m->device, &free_bytes))
		free_bytes = 0;
	uint32_t n = session_usual_context(&m->file.spec, kv, free_bytes / SHARE_OF_CARD);
	return d->facts.awaits ? session_card_context(&m->file.spec, n) : n;
}

uint32_t session_usual_batch(const struct target *t, uint32_t context)
{
	const uint32_t usual = t && t->has_parts ? DEFAULT_CARD_BATCH : DEFAULT_BATCH;

	return usual < context ? usual : context;
}

bool session_open_own(jit_session *s, const jit_sampling *sampling, struct error *err)
{
	const struct model_sampling *of = &s->model->file.sampling;
	const int32_t vocab = (int32_t)s->model->file.spec.vocab;

	s->ids = malloc(((size_t)s->context + 1) * sizeof *s->ids);
	s->sampling.tokenizer = s->model->file.tokenizer;
	s->sampling.never = of->never;
	s->sampling.n_never = of->n_never;
	if (!s->ids || !sampling_open(&s->sampling, vocab) || !rules_open(&s->rules, of, vocab) ||
	    !speculate_open(&s->speculate, s->ids, s->context))
		return error_set(err, ERROR_MEMORY, "no memory for a session of %u tokens", s->context);
	return sampling_set(&s->sampling, sampling, s->context, err) && session_usual_stop(s, err);
}

/* What is asked for, as numbers of the session and of its engine. */
static void take_options(jit_session *s, const jit_session_options *o)
{
	struct engine *e = s->engine;

	const bool encodes = s->model->file.spec.encodes;

	s->memory.kv.type = encodes ? DTYPE_F32 : options_kv_type(o->kv); /* kept for a layer's time, it may be wide */
	s->context = o->context ? (uint32_t)o->context : own_usual_context(s->model, s->memory.kv.type);
	if ((encodes || s->model->file.spec.pos_embed.bytes) && s->context > s->model->file.spec.context_train)
		s->context = s->model->file.spec.context_train; /* positions behind have no rows */
	if (encodes && !o->context && s->context > PLAN_ENCODED_MAX)
		s->context = PLAN_ENCODED_MAX;
	s->speculate.fixed = speculate_width(o->speculate);
	s->speculate.mode = o->speculate == JIT_SPECULATE_OFF ? SPECULATE_OFF
	                    : s->speculate.fixed              ? SPECULATE_FIXED
	                                                      : SPECULATE_AUTO;
	s->cancel.from = o->cancel;
	e->context = s->context;
	e->batch = o->batch ? (uint32_t)o->batch : session_usual_batch(s->model->target, s->context);
	if (e->batch > s->context)
		e->batch = s->context;
	if (encodes) { /* a text is whole in a pass */
		s->speculate.mode = SPECULATE_OFF;
		e->batch = o->batch ? (uint32_t)o->batch : PLAN_ENCODED_MIN;
		e->batch = s->context > e->batch ? s->context : e->batch;
	}
	e->speculate = s->speculate.mode;
	e->drafts = s->speculate.fixed;
	e->rows = PLAN_ALL_LOGITS_MAX;
	e->tokens = e->speculate != SPECULATE_OFF && e->batch < SPECULATE_MAX ? SPECULATE_MAX : e->batch;
}

/* Both kinds of memory together, before any is taken. */
static bool measure(jit_session *s, struct error *err)
{
	const struct model_spec *spec = &s->model->file.spec;
	struct engine *e = s->engine;
	const struct plan_layout_options layout = engine_layout_options(e);

	session_memory_measure(&s->memory, spec, e->tokens, s->context);
	e->kv = s->memory.kv;
	return pass_memory_measure(&e->memory, spec, &layout, err) &&
	       session_memory_check(&s->memory, &e->memory, s->model->device, s->context, err);
}

bool session_measure(jit_model *m, const jit_session_options *options, struct session_needs *out, struct error *err)
{
	struct engine e = { .model = m };
	jit_session s = { .model = m, .engine = &e };
	jit_session_options o;

	if (!options_session(&o, options, err))
		return false;
	take_options(&s, &o);
	session_memory_measure(&s.memory, &m->file.spec, e.tokens, s.context);
	const struct plan_layout_options layout = engine_layout_options(&e);
	if (!pass_memory_measure(&e.memory, &m->file.spec, &layout, err))
		return false;
	*out = (struct session_needs){ s.context, s.memory.kv_bytes, e.memory.buffers_bytes + e.memory.shared_bytes };
	return true;
}

/* Weights that are mapped from a file take no memory of the host's own: there, only the session is looked at. */
static uint64_t weight_bytes(const jit_model *m)
{
	struct weights_layout l = { 0 };

	return m->device->facts.host_runs || !weights_layout(&m->file.spec, weight_layout_of(m->target), &l, NULL)
	               ? 0
	               : weights_arena_bytes(m->device, &m->file.spec, weight_layout_of(m->target), l.matrix_bytes) +
	                         l.vector_bytes;
}

bool session_fits(jit_model *m, const jit_model_options *options, struct error *err)
{
	struct engine e = { .model = m };
	jit_session s = { .model = m, .engine = &e };
	jit_session_options o;
	uint64_t available, weights;

	if (!options->session)
		return true;
	if (!options_session(&o, options->session, err))
		return false;
	take_options(&s, &o);
	if (!measure(&s, err))
		return false;
	if (!m->device->available || !m->device->available(m->device, &available))
		return true;
	weights = weight_bytes(m);
	uint64_t needed = weights + s.memory.kv_bytes + e.memory.buffers_bytes;
	return needed <= available ||
	       error_set(err, ERROR_MEMORY,
	                 "the weights and a context of %u tokens need %llu bytes of the memory of the device %s, "
	                 "and %llu can be had; "
	                 "the weights are %llu, the KV cache %llu: %s",
	                 s.context, (unsigned long long)needed, m->device->facts.name, (unsigned long long)available,
	                 (unsigned long long)weights, (unsigned long long)s.memory.kv_bytes,
	                 weights < available ? "ask for a smaller context" : "the model is too large");
}

/* pool: another engine's; NULL: one of its own. */
static bool session_open(jit_session *s, const jit_session_options *options, struct pool *pool, struct error *err)
{
	jit_session_options o;
	jit_sampling sampling;
	jit_card_options card;

	if (!options_session(&o, options, err) || !options_sampling(&sampling, o.sampling, err) ||
	    !options_card(&card, o.card, err))
		return false;
	if (!(s->engine = calloc(1, sizeof *s->engine)))
		return error_set(err, ERROR_MEMORY, "no memory for a session");
	s->engine->model = s->model;
	take_options(s, &o);
	const struct engine_options eo = {
		.threads = o.threads, .pool = pool, .profile = o.profile, .card = &card, .cancel = &s->cancel
	};
	return measure(s, err) && engine_open(s->engine, &eo, err) &&
	       session_memory_open(&s->memory, s->model->device, &s->model->file.spec, s->engine->tokens, s->context,
	                           SESSION_OWN_PAGES, err) &&
	       session_open_own(s, &sampling, err) &&
	       (!o.draft || session_draft_start(s, o.draft, o.sampling, o.cancel, err));
}

/* The draft model's session computes with the threads of this one, when they have nothing to do. */
bool session_draft_start(jit_session *s, const jit_draft_options *o, const jit_sampling *sampling, jit_cancel *cancel,
                         struct error *err)
{
	jit_draft_options draft;

	if (!options_draft(&draft, o, err) || !session_draft_check(s->model, &draft, s->context, err))
		return false;
	const jit_session_options own_options =
		JIT_SESSION_OPTIONS(.context = draft.context, .kv = draft.kv, .speculate = JIT_SPECULATE_OFF,
	                            .sampling = sampling, .cancel = cancel);
	jit_session *own = calloc(1, sizeof *own);
	if (!own)
		return error_set(err, ERROR_MEMORY, "no memory for a draft model's session");
	own->model = draft.model;
	if (!session_open(own, &own_options, s->engine->pool, err)) {
		jit_session_close(own);
		return false;
	}
	s->speculate.ask.o = session_draft_asks(&draft);
	return session_draft_open(s, own, err);
}

jit_session *jit_session_open(jit_model *m, const jit_session_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_session *s = NEEDED(m, &e) ? calloc(1, sizeof *s) : NULL;

	if (!s) {
		error_set(&e, ERROR_MEMORY, "no memory for a session");
	} else {
		s->model = m;
		if (session_open(s, options, NULL, &e))
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
	session_draft_close(s->draft);
	if (s->member) {
		batch_member_close(s);
	} else if (s->engine) {
		engine_close(s->engine);
		free(s->engine);
	}
	sampling_close(&s->sampling);
	rules_close(&s->rules);
	stop_close(s->stop);
	session_grammar_close(s->grammar);
	session_limited_close(s->limited);
	adapters_drop(&s->adapters);
	speculate_close(&s->speculate);
	session_memory_close(&s->memory);
	session_pictures_close(s);
	free(s->ids);
	free(s->text);
	free(s->told.logits);
	free(s);
}
