/* jit/store/registry.h - key to runnable kernel: memory first, then disk cache, then the compiler.
 *
 * Owns: the in-process table of kernels and the executable pages they live in. Single flight: one thread compiles a
 * key, outside the lock; others asking for that key wait for that entry only. A kernel handed out stays valid until
 * registry_close. Pages are never writable and executable at once.
 */
#ifndef JIT_REGISTRY_H
#define JIT_REGISTRY_H

#include "jit/store/cache.h"
#include "jit/compile.h"

typedef void (*kernel_fn)(const uint64_t *arg, int64_t begin, int64_t end);

enum kernel_source { KERNEL_GENERATED, KERNEL_FROM_MEMORY, KERNEL_FROM_DISK, KERNEL_FROM_PACK, KERNEL_SOURCE_COUNT };
/* "generated", "memory", "disk", "pack". */
const char *kernel_source_name(enum kernel_source source);

struct kernel {
	struct key key;
	struct object object;      /* bytes as generated */
	kernel_fn run;             /* NULL for targets this machine cannot run */
	enum kernel_source source; /* where it first came from: never FROM_MEMORY */
	uint64_t nanoseconds;      /* spent generating or loading */
};

struct registry;
struct registry_options {
	compile_build_fn build;
	const struct compile_builder *users; /* borrowed: builds users' kernels; NULL: there are none */
	struct cache *cache;                 /* borrowed; NULL: none */
	bool perf_map;                       /* write /tmp/perf-PID.map lines */
	struct perf_gdb *perf_gdb;           /* borrowed: told of new code, for perf and gdb; or NULL */
	bool sealed; /* nothing is ever generated: a kernel that the cache does not have is an error, which names the
	                nearest it has; so is that it cannot be read */
	FILE *dump_ir, *dump_asm; /* NULL: none; with either, kernels are generated even when the cache has them */
};
struct registry *registry_open(const struct registry_options *opt, struct error *err);
void registry_close(struct registry *r);

/* Thread-safe. NULL with err set when the key cannot be built: everyone who waited for that attempt is told, and the
 * next asker tries again. *from may be NULL. */
const struct kernel *registry_get(struct registry *r, const struct key *key, enum kernel_source *from,
                                  struct error *err);
/* Fetches from the cache what of the keys it has and nobody has asked for yet, for many together cost less than each by
 * itself. What is not there, or damaged, is left for registry_get, which then does not look once more; what could not
 * be read it asks for again. Returns how many came. Thread-safe. */
size_t registry_load(struct registry *r, const struct key *key, size_t n);
/* Sealed: from now on what is in memory is all there is. No code is loaded or mapped any more; registry_get gives a
 * kernel that is there, or refuses by name. */
void registry_freeze(struct registry *r);
/* Writes a kernel's IR by the builder that makes kernels of its kind here: for those who interpret it. False: err. */
bool registry_build(const struct registry *r, struct ir *ir, const struct key *key, const struct target *target,
                    struct error *err);
/* Whether kernels must be made one after the other, as readers of the dumps expect. */
bool registry_in_order(const struct registry *r);
/* True if the kernel is already in memory. Takes no lock. */
bool registry_ready(struct registry *r, const struct key *key);

/* Whether nothing may be generated. */
bool registry_is_sealed(const struct registry *r);
/* Borrowed; NULL: none. */
struct cache *registry_cache(const struct registry *r);

/* from_disk_ns: of packs too. */
struct registry_counters {
	uint64_t generated, from_disk, from_pack, from_memory, generated_ns, from_disk_ns, code_bytes;
};
void registry_count(struct registry *r, struct registry_counters *out);
/* Visits every kernel in key-text order. */
void registry_each(struct registry *r, void (*visit)(const struct kernel *, void *), void *user);

#endif
