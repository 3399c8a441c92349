/* runtime/kernels/compute.h - where users' kernels run: a device, its registry, threads and stream, and the kernels
 * that are open there.
 *
 * Owns: what stands behind the types of jitrun_kernel.h. A kernel is described here without its language: a key, a
 * function that builds its IR, and what its parameters are. So tests run kernels that they built by hand.
 */
#ifndef RUNTIME_KERNELS_COMPUTE_H
#define RUNTIME_KERNELS_COMPUTE_H

#include <pthread.h>

#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "runtime/device/device.h"
#include "runtime/host/cancel.h"
#include "include/jitrun_kernel.h"
#include "runtime/kernels/launch_plan.h"

struct jit_compute {
	struct device *device;
	struct cache *cache;
	struct registry *registry;
	struct tune *tune; /* which constants of kernels are fastest here */
	struct perf_gdb *perf_gdb;
	FILE *dump_ir, *dump_asm, *trace;
	struct profile *profile; /* with `trace`: what is written there; else NULL */
	bool traced;             /* it was */
	bool perf_map, sealed;
	struct pool *pool;
	struct stream *stream;
	struct cancel cancel;
	pthread_mutex_t stream_lock; /* of the stream and the pool */
	pthread_mutex_t lock;        /* of the list of kernels */
	jit_kernel *kernels;
	struct compile_builder builder;
};

/* Its threads, except the one that launches, have that niceness from now on (pool.h), so that others go first. */
void compute_set_niceness(jit_compute *c, int niceness);
/* Has the stream prepare a plan, whose kernels the trace calls by these names. False: err. */
bool compute_prepare(jit_compute *c, struct plan *p, const char *(*name)(const void *user, size_t kernel),
                     const void *user, struct error *err);

/* A kernel as the device sees it. Everything is borrowed as long as the kernel is open. */
struct kernel_description {
	const char *name;
	uint8_t id[KEY_USER_BYTES]; /* equal: equal IR for a target */
	bool (*build)(const void *user, struct ir *ir, const struct target *target, struct error *err);
	/* What the fault that a launch left says. NULL: the kernel has no argument more for faults. */
	bool (*fault)(const void *user, const uint64_t fault[4], char *out, size_t cap);
	const void *user;
	const jit_parameter *parameter; /* the arguments in their order */
	size_t parameters;
	uint64_t units, bytes_read, bytes_written, operations;
};

struct jit_kernel {
	jit_compute *compute;
	jit_kernel *next; /* in the list of the jit_compute */
	struct kernel_description is;
	struct key key;
	char key_text[KEY_TEXT_MAX];
	enum kernel_source source;
	uint64_t code_ns, code_bytes;
	_Atomic uint64_t launches, last_ns;
	struct source_kernel *source_text; /* what it was compiled from; NULL: it was described by hand */
};

/* Opens a kernel that is described, and has its code at hand. NULL: err. */
jit_kernel *kernel_open(jit_compute *c, const struct kernel_description *is, struct error *err);
enum { KERNEL_FAULT_WORDS = 4 };

/* What a kernel was compiled from. */
struct source_kernel {
	struct jk_file *file;
	struct jk_kernel *bound;
	jit_parameter *parameter;
	char *kernel, *constants; /* as they were asked for; kernel NULL: the only one */
	bool check, interpreted;
	size_t variants;   /* combinations of the constants that are left to tuning */
	char tuned[256];   /* those of this one, "block=128"; "": the first choices, because nothing is known */
	struct key tuning; /* under which the fastest combination is kept, its number in `schedule` */
};
enum { SOURCE_VARIANTS_MAX = 256, SOURCE_FASTEST = SOURCE_VARIANTS_MAX };
/* variant: a combination's number, or SOURCE_FASTEST. NULL: err. */
jit_kernel *kernel_source_open(jit_compute *c, const jit_kernel_options *o, size_t variant, struct error *err);
void kernel_source_close(struct source_kernel *s);

/* Whether kernels work on the caller's memory. */
static inline bool compute_host_runs(const jit_compute *c) { return c->device->facts.host_runs; }

struct jit_buffer {
	jit_compute *compute;
	uint8_t *at;
	uint64_t bytes;
};

struct launch_argument {
	bool given;
	uint64_t bits;     /* of a scalar; else the address that kernels see */
	uint8_t *caller;   /* the caller's memory, which is copied to `copy` and back; NULL: none is */
	uint8_t *copy;     /* on the device */
	uint64_t from, to; /* of arrays: the bytes that the caller has given, to see which overlap */
};

struct jit_launch {
	jit_kernel *kernel;
	struct launch_plan plan;
	bool prepared;
	struct launch_argument *argument;
	uint64_t changes; /* how often arguments were given */
	uint64_t *fault;  /* on the device; NULL: the kernel has none */
};

/* Whether every parameter was given, and no array that is written overlaps another; then l->plan.arg has them all. */
bool launch_has_arguments(jit_launch *l, struct error *err);

/* "array y of saxpy"; returns out. */
enum { PARAMETER_TEXT_MAX = 160 };
char *kernel_parameter_text(const jit_kernel *k, size_t parameter, char out[PARAMETER_TEXT_MAX]);
unsigned kernel_type_size(int type);

#endif
