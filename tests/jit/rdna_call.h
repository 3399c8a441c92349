/* tests/jit/rdna_call.h - calls one RDNA function in the simulator, without the driver.
 *
 * Owns: a kernel of its own that calls the function once for each wave of one workgroup, with the registers that the
 * ABI promises. */
#ifndef TESTS_RDNA_CALL_H
#define TESTS_RDNA_CALL_H

#include "encoders/amdgpu_object.h"
#include "jit/compile.h"
#include "jit/rdna/lir.h"
#include "sim/sim.h"

extern const char *const rdna_call_targets[RDNA_GEN_COUNT]; /* one of each generation */

struct rdna_call_memory {
	void *base;
	size_t size;
	bool writable;
};
struct rdna_call {
	const struct object *object;
	enum rdna_gen gen;
	unsigned waves;      /* 0: 1 */
	const uint64_t *arg; /* the argument slots, of n_args */
	size_t n_args;
	int64_t begin, end;
	struct rdna_call_memory memory[4]; /* what the function may touch; base NULL: unused */
};
/* The caller and the function as a code object. */
bool rdna_call_object(const struct rdna_call *c, struct amdgpu_object *out, struct error *err);
/* False and a sentence when the simulator traps. */
bool rdna_call(const struct rdna_call *c, const struct sim_options *o, struct error *err);

#endif
