/* sim/sim.h - an RDNA functional simulator: it executes AMDHSA code objects from their bytes.
 *
 * A device is one GPU model (gfx1030, gfx1100, gfx1200 and related ones). Memory is host memory: a simulated address IS
 * the host address, and a kernel may touch only what was registered with sim_map(). A code object is parsed, its
 * kernels are found by name, and sim_dispatch() runs one to its end in the calling thread; many workgroups are
 * resident at once and a seeded scheduler interleaves their waves, so races and missing waits show, the same way
 * for the same seed. Waves have 32 lanes.
 *
 * What the hardware does silently wrong, the simulator refuses: it stops ("traps") with ONE sentence in *err that names
 * the kernel, the address, the bytes, the instruction and the rule. It decodes with tables of its own and never
 * includes anything of encoders/ or jit/: it is their judge. It keeps no time: its counters count, they do not
 * estimate.
 *
 * It is stricter than hardware where code that works there only by luck would pass: every wave of a workgroup must
 * reach each barrier (hardware forgives a wave that ended), a register with a load outstanding may not even be
 * overwritten, LDS that nothing wrote may not be read.
 *
 * Where hardware results have no public bit-exact definition, the rule here is:
 *   v_rcp v_rsq v_sqrt v_exp v_log v_sin v_cos: correctly rounded from double (denormals flushed on f32), then, when
 *   options.perturb is not 0, moved by -1, 0 or +1 units in the last place, a function of (value, perturb) alone; of
 * f64 the manuals promise 2^29 units, so that the lower 29 bits are then any. Float WMMA and v_dot2: exact products,
 * summed in ascending k in double together with C, rounded once at the end.
 *
 * Owned by the caller: the mapped memory, the kernel arguments, the options. Owned by the device: everything else. A
 * device is used by one thread at a time.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sim_device;
struct sim_object;

/* When the result of a load reaches its register, and a store reaches memory. */
enum sim_memory_mode {
	SIM_MEMORY_NOW,     /* at issue */
	SIM_MEMORY_AT_WAIT, /* as late as the waits allow; the destination holds poison until then */
	SIM_MEMORY_RANDOM   /* at a random moment between */
};

/* Instructions by class. */
enum sim_class {
	SIM_CLASS_SALU,
	SIM_CLASS_BRANCH,
	SIM_CLASS_WAIT,
	SIM_CLASS_BARRIER,
	SIM_CLASS_SMEM,
	SIM_CLASS_VALU,
	SIM_CLASS_TRANS,
	SIM_CLASS_DOT,
	SIM_CLASS_WMMA,
	SIM_CLASS_VOPD,
	SIM_CLASS_LDS,
	SIM_CLASS_LOAD,
	SIM_CLASS_STORE,
	SIM_CLASS_ATOMIC,
	SIM_CLASS_OTHER,
	SIM_CLASS_COUNT
};
extern const char *const sim_class_names[SIM_CLASS_COUNT];

/* What moved to and from some of the memory. */
struct sim_tally {
	uint64_t load_bytes, load128_bytes, store_bytes, scalar_bytes;
};
enum { SIM_TALLIES = 4 };

struct sim_counters {
	uint64_t instructions; /* wave-instructions */
	uint64_t by_class[SIM_CLASS_COUNT];
	uint64_t load_bytes, load128_bytes; /* vector loads from memory, and the part moved by 128-bit loads */
	uint64_t store_bytes, scalar_bytes, atomic_bytes;
	uint64_t lds_load_bytes, lds_store_bytes;
	uint64_t scratch_bytes;
	uint64_t waits_empty;   /* waits that had nothing to wait for */
	uint64_t waits_stalled; /* waits for an operation with no vector arithmetic issued since it */
	uint64_t lds_conflicts; /* extra cycles by LDS bank conflicts */
	uint64_t barriers;      /* completed workgroup barriers */
	uint64_t workgroups, waves;
	struct sim_tally tally[SIM_TALLIES]; /* the same by what memory was touched: sim_count_as() */
};
void sim_counters_add(struct sim_counters *to, const struct sim_counters *from);

/* Where a kernel trapped; the sentence says why. */
struct sim_trap {
	bool trapped;             /* else the dispatch did not fail, or not in the kernel */
	uint64_t offset;          /* of the instruction, from the kernel's entry */
	uint32_t workgroup, wave; /* the workgroup's number, and the wave's in it */
	bool fault, write;        /* it touched memory that is not registered, or wrote what is read-only, */
	uint64_t address;         /* here */
};

struct sim_options {
	enum sim_memory_mode memory;
	uint64_t seed;        /* of the scheduler and of SIM_MEMORY_RANDOM */
	uint32_t perturb;     /* 0: transcendental results are correctly rounded */
	bool races;           /* trap on unordered accesses of different workgroups to the same word, and on loads from
	                         caches that were not invalidated since */
	bool allow_undefined; /* do not trap on reads of registers never written */
	bool allow_hazards;   /* do not trap on missing hazard padding */
	unsigned resident;    /* workgroups resident at once; 0: 256 */
	uint64_t stall_limit; /* trap after so many instructions in which no memory changed and no wave ended; 0: 200
	                         million */
	uint64_t max_instructions;     /* 0: no limit */
	struct sim_counters *counters; /* added to, when not NULL */
	struct sim_trap *trap;         /* filled in, when not NULL */
};

struct sim_kernel {
	const char *name;
	uint32_t kernarg_size, lds_size, scratch_size; /* bytes; scratch per lane */
	uint32_t vgprs;                                /* allocated to each lane of a wave */
	uint64_t entry;                                /* address of its first instruction */
	struct sim_object *object;
	uint32_t rsrc1, rsrc2, rsrc3, properties;
};

/* target: "gfx1030", "gfx1100" ... NULL and a sentence when unknown or out of memory. */
struct sim_device *sim_open(const char *target, struct error *err);
void sim_close(struct sim_device *dev);
const char *sim_target(const struct sim_device *dev);

/* Registers host memory under a name that traps mention. Regions must not overlap. */
bool sim_map(struct sim_device *dev, void *base, size_t size, const char *name, bool writable, struct error *err);
void sim_unmap(struct sim_device *dev, void *base);
/* Counts what the region registered at base moves under a number below SIM_TALLIES, until then 0. */
void sim_count_as(struct sim_device *dev, const void *base, unsigned tally);

/* Parses a code object (bounds checked; made for this device's target). The bytes are copied. Where the environment
 * variable JITRUN_SIM_KEEP names a directory, they are kept there too, as TARGET-HASH.co: for other disassemblers to
 * read. */
struct sim_object *sim_load(struct sim_device *dev, const void *bytes, size_t size, struct error *err);
/* One kernel whose code a host has put into registered memory itself, as real cards are given theirs: size bytes at
 * base hold descriptor and code. They are borrowed, and must not change before sim_unload(). */
struct sim_object *sim_adopt(struct sim_device *dev, void *base, size_t size, const void *descriptor,
                             struct error *err);
void sim_unload(struct sim_object *object);
const struct sim_kernel *sim_find(const struct sim_object *object, const char *kernel); /* NULL: no such kernel */

/* Runs groups[0] x groups[1] x groups[2] workgroups of group_size work items (at most 1024). kernarg must hold
 * kernel->kernarg_size bytes; the kernel sees it as constant memory. Returns false and a sentence on a trap; memory is
 * then in whatever state it was in. */
bool sim_dispatch(struct sim_device *dev, const struct sim_kernel *kernel, const void *kernarg, size_t kernarg_size,
                  const uint32_t groups[3], const uint32_t group_size[3], const struct sim_options *options,
                  struct error *err);

/* The mnemonic and the length in words of the instruction at the start of n words; NULL when it cannot be decoded.
 * Names are those of the newest generation that has the instruction. */
const char *sim_decode_name(const struct sim_device *dev, const uint32_t *words, unsigned n, unsigned *length);

#endif
