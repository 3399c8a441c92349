/* runtime/dev_sim.h - an RDNA card that is not there: the device that runs plans in the simulator.
 *
 * Owns: what a simulated card can be told and asked, and how large it is. Results are those of every other device, bit for bit; time means nothing here, counts do.
 */
#ifndef RUNTIME_DEV_SIM_H
#define RUNTIME_DEV_SIM_H

#include "runtime/dev.h"
#include "sim/sim.h"

enum dev_launch { LAUNCH_TOKEN, LAUNCH_LAYER, LAUNCH_OP };       /* phases of one launch: all of a pass; of the embedding, a layer, the logits; one */

/* What sim_counters.tally is of: activations, norms, biases and the launch's own data; weights; the KV cache. */
enum { DEV_SIM_OTHER, DEV_SIM_WEIGHTS, DEV_SIM_CACHE };

/* A small card, for there are few waves to simulate: most programs take six or eight workgroups. */
enum { DEV_SIM_UNITS = 2, DEV_SIM_MAX_UNITS = 256, DEV_SIM_MAX_WORKGROUPS = 1024 };

/* Told of every launch what it counted, and before a plan's first launch what a phase without units costs: then first == end. */
typedef void (*dev_sim_watch_fn)(void *user, const struct plan *p, const struct sim_kernel *kernel, size_t first, size_t end, const struct sim_counters *c);

struct dev_sim_options {
	enum dev_launch launch;
	uint32_t units;                         /* compute units; 0: DEV_SIM_UNITS */
	uint32_t workgroups;                    /* of a launch; 0: as many as live at once on these units; a program for which they are more than that is refused */
	enum sim_memory_mode memory;
	uint64_t seed;
	bool races;
	dev_sim_watch_fn watch; void *user;     /* NULL: nobody watches */
};

struct dev_sim_counters {
	struct sim_counters sim;
	uint64_t passes, launches, phases, barriers;     /* barriers: of all workgroups, inside launches */
};

struct device *dev_sim_open(struct registry *r, const struct target *t, const struct dev_sim_options *o, struct error *err);    /* borrows the registry */
void dev_sim_set(struct device *d, const struct dev_sim_options *o);       /* before the first plan is prepared */
const struct dev_sim_counters *dev_sim_count(const struct device *d);

#endif
