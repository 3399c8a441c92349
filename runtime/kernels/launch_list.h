/* runtime/kernels/launch_list.h - launches that the host's threads run one behind the other, as stages of one plan.
 *
 * Owns: the plan. Threads begin and end together once for all of them, and not for each.
 */
#ifndef RUNTIME_KERNELS_LAUNCH_LIST_H
#define RUNTIME_KERNELS_LAUNCH_LIST_H

#include "runtime/kernels/compute.h"

struct launch_list;

/* Whether a launch may be part of a list: the host runs it, and nothing is looked at behind it. */
bool launch_list_takes(const jit_launch *l);
/* Borrows the launches, whose arguments may change between runs. NULL: err. */
struct launch_list *launch_list_open(jit_launch *const launch[], size_t n, struct error *err);
void launch_list_close(struct launch_list *l);
bool launch_list_run(struct launch_list *l, struct error *err);

#endif
