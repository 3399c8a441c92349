/* server/readers.h - who may still look at what was taken away.
 *
 * Owns: turns. A reader is in the turn in which it came, from its beginning to its end; a turn ends when all who came
 * in the one before have gone. So what was taken away in a turn is seen by nobody two turns later.
 */
#ifndef SERVER_READERS_H
#define SERVER_READERS_H

#include <stdatomic.h>

struct readers {
	atomic_uint turn;
	atomic_uint in[2]; /* of the turn's parity */
};

/* Which turn it is, for readers_leave(). */
static inline unsigned readers_enter(struct readers *r)
{
	for (;;) {
		const unsigned turn = atomic_load(&r->turn) & 1;
		atomic_fetch_add(&r->in[turn], 1);
		if ((atomic_load(&r->turn) & 1) == turn)
			return turn;
		atomic_fetch_sub(&r->in[turn], 1); /* it has just ended */
	}
}

static inline void readers_leave(struct readers *r, unsigned turn) { atomic_fetch_sub(&r->in[turn], 1); }

/* Ends the turn, if that can be; by one thread at a time. The turn that it is then. */
static inline unsigned readers_turn(struct readers *r)
{
	const unsigned turn = atomic_load(&r->turn);

	if (atomic_load(&r->in[(turn + 1) & 1]) == 0)
		atomic_store(&r->turn, turn + 1);
	return atomic_load(&r->turn);
}

#endif
