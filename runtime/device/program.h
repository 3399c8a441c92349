/* runtime/device/program.h - a plan as a program for RDNA cards: its functions linked into one code object, its
 * launches as commands.
 *
 * Owns: which launch gets which flags and shares. The caller that runs a program decides only how many commands go into
 * one launch. Never runs anything.
 */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include "jit/rdna/program.h"
#include "jit/store/registry.h"
#include "runtime/plan/plan.h"

struct program {
	uint8_t *bytes;
	size_t size;         /* the code object */
	uint64_t *offset;    /* of the function of plan->kernel[i] */
	uint32_t workgroups; /* of a launch */
	struct rdna_command *command;
	size_t n_commands; /* one for each op of the plan, in its order, until it is split; behind them one without
	                      units, to see what a command costs */
	size_t *of_op;     /* commands of_op[i] .. of_op[i + 1] - 1 are op i */
};

/* One function, which the registry makes if it does not have it. NULL: err. */
const struct kernel *program_function(struct registry *r, const struct key *key, enum kernel_source *from,
                                      struct error *err);
/* Compiles what the registry does not have. args: where the device finds the plan's argument slots, in their order; the
 * commands point there. False: err, and nothing to free. */
bool program_make(struct program *out, const struct plan *p, const uint64_t *args, struct registry *r,
                  const struct target *target, struct error *err);
/* Cuts op i into parts[i] commands of its units, at most as many as it has, which must not go into one launch; before
 * program_partition(). False: no memory, and nothing has changed. */
bool program_split(struct program *program, const struct plan *p, const uint32_t *parts);
/* Before the first launch: distributes the units of all commands to so many workgroups. How many can be is known when
 * the code is: the backend's resident(). */
void program_partition(struct program *program, const struct plan *p, uint32_t workgroups);
void program_free(struct program *p);
/* How many barriers over all workgroups a launch of commands first .. end-1 has. */
size_t program_barriers(const struct program *p, size_t first, size_t end);

#endif
