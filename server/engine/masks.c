/* server/engine/masks.c - threads that find what grammars allow next. */
#include "server/engine/masks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/host/system.h"
#include "runtime/session/session.h"

/* CHEAP: steps (grammar/machine/effort.h), a few milliseconds. NICE: beside a pass on all cores, a thread of this
 * niceness has a tenth of one. */
enum { THREADS = 4, OF_COSTLY = 2, CHEAP = 300000, NICE = 10 };

enum mask_state { MASK_WAITS, MASK_AT_WORK, MASK_FOUND };

struct mask_work {
	struct mask_work *next; /* of those that wait */
	struct session_grammar *grammar;
	struct masks_of_all *all;
	uint64_t cost; /* of its last mask */
	enum mask_state state;
	atomic_bool dropped;
};

struct masks_of_all {
	void (*found)(void *user);
	void *user;
	pthread_mutex_t lock; /* of what follows, and of the state of work */
	pthread_cond_t more, idle;
	struct mask_work *first, **last;
	unsigned threads, free; /* free: of them, those that wait for work */
	unsigned waiting;       /* work that no thread has taken */
	unsigned costly;        /* at work on what costs much */
	bool ends;
	atomic_bool stops;
};

static bool is_costly(const struct mask_work *w) { return w->cost > CHEAP; }

static bool is_unwanted(void *user)
{
	struct mask_work *w = user;

	return atomic_load(&w->dropped) || atomic_load(&w->all->stops);
}

static void work_close(struct mask_work *w)
{
	session_grammar_close(w->grammar);
	free(w);
}

/* The cheapest, of equals the one that came first. NULL: nothing waits that may be begun. */
static struct mask_work *take(struct masks_of_all *all)
{
	struct mask_work **best = NULL;

	for (struct mask_work **at = &all->first; *at; at = &(*at)->next)
		if ((!is_costly(*at) || all->costly < OF_COSTLY) && (!best || (*at)->cost < (*best)->cost))
			best = at;
	if (!best)
		return NULL;
	struct mask_work *w = *best;
	*best = w->next;
	if (all->last == &w->next)
		all->last = best;
	w->state = MASK_AT_WORK;
	all->waiting--;
	all->costly += is_costly(w);
	return w;
}

/* Under the lock, before and behind it. */
static void find(struct masks_of_all *all, struct mask_work *w)
{
	pthread_mutex_unlock(&all->lock);
	session_grammar_find(w->grammar, is_unwanted, w);
	pthread_mutex_lock(&all->lock);
	all->costly -= is_costly(w);
	if (all->first && is_costly(w))
		pthread_cond_signal(&all->more);
	w->state = MASK_FOUND;
	if (atomic_load(&w->dropped))
		work_close(w);
	else if (all->found)
		all->found(all->user);
}

static void *run(void *user)
{
	struct masks_of_all *all = user;
	struct mask_work *w;

	system_thread_began();
	system_thread_set_niceness(NICE);
	pthread_mutex_lock(&all->lock);
	while (!all->ends) {
		if ((w = take(all))) {
			find(all, w);
			continue;
		}
		all->free++;
		pthread_cond_wait(&all->more, &all->lock);
		all->free--;
	}
	all->threads--;
	pthread_cond_signal(&all->idle);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Under the lock. Whether a thread will do one more job. A free thread may have been woken for another one.
 */
static bool has_thread(struct masks_of_all *all)
{
	if (all->free > all->waiting || all->threads == THREADS)
		return true;
	all->threads += system_thread_start(run, all) == 0;
	return all->threads > 0;
}

struct masks_of_all *masks_of_all_open(void (*found)(void *user), void *user)
{
	struct masks_of_all *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->found = found;
	all->user = user;
	all->last = &all->first;
	if (pthread_mutex_init(&all->lock, NULL) == 0) {
		if (pthread_cond_init(&all->more, NULL) == 0) {
			if (pthread_cond_init(&all->idle, NULL) == 0)
				return all;
			pthread_cond_destroy(&all->more);
		}
		pthread_mutex_destroy(&all->lock);
	}
	free(all);
	return NULL;
}

void masks_of_all_close(struct masks_of_all *all)
{
	if (!all)
		return;
	atomic_store(&all->stops, true);
	pthread_mutex_lock(&all->lock);
	all->ends = true;
	pthread_cond_broadcast(&all->more);
	while (all->threads)
		pthread_cond_wait(&all->idle, &all->lock);
	pthread_mutex_unlock(&all->lock);
	pthread_cond_destroy(&all->idle);
	pthread_cond_destroy(&all->more);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

struct mask_work *mask_work_begin(struct masks_of_all *all, jit_session *s)
{
	struct mask_work *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->all = all;
	w->cost = session_grammar_cost(s);
	pthread_mutex_lock(&all->lock);
	const bool can = has_thread(all);
	if (can) {
		w->grammar = session_grammar_lend(s);
		*all->last = w;
		all->last = &w->next;
		all->waiting++;
		pthread_cond_signal(&all->more);
	}
	pthread_mutex_unlock(&all->lock);
	if (!can)
		free(w);
	return can ? w : NULL;
}

bool mask_work_is_short(const struct mask_work *w)
{
	struct masks_of_all *all = w->all;

	pthread_mutex_lock(&all->lock);
	const bool is = w->state != MASK_FOUND && !is_costly(w);
	pthread_mutex_unlock(&all->lock);
	return is;
}

bool mask_work_end(struct mask_work *w, jit_session *s)
{
	struct masks_of_all *all = w->all;

	pthread_mutex_lock(&all->lock);
	const bool found = w->state == MASK_FOUND;
	pthread_mutex_unlock(&all->lock);
	if (!found)
		return false;
	session_grammar_give(s, w->grammar);
	free(w);
	return true;
}

/* One that waits is taken out of the row; else the thread that is at work closes it. */
void mask_work_drop(struct mask_work *w)
{
	struct masks_of_all *all = w->all;

	pthread_mutex_lock(&all->lock);
	bool closes = w->state == MASK_FOUND;
	for (struct mask_work **at = &all->first; *at && w->state == MASK_WAITS; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			if (all->last == &w->next)
				all->last = at;
			all->waiting--;
			closes = true;
			break;
		}
	if (!closes)
		atomic_store(&w->dropped, true);
	pthread_mutex_unlock(&all->lock);
	if (closes)
		work_close(w);
}
