/* runtime/device/kfd.h - the amdkfd driver as this process sees it: its file, the cards' address spaces, memory,
 * events.
 *
 * Owns: every call of the driver but those of queues, and what the driver lets a process do once only: open it, give a
 * card's address space to a render node, name the page of events. That stays until the process ends, whatever is
 * closed. Memory has the same address for host and card.
 */
#ifndef RUNTIME_KFD_H
#define RUNTIME_KFD_H

#include "runtime/device/amd_topology.h"
#include "runtime/device/kfd_abi.h"

/* A card whose address space is this process's. */
struct kfd_card {
	uint32_t gpu_id;
	int render;            /* its node's file */
	uint64_t *event_slots; /* NULL: the driver does not let this card write them, so its signals wake nobody */
};

/* Opens the driver and the card's render node, once. False: err says what is missing. */
bool kfd_open_card(const struct amd_card *card, struct kfd_card *out, struct error *err);

/* 0, or an error number; interrupted calls are made again. */
int kfd_call(unsigned long request, void *arg);
int kfd_file(void); /* after kfd_open_card() */

struct kfd_buffer {
	void *address;
	size_t bytes; /* whole pages */
	uint64_t handle;
	bool mapped; /* for the card */
	bool once;   /* holds code: its address is never used again, for a card may have old code in a cache */
};

/* flags: KFD_MEMORY_...; host: the host may touch it. Not zeroed. what: in a sentence, "the weights". */
bool kfd_alloc(const struct kfd_card *c, struct kfd_buffer *out, size_t bytes, uint32_t flags, bool host,
               const char *what, struct error *err);
void kfd_free(const struct kfd_card *c, struct kfd_buffer *b); /* one that was never allocated is fine */
/* Bytes of the card's memory that can be had. */
bool kfd_available(const struct kfd_card *c, uint64_t *bytes, struct error *err);

struct kfd_event {
	uint32_t id, slot; /* id 0: none */
	uint32_t trigger;
};
bool kfd_event_make(struct kfd_event *out, enum kfd_event_type type, struct error *err);
void kfd_event_destroy(struct kfd_event *e);

#endif
