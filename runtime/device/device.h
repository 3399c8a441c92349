/* runtime/device/device.h - what a device is: memory for a model, and streams that run a session's plans there.
 *
 * Owns: the interface, and the table of drivers by which a device is found under its name. A device belongs to a model,
 * a stream to a session. A device that cannot run a plan says which kernel and why; there is no silent fallback.
 *
 * An address that alloc() returned is what kernels' arguments hold. Whether the host may use it as a pointer depends on
 * what the memory is for: DEVICE_SHARED always, all else where the device's facts say `host_reaches`. A device that is
 * added is a row in device.c and a file of its own.
 */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "jit/store/driver_code.h"
#include "jit/store/registry.h"
#include "runtime/plan/memory.h"
#include "runtime/plan/plan.h"
#include "runtime/host/pool.h"

struct cancel;
struct collect;
struct profile;
struct stream;

/* What tells how long an operation took: the host's clock around each, a card's own, or a simulator's work, which says
 * nothing of a card. */
enum device_clock { DEVICE_CLOCK_HOST, DEVICE_CLOCK_CARD, DEVICE_CLOCK_SIMULATOR };

struct device_facts {
	char name[32];               /* as it was asked for: "cpu", "sim:gfx1100" */
	const struct target *target; /* what its kernels are made for */
	bool host_runs;              /* the pool's threads run the kernels */
	bool host_reaches; /* all its memory is the process's: it may be written in place instead of by upload() */
	bool interprets;   /* its kernels are IR: no code is made for it, or kept */
	bool keeps_code;   /* all the code it runs may come from a cache: only such a device can be sealed */
	bool tunes;        /* kernels' schedules can be timed on it */
	bool overlaps;     /* an op's groups begin while those before a barrier end: a stage more costs little */
	bool awaits;       /* a pass of a few tokens may be a dataflow plan (plan_options) */
	enum device_clock clock;
	/* Of real cards, as their drivers tell it: bytes of its memory and float operations a second, at most, and
	 * bytes a second between it and the host, assumed; 0: not known. */
	double bandwidth, arithmetic, link;
	const char *memory_by, *queues_by; /* real cards: "hsakmt" or "ioctl", how they are asked for; else NULL */
};

/* How a stream's launches go, where the device is a card; 0: as the device likes. */
enum stream_launch {
	STREAM_LAUNCH_TOKEN,
	STREAM_LAUNCH_LAYER,
	STREAM_LAUNCH_OP
}; /* one launch does all of a pass; the embedding, a layer, the logits; one operation */
enum { STREAM_MAX_UNITS = 256, STREAM_MAX_WORKGROUPS = 1024 };
struct stream_options {
	struct registry *registry;
	enum stream_launch launch;
	uint32_t units, workgroups;
}; /* registry: borrowed */

struct cut_share; /* runtime/plan/cut.h */

struct device {
	struct device_facts facts;
	/* Zeroed, at least page-aligned. NULL: err. */
	void *(*alloc)(struct device *d, size_t bytes, enum device_memory what, struct error *err);
	void (*release)(struct device *d, void *p, size_t bytes);
	/* DEVICE_WEIGHTS of which each of several cards has what its units read; and the bytes that one card needs for
	 * that. Copies to and from there are as ever. NULL: there is one card. */
	void *(*alloc_shares)(struct device *d, size_t bytes, const struct cut_share *share, size_t n,
	                      struct error *err);
	uint64_t (*share_bytes)(struct device *d, size_t bytes, const struct cut_share *share, size_t n);
	/* Copies to and from memory of the device; called from many threads. */
	bool (*upload)(struct device *d, void *to, const void *from, size_t bytes, struct error *err);
	/* The same of a table of addresses that alloc() returned, or of places behind them. NULL: as upload(). */
	bool (*upload_addresses)(struct device *d, void *to, uint8_t *const from[], size_t n, struct error *err);
	bool (*read)(struct device *d, void *to, const void *from, size_t bytes, struct error *err);
	/* Copies from one place of its caches to another. NULL: the caller does, or reads and uploads. */
	bool (*copy)(struct device *d, void *to, const void *from, size_t bytes, struct error *err);
	struct stream *(*stream)(struct device *d, const struct stream_options *o, struct error *err); /* NULL: err */
	/* Of its own memory, what can be had now. False: nobody knows. NULL: it has none of its own, or never knows. */
	bool (*available)(struct device *d, uint64_t *bytes);
	/* Where more than the registry's code is needed to run a kernel: has it at hand from then on, which a sealed
	 * registry's cache must have. Called from many threads. False: err. NULL: no more is needed. */
	bool (*ready)(struct device *d, struct registry *r, const struct key *key, struct error *err);
	/* Whether it still computes; called from many threads. False: err, and it never will again. NULL: it always
	 * does. */
	bool (*alive)(struct device *d, struct error *err);
	const struct driver_linker *linker; /* the driver that makes code of kernels' texts; NULL: none does */
	void (*close)(struct device *d);    /* after its streams, and when all its memory is released */
};

/* What a card's stream did so far: launches, barriers over all workgroups inside them, instructions of all waves, bytes
 * moved, and the ops of CUDA programs (jit/ptx/program.h). */
struct stream_counters {
	uint64_t launches, barriers, instructions, load_bytes, load128_bytes, weight_bytes, cache_bytes, store_bytes,
		scalar_bytes, commands;
};

struct stream {
	struct device *device;
	struct profile *profile; /* borrowed; NULL: nobody asks where time goes */
	uint64_t ended; /* with a profile: when the run was over, where reading its times came after that; else 0 */
	struct collect *collect;     /* borrowed; NULL: nobody asks what matrices read. Where the host runs */
	const struct cancel *cancel; /* borrowed; NULL: nobody can stop a run */
	/* Sets the handle of every kernel of the plan; those to be generated, on the pool's threads. */
	bool (*prepare)(struct stream *s, struct plan *p, struct pool *pool, struct error *err);
	/* Runs the plan, on all of the pool's threads where it is the host that computes. A run that is cancelled is an
	 * error, too: some of it was done. */
	bool (*run)(struct stream *s, struct plan *p, struct pool *pool, struct error *err);
	/* Where the host runs: units begin..end-1 of one launch; called from many threads. */
	void (*call)(void *handle, const uint64_t *arg, int64_t begin, int64_t end);
	/* Of a plan that was prepared, and will not be run again. NULL: the stream keeps nothing of plans. */
	void (*forget)(struct stream *s, struct plan *p);
	void (*count)(const struct stream *s, struct stream_counters *out); /* NULL: nothing is counted */
	void (*close)(struct stream *s);
};

/* The device of that name, for that instruction set where the host runs (NULL: the best this CPU has). NULL: err. */
struct device *device_open(const char *name, const char *isa, struct error *err);
void device_close(struct device *d); /* NULL is fine */
/* Copies a table of addresses of the device's memory there. */
bool device_upload_addresses(struct device *d, void *to, uint8_t *const from[], size_t n, struct error *err);
/* Has a kernel's code in the registry, and all that is needed beside it. False: err. */
bool device_has_kernel(struct device *d, struct registry *r, const struct key *key, struct error *err);

/* The same of the programs that a model's passes of one token can be made into (key_list_programs()), as far as they
 * can be had: they are not needed. */
struct key_list_options;
void device_load_programs(struct device *d, struct registry *r, const struct model_spec *spec,
                          const struct key_list_options *o);

/* Every device that could be opened here, and what there is of others, with the reason why not. */
struct device_entry {
	char name[32], about[200];
	struct error why_not;
}; /* why_not.code 0: it can be opened */
typedef void (*device_visit_fn)(void *user, const struct device_entry *e);
void device_each(device_visit_fn visit, void *user);

/* A row of the table in device.c. */
struct device_driver {
	const char *name; /* "cpu"; with a colon at the end, which one follows it: "sim:" */
	bool has_several; /* which one may follow behind a colon: "amd", "amd:1" */
	struct device *(*open)(const char *which, const char *isa, struct error *err);
	void (*each)(device_visit_fn visit, void *user);
};
extern const struct device_driver device_cpu, device_reference, device_simulator, device_amd, device_cuda,
	device_vulkan;

/* ---- for drivers */

/* The target that is named, else the best of this CPU; must_run: one whose code this CPU runs. NULL: err. */
const struct target *device_host_target(const char *isa, bool must_run, struct error *err);
/* How long a card may work on what takes a moment before it is given up: $JITRUN_CARD_PATIENCE, else the usual. False:
 * err, that says something else. */
bool device_patience(double usual, double *seconds, struct error *err);
/* Memory of the process: what host devices are made of. */
void *device_host_alloc(struct device *d, size_t bytes, enum device_memory what, struct error *err);
void device_host_release(struct device *d, void *p, size_t bytes);
bool device_host_copy(struct device *d, void *to, const void *from, size_t bytes, struct error *err);

/* For devices that run generated code: what is kept of the kernels comes all at once, the rest is generated side by
 * side. Which of them cannot be had registry_get then says. */
void device_make_kernels(struct registry *r, const struct key *key, size_t n, struct pool *pool);
/* The same of a plan's. False: no memory for their list. */
bool device_make_plan(struct registry *r, const struct plan *p, struct pool *pool, struct error *err);

/* Of a plan's static_share: all units. */
enum { HOST_SCHEDULE_SHARE_ONE = 1024 };
/* The `run` of host devices' streams: the plan's stages in order, the units of each handed out in shares to the pool's
 * threads that are there. Leaves in p->static_share what this run says of the next: how much of its units every worker
 * takes in one piece. */
bool host_schedule_run(struct stream *s, struct plan *p, struct pool *pool, struct error *err);

#endif
