/* jit/backend.h - what a code generator is to everyone else: one row each.
 *
 * Owns: the list of backends. A target names its backend (jit/target.h), and code that asks what a
 * target needs asks the row, never which backend it is. To add one: a row where its passes are put in order
 * (jit/x86/pipeline.c and the like), its place in backend.c, its list of sources for the
 * code-generator id in Makefile.am.
 */
#ifndef JIT_BACKEND_H
#define JIT_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct compile_job;
struct compile_stats;
struct ir;
struct object;
struct target;

struct backend {
	const char *name;        /* "x86": as an option it stands for all targets of this backend */
	const uint64_t *codegen; /* its code-generator id (jit/key.h) */
	bool host_runs;          /* its code is for the CPU this program runs on, as far as that has the features */
	bool simulated;          /* sim/ runs its code: there is a device "sim:" of each of its targets */
	uint32_t skippable;      /* COMPILE_SKIP_... of the passes it has */
	/* compile.h: the job's IR is verified and has the target's lanes, *out is empty, stats may be NULL. */
	bool (*compile)(struct object *out, const struct compile_job *job, struct compile_stats *stats,
	                struct error *err);
	/* Makes what a device loads of n functions of a target: *bytes is malloc'ed, offset[i] is where function i is
	 * in it. NULL: functions are called one by one. */
	bool (*link)(uint8_t **bytes, size_t *size, const struct target *target, const struct object *const functions[],
	             size_t n, uint64_t offset[], struct error *err);
	/* Makes one code object of n verified kernels, which a card runs in one launch (jit/ptx/program.h). NULL: it
	 * has no such thing. */
	bool (*program)(struct object *out, const struct ir *const kernels[], size_t n, const struct target *target,
	                struct error *err);
	/* How many workgroups live at once on so many compute units, when a lane needs so many vector registers and a
	 * workgroup so many bytes of LDS. NULL where `link` is. */
	unsigned (*resident)(const struct target *target, unsigned units, unsigned vgprs, unsigned lds);
};

extern const struct backend backend_x86, backend_rdna, backend_ptx, backend_spirv;
extern const struct backend *const backend_table[];
extern const size_t backend_count;
const struct backend *backend_find(const char *name); /* NULL: unknown */

#endif
