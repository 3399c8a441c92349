/* runtime/device/amd/kfd_ioctl.c - memory and events by calls of the driver alone. See kfd.h; queues are
 * amd_queue.c's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device/amd/kfd.h"

enum { PAGE = 4096, HUGE = 2 << 20 };

/* Once in a process. The driver keeps it until the process ends, and refuses to free it before. */
static struct kfd_buffer events;
static uint32_t events_of; /* the card whose driver made them */

static int map_to_card(const struct kfd_card *c, const struct kfd_buffer *b, unsigned long request)
{
	struct kfd_map_memory a = { .handle = b->handle, .gpu_ids = (uint64_t)(uintptr_t)&c->gpu_id, .n_gpus = 1 };

	return kfd_call(request, &a);
}

/* ---- memory */

/* Addresses that nothing lies at; huge buffers begin where huge pages can. */
static void *reserve(size_t bytes)
{
	size_t align = bytes >= HUGE ? HUGE : PAGE, more = bytes + align - PAGE;
	uint8_t *p = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	size_t before = (align - (uintptr_t)p % align) % align, behind = more - before - bytes;
	if (before)
		munmap(p, before);
	if (behind)
		munmap(p + before + bytes, behind);
	return p + before;
}

/* The registers of MMIO_REMAP are the driver's to map, all else is the card's. */
static int map_to_host(const struct kfd_card *c, const struct kfd_buffer *b, uint32_t flags, uint64_t offset)
{
	int fd = flags & KFD_MEMORY_MMIO_REMAP ? kfd_file() : c->render;

	return mmap(b->address, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) ==
	                       MAP_FAILED
	               ? errno
	               : 0;
}

static void free_buffer(const struct kfd_card *c, const struct kfd_buffer *b)
{
	bool kept = b->mapped && map_to_card(c, b, KFD_UNMAP_MEMORY);

	if (b->handle && !kept)
		kfd_call(KFD_FREE_MEMORY, &(struct kfd_free_memory){ .handle = b->handle });
	if (b->address && b->once)
		mmap(b->address, b->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else if (b->address)
		munmap(b->address, b->bytes);
}

static int alloc(const struct kfd_card *c, struct kfd_buffer *b, uint32_t flags, bool host)
{
	struct kfd_alloc_memory a = { .bytes = b->bytes, .gpu_id = c->gpu_id, .flags = flags };

	if (!(b->address = reserve(b->bytes)))
		return ENOMEM;
	a.address = (uint64_t)(uintptr_t)b->address;
	int e = kfd_call(KFD_ALLOC_MEMORY, &a);
	if (!e) {
		b->handle = a.handle;
		e = host ? map_to_host(c, b, flags, a.mmap_offset) : 0;
		b->mapped = !e && !(flags & KFD_MEMORY_MMIO_REMAP);
		e = b->mapped ? map_to_card(c, b, KFD_MAP_MEMORY) : e;
		b->mapped = b->mapped && !e;
	}
	if (e)
		free_buffer(c, b);
	return e;
}

/* ---- opening */

/* The driver ties the address space to the first render node it is given, for as long as the process lives. */
static bool open_render(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	char path[64];

	snprintf(path, sizeof path, KFD_RENDER_PATH, card->render_minor);
	out->render = open(path, O_RDWR | O_CLOEXEC);
	if (out->render < 0)
		return kfd_cannot_open(path, err);
	int e = kfd_call(KFD_ACQUIRE_VM,
	                 &(struct kfd_acquire_vm){ .drm_fd = (uint32_t)out->render, .gpu_id = card->gpu_id });
	if (!e)
		return true;
	close(out->render);
	return error_set(err, ERROR_DEVICE, "%s does not give its address space: %s%s", path, strerror(e),
	                 e == EBUSY ? "; another library of this process uses the card" : "");
}

/* Events are made with the page on which signals name them. */
static bool name_event_page(const struct kfd_card *c, struct error *err)
{
	if (events.address)
		return true;
	if (!kfd_alloc(c, &events, KFD_EVENT_PAGE_BYTES,
	               KFD_MEMORY_GTT | KFD_MEMORY_COHERENT | KFD_MEMORY_UNCACHED | KFD_MEMORY_WRITABLE |
	                       KFD_MEMORY_NO_SUBSTITUTE,
	               true, "the page of events", err))
		return false;
	struct kfd_create_event a = { .event_page = events.handle, .type = KFD_EVENT_SIGNAL, .auto_reset = 1 };
	int e = kfd_call(KFD_CREATE_EVENT, &a);
	events_of = c->gpu_id;
	if (!e) {
		kfd_call(KFD_DESTROY_EVENT, &(struct kfd_event_id){ .event_id = a.event_id });
		return true;
	}
	kfd_free(c, &events);
	return error_set(err, ERROR_DEVICE, KFD_PATH " takes no page of events: %s", strerror(e));
}

/* Of several cards the first one's memory holds the page: the others have to reach it too. */
static uint64_t *slots_for(const struct kfd_card *c)
{
	return events_of == c->gpu_id || map_to_card(c, &events, KFD_MAP_MEMORY) == 0 ? events.address : NULL;
}

/* A card that has its address space, but no page of events, is opened again with what it has. */
static struct {
	uint32_t gpu_id;
	int render;
} begun[AMD_CARDS];

static bool open_or_go_on(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	size_t i = 0;

	while (i < AMD_CARDS && begun[i].gpu_id && begun[i].gpu_id != card->gpu_id)
		i++;
	if (i == AMD_CARDS)
		return error_set(err, ERROR_DEVICE, "more than %d cards are open", AMD_CARDS);
	out->render = begun[i].render;
	if (begun[i].gpu_id)
		return true;
	if (!open_render(card, out, err))
		return false;
	begun[i].gpu_id = card->gpu_id;
	begun[i].render = out->render;
	return true;
}

static bool open_card(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	if (!open_or_go_on(card, out, err) || !name_event_page(out, err))
		return false;
	out->event_slots = slots_for(out);
	return true;
}

/* ---- events */

static int event_make(const struct kfd_card *c, struct kfd_event *out, enum kfd_event_type type)
{
	struct kfd_create_event a = { .type = type, .auto_reset = 1 };
	int e = kfd_call(KFD_CREATE_EVENT, &a);

	if (e)
		return e;
	*out = (struct kfd_event){ .id = a.event_id, .trigger = a.trigger_data };
	if (type == KFD_EVENT_SIGNAL && c->event_slots && a.slot < KFD_EVENT_SLOTS)
		out->mailbox = &c->event_slots[a.slot];
	return 0;
}

static void event_destroy(struct kfd_event *e)
{
	kfd_call(KFD_DESTROY_EVENT, &(struct kfd_event_id){ .event_id = e->id });
}

const struct kfd_thunk kfd_by_ioctls = {
	.name = "ioctl",
	.open = open_card,
	.alloc = alloc,
	.free = free_buffer,
	.event_make = event_make,
	.event_destroy = event_destroy
};
