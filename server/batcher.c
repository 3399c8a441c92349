/* server/batcher.c - the thread that computes for all requests of one model: its queue, and its passes. */
#include "server/batcher.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/bits.h"
#include "server/choice.h"
#include "server/slots.h"

struct batcher {
	struct batcher_options o;
	jit_batch *batch;
	int context;
	pthread_mutex_t lock; /* of what follows, up to numbers */
	pthread_cond_t more;
	pthread_t thread;
	struct choice *first, **last; /* waiting */
	bool ends;
	struct batcher_numbers numbers;
	/* the thread's own */
	struct choice **running;
	unsigned n_running;
	jit_session **ready;
	struct slots *slots;
	jit_session *alone; /* for embeddings; NULL: none was asked for */
	struct bits *bits;  /* NULL: no answer is computed again */
};

/* ---- the queue */

bool batcher_take(struct batcher *e, struct task *t, struct refusal *r)
{
	struct choice *list = NULL, **end = &list;
	bool fits, open;

	for (unsigned i = 0; i < t->choices; i++) {
		*end = choice_open(t, i);
		if (!*end) {
			choices_close(list);
			return refuse(r, 503, NULL, "There is no memory for this request.");
		}
		end = &(*end)->next;
	}
	pthread_mutex_lock(&e->lock);
	open = !e->ends;
	fits = e->numbers.waiting + e->numbers.running + t->choices <= e->o.parallel + e->o.queue;
	if (open && fits) {
		*e->last = list;
		e->last = end;
		e->numbers.waiting += t->choices;
		pthread_cond_signal(&e->more);
	} else {
		e->numbers.refused += t->choices;
	}
	pthread_mutex_unlock(&e->lock);
	if (open && fits)
		return true;
	choices_close(list);
	return open ? refuse(r, 429, NULL, "Too many requests are waiting; try again soon.")
	            : refuse(r, 503, NULL, "The server is stopping.");
}

/* The first that waits; of those that need the session that is alone, none while another one does. */
static struct choice *take_waiting(struct batcher *e, bool embeds)
{
	pthread_mutex_lock(&e->lock);
	struct choice **at = &e->first;
	while (*at && ((!embeds && choice_is_alone(*at)) || choice_waits(*at)))
		at = &(*at)->next;
	struct choice *c = *at;
	if (c) {
		*at = c->next;
		if (e->last == &c->next)
			e->last = at;
		c->next = NULL;
		e->numbers.waiting--;
		e->numbers.running++;
		e->numbers.started++;
	}
	pthread_mutex_unlock(&e->lock);
	return c;
}

/* ---- one pass */

static void count(struct batcher *e, const struct choice *c)
{
	struct batcher_numbers *n = &e->numbers;

	pthread_mutex_lock(&e->lock);
	n->running--;
	n->ended += c->outcome == CHOICE_ENDED;
	n->failed += c->outcome == CHOICE_FAILED;
	n->cancelled += c->outcome == CHOICE_CANCELLED;
	n->dropped += c->outcome == CHOICE_DROPPED;
	n->prompt_tokens += c->numbers.prompt;
	n->reused_tokens += c->numbers.reused;
	n->generated_tokens += c->numbers.generated;
	n->drafted += c->numbers.drafted;
	n->accepted += c->numbers.accepted;
	n->prompt_seconds += c->numbers.prompt_seconds;
	n->decode_seconds += c->numbers.decode_seconds;
	pthread_mutex_unlock(&e->lock);
}

/* Takes out those that have come to an end. */
static void sweep(struct batcher *e)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < e->n_running; i++) {
		struct choice *c = e->running[i];
		if (c->outcome == CHOICE_RUNNING) {
			e->running[kept++] = c;
			continue;
		}
		if (c->checked && c->outcome == CHOICE_ENDED && c->ids)
			bits_take(e->bits, c->ids, c->n_ids, c->task->n_ids, c->bits);
		slots_leave(e->slots, c);
		count(e, c);
		choices_close(c);
	}
	e->n_running = kept;
}

static struct choice *embedded(const struct batcher *e)
{
	for (unsigned i = 0; i < e->n_running; i++)
		if (choice_is_alone(e->running[i]) && e->running[i]->outcome == CHOICE_RUNNING)
			return e->running[i];
	return NULL;
}

static void begin(struct batcher *e, struct choice *c)
{
	slots_enter(e->slots, c);
	c->checked = e->bits && bits_wants(e->bits);
	choice_begin(c, e->batch);
}

/* A part of one text, in turns with a pass of the others. */
static void embed(struct batcher *e, struct choice *c)
{
	enum { USUAL_MS = 200 };
	const jit_batch_options *b = &e->o.batch;
	const double seconds = (b->max_pass_ms ? b->max_pass_ms : USUAL_MS) / 1e3;
	jit_error err = { 0 };

	if (c->task->n_ids > (size_t)e->context) {
		char why[160];
		snprintf(why, sizeof why, "the text has %zu tokens, and the context has room for %d", c->task->n_ids,
		         e->context);
		choice_fail(c, 400, why);
		return;
	}
	if (!e->alone)
		e->alone = jit_session_open(
			e->o.model, &JIT_SESSION_OPTIONS(.context = e->context, .threads = b->threads, .kv = b->kv),
			&err);
	if (!e->alone) {
		choice_fail(c, 503, err.message);
	} else if (!choice_embed(c, e->alone, e->o.model, seconds)) {
		jit_session_close(e->alone);
		e->alone = NULL;
	} else if (c->outcome == CHOICE_RUNNING && !choice_is_alone(c)) {
		begin(e, c);
	}
}

static void admit(struct batcher *e)
{
	struct choice *c;

	while (e->n_running < e->o.parallel && (c = take_waiting(e, !embedded(e)))) {
		if (c->task->action)
			slots_act(e->slots, c, e->batch);
		else if (!choice_is_alone(c))
			begin(e, c);
		e->running[e->n_running++] = c;
	}
}

static struct choice *choice_of(struct batcher *e, const jit_session *s)
{
	for (unsigned i = 0; i < e->n_running; i++)
		if (e->running[i]->session == s)
			return e->running[i];
	return NULL;
}

static void fail_all(struct batcher *e, int status, const char *why)
{
	for (unsigned i = 0; i < e->n_running; i++)
		choice_fail(e->running[i], status, why);
}

static void step(struct batcher *e)
{
	jit_error err = { 0 };
	size_t n = 0;

	if (jit_batch_step(e->batch, e->ready, e->o.parallel, &n, &err) != JIT_OK) {
		/* Memory that is missing now may be there once somebody has left: who came last. */
		if (err.code == JIT_ERROR_MEMORY && e->n_running > 1)
			choice_fail(e->running[e->n_running - 1], 503, err.message);
		else
			fail_all(e, choice_status(err.code), err.message);
		return;
	}
	for (unsigned i = 0; i < e->n_running; i++)
		choice_progress(e->running[i]);
	for (size_t i = 0; i < n; i++) {
		struct choice *c = choice_of(e, e->ready[i]);
		if (!c || c->outcome != CHOICE_RUNNING)
			continue;
		if (c->task->action)
			slots_save(c);
		else
			choice_advance(c, e->o.model);
	}
}

/* What every session knows of its model's kernels. */
static void keep_kernels(struct batcher *e)
{
	jit_session_stats stats = JIT_SESSION_STATS();
	const jit_session *s = NULL;

	for (unsigned i = 0; i < e->n_running && !s; i++)
		s = e->running[i]->session;
	if (!s || jit_session_get_stats(s, &stats, NULL) != JIT_OK)
		return;
	pthread_mutex_lock(&e->lock);
	e->numbers.kernels_generated = stats.kernels_generated;
	e->numbers.kernels_cached = stats.kernels_from_cache - stats.kernels_from_pack;
	e->numbers.kernels_packed = stats.kernels_from_pack;
	e->numbers.kernels_awaited = stats.kernel_stalls;
	e->numbers.code_bytes = stats.code_bytes;
	pthread_mutex_unlock(&e->lock);
}

static void keep_numbers(struct batcher *e)
{
	jit_batch_stats stats = JIT_BATCH_STATS();

	jit_batch_get_stats(e->batch, &stats, NULL);
	pthread_mutex_lock(&e->lock);
	e->numbers.batch = stats;
	e->numbers.bits_checked = bits_checked(e->bits);
	e->numbers.bits_wrong = bits_wrong(e->bits);
	pthread_mutex_unlock(&e->lock);
}

/* Whether there is anything to do; false: the batcher ends. */
static bool wait_for_work(struct batcher *e)
{
	pthread_mutex_lock(&e->lock);
	while (!e->ends && !e->first && e->n_running == 0 && !bits_pending(e->bits))
		pthread_cond_wait(&e->more, &e->lock);
	bool goes_on = !e->ends;
	pthread_mutex_unlock(&e->lock);
	return goes_on;
}

static void *run(void *user)
{
	struct batcher *e = user;

	while (wait_for_work(e)) {
		admit(e);
		for (unsigned i = 0; i < e->n_running; i++)
			choice_look(e->running[i]);
		sweep(e);
		keep_kernels(e);
		struct choice *c = embedded(e);
		if (c)
			embed(e, c);
		if (e->n_running > (c ? 1u : 0u))
			step(e);
		else if (!c && bits_pending(e->bits))
			bits_step(e->bits);
		sweep(e);
		keep_numbers(e);
	}
	fail_all(e, 503, "The server is stopping.");
	sweep(e);
	for (struct choice *c; (c = take_waiting(e, true));) {
		choice_fail(c, 503, "The server is stopping.");
		count(e, c);
		choices_close(c);
	}
	return NULL;
}

/* ---- opening and closing */

static int context_of(const struct batcher_options *o)
{
	jit_model_info info = JIT_MODEL_INFO();

	jit_model_get_info(o->model, &info, NULL);
	if (o->batch.context)
		return o->batch.context;
	return info.context_trained < 4096 ? info.context_trained : 4096;
}

static bool begin_thread(struct batcher *e)
{
	if (pthread_mutex_init(&e->lock, NULL))
		return false;
	if (pthread_cond_init(&e->more, NULL) == 0) {
		if (pthread_create(&e->thread, NULL, run, e) == 0)
			return true;
		pthread_cond_destroy(&e->more);
	}
	pthread_mutex_destroy(&e->lock);
	return false;
}

static void give_back(struct batcher *e)
{
	jit_session_close(e->alone);
	bits_close(e->bits);
	jit_batch_close(e->batch);
	slots_close(e->slots);
	free(e->running);
	free(e->ready);
	free(e);
}

static struct bits *open_bits(const struct batcher *e)
{
	const jit_batch_options *b = &e->o.batch;

	return bits_open(e->o.model, &JIT_SESSION_OPTIONS(.context = e->context, .threads = b->threads, .kv = b->kv),
	                 e->o.check);
}

struct batcher *batcher_open(const struct batcher_options *o, jit_error *err)
{
	struct batcher *e = calloc(1, sizeof *e);

	if (e) {
		e->o = *o;
		e->o.batch.context = e->context = context_of(o);
		e->last = &e->first;
		e->running = calloc(o->parallel, sizeof *e->running);
		e->ready = calloc(o->parallel, sizeof(jit_session *));
		e->slots = slots_open(o->parallel);
	}
	if (!e || !e->running || !e->ready || !e->slots) {
		if (err)
			*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for the batcher" };
	} else if (o->check && !(e->bits = open_bits(e))) {
		if (err)
			*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for checks of bits" };
	} else if ((e->batch = jit_batch_open(o->model, &e->o.batch, err))) {
		e->numbers.batch = JIT_BATCH_STATS();
		jit_batch_get_stats(e->batch, &e->numbers.batch, NULL);
		if (begin_thread(e))
			return e;
		if (err)
			*err = (jit_error){ .code = JIT_ERROR_IO, .message = "the batcher's thread cannot be started" };
	}
	if (e)
		give_back(e);
	return NULL;
}

void batcher_stop(struct batcher *e)
{
	pthread_mutex_lock(&e->lock);
	bool ended = e->ends;
	e->ends = true;
	pthread_cond_signal(&e->more);
	pthread_mutex_unlock(&e->lock);
	if (!ended)
		pthread_join(e->thread, NULL);
}

void batcher_close(struct batcher *e)
{
	if (!e)
		return;
	batcher_stop(e);
	pthread_cond_destroy(&e->more);
	pthread_mutex_destroy(&e->lock);
	give_back(e);
}

void batcher_get_numbers(struct batcher *e, struct batcher_numbers *out)
{
	pthread_mutex_lock(&e->lock);
	*out = e->numbers;
	pthread_mutex_unlock(&e->lock);
}

void batcher_numbers_add(struct batcher_numbers *to, const struct batcher_numbers *past)
{
	to->started += past->started;
	to->ended += past->ended;
	to->failed += past->failed;
	to->cancelled += past->cancelled;
	to->dropped += past->dropped;
	to->refused += past->refused;
	to->prompt_tokens += past->prompt_tokens;
	to->reused_tokens += past->reused_tokens;
	to->generated_tokens += past->generated_tokens;
	to->drafted += past->drafted;
	to->accepted += past->accepted;
	to->prompt_seconds += past->prompt_seconds;
	to->decode_seconds += past->decode_seconds;
	to->bits_checked += past->bits_checked;
	to->bits_wrong += past->bits_wrong;
	to->kernels_generated += past->kernels_generated;
	to->kernels_cached += past->kernels_cached;
	to->kernels_packed += past->kernels_packed;
	to->kernels_awaited += past->kernels_awaited;
	to->batch.passes += past->batch.passes;
	to->batch.tokens += past->batch.tokens;
	to->batch.set_back += past->batch.set_back;
	to->batch.seconds += past->batch.seconds;
	for (size_t i = 0; i < sizeof to->batch.width / sizeof *to->batch.width; i++)
		to->batch.width[i] += past->batch.width[i];
}

int batcher_context(const struct batcher *e) { return e->context; }

unsigned batcher_parallel(const struct batcher *e) { return e->o.parallel; }
