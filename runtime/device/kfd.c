#include "runtime/device/kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20 };

/* What a process has once. */
static struct {
	pthread_mutex_t lock;
	int file; /* of the driver; 0: not open */
	size_t n;
	struct {
		uint32_t gpu_id;
		int render;
	} card[AMD_CARDS];
	struct kfd_buffer events;
	uint32_t events_of; /* the card whose driver made them */
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

int kfd_file(void) { return process.file; }

int kfd_call(unsigned long request, void *arg)
{
	int r;

	do
		r = ioctl(process.file, request, arg);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	return r < 0 ? errno : 0;
}

/* ---- opening */

/* Who may open the files is the commonest trouble: the sentence says what helps. */
static bool cannot_open(const char *path, struct error *err)
{
	int e = errno;

	return error_set(err, ERROR_DEVICE, "%s cannot be opened: %s%s", path, strerror(e),
	                 e == EACCES || e == EPERM ? "; add your user to the group that owns it (render or video)"
	                 : e == ENOENT || e == ENXIO || e == ENODEV
	                         ? "; the kernel module amdgpu is not loaded, or has no card"
	                         : "");
}

static bool check_version(struct error *err)
{
	struct kfd_version v = { 0 };
	int e = kfd_call(KFD_GET_VERSION, &v);

	if (e)
		return error_set(err, ERROR_DEVICE, KFD_PATH " does not tell its version: %s", strerror(e));
	if (v.major == KFD_MAJOR && v.minor >= KFD_MINOR_LEAST)
		return true;
	return error_set(err, ERROR_UNSUPPORTED, KFD_PATH " has version %u.%u, expected %d.%d or a later %d.x", v.major,
	                 v.minor, KFD_MAJOR, KFD_MINOR_LEAST, KFD_MAJOR);
}

static bool open_driver(struct error *err)
{
	if (process.file)
		return true;
	int fd = open(KFD_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return cannot_open(KFD_PATH, err);
	process.file = fd;
	if (check_version(err))
		return true;
	process.file = 0;
	close(fd);
	return false;
}

/* The driver ties the address space to the first render node it is given, for as long as the process lives. */
static bool open_render(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	char path[64];

	for (size_t i = 0; i < process.n; i++)
		if (process.card[i].gpu_id == card->gpu_id) {
			out->render = process.card[i].render;
			return true;
		}
	snprintf(path, sizeof path, KFD_RENDER_PATH, card->render_minor);
	out->render = open(path, O_RDWR | O_CLOEXEC);
	if (out->render < 0)
		return cannot_open(path, err);
	int e = kfd_call(KFD_ACQUIRE_VM,
	                 &(struct kfd_acquire_vm){ .drm_fd = (uint32_t)out->render, .gpu_id = card->gpu_id });
	if (!e && process.n < AMD_CARDS) {
		process.card[process.n].gpu_id = card->gpu_id;
		process.card[process.n++].render = out->render;
		return true;
	}
	close(out->render);
	return error_set(err, ERROR_DEVICE, "%s does not give its address space: %s%s", path, strerror(e),
	                 e == EBUSY ? "; another library of this process uses the card" : "");
}

static int map_to_card(const struct kfd_card *c, const struct kfd_buffer *b, unsigned long request)
{
	struct kfd_map_memory a = { .handle = b->handle, .gpu_ids = (uint64_t)(uintptr_t)&c->gpu_id, .n_gpus = 1 };

	return kfd_call(request, &a);
}

/* Events are made with the page on which signals name them. */
static bool name_event_page(const struct kfd_card *c, struct error *err)
{
	if (process.events.address)
		return true;
	if (!kfd_alloc(c, &process.events, KFD_EVENT_PAGE_BYTES,
	               KFD_MEMORY_GTT | KFD_MEMORY_COHERENT | KFD_MEMORY_UNCACHED | KFD_MEMORY_WRITABLE |
	                       KFD_MEMORY_NO_SUBSTITUTE,
	               true, "the page of events", err))
		return false;
	struct kfd_create_event a = { .event_page = process.events.handle, .type = KFD_EVENT_SIGNAL, .auto_reset = 1 };
	int e = kfd_call(KFD_CREATE_EVENT, &a);
	process.events_of = c->gpu_id;
	if (!e) {
		kfd_event_destroy(&(struct kfd_event){ .id = a.event_id });
		return true;
	}
	kfd_free(c, &process.events);
	return error_set(err, ERROR_DEVICE, KFD_PATH " takes no page of events: %s", strerror(e));
}

/* Of several cards the first one's memory holds the page: the others have to reach it too. */
static uint64_t *slots_for(const struct kfd_card *c)
{
	return process.events_of == c->gpu_id || map_to_card(c, &process.events, KFD_MAP_MEMORY) == 0
	               ? process.events.address
	               : NULL;
}

bool kfd_open_card(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	*out = (struct kfd_card){ .gpu_id = card->gpu_id };
	pthread_mutex_lock(&process.lock);
	bool ok = open_driver(err) && open_render(card, out, err) && name_event_page(out, err);
	out->event_slots = ok ? slots_for(out) : NULL;
	pthread_mutex_unlock(&process.lock);
	return ok;
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
	int fd = flags & KFD_MEMORY_MMIO_REMAP ? process.file : c->render;

	return mmap(b->address, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) ==
	                       MAP_FAILED
	               ? errno
	               : 0;
}

bool kfd_alloc(const struct kfd_card *c, struct kfd_buffer *out, size_t bytes, uint32_t flags, bool host,
               const char *what, struct error *err)
{
	struct kfd_buffer b = { .bytes = (bytes + PAGE - 1) / PAGE * PAGE };
	struct kfd_alloc_memory a = { .bytes = b.bytes, .gpu_id = c->gpu_id, .flags = flags };

	if (b.bytes < bytes || !(b.address = reserve(b.bytes)))
		return error_set(err, ERROR_MEMORY, "no addresses for %zu bytes of %s", bytes, what);
	a.address = (uint64_t)(uintptr_t)b.address;
	int e = kfd_call(KFD_ALLOC_MEMORY, &a);
	if (!e) {
		b.handle = a.handle;
		e = host ? map_to_host(c, &b, flags, a.mmap_offset) : 0;
		b.mapped = !e && !(flags & KFD_MEMORY_MMIO_REMAP);
		e = b.mapped ? map_to_card(c, &b, KFD_MAP_MEMORY) : e;
		b.mapped = b.mapped && !e;
		if (!e) {
			*out = b;
			return true;
		}
	}
	kfd_free(c, &b);
	return error_set(err, e == ENOMEM ? ERROR_MEMORY : ERROR_DEVICE,
	                 "the card's driver refuses %zu bytes for %s: %s", bytes, what, strerror(e));
}

void kfd_free(const struct kfd_card *c, struct kfd_buffer *b)
{
	bool kept = b->mapped && map_to_card(c, b, KFD_UNMAP_MEMORY);

	if (b->handle && !kept)
		kfd_call(KFD_FREE_MEMORY, &(struct kfd_free_memory){ .handle = b->handle });
	if (b->address && b->once)
		mmap(b->address, b->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else if (b->address)
		munmap(b->address, b->bytes);
	*b = (struct kfd_buffer){ 0 };
}

bool kfd_available(const struct kfd_card *c, uint64_t *bytes, struct error *err)
{
	struct kfd_available_memory a = { .gpu_id = c->gpu_id };
	int e = kfd_call(KFD_AVAILABLE_MEMORY, &a);

	*bytes = a.bytes;
	return !e ||
	       error_set(err, ERROR_DEVICE, "the card's driver does not tell how much memory is free: %s", strerror(e));
}

/* ---- events */

bool kfd_event_make(struct kfd_event *out, enum kfd_event_type type, struct error *err)
{
	struct kfd_create_event a = { .type = type, .auto_reset = 1 };
	int e = kfd_call(KFD_CREATE_EVENT, &a);

	*out = (struct kfd_event){ .id = e ? 0 : a.event_id, .slot = a.slot, .trigger = a.trigger_data };
	return !e || error_set(err, ERROR_DEVICE, "the card's driver makes no event: %s", strerror(e));
}

void kfd_event_destroy(struct kfd_event *e)
{
	if (e->id)
		kfd_call(KFD_DESTROY_EVENT, &(struct kfd_event_id){ .event_id = e->id });
	*e = (struct kfd_event){ 0 };
}
