/* server/request/readers.h - whether requests may still read an entry that was taken away.
 *
 * Owns: epochs, as in epoch-based reclamation. A reader is in the epoch in which it came, from its beginning to its
 * end; an epoch ends when all readers of the one before have gone. So no reader sees an entry two epochs after it was
 * taken away.
 */
#ifndef SERVER_READERS_H
#define SERVER_READERS_H

#include <stdatomic.h>

struct readers {
	atomic_uint epoch;
	atomic_uint in[2]; /* readers in epochs of this parity */
};

/* The parity of the epoch, for readers_leave(). */
static inline unsigned readers_enter(struct readers *r)
{
	for (;;) {
		const unsigned epoch = atomic_load(&r->epoch) & 1;
		atomic_fetch_add(&r->in[epoch], 1);
		if ((atomic_load(&r->epoch) & 1) == epoch)
			return epoch;
		atomic_fetch_sub(&r->in[epoch], 1); /* it has just ended */
	}
}

static inline void readers_leave(struct readers *r, unsigned epoch) { atomic_fetch_sub(&r->in[epoch], 1); }

/* Ends the epoch, if that can be; by one thread at a time. Returns the epoch that it is then. */
static inline unsigned readers_advance(struct readers *r)
{
	const unsigned epoch = atomic_load(&r->epoch);

	if (atomic_load(&r->in[(epoch + 1) & 1]) == 0)
		atomic_store(&r->epoch, epoch + 1);
	return atomic_load(&r->epoch);
}

#endif
