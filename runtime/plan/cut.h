/* runtime/plan/cut.h - where a plan is cut for several devices, or machines.
 *
 * Owns both cuts. By rows: each device has a range of every op's units, and of the matrices what those units read; so
 * it follows from the numbers of units alone who computes what, and who must have which weights. By sections: a plan's
 * embedding, layers and logits (plan.section), between which the stream alone is carried on. Devices that share a plan
 * ask here and nowhere else, so that weights, units and results are cut alike.
 */
#ifndef RUNTIME_PLAN_CUT_H
#define RUNTIME_PLAN_CUT_H

#include "kernels-templates/signature.h"
#include "runtime/plan/plan.h"

/* ---- by rows */

/* Weights of which devices that compute together need not have all: from `at` on so many bytes for each of `units`
 * units, which unit i of an op that has as many reads alone. Which units a device has: cut_begin(). */
struct cut_share {
	uint64_t at, bytes, units;
};

/* Of an op with so many units, the first that this one of so many devices has; device == devices: where the last one's
 * end. Units of large matrices are distributed by eights, which a group does at once. */
static inline uint64_t cut_begin(uint64_t units, unsigned device, unsigned devices)
{
	const uint64_t together = units >= 64 * (uint64_t)devices ? 8 : 1, groups = units / together;

	return device == devices ? units : groups * device / devices * together;
}

/* The units of an op that a device has: the devices' shares lie one behind the other. */
struct cut_units {
	int64_t begin;
	uint64_t n;
};
static inline struct cut_units cut_units_of(const struct plan_op *op, unsigned device, unsigned devices)
{
	const uint64_t all = (uint64_t)(op->end - op->begin), from = cut_begin(all, device, devices);

	return (struct cut_units){ op->begin + (int64_t)from, cut_begin(all, device + 1, devices) - from };
}

/* What of the matrices an op reads unit by unit: dense ones that nothing else reads. *out: malloc'ed. */
bool cut_weights(const struct model_spec *s, enum weight_layout layout, struct cut_share **out, size_t *n,
                 struct error *err);

/* ---- by sections */

/* The first op of the last section: those before it read what the host fills in, and those from there on leave what it
 * reads. 0: the plan has no sections. */
size_t cut_last_section(const struct plan *p);

/* What the ops from number `op` on, the first of a section, read of the memory of values that those before it have
 * written: ranges of addresses, in order. choices: tokens times the experts of each. False: err; else
 * cut_carried_close() is due. */
struct cut_range {
	uint8_t *at;
	uint64_t bytes;
};
struct cut_carried {
	struct cut_range *range;
	size_t n;
	uint64_t bytes; /* of all */
};
bool cut_carried(const struct plan *p, const struct plan_buffers *b, uint64_t choices, uint32_t op,
                 struct cut_carried *out, struct error *err);
void cut_carried_close(struct cut_carried *c);

/* ---- what devices exchange */

/* The bytes that an op writes through a slot, counted from its address; 0 bytes: none that others read outside of a
 * sequence's pages. */
struct kernel_extent cut_written(const struct plan *p, const struct plan_op *op, uint32_t slot);

#endif
