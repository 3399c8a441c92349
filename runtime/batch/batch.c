/* runtime/batch/batch.c - a batch from its options to its end, its sessions, and the tokens they are given. */
#include "runtime/batch/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "runtime/host/system.h"
#include "runtime/model/options.h"
#include "runtime/model/sized.h"
#include "runtime/session/session.h"
#include "runtime/session/session_draft.h"
#include "runtime/session/session_encode.h"

/* Passes of so many tokens have kernels of their own, which are made in the background. */
enum { USUAL_PASS_MS = 200, EXPECTED_TOKENS = 16 };

/* ---- opening and closing */

static void take_options(struct jit_batch *b, const jit_batch_options *o)
{
	struct engine *e = &b->engine;

	b->max_pass_seconds = 1e-3 * (o->max_pass_ms ? o->max_pass_ms : USUAL_PASS_MS);
	b->cancel.from = o->cancel;
	b->now = system_seconds;
	e->model = b->model;
	e->batch = o->tokens ? (uint32_t)o->tokens : session_usual_batch(b->model->target, UINT32_MAX);
	e->drafts = speculate_width(o->speculate);
	e->speculate = o->speculate == JIT_SPECULATE_OFF ? SPECULATE_OFF : e->drafts ? SPECULATE_FIXED : SPECULATE_AUTO;
	e->tokens = e->batch < SPECULATE_MAX ? SPECULATE_MAX : e->batch;
	e->rows = e->model->sealed ? PLAN_ALL_LOGITS_MAX : BATCH_ROWS_MAX;
	e->exact = model_bounded(e->model) != JIT_BOUNDED_ALL; /* else results would depend on what is beside them */
	e->kv.type = options_kv_type(o->kv);
	b->context = o->context ? (uint32_t)o->context : batch_usual_context(b, o->kv_bytes);
	e->context = b->context;
}

/* Where a session's cache has what. */
static void measure(struct jit_batch *b)
{
	struct session_memory m = { .kv.type = b->engine.kv.type };

	session_memory_measure(&m, &b->model->file.spec, b->engine.tokens, b->context);
	b->engine.kv = m.kv;
}

static bool batch_open(struct jit_batch *b, const jit_batch_options *options, struct error *err)
{
	const jit_card_options card = { .size = sizeof card };
	jit_batch_options o;

	if (!options_batch(&o, options, err))
		return false;
	take_options(b, &o);
	if (o.draft) {
		jit_draft_options filled;
		if (!options_draft(&b->draft, o.draft, err))
			return false;
		filled = b->draft;
		if (!session_draft_check(b->model, &filled, b->context, err))
			return false;
	}
	measure(b);
	const struct engine_options eo = { .threads = o.threads, .card = &card, .cancel = &b->cancel };
	if (!engine_open(&b->engine, &eo, err) || !batch_memory_open(b, o.kv_bytes, err))
		return false;
	for (uint32_t n = 2; b->engine.compile_ahead && n <= EXPECTED_TOKENS; n++)
		compile_ahead_request(b->engine.compile_ahead, n, PLAN_ALL_LOGITS, false);
	return true;
}

jit_batch *jit_batch_open(jit_model *m, const jit_batch_options *options, jit_error *err)
{
	struct error e = { 0 };
	const bool may = NEEDED(m, &e) && (!m->file.spec.encodes || session_refuse_to_generate(&e));
	jit_batch *b = may ? calloc(1, sizeof *b) : NULL;

	if (!may) {
		/* the error says why */
	} else if (!b) {
		error_set(&e, ERROR_MEMORY, "no memory for a batch");
	} else {
		b->model = m;
		b->engine.model = m;
		if (batch_open(b, options, &e))
			return b;
	}
	model_report(err, &e);
	jit_batch_close(b);
	return NULL;
}

void jit_batch_close(jit_batch *b)
{
	if (!b)
		return;
	batch_memory_close(b);
	engine_close(&b->engine);
	free(b->member);
	free(b);
}

/* ---- sessions */

static bool add_member(struct jit_batch *b, jit_session *s, struct error *err)
{
	void *all = b->member;
	struct batch_member *m = calloc(1, sizeof *m);
	bool ok = m && array_grow(&all, &b->capacity, b->n + 1, sizeof *b->member);

	b->member = all;
	if (!ok) {
		free(m);
		return error_set(err, ERROR_MEMORY, "no memory for a session");
	}
	*m = (struct batch_member){ .batch = b, .session = s, .told = BATCH_NOT_TOLD };
	s->member = b->member[b->n++] = m;
	return true;
}

static bool open_session(struct jit_batch *b, jit_session *s, const jit_sampling *options, struct error *err)
{
	jit_sampling sampling;

	s->model = b->model;
	s->engine = &b->engine;
	s->context = b->context;
	s->speculate.mode = b->engine.speculate;
	s->speculate.fixed = b->engine.drafts;
	s->memory.kv.type = b->engine.kv.type;
	s->cancel.from = b->cancel.from;
	return add_member(b, s, err) && options_sampling(&sampling, options, err) &&
	       session_open_own(s, &sampling, err) &&
	       (!b->draft.model || session_draft_start(s, &b->draft, options, b->cancel.from, err));
}

jit_session *jit_batch_session(jit_batch *b, const jit_sampling *sampling, jit_error *err)
{
	struct error e = { 0 };
	jit_session *s = NEEDED(b, &e) ? calloc(1, sizeof *s) : NULL;

	if (!s)
		error_set(&e, ERROR_MEMORY, "no memory for a session");
	else if (open_session(b, s, sampling, &e))
		return s;
	model_report(err, &e);
	if (s && !s->member)
		free(s);
	else
		jit_session_close(s);
	return NULL;
}

static size_t number_of(const struct batch_member *m)
{
	size_t i = 0;

	while (m->batch->member[i] != m)
		i++;
	return i;
}

void batch_member_close(jit_session *s)
{
	struct batch_member *m = s->member;
	struct jit_batch *b = m->batch;
	size_t i = number_of(m);

	batch_release(m);
	memmove(b->member + i, b->member + i + 1, (--b->n - i) * sizeof *b->member);
	free(m->own_logits);
	free(m);
}

/* ---- what sessions ask */

void batch_member_changed(jit_session *s)
{
	s->member->told = BATCH_NOT_TOLD;
	s->member->submitted = 0;
	s->member->error = (struct error){ 0 };
}

bool session_begins_again(jit_session *s)
{
	struct batch_member *m = s->member;

	if (!m || s->computed == s->length || s->length > s->context || m->error.code != ERROR_NONE)
		return false;
	m->told = BATCH_NOT_TOLD;
	return true;
}

bool batch_member_ready(jit_session *s, size_t positions, struct error *err)
{
	struct batch_member *m = s->member;

	return batch_keep_logits(m->batch, err) &&
	       (batch_make_room(m, positions, BATCH_COMPUTE_ALL, err) || err->code != ERROR_NONE ||
	        error_set(err, ERROR_MEMORY,
	                  "the batch's memory has no room for %zu tokens of this session beside others", positions));
}

bool batch_member_may_write(const jit_session *s, uint64_t position, uint32_t tokens, struct error *err)
{
	return batch_pages_writable(s->member, position, tokens, err);
}

int batch_member_logits(jit_session *s, jit_error *err)
{
	struct batch_member *m = s->member;
	struct error e = m->error;

	if (e.code == ERROR_CANCELLED) /* told once */
		m->error = (struct error){ 0 };
	if (e.code == ERROR_NONE && s->computed < s->length && m->told != s->length)
		error_set(&e, ERROR_ARGUMENT,
		          "%zu tokens of this session are not computed yet: jit_batch_step does that, and says when",
		          s->length - s->computed);
	return model_report(err, &e);
}

/* The last to come goes behind all others. */
static void come_last(struct batch_member *m)
{
	struct jit_batch *b = m->batch;
	size_t i = number_of(m);

	memmove(b->member + i, b->member + i + 1, (b->n - i - 1) * sizeof *b->member);
	b->member[b->n - 1] = m;
}

static bool submit(jit_session *s, const int32_t *ids, size_t n, size_t *reused, struct error *err)
{
	struct batch_member *m = s->member;
	struct jit_batch *b = m->batch;

	if (batch_bytes(b, s->length + n) > b->pages.budget)
		return error_set(err, ERROR_MEMORY,
		                 "%zu tokens take %llu bytes, and the batch has %llu for all sessions", s->length + n,
		                 (unsigned long long)batch_bytes(b, s->length + n),
		                 (unsigned long long)b->pages.budget);
	if (s->grammar && !session_grammar_take(s, ids, n, err))
		return false;
	if (s->length == 0)
		come_last(m);
	if (s->computed >= m->submitted)
		m->before = session_mark(s);
	const size_t told = m->told, submitted = m->submitted;
	const struct session_mark mark = session_mark(s);
	const size_t computed = s->computed, length = s->length;
	memcpy(s->ids + s->length, ids, n * sizeof *ids);
	s->length += n;
	s->logits_valid = false;
	batch_member_changed(s);
	speculate_drop(&s->speculate);
	m->submitted = s->length;
	batch_mark_turn(m, n);
	batch_grant(m, s->length, BATCH_TAKE_OVER, err);
	if (err->code != ERROR_NONE) {
		s->length = length;
		s->computed = s->computed < computed ? s->computed : computed;
		s->logits_valid = mark.had_logits && s->computed == length;
		m->told = told;
		m->submitted = submitted;
		if (s->grammar)
			session_grammar_rewind(s, length);
		return false;
	}
	*reused = s->computed - computed;
	return true;
}

int jit_session_submit(jit_session *s, const int32_t *ids, size_t n, size_t *reused, jit_error *err)
{
	struct error e = { 0 };
	size_t known = 0;

	if (reused)
		*reused = 0;
	if (!NEEDED(s, &e) || !NEEDED_LIST(ids, n, &e))
		return model_report(err, &e);
	int status = session_check_tokens(s, ids, n, err);

	if (status != JIT_OK)
		return status;
	if (!s->member)
		error_set(&e, ERROR_ARGUMENT, "the session is of no batch: jit_session_feed is for it");
	else if (n)
		submit(s, ids, n, &known, &e);
	if (reused)
		*reused = known;
	return model_report(err, &e);
}

int jit_batch_get_stats(const jit_batch *b, jit_batch_stats *out, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(b, &e))
		return model_report(err, &e);
	jit_batch_stats stats = b->stats;
	const struct kv_pages *p = &b->pages;
	uint64_t unit = p->page_bytes ? p->page_bytes : b->fixed_bytes;

	stats.pages = p->budget / unit;
	stats.pages_used = p->used / unit;
	stats.pages_kept = (p->remembered * p->page_bytes + batch_kept_fixed(b)) / unit;
	stats.pages_shared = p->shared;
	stats.context = b->context;
	stats.kv_bytes = p->budget;
	SIZED_WRITE(jit_batch_stats, out, &stats, &e);
	return model_report(err, &e);
}
