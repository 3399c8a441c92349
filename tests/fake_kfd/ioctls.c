/* tests/fake_kfd/ioctls.c - /dev/kfd: which calls there are, of what size in which version, and who may make them. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/fake_kfd/fake.h"

enum { IN = _IOC_WRITE, OUT = _IOC_READ, BOTH = IN | OUT };

static int get_version(struct io_version *a)
{
	*a = (struct io_version){ 1, fake.minor };
	return 0;
}

static int acquire_vm(const struct io_acquire_vm *a)
{
	struct card *c = card_by_id(a->gpu_id), *of = NULL;
	uint64_t inode = 0, device = 0;
	struct error err = { .code = ERROR_NONE };
	int kind = device_kind((int)a->drm_fd, &of, &inode, &device);

	if (!c || kind != FILE_DRM || of != c) {
		object_to("ACQUIRE_VM: file %u is not the render node of card %u", a->drm_fd, a->gpu_id);
		return EINVAL;
	}
	if (c->acquired)
		return c->drm_inode == inode && c->drm_device == device ? 0 : EBUSY;
	c->sim = sim_open(c->target, &err);
	if (!c->sim)
		return ENOMEM;
	memory_reserve(c, DOORBELLS + PAGE);
	c->acquired = true;
	c->drm_inode = inode;
	c->drm_device = device;
	return 0;
}

static int available_memory(struct io_available *a)
{
	const struct card *c = card_by_id(a->gpu_id);

	if (!c)
		return EINVAL;
	a->bytes = memory_available(c);
	return 0;
}

static int clocks(struct io_clocks *a)
{
	struct timespec t;

	if (!card_by_id(a->gpu_id))
		return EINVAL;
	clock_gettime(CLOCK_MONOTONIC, &t);
	a->cpu = a->system = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	a->gpu = a->cpu / 10;
	a->frequency = 1000000000;
	return 0;
}

static int apertures(struct io_apertures *a)
{
	struct io_aperture *list = (struct io_aperture *)(uintptr_t)a->list;
	uint32_t n = a->n < fake.n_cards ? a->n : fake.n_cards;

	if (!a->n) { /* how many are there? */
		a->n = fake.n_cards;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct io_aperture){
			.lds_base = 0x1000000000000,
			.lds_limit = 0x10000ffffffff,
			.scratch_base = 0x2000000000000,
			.scratch_limit = 0x20000ffffffff,
			.gpuvm_base = 0x4000,
			.gpuvm_limit = 0x7fffffffffff,
			.gpu_id = fake.card[i].gpu_id
		};
	a->n = n;
	return 0;
}

static int runtime_enable(const struct io_runtime *a)
{
	bool on = a->mode & 1;

	if (on && fake.runtime_enabled)
		return EBUSY;
	fake.runtime_enabled = on;
	return 0;
}

/* Of programs that were written for other things: they may ask, and nothing comes of it. */
static int nothing(void *a)
{
	(void)a;
	return 0;
}

typedef int (*handler)(void *a);
#define HANDLER(f) (handler)(void (*)(void))(f)
static const struct call {
	const char *name;
	uint8_t direction;
	uint16_t size, longer; /* longer: another size that is known, or 0 */
	uint8_t since;         /* the minor version */
	bool waits;            /* outside of the lock */
	handler handle;
} calls[NR_COUNT] = {
	[NR_GET_VERSION] = { "GET_VERSION", OUT, sizeof(struct io_version), .handle = HANDLER(get_version) },
	[NR_CREATE_QUEUE] = { "CREATE_QUEUE", BOTH, 88, 96, .handle = HANDLER(queue_create) },
	[NR_DESTROY_QUEUE] = { "DESTROY_QUEUE", BOTH, sizeof(struct io_queue_id), .waits = true,
	                       .handle = HANDLER(queue_destroy) },
	[NR_SET_MEMORY_POLICY] = { "SET_MEMORY_POLICY", IN, 32, .handle = nothing },
	[NR_GET_CLOCK_COUNTERS] = { "GET_CLOCK_COUNTERS", BOTH, sizeof(struct io_clocks), .handle = HANDLER(clocks) },
	[NR_CREATE_EVENT] = { "CREATE_EVENT", BOTH, sizeof(struct io_create_event), .handle = HANDLER(event_create) },
	[NR_DESTROY_EVENT] = { "DESTROY_EVENT", IN, sizeof(struct io_event_id), .handle = HANDLER(event_destroy) },
	[NR_SET_EVENT] = { "SET_EVENT", IN, sizeof(struct io_event_id), .handle = HANDLER(event_set), .waits = true },
	[NR_RESET_EVENT] = { "RESET_EVENT", IN, sizeof(struct io_event_id), .handle = HANDLER(event_reset),
	                     .waits = true },
	[NR_WAIT_EVENTS] = { "WAIT_EVENTS", BOTH, sizeof(struct io_wait_events), .waits = true,
	                     .handle = HANDLER(event_wait) },
	[NR_SET_SCRATCH_BACKING_VA] = { "SET_SCRATCH_BACKING_VA", BOTH, 16, .handle = nothing },
	[NR_SET_TRAP_HANDLER] = { "SET_TRAP_HANDLER", IN, 24, .handle = nothing },
	[NR_GET_PROCESS_APERTURES] = { "GET_PROCESS_APERTURES", BOTH, sizeof(struct io_apertures),
	                               .handle = HANDLER(apertures) },
	[NR_ACQUIRE_VM] = { "ACQUIRE_VM", IN, sizeof(struct io_acquire_vm), .handle = HANDLER(acquire_vm) },
	[NR_ALLOC_MEMORY] = { "ALLOC_MEMORY", BOTH, sizeof(struct io_alloc), .handle = HANDLER(memory_alloc) },
	[NR_FREE_MEMORY] = { "FREE_MEMORY", IN, sizeof(struct io_free), .handle = HANDLER(memory_free) },
	[NR_MAP_MEMORY] = { "MAP_MEMORY", BOTH, sizeof(struct io_map), .handle = HANDLER(memory_map) },
	[NR_UNMAP_MEMORY] = { "UNMAP_MEMORY", BOTH, sizeof(struct io_map), .handle = HANDLER(memory_unmap) },
	[NR_SET_XNACK_MODE] = { "SET_XNACK_MODE", BOTH, 4, .handle = nothing },
	[NR_AVAILABLE_MEMORY] = { "AVAILABLE_MEMORY", BOTH, sizeof(struct io_available), .since = 9,
	                          .handle = HANDLER(available_memory) },
	[NR_RUNTIME_ENABLE] = { "RUNTIME_ENABLE", BOTH, sizeof(struct io_runtime), .since = 13,
	                        .handle = HANDLER(runtime_enable) },
};

const char *kfd_ioctl_name(unsigned number)
{
	return number < NR_COUNT && calls[number].name ? calls[number].name : "?";
}

static int refuse(const struct call *c, unsigned long request)
{
	unsigned number = _IOC_NR(request), size = _IOC_SIZE(request), way = _IOC_DIR(request);

	if (!c || !c->name || c->since > fake.minor) {
		object_to("ioctl 0x%lx: version 1.%u of the driver has no call %u", request, fake.minor, number);
		return ENOTTY;
	}
	if (_IOC_TYPE(request) != 'K' || (size != c->size && (!c->longer || size != c->longer)) ||
	    way != c->direction) {
		object_to("%s: request 0x%lx says %u bytes and direction %u, expected %u and %u", c->name, request,
		          size, way, c->size, c->direction);
		return EINVAL;
	}
	return 0;
}

static bool all_gone(void)
{
	bool gone = true;

	for (unsigned i = 0; i < fake.n_cards; i++)
		gone &= fake.card[i].gone;
	return gone;
}

static int handle(const struct call *c, void *argument)
{
	_Alignas(8) unsigned char own[128] = { 0 };

	/* Of a struct that grew, nothing is needed that came later. */
	memcpy(own, argument, c->size);
	if (!c->waits)
		pthread_mutex_lock(&fake.lock);
	int error = c->handle(own);
	if (!c->waits)
		pthread_mutex_unlock(&fake.lock);
	if (c->direction & OUT)
		memcpy(argument, own, c->size);
	return error;
}

int kfd_ioctl(unsigned long request, void *argument)
{
	unsigned number = _IOC_NR(request);
	const struct call *c = number < NR_COUNT ? &calls[number] : NULL;
	const char *name = kfd_ioctl_name(number);
	int error = inject_call(name);

	/* A queue whose scheduler did not answer in time is gone all the same. */
	if (error == ETIME && number == NR_DESTROY_QUEUE && argument)
		handle(c, argument);
	if (error)
		return error;
	unsigned at = fake.calls;
	if (fake.pid != getpid()) {
		object_to("%s: /dev/kfd was opened by another process", name);
		error = EBADF;
	}
	if (!error)
		error = refuse(c, request);
	if (!error && !argument)
		error = EFAULT;
	if (!error && all_gone())
		error = ENODEV;
	if (!error) {
		if ((number == NR_UNMAP_MEMORY || number == NR_FREE_MEMORY) && atomic_load(&fake.running))
			object_to("%s: while a packet runs", name);
		error = handle(c, argument);
	}
	trace_call(at, name, error);
	return error;
}
