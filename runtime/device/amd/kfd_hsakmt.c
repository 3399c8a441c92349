/* runtime/device/amd/kfd_hsakmt.c - memory, events and queues through AMD's library libhsakmt. See kfd.h.
 *
 * It is looked for when a card is opened, so that a jitrun that was built with it runs where it is not installed. Where
 * it was not there at build time this file says so, and the driver is called without it.
 */
#include "runtime/device/amd/kfd.h"

#include <stdio.h>

#ifndef HAVE_HSAKMT

bool kfd_hsakmt_load(char why[KFD_WHY])
{
	snprintf(why, KFD_WHY, "this jitrun was built without it");
	return false;
}

bool kfd_hsakmt_has(const char *function) { return false; }

const struct kfd_thunk kfd_by_hsakmt = { .name = "hsakmt" };

#else

#include <dlfcn.h>
#include <fcntl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#if __has_include(<hsakmt/hsakmt.h>)
#include <hsakmt/hsakmt.h>
#else
#include <hsakmt.h>
#endif

#define SONAME "libhsakmt.so.1"

/* X(its field here, its name there) */
#define FUNCTIONS(X) \
	X(open_kfd, hsaKmtOpenKFD) \
	X(system, hsaKmtAcquireSystemProperties) \
	X(node, hsaKmtGetNodeProperties) \
	X(alloc, hsaKmtAllocMemory) \
	X(free, hsaKmtFreeMemory) \
	X(map, hsaKmtMapMemoryToGPUNodes) \
	X(unmap, hsaKmtUnmapMemoryToGPU) \
	X(event_make, hsaKmtCreateEvent) \
	X(event_destroy, hsaKmtDestroyEvent) \
	X(queue_make, hsaKmtCreateQueue) \
	X(queue_destroy, hsaKmtDestroyQueue)

static struct {
	void *file;
#define FIELD(name, function) __typeof__(function) *name;
	FUNCTIONS(FIELD)
#undef FIELD
} library;

/* Later versions may know more of a card: what they tell is received with room to spare. */
union node_room {
	HsaNodeProperties node;
	unsigned char room[8192];
};
union system_room {
	HsaSystemProperties system;
	unsigned char room[1024];
};

bool kfd_hsakmt_has(const char *function) { return library.file && dlsym(library.file, function); }

bool kfd_hsakmt_load(char why[KFD_WHY])
{
	void *f;

	if (library.file)
		return true;
	void *file = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!file) {
		snprintf(why, KFD_WHY, SONAME " cannot be loaded");
		return false;
	}
#define RESOLVE(name, function) \
	if (!(f = dlsym(file, #function))) { \
		snprintf(why, KFD_WHY, SONAME " has no " #function); \
		dlclose(file); \
		return false; \
	} \
	memcpy(&library.name, &f, sizeof f);
	FUNCTIONS(RESOLVE)
#undef RESOLVE
	library.file = file;
	return true;
}

/* Its calls leave the error number of the driver where there was one. */
static int error_of(HSAKMT_STATUS s)
{
	return s == HSAKMT_STATUS_SUCCESS ? 0 : errno ? errno : s == HSAKMT_STATUS_NO_MEMORY ? ENOMEM : EIO;
}

/* ---- opening */

/* It reads the driver's own files: whether it understands them as they are meant shows whether it is right. */
static bool sees(const struct amd_card *card)
{
	union node_room r;
	const HsaNodeProperties *n = &r.node;

	memset(&r, 0, sizeof r);
	if (library.node(card->node, &r.node) != HSAKMT_STATUS_SUCCESS)
		return false;
	return n->EngineId.ui32.Major == card->gfx_version / 10000 &&
	       n->EngineId.ui32.Minor == card->gfx_version / 100 % 100 &&
	       n->EngineId.ui32.Stepping == card->gfx_version % 100 && n->NumSIMDPerCU == card->simds_per_unit &&
	       n->NumFComputeCores == card->units * card->simds_per_unit && n->DrmRenderMinor == card->render_minor;
}

/* libdrm, which the library asks of the card, takes for granted that its display driver answers. */
static bool display_driver_answers(const struct amd_card *card)
{
	struct {
		int number[3];
		struct {
			size_t size;
			char *text;
		} texts[3];
	} version = { .number = { 0 } };
	char path[64];

	snprintf(path, sizeof path, KFD_RENDER_PATH, card->render_minor);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool ok = fd >= 0 && ioctl(fd, _IOWR('d', 0, version), &version) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool open_library(const struct amd_card *card, char why[KFD_WHY])
{
	union system_room s;

	if (!display_driver_answers(card)) {
		snprintf(why, KFD_WHY, "the card's display driver does not answer");
		return false;
	}
	memset(&s, 0, sizeof s);
	errno = 0;
	HSAKMT_STATUS status = library.open_kfd();
	if (status == HSAKMT_STATUS_SUCCESS || status == HSAKMT_STATUS_KERNEL_ALREADY_OPENED)
		status = library.system(&s.system);
	if (status != HSAKMT_STATUS_SUCCESS)
		snprintf(why, KFD_WHY, "it does not open the driver: %s", strerror(error_of(status)));
	else if (!sees(card))
		snprintf(why, KFD_WHY, "it takes the card for another one");
	else
		return true;
	return false;
}

/* Where the library does not come so far the driver may still be open to calls. */
static bool open_card(const struct amd_card *card, struct kfd_card *out, struct error *err)
{
	struct error second = { 0 };
	char why[KFD_WHY];

	if (open_library(card, why)) {
		out->library_queues = kfd_hsakmt_knows(card);
		return true;
	}
	out->thunk = &kfd_by_ioctls;
	return out->thunk->open(card, out, &second) ||
	       error_set(err, second.code, "%s (before that libhsakmt was tried: %s)", second.text, why);
}

/* ---- memory */

static void free_buffer(const struct kfd_card *c, const struct kfd_buffer *b)
{
	if (b->mapped && library.unmap(b->address) != HSAKMT_STATUS_SUCCESS)
		return; /* what the card still has mapped the driver does not free */
	if (b->address && library.free(b->address, b->bytes) == HSAKMT_STATUS_SUCCESS && b->once)
		mmap(b->address, b->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
		     -1, 0);
}

/* The host's memory is the first node's, and of the kind that is not paged. */
static int alloc(const struct kfd_card *c, struct kfd_buffer *b, uint32_t flags, bool host)
{
	HsaMemFlags f = { .Value = 0 };
	HsaMemMapFlags m = { .Value = 0 };
	HSAuint64 other;
	HSAuint32 node = c->node;

	f.ui32.NonPaged = 1;
	f.ui32.HostAccess = host;
	f.ui32.NoSubstitute = 1;
	f.ui32.CoarseGrain = !(flags & KFD_MEMORY_COHERENT);
	f.ui32.Uncached = (flags & KFD_MEMORY_UNCACHED) != 0;
	f.ui32.ExecuteAccess = (flags & KFD_MEMORY_EXECUTABLE) != 0;
	errno = 0;
	int e = error_of(library.alloc(flags & KFD_MEMORY_GTT ? 0 : node, b->bytes, f, &b->address));
	if (e) {
		b->address = NULL;
		return e;
	}
	errno = 0;
	e = error_of(library.map(b->address, b->bytes, &other, m, 1, &node));
	b->mapped = !e;
	if (e)
		free_buffer(c, b);
	return e;
}

/* ---- events */

/* The library gives memory for each. Those of a card that does not answer are never given back, and stay here. */
struct held {
	struct held *next;
	HsaEvent *event;
};
static struct held *held;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;

static int event_make(const struct kfd_card *c, struct kfd_event *out, enum kfd_event_type type)
{
	HsaEventDescriptor d;
	struct held *h = calloc(1, sizeof *h);

	if (!h)
		return ENOMEM;
	memset(&d, 0, sizeof d);
	d.EventType = (HSA_EVENTTYPE)type;
	d.NodeId = c->node;
	errno = 0;
	int e = error_of(library.event_make(&d, false, false, &h->event));
	if (e) {
		free(h);
		return e;
	}
	pthread_mutex_lock(&held_lock);
	h->next = held;
	held = h;
	pthread_mutex_unlock(&held_lock);
	const HsaEvent *made = h->event;
	*out = (struct kfd_event){ .id = made->EventId, .trigger = made->EventData.HWData3, .library = h };
	if (type == KFD_EVENT_SIGNAL)
		out->mailbox = (uint64_t *)(uintptr_t)made->EventData.HWData2;
	return 0;
}

static void event_destroy(struct kfd_event *e)
{
	struct held *h = e->library, **at = &held;

	if (library.event_destroy(h->event) != HSAKMT_STATUS_SUCCESS)
		return;
	pthread_mutex_lock(&held_lock);
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	pthread_mutex_unlock(&held_lock);
	free(h);
}

/* ---- queues */

static int queue_make(const struct kfd_card *c, struct kfd_queue *out, void *ring, size_t bytes, uint64_t *write_index,
                      uint64_t *read_index)
{
	HsaQueueResource r;

	memset(&r, 0, sizeof r);
	r.QueueWptrValue = (uintptr_t)write_index;
	r.QueueRptrValue = (uintptr_t)read_index;
	errno = 0;
	int e = error_of(library.queue_make(c->node, HSA_QUEUE_COMPUTE_AQL, KFD_QUEUE_FULL_PERCENTAGE,
	                                    HSA_QUEUE_PRIORITY_NORMAL, ring, bytes, NULL, &r));
	if (!e)
		*out = (struct kfd_queue){ .library = r.QueueId, .doorbell = r.Queue_DoorBell_aql };
	return e;
}

static int queue_destroy(const struct kfd_queue *q)
{
	errno = 0;
	return error_of(library.queue_destroy(q->library));
}

const struct kfd_thunk kfd_by_hsakmt = {
	.name = "hsakmt",
	.open = open_card,
	.alloc = alloc,
	.free = free_buffer,
	.event_make = event_make,
	.event_destroy = event_destroy,
	.queue_make = queue_make,
	.queue_destroy = queue_destroy
};

#endif
