/* jit/target.h - what a template may ask of a target, and which targets there are.
 *
 * Owns: the table of targets and the detection of this machine's. Templates branch on capabilities, never on names.
 */
#ifndef JIT_TARGET_H
#define JIT_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum target_id { TARGET_NONE, TARGET_AVX2, TARGET_COUNT };
enum target_backend { BACKEND_NONE, BACKEND_X86 };

struct target {
	enum target_id id;
	const char *name;           /* "avx2" */
	enum target_backend backend;
	unsigned lanes;             /* W */
	unsigned vector_regs;       /* a template shapes its tiles for these */
};

extern const struct target target_table[TARGET_COUNT];

const struct target *target_find(const char *name);                  /* NULL: unknown */
/* The best target this CPU runs (cpuid, and the operating system's xgetbv). NULL and a sentence when AVX2, FMA or F16C is missing. */
const struct target *target_native(struct error *err);
/* Whether a machine whose best target is native runs code made for t. Targets of one backend stand in order: each runs the ones before. */
bool target_runs(const struct target *native, const struct target *t);

/* What cpuid and xgetbv said; target_native() fills it and asks target_judge(). */
struct target_cpu { uint32_t leaf1_ecx, leaf7_ebx; uint64_t xcr0; };
const struct target *target_judge(const struct target_cpu *cpu, struct error *err);

#endif
