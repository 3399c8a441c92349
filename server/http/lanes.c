/* server/http/lanes.c - see lanes.h. */
#include "server/http/lanes.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/host/system.h"

/* NICE: what takes long has a quarter of a core beside passes that have all of them. */
enum { QUICK = 4, LONG = 2, MAX_OF_LANE = 4, NICE = 5 };

struct row {
	struct lanes *all;
	struct lane_work *first, **last;
	pthread_cond_t more;
	unsigned threads, max, free; /* free: of them, those that wait for work */
	unsigned waiting;            /* work that no thread has taken */
	unsigned n_at_work;
	uint64_t at_work[MAX_OF_LANE]; /* whose */
};

struct lanes {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct row row[LANES];
	bool ends;
};

static bool is_at_work(const struct row *r, uint64_t key)
{
	for (unsigned i = 0; i < r->n_at_work; i++)
		if (key && r->at_work[i] == key)
			return true;
	return false;
}

static struct lane_work *take(struct row *r)
{
	struct lane_work **at = &r->first;

	while (*at && is_at_work(r, (*at)->key))
		at = &(*at)->next;
	if (!*at)
		at = &r->first;
	struct lane_work *w = *at;
	if (!w)
		return NULL;
	*at = w->next;
	if (r->last == &w->next)
		r->last = at;
	r->at_work[r->n_at_work++] = w->key;
	r->waiting--;
	return w;
}

static void leave(struct row *r, uint64_t key)
{
	unsigned i = 0;

	while (r->at_work[i] != key)
		i++;
	r->at_work[i] = r->at_work[--r->n_at_work];
}

static void *run(void *user)
{
	struct row *r = user;
	struct lanes *all = r->all;
	struct lane_work *w;

	system_thread_began();
	if (r == &all->row[LANE_LONG])
		system_thread_set_niceness(NICE);
	pthread_mutex_lock(&all->lock);
	while (!all->ends || r->first) {
		if (!(w = take(r))) {
			r->free++;
			pthread_cond_wait(&r->more, &all->lock);
			r->free--;
			continue;
		}
		const uint64_t key = w->key;
		pthread_mutex_unlock(&all->lock);
		w->run(w);
		pthread_mutex_lock(&all->lock);
		leave(r, key);
	}
	r->threads--;
	pthread_cond_signal(&all->idle);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Under the lock. Whether a thread will do one more job. A free thread may have been woken for another one.
 */
static bool has_thread(struct row *r)
{
	if (r->free > r->waiting || r->threads == r->max)
		return true;
	r->threads += system_thread_start(run, r) == 0;
	return r->threads > 0;
}

static bool open_rows(struct lanes *all)
{
	int n = 0;

	for (; n < LANES; n++) {
		struct row *r = &all->row[n];
		r->all = all;
		r->last = &r->first;
		r->max = n == LANE_LONG ? LONG : QUICK;
		if (pthread_cond_init(&r->more, NULL))
			break;
	}
	if (n == LANES)
		return true;
	while (n-- > 0)
		pthread_cond_destroy(&all->row[n].more);
	return false;
}

struct lanes *lanes_open(struct error *err)
{
	struct lanes *all = calloc(1, sizeof *all);

	if (all && pthread_mutex_init(&all->lock, NULL) == 0) {
		if (pthread_cond_init(&all->idle, NULL) == 0) {
			if (open_rows(all))
				return all;
			pthread_cond_destroy(&all->idle);
		}
		pthread_mutex_destroy(&all->lock);
	}
	free(all);
	error_set(err, ERROR_MEMORY, "no memory for the threads that read requests");
	return NULL;
}

void lanes_finish(struct lanes *all)
{
	pthread_mutex_lock(&all->lock);
	all->ends = true;
	for (int i = 0; i < LANES; i++) {
		pthread_cond_broadcast(&all->row[i].more);
		while (all->row[i].threads)
			pthread_cond_wait(&all->idle, &all->lock);
	}
	pthread_mutex_unlock(&all->lock);
}

void lanes_close(struct lanes *all)
{
	if (!all)
		return;
	lanes_finish(all);
	for (int i = 0; i < LANES; i++)
		pthread_cond_destroy(&all->row[i].more);
	pthread_cond_destroy(&all->idle);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

void lanes_put(struct lanes *all, enum lane lane, struct lane_work *w)
{
	struct row *r = &all->row[lane];

	pthread_mutex_lock(&all->lock);
	const bool can = !all->ends && has_thread(r);
	if (can) {
		w->next = NULL;
		*r->last = w;
		r->last = &w->next;
		r->waiting++;
		pthread_cond_signal(&r->more);
	}
	pthread_mutex_unlock(&all->lock);
	if (!can)
		w->run(w);
}
