/* server/engine/loader.c - which of the server's models are in memory. */
#include "server/engine/loader_parts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/host/system.h"

enum { POLL_MS = 200 }; /* how often it is seen that those who wait have gone */


/* ---- requests that wait: all under the lock */

/* It waits no more. */
static void settle(struct loader *l, struct lease *e, enum lease_state state)
{
	const struct answer_event over = { .kind = EVENT_ENDED };

	lease_unlink(l, e);
	e->state = (int)state;
	stream_put(e->stream, &over, NULL, NULL);
}

/* Those whose model is there, and those whose client has gone. */
static void settle_some(struct loader *l)
{
	for (struct lease *e = l->first, *next; e; e = next) {
		struct model_slot *p = loader_slot(l, e->model);
		next = e->next;
		if (stream_is_cancelled(e->stream)) {
			settle(l, e, LEASE_GONE);
		} else if (p->state == MODEL_LOADED && !p->leaving) {
			lease_hold(l, p);
			settle(l, e, LEASE_HELD);
		}
	}
}

/* m NULL: all. */
static void refuse_some(struct loader *l, const struct served *m, int status, const char *why)
{
	for (struct lease *e = l->first, *next; e; e = next) {
		next = e->next;
		if (m && e->model != m)
			continue;
		refuse(&e->refusal, status, "model", "%s", why);
		settle(l, e, LEASE_FAILED);
	}
}

static bool is_wanted(const struct loader *l, const struct served *m)
{
	for (const struct lease *e = l->first; e; e = e->next)
		if (e->model == m && !stream_is_cancelled(e->stream))
			return true;
	return false;
}

/* ---- room */

/* Of all but this one. */
static uint64_t bytes_of_others(const struct loader *l, const struct model_slot *mine)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->all->n; i++)
		if (&l->model_slot[i] != mine && l->model_slot[i].state != MODEL_AWAY)
			n += l->model_slot[i].bytes;
	return n;
}

/* The one that was not used for the longest; idle: of those that nobody holds. NULL: none is there. */
static struct model_slot *find_oldest(struct loader *l, const struct model_slot *spared, bool idle)
{
	struct model_slot *best = NULL;

	for (size_t i = 0; i < l->all->n; i++) {
		struct model_slot *p = &l->model_slot[i];
		if (p != spared && p->state == MODEL_LOADED && !(idle && p->held) && (!best || p->used < best->used))
			best = p;
	}
	return best;
}

/* The lock is let go meanwhile. An answer is counted a moment after its end was sent: by the batcher's thread, before
 * that ends. */
static void close_model(struct loader *l, struct model_slot *p)
{
	struct served *m = &l->all->list[p - l->model_slot];
	struct batcher_numbers last;
	struct sight_numbers seen;

	p->state = MODEL_CLOSING;
	pthread_mutex_unlock(&l->lock);
	batcher_stop(m->batcher);
	pthread_mutex_lock(&l->lock);
	batcher_get_numbers(m->batcher, &last);
	batcher_numbers_add(&p->before, &last);
	sight_get_numbers(m->sight, &seen);
	sight_numbers_add(&p->seen_before, &seen);
	batcher_failed(m->batcher, &p->failure);
	p->counts = false;
	pthread_mutex_unlock(&l->lock);
	l->o.close(m);
	pthread_mutex_lock(&l->lock);
	p->state = MODEL_AWAY;
	p->leaving = p->away = false;
	loader_tell(m, p, false);
}

/* Until something happens, or for so long at most. */
static void wait_for(struct loader *l, double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += (time_t)seconds;
	t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	t.tv_sec += t.tv_nsec / 1000000000L;
	t.tv_nsec %= 1000000000L;
	pthread_cond_timedwait(&l->changed, &l->lock, &t);
}

/* Something happens, or it is time to look who has gone. */
static void wait_a_moment(struct loader *l) { wait_for(l, POLL_MS / 1e3); }

/* ---- who has stayed long enough */

/* Seconds until it leaves, 0: now; below 0: it stays. */
static double expires(const struct model_slot *p, double now)
{
	double left = p->idle + p->keep - now;

	if (p->state != MODEL_LOADED || p->held || (!p->away && p->keep < 0))
		return -1;
	return p->away || left < 0 ? 0 : left;
}

/* The one that leaves next, and in how many seconds. NULL: all stay. */
static struct model_slot *find_expiring(struct loader *l, double *seconds)
{
	double now = system_seconds();
	struct model_slot *best = NULL;

	for (size_t i = 0; i < l->all->n; i++) {
		double left = expires(&l->model_slot[i], now);
		if (left >= 0 && (!best || left < *seconds)) {
			best = &l->model_slot[i];
			*seconds = left;
		}
	}
	return best;
}

/* Closes one that is due, or waits for that or for something else. */
static void see_who_leaves(struct loader *l)
{
	enum { LONGEST = 3600 };
	double seconds = 0;
	struct model_slot *p = find_expiring(l, &seconds);

	if (!p)
		pthread_cond_wait(&l->changed, &l->lock);
	else if (seconds > 0)
		wait_for(l, seconds < LONGEST ? seconds : LONGEST);
	else
		close_model(l, p);
}

/* One leaves, when it can. False: there is none, or nobody wants m any more. */
static bool make_one_leave(struct loader *l, const struct served *m, bool requested)
{
	struct model_slot *mine = loader_slot(l, m);

	while (!l->ends && (!requested || is_wanted(l, m))) {
		struct model_slot *idle = find_oldest(l, mine, true), *oldest = find_oldest(l, mine, false);
		if (!oldest)
			return false;
		if (idle) {
			close_model(l, idle);
			return true;
		}
		oldest->leaving = true;
		wait_a_moment(l);
		settle_some(l);
	}
	return false;
}

static void all_stay(struct loader *l)
{
	for (size_t i = 0; i < l->all->n; i++)
		l->model_slot[i].leaving = l->model_slot[i].away || l->model_slot[i].moves;
}

static size_t count_others(const struct loader *l, const struct model_slot *mine)
{
	size_t n = 0;

	for (size_t i = 0; i < l->all->n; i++)
		n += &l->model_slot[i] != mine && l->model_slot[i].state != MODEL_AWAY;
	return n;
}

/* Until so many bytes find room beside others, which may not be too many. False: they do not. */
static bool make_room(struct loader *l, const struct served *m, uint64_t bytes, bool requested)
{
	const struct model_slot *mine = loader_slot(l, m);
	bool ok = bytes <= l->o.limit;

	while (ok && (bytes_of_others(l, mine) > l->o.limit - bytes || (l->o.max && count_others(l, mine) >= l->o.max)))
		ok = make_one_leave(l, m, requested);
	all_stay(l);
	return ok;
}

/* ---- opening */

static void say_too_large(const struct loader *l, const struct served *m, uint64_t bytes, jit_error *err)
{
	*err = (jit_error){ .code = JIT_ERROR_MEMORY };
	snprintf(err->message, sizeof err->message,
	         "%.300s takes %llu MiB, and --memory-limit lets all models have %llu MiB", m->name,
	         (unsigned long long)(bytes >> 20), (unsigned long long)(l->o.limit >> 20));
}

static int status_of(int code)
{
	return code == JIT_ERROR_MEMORY || code == JIT_ERROR_CANCELLED || code == JIT_ERROR_DEVICE ? 503 : 500;
}

/* The lock is let go meanwhile. Where there is no memory after all, others leave. */
static bool try_to_open(struct loader *l, struct served *m, jit_error *err)
{
	bool ok;

	do {
		*err = (jit_error){ 0 };
		pthread_mutex_unlock(&l->lock);
		ok = l->o.open(m, err);
		pthread_mutex_lock(&l->lock);
	} while (!ok && err->code == JIT_ERROR_MEMORY && make_one_leave(l, m, l->started));
	all_stay(l);
	return ok;
}

static bool open_model(struct loader *l, struct served *m, jit_error *err)
{
	struct model_slot *p = loader_slot(l, m);
	uint64_t bytes = p->bytes ? p->bytes : l->o.estimate(m);

	p->given_up = p->moves = false;
	if (!make_room(l, m, bytes, l->started)) {
		say_too_large(l, m, bytes, err);
		return false;
	}
	p->state = MODEL_LOADING;
	p->bytes = bytes;
	p->told = 0;
	loader_tell(m, p, false);
	bool opened = try_to_open(l, m, err);
	p->bytes = opened ? m->bytes : 0;
	bool ok = opened && make_room(l, m, p->bytes, false); /* it may take more than was thought */
	if (opened && p->given_up) { /* behind all that looked for it, and as if it had come in time */
		pthread_mutex_unlock(&l->lock);
		l->o.close(m);
		pthread_mutex_lock(&l->lock);
		opened = false;
	}
	if (!opened) {
		p->state = MODEL_AWAY;
		loader_tell(m, p, !p->given_up);
		return false;
	}
	p->failure = (jit_error){ 0 };
	p->info = m->info;
	p->device = m->device;
	p->context = batcher_context(m->batcher);
	p->used = ++l->clock;
	p->keep = l->o.keep;
	p->idle = system_seconds();
	p->loads++;
	p->state = MODEL_LOADED;
	/* It was taken away meanwhile: it is there for those who asked before. */
	p->away = m->made && m->gone;
	p->counts = true;
	loader_tell(m, p, false);
	if (ok)
		return true;
	say_too_large(l, m, p->bytes, err);
	close_model(l, p);
	return false;
}

/* Where it was asked to leave and is asked for again, it leaves first. */
static void load(struct loader *l, struct served *m)
{
	struct model_slot *p = loader_slot(l, m);
	jit_error err = { 0 };

	if (p->state == MODEL_LOADED) {
		if (p->held)
			wait_a_moment(l);
		else
			close_model(l, p);
		return;
	}
	bool ok = open_model(l, m, &err);

	if (!ok && p->given_up)
		refuse_some(l, m, 503, "The model was asked to leave while it was being opened.");
	if (!ok && (l->ends || !is_wanted(l, m)))
		return;
	p->failed = !ok;
	if (ok)
		return;
	if (m->made && m->gone) {
		refuse_some(l, m, 404, "The model has just been deleted.");
		return;
	}
	/* The operator of the server reads where the file is. */
	fprintf(stderr, "jitserve: %s: %s\n", m->name, err.message);
	refusal_hide_paths(err.message, m->path);
	refuse_some(l, m, status_of(err.code), err.message);
}

/* ---- models whose device has failed */

static struct model_slot *find_moving(struct loader *l)
{
	for (size_t i = 0; i < l->all->n; i++)
		if (l->model_slot[i].moves && !l->all->list[i].gone)
			return &l->model_slot[i];
	return NULL;
}

/* It is opened at once: a server that says it is not ready would get no request to open it for. Where that fails, the
 * device's sentence stays, and each request tries again. */
static void move(struct loader *l, struct model_slot *p)
{
	struct served *m = &l->all->list[p - l->model_slot];
	jit_error err = { 0 };

	if (p->state == MODEL_LOADED && p->held) {
		wait_a_moment(l);
		return;
	}
	if (p->state == MODEL_LOADED)
		close_model(l, p);
	if (l->ends || open_model(l, m, &err))
		return;
	p->failed = !p->given_up;
	if (p->failed)
		fprintf(stderr, "jitserve: %s: %s\n", m->name, err.message);
}

static void *run(void *user)
{
	struct loader *l = user;
	struct model_slot *moving;

	system_thread_began();
	pthread_mutex_lock(&l->lock);
	while (!l->ends) {
		settle_some(l);
		if (l->first)
			load(l, l->first->model);
		else if ((moving = find_moving(l)))
			move(l, moving);
		else
			see_who_leaves(l);
	}
	refuse_some(l, NULL, 503, "The server is stopping.");
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- lists */

size_t loader_max(const struct loader *l) { return l->o.max; }

void loader_status(struct loader *l, const struct served *m, struct model_status *out)
{
	struct model_slot *p = loader_slot(l, m);

	pthread_mutex_lock(&l->lock);
	const bool leaves = p->state == MODEL_LOADED && p->away;
	*out = (struct model_status){
		.state = leaves ? MODEL_CLOSING : p->state,
		.expires = p->held ? p->keep : expires(p, system_seconds()),
		.failed = p->failed,
		.bytes = p->state == MODEL_AWAY ? 0 : p->bytes,
		.loads = p->loads,
		.info = p->info,
		.context = p->context,
		.device = p->device,
		.moves = p->moves || (p->state == MODEL_LOADING && p->failure.code)
	};
	memcpy(out->lost, m->lost, sizeof out->lost);
	if (p->counts) {
		batcher_get_numbers(m->batcher, &out->numbers);
		sight_get_numbers(m->sight, &out->seen);
	}
	out->failure = p->failure;
	if (p->state == MODEL_LOADED) {
		out->parallel = batcher_parallel(m->batcher);
		batcher_failed(m->batcher, &out->failure);
	}
	batcher_numbers_add(&out->numbers, &p->before);
	sight_numbers_add(&out->seen, &p->seen_before);
	pthread_mutex_unlock(&l->lock);
}

/* ---- opening and closing */

struct loader *loader_open(struct models *all, const struct loader_options *o, struct error *err)
{
	struct loader *l = calloc(1, sizeof *l);

	if (l) {
		l->all = all;
		l->o = *o;
		l->last = &l->first;
		if (pthread_mutex_init(&l->lock, NULL) == 0) {
			if (pthread_cond_init(&l->changed, NULL) == 0)
				return l;
			pthread_mutex_destroy(&l->lock);
		}
	}
	free(l);
	error_set(err, ERROR_MEMORY, "no memory for the loader of models");
	return NULL;
}

bool loader_first(struct loader *l, struct served *m, jit_error *err)
{
	pthread_mutex_lock(&l->lock);
	bool ok = open_model(l, m, err);
	pthread_mutex_unlock(&l->lock);
	return ok;
}

bool loader_start(struct loader *l, struct error *err)
{
	int why = pthread_create(&l->thread, NULL, run, l);

	l->started = why == 0;
	return l->started || error_set(err, ERROR_IO, "the loader's thread cannot be started: %s", strerror(why));
}

void loader_stop(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	bool joins = l->started && !l->ends;
	l->ends = true;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (joins)
		pthread_join(l->thread, NULL);
	for (size_t i = 0; i < l->all->n; i++)
		if (l->model_slot[i].state == MODEL_LOADED)
			batcher_stop(l->all->list[i].batcher);
}

void loader_close(struct loader *l)
{
	if (!l)
		return;
	loader_stop(l);
	for (size_t i = 0; i < l->all->n; i++)
		if (l->model_slot[i].state == MODEL_LOADED)
			l->o.close(&l->all->list[i]);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
