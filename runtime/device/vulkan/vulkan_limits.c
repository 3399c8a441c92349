/* runtime/device/vulkan/vulkan_limits.c - what a driver allows at most, compared with what kernels, allocations and
 * launches need. See vulkan.h.
 *
 * Every limit is compared before the driver is asked: drivers may do anything where one is passed.
 */
#include <stdio.h>

#include "runtime/device/vulkan/vulkan.h"

void vulkan_read_limits(struct vulkan_limits *out, const struct vulkan_properties *p,
                        const struct vulkan_properties_11 *p11, const struct vulkan_properties_13 *p13)
{
	*out = (struct vulkan_limits){
		.push_bytes = p->push_bytes,
		.allocations = p->allocations,
		.shared_bytes = p->shared_bytes,
		.groups = p->groups[0],
		.invocations = p->invocations,
		.group_size = p->group_sizes[0],
		.subgroups = p13->max_subgroups,
		.allocation_bytes = p11->allocation_bytes,
		.buffer_bytes = p13->buffer_bytes
	};
}

bool vulkan_check_limits(const struct vulkan_limits *has, const struct target *t, struct error *err)
{
	const struct {
		const char *name;
		uint64_t has, needed;
	} limits[] = { { "maxComputeWorkGroupInvocations", has->invocations, t->lanes * t->waves },
		       { "maxComputeWorkGroupSize[0]", has->group_size, t->lanes * t->waves },
		       { "maxComputeWorkgroupSubgroups", has->subgroups, t->waves },
		       { "maxComputeWorkGroupCount[0]", has->groups, 1 },
		       { "maxPushConstantsSize", has->push_bytes, sizeof(struct spirv_launch) },
		       { "maxMemoryAllocationCount", has->allocations, VULKAN_MIN_ALLOCATIONS },
		       { "maxMemoryAllocationSize", has->allocation_bytes, VULKAN_MIN_BYTES },
		       { "maxBufferSize", has->buffer_bytes, VULKAN_MIN_BYTES } };

	for (size_t k = 0; k < sizeof limits / sizeof *limits; k++)
		if (limits[k].has < limits[k].needed)
			return error_set(err, ERROR_DEVICE, "its driver's %s is %llu, kernels for %s need %llu",
			                 limits[k].name, (unsigned long long)limits[k].has, t->name,
			                 (unsigned long long)limits[k].needed);
	return true;
}

uint64_t vulkan_max_bytes(const struct vulkan *d)
{
	const struct vulkan_limits *l = &d->is.limits;

	return l->allocation_bytes < l->buffer_bytes ? l->allocation_bytes : l->buffer_bytes;
}

bool vulkan_check_bytes(const struct vulkan *d, uint64_t bytes, const char *what, struct error *err)
{
	const struct vulkan_limits *l = &d->is.limits;
	const bool is_buffer = l->buffer_bytes < l->allocation_bytes;

	return bytes <= vulkan_max_bytes(d) ||
	       error_set(err, ERROR_MEMORY, "%s: %llu bytes are more than the %llu that %s has in one piece (%s)", what,
	                 (unsigned long long)bytes, (unsigned long long)vulkan_max_bytes(d), d->is.name,
	                 is_buffer ? "maxBufferSize" : "maxMemoryAllocationSize");
}

bool vulkan_check_units(const struct vulkan *d, const struct plan *p, struct error *err)
{
	char text[KEY_TEXT_MAX];

	for (size_t i = 0; i < p->n_ops; i++) {
		const struct vulkan_pipeline *k = p->kernel[p->op[i].kernel].handle;
		const uint64_t units = p->op[i].end > p->op[i].begin ? (uint64_t)(p->op[i].end - p->op[i].begin) : 0,
			       shares = (uint64_t)d->groups * (k->cooperative ? 1 : d->is.target->waves);
		if (units / shares >= UINT32_MAX)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: kernel %s has %llu units in one launch, %llu are possible", d->is.name,
			                 key_text(&k->key, text, sizeof text), (unsigned long long)units,
			                 (unsigned long long)(shares * UINT32_MAX - 1));
	}
	return true;
}
