/* runtime/engine/engine.c - see engine.h. */
#include "runtime/engine/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/engine_ranks.h"
#include "runtime/host/system.h"
#include "runtime/model/adapters.h"
#include "runtime/plan/key_list.h"

/* ---- opening and closing */

static bool open_stream(struct engine *e, const struct engine_options *o, struct error *err)
{
	struct device *d = e->model->device;
	const struct stream_options so = { .registry = e->model->registry,
		                           .launch = (enum stream_launch)o->card->launch,
		                           .units = (uint32_t)o->card->units,
		                           .workgroups = (uint32_t)o->card->workgroups };

	return (e->stream = d->stream(d, &so, err)) != NULL;
}

/* Nothing can be generated later on: better refused now than in the middle of a text. Where schedules are missing that
 * this machine likes, the usual ones do. */
static bool need_kernels(const struct engine *e, const struct cancel *cancel, struct error *err)
{
	const jit_model *m = e->model;
	const struct key_list_options o = {
		.target = m->target,
		.activations = m->f32_activations ? KEY_LIST_F32_ACTIVATIONS : KEY_LIST_INT8_ACTIVATIONS,
		.kv = key_list_kv(e->kv.type),
		.numerics = m->bounded && !e->exact ? KEY_LIST_BOUNDED : KEY_LIST_EXACT,
		.tokens = e->batch,
		.dataflow = m->device->facts.awaits,
		.usual = true
	};
	struct key *keys;
	size_t n;

	if (!key_list_kernels(&m->file.spec, &o, &keys, &n, err))
		return false;
	bool ok = true;
	for (size_t i = 0; ok && i < n; i++)
		ok = (!cancel_any(cancel) || cancel_error(err)) &&
		     device_has_kernel(m->device, m->registry, &keys[i], err);
	free(keys);
	return ok;
}

/* What decoding will need is made while the prompt is fed. Not where all kernels are there (sealed), where a kernel is
 * not all that is needed or no code is kept, as programs are made of kernels pass by pass (cards) or none is made
 * (reference), or a dump should show kernels in the order of their use. */
static bool open_compile_ahead(struct engine *e, struct error *err)
{
	const jit_model *m = e->model;
	const struct compile_ahead_options o = {
		.registry = m->registry,
		.spec = &m->file.spec,
		.plan = engine_plan_options(e),
		.kv = e->kv.type,
		.profile = e->profile,
		.finish = m->cache != NULL
	};

	if (m->file.spec.encodes) /* all that it makes is passes over texts, whose lengths nobody knows yet */
		return true;
	if (m->sealed || !m->device->facts.keeps_code || m->device->ready || m->dump_ir || m->dump_asm)
		return true;
	if (!(e->compile_ahead = compile_ahead_open(&o, err)))
		return false;
	compile_ahead_request(e->compile_ahead, 1, PLAN_LAST_LOGITS, e->tune_passes != 0);
	engine_request_drafts(e);
	return true;
}

static bool open_profile(struct engine *e, int mode, struct error *err)
{
	if (mode == JIT_PROFILE_OFF)
		return true;
	const struct device_facts *f = &e->model->device->facts;
	e->profile = f->host_runs ? profile_open(pool_threads(e->pool), NULL, mode == JIT_PROFILE_EVENTS, err)
	                          : profile_open(1, f->name, mode == JIT_PROFILE_EVENTS, err);
	e->stream->profile = e->profile;
	return e->profile != NULL;
}

/* A card has more groups than a model has heads; of threads it depends. */
static void set_parts(struct engine *e)
{
	const struct model_spec *s = &e->model->file.spec;

	e->parts = !s->latent.rank && !s->encodes && !(e->model->ranks && e->model->ranks->by_rows) &&
	           (!e->model->device->facts.host_runs || (uint32_t)pool_threads(e->pool) > s->kv_heads);
	e->parts_from = e->model->device->facts.overlaps ? 0 : PLAN_PARTS_FROM;
}

bool engine_open(struct engine *e, const struct engine_options *o, struct error *err)
{
	const jit_model *m = e->model;

	e->adapted = m->adapters != NULL && !e->never_adapted;
	e->shown = m->shown;
	const struct plan_layout_options layout = engine_layout_options(e);
	if (cancel_any(o->cancel))
		return cancel_error(err);
	if ((m->packed && !container_same(packed_container(m->packed), err)) ||
	    (m->kept_weights && !container_same(m->kept_weights, err)) ||
	    (m->sealed && !m->has_all && !need_kernels(e, o->cancel, err)) ||
	    !pass_memory_open(&e->memory, m->device, &m->file.spec, &m->weights, &layout, err) ||
	    !rope_open(&e->rope, &m->file.spec, e->context, err))
		return false;
	e->plan = calloc(engine_plan_count(e), sizeof *e->plan);
	if (!e->plan)
		return error_set(err, ERROR_MEMORY, "no memory for the plans of %u tokens", e->tokens);
	e->pool_is_borrowed = o->pool != NULL;
	e->pool = o->pool ? o->pool : pool_open(o->threads ? o->threads : system_default_threads(), err);
	if (!e->pool || !open_stream(e, o, err))
		return false;
	e->tune_passes = m->tune_passes;
	set_parts(e);
	return open_profile(e, o->profile, err) && open_compile_ahead(e, err) &&
	       (!model_leads(m) || engine_tell_open(e, o->threads, err));
}

void engine_forget_joint(struct engine *e, struct engine_joint *j)
{
	if (j->plan && j->plan->prepared && e->stream->forget)
		e->stream->forget(e->stream, j->plan);
	if (j->plan)
		plan_free(j->plan);
	free(j->plan);
	free(j->span);
	*j = (struct engine_joint){ 0 };
}

void engine_forget_plan(struct engine *e, struct plan **p)
{
	if (!*p)
		return;
	if (e->stream->forget)
		e->stream->forget(e->stream, *p);
	plan_free(*p);
	free(*p);
	*p = NULL;
}

static void free_plans(const struct engine *e, struct plan **all)
{
	for (size_t i = 0; all && i < engine_plan_count(e); i++)
		if (all[i]) {
			plan_free(all[i]);
			free(all[i]);
		}
	free(all);
}

void engine_close(struct engine *e)
{
	if (e->number)
		engine_tell_close(e);
	compile_ahead_close(e->compile_ahead);
	for (size_t i = 0; e->joint && i < ENGINE_JOINT_MAX; i++)
		engine_forget_joint(e, &e->joint[i]);
	free(e->joint);
	if (e->stream)
		e->stream->close(e->stream);
	if (!e->pool_is_borrowed)
		pool_close(e->pool);
	profile_close(e->profile);
	tuner_close(e->tuner);
	if (e->model->tune && !e->model->sealed)
		tune_save(e->model->tune, NULL); /* what cannot be kept is found out again */
	free_plans(e, e->plan);
	free_plans(e, e->shown_plan);
	pass_memory_close(&e->memory);
	rope_close(&e->rope);
	free(e->exchanged);
}

/* ---- pictures */

void engine_show(struct engine *e, bool shows) { e->shows = shows; }

bool engine_map_shown(struct engine *e, struct error *err)
{
	if (!e->shown_plan)
		e->shown_plan = calloc(engine_plan_count(e), sizeof *e->shown_plan);
	return e->shown_plan ? pass_memory_shown(&e->memory, &e->model->file.spec, e->shown, err)
	                     : error_set(err, ERROR_MEMORY, "no memory for the plans of %u tokens", e->tokens);
}

/* ---- plans */

struct plan_options engine_plan_options(const struct engine *e)
{
	const jit_model *m = e->model;
	return (struct plan_options){
		.target = m->target,
		.f32_activations = m->f32_activations,
		.bounded = m->bounded && !e->exact,
		.tune = m->tune,
		.only = m->sealed ? m->registry : NULL,
		.context = e->parts && !e->shows ? PLAN_PARTS_TO_COME : PLAN_WHOLE,
		.dataflow = m->device->facts.awaits && !e->shows,
		.shows = e->shows,
		.general = e->general,
		.adapts = e->adapts
	};
}

struct plan_layout_options engine_layout_options(const struct engine *e)
{
	return (struct plan_layout_options){ .tokens = e->tokens,
		                             .f32_activations = e->model->f32_activations,
		                             .adapted = e->adapted,
		                             .shown = e->shown,
		                             .apart = e->model->values_apart };
}

void engine_request_drafts(struct engine *e)
{
	for (unsigned w = 1; e->compile_ahead && w < SPECULATE_WIDTHS; w++)
		if (e->speculate == SPECULATE_AUTO || (e->speculate == SPECULATE_FIXED && w == e->drafts))
			compile_ahead_request(e->compile_ahead, speculate_tokens[w], PLAN_ALL_LOGITS, false);
}

static uint64_t count_missing(const struct engine *e, const struct plan *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_kernels; i++)
		n += !registry_ready(e->model->registry, &p->kernel[i].key);
	return n;
}

/* Whether passes of several tokens have their context in parts, on such a device. */
static bool has_records(const struct engine *e, uint32_t tokens)
{
	return e->parts && !e->model->device->facts.host_runs && tokens > 1 && tokens <= PLAN_DATAFLOW_MAX;
}

static bool has_parts(const struct engine *e, uint32_t tokens, uint64_t position)
{
	return e->parts && tokens == 1 && position >= e->parts_from && !e->shows;
}

static void use_all_logits(const struct engine *e, struct plan_buffers *buf)
{
	buf->logits = e->memory.all_logits;
	buf->greatest = e->memory.all_greatest;
	buf->logit_tokens = e->rows;
}

static struct plan **slot_of(struct engine *e, uint32_t tokens, enum plan_logits logits)
{
	struct plan **all = e->shows ? e->shown_plan : e->plan;

	return &all[(e->adapts ? engine_plan_count(e) / 2 : 0) + (size_t)tokens * ENGINE_LOGIT_KINDS + logits];
}

/* p: all zero. False: err, and so it is then. */
static bool build(struct engine *e, struct plan *p, uint32_t tokens, uint64_t position, enum plan_logits logits,
                  enum profile_pass kind, struct error *err)
{
	const uint64_t version = adapters_version(e->model);
	const bool parts = has_parts(e, tokens, position);
	struct plan_options opt = engine_plan_options(e);
	bool tuned = e->tune_passes && !e->adapts && !e->shows && tokens == 1 && logits == PLAN_LAST_LOGITS;

	if (parts)
		opt.context = PLAN_PARTS;
	if ((parts || has_records(e, tokens)) &&
	    !pass_memory_records(&e->memory, &e->model->file.spec, e->context, tokens, err))
		return false;
	struct plan_buffers buf = e->memory.buf;
	if (opt.dataflow && !pass_memory_dataflow(&e->memory, &e->model->file.spec, e->context, tokens, &buf, err))
		return false;
	if (logits == PLAN_ALL_LOGITS)
		use_all_logits(e, &buf);
	bool built = plan_build(p, &e->model->file.spec, &e->model->weights, &buf, &e->kv, tokens, logits, &opt, err);
	p->adapted = e->adapts ? version : 0;
	if (built && tuned) {
		e->tuner = tuner_open_quick(e->model->tune, p, e->tune_passes, pool_threads(e->pool), opt.only, err);
		e->tune_passes = 0;
		built = e->tuner || err->code == ERROR_NONE;
	}
	if (built && kind == PROFILE_DECODE && !e->adapts)
		e->stalls += count_missing(e, p);
	if (built && e->stream->prepare(e->stream, p, e->pool, err) &&
	    (!e->profile || profile_add_plan(e->profile, p, err)))
		return true;
	if (tuned) {
		tuner_close(e->tuner);
		e->tuner = NULL;
	}
	plan_free(p);
	return false;
}

struct plan *engine_find_plan(struct engine *e, uint32_t tokens, uint64_t position, enum plan_logits logits,
                              enum profile_pass kind, struct error *err)
{
	struct plan **slot = slot_of(e, has_parts(e, tokens, position) ? 0 : tokens, logits);

	if (*slot)
		return *slot;
	struct plan *p = calloc(1, sizeof *p);
	if (!p) {
		error_set(err, ERROR_MEMORY, "no memory for a plan");
		return NULL;
	}
	if (build(e, p, tokens, position, logits, kind, err))
		return *slot = p;
	free(p);
	return NULL;
}

/* A place for another plan: an empty one, else that of the plan which was not asked for the longest. */
static struct engine_joint *joint_of(struct engine *e, struct error *err)
{
	struct engine_joint *oldest = NULL;

	if (!e->joint && !(e->joint = calloc(ENGINE_JOINT_MAX, sizeof *e->joint))) {
		error_set(err, ERROR_MEMORY, "no memory for plans");
		return NULL;
	}
	for (struct engine_joint *j = e->joint; j < e->joint + ENGINE_JOINT_MAX; j++)
		if (!oldest || j->used < oldest->used)
			oldest = j;
	engine_forget_joint(e, oldest);
	return oldest;
}

/* Of a joint plan that has its place, and its spans. */
static bool build_spans(struct engine *e, struct engine_joint *j, struct error *err)
{
	const struct plan_options opt = engine_plan_options(e);
	const struct plan_span *last = &j->span[j->spans - 1];
	const uint32_t tokens = last->first + last->tokens;
	const uint64_t version = adapters_version(e->model);

	if (has_records(e, tokens) && !pass_memory_records(&e->memory, &e->model->file.spec, e->context, tokens, err))
		return false;
	struct plan_buffers buf = e->memory.buf;
	if (opt.dataflow && !pass_memory_dataflow(&e->memory, &e->model->file.spec, e->context, tokens, &buf, err))
		return false;
	use_all_logits(e, &buf);
	const bool built = plan_build_joint(j->plan, &e->model->file.spec, &e->model->weights, &buf, &e->kv, j->span,
	                                    j->spans, j->normed, &opt, err);
	j->plan->adapted = e->adapts ? version : 0;
	return built && (j->plan->one_sequence || e->stream->prepare(e->stream, j->plan, e->pool, err));
}

static bool build_joint(struct engine *e, struct engine_joint *j, const struct plan_span *span, uint32_t spans,
                        bool normed, struct error *err)
{
	j->plan = calloc(1, sizeof *j->plan);
	j->span = malloc(spans * sizeof *span);
	if (!j->plan || !j->span)
		return error_set(err, ERROR_MEMORY, "no memory for a plan");
	memcpy(j->span, span, spans * sizeof *span);
	j->spans = spans;
	j->normed = normed;
	j->adapts = e->adapts;
	return build_spans(e, j, err);
}

bool engine_build_again(struct engine *e, struct plan *p, uint64_t position, enum profile_pass kind, struct error *err)
{
	const uint32_t tokens = p->tokens;
	const enum plan_logits logits = p->logits;
	struct engine_joint *j = NULL;

	for (size_t i = 0; e->joint && i < ENGINE_JOINT_MAX && !j; i++)
		j = e->joint[i].plan == p ? &e->joint[i] : NULL;
	if (e->stream->forget)
		e->stream->forget(e->stream, p);
	plan_free(p);
	if (j ? build_spans(e, j, err) : build(e, p, tokens, position, logits, kind, err))
		return true;
	plan_free(p);
	*p = (struct plan){ .tokens = tokens, .logits = logits }; /* for no version: the next run builds it */
	return false;
}

struct plan *engine_find_joint(struct engine *e, const struct plan_span *span, uint32_t spans, bool normed,
                               struct error *err)
{
	for (struct engine_joint *j = e->joint; j && j < e->joint + ENGINE_JOINT_MAX; j++)
		if (j->spans == spans && j->normed == normed && j->adapts == e->adapts &&
		    memcmp(j->span, span, spans * sizeof *span) == 0) {
			j->used = ++e->clock;
			return j->plan->one_sequence ? NULL : j->plan;
		}
	struct engine_joint *j = joint_of(e, err);
	if (!j)
		return NULL;
	if (!build_joint(e, j, span, spans, normed, err)) {
		engine_forget_joint(e, j);
		return NULL;
	}
	j->used = ++e->clock;
	return j->plan->one_sequence ? NULL : j->plan;
}

bool engine_map_all_logits(struct engine *e, struct error *err)
{
	return pass_memory_logits(&e->memory, &e->model->file.spec, e->rows, err);
}

bool engine_run(struct engine *e, struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                const struct cancel *cancel, struct error *err)
{
	bool tuned = e->tuner && p->took;
	uint64_t began = e->profile ? profile_now() : 0;

	if (tuned)
		tuner_before(e->tuner);
	plan_set_sequences(p, at);
	engine_set_tiles(e, p);
	e->keeps_greatest = !p->lacks_greatest && plan_keeps_greatest(&e->model->file.spec, e->model->target);
	e->stream->cancel = cancel;
	if (!(e->number ? engine_run_ranks(e, p, at, kind, err) : e->stream->run(e->stream, p, e->pool, err)))
		return false;
	if (e->profile)
		profile_ran(e->profile, kind, p, at->position, began,
		            e->stream->ended ? e->stream->ended : profile_now());
	if (tuned) {
		unsigned judged = tuner_judged(e->tuner);
		bool over = tuner_after(e->tuner);
		if (judged != tuner_judged(e->tuner))
			engine_request_drafts(e); /* with schedules like those found */
		if (over) {
			tuner_close(e->tuner);
			e->tuner = NULL;
		}
	}
	return true;
}
