/* runtime/host/pool.h - worker threads that do work in stages.
 *
 * Owns: the threads, and which worker does which share. The calling thread is worker 0. Each worker has a run of
 * neighbouring shares of a stage and takes them from first to last; a worker that has none left takes the last share
 * of another. A stage ends when its shares are done, not when every worker has come. So a worker whose core was taken
 * away delays the others by the one share that it holds, and with fewer cores than threads the running threads do the
 * work.
 */
#ifndef RUNTIME_POOL_H
#define RUNTIME_POOL_H

#include "base/error.h"

#include <stdint.h>

struct pool;

enum { POOL_MAX_THREADS = 1024, POOL_MAX_SHARES = 30000 };

struct pool_work {
	uint32_t stages;
	/* By one worker, when everything before the stage is done: how many shares it has, at most POOL_MAX_SHARES; 0:
	 * it was so little that it is done already. */
	uint32_t (*open)(void *user, int worker, uint32_t stage);
	/* By one worker, each share once. What earlier stages wrote is seen. */
	void (*share)(void *user, int worker, uint32_t stage, uint32_t share);
	void *user;
};

typedef void (*pool_fn)(void *user, int worker, int workers);

/* Where the run of worker i begins, of n things that are shared out; i == workers: where the last one ends. Runs are
 * alike, or the first ones longer by one. */
static inline uint32_t pool_run_begin(uint32_t n, uint32_t i, uint32_t workers)
{
	uint32_t longer = n % workers;
	return i * (n / workers) + (i < longer ? i : longer);
}

struct pool *pool_open(int threads, struct error *err);
void pool_close(struct pool *p);
int pool_threads(const struct pool *p);
/* Returns when all stages are done. Not re-entrant. */
void pool_work(struct pool *p, const struct pool_work *w);
/* Calls fn as often as there are threads, each by a worker that is free; returns when all calls have. worker: the
 * number of the one that calls. */
void pool_run(struct pool *p, pool_fn fn, void *user);
/* Workers but the caller, whose thread is not the pool's, have that niceness (system.h) from their next work on. While
 * nothing runs. */
void pool_set_niceness(struct pool *p, int niceness);
/* How often workers, the caller too, have gone to sleep for want of work. While nothing runs. */
uint64_t pool_sleeps(const struct pool *p);

#endif
