/* runtime/kernels/launch_plan.h - the launch of a user's kernel as a plan, which every device's streams run.
 *
 * Owns: the plan's lists, and how a launch is cut into ops, between which it can be cancelled. A plan has one kernel;
 * its arguments may change from run to run.
 */
#ifndef RUNTIME_KERNELS_LAUNCH_PLAN_H
#define RUNTIME_KERNELS_LAUNCH_PLAN_H

#include "runtime/plan/plan.h"

enum { LAUNCH_ARGS_MAX = 64, LAUNCH_OPS_MAX = 4096 };

struct launch_shape {
	struct key key;
	uint64_t units;
	uint32_t args;
	bool serial;              /* units are done one after the other, as far as a launch may have parts */
	double moves, operations; /* bytes that a launch moves, and operations that it does, roughly */
	double arithmetic;        /* operations a second of a real card (struct device_facts), or 0 */
};

struct launch_plan {
	struct plan plan;
	uint64_t arg[LAUNCH_ARGS_MAX]; /* what launch_plan_set_args() gives to all ops */
	struct launch_shape shape;
};

/* False: err, and there is nothing to free. */
bool launch_plan_make(struct launch_plan *l, const struct launch_shape *shape, struct error *err);
/* Has the next run read l->arg. */
void launch_plan_set_args(struct launch_plan *l);
void launch_plan_free(struct launch_plan *l);

#endif
