/* server/engine/choice.c - one sequence that the batcher computes: one of the choices of a request. */
#include "server/engine/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "runtime/host/system.h"
#include "include/jitrun_grammar.h"
#include "runtime/session/session.h"
#include "runtime/session/session_pictures.h"
#include "runtime/session/session_limits.h"
#include "server/engine/bits.h"

static struct choice *open_one(struct task *t, unsigned number)
{
	struct choice *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	task_hold(t);
	c->task = t;
	c->number = t->first + number;
	c->queued = system_seconds();
	return c;
}

bool choices_open(struct task *t, struct choice **list, struct choice ***end)
{
	*end = list;
	for (unsigned i = 0; i < t->choices; i++) {
		**end = open_one(t, i);
		if (!**end) {
			choices_close(*list);
			return false;
		}
		*end = &(**end)->next;
	}
	return true;
}

void choices_close(struct choice *c)
{
	while (c) {
		struct choice *next = c->next;
		if (c->mask)
			mask_work_drop(c->mask);
		jit_session_close(c->session);
		task_release(c->task);
		kept_text_free(&c->kept);
		free(c->sum);
		free(c);
		c = next;
	}
}

/* ---- the end */

static void fill_numbers(struct choice *c)
{
	jit_session_stats stats = JIT_SESSION_STATS();
	double now = system_seconds();

	c->numbers.told = now;
	if (c->begun > 0) {
		c->numbers.queued_seconds = c->begun - c->queued;
		c->numbers.prompt_seconds = (c->first > 0 ? c->first : now) - c->begun;
	}
	if (c->first > 0)
		c->numbers.decode_seconds = now - c->first;
	if (c->session && jit_session_get_stats(c->session, &stats, NULL) == JIT_OK) {
		c->numbers.drafted = stats.drafted;
		c->numbers.accepted = stats.accepted;
	}
	jit_draft_stats draft = JIT_DRAFT_STATS();
	if (c->session && jit_session_get_draft_stats(c->session, &draft, NULL) == JIT_OK) {
		c->numbers.draft_requests = draft.requests;
		c->numbers.draft_proposed = draft.proposed;
		c->numbers.draft_accepted = draft.accepted;
		c->numbers.draft_seconds = draft.seconds;
		c->numbers.draft_gain = draft.gain;
	}
}

/* All tokens but the last, which was chosen and is not computed. */
static void keep_text(struct choice *c)
{
	size_t n = c->session ? jit_session_length(c->session) : 0;

	if (!c->task->action && c->numbers.generated && n >= 2)
		kept_text_take(&c->kept, c->session, n - 1);
}

/* The session goes at once, so that its memory is there for others. */
static void finish(struct choice *c, const struct answer_event *r, const char *text, enum choice_outcome outcome)
{
	struct answer_event last = *r;

	if (c->outcome != CHOICE_RUNNING)
		return;
	if (c->number == c->task->first) /* nobody waits for its scores any more */
		c->task->scored = true;
	fill_numbers(c);
	keep_text(c);
	last.choice = c->number;
	last.numbers = c->numbers;
	c->outcome = outcome;
	stream_put(c->task->stream, &last, NULL, text);
	if (c->mask)
		mask_work_drop(c->mask);
	c->mask = NULL;
	jit_session_close(c->session);
	c->session = NULL;
}

void choice_fail(struct choice *c, int status, const char *why)
{
	char text[sizeof((jit_error *)0)->message];

	snprintf(text, sizeof text, "%s", why);
	refusal_hide_paths(text, c->task->file);
	const struct answer_event r = { .kind = EVENT_FAILED, .status = status, .n_text = (uint32_t)strlen(text) };
	finish(c, &r, text, CHOICE_FAILED);
}

void choice_refuse(struct choice *c, int status, const char *param, const char *why)
{
	char text[sizeof((struct refusal *)0)->param + sizeof((jit_error *)0)->message],
		shown[sizeof((jit_error *)0)->message];
	const size_t n_param = strlen(param);

	snprintf(shown, sizeof shown, "%s", why);
	if (c->task->file) /* schemas have places that look like paths */
		refusal_hide_paths(shown, c->task->file);
	const struct answer_event r = { .kind = EVENT_FAILED,
		                        .status = status,
		                        .n_param = (uint32_t)n_param,
		                        .n_text = (uint32_t)snprintf(text, sizeof text, "%s%s", param, shown) };

	finish(c, &r, text, CHOICE_FAILED);
}

void choice_end(struct choice *c, enum end_reason reason)
{
	const struct answer_event r = {
		.kind = EVENT_ENDED, .reason = reason, .stop = c->session ? jit_session_stopped(c->session) : -1
	};

	finish(c, &r, NULL, reason == END_CANCELLED ? CHOICE_CANCELLED : CHOICE_ENDED);
}

void choice_poll(struct choice *c)
{
	if (c->outcome == CHOICE_RUNNING && stream_is_cancelled(c->task->stream)) {
		choice_end(c, END_CANCELLED);
		if (stream_is_dropped(c->task->stream))
			c->outcome = CHOICE_DROPPED;
	}
}

int choice_status(int code)
{
	switch (code) {
	case JIT_ERROR_ARGUMENT:
	case JIT_ERROR_CONTEXT:
	case JIT_ERROR_UNSUPPORTED: return 400;
	case JIT_ERROR_DEVICE:
	case JIT_ERROR_MEMORY: return 503;
	}
	return 500;
}

/* ---- the beginning */

static bool set_stops(struct choice *c, jit_error *err)
{
	const struct task *t = c->task;

	return jit_session_set_stop(c->session, (const char *const *)t->stop, t->n_stop, err) == JIT_OK;
}

static bool set_limits(struct choice *c, jit_error *err)
{
	struct error e = { 0 };

	if (!c->task->limits || session_set_limits(c->session, c->task->limits, &e))
		return true;
	err->code = JIT_ERROR_MEMORY;
	snprintf(err->message, sizeof err->message, "%s", e.text);
	return false;
}

/* The prompt, with its pictures. */
static int submit(const struct choice *c, size_t *reused, jit_error *err)
{
	const struct task *t = c->task;
	struct jit_prompt p = t->shown;

	if (!p.images)
		return jit_session_submit(c->session, t->ids, t->n_ids, reused, err);
	p.ids = t->ids;
	p.n = t->n_ids;
	return prompt_feed_session(c->session, &p, reused, err);
}

static bool prepare(struct choice *c, jit_batch *batch, jit_error *err)
{
	const struct task *t = c->task;
	jit_sampling p = t->sampling;
	size_t reused = 0;

	p.seed += c->number - t->first;
	c->session = jit_batch_session(batch, &p, err);
	if (!c->session || !used_adapters_set(&t->adapters, c->session, t->ids, t->n_ids, err) ||
	    (t->min == 0 && !set_stops(c, err)) || submit(c, &reused, err) != JIT_OK || !set_limits(c, err))
		return false;
	c->numbers.prompt = t->n_ids;
	c->numbers.reused = reused;
	return true;
}

/* What of the grammar is not done is the fault of a field. */
static void blame_grammar(struct choice *c, const jit_error *err)
{
	const int status = choice_status(err->code);
	char param[80], why[512];

	task_blame_grammar(c->task, err->message, param, why);
	choice_refuse(c, status, status == 400 ? param : "", status == 400 ? why : err->message);
}

static bool gone(void *stream) { return stream_is_cancelled(stream); }

/* The grammar begins behind the reasoning, where the answer may have any. */
static bool set_lead(struct choice *c, jit_error *err)
{
	const struct task *t = c->task;
	const struct session_lead lead = {
		.inside = t->before.inside,
		.pair = t->before.pair,
		.may = t->before.may,
		.first = t->begins.ids,
		.n_first = t->begins.n,
		.behind = t->continues.ids,
		.n_behind = t->continues.n,
		.may_end = t->holds_calls
	};
	struct error e = { 0 };

	if (session_grammar_lead(c->session, &lead, &e))
		return true;
	err->code = JIT_ERROR_MEMORY;
	snprintf(err->message, sizeof err->message, "%s", e.text);
	return false;
}

static bool prepare_grammar(struct choice *c)
{
	const struct task *t = c->task;
	jit_error err = { 0 };

	if (t->grammars && t->grammars[c->number - t->first]) {
		session_grammar_give(c->session, t->grammars[c->number - t->first]);
		t->grammars[c->number - t->first] = NULL;
	} else if (t->grammar == JIT_GRAMMAR_NONE) {
		return true;
	} else if (jit_session_set_grammar(c->session, task_grammar_kind(t), t->grammar_text, strlen(t->grammar_text),
	                                   &err) != JIT_OK) {
		blame_grammar(c, &err);
		return false;
	}
	session_grammar_watch(c->session, gone, t->stream);
	session_grammar_defer(c->session);
	if (set_lead(c, &err))
		return true;
	choice_fail(c, choice_status(err.code), err.message);
	return false;
}

static void tell_prompt(struct choice *c, uint64_t done)
{
	const struct answer_event r = {
		.kind = EVENT_PROMPT, .choice = c->number, .numbers = c->numbers, .done = done
	};

	c->told = done;
	stream_put(c->task->stream, &r, NULL, NULL);
}

void choice_progress(struct choice *c)
{
	if (c->outcome != CHOICE_RUNNING || !c->session || !c->task->progress || c->first > 0)
		return;
	uint64_t done = session_computed(c->session);
	done = done < c->numbers.prompt ? done : c->numbers.prompt;
	if (done <= c->told)
		return;
	fill_numbers(c);
	tell_prompt(c, done);
}

void choice_begin(struct choice *c, jit_batch *batch)
{
	struct answer_event started = { .kind = EVENT_STARTED, .choice = c->number };
	jit_error err = { 0 };

	if (c->begun <= 0) /* else its prompt was scored */
		c->begun = system_seconds();
	if (stream_is_cancelled(c->task->stream)) {
		choice_end(c, END_CANCELLED);
	} else if (!prepare(c, batch, &err)) {
		choice_fail(c, choice_status(err.code), err.message);
	} else if (prepare_grammar(c)) {
		started.numbers = c->numbers;
		stream_put(c->task->stream, &started, NULL, NULL);
		if (c->task->progress)
			tell_prompt(c, c->numbers.reused);
		if (c->task->max == 0)
			choice_end(c, END_LENGTH);
	}
}

/* ---- a token */

/* The text that the token completes, and with `last` what is held back behind it. */
static bool add_text(struct choice *c, int32_t id, bool last, struct bytes *out, jit_error *err)
{
	size_t n;
	const char *text;

	for (int i = id < 0; i < 1 + last; i++) {
		text = jit_session_text(c->session, i ? -1 : id, &n, err);
		if (!text)
			return false;
		bytes_add(out, text, n);
	}
	return true;
}

static bool lack_memory(jit_error *err)
{
	err->code = JIT_ERROR_MEMORY;
	snprintf(err->message, sizeof err->message, "There is no memory for this answer.");
	return false;
}

static bool put_token(struct choice *c, int32_t id, bool last, jit_error *err)
{
	jit_logprob top[JIT_LOGPROBS_MOST];
	struct answer_event r = { .kind = EVENT_TOKEN, .choice = c->number, .id = id };
	struct bytes text = { 0 };
	int n = c->task->logprobs;

	if (c->task->timings) {
		fill_numbers(c);
		r.numbers = c->numbers;
	}
	if (id >= 0 && n >= 0) {
		size_t have = (size_t)n;
		if ((c->task->sampled ? jit_session_sampled_logprobs(c->session, &r.logprob, top, have, &have, err)
		                      : jit_session_logprobs(c->session, &r.logprob, top, have, err)) != JIT_OK)
			return false;
		r.n_top = (uint32_t)have;
	}
	bool ok = add_text(c, id, last, &text, err);
	const int stopped = c->task->keeps_stop ? jit_session_stopped(c->session) : -1;
	if (ok && stopped >= 0)
		bytes_text(&text, c->task->stop[stopped]);
	if (id >= 0 && c->task->marks)
		bytes_text(&text, models_mark(c->task->marks, id));
	if (ok && text.lost)
		ok = lack_memory(err);
	r.n_text = (uint32_t)text.n;
	if (ok && (id >= 0 || text.n))
		stream_put(c->task->stream, &r, top, text.p);
	bytes_free(&text);
	return ok;
}

/* No token could be chosen. */
static void stop_at(struct choice *c, const jit_error *why)
{
	jit_error err = { 0 };
	char param[80], sentence[512];
	bool complete = why->code == JIT_ERROR_ARGUMENT && c->task->grammar != JIT_GRAMMAR_NONE &&
	                !c->task->holds_calls && jit_session_grammar_complete(c->session) == 1;

	if (why->code == JIT_ERROR_CANCELLED) {
		choice_end(c, END_CANCELLED);
	} else if (why->code == JIT_ERROR_CONTEXT || complete) {
		if (put_token(c, -1, true, &err))
			choice_end(c, why->code == JIT_ERROR_CONTEXT ? END_LENGTH : END_GRAMMAR);
		else
			choice_fail(c, 500, err.message);
	} else if (why->code == JIT_ERROR_UNSUPPORTED && c->task->grammar != JIT_GRAMMAR_NONE) {
		blame_grammar(c, why); /* it takes more work than is allowed */
	} else if ((why->code == JIT_ERROR_ARGUMENT || why->code == JIT_ERROR_UNSUPPORTED) &&
	           task_blame_dead_end(c->task, param, sentence)) {
		choice_refuse(c, 400, param, sentence); /* its fields do not go together */
	} else {
		choice_fail(c, why->code == JIT_ERROR_ARGUMENT ? 500 : choice_status(why->code), why->message);
	}
}

/* With the row that the next token is chosen by. */
static bool sum_row(const struct choice *c, const jit_model *model, uint64_t *sum)
{
	jit_model_info info = JIT_MODEL_INFO();
	const float *row = jit_session_logits(c->session, NULL);
	bool ok = row && jit_model_get_info(model, &info, NULL) == JIT_OK;

	*sum = ok ? bits_sum(c->bits, row, (size_t)info.vocab) : 0;
	return ok;
}

/* Where the token just chosen has no place in the context any more, old ones go, and pictures as a whole. Where that
 * would be all, the answer ends. */
static bool make_room(struct choice *c, jit_error *err)
{
	const struct task *t = c->task;
	const size_t room = (size_t)t->context;

	if (!t->shifts || jit_session_length(c->session) <= room)
		return true;
	const size_t half = (room - t->keeps) / 2, keep = session_pictures_whole(c->session, t->keeps),
		     end = session_pictures_end(c->session, t->keeps + (half ? half : 1));
	c->checked = false; /* its tokens are no single text */
	return end >= jit_session_length(c->session) || session_shift(c->session, keep, end - keep, err) == JIT_OK;
}

static void choose(struct choice *c, const jit_model *model)
{
	jit_error err = { 0 };
	int32_t id;
	uint64_t sum = 0;
	bool summed = c->checked && sum_row(c, model, &sum);

	if (jit_session_next(c->session, &id, &err) != JIT_OK) {
		stop_at(c, &err);
		return;
	}
	c->checked = summed;
	c->bits = sum;
	if (c->first <= 0)
		c->first = system_seconds();
	c->numbers.generated++;
	const bool model_ends = !c->task->ignore_end && jit_model_is_end(model, id);
	bool ends = model_ends || task_ends_at(c->task, id);
	bool last = ends || (c->task->max > 0 && c->numbers.generated >= (uint64_t)c->task->max);
	bool hidden = ends && (model_ends || !c->task->keeps_stop);
	if (!put_token(c, hidden ? -1 : id, last, &err) ||
	    (c->task->min > 0 && c->numbers.generated == (uint64_t)c->task->min && !set_stops(c, &err)))
		choice_fail(c, choice_status(err.code), err.message);
	else if (ends)
		choice_end(c, END_TOKEN);
	else if (jit_session_stopped(c->session) >= 0)
		choice_end(c, END_STOP_TEXT);
	else if (last)
		choice_end(c, END_LENGTH);
	else if (!make_room(c, &err))
		choice_fail(c, choice_status(err.code), err.message);
}

/* A token can cost a grammar half a second, which the others do not wait. Where a choice waited, for a mask or parked,
 * and others took its memory meanwhile, the batch computes its tokens again as soon as there is room. */
void choice_advance(struct choice *c, const jit_model *model, struct masks_of_all *masks)
{
	if (session_begins_again(c->session))
		return;
	if (c->mask || (session_grammar_is_due(c->session) && (c->mask = mask_work_begin(masks, c->session))))
		return;
	choose(c, model);
}

void choice_collect(struct choice *c, const jit_model *model)
{
	if (!c->mask || c->parked || c->outcome != CHOICE_RUNNING || !mask_work_end(c->mask, c->session))
		return;
	c->mask = NULL;
	if (!session_begins_again(c->session))
		choose(c, model);
}
