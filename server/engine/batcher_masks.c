/* server/engine/batcher_masks.c - answers that wait for what their grammars allow, while the others are computed. */
#include <time.h>

#include "runtime/host/system.h"
#include "server/engine/batcher_parts.h"

/* PATIENCE: what a pass is held back at most. POLL: clients that have left are looked for as often. */
enum { PATIENCE_MS = 2, POLL_MS = 20 };

static void note_mask(void *user)
{
	struct batcher *e = user;

	pthread_mutex_lock(&e->lock);
	e->called = true;
	pthread_cond_signal(&e->more);
	pthread_mutex_unlock(&e->lock);
}

/* Until one is found, there is a request, or the time is up. */
static void await_mask(struct batcher *e, double until)
{
	const struct timespec t = { .tv_sec = (time_t)until, .tv_nsec = (long)(1e9 * (until - (double)(time_t)until)) };

	pthread_mutex_lock(&e->lock);
	while (!e->called && pthread_cond_timedwait(&e->more, &e->lock, &t) == 0)
		;
	e->called = false;
	pthread_mutex_unlock(&e->lock);
}

/* How many are looked for, and of these such that cost little. */
static unsigned masks_due(const struct batcher *e, unsigned *some)
{
	unsigned n = 0;

	*some = 0;
	for (unsigned i = 0; i < e->n_running; i++)
		if (e->running[i]->mask) {
			n++;
			*some += mask_work_is_short(e->running[i]->mask);
		}
	return n;
}

/* Masks that cost little are waited for, so that their answers are in the next pass; for the others nobody waits who
 * can be computed. */
void batcher_collect(struct batcher *e)
{
	const double now = system_seconds(), until = now + 1e-3 * PATIENCE_MS;
	unsigned some;

	do {
		for (unsigned i = 0; i < e->n_running; i++)
			choice_collect(e->running[i], e->o.model);
		if (masks_due(e, &some) == 0)
			return;
		const bool pending = jit_batch_pending(e->batch) > 0;
		if (!some && pending)
			return;
		await_mask(e, pending ? until : now + 1e-3 * POLL_MS);
	} while (system_seconds() < until);
}

struct masks_of_all *batcher_masks(struct batcher *e) { return masks_of_all_open(note_mask, e); }
