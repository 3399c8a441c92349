/* runtime/device/vulkan/vulkan_api.h - what is used of Vulkan 1.3, declared from its specification: no header or
 * library of Vulkan is needed to build. The loader's library is opened when a device is asked for.
 *
 * Owns: numbers, structs and functions, under names of their own. Objects that a loader dispatches are pointers, others
 * numbers of 64 bits. Of structs of which only the beginning is read, room follows for the rest.
 */
#ifndef RUNTIME_VULKAN_API_H
#define RUNTIME_VULKAN_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum vulkan_result {
	VULKAN_SUCCESS = 0,
	VULKAN_NOT_READY = 1,
	VULKAN_TIMEOUT = 2,
	VULKAN_INCOMPLETE = 5,
	VULKAN_NO_HOST_MEMORY = -1,
	VULKAN_NO_DEVICE_MEMORY = -2,
	VULKAN_INITIALIZATION_FAILED = -3,
	VULKAN_DEVICE_LOST = -4,
	VULKAN_MEMORY_MAP_FAILED = -5,
	VULKAN_LAYER_NOT_PRESENT = -6,
	VULKAN_EXTENSION_NOT_PRESENT = -7,
	VULKAN_FEATURE_NOT_PRESENT = -8,
	VULKAN_INCOMPATIBLE_DRIVER = -9,
	VULKAN_TOO_MANY_OBJECTS = -10
};

enum vulkan_structure {
	VULKAN_APPLICATION_INFO = 0,
	VULKAN_INSTANCE_INFO = 1,
	VULKAN_QUEUE_INFO = 2,
	VULKAN_DEVICE_INFO = 3,
	VULKAN_SUBMIT_INFO = 4,
	VULKAN_ALLOCATE_INFO = 5,
	VULKAN_FENCE_INFO = 8,
	VULKAN_BUFFER_INFO = 12,
	VULKAN_MODULE_INFO = 16,
	VULKAN_CACHE_INFO = 17,
	VULKAN_STAGE_INFO = 18,
	VULKAN_COMPUTE_INFO = 29,
	VULKAN_LAYOUT_INFO = 30,
	VULKAN_POOL_INFO = 39,
	VULKAN_COMMANDS_INFO = 40,
	VULKAN_BEGIN_INFO = 42,
	VULKAN_MEMORY_BARRIER = 46,
	VULKAN_FEATURES_11 = 49,
	VULKAN_PROPERTIES_11 = 50,
	VULKAN_FEATURES_12 = 51,
	VULKAN_PROPERTIES_12 = 52,
	VULKAN_FEATURES_13 = 53,
	VULKAN_PROPERTIES_13 = 54,
	VULKAN_FEATURES = 1000059000,
	VULKAN_PROPERTIES = 1000059001,
	VULKAN_ALLOCATE_FLAGS_INFO = 1000060000,
	VULKAN_SUBGROUP_SIZE_INFO = 1000225001,
	VULKAN_ADDRESS_INFO = 1000244001
};

/* 1.3 of the interface. */
enum { VULKAN_API_1_3 = 1 << 22 | 3 << 12 };
enum { VULKAN_TYPE_OTHER, VULKAN_TYPE_INTEGRATED, VULKAN_TYPE_DISCRETE, VULKAN_TYPE_VIRTUAL, VULKAN_TYPE_CPU };
enum { VULKAN_QUEUE_COMPUTE = 2, VULKAN_STAGE_COMPUTE = 0x20 };
enum {
	VULKAN_USAGE_COPY_FROM = 1,
	VULKAN_USAGE_COPY_TO = 2,
	VULKAN_USAGE_STORAGE = 0x20,
	VULKAN_USAGE_ADDRESS = 0x20000
};
enum { VULKAN_MEMORY_LOCAL = 1, VULKAN_MEMORY_VISIBLE = 2, VULKAN_MEMORY_COHERENT = 4, VULKAN_MEMORY_CACHED = 8 };
enum { VULKAN_ALLOCATE_ADDRESS = 2, VULKAN_POOL_RESETS = 2, VULKAN_FULL_SUBGROUPS = 2 };
enum { VULKAN_AT_COMPUTE = 0x800, VULKAN_AT_TRANSFER = 0x1000, VULKAN_AT_HOST = 0x4000 };
enum {
	VULKAN_SHADER_READ = 0x20,
	VULKAN_SHADER_WRITE = 0x40,
	VULKAN_TRANSFER_READ = 0x800,
	VULKAN_TRANSFER_WRITE = 0x1000,
	VULKAN_HOST_READ = 0x2000,
	VULKAN_HOST_WRITE = 0x4000
};
/* Of subgroups: operations that are supported. */
enum { VULKAN_SUBGROUP_BASIC = 1, VULKAN_SUBGROUP_VOTE = 2, VULKAN_SUBGROUP_SHUFFLE = 16 };

struct vulkan_application_info {
	uint32_t type;
	const void *next;
	const char *name;
	uint32_t version;
	const char *engine;
	uint32_t engine_version, api_version;
};
struct vulkan_instance_info {
	uint32_t type;
	const void *next;
	uint32_t flags;
	const struct vulkan_application_info *application;
	uint32_t layers;
	const char *const *layer;
	uint32_t extensions;
	const char *const *extension;
};
struct vulkan_properties {
	uint32_t type;
	void *next;
	uint32_t api_version, driver_version, vendor, device, device_type;
	char name[256];
	uint8_t cache_uuid[16];
	uint32_t hole;
	uint32_t other_limits[8], push_bytes, allocations, other_counts[44]; /* of limits, which begin here */
	uint32_t shared_bytes, groups[3], invocations, group_sizes[3];
	uint64_t more[64]; /* the rest of them, and properties of sparse memory */
};
struct vulkan_properties_11 {
	uint32_t type;
	void *next;
	uint8_t device_uuid[16], driver_uuid[16], device_luid[8];
	uint32_t node_mask, luid_valid;
	uint32_t subgroup_size, subgroup_stages, subgroup_operations, quad_in_all_stages;
	uint32_t point_clipping, views, view_index, protected_no_fault, set_descriptors;
	uint64_t allocation_bytes;
};
/* By 16, 32 and 64 bits. */
struct vulkan_properties_12 {
	uint32_t type;
	void *next;
	uint32_t driver;
	char driver_name[256], driver_info[256];
	uint8_t conformance[4];
	uint32_t denorm_independence, rounding_independence;
	uint32_t preserves_nan[3], preserves_denorms[3], flushes_denorms[3], rounds_to_even[3], rounds_to_zero[3];
	uint64_t more[64];
};
struct vulkan_properties_13 {
	uint32_t type;
	void *next;
	uint32_t min_subgroup, max_subgroup, max_subgroups, subgroup_size_stages;
	uint32_t inline_blocks[6], fast_dots[30];
	uint64_t texel_alignments[4];
	uint64_t buffer_bytes;
	uint64_t more[8];
};
/* Features are bools; their places in the lists of the specification. */
enum { VULKAN_FLOAT64 = 39, VULKAN_INT64 = 40, VULKAN_FEATURES_N = 55 };
enum { VULKAN_STORAGE_16 = 0, VULKAN_FEATURES_11_N = 12 };
enum {
	VULKAN_STORAGE_8 = 2,
	VULKAN_ATOMICS_64 = 5,
	VULKAN_ADDRESSES = 38,
	VULKAN_MEMORY_MODEL = 41,
	VULKAN_FEATURES_12_N = 47
};
enum { VULKAN_SUBGROUP_SIZE = 7, VULKAN_WHOLE_SUBGROUPS = 8, VULKAN_DOT_PRODUCT = 13, VULKAN_FEATURES_13_N = 15 };
enum { VULKAN_FEATURE_LISTS = 4, VULKAN_FEATURES_MAX = 64 };
struct vulkan_features {
	uint32_t type;
	void *next;
	uint32_t has[VULKAN_FEATURES_MAX];
};
struct vulkan_memory_properties {
	uint32_t types;
	struct {
		uint32_t flags, heap;
	} memory_type[32];
	uint32_t heaps;
	struct {
		uint64_t bytes;
		uint32_t flags;
	} heap[16];
};
struct vulkan_queue_family {
	uint32_t flags, count, timestamp_bits, granularity[3];
};
struct vulkan_queue_info {
	uint32_t type;
	const void *next;
	uint32_t flags, family, count;
	const float *priority;
};
struct vulkan_device_info {
	uint32_t type;
	const void *next;
	uint32_t flags, queues;
	const struct vulkan_queue_info *queue;
	uint32_t layers;
	const char *const *layer;
	uint32_t extensions;
	const char *const *extension;
	const void *features;
};
struct vulkan_buffer_info {
	uint32_t type;
	const void *next;
	uint32_t flags;
	uint64_t bytes;
	uint32_t usage, sharing, families;
	const uint32_t *family;
};
struct vulkan_requirements {
	uint64_t bytes, alignment;
	uint32_t types;
};
struct vulkan_allocate_flags_info {
	uint32_t type;
	const void *next;
	uint32_t flags, devices;
};
struct vulkan_allocate_info {
	uint32_t type;
	const void *next;
	uint64_t bytes;
	uint32_t memory_type;
};
struct vulkan_address_info {
	uint32_t type;
	const void *next;
	uint64_t buffer;
};
struct vulkan_module_info {
	uint32_t type;
	const void *next;
	uint32_t flags;
	size_t bytes;
	const uint32_t *code;
};
struct vulkan_constant {
	uint32_t id, offset;
	size_t size;
};
struct vulkan_constants {
	uint32_t n;
	const struct vulkan_constant *constant;
	size_t bytes;
	const void *data;
};
struct vulkan_subgroup_size_info {
	uint32_t type;
	void *next;
	uint32_t size;
};
struct vulkan_stage_info {
	uint32_t type;
	const void *next;
	uint32_t flags, stage;
	uint64_t module;
	const char *name;
	const struct vulkan_constants *constants;
};
struct vulkan_compute_info {
	uint32_t type;
	const void *next;
	uint32_t flags;
	struct vulkan_stage_info stage;
	uint64_t layout, base;
	int32_t base_index;
};
struct vulkan_push_range {
	uint32_t stages, offset, bytes;
};
struct vulkan_layout_info {
	uint32_t type;
	const void *next;
	uint32_t flags, sets;
	const uint64_t *set;
	uint32_t ranges;
	const struct vulkan_push_range *range;
};
struct vulkan_cache_info {
	uint32_t type;
	const void *next;
	uint32_t flags;
	size_t bytes;
	const void *data;
};
struct vulkan_pool_info {
	uint32_t type;
	const void *next;
	uint32_t flags, family;
};
struct vulkan_commands_info {
	uint32_t type;
	const void *next;
	uint64_t pool;
	uint32_t level, count;
};
struct vulkan_begin_info {
	uint32_t type;
	const void *next;
	uint32_t flags;
	const void *inheritance;
};
struct vulkan_memory_barrier {
	uint32_t type;
	const void *next;
	uint32_t from, to;
};
struct vulkan_submit_info {
	uint32_t type;
	const void *next;
	uint32_t waits;
	const uint64_t *wait;
	const uint32_t *wait_stage;
	uint32_t buffers;
	void *const *buffer;
	uint32_t signals;
	const uint64_t *signal;
};
struct vulkan_fence_info {
	uint32_t type;
	const void *next;
	uint32_t flags;
};
struct vulkan_copy {
	uint64_t from, to, bytes;
};

/* X(member, name, result, arguments): those of an instance, then those of a device. Allocators are always NULL. */
/* clang-format off */
#define VULKAN_INSTANCE_FUNCTIONS(X) \
	X(destroy_instance, "vkDestroyInstance", void, (void *instance, const void *)) \
	X(devices, "vkEnumeratePhysicalDevices", int, (void *instance, uint32_t *n, void **device)) \
	X(properties, "vkGetPhysicalDeviceProperties2", void, (void *device, struct vulkan_properties *out)) \
	X(features, "vkGetPhysicalDeviceFeatures2", void, (void *device, struct vulkan_features *out)) \
	X(memory_properties, "vkGetPhysicalDeviceMemoryProperties", void, \
	  (void *device, struct vulkan_memory_properties *out)) \
	X(queue_families, "vkGetPhysicalDeviceQueueFamilyProperties", void, \
	  (void *device, uint32_t *n, struct vulkan_queue_family *out)) \
	X(create_device, "vkCreateDevice", int, \
	  (void *device, const struct vulkan_device_info *info, const void *, void **out))
#define VULKAN_DEVICE_FUNCTIONS(X) \
	X(destroy_device, "vkDestroyDevice", void, (void *d, const void *)) \
	X(queue, "vkGetDeviceQueue", void, (void *d, uint32_t family, uint32_t number, void **out)) \
	X(create_buffer, "vkCreateBuffer", int, \
	  (void *d, const struct vulkan_buffer_info *info, const void *, uint64_t *out)) \
	X(destroy_buffer, "vkDestroyBuffer", void, (void *d, uint64_t buffer, const void *)) \
	X(requirements, "vkGetBufferMemoryRequirements", void, \
	  (void *d, uint64_t buffer, struct vulkan_requirements *out)) \
	X(allocate, "vkAllocateMemory", int, \
	  (void *d, const struct vulkan_allocate_info *info, const void *, uint64_t *out)) \
	X(free_memory, "vkFreeMemory", void, (void *d, uint64_t memory, const void *)) \
	X(bind, "vkBindBufferMemory", int, (void *d, uint64_t buffer, uint64_t memory, uint64_t offset)) \
	X(map, "vkMapMemory", int, \
	  (void *d, uint64_t memory, uint64_t offset, uint64_t bytes, uint32_t flags, void **out)) \
	X(address, "vkGetBufferDeviceAddress", uint64_t, (void *d, const struct vulkan_address_info *info)) \
	X(create_module, "vkCreateShaderModule", int, \
	  (void *d, const struct vulkan_module_info *info, const void *, uint64_t *out)) \
	X(destroy_module, "vkDestroyShaderModule", void, (void *d, uint64_t module, const void *)) \
	X(create_layout, "vkCreatePipelineLayout", int, \
	  (void *d, const struct vulkan_layout_info *info, const void *, uint64_t *out)) \
	X(destroy_layout, "vkDestroyPipelineLayout", void, (void *d, uint64_t layout, const void *)) \
	X(create_cache, "vkCreatePipelineCache", int, \
	  (void *d, const struct vulkan_cache_info *info, const void *, uint64_t *out)) \
	X(destroy_cache, "vkDestroyPipelineCache", void, (void *d, uint64_t cache, const void *)) \
	X(create_pipelines, "vkCreateComputePipelines", int, \
	  (void *d, uint64_t cache, uint32_t n, const struct vulkan_compute_info *info, const void *, uint64_t *out)) \
	X(destroy_pipeline, "vkDestroyPipeline", void, (void *d, uint64_t pipeline, const void *)) \
	X(create_pool, "vkCreateCommandPool", int, \
	  (void *d, const struct vulkan_pool_info *info, const void *, uint64_t *out)) \
	X(destroy_pool, "vkDestroyCommandPool", void, (void *d, uint64_t pool, const void *)) \
	X(allocate_commands, "vkAllocateCommandBuffers", int, \
	  (void *d, const struct vulkan_commands_info *info, void **out)) \
	X(free_commands, "vkFreeCommandBuffers", void, (void *d, uint64_t pool, uint32_t n, void *const *commands)) \
	X(begin, "vkBeginCommandBuffer", int, (void *commands, const struct vulkan_begin_info *info)) \
	X(end, "vkEndCommandBuffer", int, (void *commands)) \
	X(bind_pipeline, "vkCmdBindPipeline", void, (void *commands, uint32_t point, uint64_t pipeline)) \
	X(push, "vkCmdPushConstants", void, \
	  (void *commands, uint64_t layout, uint32_t stages, uint32_t offset, uint32_t bytes, const void *data)) \
	X(dispatch, "vkCmdDispatch", void, (void *commands, uint32_t x, uint32_t y, uint32_t z)) \
	X(copy, "vkCmdCopyBuffer", void, \
	  (void *commands, uint64_t from, uint64_t to, uint32_t n, const struct vulkan_copy *part)) \
	X(fill, "vkCmdFillBuffer", void, \
	  (void *commands, uint64_t buffer, uint64_t offset, uint64_t bytes, uint32_t word)) \
	X(barrier, "vkCmdPipelineBarrier", void, \
	  (void *commands, uint32_t from, uint32_t to, uint32_t flags, uint32_t n, \
	   const struct vulkan_memory_barrier *barrier, uint32_t, const void *, uint32_t, const void *)) \
	X(submit, "vkQueueSubmit", int, \
	  (void *queue, uint32_t n, const struct vulkan_submit_info *info, uint64_t fence)) \
	X(create_fence, "vkCreateFence", int, \
	  (void *d, const struct vulkan_fence_info *info, const void *, uint64_t *out)) \
	X(destroy_fence, "vkDestroyFence", void, (void *d, uint64_t fence, const void *)) \
	X(reset_fences, "vkResetFences", int, (void *d, uint32_t n, const uint64_t *fence)) \
	X(wait_fences, "vkWaitForFences", int, \
	  (void *d, uint32_t n, const uint64_t *fence, uint32_t all, uint64_t nanoseconds))
/* clang-format on */

#define VULKAN_MEMBER(member, name, result, arguments) result(*member) arguments;
struct vulkan_instance_api {
	VULKAN_INSTANCE_FUNCTIONS(VULKAN_MEMBER)
};
struct vulkan_device_api {
	VULKAN_DEVICE_FUNCTIONS(VULKAN_MEMBER)
};
#undef VULKAN_MEMBER

/* The loader, and an instance of this process. They stay until the process ends: drivers start threads and keep what a
 * second instance would need again. NULL: err. */
struct vulkan_library {
	void *instance;
	struct vulkan_instance_api api;
	void *(*find)(void *instance, const char *name);
};
const struct vulkan_library *vulkan_library(struct error *err);
/* Finds a device's functions. False: err. */
bool vulkan_find_functions(struct vulkan_device_api *api, const struct vulkan_library *library, struct error *err);
/* What a result says: "out of the device's memory". */
const char *vulkan_result_text(int result);

#endif
