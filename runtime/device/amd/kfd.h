/* runtime/device/amd/kfd.h - the amdkfd driver as this process sees it: its file, the cards' address spaces, memory,
 * events.
 *
 * Owns: what the driver lets a process do once only: open it, give a card's address space to a render node, name the
 * page of events. That stays until the process ends, whatever is closed. Memory has the same address for host and card.
 *
 * Memory, events and queues can be asked for in two ways, each a struct kfd_thunk: by calls of the driver
 * (kfd_ioctl.c), or through AMD's library libhsakmt (kfd_hsakmt.c). kfd_choice.c says which is taken, and why.
 */
#ifndef RUNTIME_KFD_H
#define RUNTIME_KFD_H

#include "runtime/device/amd/amd_topology.h"
#include "runtime/device/amd/kfd_abi.h"

struct kfd_thunk;

/* A card whose address space is this process's. */
struct kfd_card {
	const struct kfd_thunk *thunk;
	uint32_t gpu_id, node;
	bool library_queues; /* the thunk makes queues, and its sizes are right */
	/* kfd_ioctl.c's: */
	int render;            /* its node's file */
	uint64_t *event_slots; /* NULL: the driver does not let this card write them, so its signals wake nobody */
};

/* Opens the driver and the card's render node, once. False: err says what is missing. */
bool kfd_open_card(const struct amd_card *card, struct kfd_card *out, struct error *err);

/* Says of errno what helps: who may open the files is the commonest trouble. False. */
bool kfd_cannot_open(const char *path, struct error *err);
/* 0, or an error number; interrupted calls are made again. */
int kfd_call(unsigned long request, void *arg);
int kfd_file(void); /* after kfd_open_card() */

struct kfd_buffer {
	void *address;
	size_t bytes;               /* whole pages */
	const struct kfd_thunk *by; /* that allocated it; NULL: nobody has */
	uint64_t handle;            /* kfd_ioctl.c's */
	bool mapped;                /* for the card */
	bool once; /* holds code: its address is never used again, for a card may have old code in a cache */
};

/* flags: KFD_MEMORY_...; host: the host may touch it. Not zeroed. what: in a sentence, "the weights". */
bool kfd_alloc(const struct kfd_card *c, struct kfd_buffer *out, size_t bytes, uint32_t flags, bool host,
               const char *what, struct error *err);
void kfd_free(const struct kfd_card *c, struct kfd_buffer *b); /* one that was never allocated is fine */
/* Bytes of the card's memory that can be had. */
bool kfd_available(const struct kfd_card *c, uint64_t *bytes, struct error *err);

struct kfd_event {
	uint32_t id; /* 0: none */
	uint32_t trigger;
	uint64_t *mailbox; /* of a signal; NULL: it wakes nobody */
	void *library;     /* kfd_hsakmt.c's */
};
bool kfd_event_make(const struct kfd_card *c, struct kfd_event *out, enum kfd_event_type type, struct error *err);
void kfd_event_destroy(const struct kfd_card *c, struct kfd_event *e);

/* ---- the ways */

/* A queue that a library made, with what it allocated for it. */
struct kfd_queue {
	uint64_t library; /* 0: there is none */
	volatile uint64_t *doorbell;
};

/* Functions return 0 or an error number. What they made partly they take back. */
struct kfd_thunk {
	const char *name; /* as JITRUN_AMD_THUNK names it */
	/* Once for each card. `out` has gpu_id and node, and gets the rest. */
	bool (*open)(const struct amd_card *card, struct kfd_card *out, struct error *err);
	/* out->bytes is set. */
	int (*alloc)(const struct kfd_card *c, struct kfd_buffer *out, uint32_t flags, bool host);
	/* Of a buffer that was allocated in part, too. */
	void (*free)(const struct kfd_card *c, const struct kfd_buffer *b);
	int (*event_make)(const struct kfd_card *c, struct kfd_event *out, enum kfd_event_type type);
	void (*event_destroy)(struct kfd_event *e);
	/* Where library_queues is set: a queue of packets over the caller's ring and pointers. */
	int (*queue_make)(const struct kfd_card *c, struct kfd_queue *out, void *ring, size_t bytes,
	                  uint64_t *write_index, uint64_t *read_index);
	int (*queue_destroy)(const struct kfd_queue *q);
};
extern const struct kfd_thunk kfd_by_ioctls, kfd_by_hsakmt;

/* kfd_hsakmt.c: whether it is there. False: `why` says what is missing. */
enum { KFD_WHY = 160 };
bool kfd_hsakmt_load(char why[KFD_WHY]);
/* Whether it has a function of that name, which tells how old it is. */
bool kfd_hsakmt_has(const char *function);

/* kfd_choice.c: the way for a card, or for all. NULL: err says why the one that is asked for cannot be had. */
const struct kfd_thunk *kfd_choose(const struct amd_card *card, struct error *err);
/* Whether the library gives queues on this card the sizes that the driver expects. */
bool kfd_hsakmt_knows(const struct amd_card *card);

#endif
