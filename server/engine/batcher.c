/* server/engine/batcher.c - the thread that computes for all requests of one model: its queue, and its passes. */
#include "server/engine/batcher_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/system.h"
#include "include/jitrun_cards.h"
#include "server/engine/fairness.h"

/* ---- the queue */

/* Answers of this client that wait or run. */
static unsigned answers_of(const struct batcher *e, const struct client *client)
{
	unsigned n = 0;

	for (const struct choice *c = e->first; c; c = c->next)
		n += fairness_same_client(&c->task->client, client);
	for (unsigned i = 0; i < e->n_running; i++)
		n += fairness_same_client(&e->running[i]->task->client, client);
	return n;
}

static bool has_room(const struct batcher *e, const struct task *t, struct refusal *r)
{
	const struct batcher_numbers *n = &e->numbers;

	if (n->waiting + n->running + t->choices > e->o.parallel + e->o.queue)
		return refuse(r, 429, NULL, "Too many requests are waiting; try again soon.");
	if (answers_of(e, &t->client) + t->choices > e->o.of_client)
		return refuse(r, 429, NULL,
		              "Too many answers of this client are waiting; %u may (--max-answers-per-client).",
		              e->o.of_client);
	return true;
}

bool batcher_take(struct batcher *e, struct task *t, struct refusal *r)
{
	struct choice *list = NULL, **end;

	if (!choices_open(t, &list, &end))
		return refuse(r, 503, NULL, "There is no memory for this request.");
	pthread_mutex_lock(&e->lock);
	if (!e->batch && !t->embeds)
		choice_refuse_to_generate(r);
	else if (e->ends)
		refuse(r, 503, NULL, "The server is stopping.");
	else if (e->failure.code)
		refuse(r, 503, NULL, "%s", e->failure.message);
	bool taken = r->status == 0 && has_room(e, t, r);
	if (taken) {
		*e->last = list;
		e->last = end;
		e->numbers.waiting += t->choices;
		e->called = true;
		pthread_cond_signal(&e->more);
	} else {
		e->numbers.refused += t->choices;
	}
	pthread_mutex_unlock(&e->lock);
	if (!taken)
		choices_close(list);
	return taken;
}

/* Under the lock. */
static struct choice *unlink_waiting(struct batcher *e, struct choice **at)
{
	struct choice *c = *at;

	*at = c->next;
	if (e->last == &c->next)
		e->last = at;
	c->next = NULL;
	e->numbers.waiting--;
	e->numbers.running++;
	e->numbers.started++;
	return c;
}

/* ---- one pass */

static void count(struct batcher *e, const struct choice *c)
{
	pthread_mutex_lock(&e->lock);
	batcher_numbers_count(&e->numbers, c);
	pthread_mutex_unlock(&e->lock);
}

/* Takes out those that have come to an end. */
static void sweep(struct batcher *e)
{
	struct choice *over = NULL;
	unsigned kept = 0;

	pthread_mutex_lock(&e->lock);
	for (unsigned i = 0; i < e->n_running; i++) {
		struct choice *c = e->running[i];
		if (c->outcome == CHOICE_RUNNING) {
			e->running[kept++] = c;
			continue;
		}
		c->next = over;
		over = c;
	}
	e->n_running = kept;
	pthread_mutex_unlock(&e->lock);
	for (struct choice *c = over; c; c = c->next) {
		if (c->checked && c->outcome == CHOICE_ENDED && c->kept.ids)
			bits_take(e->bits, c->kept.ids, c->kept.n, c->task->n_ids, c->bits, &c->task->adapters);
		slots_leave(e->slots, c);
		count(e, c);
	}
	choices_close(over);
}

static void begin(struct batcher *e, struct choice *c)
{
	slots_enter(e->slots, c);
	c->checked = e->bits && !c->task->shown.images && bits_wants(e->bits);
	choice_begin(c, e->batch);
}

/* A part of one text, in turns with a pass of the others. */
static void embed(struct batcher *e, struct choice *c)
{
	enum { USUAL_MS = 200 };
	const jit_batch_options *b = &e->o.batch;
	const double seconds = (b->max_pass_ms ? b->max_pass_ms : USUAL_MS) / 1e3;
	jit_error err = { 0 };

	if (c->done == 0)
		c->served = ++e->served_texts;
	if (!choice_fits(c, e->context, !e->batch))
		return;
	if (!e->alone)
		e->alone = choice_open_alone(e->o.model, b, &(int){ e->context }, &err);
	if (!e->alone) {
		choice_fail(c, 503, err.message);
	} else if (!(e->batch ? choice_embed : choice_encode)(c, e->alone, e->o.model, seconds)) {
		jit_session_close(e->alone);
		e->alone = NULL;
	} else if (c->outcome == CHOICE_RUNNING && !choice_is_alone(c)) {
		begin(e, c);
	}
}

static unsigned at_work(const struct batcher *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->n_running; i++)
		n += !e->running[i]->parked;
	return n;
}

/* The choice that waits, where there is room, or where another has to make room. parked: instead, one that goes on.
 * NULL: it is nobody's turn. */
static struct choice *take_next(struct batcher *e, struct choice **parked)
{
	struct choice *victim = NULL, *c = NULL;

	*parked = NULL;
	pthread_mutex_lock(&e->lock);
	bool room = at_work(e) < e->o.parallel;
	unsigned alone;
	choices_alone(e->running, e->n_running,
	              &alone); /* those that need the session that is alone leave room for others */
	struct choice **at = fairness_next(&e->first, alone < (e->o.parallel + 1) / 2, e->running, e->n_running);
	struct choice *back = room ? fairness_parked(e->running, e->n_running) : NULL;
	if (at && !room && e->n_running < 2 * e->o.parallel)
		victim = fairness_victim(*at, e->running, e->n_running);
	if (back && (!at || fairness_before(back, *at, e->running, e->n_running))) {
		*parked = back;
		back->parked = false;
	} else if (at && (room || victim)) {
		if (victim)
			victim->parked = true;
		c = e->running[e->n_running] = unlink_waiting(e, at);
		e->n_running++;
	}
	pthread_mutex_unlock(&e->lock);
	return c;
}

static void admit(struct batcher *e)
{
	struct choice *c, *back;

	while ((c = take_next(e, &back)) || back) {
		if (back && back->due)
			choice_advance(back, e->o.model, e->masks);
		else if (c && c->task->action)
			slots_act(e->slots, c, e->batch);
		else if (c && !choice_is_alone(c))
			begin(e, c);
		if (back)
			back->due = false;
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

/* Those that wait, too. */
static void fail_everyone(struct batcher *e, const char *why)
{
	struct choice *c;

	fail_all(e, 503, why);
	sweep(e);
	do {
		pthread_mutex_lock(&e->lock);
		c = e->first ? unlink_waiting(e, &e->first) : NULL;
		pthread_mutex_unlock(&e->lock);
		if (c) {
			choice_fail(c, 503, why);
			count(e, c);
			choices_close(c);
		}
	} while (c);
}

/* Whatever failed: whether the device computes no more. Nobody waits for it then. Who wants to know is told first: a
 * client that asks again at once finds what was done about it. */
static void check_device(struct batcher *e)
{
	jit_error why = { 0 };

	if (e->dead || jit_model_alive(e->o.model, &why) == JIT_OK)
		return;
	e->dead = true;
	pthread_mutex_lock(&e->lock);
	e->failure = why;
	const uint64_t failed_before = e->numbers.failed;
	pthread_mutex_unlock(&e->lock);
	if (e->o.device_failed)
		e->o.device_failed(e->o.user, why.message);
	fail_everyone(e, why.message);
	pthread_mutex_lock(&e->lock);
	e->numbers.lost += e->numbers.failed - failed_before;
	pthread_mutex_unlock(&e->lock);
}

static void step(struct batcher *e)
{
	jit_error err = { 0 };
	size_t n = 0;

	if (jit_batch_step(e->batch, e->ready, 2 * e->o.parallel, &n, &err) != JIT_OK) {
		if (err.code == JIT_ERROR_DEVICE)
			check_device(e);
		struct choice *last = fairness_victim(NULL, e->running, e->n_running);
		/* Memory that is missing now may be there once somebody has left: the last of who has the most. */
		if (err.code == JIT_ERROR_MEMORY && e->n_running > 1)
			choice_fail(last ? last : e->running[e->n_running - 1], 503, err.message);
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
		c->due = c->parked;
		if (c->task->action)
			slots_save(c);
		else if (!c->parked)
			choice_advance(c, e->o.model, e->masks);
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

	if (e->batch)
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

	system_thread_began();
	while (wait_for_work(e)) {
		admit(e);
		for (unsigned i = 0; i < e->n_running; i++)
			choice_poll(e->running[i]);
		sweep(e);
		keep_kernels(e);
		unsigned alone;
		struct choice *c = choices_alone(e->running, e->n_running, &alone);
		if (c)
			embed(e, c);
		batcher_collect(e);
		if (e->n_running > alone || (c && !choice_is_alone(c)))
			step(e);
		else if (!c && bits_pending(e->bits))
			bits_step(e->bits);
		check_device(e);
		sweep(e);
		keep_numbers(e);
	}
	fail_everyone(e, "The server is stopping.");
	masks_of_all_close(e->masks);
	e->masks = NULL;
	return NULL;
}

/* ---- opening and closing */

static bool begin_thread(struct batcher *e)
{
	pthread_condattr_t a;

	if (pthread_condattr_init(&a))
		return false;
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	bool ok = pthread_mutex_init(&e->lock, NULL) == 0;
	if (ok && !(ok = pthread_cond_init(&e->more, &a) == 0))
		pthread_mutex_destroy(&e->lock);
	pthread_condattr_destroy(&a);
	if (!ok || pthread_create(&e->thread, NULL, run, e) == 0)
		return ok;
	pthread_cond_destroy(&e->more);
	pthread_mutex_destroy(&e->lock);
	return false;
}

static void give_back(struct batcher *e)
{
	jit_session_close(e->alone);
	bits_close(e->bits);
	jit_batch_close(e->batch);
	slots_close(e->slots);
	masks_of_all_close(e->masks);
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

/* The batch says what its context is. */
static bool open_batch(struct batcher *e, jit_error *err)
{
	jit_model_info info = JIT_MODEL_INFO();

	if (jit_model_get_info(e->o.model, &info, err) != JIT_OK)
		return false;
	e->numbers.batch = JIT_BATCH_STATS();
	e->context = e->o.batch.context;
	if (info.encodes)
		return (e->alone = choice_open_alone(e->o.model, &e->o.batch, &e->context, err)) != NULL;
	if (!(e->batch = jit_batch_open(e->o.model, &e->o.batch, err)))
		return false;
	jit_batch_get_stats(e->batch, &e->numbers.batch, NULL);
	e->context = (int)e->numbers.batch.context;
	if (!e->o.check || (e->bits = open_bits(e)))
		return true;
	if (err)
		*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for checks of bits" };
	return false;
}

struct batcher *batcher_open(const struct batcher_options *o, jit_error *err)
{
	struct batcher *e = calloc(1, sizeof *e);

	if (e) {
		e->o = *o;
		e->last = &e->first;
		e->running = calloc(2 * (size_t)o->parallel, sizeof *e->running);
		e->ready = calloc(2 * (size_t)o->parallel, sizeof(jit_session *));
		e->slots = slots_open(o->parallel, o->adapters);
		e->masks = batcher_masks(e);
	}
	if (!e || !e->running || !e->ready || !e->slots || !e->masks) {
		if (err)
			*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for the batcher" };
	} else if (open_batch(e, err)) {
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
	e->ends = e->called = true;
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

bool batcher_failed(struct batcher *e, jit_error *why)
{
	pthread_mutex_lock(&e->lock);
	*why = e->failure;
	pthread_mutex_unlock(&e->lock);
	return why->code != JIT_OK;
}

int batcher_context(const struct batcher *e) { return e->context; }

unsigned batcher_parallel(const struct batcher *e) { return e->o.parallel; }
