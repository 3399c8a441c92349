/* tests/fake_kfd/abi.h - what goes through ioctl() between a program and the driver for Radeon cards, as the fake
 * driver knows it.
 *
 * Owned by the fake alone: it is the judge of the header that the runtime includes, so neither includes the other.
 * Structs only grow at their end; the table in ioctls.c has every size that a version of the driver knew.
 */
#ifndef FAKE_KFD_ABI_H
#define FAKE_KFD_ABI_H

#include <stdint.h>

enum {
	NR_GET_VERSION = 0x01,
	NR_CREATE_QUEUE = 0x02,
	NR_DESTROY_QUEUE = 0x03,
	NR_SET_MEMORY_POLICY = 0x04,
	NR_GET_CLOCK_COUNTERS = 0x05,
	NR_UPDATE_QUEUE = 0x07,
	NR_CREATE_EVENT = 0x08,
	NR_DESTROY_EVENT = 0x09,
	NR_SET_EVENT = 0x0a,
	NR_RESET_EVENT = 0x0b,
	NR_WAIT_EVENTS = 0x0c,
	NR_SET_SCRATCH_BACKING_VA = 0x11,
	NR_SET_TRAP_HANDLER = 0x13,
	NR_GET_PROCESS_APERTURES = 0x14,
	NR_ACQUIRE_VM = 0x15,
	NR_ALLOC_MEMORY = 0x16,
	NR_FREE_MEMORY = 0x17,
	NR_MAP_MEMORY = 0x18,
	NR_UNMAP_MEMORY = 0x19,
	NR_SET_XNACK_MODE = 0x21,
	NR_AVAILABLE_MEMORY = 0x23,
	NR_RUNTIME_ENABLE = 0x25,
	NR_COUNT = 0x28
};

struct io_version {
	uint32_t major, minor;
};
struct io_create_queue {
	uint64_t ring, write_pointer, read_pointer, doorbell_offset;
	uint32_t ring_size, gpu_id, type, percentage, priority, queue_id;
	uint64_t eop, eop_size, save;
	uint32_t save_size, control_size;
	uint32_t sdma_engine, pad; /* since 1.17 */
};
struct io_queue_id {
	uint32_t queue_id, pad;
};
struct io_create_event {
	uint64_t page_offset;
	uint32_t trigger_data, type, auto_reset, node_id, event_id, slot;
};
struct io_event_id {
	uint32_t event_id, pad;
};
struct io_event_data {
	union {
		struct {
			uint32_t not_present, read_only, no_execute, imprecise;
			uint64_t address;
			uint32_t gpu_id, error_type;
		} memory;
		struct {
			uint32_t reset_type, reset_cause, memory_lost, gpu_id;
		} exception;
		uint64_t last_age; /* of a signal event; since 1.14 */
	};
	uint64_t extension;
	uint32_t event_id, pad;
};
struct io_wait_events {
	uint64_t events;
	uint32_t n, all, timeout, result;
};
struct io_aperture {
	uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
	uint32_t gpu_id, pad;
};
struct io_apertures {
	uint64_t list;
	uint32_t n, pad;
};
struct io_acquire_vm {
	uint32_t drm_fd, gpu_id;
};
struct io_alloc {
	uint64_t address, size, handle, mmap_offset;
	uint32_t gpu_id, flags;
};
struct io_free {
	uint64_t handle;
};
struct io_map {
	uint64_t handle, devices;
	uint32_t n, done;
};
struct io_available {
	uint64_t bytes;
	uint32_t gpu_id, pad;
};
struct io_clocks {
	uint64_t gpu, cpu, system, frequency;
	uint32_t gpu_id, pad;
};
struct io_runtime {
	uint64_t debug;
	uint32_t mode, capabilities;
};

enum {
	MEM_VRAM = 1u << 0,
	MEM_GTT = 1u << 1,
	MEM_USERPTR = 1u << 2,
	MEM_DOORBELL = 1u << 3,
	MEM_MMIO_REMAP = 1u << 4,
	MEM_KINDS = 0x1f,
	MEM_CONTIGUOUS = 1u << 23,
	MEM_EXT_COHERENT = 1u << 24,
	MEM_UNCACHED = 1u << 25,
	MEM_COHERENT = 1u << 26,
	MEM_AQL_QUEUE = 1u << 27,
	MEM_NO_SUBSTITUTE = 1u << 28,
	MEM_PUBLIC = 1u << 29,
	MEM_EXECUTABLE = 1u << 30
};
#define MEM_WRITABLE (1u << 31)
#define MEM_KNOWN \
	(MEM_KINDS | MEM_CONTIGUOUS | MEM_EXT_COHERENT | MEM_UNCACHED | MEM_COHERENT | MEM_AQL_QUEUE | \
	 MEM_NO_SUBSTITUTE | MEM_PUBLIC | MEM_EXECUTABLE | MEM_WRITABLE)

enum { EVENT_SIGNAL = 0, EVENT_HW_EXCEPTION = 3, EVENT_DEBUG = 5, EVENT_MEMORY = 8 };
enum { EVENTS_MAX = 4096, EVENT_FIRST_OTHER = 0x40000000 };
enum { WAIT_COMPLETE, WAIT_TIMEOUT, WAIT_FAIL };
enum { QUEUE_COMPUTE, QUEUE_SDMA, QUEUE_AQL };

/* Offsets for mmap() on /dev/kfd: what it is, and of which card. */
#define MMAP_DOORBELL (3ull << 62)
#define MMAP_EVENTS (2ull << 62)
#define MMAP_REMAP (0ull << 62)
#define MMAP_KIND(offset) ((offset) >> 62)
#define MMAP_GPU(gpu_id) ((uint64_t)(gpu_id) << 46)
#define MMAP_GPU_OF(offset) ((uint32_t)((offset) >> 46 & 0xffff))

/* AQL. A packet has 64 bytes. */
enum { PACKET_VENDOR, PACKET_INVALID, PACKET_DISPATCH, PACKET_BARRIER_AND, PACKET_AGENT, PACKET_BARRIER_OR };
enum { SCOPE_NONE, SCOPE_AGENT, SCOPE_SYSTEM };
struct aql_dispatch {
	uint16_t header, setup, group_size[3], reserved0;
	uint32_t grid_size[3], private_size, lds_size;
	uint64_t kernel, kernarg, reserved1, signal;
};
struct aql_barrier {
	uint16_t header, reserved0;
	uint32_t reserved1;
	uint64_t dependency[5], reserved2, signal;
};
struct aql_signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event_id, reserved1;
	uint64_t start, end, queue;
	uint32_t reserved2[2];
};
/* The queue's struct in memory: where the driver is told the write and read pointers are. */
enum {
	QUEUE_WRITE_AT = 0x38,
	QUEUE_MAX_CU_AT = 0x48,
	QUEUE_READ_AT = 0x80,
	QUEUE_READ_OFFSET_AT = 0x88,
	QUEUE_PROPERTIES_AT = 0xb4,
	QUEUE_POINTERS_64 = 1 << 1
};

_Static_assert(sizeof(struct io_create_queue) == 96, "with what 1.17 added");
_Static_assert(sizeof(struct io_event_data) == 48, "");
_Static_assert(sizeof(struct io_alloc) == 40, "");
_Static_assert(sizeof(struct aql_dispatch) == 64 && sizeof(struct aql_barrier) == 64 && sizeof(struct aql_signal) == 64,
               "");

#endif
