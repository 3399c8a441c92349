/* jit/spirv/launch.h - what a module of SPIR-V and the device that runs it agree on: the entry, the push constants of
 * a launch, the choices that are made when a pipeline is, and which words a driver may need left out.
 */
#ifndef JIT_SPIRV_LAUNCH_H
#define JIT_SPIRV_LAUNCH_H

#include <stdint.h>

#define SPIRV_ENTRY "jitrun"

/* Push constants. Workgroups have `waves` subgroups of the target's lanes each. Share i begins at begin + i * per +
 * min(i, rest), and has one unit more when i < rest; shares are of workgroups where the object is cooperative, else of
 * waves: wave w of workgroup g has share w * workgroups + g. */
struct spirv_launch {
	uint64_t arg; /* address of the argument slots */
	int64_t begin;
	uint64_t scratch; /* address of spirv_scratch_bytes() for each workgroup; multiple of 64 */
	uint64_t cut;     /* address of a word that becomes 1 if a loop may have been cut (SPIRV_LOOPS) */
	uint32_t per, rest;
};

/* Constants of specialisation, by number: bools, true unless the pipeline says otherwise. False: the driver's own
 * instruction is not what the IR means, and a sequence of others is in its place. */
enum spirv_choice {
	SPIRV_FUSED,    /* fma rounds once, of floats */
	SPIRV_FUSED64,  /* of doubles */
	SPIRV_DIVIDES,  /* division is IEEE's; else it is done in double precision */
	SPIRV_HAS_ROOT, /* square roots are */
	SPIRV_LOOPS,    /* loops run to their end; else a kernel counts what its loops do */
	SPIRV_CHOICES
};

/* Iterations of all loops of one invocation together, which every driver is known to run. llvmpipe leaves loops
 * silently when there were 65535 of them. */
enum { SPIRV_ITERATIONS = 65000 };

/* Of locals and shared bytes, for a workgroup. */
static inline uint64_t spirv_scratch_bytes(uint32_t frame_bytes, uint32_t shared_bytes, unsigned waves)
{
	return ((uint64_t)shared_bytes + 63) / 64 * 64 + (uint64_t)waves * ((frame_bytes + 63) / 64 * 64);
}

#endif
