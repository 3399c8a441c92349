/* runtime/pool.h - worker threads that run one region at a time, with a barrier inside it.
 *
 * Owns: threads, their sleeping and waking. The calling thread is worker 0. Waiting spins for a bounded time and then sleeps in the
 * kernel, so that with fewer free cores than threads the speed falls in proportion and does not collapse.
 */
#ifndef RUNTIME_POOL_H
#define RUNTIME_POOL_H

#include "base/error.h"

struct pool;
typedef void (*pool_fn)(void *user, int worker, int workers);

struct pool *pool_open(int threads, struct error *err);
void pool_close(struct pool *p);
int pool_threads(const struct pool *p);
/* Runs fn on every worker; returns when all are done. Not re-entrant. */
void pool_run(struct pool *p, pool_fn fn, void *user);
/* Inside fn: waits until every worker of the pool has come here. What was written before is seen after. */
void pool_barrier(struct pool *p, int worker);

#endif
