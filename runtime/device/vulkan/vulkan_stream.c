/* runtime/device/vulkan/vulkan_stream.c - a session's plans on a device of Vulkan: a command buffer with a dispatch for
 * each op, recorded once. See vulkan.h.
 *
 * Each dispatch sees what those before it stored. Arguments lie in memory that the host writes before each run. Where
 * somebody asks for the times of ops, each op has a command buffer of its own, and the host's clock runs around it.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/profile.h"
#include "runtime/device/vulkan/vulkan.h"
#include "runtime/host/cancel.h"

struct vulkan_plan {
	struct vulkan_plan *next;
	struct vulkan_region *args, *scratch; /* scratch: NULL: no kernel has any */
	void **commands;
	size_t n;      /* 1, or as many as ops */
	uint32_t *cut; /* by op, behind the arguments: whether a loop of it may have been cut */
};

struct vulkan_stream {
	struct stream stream;
	struct registry *registry;
	uint64_t pool, fence;
	struct vulkan_plan *plans;
	struct stream_counters counters;
};

static struct vulkan *device_of(const struct vulkan_stream *s) { return (struct vulkan *)s->stream.device; }

uint32_t vulkan_share(const struct vulkan *d, bool cooperative, int64_t begin, int64_t end, struct spirv_launch *l)
{
	const uint64_t units = end > begin ? (uint64_t)(end - begin) : 0, waves = d->is.target->waves,
		       of_group = cooperative ? 1 : waves, needed = (units + of_group - 1) / of_group,
		       groups = needed < d->groups ? needed : d->groups, shares = groups * of_group;

	l->begin = begin;
	l->per = shares ? (uint32_t)(units / shares) : 0;
	l->rest = shares ? (uint32_t)(units % shares) : 0;
	return (uint32_t)groups;
}

/* ---- preparing */

static void forget(struct vulkan_stream *s, struct vulkan_plan *p)
{
	struct vulkan *d = device_of(s);

	if (p->commands && p->n && p->commands[0] && vulkan_idle(d, 0))
		d->api.free_commands(d->logical, s->pool, (uint32_t)p->n, p->commands);
	free(p->commands);
	vulkan_free_region(d, p->args);
	vulkan_free_region(d, p->scratch);
	free(p);
}

static const struct vulkan_pipeline *pipeline_of(const struct plan *p, size_t op)
{
	return p->kernel[p->op[op].kernel].handle;
}

/* One for all ops, which run one behind the other. */
static bool make_scratch(struct vulkan_stream *s, struct vulkan_plan *c, const struct plan *p, struct error *err)
{
	struct vulkan *d = device_of(s);
	uint64_t max = 0;

	for (size_t i = 0; i < p->n_ops; i++) {
		const struct vulkan_pipeline *k = pipeline_of(p, i);
		struct spirv_launch l;
		const uint64_t groups = vulkan_share(d, k->cooperative, p->op[i].begin, p->op[i].end, &l),
			       bytes = groups *
		                       spirv_scratch_bytes(k->frame_bytes, k->shared_bytes, d->is.target->waves);
		max = bytes > max ? bytes : max;
	}
	return !max || (c->scratch = vulkan_make_region(d, max, false, "the working memory of kernels", err));
}

static void record_op(struct vulkan_stream *s, const struct vulkan_plan *c, const struct plan *p, size_t i, void *to)
{
	const struct vulkan *d = device_of(s);
	const struct vulkan_pipeline *k = pipeline_of(p, i);
	struct spirv_launch l = { .arg = c->args->address + (uint64_t)(p->op[i].arg - p->args) * sizeof *p->args,
		                  .scratch = c->scratch ? c->scratch->address : 0,
		                  .cut = c->args->address + p->n_args * sizeof *p->args + i * sizeof *c->cut };
	const uint32_t groups = vulkan_share(d, k->cooperative, p->op[i].begin, p->op[i].end, &l);
	static const struct vulkan_memory_barrier barrier = {
		.type = VULKAN_MEMORY_BARRIER,
		.from = VULKAN_SHADER_READ | VULKAN_SHADER_WRITE,
		.to = VULKAN_SHADER_READ | VULKAN_SHADER_WRITE | VULKAN_HOST_READ | VULKAN_TRANSFER_READ
	};

	if (!groups)
		return;
	d->api.bind_pipeline(to, 1, k->pipeline);
	d->api.push(to, d->layout, VULKAN_STAGE_COMPUTE, 0, sizeof l, &l);
	d->api.dispatch(to, groups, 1, 1);
	d->api.barrier(to, VULKAN_AT_COMPUTE, VULKAN_AT_COMPUTE | VULKAN_AT_HOST | VULKAN_AT_TRANSFER, 0, 1, &barrier,
	               0, NULL, 0, NULL);
}

static bool record(struct vulkan_stream *s, struct vulkan_plan *c, const struct plan *p, struct error *err)
{
	const struct vulkan_begin_info begin = { .type = VULKAN_BEGIN_INFO };
	struct vulkan *d = device_of(s);
	const size_t n = s->stream.profile ? p->n_ops : 1, each = s->stream.profile ? 1 : p->n_ops;
	const struct vulkan_commands_info info = {
		.type = VULKAN_COMMANDS_INFO, .pool = s->pool, .count = (uint32_t)n
	};

	if (!(c->commands = calloc(n + 1, sizeof *c->commands)))
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %zu dispatches", p->n_ops);
	int result = n ? d->api.allocate_commands(d->logical, &info, c->commands) : 0;
	if (result)
		return vulkan_failed(d, result, "command buffers", err);
	c->n = n;
	for (size_t k = 0; !result && k < n; k++) {
		result = d->api.begin(c->commands[k], &begin);
		for (size_t i = k * each; !result && i < (k + 1) * each; i++)
			record_op(s, c, p, i, c->commands[k]);
		if (!result)
			result = d->api.end(c->commands[k]);
	}
	return !result || vulkan_failed(d, result, "recording a pass", err);
}

static bool fill(struct vulkan_stream *s, struct vulkan_plan *c, struct plan *p, struct error *err)
{
	struct vulkan *d = device_of(s);

	for (size_t i = 0; i < p->n_kernels; i++)
		if (!(p->kernel[i].handle = (void *)(uintptr_t)vulkan_pipeline(d, s->registry, &p->kernel[i].key, err)))
			return false;
	c->args = vulkan_map_region(d, p->n_args * sizeof *p->args + p->n_ops * sizeof *c->cut,
	                            "the arguments of kernels", err);
	if (!c->args)
		return false;
	c->cut = (uint32_t *)(void *)(c->args->mapped + p->n_args * sizeof *p->args);
	return vulkan_check_units(d, p, err) && make_scratch(s, c, p, err) && record(s, c, p, err);
}

static bool prepare(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct vulkan_stream *s = (struct vulkan_stream *)stream;
	struct vulkan_plan *c = calloc(1, sizeof *c);

	if (!c)
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %s", device_of(s)->is.name);
	if (!vulkan_alive(stream->device, err) || !device_make_plan(s->registry, p, pool, err) || !fill(s, c, p, err)) {
		forget(s, c);
		return false;
	}
	c->next = s->plans;
	s->plans = c;
	p->prepared = c;
	return true;
}

static void forget_plan(struct stream *stream, struct plan *p)
{
	struct vulkan_stream *s = (struct vulkan_stream *)stream;
	struct vulkan_plan *c = p->prepared, **link = &s->plans;

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	forget(s, c);
	p->prepared = NULL;
}

/* ---- running */

/* The queue is the device's, and sessions take turns. */
static int run_commands(struct vulkan_stream *s, void *commands)
{
	struct vulkan *d = device_of(s);

	pthread_mutex_lock(&d->lock);
	const int result = vulkan_run_commands(d, commands, s->fence);
	pthread_mutex_unlock(&d->lock);
	return result;
}

static void set_arguments(struct vulkan_stream *s, const struct vulkan_plan *c, const struct plan *p)
{
	uint64_t *to = (uint64_t *)(void *)c->args->mapped;

	for (size_t i = 0; i < p->n_args; i++)
		to[i] = vulkan_argument(device_of(s), p->args[i]);
}

/* Whether all loops ran to their end. */
static bool check_loops(struct vulkan_stream *s, struct vulkan_plan *c, const struct plan *p, struct error *err)
{
	char text[KEY_TEXT_MAX];
	size_t i = 0;

	while (i < p->n_ops && !c->cut[i])
		i++;
	if (i == p->n_ops)
		return true;
	memset(c->cut, 0, p->n_ops * sizeof *c->cut);
	return error_set(err, ERROR_UNSUPPORTED,
	                 "%s: the loops of kernel %s have more iterations in all than the driver does in one call, "
	                 "which is %d",
	                 device_of(s)->is.name, key_text(&pipeline_of(p, i)->key, text, sizeof text), SPIRV_ITERATIONS);
}

/* One by one. */
static bool run_apart(struct vulkan_stream *s, const struct vulkan_plan *c, const struct plan *p, struct error *err)
{
	char text[KEY_TEXT_MAX], what[KEY_TEXT_MAX + 32];

	for (size_t i = 0; i < c->n; i++) {
		const uint64_t start = profile_now();
		if (cancel_any(s->stream.cancel))
			return cancel_error(err);
		const int result = run_commands(s, c->commands[i]);
		if (result) {
			snprintf(what, sizeof what, "launch %zu, kernel %s,", i,
			         key_text(&pipeline_of(p, i)->key, text, sizeof text));
			return vulkan_failed(device_of(s), result, what, err);
		}
		profile_launch(s->stream.profile, 0, p, i, start, profile_now());
	}
	s->counters.launches += c->n;
	return true;
}

static bool run(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct vulkan_stream *s = (struct vulkan_stream *)stream;
	struct vulkan_plan *c = p->prepared;
	char what[64];

	if (!vulkan_alive(stream->device, err))
		return false;
	if (cancel_any(s->stream.cancel))
		return cancel_error(err);
	set_arguments(s, c, p);
	if (s->stream.profile)
		return run_apart(s, c, p, err) && check_loops(s, c, p, err);
	const int result = run_commands(s, c->commands[0]);
	s->counters.launches++;
	snprintf(what, sizeof what, "a pass of %zu dispatches", p->n_ops);
	return result ? vulkan_failed(device_of(s), result, what, err) : check_loops(s, c, p, err);
}

/* ---- streams */

static void count(const struct stream *s, struct stream_counters *out)
{
	*out = ((const struct vulkan_stream *)s)->counters;
}

static void close_stream(struct stream *stream)
{
	struct vulkan_stream *s = (struct vulkan_stream *)stream;
	struct vulkan *d = device_of(s);

	for (struct vulkan_plan *p = s->plans, *next; p; p = next) {
		next = p->next;
		forget(s, p);
	}
	const bool idle = vulkan_idle(d, 0);
	if (s->fence && idle)
		d->api.destroy_fence(d->logical, s->fence, NULL);
	if (s->pool && idle)
		d->api.destroy_pool(d->logical, s->pool, NULL);
	free(s);
}

struct stream *vulkan_stream(struct device *device, const struct stream_options *o, struct error *err)
{
	struct vulkan *d = (struct vulkan *)device;
	const struct vulkan_pool_info pool = { .type = VULKAN_POOL_INFO, .family = d->is.family };
	const struct vulkan_fence_info fence = { .type = VULKAN_FENCE_INFO };
	struct vulkan_stream *s = calloc(1, sizeof *s);

	if (!s) {
		error_set(err, ERROR_MEMORY, "no memory for a session on %s", d->is.name);
		return NULL;
	}
	*s = (struct vulkan_stream){
		.stream = { .device = device,
		            .prepare = prepare,
		            .run = run,
		            .forget = forget_plan,
		            .count = count,
		            .close = close_stream },
		.registry = o->registry
	};
	int result = d->api.create_pool(d->logical, &pool, NULL, &s->pool);
	if (!result)
		result = d->api.create_fence(d->logical, &fence, NULL, &s->fence);
	if (!result)
		return &s->stream;
	vulkan_failed(d, result, "opening a queue", err);
	close_stream(&s->stream);
	return NULL;
}
