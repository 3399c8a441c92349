#include "runtime/host/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/system.h"
#include "runtime/host/wait.h"

enum { LINE = 64 };

struct worker {
	_Alignas(LINE) struct pool *pool;
	int index, niceness;
	pthread_t thread;
	struct wait_habit start, stage; /* waits for work, and within it */
	_Alignas(LINE) _Atomic uint64_t run;
};

/* The stage that is open: one word, so that who looks for a share knows at once of which stage it is, however late it
 * comes. */
union opened {
	_Atomic uint64_t all; /* number << 32 | shares */
	_Atomic uint32_t
		half[2]; /* half[1]: the number, to wait on: of the stage from 1 on, 0 before the first is open */
};

/* What is left of a worker's run, in one word of its own: number << 32 | first << 16 | end. All is left while the
 * number is that of a stage before. */
enum { FIRST_SHIFT = 16, SHARE_MASK = (1 << FIRST_SHIFT) - 1 };
static_assert((int)POOL_MAX_SHARES <= (int)SHARE_MASK, "shares are numbered in 16 bits");

enum { CLOSED = 1 << 30 };

struct pool {
	/* One line: a worker that finishes and waits fetches one. */
	_Alignas(LINE) union opened opened;
	_Atomic uint32_t left; /* shares not done */
	_Atomic uint32_t stage_sleepers;
	/* Workers that look at this work; CLOSED: none may come any more. */
	_Alignas(LINE) _Atomic uint32_t inside;
	_Atomic uint32_t inside_sleepers;
	_Alignas(LINE) _Atomic uint32_t start;
	_Atomic uint32_t start_sleepers, stop;
	int threads;
	_Atomic int niceness; /* of workers, from their next work on */
	const struct pool_work *work;
	struct worker *worker;
};

/* By the worker that did the last share of the stage before: opens this one, or the next that has shares. */
static void open_stage(struct pool *p, struct worker *w, uint32_t stage)
{
	uint32_t shares = 0;

	while (stage < p->work->stages && (shares = p->work->open(p->work->user, w->index, stage)) == 0)
		stage++;
	assert(shares <= POOL_MAX_SHARES);
	atomic_store_explicit(&p->left, shares, memory_order_relaxed);
	atomic_store(&p->opened.all, (uint64_t)(stage + 1) << 32 | shares);
	wait_wake(&p->opened.half[1], &p->stage_sleepers);
}

/* A share that a worker looks for, of `shares` in the stage `number`. */
struct wanted {
	uint32_t number, shares, share;
};

/* The first that is left of worker i's run, or the last. */
static bool take(struct pool *p, int i, bool first, struct wanted *s)
{
	_Atomic uint64_t *run = &p->worker[i].run;
	uint64_t old = atomic_load_explicit(run, memory_order_relaxed), rest;

	do {
		uint32_t number = (uint32_t)(old >> 32), begin, end;
		if (number > s->number) /* that stage is over */
			return false;
		begin = number == s->number ? old >> FIRST_SHIFT & SHARE_MASK
		                            : pool_run_begin(s->shares, (uint32_t)i, (uint32_t)p->threads);
		end = number == s->number ? old & SHARE_MASK
		                          : pool_run_begin(s->shares, (uint32_t)i + 1, (uint32_t)p->threads);
		if (begin >= end)
			return false;
		s->share = first ? begin : end - 1;
		rest = (uint64_t)s->number << 32 | (uint64_t)(begin + first) << FIRST_SHIFT | (end - !first);
	} while (!atomic_compare_exchange_weak(run, &old, rest));
	return true;
}

static bool take_of_others(struct pool *p, const struct worker *w, struct wanted *s)
{
	for (int i = 1; i < p->threads; i++)
		if (take(p, (w->index + i) % p->threads, false, s))
			return true;
	return false;
}

/* Works until there are no more stages. */
static void work_along(struct pool *p, struct worker *w)
{
	uint32_t done = 0; /* of this stage, not yet taken off `left` */

	for (;;) {
		uint64_t opened = atomic_load(&p->opened.all);
		struct wanted s = { .number = (uint32_t)(opened >> 32), .shares = (uint32_t)opened };
		if (s.number > p->work->stages)
			return;
		bool found = take(p, w->index, true, &s);
		if (!found && done) { /* before a look at the others, which the last one need not take */
			bool last = atomic_fetch_sub(&p->left, done) == done;
			done = 0;
			if (last) {
				open_stage(p, w, s.number);
				continue;
			}
		}
		if (found || take_of_others(p, w, &s)) {
			p->work->share(p->work->user, w->index, s.number - 1, s.share);
			done++;
		} else {
			wait_while(&p->opened.half[1], &p->stage_sleepers, s.number, &w->stage);
		}
	}
}

/* False: the work is over. */
static bool enter(struct pool *p)
{
	uint32_t n = atomic_load(&p->inside);

	while (!(n & CLOSED))
		if (atomic_compare_exchange_weak(&p->inside, &n, n + 1))
			return true;
	return false;
}

static void leave(struct pool *p)
{
	if (atomic_fetch_sub(&p->inside, 1) == (CLOSED | 1))
		wait_wake(&p->inside, &p->inside_sleepers);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;

	system_thread_began();
	for (uint32_t seen = 0;;) {
		wait_while(&p->start, &p->start_sleepers, seen, &w->start);
		seen = atomic_load(&p->start);
		if (atomic_load(&p->stop))
			return NULL;
		const int niceness = atomic_load(&p->niceness);
		if (w->niceness != niceness)
			system_thread_set_niceness(w->niceness = niceness);
		if (enter(p)) {
			work_along(p, w);
			leave(p);
		}
	}
}

/* Nobody may come any more, and who is inside has nothing left to do but to leave. */
static void close_work(struct pool *p, struct worker *w)
{
	uint32_t n = atomic_fetch_or(&p->inside, CLOSED) | CLOSED;

	while (n != CLOSED) {
		wait_while(&p->inside, &p->inside_sleepers, n, &w->start);
		n = atomic_load(&p->inside);
	}
}

void pool_work(struct pool *p, const struct pool_work *work)
{
	struct worker *w = &p->worker[0];

	p->work = work;
	atomic_store(&p->opened.all, 0);
	for (int i = 0; i < p->threads; i++)
		atomic_store_explicit(&p->worker[i].run, 0, memory_order_relaxed);
	atomic_store(&p->inside, 0);
	atomic_fetch_add(&p->start, 1); /* before the first stage opens: waking takes a while */
	wait_wake(&p->start, &p->start_sleepers);
	open_stage(p, w, 0);
	work_along(p, w);
	close_work(p, w);
}

/* ---- one function on all workers */

struct call {
	pool_fn fn;
	void *user;
	int workers;
};

static uint32_t call_open(void *user, int worker, uint32_t stage)
{
	(void)worker, (void)stage;
	return (uint32_t)((struct call *)user)->workers;
}

static void call_share(void *user, int worker, uint32_t stage, uint32_t share)
{
	struct call *c = user;
	(void)stage, (void)share;
	c->fn(c->user, worker, c->workers);
}

void pool_run(struct pool *p, pool_fn fn, void *user)
{
	struct call c = { fn, user, p->threads };
	pool_work(p, &(struct pool_work){ .stages = 1, .open = call_open, .share = call_share, .user = &c });
}

/* ---- threads */

int pool_threads(const struct pool *p) { return p->threads; }

void pool_set_niceness(struct pool *p, int niceness) { atomic_store(&p->niceness, niceness); }

uint64_t pool_sleeps(const struct pool *p)
{
	uint64_t n = 0;
	for (int i = 0; i < p->threads; i++)
		n += p->worker[i].stage.sleeps + p->worker[i].start.sleeps;
	return n;
}

struct pool *pool_open(int threads, struct error *err)
{
	struct pool *p = NULL;

	if (threads < 1 || threads > POOL_MAX_THREADS) {
		error_set(err, ERROR_ARGUMENT, "threads: %d is not in 1..%d", threads, POOL_MAX_THREADS);
		return NULL;
	}
	if (posix_memalign((void **)&p, LINE, sizeof *p) != 0) {
		error_set(err, ERROR_MEMORY, "no memory for a pool of %d threads", threads);
		return NULL;
	}
	memset(p, 0, sizeof *p);
	if (posix_memalign((void **)&p->worker, LINE, (size_t)threads * sizeof *p->worker) != 0) {
		error_set(err, ERROR_MEMORY, "no memory for a pool of %d threads", threads);
		free(p);
		return NULL;
	}
	memset(p->worker, 0, (size_t)threads * sizeof *p->worker);
	p->threads = 1;
	p->inside = CLOSED;
	for (int i = 1; i < threads; i++) {
		p->worker[i] = (struct worker){ .pool = p, .index = i };
		int rc = pthread_create(&p->worker[i].thread, NULL, worker_main, &p->worker[i]);
		if (rc != 0) {
			error_set(err, ERROR_MEMORY, "thread %d of %d could not be started: %s", i + 1, threads,
			          strerror(rc));
			pool_close(p);
			return NULL;
		}
		p->threads = i + 1;
	}
	return p;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	atomic_store(&p->stop, 1);
	atomic_fetch_add(&p->start, 1);
	wait_wake(&p->start, &p->start_sleepers);
	for (int i = 1; i < p->threads; i++)
		pthread_join(p->worker[i].thread, NULL);
	free(p->worker);
	free(p);
}
