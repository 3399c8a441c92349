#include "runtime/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Spins before sleeping: about 20 to 60 microseconds of `pause`, longer than any phase skew on free cores, short against a time slice. */
enum { SPINS = 1500, LINE = 64 };

/* A word that threads wait on, alone on its cache line. */
struct word {
	_Alignas(LINE) _Atomic uint32_t value;
	_Atomic uint32_t sleepers;
};

struct worker { struct pool *pool; int index; pthread_t thread; };

struct pool {
	struct word start, arrive, phase;
	_Atomic uint32_t stop;
	int threads;
	pool_fn fn; void *user;
	struct worker *worker;
};

static void word_wait(struct word *w, uint32_t old)
{
	for (int i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&w->value, memory_order_acquire) != old)
			return;
		__builtin_ia32_pause();
	}
	atomic_fetch_add(&w->sleepers, 1);
	while (atomic_load(&w->value) == old)
		syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
	atomic_fetch_sub(&w->sleepers, 1);
}

/* Sequentially consistent on purpose: the sleeper counts itself before it looks at value, we change value before we look at the count. */
static void word_set(struct word *w, uint32_t value)
{
	atomic_store(&w->value, value);
	if (atomic_load(&w->sleepers))
		syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void pool_barrier(struct pool *p, int worker)
{
	(void)worker;
	if (p->threads == 1)
		return;
	uint32_t phase = atomic_load_explicit(&p->phase.value, memory_order_relaxed);
	if (atomic_fetch_add(&p->arrive.value, 1) + 1 == (uint32_t)p->threads) {
		atomic_store_explicit(&p->arrive.value, 0, memory_order_relaxed);
		word_set(&p->phase, phase + 1);
	} else {
		word_wait(&p->phase, phase);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;

	for (uint32_t seen = 0;; seen++) {
		word_wait(&p->start, seen);
		if (atomic_load(&p->stop))
			return NULL;
		p->fn(p->user, w->index, p->threads);
		pool_barrier(p, w->index);
	}
}

void pool_run(struct pool *p, pool_fn fn, void *user)
{
	p->fn = fn;
	p->user = user;
	if (p->threads > 1)
		word_set(&p->start, atomic_load_explicit(&p->start.value, memory_order_relaxed) + 1);
	fn(user, 0, p->threads);
	pool_barrier(p, 0);
}

int pool_threads(const struct pool *p) { return p->threads; }

struct pool *pool_open(int threads, struct error *err)
{
	struct pool *p = NULL;

	if (threads < 1 || threads > 1024) {
		error_set(err, ERROR_ARGUMENT, "threads: %d is not in 1..1024", threads);
		return NULL;
	}
	if (posix_memalign((void **)&p, LINE, sizeof *p) != 0) {
		error_set(err, ERROR_MEMORY, "no memory for a pool of %d threads", threads);
		return NULL;
	}
	memset(p, 0, sizeof *p);
	p->worker = calloc((size_t)threads, sizeof *p->worker);
	p->threads = 1;
	for (int i = 1; p->worker && i < threads; i++) {
		p->worker[i] = (struct worker){ .pool = p, .index = i };
		int rc = pthread_create(&p->worker[i].thread, NULL, worker_main, &p->worker[i]);
		if (rc != 0) {
			error_set(err, ERROR_MEMORY, "thread %d of %d could not be started: %s", i + 1, threads, strerror(rc));
			pool_close(p);
			return NULL;
		}
		p->threads = i + 1;
	}
	if (!p->worker) {
		error_set(err, ERROR_MEMORY, "no memory for a pool of %d threads", threads);
		free(p);
		return NULL;
	}
	return p;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	atomic_store(&p->stop, 1);
	if (p->threads > 1)
		word_set(&p->start, atomic_load(&p->start.value) + 1);
	for (int i = 1; i < p->threads; i++)
		pthread_join(p->worker[i].thread, NULL);
	free(p->worker);
	free(p);
}
