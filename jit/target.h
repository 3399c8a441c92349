/* jit/target.h - what a template may ask of a target, and which targets there are.
 *
 * Owns: the table of targets and the detection of this machine's. Templates branch on capabilities, never on names.
 */
#ifndef JIT_TARGET_H
#define JIT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "jit/backend.h"

/* CPUs in ascending order of what they promise: of those a CPU runs, the last is the best. */
enum target_id {
	TARGET_NONE,
	TARGET_AVX2,
	TARGET_AVX2_VNNI,
	TARGET_AVX512,
	TARGET_AVX512_VNNI,
	TARGET_AVX512_BF16,
	TARGET_AVX512_AMX,
	TARGET_GFX1030,
	TARGET_GFX1031,
	TARGET_GFX1032,
	TARGET_GFX1033,
	TARGET_GFX1034,
	TARGET_GFX1035,
	TARGET_GFX1036,
	TARGET_GFX1100,
	TARGET_GFX1101,
	TARGET_GFX1102,
	TARGET_GFX1103,
	TARGET_GFX1150,
	TARGET_GFX1151,
	TARGET_GFX1200,
	TARGET_GFX1201,
	TARGET_SM80,
	TARGET_SM90,
	TARGET_SM90X2,
	TARGET_SM90X4,
	TARGET_SM90X8,
	TARGET_SPIRV8,
	TARGET_SPIRV16,
	TARGET_SPIRV32,
	TARGET_COUNT
};

struct target {
	enum target_id id;
	const char *name;              /* "avx2" */
	const struct backend *backend; /* of TARGET_NONE: NULL */
	unsigned lanes;                /* W */
	unsigned vector_regs;          /* a template shapes its tiles for these */
	unsigned mask_regs;            /* registers that hold nothing but masks; 0: a mask is a vector */
	bool has_vnni;                 /* dot4u is one instruction; else dot4 is the cheaper of the two */
	bool has_dot4;                 /* dot4 is one instruction */
	bool has_bsel;                 /* ibsel is one instruction */
	bool has_mma;                  /* products of matrices: the rows of ops.def that need it */
	bool has_tiles; /* products of int8 matrices of up to 16 rows in memory: the row of ops.def that needs it */
	bool has_dot2;  /* products of pairs of bf16: the row of ops.def that needs it */
	bool has_parts; /* a launch may do its units in several parts: the rows of ops.def that need it */
	bool prefetch_to_l2; /* few line-fill buffers of the first cache level: prefetch into the second */
	bool local_operands; /* operands of products of matrices may lie in local and shared bytes */
	unsigned waves;      /* that call a kernel together when it asks for it: ir->waves */
	unsigned lane_bytes; /* how much of its row a lane likes to load at once: weights are packed for that */
	unsigned vector_file, vector_granule; /* cards: registers that a SIMD has for a lane of all its waves; waves get
	                                         them in multiples of vector_granule */
	uint32_t shared_bytes;                /* that a group may have; 0: TARGET_SHARED_BYTES */
	uint32_t block_bytes; /* that it may have with its waves' local bytes; 0: no copies, the rows of ops.def that
	                         need it */
	unsigned cards;       /* that run a kernel together: what one stores to memory, each of them gets
	                         (jit/ptx/ptx.h) */
	uint32_t needs;       /* what the CPU must have: bits of target.c's table of features */
};

/* Of a group of waves, which every target with waves has. */
enum { TARGET_SHARED_BYTES = 32 << 10 };
extern const struct target target_table[TARGET_COUNT];

const struct target *target_find(const char *name); /* NULL: unknown */
/* The names of all targets, of CPUs', or of cards' that are simulated; each behind the prefix, with the separator
 * between them; a full text is cut. Returns text. */
enum target_set { TARGETS_ALL, TARGETS_OF_CPUS, TARGETS_OF_CARDS };
char *target_list(char *text, size_t size, enum target_set set, const char *prefix, const char *separator);
enum { TARGET_LIST_MAX = 24 * TARGET_COUNT }; /* bytes that hold any such list with a short prefix */

/* Of a card's compute unit; the SIMDs share the LDS, which workgroups get by granules of at most TARGET_LDS_GRANULE
 * bytes. */
enum { TARGET_UNIT_SIMDS = 2, TARGET_SIMD_WAVES = 16, TARGET_UNIT_LDS = 64 << 10, TARGET_LDS_GRANULE = 1 << 10 };

/* What cpuid says, xgetbv, and Linux when it is asked whether this process may use the registers of tiles. */
struct target_cpu {
	uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax;
	uint64_t xcr0;
	bool tile_permission;
};
/* The first call asks for that permission where the CPU has tiles; from then on it is the process's, whichever thread
 * uses them. */
struct target_cpu target_this_cpu(void);
/* What the processor calls itself, without blanks at the ends; at least 49 bytes hold any. Returns out. */
char *target_cpu_name(char *out, size_t size);

/* Whether such a CPU runs code made for t; if not, a sentence that names what is missing. err may be NULL. */
bool target_runs(const struct target_cpu *cpu, const struct target *t, struct error *err);
/* The best target such a CPU runs. NULL and a sentence: not even the least one. */
const struct target *target_judge(const struct target_cpu *cpu, struct error *err);
/* The best target of this machine. */
const struct target *target_native(struct error *err);

#endif
