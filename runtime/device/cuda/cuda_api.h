/* runtime/device/cuda/cuda_api.h - the functions of NVIDIA's driver library that are used, found in it by name.
 *
 * Owns: their types, written from the driver API's manual, and constants of it. No header of NVIDIA's is needed. Who
 * has such a table can do without the library: a simulated card has one of its own (cuda_simulated.c).
 */
#ifndef RUNTIME_CUDA_API_H
#define RUNTIME_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct cuda_launch_attribute {
	uint32_t id, pad;
	union {
		int32_t value;
		uint8_t bytes[64];
	} of;
};
struct cuda_launch_config {
	uint32_t grid[3], block[3], shared_bytes;
	void *stream;
	struct cuda_launch_attribute *attribute;
	uint32_t n_attributes;
};
_Static_assert(sizeof(struct cuda_launch_attribute) == 72, "as the driver has it");
_Static_assert(sizeof(struct cuda_launch_config) == 56, "as the driver has it");

/* Memory apart from addresses: of a card's memory, and who may reach it. */
struct cuda_location {
	int32_t type, card;
};
struct cuda_memory {
	int32_t type, shared_as;
	struct cuda_location location;
	void *none;
	uint8_t flags[8];
};
struct cuda_reach {
	struct cuda_location location;
	int32_t flags;
};
_Static_assert(sizeof(struct cuda_memory) == 32, "as the driver has it");
_Static_assert(sizeof(struct cuda_reach) == 12, "as the driver has it");

/* clang-format off */
/*     member, its name in the library, its arguments, their names; all return a result, 0: success */
#define CUDA_FUNCTIONS(X) \
	X(init, "cuInit", (uint32_t flags), (flags)) \
	X(driver_version, "cuDriverGetVersion", (int *version), (version)) \
	X(device_count, "cuDeviceGetCount", (int *n), (n)) \
	X(device_get, "cuDeviceGet", (int *device, int ordinal), (device, ordinal)) \
	X(device_name, "cuDeviceGetName", (char *name, int size, int device), (name, size, device)) \
	X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device), \
	  (value, attribute, device)) \
	X(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, int device), (bytes, device)) \
	X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device), (context, device)) \
	X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device), (device)) \
	X(context_set, "cuCtxSetCurrent", (void *context), (context)) \
	X(memory_info, "cuMemGetInfo_v2", (size_t *free_bytes, size_t *bytes), (free_bytes, bytes)) \
	X(memory_alloc, "cuMemAlloc_v2", (uint64_t *address, size_t bytes), (address, bytes)) \
	X(memory_free, "cuMemFree_v2", (uint64_t address), (address)) \
	X(peer_reached, "cuDeviceCanAccessPeer", (int *can, int device, int peer), (can, device, peer)) \
	X(addresses_take, "cuMemAddressReserve", \
	  (uint64_t *address, size_t bytes, size_t alignment, uint64_t wanted, unsigned long long flags), \
	  (address, bytes, alignment, wanted, flags)) \
	X(addresses_leave, "cuMemAddressFree", (uint64_t address, size_t bytes), (address, bytes)) \
	X(granule_bytes, "cuMemGetAllocationGranularity", (size_t *bytes, const struct cuda_memory *m, int option), \
	  (bytes, m, option)) \
	X(memory_create, "cuMemCreate", \
	  (uint64_t *handle, size_t bytes, const struct cuda_memory *m, unsigned long long flags), \
	  (handle, bytes, m, flags)) \
	X(memory_release, "cuMemRelease", (uint64_t handle), (handle)) \
	X(memory_map, "cuMemMap", \
	  (uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags), \
	  (address, bytes, offset, handle, flags)) \
	X(memory_unmap, "cuMemUnmap", (uint64_t address, size_t bytes), (address, bytes)) \
	X(memory_reach, "cuMemSetAccess", (uint64_t address, size_t bytes, const struct cuda_reach *r, size_t n), \
	  (address, bytes, r, n)) \
	X(host_alloc, "cuMemHostAlloc", (void **p, size_t bytes, uint32_t flags), (p, bytes, flags)) \
	X(host_free, "cuMemFreeHost", (void *p), (p)) \
	X(copy_to, "cuMemcpyHtoD_v2", (uint64_t to, const void *from, size_t bytes), (to, from, bytes)) \
	X(copy_from, "cuMemcpyDtoH_v2", (void *to, uint64_t from, size_t bytes), (to, from, bytes)) \
	X(copy_to_later, "cuMemcpyHtoDAsync_v2", (uint64_t to, const void *from, size_t bytes, void *stream), \
	  (to, from, bytes, stream)) \
	X(copy_from_later, "cuMemcpyDtoHAsync_v2", (void *to, uint64_t from, size_t bytes, void *stream), \
	  (to, from, bytes, stream)) \
	X(set_bytes, "cuMemsetD8_v2", (uint64_t to, uint8_t value, size_t bytes), (to, value, bytes)) \
	X(set_words_later, "cuMemsetD32Async", (uint64_t to, uint32_t value, size_t n, void *stream), \
	  (to, value, n, stream)) \
	X(link_create, "cuLinkCreate_v2", (uint32_t n, int *options, void **values, void **state), \
	  (n, options, values, state)) \
	X(link_add, "cuLinkAddData_v2", (void *state, int type, void *data, size_t bytes, const char *name, \
	                               uint32_t n, int *options, void **values), \
	  (state, type, data, bytes, name, n, options, values)) \
	X(link_complete, "cuLinkComplete", (void *state, void **cubin, size_t *bytes), (state, cubin, bytes)) \
	X(link_destroy, "cuLinkDestroy", (void *state), (state)) \
	X(module_load, "cuModuleLoadData", (void **module, const void *image), (module, image)) \
	X(module_unload, "cuModuleUnload", (void *module), (module)) \
	X(module_function, "cuModuleGetFunction", (void **function, void *module, const char *name), \
	  (function, module, name)) \
	X(function_set, "cuFuncSetAttribute", (void *function, int attribute, int value), \
	  (function, attribute, value)) \
	X(function_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", \
	  (int *n, void *function, int threads, size_t shared_bytes), \
	  (n, function, threads, shared_bytes)) \
	X(launch, "cuLaunchKernelEx", \
	  (const struct cuda_launch_config *c, void *function, void **params, void **extra), \
	  (c, function, params, extra)) \
	X(stream_create, "cuStreamCreate", (void **stream, uint32_t flags), (stream, flags)) \
	X(stream_destroy, "cuStreamDestroy_v2", (void *stream), (stream)) \
	X(stream_wait, "cuStreamSynchronize", (void *stream), (stream)) \
	X(stream_query, "cuStreamQuery", (void *stream), (stream)) \
	X(stream_wait_event, "cuStreamWaitEvent", (void *stream, void *event, uint32_t flags), \
	  (stream, event, flags)) \
	X(event_create, "cuEventCreate", (void **event, uint32_t flags), (event, flags)) \
	X(event_destroy, "cuEventDestroy_v2", (void *event), (event)) \
	X(event_record, "cuEventRecordWithFlags", (void *event, void *stream, uint32_t flags), \
	  (event, stream, flags)) \
	X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, void *start, void *end), \
	  (milliseconds, start, end)) \
	X(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode), (stream, mode)) \
	X(capture_end, "cuStreamEndCapture", (void *stream, void **graph), (stream, graph)) \
	X(graph_instantiate, "cuGraphInstantiateWithFlags", (void **exec, void *graph, unsigned long long flags), \
	  (exec, graph, flags)) \
	X(graph_launch, "cuGraphLaunch", (void *exec, void *stream), (exec, stream)) \
	X(graph_exec_destroy, "cuGraphExecDestroy", (void *exec), (exec)) \
	X(graph_destroy, "cuGraphDestroy", (void *graph), (graph)) \
	X(error_name, "cuGetErrorName", (int result, const char **name), (result, name)) \
	X(error_text, "cuGetErrorString", (int result, const char **text), (result, text))
/* clang-format on */

struct cuda_api {
#define X(member, name, arguments, passed) int(*member) arguments;
	CUDA_FUNCTIONS(X)
#undef X
};

enum {
	CUDA_INVALID = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_NO_DEVICE = 100,
	CUDA_DEVICE_UNAVAILABLE = 46,
	CUDA_INVALID_PTX = 218,
	CUDA_UNSUPPORTED_PTX = 222,
	CUDA_NOT_READY = 600,
	CUDA_GIVEN_UP = -1, /* not the driver's: it is asked nothing any more (cuda_watch.c) */
	/* attributes of devices */
	CUDA_CLOCK = 13, /* in kHz, as are those of the memory */
	CUDA_UNITS = 16,
	CUDA_MEMORY_CLOCK = 36,
	CUDA_MEMORY_WIDTH = 37, /* bits of its bus */
	CUDA_CACHE = 38,        /* bytes of the L2 cache */
	CUDA_MAJOR = 75,
	CUDA_MINOR = 76,
	CUDA_SHARED_MAX = 97,
	/* options of the linker, and what it is given */
	CUDA_ERROR_LOG = 5,
	CUDA_ERROR_LOG_BYTES = 6,
	CUDA_INPUT_PTX = 1,
	/* memory of the host: for all contexts, reached by the card */
	CUDA_HOST_PORTABLE = 1,
	CUDA_HOST_MAPPED = 2,
	/* of a card; the kind of its memory; read and written */
	CUDA_LOCATION_CARD = 1,
	CUDA_MEMORY_PINNED = 1,
	CUDA_REACH_ALL = 3,
	CUDA_EVENT_NO_TIME = 2, /* it orders, and has no time */
	CUDA_STREAM_APART = 1,  /* from the default stream */
	CUDA_CAPTURE_THREAD = 1,
	CUDA_EVENT_IN_GRAPH = 1,  /* while recording: the event is recorded whenever the graph runs */
	CUDA_FUNCTION_SHARED = 8, /* bytes of shared memory a launch may ask for */
	CUDA_LAUNCH_TOGETHER = 2, /* all blocks live at once */
	CUDA_LAUNCH_OVERLAPS = 6, /* the next launch may begin before this one has ended */
	CUDA_MIN_DRIVER = 12000,
	CUDA_OVERLAPS_IN_GRAPHS = 12030
};

/* The library of this machine, opened once and kept; the driver is initialised. NULL: err says whether it is the
 * library that is missing, the driver that is too old, or that there is no card. */
const struct cuda_api *cuda_library(struct error *err);
/* "out of memory (CUDA_ERROR_OUT_OF_MEMORY)". Returns out. */
char *cuda_result_text(const struct cuda_api *api, int result, char *out, size_t size);

#endif
