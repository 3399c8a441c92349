/* runtime/device/cuda_stream.c - a session's plans on an NVIDIA card: a launch for each op, all launches of a pass in
 * one graph, or one launch for all ops (cuda_program.c). See cuda.h.
 *
 * Arguments lie in the card's memory. A graph first copies them there, from where the host has written the position,
 * and then launches op after op; each sees what those before it stored. Where the card lets launches overlap, a block
 * begins while the launch before it is still running, and waits for its end before it touches memory (jit/ptx).
 */
#include <stdlib.h>
#include <string.h>

#include "jit/ptx/program.h"
#include "jit/ptx/ptx.h"
#include "kernels-templates/templates.h"
#include "runtime/device/cuda.h"
#include "runtime/device/profile.h"
#include "runtime/host/cancel.h"

/* Ids and angles, which the host writes; `at` in the copies. */
struct cuda_input {
	const void *from;
	size_t at, bytes;
};
enum { INPUTS = 16, MOST_PARTS = 1 << 15, MOST_BLOCKS = 65535 };

struct cuda_plan {
	struct cuda_plan *next;
	const struct plan *plan;
	uint64_t *args, *on_card;       /* the host's copy, and the card's; the inputs are behind them */
	size_t bytes, inputs, commands; /* of each; where the inputs begin, and behind them commands */
	struct cuda_input input[INPUTS];
	unsigned n_inputs;
	struct ptx_launch *launch;    /* by op */
	uint32_t *blocks, *parts;     /* of its grid; blocks 0: the op has no units */
	unsigned passes;              /* that it has run before its program was begun */
	void *graph;                  /* NULL: launches are not recorded */
	struct cuda_program *program; /* NULL: it is not one launch */
	struct cuda_times *times;     /* NULL: nobody asks for them */
};

struct cuda_stream {
	struct stream stream;
	struct registry *registry;
	enum stream_launch launch;
	uint32_t most_blocks; /* of a launch; 0: as many as live at once */
	void *queue;
	struct cuda_plan *plans;
	struct cuda_handed handed[2]; /* of plans of one token, and of several */
	unsigned several;             /* programs of several tokens that were begun */
	struct stream_counters counters;
};

static struct cuda *card_of(const struct cuda_stream *s) { return (struct cuda *)s->stream.device; }

/* ---- plans */

static void forget(struct cuda_stream *s, struct cuda_plan *p)
{
	struct cuda *d = card_of(s);

	cuda_program_close(p->program);
	if (p->graph)
		d->api->graph_exec_destroy(p->graph);
	cuda_times_close(p->times);
	d->device.release(&d->device, p->args, p->bytes);
	d->device.release(&d->device, p->on_card, p->bytes);
	free(p->launch);
	free(p->blocks);
	free(p->parts);
	free(p);
}

/* ---- inputs: a kernel would read them over the bus, so they go to the card with the arguments */

/* What a token has of an input at most: an id, or an angle for each two dimensions of its widest heads. */
static size_t input_width(const struct plan *p)
{
	size_t most = 0;

	for (size_t i = 0; i < p->n_kernels; i++)
		most = p->kernel[i].key.head_dim > most ? p->kernel[i].key.head_dim : most;
	return 64 + 2 * most;
}

/* The input at p, whose tokens have so many bytes; made where there is none. NULL: what is there is not memory that the
 * host shares, or there are too many. */
static const struct cuda_input *input_at(const struct cuda_stream *s, struct cuda_plan *c, const void *p, size_t width)
{
	size_t bytes = cuda_shared_bytes(card_of(s), p), most = c->plan->tokens * width;
	unsigned i = 0;

	while (i < c->n_inputs && c->input[i].from != p)
		i++;
	if (!bytes || i == INPUTS)
		return NULL;
	if (i == c->n_inputs)
		c->input[c->n_inputs++] = (struct cuda_input){ .from = p };
	bytes = bytes < most ? bytes : most;
	if (c->input[i].bytes < bytes)
		c->input[i].bytes = bytes;
	return &c->input[i];
}

/* What the last section's ops have there they write: logits. */
static void each_input(const struct cuda_stream *s, struct cuda_plan *c, bool places)
{
	const struct plan *p = c->plan;
	size_t width = input_width(p);

	for (size_t i = 0; p->n_sections && i < p->section[p->n_sections - 1]; i++)
		for (uint32_t k = 0; k < p->op[i].n_args; k++) {
			uint64_t *slot = &p->op[i].arg[k];
			const struct cuda_input *in = input_at(s, c, (const void *)(uintptr_t)*slot, width);
			if (in && places)
				c->args[slot - p->args] = (uint64_t)(uintptr_t)c->on_card + in->at;
		}
}

static void find_inputs(const struct cuda_stream *s, struct cuda_plan *c)
{
	c->inputs = c->bytes;
	each_input(s, c, false);
	for (unsigned i = 0; i < c->n_inputs; i++) {
		c->input[i].at = c->bytes;
		c->bytes += (c->input[i].bytes + 63) / 64 * 64;
	}
}

static void take_inputs(struct cuda_plan *c)
{
	for (unsigned i = 0; i < c->n_inputs; i++)
		memcpy((uint8_t *)c->args + c->input[i].at, c->input[i].from, c->input[i].bytes);
}

/* ---- launches */

/* In how many parts `tiles` column tiles are done the soonest, by so many blocks of which `resident` live at once: as
 * many turns as there are times that the card is filled, of as many tiles as a part has. Of equal ones the fewest, in
 * which a block's weights serve several tiles. */
static uint64_t best_parts(uint64_t tiles, uint64_t blocks, uint64_t resident)
{
	uint64_t best = 1, least = UINT64_MAX, time;

	for (uint64_t parts = 1; parts <= tiles && parts <= MOST_PARTS; parts++, least = time < least ? time : least) {
		time = (blocks * parts + resident - 1) / resident * ((tiles + parts - 1) / parts);
		best = time < least ? parts : best;
	}
	return best;
}

/* How many blocks have an op's units, and how many each (struct ptx_launch). Where tiles are dealt out to parts, a
 * block has as many units as it does at once; and large tiles are a block each, which begin in such an order that those
 * of the same weights live at the same time. */
static void deal(const struct cuda_stream *s, struct cuda_plan *c, size_t i)
{
	const struct plan_op *l = &c->plan->op[i];
	const struct cuda_kernel *k = c->plan->kernel[l->kernel].handle;
	const struct target *t = card_of(s)->device.facts.target;
	const uint64_t tiles = template_matmul_parts(t, &k->key) ? l->arg[MATMUL_TILES] : 1;
	const bool large = k->key.flags & KEY_MMA && k->key.tile_n >= TEMPLATE_MMA_SHARED && tiles <= MOST_PARTS;
	uint64_t units = (uint64_t)(l->end - l->begin), waves = k->cooperative ? 1 : t->waves,
		 each = large || tiles > 1 ? template_matmul_together(t, &k->key) : waves,
		 most = large ? MOST_BLOCKS : k->resident, blocks = (units + each - 1) / each;

	most = s->most_blocks ? s->most_blocks : most, blocks = blocks < most ? blocks : most;
	c->parts[i] = (uint32_t)(large ? tiles : best_parts(tiles, blocks, most));
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
	const bool parts = template_matmul_parts(t, &k->key); /* else there is one */
	const struct cuda_launch_config config = {
		.grid = { parts ? c->parts[i] : c->blocks[i], parts ? c->blocks[i] : 1, 1 },
		.block = { t->waves * t->lanes, 1, 1 },
		.shared_bytes = k->shared_bytes,
		.stream = s->queue,
		.attribute = &attribute,
		.n_attributes = overlaps
	};
	void *params[] = { &l->arg, &l->begin, &l->per, &l->rest, &l->order };

	return d->api->launch(&config, k->function, params, NULL);
}

/* Bytes begin..end-1 of what the host has written, to the card. */
static int send(const struct cuda_stream *s, const struct cuda_plan *c, size_t begin, size_t end)
{
	return card_of(s)->api->copy_to_later((uint64_t)(uintptr_t)c->on_card + begin, (const uint8_t *)c->args + begin,
	                                      end - begin, s->queue);
}

static int send_args(const struct cuda_stream *s, const struct cuda_plan *c) { return send(s, c, 0, c->commands); }

/* A pass of so many tokens has blocks for all multiprocessors. Those of a launch that comes early would be put where
 * the one in front leaves room first, several of them on one, and others would have none: then a launch comes early
 * only where it need not wait. */
enum { FILLS_CARD = 64 };

static int launch_all(struct cuda_stream *s, struct cuda_plan *c)
{
	const struct cuda *d = card_of(s);
	bool overlaps = d->capability >= 90 && d->driver >= CUDA_OVERLAPS_IN_GRAPHS && !c->times, first = true,
	     waits = true;
	int result = send_args(s, c);

	if (!result)
		result = cuda_times_mark(c->times, 0, s->queue, true);

	for (size_t i = 0; !result && i < c->plan->n_ops; i++) {
		if (c->blocks[i]) {
			c->launch[i].order =
				(waits ? PTX_WAIT_FIRST : 0) | (waits && !c->plan->op[i].barrier ? PTX_NEXT_LATER : 0);
			result = launch_op(s, c, i, overlaps && !first && (!waits || c->plan->tokens < FILLS_CARD));
			if (!result)
				result = cuda_times_mark(c->times, i + 1, s->queue, true);
			first = waits = false;
		}
		waits |= c->plan->op[i].barrier;
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

/* A few tokens' plan, when that can be. Times are taken between launches. */
static bool is_one_launch(const struct cuda_stream *s)
{
	const struct cuda *d = card_of(s);

	return (d->launch == CUDA_BESIDE || d->launch == CUDA_ONE) && s->launch == STREAM_LAUNCH_TOKEN &&
	       !s->stream.profile;
}

/* The driver needs seconds for a program. One of several tokens is made when there were some passes of it already, and
 * for so many numbers of tokens in a session's life. */
enum { PASSES_FIRST = 4, SEVERAL_MOST = 6 };

static struct cuda_handed *handed_of(struct cuda_stream *s, const struct plan *p) { return &s->handed[p->tokens > 1]; }

static void begin_program(struct cuda_stream *s, struct cuda_plan *c)
{
	if (c->plan->tokens == 1 || ++c->passes != PASSES_FIRST || s->several == SEVERAL_MOST)
		return;
	s->several++;
	cuda_program_begin(c->program);
}

static bool make_program(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	const enum cuda_program_when when =
		card_of(s)->launch == CUDA_ONE ? CUDA_PROGRAM_NOW
		: c->plan->tokens > 1          ? CUDA_PROGRAM_LATER
					       : CUDA_PROGRAM_BESIDE;
	const struct cuda_program_place at = { .args = c->args,
		                               .here = (void *)((uint8_t *)c->args + c->commands),
		                               .on_card = (uint64_t)(uintptr_t)c->on_card + c->commands };

	c->program = cuda_program_open(card_of(s), s->registry, c->plan, &at, handed_of(s, c->plan), when, err);
	return c->program != NULL;
}

static bool fill(struct cuda_stream *s, struct cuda_plan *c, struct plan *p, struct error *err)
{
	struct cuda *d = card_of(s);
	size_t commands = is_one_launch(s) ? cuda_program_commands(p) : 0;

	c->plan = p;
	c->bytes = (p->n_args * sizeof *c->args + 63) / 64 * 64;
	find_inputs(s, c);
	c->commands = c->bytes;
	c->bytes += commands * sizeof(struct ptx_command);
	c->launch = calloc(p->n_ops + 1, sizeof *c->launch);
	c->blocks = calloc(p->n_ops + 1, sizeof *c->blocks);
	c->parts = calloc(p->n_ops + 1, sizeof *c->parts);
	if (!c->launch || !c->blocks || !c->parts)
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %zu launches", p->n_ops);
	if (!(c->args = d->device.alloc(&d->device, c->bytes, DEVICE_SHARED, err)) ||
	    !(c->on_card = d->device.alloc(&d->device, c->bytes, DEVICE_BUFFERS, err)))
		return false;
	memcpy(c->args, p->args, p->n_args * sizeof *c->args);
	each_input(s, c, true);
	for (size_t i = 0; i < p->n_ops; i++)
		deal(s, c, i);
	if ((s->stream.profile && !(c->times = cuda_times_open(d, p, err))) || (commands && !make_program(s, c, err)))
		return false;
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

static void forget_plan(struct stream *stream, struct plan *p)
{
	struct cuda_stream *s = (struct cuda_stream *)stream;
	struct cuda_plan *c = p->prepared, **link = &s->plans;

	cuda_enter(card_of(s), NULL); /* and if not: what can be given back is */
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	forget(s, c);
	p->prepared = NULL;
}

/* ---- running */

/* One launch, waited for. *took: nanoseconds, where somebody asks for them. */
static int run_op(const struct cuda_stream *s, struct cuda_plan *c, size_t i, uint64_t *took)
{
	int result = cuda_times_mark(c->times, i, s->queue, false);

	if (!result && c->blocks[i])
		result = launch_op(s, c, i, false);
	if (!result)
		result = cuda_times_mark(c->times, i + 1, s->queue, false);
	if (!result)
		result = cuda_wait(card_of(s), s->queue);
	return !result && c->times ? cuda_times_between(c->times, i, i + 1, took) : result;
}

/* One by one, so that a run can be cancelled between them, and what fails has a name. */
static bool run_apart(struct cuda_stream *s, struct cuda_plan *c, struct plan *p, struct error *err)
{
	struct cuda *d = card_of(s);
	int result = send_args(s, c);

	for (size_t i = 0; !result && i < p->n_ops; i++) {
		uint64_t took = 0, end;
		if (cancel_any(s->stream.cancel))
			return cancel_error(err);
		result = run_op(s, c, i, &took);
		if (result) {
			char name[KEY_TEXT_MAX], what[KEY_TEXT_MAX + 32];
			const struct cuda_kernel *k = p->kernel[p->op[i].kernel].handle;
			snprintf(what, sizeof what, "launch %zu, kernel %s,", i, key_text(&k->key, name, sizeof name));
			return cuda_died(d, result, what, err);
		}
		s->counters.launches += c->blocks[i] != 0;
		if (c->times && c->blocks[i]) {
			end = profile_now();
			profile_launch(s->stream.profile, 0, p, i, end - took, end);
		}
	}
	return !result || cuda_died(d, result, "a pass", err);
}

static bool run_graph(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct cuda *d = card_of(s);
	uint64_t began = c->times ? profile_now() : 0;
	int result = d->api->graph_launch(c->graph, s->queue);

	if (!result)
		result = cuda_wait(d, s->queue);
	if (!result && c->times) {
		s->stream.ended = profile_now();
		result = cuda_times_tell(c->times, c->plan, c->blocks, s->stream.profile, began, s->stream.ended);
	}
	s->counters.launches++;
	if (!result)
		return true;
	char what[64];
	snprintf(what, sizeof what, "a pass of %zu launches", c->plan->n_ops);
	return cuda_died(d, result, what, err);
}

static bool run_program(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct cuda *d = card_of(s);

	cuda_program_change(c->program);
	int result = send(s, c, c->inputs, c->bytes);
	if (!result)
		result = cuda_program_launch(c->program, s->queue);
	if (!result)
		result = cuda_wait(d, s->queue);
	s->counters.launches++;
	s->counters.barriers += cuda_program_barriers(c->program);
	s->counters.commands += c->plan->n_ops;
	return !result || cuda_died(d, result, "a pass in one launch", err);
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
	take_inputs(c);
	if (c->program && cuda_program_is_ready(c->program))
		return run_program(s, c, err);
	if (c->program)
		begin_program(s, c);
	struct cuda_handed *handed = handed_of(s, p); /* other launches know of one region */
	handed->used[0] = p->handed_bytes > handed->used[0] ? p->handed_bytes : handed->used[0];
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

	cuda_enter(d, NULL); /* and if not: what can be given back is */
	for (struct cuda_plan *p = s->plans, *next; p; p = next) {
		next = p->next;
		forget(s, p);
	}
	for (unsigned i = 0; i < 2; i++)
		cuda_handed_close(&s->handed[i], d);
	if (s->queue)
		d->api->stream_destroy(s->queue);
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
		.stream = { .device = device,
		            .prepare = prepare,
		            .run = run,
		            .forget = forget_plan,
		            .count = count,
		            .close = close_stream },
		.registry = o->registry,
		.launch = d->launch == CUDA_BY_OP ? STREAM_LAUNCH_OP : o->launch,
		.most_blocks = o->workgroups
	};
	if (cuda_enter(d, err)) {
		int result = d->api->stream_create(&s->queue, CUDA_STREAM_APART);
		if (!result)
			return &s->stream;
		cuda_failed(d, result, "opening a queue", err);
	}
	free(s);
	return NULL;
}
