/* runtime/dev.h - what a device is: something that makes a plan's kernels ready and runs the plan.
 *
 * Owns: the interface, and the parallel region that host devices share (dev.c). A device that cannot run a plan says which kernel and why;
 * there is no silent fallback. A device is of one session.
 */
#ifndef RUNTIME_DEV_H
#define RUNTIME_DEV_H

#include "jit/registry.h"
#include "runtime/plan.h"
#include "runtime/pool.h"

struct profile;

enum device_memory { DEVICE_WEIGHTS, DEVICE_CACHE, DEVICE_VECTORS, DEVICE_BUFFERS, DEVICE_ALL_LOGITS };

struct device {
	const char *name;
	struct profile *profile;                /* borrowed; NULL: nobody asks where time goes */
	/* Memory that plans' arguments point into, before a plan is run that does. NULL: the device reaches all of the process's. */
	bool (*memory)(struct device *d, void *base, size_t bytes, enum device_memory what, struct error *err);
	/* Sets the handle of every kernel of the plan; those to be generated, on the pool's threads. */
	bool (*prepare)(struct device *d, struct plan *p, struct pool *pool, struct error *err);
	/* Runs the plan, on all of the pool's threads where it is the host that computes. */
	bool (*run)(struct device *d, struct plan *p, struct pool *pool, struct error *err);
	/* Host devices: runs units begin..end-1 of one launch; called from many threads. */
	void (*call)(void *handle, const uint64_t *arg, int64_t begin, int64_t end);
	void (*close)(struct device *d);
};

struct device *dev_cpu_open(struct registry *r, struct error *err);                    /* generated code; borrows the registry */
struct device *dev_ref_open(const struct target *t, struct error *err);                /* interprets the same IR at the target's width */

/* For devices that run generated code: what is kept of the kernels comes all at once, the rest is generated side by side. Which of them cannot be had
 * registry_get then says. */
void dev_make_kernels(struct registry *r, const struct key *key, size_t n, struct pool *pool);
/* The same of a plan's. False: no memory for their list. */
bool dev_make_plan(struct registry *r, const struct plan *p, struct pool *pool, struct error *err);

/* Of a plan's `even`: all units. */
enum { DEV_WHOLE = 1024 };
/* The `run` of host devices: the plan's phases in order, the units of each handed out in shares to the pool's threads that are there. Leaves in p->even what this run says of the next:
 * how much of its units every worker takes in one piece. */
bool dev_run(struct device *d, struct plan *p, struct pool *pool, struct error *err);

#endif
