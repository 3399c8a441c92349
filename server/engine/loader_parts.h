/* server/engine/loader_parts.h - what the parts of the loader share.
 *
 *   loader.c   the thread that opens and closes models, and their lists
 *   loader_events.c   who hears of it
 *   leases.c   requests that hold a model or wait for one, and what they ask of it
 */
#ifndef SERVER_LOADER_PARTS_H
#define SERVER_LOADER_PARTS_H

#include <pthread.h>

#include "server/engine/loader.h"

/* What the loader knows of a model; by its number. */
struct model_slot {
	enum model_state state;
	bool failed, leaving; /* leaving: it takes no new requests */
	bool away;            /* it was asked to leave, and does when nobody holds it */
	bool given_up;        /* LOADING: it was asked to leave */
	bool moves;           /* its device has failed: it leaves, and is opened again at once */
	double told;          /* LOADING: when listeners heard last how far it is */
	double keep, idle;    /* as loader_options.keep; when it was held last, of system_seconds() */
	unsigned held;
	uint64_t used;  /* when, in `clock` */
	uint64_t bytes; /* that it takes, or took the last time; 0: it was never open */
	bool counts;    /* its batcher has numbers beyond `before` */
	uint64_t loads;
	jit_model_info info;
	int context;
	const char *device;            /* of the last time it was open */
	struct batcher_numbers before; /* of the times before this one */
	struct sight_numbers seen_before;
	jit_error failure; /* of its device, when it was open last; code JIT_OK: there was none */
};

struct loader {
	struct models *all;
	struct loader_options o;
	pthread_mutex_t lock; /* of all that follows; no model is opened or closed under it */
	pthread_cond_t changed;
	pthread_t thread;
	bool started, ends;
	uint64_t clock;
	struct lease *first, **last; /* waiting */
	struct model_slot model_slot[MODELS_MAX];
};

static inline struct model_slot *loader_slot(struct loader *l, const struct served *m)
{
	return &l->model_slot[m - l->all->list];
}

/* ---- loader_events.c: listeners to model_events.h are told */

/* What a model's state is now; failed: it could not be opened. */
void loader_tell(const struct served *m, const struct model_slot *p, bool failed);

/* ---- leases.c: under the lock */

void lease_unlink(struct loader *l, struct lease *e);
void lease_hold(struct loader *l, struct model_slot *p);

#endif
