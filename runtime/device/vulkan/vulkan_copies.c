/* runtime/device/vulkan/vulkan_copies.c - what goes to a device's buffers and comes back. See vulkan.h.
 *
 * Copies are the host's where it reaches the memory. Else they go through a buffer that both reach, a part at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/vulkan/vulkan.h"

static struct vulkan *vulkan_of(struct device *d) { return (struct vulkan *)d; }

/* ---- commands that copy, one at a time, under the lock */

int vulkan_run_commands(struct vulkan *d, void *commands, uint64_t fence)
{
	const struct vulkan_submit_info info = { .type = VULKAN_SUBMIT_INFO, .buffers = 1, .buffer = &commands };
	/* the fence may be of work that did not end */
	int result = d->pending ? VULKAN_DEVICE_LOST : d->api.reset_fences(d->logical, 1, &fence);

	if (!result)
		result = d->api.submit(d->queue, 1, &info, fence);
	if (result)
		return result;
	result = d->api.wait_fences(d->logical, 1, &fence, 1, (uint64_t)(d->patience * 1e9));
	if (result && result != VULKAN_DEVICE_LOST)
		d->pending = fence;
	return result;
}

enum copy_kind { COPY_FILL, COPY_TO, COPY_FROM };

static void record_copy(struct vulkan *d, const struct vulkan_region *r, enum copy_kind kind, uint64_t offset,
                        uint64_t bytes, void *commands)
{
	static const struct vulkan_memory_barrier barrier = {
		.type = VULKAN_MEMORY_BARRIER,
		.from = VULKAN_TRANSFER_WRITE,
		.to = VULKAN_SHADER_READ | VULKAN_SHADER_WRITE | VULKAN_HOST_READ | VULKAN_TRANSFER_READ
	};
	const struct vulkan_copy to = { 0, offset, bytes }, from = { offset, 0, bytes };

	if (kind == COPY_FILL)
		d->api.fill(commands, r->buffer, offset, bytes, 0);
	else if (kind == COPY_TO)
		d->api.copy(commands, d->stage->buffer, r->buffer, 1, &to);
	else
		d->api.copy(commands, r->buffer, d->stage->buffer, 1, &from);
	d->api.barrier(commands, VULKAN_AT_TRANSFER, VULKAN_AT_COMPUTE | VULKAN_AT_HOST | VULKAN_AT_TRANSFER, 0, 1,
	               &barrier, 0, NULL, 0, NULL);
}

static int copy_part(struct vulkan *d, const struct vulkan_region *r, enum copy_kind kind, uint64_t offset,
                     uint64_t bytes)
{
	const struct vulkan_commands_info info = { .type = VULKAN_COMMANDS_INFO, .pool = d->pool, .count = 1 };
	void *commands = NULL;
	int result = d->api.allocate_commands(d->logical, &info, &commands);

	if (result)
		return result;
	result = d->api.begin(commands, &(struct vulkan_begin_info){ .type = VULKAN_BEGIN_INFO });
	if (!result)
		record_copy(d, r, kind, offset, bytes, commands);
	if (!result)
		result = d->api.end(commands);
	if (!result)
		result = vulkan_run_commands(d, commands, d->fence);
	if (vulkan_idle(d, 0))
		d->api.free_commands(d->logical, d->pool, 1, &commands);
	return result;
}

bool vulkan_zero(struct vulkan *d, struct vulkan_region *r, struct error *err)
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

uint64_t vulkan_stage_bytes(const struct vulkan *d)
{
	const uint64_t max = vulkan_max_bytes(d);

	return max < VULKAN_STAGE_BYTES ? max : VULKAN_STAGE_BYTES;
}

/* ---- what device.h asks for */

/* Through the buffer that both reach. Under the lock. */
static int copy_staged(struct vulkan *d, const struct vulkan_region *r, uint64_t offset, void *to, const void *from,
                       size_t bytes)
{
	const size_t max = (size_t)vulkan_stage_bytes(d);
	int result = 0;

	for (size_t done = 0; !result && done < bytes; done += max) {
		const size_t part = bytes - done < max ? bytes - done : max;
		if (from)
			memcpy(d->stage->mapped, (const uint8_t *)from + done, part);
		result = copy_part(d, r, from ? COPY_TO : COPY_FROM, offset + done, part);
		if (!from && !result)
			memcpy((uint8_t *)to + done, d->stage->mapped, part);
	}
	return result;
}

/* Of one region: as much as lies in it, from *done on. */
static bool copy_some(struct vulkan *d, uint64_t there, void *to, const void *from, size_t bytes, size_t *done,
                      struct error *err)
{
	pthread_mutex_lock(&d->lock);
	struct vulkan_region *r = vulkan_region_of(d, there);
	const uint64_t offset = r ? there - r->name : 0, left = r ? r->bytes - offset : 0;
	const bool copies = r && !r->mapped;
	const size_t n = bytes < left ? bytes : (size_t)left;
	int result = 0;
	if (copies)
		result = copy_staged(d, r, offset, to, from, n);
	pthread_mutex_unlock(&d->lock);
	if (!r)
		return error_set(err, ERROR_ARGUMENT, "0x%llx is no address of %s", (unsigned long long)there,
		                 d->is.name);
	if (result)
		return vulkan_failed(d, result, "a copy", err);
	if (!copies && from)
		memcpy(r->mapped + offset, from, n);
	else if (!copies)
		memcpy(to, r->mapped + offset, n);
	*done += n;
	return true;
}

static bool copy_with(struct vulkan *d, uint64_t there, void *to, const void *from, size_t bytes, struct error *err)
{
	bool ok = vulkan_alive(&d->device, err);

	for (size_t done = 0; ok && done < bytes;)
		ok = copy_some(d, there + done, to ? (uint8_t *)to + done : NULL,
		               from ? (const uint8_t *)from + done : NULL, bytes - done, &done, err);
	return ok;
}

static bool vulkan_upload(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	return !bytes || copy_with(vulkan_of(device), (uint64_t)(uintptr_t)to, NULL, from, bytes, err);
}

static bool vulkan_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	return !bytes || copy_with(vulkan_of(device), (uint64_t)(uintptr_t)from, to, NULL, bytes, err);
}

static bool upload_addresses(struct device *device, void *to, uint8_t *const from[], size_t n, struct error *err)
{
	uint64_t *const there = malloc(n * sizeof *there);
	bool ok = there || error_set(err, ERROR_MEMORY, "no memory for a table of %zu addresses", n);

	for (size_t k = 0; ok && k < n; k++)
		there[k] = vulkan_argument(vulkan_of(device), (uint64_t)(uintptr_t)from[k]);
	ok = ok && vulkan_upload(device, to, there, n * sizeof *there, err);
	free(there);
	return ok;
}

void vulkan_set_copies(struct vulkan *d)
{
	d->device.upload = vulkan_upload;
	d->device.upload_addresses = upload_addresses;
	d->device.read = vulkan_read;
}
