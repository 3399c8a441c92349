/* runtime/device/vulkan/vulkan.h - a device of Vulkan: the card, or the processor, that a driver of Vulkan offers.
 *
 * A pass is a command buffer with a dispatch for each op, recorded once for a plan. Addresses that kernels see are the
 * device's, of buffers; memory that the host shares is mapped, and an argument that points into it is changed to the
 * device's address before a run.
 *
 * Work that did not end in time may still run: from then on nothing that it could use is given back to the driver, and
 * closing leaves it there after a while.
 *
 * Owned by: vulkan_api.c the loader; vulkan.c which devices there are, what one must have, opening; vulkan_limits.c
 * what a driver allows at most; vulkan_memory.c buffers, vulkan_copies.c what goes there and back; vulkan_code.c
 * modules and pipelines; vulkan_stream.c plans; vulkan_check.c the comparison of the driver's arithmetic with the
 * CPU's.
 */
#ifndef RUNTIME_VULKAN_H
#define RUNTIME_VULKAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "jit/spirv/launch.h"
#include "runtime/device/device.h"
#include "runtime/device/vulkan/vulkan_api.h"

/* A buffer with memory of its own. Kernels know it by its address, all others by its name: the same, or where the host
 * has it, or a part of a range that stands for several regions. */
struct vulkan_region {
	struct vulkan_region *next;
	uint64_t address, name, buffer, memory, bytes;
	uint64_t range, range_bytes; /* of the names of several; bytes 0: of no such range */
	uint8_t *mapped;             /* NULL: the host does not reach it */
};

struct vulkan_pipeline {
	struct vulkan_pipeline *next;
	struct key key;
	uint64_t pipeline;
	uint32_t frame_bytes, shared_bytes;
	bool cooperative;
};

/* At max. */
struct vulkan_limits {
	uint32_t push_bytes, allocations, shared_bytes, groups, invocations, group_size, subgroups;
	uint64_t allocation_bytes, buffer_bytes;
};
/* Without these not even a small model runs. */
enum { VULKAN_MIN_ALLOCATIONS = 64, VULKAN_MIN_BYTES = 512 << 10 };

/* What a driver says of a device. */
struct vulkan_facts {
	char name[128], driver[160];
	const struct target *target;
	uint32_t device_type, family; /* of queues */
	uint64_t bytes;               /* of its memory */
	struct vulkan_limits limits;
	bool rounds_to_even[2], preserves_nan[2], preserves_denorms[2]; /* of 32 and 64 bits */
	bool sizes_subgroups, atomics64;
	struct vulkan_memory_properties memory;
};

struct vulkan {
	struct device device;
	const struct vulkan_library *library;
	struct vulkan_device_api api;
	struct vulkan_facts is;
	void *physical, *logical, *queue;
	uint64_t layout, cache, pool, fence; /* of copies: pool and fence */
	pthread_mutex_t lock;                /* of the queue, the pool, the fence and the lists */
	struct vulkan_region *regions, *stage;
	struct vulkan_pipeline *pipelines;
	bool choice[SPIRV_CHOICES];
	double patience;
	uint32_t groups; /* of a launch, at most */
	bool stages;     /* tests: memory that the host could reach is copied to as if it could not */
	_Atomic uint32_t allocations;
	_Atomic uint64_t pending; /* the fence of work that did not end in time; 0: there is none */
	_Atomic bool lost;
	char lost_by[160];
};

/* vulkan.c */
struct vulkan *vulkan_open(unsigned number, struct error *err);
/* Sets err to what was being done and the result; a device that was lost says so from then on. Returns false. */
bool vulkan_failed(struct vulkan *d, int result, const char *what, struct error *err);
bool vulkan_alive(struct device *d, struct error *err);

/* Whether no work runs that did not end in time, so that what it may use can be given back. Waits so long, at most. */
bool vulkan_idle(struct vulkan *d, double seconds);

/* vulkan_limits.c */
void vulkan_read_limits(struct vulkan_limits *out, const struct vulkan_properties *p,
                        const struct vulkan_properties_11 *p11, const struct vulkan_properties_13 *p13);
/* Whether kernels for a target can be launched at all. False: err names the limit. */
bool vulkan_check_limits(const struct vulkan_limits *has, const struct target *t, struct error *err);
/* Of one region. */
uint64_t vulkan_max_bytes(const struct vulkan *d);
bool vulkan_check_bytes(const struct vulkan *d, uint64_t bytes, const char *what, struct error *err);
/* Of a plan whose kernels have their handles: whether its launches can be distributed. */
bool vulkan_check_units(const struct vulkan *d, const struct plan *p, struct error *err);

/* vulkan_memory.c */
void vulkan_set_memory(struct vulkan *d);
/* A region that the host reaches. NULL: err. */
struct vulkan_region *vulkan_map_region(struct vulkan *d, uint64_t bytes, const char *what, struct error *err);
struct vulkan_region *vulkan_make_region(struct vulkan *d, uint64_t bytes, bool mapped, const char *what,
                                         struct error *err);
void vulkan_free_region(struct vulkan *d, struct vulkan_region *r);
/* An argument as kernels need it. */
uint64_t vulkan_argument(struct vulkan *d, uint64_t value);
/* The region in which a name lies. Under the lock. */
struct vulkan_region *vulkan_region_of(struct vulkan *d, uint64_t name);

/* vulkan_copies.c */
void vulkan_set_copies(struct vulkan *d);
enum { VULKAN_STAGE_BYTES = 8 << 20 };
/* Of the buffer through which copies go. */
uint64_t vulkan_stage_bytes(const struct vulkan *d);
/* All of a region becomes zero. */
bool vulkan_zero(struct vulkan *d, struct vulkan_region *r, struct error *err);
/* Submits commands and waits for their end. Returns a result. */
int vulkan_run_commands(struct vulkan *d, void *commands, uint64_t fence);

/* vulkan_code.c */
/* A pipeline of a kernel, which the registry makes if it does not have it. NULL: err. */
const struct vulkan_pipeline *vulkan_pipeline(struct vulkan *d, struct registry *r, const struct key *key,
                                              struct error *err);
/* Of an object, with the device's choices. False: err. */
bool vulkan_make_pipeline(struct vulkan *d, const struct object *o, uint64_t *out, struct error *err);
void vulkan_free_pipelines(struct vulkan *d);

/* vulkan_stream.c */
struct stream *vulkan_stream(struct device *d, const struct stream_options *o, struct error *err);
/* How many workgroups units are distributed to, and how (launch.h). Returns them. */
uint32_t vulkan_share(const struct vulkan *d, bool cooperative, int64_t begin, int64_t end, struct spirv_launch *l);

/* vulkan_check.c: runs operations on the device and on the interpreter, and makes the device's choices by what differs.
 * False: err names the operation for which there is no choice. */
bool vulkan_check(struct vulkan *d, struct error *err);

#endif
