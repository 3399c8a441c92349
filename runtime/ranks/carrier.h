/* runtime/ranks/carrier.h - how the processes that compute a model together, its ranks, exchange bytes.
 *
 * Owns: the interface, and the table of carriers by which one is found under its name. A carrier moves bytes and
 * computes nothing, so that no bit of a result can depend on it. Ranks are numbered from 0; rank 0 is the process that
 * opened the model. Waits yield the core. When a rank dies, stops or gives up, every call on every other rank fails
 * with the same sentence, which names that rank.
 *
 * All calls of a rank come from one thread at a time, except carrier_alive() and carrier_abort(). Each receive has the
 * size of its send.
 */
#ifndef RUNTIME_CARRIER_H
#define RUNTIME_CARRIER_H

#include <stddef.h>

#include "base/error.h"

enum { CARRIER_RANKS_MAX = 64 };

struct carrier {
	const struct carrier_driver *driver;
	unsigned rank, size;
	unsigned here; /* ranks on this machine, which share its cores and its memory */
	bool own;      /* whether the carrier made the processes of the other ranks, in which nothing else runs */
	bool told_why; /* of other ranks than 0: whether rank 0 says why all ended */
};

struct carrier_driver {
	const char *name; /* "fork:": behind the colon is the number of ranks */
	/* Makes the ranks. Returns in each of them. NULL: err. */
	struct carrier *(*open)(const char *which, struct error *err);
	bool (*send)(struct carrier *c, unsigned to, const void *bytes, size_t n, struct error *err);
	bool (*receive)(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err);
	bool (*gather_begin)(struct carrier *c, void *all, const size_t *begin, struct error *err);
	bool (*gather_wait)(struct carrier *c, struct error *err);
	bool (*broadcast)(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err);
	bool (*alive)(struct carrier *c, struct error *err);
	void (*abort)(struct carrier *c, const char *why);
	void (*close)(struct carrier *c);
};
extern const struct carrier_driver carrier_fork, carrier_mpi, carrier_delay;

/* name: "fork:2", "mpi" in a process that mpirun started, or "delay:200:fork:2", whose messages arrive 200 microseconds
 * later. NULL: err. */
struct carrier *carrier_open(const char *name, struct error *err);
/* Every rank calls it when the others need nothing of it any more. Rank 0 waits a while for the others' processes to
 * end, and ends those that do not. NULL is fine. */
void carrier_close(struct carrier *c);

/* Returns when the bytes may be overwritten. May wait until the other rank receives them. False: err. */
bool carrier_send(struct carrier *c, unsigned to, const void *bytes, size_t n, struct error *err);
bool carrier_receive(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err);
/* The bytes of rank r are all[begin[r]] up to all[begin[r + 1]], in the same places on every rank; its own are there
 * already. Those of the others are there when carrier_gather_wait() returns; nothing else is sent or received, and
 * `all` and `begin` stay as they are, until then. False: err. */
bool carrier_gather_begin(struct carrier *c, void *all, const size_t *begin, struct error *err);
bool carrier_gather_wait(struct carrier *c, struct error *err);
/* From rank `root` to all others. False: err. */
bool carrier_broadcast(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err);
/* Whether all ranks are there; from any thread. False: err. */
bool carrier_alive(struct carrier *c, struct error *err);
/* Ends the work of all ranks, from any thread: `why` is a sentence, behind the number of this rank. The first one
 * counts. */
void carrier_abort(struct carrier *c, const char *why);

/* Seconds without a sign of life after which a rank counts as lost: $JITRUN_RANK_PATIENCE, else 1.5. False: err. */
bool carrier_patience(double *seconds, struct error *err);

#endif
