/* server/engine/batcher_parts.h - the inside of a batcher, shared by batcher.c and batcher_masks.c. */
#ifndef SERVER_BATCHER_PARTS_H
#define SERVER_BATCHER_PARTS_H

#include <pthread.h>

#include "server/engine/batcher.h"
#include "server/engine/bits.h"
#include "server/engine/choice.h"
#include "server/engine/masks.h"
#include "server/engine/slots.h"

struct batcher {
	struct batcher_options o;
	jit_batch *batch; /* NULL: the model encodes texts, and all of its work is done in a session alone */
	int context;
	pthread_mutex_t lock; /* of what follows, up to numbers */
	pthread_cond_t more;
	pthread_t thread;
	struct choice *first, **last; /* waiting */
	bool ends, called;            /* called: something came for the thread while it waited for masks */
	struct batcher_numbers numbers;
	jit_error failure; /* of the device, for good; code JIT_OK: there was none */
	/* those at work and those parked, twice as many as there are places: the thread alone changes them */
	struct choice **running;
	unsigned n_running;
	/* the thread's own */
	jit_session **ready;
	bool dead; /* the device computes no more */
	struct slots *slots;
	struct masks_of_all *masks;
	jit_session *alone;    /* for embeddings; NULL: none was asked for */
	uint64_t served_texts; /* texts that were begun in it */
	struct bits *bits;     /* NULL: no answer is computed again */
};

/* Threads that wake this batcher's. NULL: no memory. */
struct masks_of_all *batcher_masks(struct batcher *e);
/* Between passes: chooses tokens whose masks were found meanwhile. */
void batcher_collect(struct batcher *e);

#endif
