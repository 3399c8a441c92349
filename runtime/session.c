/* runtime/session.c - jit_session: one conversation. Owns the KV cache, the activation buffers, the plans and the
 * position.
 *
 * Tokens 0 .. computed-1 are in the KV cache; `length` may be ahead of it by tokens chosen or fed but not yet computed.
 * Nothing is allocated per
 * token: plans are built once for each number of tokens, all buffers at open or when first needed.
 *
 * A decoding pass may go on over guessed tokens (speculate.h). The cache then holds positions beyond `computed`; they
 * count for nothing until a chosen token equals the draft, and are overwritten otherwise.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/device/device.h"
#include "runtime/jitrun.h"
#include "runtime/logits.h"
#include "runtime/model.h"
#include "runtime/options.h"
#include "runtime/sized.h"
#include "runtime/device/profile.h"
#include "runtime/compile_ahead.h"
#include "runtime/report.h"
#include "runtime/plan/rope.h"
#include "runtime/sampling/sampling.h"
#include "runtime/sampling/stop.h"
#include "runtime/session.h"
#include "runtime/session_memory.h"
#include "runtime/speculate/speculate.h"
#include "runtime/host/system.h"
#include "runtime/tuning/tuner.h"
#include "runtime/plan/key_list.h"

enum {
	DEFAULT_CONTEXT = 4096,
	DEFAULT_BATCH = 264 /* whole tiles of 12 and 24 tokens */,
	LOGIT_KINDS = 3,
	ALL_LOGITS = SESSION_ALL_LOGITS
};

struct jit_session {
	jit_model *model;
	struct stream *device_stream;
	struct pool *pool;
	struct tuner *tuner;                 /* while it finds something out */
	unsigned tune_passes;                /* for it to take; 0: it has had its turn, or none */
	struct compile_ahead *compile_ahead; /* NULL: kernels are made when they are needed, or are there already */
	uint64_t stalls;                     /* kernels that were not there when a decoding pass was first made */
	bool general;                        /* session_pin_general() */
	struct profile *profile;             /* NULL: not asked for */
	struct session_memory memory;
	struct plan **plan; /* [tokens + 1][LOGIT_KINDS], built when first needed */
	uint32_t batch, context;
	uint32_t tokens; /* of the widest pass: a batch, or drafts */
	int32_t *ids;    /* context + 1: the last may be chosen but never computed */
	size_t length, computed;
	bool logits_valid;   /* they belong to token computed - 1 */
	const float *logits; /* where they are */
	struct speculate speculate;
	struct sampling sampling;
	const int32_t *forced;
	size_t n_forced; /* choices made elsewhere, by position */
	struct utf8_stream stream;
	struct stop *stop; /* NULL: no text ends a generation */
	char *text;
	size_t text_capacity;
	uint64_t prompt_tokens, decode_tokens, decode_passes;
	double prompt_seconds, decode_seconds;
};

/* ---- opening */

static bool open_memory(jit_session *s, struct error *err)
{
	const struct model_spec *spec = &s->model->file.spec;

	s->tokens = s->speculate.mode != SPECULATE_OFF && s->batch < SPECULATE_MOST ? SPECULATE_MOST : s->batch;
	if (!session_memory_open(&s->memory, s->model->device, spec, s->tokens, s->context, err))
		return false;
	s->ids = malloc(((size_t)s->context + 1) * sizeof *s->ids);
	s->plan = calloc(((size_t)s->tokens + 1) * LOGIT_KINDS, sizeof *s->plan);
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

	return (s->device_stream = d->stream(d, &so, err)) != NULL;
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
		ok = registry_get(m->registry, &keys[i], NULL, err) != NULL;
	free(keys);
	return ok;
}

static struct plan_options plan_options(const jit_session *s)
{
	const jit_model *m = s->model;
	return (struct plan_options){ .target = m->target,
		                      .f32_activations = m->f32_activations,
		                      .bounded = m->bounded,
		                      .tune = m->tune,
		                      .only = m->sealed ? m->registry : NULL,
		                      .general = s->general };
}

static void request_drafts(jit_session *s)
{
	for (unsigned w = 1; s->compile_ahead && w < SPECULATE_WIDTHS; w++)
		if (s->speculate.mode == SPECULATE_AUTO ||
		    (s->speculate.mode == SPECULATE_FIXED && w == s->speculate.fixed))
			compile_ahead_request(s->compile_ahead, speculate_tokens[w], PLAN_ALL_LOGITS, false);
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
		.plan = plan_options(s),
		.kv = s->memory.kv.type,
		.profile = s->profile,
		.finish = m->cache != NULL
	};

	if (m->sealed || !m->device->facts.keeps_code || m->dump_ir || m->dump_asm)
		return true;
	if (!(s->compile_ahead = compile_ahead_open(&o, err)))
		return false;
	compile_ahead_request(s->compile_ahead, 1, PLAN_LAST_LOGITS, s->tune_passes != 0);
	request_drafts(s);
	return true;
}

/* What is asked for, as numbers of the session. */
static void take_options(jit_session *s, const jit_session_options *o)
{
	uint32_t trained = s->model->file.spec.context_train;

	s->context = o->context                             ? (uint32_t)o->context
	             : trained && trained < DEFAULT_CONTEXT ? trained
	                                                    : DEFAULT_CONTEXT;
	s->batch = o->batch ? (uint32_t)o->batch : DEFAULT_BATCH;
	if (s->batch > s->context)
		s->batch = s->context;
	s->speculate.fixed = speculate_width(o->speculate);
	s->speculate.mode = o->speculate == JIT_SPECULATE_OFF ? SPECULATE_OFF
	                    : s->speculate.fixed              ? SPECULATE_FIXED
	                                                      : SPECULATE_AUTO;
	s->memory.kv.type = options_kv_type(o->kv);
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
	if ((m->sealed && !m->has_all && !need_kernels(s, err)) || !open_memory(s, err) ||
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
	for (size_t i = 0; s->plan && i < ((size_t)s->tokens + 1) * LOGIT_KINDS; i++)
		if (s->plan[i]) {
			plan_free(s->plan[i]);
			free(s->plan[i]);
		}
	free(s->plan);
	sampling_close(&s->sampling);
	stop_close(s->stop);
	speculate_close(&s->speculate);
	session_memory_close(&s->memory);
	free(s->ids);
	free(s->text);
	free(s);
}

/* ---- computing */

static uint64_t count_missing(const jit_session *s, const struct plan *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_kernels; i++)
		n += !registry_ready(s->model->registry, &p->kernel[i].key);
	return n;
}

static struct plan *find_plan(jit_session *s, uint32_t tokens, enum plan_logits logits, enum profile_pass kind,
                              struct error *err)
{
	struct plan **slot = &s->plan[(size_t)tokens * LOGIT_KINDS + logits];
	struct plan_options opt = plan_options(s);
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
		buf.logit_tokens = ALL_LOGITS;
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

static bool map_all_logits(jit_session *s, struct error *err)
{
	return session_memory_logits(&s->memory, &s->model->file.spec, ALL_LOGITS, err);
}

/* Runs a plan, watched by the profile, and by the tuner while it is the tuner's. */
static bool run_plan(jit_session *s, struct plan *p, enum profile_pass kind, struct error *err)
{
	bool tuned = s->tuner && p->took;
	uint64_t began = s->profile ? profile_now() : 0;

	if (tuned)
		tuner_before(s->tuner);
	if (!s->device_stream->run(s->device_stream, p, s->pool, err))
		return false;
	if (s->profile)
		profile_ran(s->profile, kind, p, s->computed, began, profile_now());
	if (tuned) {
		unsigned judged = tuner_judged(s->tuner);
		bool over = tuner_after(s->tuner);
		if (judged != tuner_judged(s->tuner))
			request_drafts(s); /* with schedules like those found */
		if (over) {
			tuner_close(s->tuner);
			s->tuner = NULL;
		}
	}
	return true;
}

/* One pass over n tokens, at most `tokens`, from position `computed` on; the caller says what of it counts. Returns the
 * seconds it took, without making its plan; less than 0: err. */
static double compute_pass(jit_session *s, const int32_t *ids, uint32_t n, enum plan_logits logits,
                           enum profile_pass kind, struct error *err)
{
	const struct weights *w = &s->model->weights;

	if (logits == PLAN_ALL_LOGITS && !map_all_logits(s, err))
		return -1;
	struct plan *p = find_plan(s, n, logits, kind, err);
	if (!p)
		return -1;
	s->logits_valid = false;
	double start = system_seconds();
	memcpy(s->memory.buf.ids, ids, n * sizeof *ids);
	rope_rows(s->memory.buf.cos, s->memory.buf.sin, w->inv_freq, s->model->file.spec.head_dim / 2, w->rope_factor,
	          s->computed, n);
	plan_set_position(p, s->computed);
	if (!run_plan(s, p, kind, err))
		return -1;
	s->logits = logits == PLAN_ALL_LOGITS ? s->memory.all_logits : s->memory.buf.logits;
	return system_seconds() - start;
}

/* ---- logits are finite, or nobody gets them */

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

/* Of the token at this position, in the row. */
static bool check_logits(const jit_session *s, size_t position, const float *row, struct error *err)
{
	uint32_t vocab = s->model->file.spec.vocab, bad = logits_first_bad(row, vocab);

	return bad == vocab || refuse_logits(s, position, bad, row[bad], err);
}

/* Of the tokens from `computed` on, in the rows of a pass over all of them. */
static bool check_rows(const jit_session *s, uint32_t tokens, struct error *err)
{
	uint64_t stride = numerics_pad(s->model->file.spec.vocab);

	for (uint32_t c = 0; c < tokens; c++)
		if (!check_logits(s, s->computed + c, s->memory.all_logits + c * stride, err))
			return false;
	return true;
}

/* The last token's logits are not finite: which is the first of the tokens from `from` on of which that is true? Those
 * before the last had none computed. */
static bool refuse_prompt(jit_session *s, size_t from, struct error *err)
{
	const struct error last = *err;
	struct error first = { 0 };
	uint32_t most = s->batch < ALL_LOGITS ? s->batch : ALL_LOGITS, n;

	for (s->computed = from; s->computed < s->length; s->computed += n) {
		n = s->length - s->computed < most ? (uint32_t)(s->length - s->computed) : most;
		if (compute_pass(s, s->ids + s->computed, n, PLAN_ALL_LOGITS, PROFILE_PROMPT, &first) < 0 ||
		    !check_rows(s, n, &first))
			break;
	}
	*err = first.code == last.code ? first : last;
	s->logits_valid = false;
	return false;
}

/* Computes tokens computed .. length-1, in passes of at most `batch`; logits of the last. */
static bool compute(jit_session *s, enum profile_pass kind, struct error *err)
{
	size_t rest = (s->length - s->computed) % s->batch, from = s->computed;

	speculate_drop(&s->speculate);
	if (s->compile_ahead && rest && rest < s->length - s->computed)
		compile_ahead_request(s->compile_ahead, (uint32_t)rest, PLAN_LAST_LOGITS, false);
	while (s->computed < s->length) {
		size_t left = s->length - s->computed;
		uint32_t n = left < s->batch ? (uint32_t)left : s->batch;
		double seconds = compute_pass(s, s->ids + s->computed, n, n == left ? PLAN_LAST_LOGITS : PLAN_NO_LOGITS,
		                              kind, err);
		if (seconds < 0)
			return false;
		speculate_prompt_took(&s->speculate, n, seconds);
		s->computed += n;
	}
	if (from < s->computed && !check_logits(s, s->computed - 1, s->logits, err)) {
		refuse_prompt(s, from, err);
		s->computed = from;
		return false;
	}
	s->logits_valid = s->computed > 0;
	return true;
}

/* The end of a prompt, before which whatever the next token needs is made. */
static void prompt_done(jit_session *s)
{
	if (!s->compile_ahead)
		return;
	compile_ahead_wait(s->compile_ahead, 1, PLAN_LAST_LOGITS);
	if (s->speculate.mode == SPECULATE_FIXED)
		compile_ahead_wait(s->compile_ahead, speculate_tokens[s->speculate.fixed], PLAN_ALL_LOGITS);
}

/* The most tokens the next pass may have: drafts wait for their kernels, tokens do not wait for drafts. */
static uint32_t widest_pass(const jit_session *s)
{
	uint32_t room = (uint32_t)(s->context - s->computed), most = 1;

	for (unsigned w = 1; s->compile_ahead && w < SPECULATE_WIDTHS; w++)
		if (s->plan[speculate_tokens[w] * LOGIT_KINDS + PLAN_ALL_LOGITS] ||
		    compile_ahead_ready(s->compile_ahead, speculate_tokens[w], PLAN_ALL_LOGITS))
			most = speculate_tokens[w];
	return s->compile_ahead && most < room ? most : room;
}

/* Makes the logits of the one token that is chosen and not computed: they are there since a draft came true, or a pass
 * is due. */
static bool compute_chosen(jit_session *s, struct error *err)
{
	if (speculate_hit(&s->speculate, s->computed, s->ids[s->computed])) {
		s->logits += numerics_pad(s->model->file.spec.vocab);
	} else {
		const struct speculate_window *w = speculate_next(&s->speculate, (uint32_t)s->length, widest_pass(s));
		double seconds = compute_pass(s, w->ids, w->tokens, w->tokens > 1 ? PLAN_ALL_LOGITS : PLAN_LAST_LOGITS,
		                              PROFILE_DECODE, err);
		if (seconds < 0)
			return false;
		speculate_took(&s->speculate, seconds);
		s->decode_passes++;
	}
	if (!check_logits(s, s->computed, s->logits, err)) {
		speculate_drop(&s->speculate);
		s->logits_valid = false;
		return false;
	}
	s->computed++;
	s->logits_valid = true;
	return true;
}

/* Whether `more` further tokens find room; the message says what the session has. */
static int check_room(const jit_session *s, size_t more, jit_error *err)
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

/* Tokens to append: they must be in the vocabulary and find room. */
static int check_tokens(const jit_session *s, const int32_t *ids, size_t n, jit_error *err)
{
	struct error e = { 0 };

	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || (uint32_t)ids[i] >= s->model->file.spec.vocab) {
			error_set(&e, ERROR_ARGUMENT, "token %zu is %d, which is not in 0..%u", i, ids[i],
			          s->model->file.spec.vocab - 1);
			return model_report(err, &e);
		}
	return check_room(s, n, err);
}

/* After a feed that failed: the tokens there were, and their logits, which are computed once more when somebody
 * asks. */
static void take_back(jit_session *s, size_t length, size_t computed, bool had_logits)
{
	s->length = length;
	s->computed = had_logits && computed == length ? computed - 1 : computed;
	s->logits_valid = false;
}

int jit_session_feed(jit_session *s, const int32_t *ids, size_t n, jit_error *err)
{
	struct error e = { 0 };
	size_t length = s->length, computed = s->computed;
	bool had_logits = s->logits_valid;
	double start = system_seconds();
	int status = n ? check_tokens(s, ids, n, err) : JIT_OK;

	if (n == 0 || status != JIT_OK)
		return status;
	memcpy(s->ids + s->length, ids, n * sizeof *ids);
	s->length += n;
	if (!compute(s, PROFILE_PROMPT, &e)) {
		take_back(s, length, computed, had_logits);
		return model_report(err, &e);
	}
	prompt_done(s);
	s->prompt_tokens += s->computed - computed;
	s->prompt_seconds += system_seconds() - start;
	return JIT_OK;
}

int jit_session_feed_text(jit_session *s, const char *text, size_t n, int parse_special, jit_error *err)
{
	int32_t *ids = NULL;
	size_t n_ids = 0;
	int status = jit_model_tokenize(s->model, text, n, s->length == 0, parse_special, &ids, &n_ids, err);

	if (status == JIT_OK)
		status = jit_session_feed(s, ids, n_ids, err);
	free(ids);
	return status;
}

/* Computes what is pending and makes sure there are logits. */
static int ensure_logits(jit_session *s, jit_error *err)
{
	struct error e = { 0 };
	size_t before = s->computed;
	double start = system_seconds();

	if (s->length > s->context)
		return check_room(s, 0, err);
	if (s->computed < s->length) {
		bool draft = s->speculate.mode != SPECULATE_OFF && s->length - s->computed == 1;
		if (!(draft ? compute_chosen(s, &e) : compute(s, PROFILE_DECODE, &e)))
			return model_report(err, &e);
		s->decode_passes += !draft;
		s->decode_tokens += s->computed - before;
		s->decode_seconds += system_seconds() - start;
	}
	if (!s->logits_valid) {
		error_set(&e, ERROR_ARGUMENT, "there are no logits: feed at least one token first");
		return model_report(err, &e);
	}
	return JIT_OK;
}

int jit_session_next(jit_session *s, int32_t *id, jit_error *err)
{
	int status = ensure_logits(s, err);

	if (status != JIT_OK)
		return status;
	double start = system_seconds();
	*id = sampling_choose(&s->sampling, s->logits, s->ids, s->length);
	if (s->length < s->n_forced)
		*id = s->forced[s->length];
	s->ids[s->length++] = *id;
	s->decode_seconds += system_seconds() - start;
	return JIT_OK;
}

const float *jit_session_logits(jit_session *s, jit_error *err)
{
	return ensure_logits(s, err) == JIT_OK ? s->logits : NULL;
}

/* ---- scoring */

/* The n tokens from `computed` on, whose ids stand in s->ids: logprob, if wanted, of all but the first, which the
 * caller knows. Leaves the logits of the last. */
static bool score_tokens(jit_session *s, size_t n, float *logprob, struct error *err)
{
	uint32_t vocab = s->model->file.spec.vocab, most = s->batch < ALL_LOGITS ? s->batch : ALL_LOGITS;
	uint64_t stride = numerics_pad(vocab);

	speculate_drop(&s->speculate);
	for (size_t done = 0; done < n;) {
		uint32_t tokens = n - done < most ? (uint32_t)(n - done) : most;
		const int32_t *next = s->ids + s->computed + 1;
		if (compute_pass(s, s->ids + s->computed, tokens, PLAN_ALL_LOGITS, PROFILE_PROMPT, err) < 0 ||
		    !check_rows(s, tokens, err))
			return false;
		for (uint32_t c = 0; logprob && c < tokens && done + c + 1 < n; c++)
			logprob[done + c + 1] =
				logits_log_probability(s->memory.all_logits + c * stride, vocab, next[c]);
		done += tokens;
		s->computed += tokens;
		s->logits = s->memory.all_logits + (tokens - 1) * stride;
	}
	s->logits_valid = true;
	return true;
}

int jit_session_score(jit_session *s, const int32_t *ids, size_t n, float *logprob, jit_error *err)
{
	struct error e = { 0 };
	size_t length = s->length;
	int status = n ? check_tokens(s, ids, n, err) : JIT_OK;

	if (n == 0 || status != JIT_OK ||
	    (length && (logprob || s->computed < length) && (status = ensure_logits(s, err)) != JIT_OK))
		return status;
	bool had_logits = s->logits_valid;
	double start = system_seconds();
	if (logprob)
		logprob[0] = length ? logits_log_probability(s->logits, s->model->file.spec.vocab, ids[0]) : 0;
	memcpy(s->ids + length, ids, n * sizeof *ids);
	s->length += n;
	if (!score_tokens(s, n, logprob, &e)) {
		take_back(s, length, length, had_logits);
		return model_report(err, &e);
	}
	prompt_done(s);
	s->prompt_tokens += n;
	s->prompt_seconds += system_seconds() - start;
	return JIT_OK;
}

/* ---- the rest */

/* The bytes a token completes, in s->text. False: no memory, and the token was not taken. */
static bool spell(jit_session *s, int32_t id, size_t *n)
{
	enum { LEAST = 64 };

	if (!s->text) {
		if (!(s->text = malloc(LEAST)))
			return false;
		s->text_capacity = LEAST;
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
	const struct utf8_stream before = s->stream;
	struct error e = { 0 };
	const char *text = NULL;

	*n = 0;
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

int jit_session_set_stop(jit_session *s, const char *const *texts, size_t n, jit_error *err)
{
	struct error e = { 0 };
	struct stop *stop = n ? stop_open(texts, n, &e) : NULL;

	if (stop || n == 0) {
		stop_close(s->stop);
		s->stop = stop;
	}
	return model_report(err, &e);
}

int jit_session_stopped(const jit_session *s) { return s->stop ? stop_found(s->stop) : -1; }

size_t jit_session_length(const jit_session *s) { return s->length; }
const int32_t *jit_session_ids(const jit_session *s) { return s->ids; }

int jit_session_rewind(jit_session *s, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (n > s->length) {
		error_set(&e, ERROR_ARGUMENT, "rewind to %zu: the session has %zu tokens", n, s->length);
		return model_report(err, &e);
	}
	if (n < s->computed) {
		s->computed = n;
		s->logits_valid = false;
	}
	if (n < s->length)
		speculate_rewind(&s->speculate, (uint32_t)n);
	sampling_rewind(&s->sampling, n);
	s->length = n;
	return JIT_OK;
}

char *jit_session_report(jit_session *s, int json, jit_error *err)
{
	struct error e = { 0 };
	struct report_background b = { .stalls = s->stalls };
	if (s->compile_ahead) {
		compile_ahead_drain(s->compile_ahead);
		compile_ahead_count(s->compile_ahead, &b.compile_ahead);
	}
	char *text = report_make(s->model, s->profile, &b, json != 0, &e);

	model_report(err, &e);
	return text;
}

int jit_session_trace(jit_session *s, const char *path, jit_error *err)
{
	struct error e = { 0 };

	report_trace(s->profile, path, &e);
	return model_report(err, &e);
}

bool session_skip(jit_session *s, size_t n)
{
	if (s->length || n >= s->context)
		return false;
	memset(s->ids, 0, n * sizeof *s->ids);
	s->length = s->computed = n;
	return true;
}

struct stream *session_stream(jit_session *s) { return s->device_stream; }

struct plan *session_plan(jit_session *s, uint32_t tokens, bool logits, struct error *err)
{
	if (tokens > 1 && logits && !map_all_logits(s, err))
		return NULL;
	return find_plan(s, tokens,
	                 !logits      ? PLAN_NO_LOGITS
	                 : tokens > 1 ? PLAN_ALL_LOGITS
	                              : PLAN_LAST_LOGITS,
	                 PROFILE_PROMPT, err);
}

bool session_prepare(jit_session *s, struct plan *p, struct error *err)
{
	return s->device_stream->prepare(s->device_stream, p, s->pool, err);
}

double session_pass(jit_session *s, const struct plan *p, struct error *err)
{
	static const int32_t ids[SESSION_MAX_TOKENS];

	return compute_pass(s, ids, p->tokens, p->logits, PROFILE_PROMPT, err);
}

void session_pin_general(jit_session *s) { s->general = true; }

void session_rest(jit_session *s)
{
	if (s->compile_ahead)
		compile_ahead_drain(s->compile_ahead);
}

void session_force(jit_session *s, const int32_t *ids, size_t n)
{
	s->forced = ids;
	s->n_forced = n;
}

int jit_session_set_sampling(jit_session *s, const jit_sampling *p, jit_error *err)
{
	struct error e = { 0 };
	jit_sampling params;

	if (options_sampling(&params, p, &e))
		sampling_set(&s->sampling, &params, s->context, &e);
	return model_report(err, &e);
}

static void count_kernels(const jit_session *s, jit_session_stats *out)
{
	struct registry_counters c = { 0 };
	struct cache_counters disk = { 0 };

	registry_count(s->model->registry, &c);
	if (s->model->cache)
		cache_count(s->model->cache, &disk);
	out->kernels = c.generated + c.from_disk + c.from_pack;
	out->kernels_generated = c.generated;
	out->kernels_from_cache = c.from_disk + c.from_pack;
	out->kernels_from_pack = c.from_pack;
	out->cache_damaged = disk.damaged + disk.failed;
	out->cache_store_failed = disk.store_failed;
	out->cache_evicted = disk.evicted;
	out->generate_seconds = 1e-9 * (double)c.generated_ns;
	out->code_bytes = c.code_bytes;
	out->kernel_stalls = s->stalls;
	if (s->compile_ahead) {
		struct compile_ahead_counters background;
		compile_ahead_count(s->compile_ahead, &background);
		out->kernels_background = background.made;
	}
}

static void count_drafts(const jit_session *s, jit_session_stats *out)
{
	for (unsigned w = 1; w < SPECULATE_WIDTHS; w++) {
		out->speculation[w - 1].tokens = (int)speculate_tokens[w];
		out->speculation[w - 1].passes = s->speculate.passes[w];
		out->drafted += out->speculation[w - 1].drafted = s->speculate.drafted[w];
		out->accepted += out->speculation[w - 1].accepted = s->speculate.accepted[w];
	}
}

int jit_session_get_stats(const jit_session *s, jit_session_stats *out, jit_error *err)
{
	struct error e = { 0 };
	jit_session_stats stats = {
		.prompt_tokens = s->prompt_tokens,
		.decode_tokens = s->decode_tokens,
		.prompt_seconds = s->prompt_seconds,
		.decode_seconds = s->decode_seconds,
		.kv_bytes = s->memory.kv_bytes,
		.threads = pool_threads(s->pool),
		.context = (int)s->context,
		.decode_passes = s->decode_passes
	};

	count_kernels(s, &stats);
	count_drafts(s, &stats);
	SIZED_WRITE(jit_session_stats, out, &stats, &e);
	return model_report(err, &e);
}

static jit_card_stats card_stats(const struct stream *stream)
{
	struct stream_counters c;

	stream->count(stream, &c);
	return (jit_card_stats){
		.launches = c.launches,
		.barriers = c.barriers,
		.instructions = c.instructions,
		.load_bytes = c.load_bytes,
		.load128_bytes = c.load128_bytes,
		.store_bytes = c.store_bytes,
		.scalar_bytes = c.scalar_bytes,
		.weight_bytes = c.weight_bytes,
		.cache_bytes = c.cache_bytes
	};
}

int jit_session_get_card_stats(const jit_session *s, jit_card_stats *out, jit_error *err)
{
	struct error e = { 0 };

	if (!s->device_stream->count) {
		error_set(&e, ERROR_UNSUPPORTED, "the device %s counts nothing; simulated cards do",
		          s->model->device->facts.name);
	} else {
		const jit_card_stats stats = card_stats(s->device_stream);
		SIZED_WRITE(jit_card_stats, out, &stats, &e);
	}
	return model_report(err, &e);
}
