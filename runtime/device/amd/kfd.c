#include "runtime/device/amd/kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* What a process has once. */
static struct {
	pthread_mutex_t lock;
	int file; /* of the driver; 0: not open */
	size_t n;
	struct kfd_card card[AMD_CARDS];
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

bool kfd_cannot_open(const char *path, struct error *err)
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
	if (v.major == KFD_MAJOR && v.minor >= KFD_MINOR_MIN)
		return true;
	return error_set(err, ERROR_UNSUPPORTED, KFD_PATH " has version %u.%u, expected %d.%d or a later %d.x", v.major,
	                 v.minor, KFD_MAJOR, KFD_MINOR_MIN, KFD_MAJOR);
}

static bool open_driver(struct error *err)
{
	if (process.file)
		return true;
	int fd = open(KFD_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return kfd_cannot_open(KFD_PATH, err);
	process.file = fd;
	if (check_version(err))
		return true;
	process.file = 0;
	close(fd);
	return false;
}

/* The first card decides the way for all of a process: the driver gives each address space away once. */
static bool open_first(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	for (size_t i = 0; i < process.n; i++)
		if (process.card[i].gpu_id == card->gpu_id) {
			*out = process.card[i];
			return true;
		}
	*out = (struct kfd_card){ .gpu_id = card->gpu_id, .node = card->node };
	out->thunk = process.n ? process.card[0].thunk : kfd_choose(card, err);
	if (!out->thunk || !out->thunk->open(card, out, err))
		return false;
	if (process.n < AMD_CARDS)
		process.card[process.n++] = *out;
	return true;
}

bool kfd_open_card(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	pthread_mutex_lock(&process.lock);
	bool ok = open_driver(err) && open_first(card, out, err);
	pthread_mutex_unlock(&process.lock);
	return ok;
}

/* ---- memory */

/* The library maps the registers that flush for itself, and has no name for them that has stayed the same. */
static const struct kfd_thunk *way_of(const struct kfd_card *c, uint32_t flags)
{
	return flags & KFD_MEMORY_MMIO_REMAP ? &kfd_by_ioctls : c->thunk;
}

bool kfd_alloc(const struct kfd_card *c, struct kfd_buffer *out, size_t bytes, uint32_t flags, bool host,
               const char *what, struct error *err)
{
	struct kfd_buffer b = { .bytes = (bytes + PAGE - 1) / PAGE * PAGE, .by = way_of(c, flags) };
	int e = b.bytes < bytes ? ENOMEM : b.by->alloc(c, &b, flags, host);

	if (!e) {
		*out = b;
		return true;
	}
	return error_set(err, e == ENOMEM ? ERROR_MEMORY : ERROR_DEVICE,
	                 "the card's driver refuses %zu bytes for %s: %s", bytes, what, strerror(e));
}

void kfd_free(const struct kfd_card *c, struct kfd_buffer *b)
{
	if (b->by)
		b->by->free(c, b);
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

bool kfd_event_make(const struct kfd_card *c, struct kfd_event *out, enum kfd_event_type type, struct error *err)
{
	*out = (struct kfd_event){ 0 };
	int e = c->thunk->event_make(c, out, type);
	return !e || error_set(err, ERROR_DEVICE, "the card's driver makes no event: %s", strerror(e));
}

void kfd_event_destroy(const struct kfd_card *c, struct kfd_event *e)
{
	if (e->id)
		c->thunk->event_destroy(e);
	*e = (struct kfd_event){ 0 };
}
