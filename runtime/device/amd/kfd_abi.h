/* runtime/device/amd/kfd_abi.h - what is agreed with Linux's amdkfd driver and with the packet processor of AMD cards.
 *
 * Owns: ioctl numbers and structs of /dev/kfd, versions 1.11 to 1.18, as far as this project uses them. Also the queue,
 * packet and signal that live in memory shared with a card. Never calls anything. The structs only ever grow at their
 * end: the driver takes a longer or a shorter one than its own, and reads what is missing as 0.
 */
#ifndef RUNTIME_KFD_ABI_H
#define RUNTIME_KFD_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define KFD_PATH "/dev/kfd"
#define KFD_TOPOLOGY_PATH "/sys/devices/virtual/kfd/kfd/topology"
#define KFD_RENDER_PATH "/dev/dri/renderD%d"

enum {
	KFD_MAJOR = 1,
	KFD_MINOR_MIN = 11,           /* Linux 5.19 */
	KFD_MINOR_RUNTIME_ENABLE = 13 /* from here on: KFD_RUNTIME_ENABLE */
};

struct kfd_version {
	uint32_t major, minor; /* out */
};

/* ---- queues */

enum { KFD_QUEUE_COMPUTE_AQL = 2, KFD_QUEUE_FULL_PERCENTAGE = 100, KFD_QUEUE_PRIORITY_NORMAL = 7 };

struct kfd_create_queue {
	uint64_t ring_address, write_pointer_address, read_pointer_address;
	uint64_t doorbell_offset; /* out: where to map /dev/kfd, and in the low bits the place within that */
	uint32_t ring_bytes, gpu_id, queue_type, percentage, priority;
	uint32_t queue_id; /* out */
	uint64_t eop_address, eop_bytes, cwsr_address;
	uint32_t cwsr_bytes, ctl_stack_bytes;
	uint32_t sdma_engine, reserved; /* since 1.17 */
};
struct kfd_destroy_queue {
	uint32_t queue_id, reserved;
};
enum { KFD_DOORBELL_BYTES = 0x2000 /* of a process, that are mapped together */, KFD_EOP_BYTES = 4096 };

/* ---- memory */

#define KFD_MEMORY_VRAM (UINT32_C(1) << 0)
#define KFD_MEMORY_GTT (UINT32_C(1) << 1)
#define KFD_MEMORY_USERPTR (UINT32_C(1) << 2)
#define KFD_MEMORY_DOORBELL (UINT32_C(1) << 3)
#define KFD_MEMORY_MMIO_REMAP (UINT32_C(1) << 4)
#define KFD_MEMORY_UNCACHED (UINT32_C(1) << 25)
#define KFD_MEMORY_COHERENT (UINT32_C(1) << 26)
#define KFD_MEMORY_AQL_QUEUE (UINT32_C(1) << 27)
#define KFD_MEMORY_NO_SUBSTITUTE (UINT32_C(1) << 28)
#define KFD_MEMORY_PUBLIC (UINT32_C(1) << 29) /* VRAM that the CPU can map: where all of it is visible alone */
#define KFD_MEMORY_EXECUTABLE (UINT32_C(1) << 30)
#define KFD_MEMORY_WRITABLE (UINT32_C(1) << 31)

struct kfd_acquire_vm {
	uint32_t drm_fd, gpu_id;
};
struct kfd_available_memory {
	uint64_t bytes; /* out */
	uint32_t gpu_id, reserved;
};
struct kfd_alloc_memory {
	uint64_t address, bytes;
	uint64_t handle;      /* out */
	uint64_t mmap_offset; /* of the render node: out; KFD_MEMORY_USERPTR: in, the CPU's address */
	uint32_t gpu_id, flags;
};
struct kfd_free_memory {
	uint64_t handle;
};
/* Of mapping and of unmapping. */
struct kfd_map_memory {
	uint64_t handle;
	uint64_t gpu_ids;           /* address of uint32_t[n_gpus] */
	uint32_t n_gpus, n_success; /* n_success: in and out, 0 at first */
};

/* ---- events */

enum kfd_event_type { KFD_EVENT_SIGNAL = 0, KFD_EVENT_HW_EXCEPTION = 3, KFD_EVENT_MEMORY = 8 };
enum { KFD_EVENT_SLOTS = 4096, KFD_EVENT_PAGE_BYTES = 8 * KFD_EVENT_SLOTS /* a slot is 64 bits */ };

struct kfd_create_event {
	uint64_t event_page;   /* in: the handle of the buffer of KFD_EVENT_PAGE_BYTES with the process's first event, 0
	                          with all others */
	uint32_t trigger_data; /* out, with signals: what an interrupt carries */
	uint32_t type, auto_reset, node_id;
	uint32_t event_id, slot; /* out */
};
struct kfd_event_id {
	uint32_t event_id, reserved;
}; /* of destroying, setting and resetting an event */

struct kfd_memory_fault {
	uint32_t not_present, read_only, no_execute, imprecise;
	uint64_t address;
	uint32_t gpu_id, error_type;
};
struct kfd_hw_exception {
	uint32_t reset_type; /* 0: of the whole card */
	uint32_t reset_cause /* enum kfd_reset_cause */, memory_lost, gpu_id;
};
enum kfd_reset_cause { KFD_RESET_HANG = 0, KFD_RESET_ECC = 1 };
struct kfd_event_data {
	union {
		struct kfd_memory_fault memory; /* out */
		struct kfd_hw_exception exception;
		uint64_t last_event_age; /* of a signal; since 1.14; in: 0: not tracked */
	};
	uint64_t extension; /* 0 */
	uint32_t event_id, reserved;
};
enum { KFD_WAIT_COMPLETE = 0, KFD_WAIT_TIMEOUT = 1, KFD_WAIT_FAIL = 2 };
struct kfd_wait_events {
	uint64_t events; /* address of struct kfd_event_data[n_events] */
	uint32_t n_events, wait_for_all;
	uint32_t timeout_ms;
	uint32_t result; /* out */
};

struct kfd_runtime_enable {
	uint64_t r_debug;
	uint32_t mode /* 1: enable */, capabilities;
};

#define KFD_GET_VERSION _IOR('K', 0x01, struct kfd_version)
#define KFD_CREATE_QUEUE _IOWR('K', 0x02, struct kfd_create_queue)
#define KFD_DESTROY_QUEUE _IOWR('K', 0x03, struct kfd_destroy_queue)
#define KFD_CREATE_EVENT _IOWR('K', 0x08, struct kfd_create_event)
#define KFD_DESTROY_EVENT _IOW('K', 0x09, struct kfd_event_id)
#define KFD_SET_EVENT _IOW('K', 0x0a, struct kfd_event_id)
#define KFD_RESET_EVENT _IOW('K', 0x0b, struct kfd_event_id)
#define KFD_WAIT_EVENTS _IOWR('K', 0x0c, struct kfd_wait_events)
#define KFD_ACQUIRE_VM _IOW('K', 0x15, struct kfd_acquire_vm)
#define KFD_ALLOC_MEMORY _IOWR('K', 0x16, struct kfd_alloc_memory)
#define KFD_FREE_MEMORY _IOW('K', 0x17, struct kfd_free_memory)
#define KFD_MAP_MEMORY _IOWR('K', 0x18, struct kfd_map_memory)
#define KFD_UNMAP_MEMORY _IOWR('K', 0x19, struct kfd_map_memory)
#define KFD_AVAILABLE_MEMORY _IOWR('K', 0x23, struct kfd_available_memory)
#define KFD_RUNTIME_ENABLE _IOWR('K', 0x25, struct kfd_runtime_enable)

/* ---- what a card's packet processor reads and writes */

/* A packet that starts a kernel. `header` is written last, in one store of 32 bits with `setup`. */
struct aql_dispatch {
	uint16_t header, setup /* how many dimensions */;
	uint16_t workgroup[3], reserved0;
	uint32_t grid[3]; /* in work items */
	uint32_t private_bytes, group_bytes /* LDS */;
	uint64_t kernel_object; /* address of the kernel's descriptor */
	uint64_t kernarg;       /* address, a multiple of 16 */
	uint64_t reserved1;
	uint64_t completion_signal; /* address of a struct aql_signal; 0: none */
};
enum { AQL_PACKET_BYTES = 64, AQL_TYPE_INVALID = 1, AQL_TYPE_DISPATCH = 2 };
enum { AQL_BARRIER = 1 << 8, AQL_ACQUIRE_SYSTEM = 2 << 9, AQL_RELEASE_SYSTEM = 2 << 11 };

/* A completion subtracts 1 from the value, writes the event's number to the mailbox and raises its interrupt. */
struct aql_signal {
	int64_t kind; /* 1 */
	int64_t value;
	uint64_t mailbox; /* address of the event's slot; 0: nobody waits for an event */
	uint32_t event_id, reserved0;
	uint64_t start, end; /* out: ticks of the card, with AQL_QUEUE_PROFILING */
	uint64_t queue;
	uint32_t reserved1[2];
};
enum { AQL_SIGNAL_USER = 1 };

/* amd_queue_t */
struct aql_queue {
	uint32_t type, features;
	uint64_t base, doorbell_signal;
	uint32_t packets /* that the ring holds */, reserved0;
	uint64_t id;
	uint32_t reserved1[4];
	uint64_t write_dispatch_id;
	uint32_t group_aperture_high, private_aperture_high;
	uint32_t max_cu_id, max_wave_id;
	uint64_t max_legacy_doorbell;
	uint32_t legacy_doorbell_lock, reserved2[9];
	uint64_t read_dispatch_id;
	uint32_t read_dispatch_id_offset; /* of read_dispatch_id, from this struct's first byte */
	uint32_t tmpring_size, scratch_descriptor[4];
	uint64_t scratch_address, scratch_bytes;
	uint32_t scratch_workitem_bytes;
	uint32_t properties;
	uint32_t reserved3[2];
	uint64_t inactive_signal;
	uint32_t reserved4[14];
};
enum { AQL_QUEUE_PTR64 = 1 << 1, AQL_QUEUE_PROFILING = 1 << 3 };

_Static_assert(sizeof(struct kfd_create_queue) == 96 && offsetof(struct kfd_create_queue, eop_address) == 56, "kfd");
_Static_assert(sizeof(struct kfd_alloc_memory) == 40 && sizeof(struct kfd_map_memory) == 24, "kfd");
_Static_assert(sizeof(struct kfd_create_event) == 32 && sizeof(struct kfd_wait_events) == 24, "kfd");
_Static_assert(sizeof(struct kfd_event_data) == 48 && offsetof(struct kfd_event_data, event_id) == 40, "kfd");
_Static_assert(sizeof(struct aql_dispatch) == AQL_PACKET_BYTES && sizeof(struct aql_signal) == 64, "aql");
_Static_assert(offsetof(struct aql_dispatch, kernel_object) == 32 && offsetof(struct aql_signal, start) == 32, "aql");
_Static_assert(sizeof(struct aql_queue) == 256 && offsetof(struct aql_queue, write_dispatch_id) == 0x38 &&
                       offsetof(struct aql_queue, read_dispatch_id) == 0x80 &&
                       offsetof(struct aql_queue, properties) == 0xb4,
               "amd_queue_t");

#endif
