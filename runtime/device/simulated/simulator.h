/* runtime/device/simulated/simulator.h - a simulated RDNA card as a device: what it can be told and asked beyond
 * device.h.
 *
 * Owns: how large the card is, and what is counted. Its results equal those of every other device, bit for bit. Its
 * times mean nothing; its counts do.
 */
#ifndef RUNTIME_SIMULATOR_H
#define RUNTIME_SIMULATOR_H

#include "runtime/device/card.h"
#include "sim/sim.h"

/* What sim_counters.tally is of: activations, norms, biases and the launch's own data; weights; the KV cache. */
enum { SIMULATOR_OTHER, SIMULATOR_WEIGHTS, SIMULATOR_CACHE };

/* A small card, for there are few waves to simulate: most programs take six or eight workgroups. */
enum { SIMULATOR_UNITS = 2 };

/* Called after every launch with its counters. It is also called once before a plan's first launch, with those of a
 * command without units; then first == end. */
typedef void (*simulator_watch_fn)(void *user, const struct plan *p, const struct sim_kernel *kernel, size_t first,
                                   size_t end, const struct sim_counters *c);

/* Called for a plan before its units are distributed. Returns the seconds that an op is assumed to take, by which
 * launches are cut. */
typedef double (*simulator_predict_fn)(void *user, const struct plan *p, size_t op);

struct simulator_options {
	enum stream_launch launch;
	uint32_t units;      /* compute units; 0: SIMULATOR_UNITS */
	uint32_t workgroups; /* of a launch; 0: as many as live at once on these units; a program for which they are
	                        more than that is refused */
	enum sim_memory_mode memory;
	uint64_t seed;
	bool races;
	simulator_watch_fn watch;     /* NULL: nobody watches */
	simulator_predict_fn predict; /* NULL: no launch is long */
	void *user;
};

struct simulator_counters {
	struct sim_counters sim;
	struct card_counters card;
};

/* Before the first plan is prepared. False: not a simulated card's stream. */
bool simulator_set(struct stream *s, const struct simulator_options *o);
/* NULL: not a simulated card's stream. */
const struct simulator_counters *simulator_count(const struct stream *s);

#endif
