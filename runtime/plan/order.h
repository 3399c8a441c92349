/* runtime/plan/order.h - the pass that orders a plan's ops: barriers and stages, from what kernels read and write.
 *
 * Owns: the rule of hazards. An op waits for those before it that write what it touches, or touch what it writes. So
 * whatever adds ops says nothing of barriers. An op may begin a stage for another reason: it begins a section, or its
 * units differ in cost and those of its neighbours do not.
 */
#ifndef RUNTIME_PLAN_ORDER_H
#define RUNTIME_PLAN_ORDER_H

#include "kernels-templates/signature.h"
#include "runtime/plan/plan.h"

/* Sets every op's `barrier`, and the plan's stages. It reads ops, sections and changing slots; these are in the order
 * of their ops. choices: of how many columns data may choose one (KERNEL_SOME), those of all slots of a mixture. */
void plan_order(struct plan *p, uint64_t choices);

/* The bytes that units [begin, end) of such an op touch through a slot, counted from its address. choices: as above. */
struct kernel_extent plan_touched(const struct key *key, const uint64_t *arg, unsigned slot, int64_t begin, int64_t end,
                                  uint64_t choices);
/* Whether one of the plan's ops from number `first` on writes any of these bytes of memory. choices: as above. */
bool plan_written_since(const struct plan *p, size_t first, uint64_t begin, uint64_t end, uint64_t choices);

#endif
