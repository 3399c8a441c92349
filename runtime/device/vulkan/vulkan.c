/* runtime/device/vulkan/vulkan.c - which devices drivers of Vulkan offer here, what one must have, and opening one. See
 * vulkan.h.
 */
#include "runtime/device/vulkan/vulkan.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vulkan *vulkan_of(struct device *d) { return (struct vulkan *)d; }

bool vulkan_failed(struct vulkan *d, int result, const char *what, struct error *err)
{
	pthread_mutex_lock(&d->lock);
	if ((result == VULKAN_DEVICE_LOST || d->pending) && !d->lost) {
		snprintf(d->lost_by, sizeof d->lost_by, "%.100s: %s", what, vulkan_result_text(result));
		d->lost = true;
	}
	pthread_mutex_unlock(&d->lock);
	return error_set(err, ERROR_DEVICE, "%s: %s failed: %s (%d)", d->is.name, what, vulkan_result_text(result),
	                 result);
}

bool vulkan_idle(struct vulkan *d, double seconds)
{
	const uint64_t fence = d->pending;

	if (!fence)
		return true;
	if (d->api.wait_fences(d->logical, 1, &fence, 1, (uint64_t)(seconds * 1e9)) == VULKAN_TIMEOUT)
		return false;
	d->pending = 0;
	return true;
}

bool vulkan_alive(struct device *device, struct error *err)
{
	struct vulkan *d = vulkan_of(device);

	return !d->lost || error_set(err, ERROR_DEVICE, "%s is lost since %s", d->is.name, d->lost_by);
}

/* ---- what a driver says */

enum { DEVICES_MAX = 16, FAMILIES_MAX = 16 };

static unsigned list_devices(const struct vulkan_library *l, void *out[DEVICES_MAX])
{
	uint32_t n = DEVICES_MAX;
	const int result = l->api.devices(l->instance, &n, out);

	return result == VULKAN_SUCCESS || result == VULKAN_INCOMPLETE ? n : 0;
}

/* What must be there, by the list of features in which it stands. */
static const struct {
	uint8_t list, index;
	const char *name;
} needed[] = { { 0, VULKAN_FLOAT64, "numbers of 64 bits (shaderFloat64)" },
	       { 0, VULKAN_INT64, "integers of 64 bits (shaderInt64)" },
	       { 1, VULKAN_STORAGE_16, "memory of 16-bit elements (storageBuffer16BitAccess)" },
	       { 2, VULKAN_STORAGE_8, "memory of 8-bit elements (storageBuffer8BitAccess)" },
	       { 2, VULKAN_ADDRESSES, "addresses of buffers (bufferDeviceAddress)" },
	       { 2, VULKAN_MEMORY_MODEL, "the memory model of Vulkan (vulkanMemoryModel)" },
	       { 3, VULKAN_WHOLE_SUBGROUPS, "whole subgroups (computeFullSubgroups)" },
	       { 3, VULKAN_SUBGROUP_SIZE, "a size of subgroups that may be chosen (subgroupSizeControl)" },
	       { 3, VULKAN_DOT_PRODUCT, "dot products of bytes (shaderIntegerDotProduct)" } };

static void chain(struct vulkan_features list[VULKAN_FEATURE_LISTS])
{
	static const uint32_t types[VULKAN_FEATURE_LISTS] = { VULKAN_FEATURES, VULKAN_FEATURES_11, VULKAN_FEATURES_12,
		                                              VULKAN_FEATURES_13 };

	for (unsigned k = 0; k < VULKAN_FEATURE_LISTS; k++)
		list[k] = (struct vulkan_features){ .type = types[k],
			                            .next = k + 1 < VULKAN_FEATURE_LISTS ? &list[k + 1] : NULL };
}

static bool check_features(const struct vulkan_library *l, void *physical, struct vulkan_facts *is, struct error *err)
{
	struct vulkan_features list[VULKAN_FEATURE_LISTS];

	chain(list);
	l->api.features(physical, &list[0]);
	is->atomics64 = list[2].has[VULKAN_ATOMICS_64];
	for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
		if (!list[needed[k].list].has[needed[k].index])
			return error_set(err, ERROR_DEVICE, "its driver has not: %s", needed[k].name);
	return true;
}

/* A target whose lanes are as many as a subgroup of the device can have; the size it has unless asked, first. */
static const struct target *choose_target(uint32_t usual, uint32_t min, uint32_t max)
{
	static const enum target_id ids[] = { TARGET_SPIRV32, TARGET_SPIRV16, TARGET_SPIRV8 };

	for (unsigned any = 0; any < 2; any++)
		for (unsigned k = 0; k < 3; k++) {
			const unsigned lanes = target_table[ids[k]].lanes;
			if (any ? lanes >= min && lanes <= max : lanes == usual)
				return &target_table[ids[k]];
		}
	return NULL;
}

static bool check_subgroups(const struct vulkan_properties_11 *p, const struct vulkan_properties_13 *sizes,
                            struct vulkan_facts *is, struct error *err)
{
	enum { OPERATIONS = VULKAN_SUBGROUP_BASIC | VULKAN_SUBGROUP_VOTE | VULKAN_SUBGROUP_SHUFFLE };

	is->sizes_subgroups =
		sizes->min_subgroup != sizes->max_subgroup && sizes->subgroup_size_stages & VULKAN_STAGE_COMPUTE;
	is->target = is->sizes_subgroups ? choose_target(p->subgroup_size, sizes->min_subgroup, sizes->max_subgroup)
	                                 : choose_target(p->subgroup_size, p->subgroup_size, p->subgroup_size);
	if (!is->target && !is->sizes_subgroups)
		return error_set(err, ERROR_DEVICE, "its subgroups have %u lanes; 8, 16 or 32 are needed",
		                 p->subgroup_size);
	if (!is->target)
		return error_set(err, ERROR_DEVICE, "its subgroups have %u to %u lanes; 8, 16 or 32 are needed",
		                 sizes->min_subgroup, sizes->max_subgroup);
	if (!(p->subgroup_stages & VULKAN_STAGE_COMPUTE))
		return error_set(err, ERROR_DEVICE, "its subgroups do nothing together where it computes");
	return (p->subgroup_operations & OPERATIONS) == OPERATIONS ||
	       error_set(err, ERROR_DEVICE, "its subgroups have no votes or no exchange of values");
}

static bool find_family(const struct vulkan_library *l, void *physical, struct vulkan_facts *is, struct error *err)
{
	struct vulkan_queue_family family[FAMILIES_MAX];
	uint32_t n = FAMILIES_MAX;

	l->api.queue_families(physical, &n, family);
	for (uint32_t k = 0; k < n; k++)
		if (family[k].flags & VULKAN_QUEUE_COMPUTE && family[k].count) {
			is->family = k;
			return true;
		}
	return error_set(err, ERROR_DEVICE, "it has no queue that computes");
}

static void read_memory(const struct vulkan_library *l, void *physical, struct vulkan_facts *is)
{
	l->api.memory_properties(physical, &is->memory);
	for (uint32_t k = 0; k < is->memory.heaps; k++)
		if (is->memory.heap[k].flags & VULKAN_MEMORY_LOCAL && is->memory.heap[k].bytes > is->bytes)
			is->bytes = is->memory.heap[k].bytes;
}

/* Names come from drivers: what is not printable becomes a question mark. */
static void copy_name(char *out, size_t size, const char *from)
{
	size_t n = 0;

	for (; n + 1 < size && from[n]; n++)
		out[n] = isprint((unsigned char)from[n]) ? from[n] : '?';
	out[n] = 0;
}

/* is: with names whatever it returns. */
static bool read_facts(const struct vulkan_library *l, void *physical, struct vulkan_facts *is, struct error *err)
{
	struct vulkan_properties_13 p13 = { .type = VULKAN_PROPERTIES_13 };
	struct vulkan_properties_12 p12 = { .type = VULKAN_PROPERTIES_12, .next = &p13 };
	struct vulkan_properties_11 p11 = { .type = VULKAN_PROPERTIES_11, .next = &p12 };
	struct vulkan_properties p = { .type = VULKAN_PROPERTIES, .next = &p11 };
	char driver[sizeof is->driver];

	*is = (struct vulkan_facts){ .name = "" };
	l->api.properties(physical, &p);
	copy_name(is->name, sizeof is->name, p.name);
	if (p.api_version < VULKAN_API_1_3)
		return error_set(err, ERROR_DEVICE, "its driver has Vulkan %u.%u, 1.3 is needed",
		                 p.api_version >> 22 & 127, p.api_version >> 12 & 1023);
	snprintf(driver, sizeof driver, "%.70s %.70s", p12.driver_name, p12.driver_info);
	copy_name(is->driver, sizeof is->driver, driver);
	is->device_type = p.device_type;
	vulkan_read_limits(&is->limits, &p, &p11, &p13);
	for (unsigned k = 0; k < 2; k++) {
		is->rounds_to_even[k] = p12.rounds_to_even[k + 1];
		is->preserves_nan[k] = p12.preserves_nan[k + 1];
		is->preserves_denorms[k] = p12.preserves_denorms[k + 1];
	}
	read_memory(l, physical, is);
	return check_features(l, physical, is, err) && check_subgroups(&p11, &p13, is, err) &&
	       vulkan_check_limits(&is->limits, is->target, err) && find_family(l, physical, is, err);
}

/* ---- opening */

/* A card has so many at once, about. On a processor one costs little, and the fewer units it has, the fewer iterations
 * have its loops (SPIRV_ITERATIONS). */
enum { GROUPS_OF_CARD = 512, GROUPS_OF_PROCESSOR = 4096 };
#define USUAL_PATIENCE 600.0
/* How long closing waits for work that did not end in time. */
#define CLOSING_SECONDS 10.0

/* What work uses that still runs stays until the process ends: the logical device, too. */
static void close_logical(struct vulkan *d)
{
	const bool idle = vulkan_idle(d, d->patience < CLOSING_SECONDS ? d->patience : CLOSING_SECONDS);

	vulkan_free_pipelines(d);
	vulkan_free_region(d, d->stage);
	if (!idle)
		return;
	if (d->fence)
		d->api.destroy_fence(d->logical, d->fence, NULL);
	if (d->pool)
		d->api.destroy_pool(d->logical, d->pool, NULL);
	if (d->cache)
		d->api.destroy_cache(d->logical, d->cache, NULL);
	if (d->layout)
		d->api.destroy_layout(d->logical, d->layout, NULL);
	d->api.destroy_device(d->logical, NULL);
}

static void close_device(struct device *device)
{
	struct vulkan *d = vulkan_of(device);

	if (d->logical && d->api.destroy_device)
		close_logical(d);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static bool open_logical(struct vulkan *d, struct error *err)
{
	const float priority = 1;
	const struct vulkan_queue_info queue = {
		.type = VULKAN_QUEUE_INFO, .family = d->is.family, .count = 1, .priority = &priority
	};
	struct vulkan_features list[VULKAN_FEATURE_LISTS];

	chain(list);
	for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
		list[needed[k].list].has[needed[k].index] = 1;
	list[2].has[VULKAN_ATOMICS_64] = d->is.atomics64;
	const struct vulkan_device_info info = {
		.type = VULKAN_DEVICE_INFO, .next = &list[0], .queues = 1, .queue = &queue
	};
	const int result = d->library->api.create_device(d->physical, &info, NULL, &d->logical);
	return !result || vulkan_failed(d, result, "opening the device", err);
}

static bool open_objects(struct vulkan *d, struct error *err)
{
	const struct vulkan_push_range range = { VULKAN_STAGE_COMPUTE, 0, sizeof(struct spirv_launch) };
	const struct vulkan_layout_info layout = { .type = VULKAN_LAYOUT_INFO, .ranges = 1, .range = &range };
	const struct vulkan_cache_info cache = { .type = VULKAN_CACHE_INFO };
	const struct vulkan_pool_info pool = { .type = VULKAN_POOL_INFO, .family = d->is.family };
	const struct vulkan_fence_info fence = { .type = VULKAN_FENCE_INFO };

	d->api.queue(d->logical, d->is.family, 0, &d->queue);
	int result = d->api.create_layout(d->logical, &layout, NULL, &d->layout);
	if (!result)
		result = d->api.create_cache(d->logical, &cache, NULL, &d->cache);
	if (!result)
		result = d->api.create_pool(d->logical, &pool, NULL, &d->pool);
	if (!result)
		result = d->api.create_fence(d->logical, &fence, NULL, &d->fence);
	if (result)
		return vulkan_failed(d, result, "opening the device", err);
	return (d->stage = vulkan_map_region(d, vulkan_stage_bytes(d), "copies", err)) != NULL;
}

static bool open_at(struct vulkan *d, struct error *err)
{
	struct error why = { 0 };

	if (!read_facts(d->library, d->physical, &d->is, &why))
		return error_set(err, why.code, "%s cannot be used: %s", d->is.name, why.text);
	d->groups = d->is.device_type == VULKAN_TYPE_CPU ? GROUPS_OF_PROCESSOR : GROUPS_OF_CARD;
	if (d->groups > d->is.limits.groups)
		d->groups = d->is.limits.groups;
	d->stages = getenv("JITRUN_VULKAN_STAGES") != NULL;
	d->device.facts.target = d->is.target;
	d->device.facts.overlaps = d->is.target->lane_bytes != 0;
	if (!device_patience(USUAL_PATIENCE, &d->patience, err) || !open_logical(d, err))
		return false;
	if (!vulkan_find_functions(&d->api, d->library, err)) {
		d->api = (struct vulkan_device_api){ 0 };
		return false;
	}
	return open_objects(d, err) && vulkan_check(d, err);
}

struct vulkan *vulkan_open(unsigned number, struct error *err)
{
	const struct vulkan_library *l = vulkan_library(err);
	void *physical[DEVICES_MAX];
	const unsigned n = l ? list_devices(l, physical) : 0;
	struct vulkan *d = number < n ? calloc(1, sizeof *d) : NULL;

	if (l && number >= n)
		error_set(err, ERROR_DEVICE, "Vulkan offers %u device%s here, so there is no number %u", n,
		          n == 1 ? "" : "s", number);
	else if (l && !d)
		error_set(err, ERROR_MEMORY, "no memory for a device of Vulkan");
	if (!d)
		return NULL;
	d->library = l;
	d->physical = physical[number];
	pthread_mutex_init(&d->lock, NULL);
	d->device = (struct device){ .facts = { .clock = DEVICE_CLOCK_HOST },
		                     .stream = vulkan_stream,
		                     .alive = vulkan_alive,
		                     .close = close_device };
	vulkan_set_memory(d);
	vulkan_set_copies(d);
	if (open_at(d, err))
		return d;
	close_device(&d->device);
	return NULL;
}

/* The index of the device of that number, or of a name that contains the text. DEVICES_MAX: no device has it. */
static unsigned number_of(const char *which)
{
	const struct vulkan_library *l = vulkan_library(NULL);
	void *physical[DEVICES_MAX];
	char *end;
	const unsigned long number = strtoul(which, &end, 10);

	if (!*which || (isdigit((unsigned char)*which) && !*end))
		return number < DEVICES_MAX ? (unsigned)number : DEVICES_MAX;
	for (unsigned i = 0, n = l ? list_devices(l, physical) : 0; i < n; i++) {
		struct vulkan_facts is;
		read_facts(l, physical[i], &is, NULL);
		if (strstr(is.name, which))
			return i;
	}
	return DEVICES_MAX;
}

static struct device *open_named(const char *which, const char *isa, struct error *err)
{
	if (isa) {
		error_set(err, ERROR_ARGUMENT, "isa \"%.32s\": the device vulkan has what its driver compiles for",
		          isa);
		return NULL;
	}
	if (!vulkan_library(err))
		return NULL;
	const unsigned number = number_of(which);
	if (number == DEVICES_MAX) {
		error_set(err, ERROR_ARGUMENT,
		          "device \"vulkan:%.24s\" is unknown; expected vulkan:NUMBER or a part of its name", which);
		return NULL;
	}
	struct vulkan *d = vulkan_open(number, err);
	return d ? &d->device : NULL;
}

static void each_device(device_visit_fn visit, void *user)
{
	const struct vulkan_library *l = vulkan_library(NULL);
	void *physical[DEVICES_MAX];
	const unsigned n = l ? list_devices(l, physical) : 0;

	for (unsigned i = 0; i < n; i++) {
		struct device_entry e = { 0 };
		struct vulkan_facts is;
		read_facts(l, physical[i], &is, &e.why_not);
		snprintf(e.name, sizeof e.name, "vulkan:%u", i);
		snprintf(e.about, sizeof e.about, "%.80s (code for %s), %.60s, %.1f GiB", is.name,
		         is.target ? is.target->name : "no target", is.driver, (double)is.bytes / 0x1p30);
		visit(user, &e);
	}
}

const struct device_driver device_vulkan = {
	.name = "vulkan", .has_several = true, .open = open_named, .each = each_device
};
