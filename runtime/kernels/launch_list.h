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
/* Borrows the launches. rounds: how often they are run in a row at most. Of one round, arguments may change between
 * runs; of several, each has those that launch_list_set_round() has found. NULL: err. */
struct launch_list *launch_list_open(jit_launch *const launch[], size_t n, uint32_t rounds, struct error *err);
void launch_list_close(struct launch_list *l);
/* The arguments that the launches have now become those of a round. */
bool launch_list_set_round(struct launch_list *l, uint32_t round, struct error *err);
/* The first rounds of it. */
bool launch_list_run(struct launch_list *l, uint32_t rounds, struct error *err);

#endif
