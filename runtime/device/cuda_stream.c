/* runtime/device/cuda_stream.c - a session's plans on an NVIDIA card: a launch for each op, all launches of a pass in
 * one graph. See cuda.h.
 *
 * Arguments lie in the card's memory. A graph first copies them there, from where the host has written the position,
 * and then launches op after op; each sees what those before it stored. Where the card lets launches overlap, a block
 * begins while the launch before it is still running, and waits for its end before it touches memory (jit/ptx).
 */
#include <stdlib.h>
#include <string.h>

#include "jit/ptx/ptx.h"
#include "runtime/device/cuda.h"
#include "runtime/device/profile.h"
#include "runtime/host/cancel.h"

struct cuda_plan {
	struct cuda_plan *next;
	const struct plan *plan;
	uint64_t *args, *on_card; /* the host's copy, and the card's */
	size_t bytes;
	struct ptx_launch *launch; /* by op */
	uint32_t *blocks;          /* 0: the op has no units */
	void *graph;               /* NULL: launches are not recorded */
};

struct cuda_stream {
	struct stream stream;
	struct registry *registry;
	enum stream_launch launch;
	uint32_t most_blocks; /* of a launch; 0: as many as live at once */
	void *queue;
	struct cuda_plan *plans;
	struct stream_counters counters;
};

static struct cuda *card_of(const struct cuda_stream *s) { return (struct cuda *)s->stream.device; }

/* ---- plans */

static void forget(struct cuda_stream *s, struct cuda_plan *p)
{
	struct cuda *d = card_of(s);

	if (p->graph)
		d->api->graph_exec_destroy(p->graph);
	d->device.release(&d->device, p->args, p->bytes);
	d->device.release(&d->device, p->on_card, p->bytes);
	free(p->launch);
	free(p->blocks);
	free(p);
}

/* How many blocks have an op's units, and how many each (struct ptx_launch). */
static void deal(const struct cuda_stream *s, struct cuda_plan *c, size_t i)
{
	const struct plan_op *l = &c->plan->op[i];
	const struct cuda_kernel *k = c->plan->kernel[l->kernel].handle;
	uint64_t units = (uint64_t)(l->end - l->begin),
		 waves = k->cooperative ? 1 : card_of(s)->device.facts.target->waves,
		 blocks = (units + waves - 1) / waves, most = s->most_blocks ? s->most_blocks : k->resident;

	blocks = blocks < most ? blocks : most;
	c->blocks[i] = (uint32_t)blocks;
	if (blocks)
		c->launch[i] = (struct ptx_launch){ .arg = (uint64_t)(uintptr_t)(c->on_card + (l->arg - c->plan->args)),
			                            .begin = l->begin,
			                            .per = (uint32_t)(units / (blocks * waves)),
			                            .rest = (uint32_t)(units % (blocks * waves)) };
}

static int launch_op(const struct cuda_stream *s, struct cuda_plan *c, size_t i, bool overlaps)
{
	struct cuda *d = card_of(s);
	const struct target *t = d->device.facts.target;
	const struct cuda_kernel *k = c->plan->kernel[c->plan->op[i].kernel].handle;
	struct ptx_launch *l = &c->launch[i];
	struct cuda_launch_attribute attribute = { .id = CUDA_LAUNCH_OVERLAPS, .of = { .value = 1 } };
	const struct cuda_launch_config config = {
		.grid = { c->blocks[i], 1, 1 },
		.block = { t->waves * t->lanes, 1, 1 },
		.shared_bytes = k->shared_bytes,
		.stream = s->queue,
		.attribute = &attribute,
		.n_attributes = overlaps
	};
	void *params[] = { &l->arg, &l->begin, &l->per, &l->rest };

	return d->api->launch(&config, k->function, params, NULL);
}

static int send_args(const struct cuda_stream *s, const struct cuda_plan *c)
{
	return card_of(s)->api->copy_to_later((uint64_t)(uintptr_t)c->on_card, c->args, c->bytes, s->queue);
}

static int launch_all(struct cuda_stream *s, struct cuda_plan *c)
{
	const struct cuda *d = card_of(s);
	bool overlaps = d->capability >= 90 && d->driver >= CUDA_OVERLAPS_IN_GRAPHS, first = true;
	int result = send_args(s, c);

	for (size_t i = 0; !result && i < c->plan->n_ops; i++) {
		if (!c->blocks[i])
			continue;
		result = launch_op(s, c, i, overlaps && !first);
		first = false;
	}
	return result;
}

static bool record(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct cuda *d = card_of(s);
	void *graph = NULL;
	int result = d->api->capture_begin(s->queue, CUDA_CAPTURE_THREAD);

	if (!result) {
		int launched = launch_all(s, c);
		result = d->api->capture_end(s->queue, &graph);
		result = launched ? launched : result;
	}
	if (!result)
		result = d->api->graph_instantiate(&c->graph, graph, 0);
	if (graph)
		d->api->graph_destroy(graph);
	return !result || cuda_failed(d, result, "recording a pass", err);
}

static bool fill(struct cuda_stream *s, struct cuda_plan *c, struct plan *p, struct error *err)
{
	struct cuda *d = card_of(s);

	c->plan = p;
	c->bytes = p->n_args * sizeof *c->args;
	c->launch = calloc(p->n_ops + 1, sizeof *c->launch);
	c->blocks = calloc(p->n_ops + 1, sizeof *c->blocks);
	if (!c->launch || !c->blocks)
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %zu launches", p->n_ops);
	if (!(c->args = d->device.alloc(&d->device, c->bytes, DEVICE_SHARED, err)) ||
	    !(c->on_card = d->device.alloc(&d->device, c->bytes, DEVICE_BUFFERS, err)))
		return false;
	memcpy(c->args, p->args, c->bytes);
	for (size_t i = 0; i < p->n_ops; i++)
		deal(s, c, i);
	return s->launch == STREAM_LAUNCH_OP || record(s, c, err);
}

static bool prepare(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct cuda_stream *s = (struct cuda_stream *)stream;
	struct cuda *d = card_of(s);
	struct cuda_plan *c;

	if (!cuda_is_alive(d, err) || !cuda_make_plan(d, s->registry, p, pool, err) || !cuda_enter(d, err))
		return false;
	if (!(c = calloc(1, sizeof *c)))
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %s", d->name);
	if (!fill(s, c, p, err)) {
		forget(s, c);
		return false;
	}
	c->next = s->plans;
	s->plans = c;
	p->prepared = c;
	return true;
}

/* ---- running */

/* One by one, each waited for: to see how long it takes. */
static bool run_apart(struct cuda_stream *s, struct cuda_plan *c, struct plan *p, struct error *err)
{
	struct cuda *d = card_of(s);
	int result = send_args(s, c);

	for (size_t i = 0; !result && i < p->n_ops; i++) {
		uint64_t start = s->stream.profile ? profile_now() : 0;
		if (cancel_any(s->stream.cancel))
			return cancel_error(err);
		if (c->blocks[i])
			result = launch_op(s, c, i, false);
		if (!result)
			result = d->api->stream_wait(s->queue);
		if (result) {
			char name[KEY_TEXT_MAX], what[KEY_TEXT_MAX + 32];
			const struct cuda_kernel *k = p->kernel[p->op[i].kernel].handle;
			snprintf(what, sizeof what, "launch %zu, kernel %s,", i, key_text(&k->key, name, sizeof name));
			return cuda_died(d, result, what, err);
		}
		s->counters.launches += c->blocks[i] != 0;
		if (s->stream.profile)
			profile_launch(s->stream.profile, 0, p, i, start, profile_now());
	}
	return !result || cuda_died(d, result, "a pass", err);
}

static bool run_graph(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct cuda *d = card_of(s);
	int result = d->api->graph_launch(c->graph, s->queue);

	if (!result)
		result = d->api->stream_wait(s->queue);
	s->counters.launches++;
	return !result || cuda_died(d, result, "a pass", err);
}

static bool run(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct cuda_stream *s = (struct cuda_stream *)stream;
	struct cuda_plan *c = p->prepared;
	struct cuda *d = card_of(s);

	if (!cuda_is_alive(d, err) || !cuda_enter(d, err))
		return false;
	if (cancel_any(s->stream.cancel))
		return cancel_error(err);
	for (size_t i = 0; i < p->n_changing; i++)
		c->args[p->changing[i].slot - p->args] = *p->changing[i].slot;
	return c->graph ? run_graph(s, c, err) : run_apart(s, c, p, err);
}

/* ---- streams */

static void count(const struct stream *s, struct stream_counters *out)
{
	*out = ((const struct cuda_stream *)s)->counters;
}

static void close_stream(struct stream *stream)
{
	struct cuda_stream *s = (struct cuda_stream *)stream;
	struct cuda *d = card_of(s);

	if (cuda_enter(d, NULL)) {
		for (struct cuda_plan *p = s->plans, *next; p; p = next) {
			next = p->next;
			forget(s, p);
		}
		if (s->queue)
			d->api->stream_destroy(s->queue);
	}
	free(s);
}

struct stream *cuda_stream(struct device *device, const struct stream_options *o, struct error *err)
{
	struct cuda *d = (struct cuda *)device;
	struct cuda_stream *s = calloc(1, sizeof *s);

	if (!s) {
		error_set(err, ERROR_MEMORY, "no memory for a session on %s", d->name);
		return NULL;
	}
	*s = (struct cuda_stream){
		.stream = { .device = device, .prepare = prepare, .run = run, .count = count, .close = close_stream },
		.registry = o->registry,
		.launch = o->launch,
		.most_blocks = o->workgroups
	};
	int result = cuda_enter(d, err) ? d->api->stream_create(&s->queue, CUDA_STREAM_APART) : -1;
	if (!result)
		return &s->stream;
	cuda_failed(d, result, "opening a queue", err);
	free(s);
	return NULL;
}
