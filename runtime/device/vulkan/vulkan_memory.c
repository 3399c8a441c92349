/* runtime/device/vulkan/vulkan_memory.c - a device's buffers, what the host shares, and copies. See vulkan.h.
 *
 * Where a driver offers memory of the device that the host reaches, that is used for all, and copies are the host's.
 * Else copies go through a buffer that both reach, a part at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/vulkan/vulkan.h"

static struct vulkan *vulkan_of(struct device *d) { return (struct vulkan *)d; }

static const char *const memory_names[] = {
	[DEVICE_WEIGHTS] = "the packed weights", [DEVICE_VECTORS] = "norms and biases",
	[DEVICE_CACHE] = "the KV cache",         [DEVICE_BUFFERS] = "the activations of a session",
	[DEVICE_SHARED] = "ids and logits",      [DEVICE_ARRAYS] = "the arrays of a kernel"
};

enum { STAGE_BYTES = 8 << 20 };

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
	int result = d->api.allocate(d->logical, &info, NULL, &r->memory);
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

static void give_back(struct vulkan *d, struct vulkan_region *r)
{
	if (r->buffer)
		d->api.destroy_buffer(d->logical, r->buffer, NULL);
	if (r->memory)
		d->api.free_memory(d->logical, r->memory, NULL);
	free(r);
}

static bool zero(struct vulkan *d, struct vulkan_region *r, struct error *err);

struct vulkan_region *vulkan_make_region(struct vulkan *d, uint64_t bytes, bool mapped, const char *what,
                                         struct error *err)
{
	struct vulkan_region *r = calloc(1, sizeof *r);
	const struct vulkan_buffer_info info = {
		.type = VULKAN_BUFFER_INFO,
		.bytes = bytes ? (bytes + 255) / 256 * 256 : 256,
		.usage = VULKAN_USAGE_COPY_FROM | VULKAN_USAGE_COPY_TO | VULKAN_USAGE_STORAGE | VULKAN_USAGE_ADDRESS
	};

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for a device's list of its own");
		return NULL;
	}
	r->bytes = info.bytes;
	int result = r->bytes > d->is.allocation_bytes ? VULKAN_NO_DEVICE_MEMORY
	                                               : d->api.create_buffer(d->logical, &info, NULL, &r->buffer);
	if (!result)
		result = allocate(d, r, mapped);
	if (result) {
		if (result == VULKAN_DEVICE_LOST)
			vulkan_failed(d, result, what, err);
		else
			error_set(err, ERROR_MEMORY, "%s: %llu bytes could not be had of %s: %s", what,
			          (unsigned long long)bytes, d->is.name, vulkan_result_text(result));
		give_back(d, r);
		return NULL;
	}
	r->address = d->api.address(d->logical,
	                            &(struct vulkan_address_info){ .type = VULKAN_ADDRESS_INFO, .buffer = r->buffer });
	if (zero(d, r, err))
		return r;
	give_back(d, r);
	return NULL;
}

void vulkan_free_region(struct vulkan *d, struct vulkan_region *r)
{
	if (r)
		give_back(d, r);
}

/* ---- commands that copy, one at a time, under the lock */

int vulkan_run_commands(struct vulkan *d, void *commands, uint64_t fence)
{
	const struct vulkan_submit_info info = { .type = VULKAN_SUBMIT_INFO, .buffers = 1, .buffer = &commands };
	int result = d->api.reset_fences(d->logical, 1, &fence);

	if (!result)
		result = d->api.submit(d->queue, 1, &info, fence);
	return result ? result : d->api.wait_fences(d->logical, 1, &fence, 1, (uint64_t)(d->patience * 1e9));
}

enum copy_kind { COPY_FILL, COPY_TO, COPY_FROM };

static int copy_part(struct vulkan *d, const struct vulkan_region *r, enum copy_kind kind, uint64_t offset,
                     uint64_t bytes)
{
	const struct vulkan_commands_info info = { .type = VULKAN_COMMANDS_INFO, .pool = d->pool, .count = 1 };
	const struct vulkan_copy to = { 0, offset, bytes }, from = { offset, 0, bytes };
	void *commands = NULL;
	int result = d->api.allocate_commands(d->logical, &info, &commands);

	if (result)
		return result;
	result = d->api.begin(commands, &(struct vulkan_begin_info){ .type = VULKAN_BEGIN_INFO });
	if (kind == COPY_FILL)
		d->api.fill(commands, r->buffer, offset, bytes, 0);
	else if (kind == COPY_TO)
		d->api.copy(commands, d->stage->buffer, r->buffer, 1, &to);
	else
		d->api.copy(commands, r->buffer, d->stage->buffer, 1, &from);
	const struct vulkan_memory_barrier barrier = {
		.type = VULKAN_MEMORY_BARRIER,
		.from = VULKAN_TRANSFER_WRITE,
		.to = VULKAN_SHADER_READ | VULKAN_SHADER_WRITE | VULKAN_HOST_READ | VULKAN_TRANSFER_READ
	};
	d->api.barrier(commands, VULKAN_AT_TRANSFER, VULKAN_AT_COMPUTE | VULKAN_AT_HOST | VULKAN_AT_TRANSFER, 0, 1,
	               &barrier, 0, NULL, 0, NULL);
	if (!result)
		result = d->api.end(commands);
	if (!result)
		result = vulkan_run_commands(d, commands, d->fence);
	if (result != VULKAN_TIMEOUT) /* else it may still be at work */
		d->api.free_commands(d->logical, d->pool, 1, &commands);
	return result;
}

static bool zero(struct vulkan *d, struct vulkan_region *r, struct error *err)
{
	if (r->mapped) {
		memset(r->mapped, 0, r->bytes);
		return true;
	}
	pthread_mutex_lock(&d->lock);
	const int result = copy_part(d, r, COPY_FILL, 0, r->bytes);
	pthread_mutex_unlock(&d->lock);
	return !result || vulkan_failed(d, result, "clearing memory", err);
}

/* ---- what device.h asks for */

static void *vulkan_alloc(struct device *device, size_t bytes, enum device_memory what, struct error *err)
{
	struct vulkan *d = vulkan_of(device);
	struct vulkan_region *r = vulkan_make_region(d, bytes, what == DEVICE_SHARED, memory_names[what], err);

	if (!r)
		return NULL;
	r->shared = what == DEVICE_SHARED;
	pthread_mutex_lock(&d->lock);
	r->next = d->regions;
	d->regions = r;
	pthread_mutex_unlock(&d->lock);
	return r->shared ? (void *)r->mapped : (void *)(uintptr_t)r->address;
}

static uint64_t name_of(const struct vulkan_region *r)
{
	return r->shared ? (uint64_t)(uintptr_t)r->mapped : r->address;
}

static void vulkan_release(struct device *device, void *p, size_t bytes)
{
	struct vulkan *d = vulkan_of(device);
	struct vulkan_region *r = NULL;

	pthread_mutex_lock(&d->lock);
	for (struct vulkan_region **at = &d->regions; p && *at; at = &(*at)->next)
		if (name_of(*at) == (uint64_t)(uintptr_t)p) {
			r = *at;
			*at = r->next;
			break;
		}
	pthread_mutex_unlock(&d->lock);
	vulkan_free_region(d, r);
}

/* The region in which an address lies. Under the lock. */
static struct vulkan_region *region_of(struct vulkan *d, uint64_t address)
{
	struct vulkan_region *r = d->regions;

	while (r && address - name_of(r) >= r->bytes)
		r = r->next;
	return r;
}

uint64_t vulkan_argument(struct vulkan *d, uint64_t value)
{
	pthread_mutex_lock(&d->lock);
	const struct vulkan_region *r = d->regions;
	while (r && (!r->shared || value - name_of(r) >= r->bytes))
		r = r->next;
	value = r ? value - name_of(r) + r->address : value;
	pthread_mutex_unlock(&d->lock);
	return value;
}

/* Through the buffer that both reach. Under the lock. */
static int copy_staged(struct vulkan *d, const struct vulkan_region *r, uint64_t offset, void *to, const void *from,
                       size_t bytes)
{
	int result = 0;

	for (size_t done = 0; !result && done < bytes; done += STAGE_BYTES) {
		const size_t part = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
		if (from)
			memcpy(d->stage->mapped, (const uint8_t *)from + done, part);
		result = copy_part(d, r, from ? COPY_TO : COPY_FROM, offset + done, part);
		if (!from && !result)
			memcpy((uint8_t *)to + done, d->stage->mapped, part);
	}
	return result;
}

static bool copy_with(struct vulkan *d, uint64_t there, void *to, const void *from, size_t bytes, struct error *err)
{
	pthread_mutex_lock(&d->lock);
	struct vulkan_region *r = region_of(d, there);
	const uint64_t offset = r ? there - name_of(r) : 0;
	const bool copies = r && !r->mapped;
	int result = 0;
	if (copies)
		result = copy_staged(d, r, offset, to, from, bytes);
	pthread_mutex_unlock(&d->lock);
	if (!r)
		return error_set(err, ERROR_ARGUMENT, "0x%llx is no address of %s", (unsigned long long)there,
		                 d->is.name);
	if (result)
		return vulkan_failed(d, result, "a copy", err);
	if (!copies && from)
		memcpy(r->mapped + offset, from, bytes);
	else if (!copies)
		memcpy(to, r->mapped + offset, bytes);
	return true;
}

static bool vulkan_upload(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	return !bytes || copy_with(vulkan_of(device), (uint64_t)(uintptr_t)to, NULL, from, bytes, err);
}

static bool vulkan_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	return !bytes || copy_with(vulkan_of(device), (uint64_t)(uintptr_t)from, to, NULL, bytes, err);
}

struct vulkan_region *vulkan_map_region(struct vulkan *d, uint64_t bytes, const char *what, struct error *err)
{
	return vulkan_make_region(d, bytes, true, what, err);
}

void vulkan_set_memory(struct vulkan *d)
{
	d->device.alloc = vulkan_alloc;
	d->device.release = vulkan_release;
	d->device.upload = vulkan_upload;
	d->device.read = vulkan_read;
}
