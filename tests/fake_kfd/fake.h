/* tests/fake_kfd/fake.h - a driver for Radeon cards that are not there: /dev/kfd, /dev/dri and their part of /sys, for
 * the program that this library is preloaded into. Its cards run what they are given in the simulator (sim/).
 *
 * It refuses what the real driver refuses, with the same error numbers, and keeps the same accounts of memory. What a
 * real card would answer with a hang or with wrong numbers it does not forgive either: the queue stops, or a memory
 * fault is signalled. Everything it objects to it says in one line of $FAKE_KFD_LOG (else on the error output), so a
 * program is right when it works and the log stays empty.
 *
 * The environment describes the cards and what goes wrong:
 *
 * - FAKE_KFD: cards, separated by commas, each a target and settings: "gfx1030 vram=8192 bar=small cus=4,gfx1201".
 *   MiB of vram, gtt and used (by others); bar=small or large; cus; kfd=11 to 18, the driver's minor version, of the
 *   first card; vgpr=256 or 384, the KiB of a compute unit that the driver reckons with.
 * - FAKE_KFD_DIR: the folder that stands for / (else a temporary one). Processes that share it share the cards' memory.
 * - FAKE_KFD_LOG: where objections go.
 * - FAKE_KFD_TRACE: where every call goes: its number, its name, what it returned.
 * - FAKE_KFD_CODE: what the names of files begin with that hold each piece of memory that code ran in.
 * - FAKE_KFD_INJECT: words, each of which goes wrong once:
 *   fail=N:ERRNO or fail=NAME#N:ERRNO, the Nth call (of that name) fails; with a + behind it, all after it, too;
 *   wedge=N or wedge=N:I, the queue stops at the Nth packet, after I instructions;
 *   fault=N, reset=N, unplug=N at the Nth packet; unplug=callN at the Nth call; lost=N, the Nth packet's interrupt is
 *   lost; wrong=N, of the first packet from the Nth on that writes into the card's memory, one bit is wrong;
 *   slow=MS before every completion; destroy=MS that the end of a stopped queue takes; denied.
 *
 * GPU addresses are the process's own: memory that only the card may touch lies at its address without access, but
 * while the card works. One lock guards all; the thread of the cards holds it while a packet runs.
 */
#ifndef FAKE_KFD_FAKE_H
#define FAKE_KFD_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/sim.h"
#include "tests/fake_kfd/abi.h"

enum { CARDS_MAX = 4, QUEUES_MAX = 16, PAGE = 4096, DOORBELLS = 0x2000, FIRST_RENDER = 128, CARD_REVISION = 0xc1 };

struct bo {
	struct bo *next;
	uint64_t address, size, handle, mmap_offset; /* mmap_offset: in the card's file of memory too */
	uint32_t flags;
	bool mapped;        /* to the card */
	unsigned others;    /* other cards that have mapped it, a bit each */
	atomic_bool placed; /* its memory lies at its address in the process */
	int protection;     /* what the program may do there */
	unsigned queues;    /* that use it */
	uint64_t left;      /* the sum of what the last packet left there, where the host can write it too */
	struct sim_object *code;
	const void *descriptor; /* that code was adopted for */
	uint64_t sum;           /* of the code's bytes then */
};

struct queue {
	bool used, stopped, evicted; /* evicted: the driver has taken it off the card, after a fault */
	uint32_t id, ring_size;
	uint64_t ring, write_at, read_at, read, seen; /* read: the next packet; seen: the doorbell's last value */
	struct card *card;
	struct bo *bo[5];
	_Atomic uint64_t *doorbell;
	const char *why; /* it stopped */
};

struct card {
	char target[16];
	uint32_t version, gpu_id, render, cus, vgpr, device_id;
	uint64_t vram, gtt, bar;
	uint64_t others; /* of its memory, that other programs hold all the time */
	bool apu;
	uint64_t control_size, save_size, save_total, other_save_size;
	bool acquired;
	uint64_t drm_inode, drm_device;
	struct sim_device *sim;
	struct bo *bos;
	uint64_t next_handle;
	int memory; /* a file, sparse */
	uint64_t memory_used;
	uint8_t *doorbells;
	struct queue queue[QUEUES_MAX];
	bool gone, reached; /* reached: its memory is there for packets, not only for the host */
};

struct inject {
	char fail_name[32]; /* "": any */
	unsigned fail_at;
	bool fail_on;
	int fail_errno;
	uint64_t wedge, wedge_after, fault, reset, unplug, lost, wrong;
	unsigned unplug_call, slow_ms, destroy_ms;
	bool denied;
};

struct fake {
	struct card card[CARDS_MAX];
	unsigned n_cards, minor;
	struct inject inject;
	char dir[512];
	bool dir_is_ours;
	pid_t pid; /* that opened the driver: others are refused */
	pthread_mutex_t lock;
	_Atomic unsigned calls;
	atomic_bool running; /* a packet */
	uint64_t packets;
	bool runtime_enabled;
};
extern struct fake fake;

/* cards.c: false: no cards are described, and nothing is faked. */
bool cards_read(void);
struct card *card_by_id(uint32_t gpu_id);
unsigned card_resident(const struct card *c, uint32_t vgprs, uint32_t lds);

/* log.c */
void object_to(const char *format, ...) __attribute__((format(printf, 1, 2)));
void trace_call(unsigned number, const char *name, int error);
/* Counts a call; 0, or the error that it is to fail with. */
int inject_call(const char *name);

/* sysfs.c */
bool sysfs_make(void);
void sysfs_remove(void);
void sysfs_gone(const struct card *c);

/* devices.c: open files of the devices. */
enum { FILE_NONE, FILE_KFD, FILE_DRM };
int device_open(const char *path, int flags); /* -2: no device's path */
int device_kind(int fd, struct card **card, uint64_t *inode, uint64_t *device);
void *device_mmap(int kind, struct card *c, void *at, size_t bytes, int protection, int flags, uint64_t offset,
                  int *err);

/* ioctls.c, drm.c: 0 or an error number. */
int kfd_ioctl(unsigned long request, void *argument);
int drm_ioctl(struct card *c, unsigned long request, void *argument);
const char *kfd_ioctl_name(unsigned number);

/* memory.c */
int memory_alloc(struct io_alloc *a);
int memory_free(const struct io_free *a);
int memory_map(struct io_map *a);
int memory_unmap(struct io_map *a);
int memory_mmap(struct card *c, void *at, size_t bytes, int protection, int flags, uint64_t offset, void **out);
void memory_unmapped(void *at, size_t bytes); /* the program let go of these addresses */
uint64_t memory_available(const struct card *c);
struct bo *memory_at(struct card *c, uint64_t address, uint64_t bytes); /* that the card has mapped; NULL */
struct bo *memory_by_handle(struct card *c, uint64_t handle);
void memory_reach(struct card *c, bool reach);           /* the card may touch its memory */
void memory_look_for_flush(struct card *c, bool before); /* before a packet, and behind it */
uint64_t memory_reserve(struct card *c, uint64_t bytes); /* offset in its file */
void memory_left(void);                                  /* objects to what was not given back */

/* account.c: what processes that share the cards know of each other. */
bool account_open(void);
bool account_take(const struct card *c, uint64_t bytes, uint64_t limit);
void account_give(const struct card *c, uint64_t bytes);
uint64_t account_used(const struct card *c);
pid_t account_begin(const struct card *c); /* a launch; not 0: another process has one running */
void account_end(const struct card *c);

/* events.c */
int event_create(struct io_create_event *a);
int event_destroy(const struct io_event_id *a);
int event_set(const struct io_event_id *a);
int event_reset(const struct io_event_id *a);
int event_wait(struct io_wait_events *a);
void event_interrupt(uint32_t id);
void event_fault(struct card *c, uint64_t address, bool write, bool present, bool execute);
void event_hw_reset(const struct card *c);
void event_gone(void);
bool event_page_has(const struct bo *b);

/* queues.c */
int queue_create(struct io_create_queue *a);
int queue_destroy(const struct io_queue_id *a);
void queue_stop(struct queue *q, const char *why);
void queues_left(void);

/* packets.c: false: the queue stands still. */
bool packet_run(struct queue *q, uint64_t index, bool first, bool last);

/* wrong.c: around a packet; what the first returns is the second's. */
uint8_t *wrong_before(const struct card *c);
void wrong_after(const struct card *c, uint8_t *copy);

/* dispatch.c: more: another packet follows at once, and nobody is told of this one. */
bool dispatch_run(struct queue *q, uint64_t index, const struct aql_dispatch *p, bool more);

#endif
