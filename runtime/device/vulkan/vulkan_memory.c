/* runtime/device/vulkan/vulkan_memory.c - a device's buffers, and what the host shares. See vulkan.h.
 *
 * Where a driver offers memory of the device that the host reaches, that is used for all. Weights that are more than a
 * buffer may have lie in several, which are cut between two matrices and have names in one row.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/device/vulkan/vulkan.h"
#include "runtime/plan/cut.h"

static struct vulkan *vulkan_of(struct device *d) { return (struct vulkan *)d; }

static const char *const memory_names[] = {
	[DEVICE_WEIGHTS] = "the packed weights", [DEVICE_VECTORS] = "norms and biases",
	[DEVICE_CACHE] = "the KV cache",         [DEVICE_BUFFERS] = "the activations of a session",
	[DEVICE_SHARED] = "ids and logits",      [DEVICE_ARRAYS] = "the arrays of a kernel"
};

/* The first type that has all of the flags, among those that are possible. Drivers list faster ones first. */
static bool find_type(const struct vulkan *d, uint32_t possible, uint32_t flags, uint32_t *out)
{
	const struct vulkan_memory_properties *m = &d->is.memory;

	for (uint32_t k = 0; k < m->types; k++)
		if (possible >> k & 1 && (m->memory_type[k].flags & flags) == flags) {
			*out = k;
			return true;
		}
	return false;
}

/* Mapped: of the host's memory where it is to be read there; else of the device's, which the host may reach as well. */
static bool choose_type(const struct vulkan *d, uint32_t possible, bool mapped, uint32_t *type)
{
	enum { REACHED = VULKAN_MEMORY_VISIBLE | VULKAN_MEMORY_COHERENT };

	if (mapped)
		return find_type(d, possible, REACHED | VULKAN_MEMORY_CACHED, type) ||
		       find_type(d, possible, REACHED, type);
	return (!d->stages && find_type(d, possible, VULKAN_MEMORY_LOCAL | REACHED, type)) ||
	       find_type(d, possible, VULKAN_MEMORY_LOCAL, type) || find_type(d, possible, 0, type);
}

/* As many allocations as the driver allows, at most. */
static int take_memory(struct vulkan *d, const struct vulkan_allocate_info *info, uint64_t *out)
{
	if (d->allocations >= d->is.limits.allocations)
		return VULKAN_TOO_MANY_OBJECTS;
	const int result = d->api.allocate(d->logical, info, NULL, out);
	if (!result)
		d->allocations++;
	return result;
}

static int allocate(struct vulkan *d, struct vulkan_region *r, bool mapped)
{
	const struct vulkan_allocate_flags_info flags = { .type = VULKAN_ALLOCATE_FLAGS_INFO,
		                                          .flags = VULKAN_ALLOCATE_ADDRESS };
	struct vulkan_allocate_info info = { .type = VULKAN_ALLOCATE_INFO, .next = &flags };
	struct vulkan_requirements needs = { 0 };

	d->api.requirements(d->logical, r->buffer, &needs);
	info.bytes = needs.bytes;
	if (!choose_type(d, needs.types, mapped, &info.memory_type))
		return VULKAN_NO_DEVICE_MEMORY;
	const uint32_t heap = d->is.memory.memory_type[info.memory_type].heap;
	if (needs.bytes > d->is.limits.allocation_bytes || needs.bytes > d->is.memory.heap[heap].bytes)
		return VULKAN_NO_DEVICE_MEMORY;
	int result = take_memory(d, &info, &r->memory);
	if (!result)
		result = d->api.bind(d->logical, r->buffer, r->memory, 0);
	const bool reached = d->is.memory.memory_type[info.memory_type].flags & VULKAN_MEMORY_COHERENT;
	if (!result && reached && (mapped || !d->stages)) {
		void *p = NULL;
		result = d->api.map(d->logical, r->memory, 0, r->bytes, 0, &p);
		r->mapped = p;
	}
	return result;
}

/* Work that may still run may still use it. */
static void give_back(struct vulkan *d, struct vulkan_region *r)
{
	const bool idle = vulkan_idle(d, 0);

	if (r->buffer && idle)
		d->api.destroy_buffer(d->logical, r->buffer, NULL);
	if (r->memory && idle) {
		d->api.free_memory(d->logical, r->memory, NULL);
		d->allocations--;
	}
	free(r);
}

static bool make_buffer(struct vulkan *d, struct vulkan_region *r, bool mapped, const char *what, struct error *err)
{
	const struct vulkan_buffer_info info = {
		.type = VULKAN_BUFFER_INFO,
		.bytes = r->bytes,
		.usage = VULKAN_USAGE_COPY_FROM | VULKAN_USAGE_COPY_TO | VULKAN_USAGE_STORAGE | VULKAN_USAGE_ADDRESS
	};
	int result = d->api.create_buffer(d->logical, &info, NULL, &r->buffer);

	if (!result)
		result = allocate(d, r, mapped);
	if (result == VULKAN_DEVICE_LOST)
		return vulkan_failed(d, result, what, err);
	if (result == VULKAN_TOO_MANY_OBJECTS)
		return error_set(err, ERROR_MEMORY, "%s: %s has %u allocations already, which is all it may have", what,
		                 d->is.name, d->allocations);
	if (result)
		return error_set(err, ERROR_MEMORY, "%s: %llu bytes could not be had of %s: %s", what,
		                 (unsigned long long)r->bytes, d->is.name, vulkan_result_text(result));
	r->address = r->name = d->api.address(
		d->logical, &(struct vulkan_address_info){ .type = VULKAN_ADDRESS_INFO, .buffer = r->buffer });
	return vulkan_zero(d, r, err);
}

struct vulkan_region *vulkan_make_region(struct vulkan *d, uint64_t bytes, bool mapped, const char *what,
                                         struct error *err)
{
	if (!vulkan_alive(&d->device, err) || !vulkan_check_bytes(d, bytes, what, err))
		return NULL;
	struct vulkan_region *r = calloc(1, sizeof *r);
	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for a device's list of its own");
		return NULL;
	}
	r->bytes = bytes ? (bytes + 255) / 256 * 256 : 256;
	if (make_buffer(d, r, mapped, what, err))
		return r;
	give_back(d, r);
	return NULL;
}

void vulkan_free_region(struct vulkan *d, struct vulkan_region *r)
{
	if (r)
		give_back(d, r);
}

/* ---- what device.h asks for */

/* Puts a chain of regions in front of the list. */
static void keep(struct vulkan *d, struct vulkan_region *first)
{
	struct vulkan_region *last = first;

	while (last->next)
		last = last->next;
	pthread_mutex_lock(&d->lock);
	last->next = d->regions;
	d->regions = first;
	pthread_mutex_unlock(&d->lock);
}

static void *vulkan_alloc(struct device *device, size_t bytes, enum device_memory what, struct error *err)
{
	struct vulkan *d = vulkan_of(device);
	struct vulkan_region *r = vulkan_make_region(d, bytes, what == DEVICE_SHARED, memory_names[what], err);

	if (!r)
		return NULL;
	if (what == DEVICE_SHARED)
		r->name = (uint64_t)(uintptr_t)r->mapped;
	const uint64_t name = r->name;
	keep(d, r);
	return (void *)(uintptr_t)name;
}

/* A region for what lies between two places, behind which kernels may read as far as behind the last one. */
static bool add_part(struct vulkan *d, struct vulkan_region **first, uint64_t from, uint64_t to, struct error *err)
{
	struct vulkan_region *r =
		vulkan_make_region(d, to - from + WEIGHTS_SLACK, false, memory_names[DEVICE_WEIGHTS], err);

	if (!r)
		return false;
	r->name = from;
	r->bytes = to - from;
	r->next = *first;
	*first = r;
	return true;
}

/* The parts of so many bytes, each as many matrices as fit. Until they are named, names count from 0. */
static bool make_parts(struct vulkan *d, uint64_t bytes, const struct cut_share *share, size_t n,
                       struct vulkan_region **first, struct error *err)
{
	const uint64_t max = vulkan_max_bytes(d) - WEIGHTS_SLACK - 256;
	uint64_t begin = 0, last = 0;

	for (size_t k = 0; k <= 2 * n; k++) {
		const struct cut_share *s = &share[k / 2];
		const uint64_t at = k == 2 * n ? bytes : k % 2 ? s->at + s->bytes * s->units : s->at;
		if (at - begin > max && last > begin) {
			if (!add_part(d, first, begin, last, err))
				return false;
			begin = last;
		}
		if (at - begin > max)
			return vulkan_check_bytes(d, at - begin + WEIGHTS_SLACK + 256,
			                          "weights that must lie in one piece", err);
		last = at;
	}
	return add_part(d, first, begin, bytes, err);
}

static void *alloc_shares(struct device *device, size_t bytes, const struct cut_share *share, size_t n,
                          struct error *err)
{
	struct vulkan *d = vulkan_of(device);
	struct vulkan_region *first = NULL, *next;

	if (bytes <= vulkan_max_bytes(d))
		return vulkan_alloc(device, bytes, DEVICE_WEIGHTS, err);
	/* the names: addresses that are nobody else's */
	void *const range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED) {
		error_set(err, ERROR_MEMORY, "no room for the addresses of %zu bytes of weights", bytes);
		return NULL;
	}
	const bool ok = make_parts(d, bytes, share, n, &first, err);
	for (struct vulkan_region *r = first; r; r = next) {
		next = r->next;
		r->name += (uint64_t)(uintptr_t)range;
		r->range = (uint64_t)(uintptr_t)range;
		r->range_bytes = bytes;
		if (!ok)
			give_back(d, r);
	}
	if (ok) {
		keep(d, first);
		return range;
	}
	munmap(range, bytes);
	return NULL;
}

/* What a card must have: all of it. */
static uint64_t share_bytes(struct device *device, size_t bytes, const struct cut_share *share, size_t n)
{
	return bytes;
}

/* Takes one out of the list that has the name, or whose range has. NULL: there is none. */
static struct vulkan_region *take_out(struct vulkan *d, uint64_t name)
{
	struct vulkan_region *r = NULL;

	pthread_mutex_lock(&d->lock);
	for (struct vulkan_region **at = &d->regions; *at && !r; at = r ? at : &(*at)->next)
		if (((*at)->range_bytes ? (*at)->range : (*at)->name) == name) {
			r = *at;
			*at = r->next;
		}
	pthread_mutex_unlock(&d->lock);
	return r;
}

static void vulkan_release(struct device *device, void *p, size_t bytes)
{
	struct vulkan *d = vulkan_of(device);
	uint64_t range_bytes = 0;

	for (struct vulkan_region *r; p && (r = take_out(d, (uint64_t)(uintptr_t)p));) {
		range_bytes = r->range_bytes;
		give_back(d, r);
		if (!range_bytes)
			return;
	}
	if (range_bytes)
		munmap(p, range_bytes);
}

struct vulkan_region *vulkan_region_of(struct vulkan *d, uint64_t name)
{
	struct vulkan_region *r = d->regions;

	while (r && name - r->name >= r->bytes)
		r = r->next;
	return r;
}

uint64_t vulkan_argument(struct vulkan *d, uint64_t value)
{
	pthread_mutex_lock(&d->lock);
	const struct vulkan_region *r = d->regions;
	while (r && (r->name == r->address || value - r->name >= r->bytes))
		r = r->next;
	value = r ? value - r->name + r->address : value;
	pthread_mutex_unlock(&d->lock);
	return value;
}

struct vulkan_region *vulkan_map_region(struct vulkan *d, uint64_t bytes, const char *what, struct error *err)
{
	return vulkan_make_region(d, bytes, true, what, err);
}

void vulkan_set_memory(struct vulkan *d)
{
	d->device.alloc = vulkan_alloc;
	d->device.alloc_shares = alloc_shares;
	d->device.share_bytes = share_bytes;
	d->device.release = vulkan_release;
}
