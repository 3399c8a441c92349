/* runtime/device/amd/amd.h - a real Radeon card as a device, through the kernel's driver alone: what its files share.
 *
 * Owns: the struct, and who does what: amd.c has the device and its streams, amd_memory.c memory and copies,
 * amd_queue.c the queue of packets. amd_watch.c waits for a launch and says what went wrong with it, amd_code.c copies
 * code objects into the card's memory. amd_lock.c takes turns with other processes, amd_predict.c says how long an op
 * will take.
 */
#ifndef RUNTIME_AMD_H
#define RUNTIME_AMD_H

#include <pthread.h>

#include "runtime/device/card.h"
#include "runtime/device/amd/kfd.h"

/* ---- amd_queue.c */

/* Of the areas that belong to a compute queue, as the driver reckons them. */
struct amd_queue_sizes {
	uint64_t ctl_stack, cwsr; /* as CREATE_QUEUE is told; cwsr includes ctl_stack */
	uint64_t save_area;       /* of the buffer that holds both, and what a debugger gets */
};
enum { AMD_VGPR_SMALL = 0x40000, AMD_VGPR_LARGE = 0x60000 }; /* bytes of vector registers of a compute unit */
uint32_t amd_vgpr_bytes(uint32_t gfx_version);
struct amd_queue_sizes amd_queue_sizes(uint32_t gfx_version, uint32_t units, uint32_t vgpr_bytes);

enum { AMD_QUEUE_PACKETS = 256 };
struct amd_queue {
	struct kfd_buffer ring, pointers, eop, save_area, signal_page, kernargs;
	struct kfd_event completed, fault, exception;
	struct aql_queue *shared;
	struct aql_signal *signal;
	struct kfd_queue made; /* by a library, with an end-of-pipe buffer and a save area of its own */
	void *doorbells;
	volatile uint64_t *doorbell;
	uint32_t id;
	bool exists;
	uint64_t written; /* packets */
};

/* ---- amd_code.c */

struct amd_kernel {
	uint64_t descriptor;
	uint32_t vgprs, lds, kernarg_bytes;
	uint32_t waves; /* of a workgroup; 0: RDNA_PROGRAM_WAVES */
};
struct amd_code {
	struct kfd_buffer buffer;
};

/* ---- amd_memory.c */

/* On its way to memory that the host does not reach. */
struct amd_copy {
	uint64_t to, from, bytes;
};
enum { AMD_COPIES = 64 };
struct amd_staging {
	struct kfd_buffer buffer;
	size_t used;
	struct amd_copy waiting[AMD_COPIES];
	size_t n;
};

struct amd_region {
	struct amd_region *next;
	struct kfd_buffer buffer;
	const char *name;
};

/* ---- the device */

struct amd {
	struct device device;
	struct amd_card card;
	struct kfd_card kfd;
	pthread_mutex_t lock; /* of everything below: streams take turns with whole passes, others with copies */
	struct amd_queue queue;
	struct amd_staging staging;
	struct amd_code copy_code;
	struct amd_kernel copy_vectors, copy_bytes;
	struct amd_region *regions;
	struct kfd_buffer flush;        /* of what the host wrote into VRAM; no address: it writes there never */
	struct kfd_buffer sync, mirror; /* struct rdna_program_sync, and what the host reads of it */
	uint32_t arrivals;              /* what sync shows */
	bool in_place;                  /* the host reaches all memory */
	int lock_file, queue_file;      /* -1: not open */
	double patience;                /* seconds, at least, before a launch is given up */
	struct error dead;              /* code not 0: nothing is launched any more */
	atomic_bool is_dead;            /* dead is written */
	bool silent; /* nor anything given back, for the driver would wait for a card that does not answer: it clears
	                away what is left when the process ends */
};

/* What a launch is, for the sentence if it goes wrong. */
struct amd_launch {
	const struct card_stream *stream;
	const struct card_plan *plan; /* NULL: it is `what`, or a copy */
	const char *what;
	size_t first, end;
	double seconds; /* predicted */
};

/* amd_queue.c. False: err, and amd_queue_close() is still due. */
bool amd_queue_open(struct amd *d, struct error *err);
void amd_queue_close(struct amd *d);
/* Where the arguments of the next packet go. */
void *amd_queue_kernarg(struct amd *d);
/* Writes the next packet; `last`: its completion is signalled, and the card is told. */
void amd_queue_put(struct amd *d, const struct amd_kernel *k, uint32_t workgroups, bool last);

/* amd_watch.c: waits for the signal of the packet that was put last. False: err, and the device is dead. */
bool amd_wait(struct amd *d, const struct amd_launch *l, struct error *err);
/* How long a launch may take that is predicted to take so long. */
/* As device.h has it. */
bool amd_alive(struct device *device, struct error *err);
double amd_deadline(const struct amd *d, double seconds);
/* Whether anything may be launched yet. */
bool amd_is_alive(const struct amd *d, struct error *err);

/* amd_lock.c: one process at a time launches. False: err. cancel: who may end the wait for another process; NULL:
 * nobody.
 */
bool amd_lock_open(struct amd *d, struct error *err);
void amd_lock_close(struct amd *d);
bool amd_lock_take(struct amd *d, const struct cancel *cancel, struct error *err);
void amd_lock_give(struct amd *d);

/* amd_code.c: copies a code object of our own making into the card's memory. */
bool amd_code_load(struct amd *d, struct amd_code *out, const uint8_t *elf, size_t size, struct error *err);
void amd_code_unload(struct amd *d, struct amd_code *c);
/* The kernel of that name, in the object that was loaded there. */
bool amd_code_find(const struct amd_code *c, const uint8_t *elf, size_t size, const char *kernel,
                   struct amd_kernel *out, struct error *err);

/* amd_memory.c. All under the device's lock, but the first four, which take it. */
void *amd_alloc(struct device *d, size_t bytes, enum device_memory what, struct error *err);
void amd_release(struct device *d, void *p, size_t bytes);
bool amd_upload(struct device *d, void *to, const void *from, size_t bytes, struct error *err);
bool amd_read(struct device *d, void *to, const void *from, size_t bytes, struct error *err);
bool amd_available(struct device *d, uint64_t *bytes);
bool amd_memory_open(struct amd *d, struct error *err);
void amd_memory_close(struct amd *d);
/* Memory of the card itself, of zeroes. */
bool amd_vram(struct amd *d, struct kfd_buffer *out, size_t bytes, uint32_t more_flags, const char *what,
              struct error *err);
/* Memory of the host that the card reads and writes, of zeroes. */
bool amd_host_memory(struct amd *d, struct kfd_buffer *out, size_t bytes, uint32_t more_flags, const char *what,
                     struct error *err);
/* After what is on its way there; of a silent card nothing. */
void amd_free(struct amd *d, struct kfd_buffer *b);
bool amd_write(struct amd *d, void *to, const void *from, size_t bytes, struct error *err);
/* Puts packets that copy; the caller signals and waits, or puts more. */
void amd_put_copy(struct amd *d, uint64_t to, uint64_t from, uint64_t bytes, bool last);
/* What the host wrote is where the card finds it: before a launch. */
bool amd_flush(struct amd *d, struct error *err);
/* The name of the memory an address is in, or nearest to. */
const struct amd_region *amd_region_near(const struct amd *d, uint64_t address, bool *inside);

/* amd.c: what opens before the card runs anything. False: err; in any case *d is to be closed by amd_close_card(). */
bool amd_open_queue(struct amd *d, const char *which, struct error *err);
void amd_close_card(struct device *device);

/* amd_predict.c: seconds. */
double amd_predict(const struct amd_card *card, const struct plan *p, size_t op);

#endif
