/* runtime/device/cuda/cuda_stream.c - a session's plans on NVIDIA cards: a launch for each op, all launches of a pass
 * in one graph (cuda_launches.c), or one launch for all ops (cuda_program.c). See cuda.h.
 *
 * Arguments lie in the card's memory. A graph first copies them there, from where the host has written the position,
 * and then launches op after op; each sees what those before it stored. Where the card lets launches overlap, a block
 * begins while the launch before it is still running, and waits for its end before it touches memory (jit/ptx).
 */
#include <stdlib.h>
#include <string.h>

#include "jit/ptx/program.h"
#include "runtime/device/cuda/cuda_pass.h"
#include "runtime/device/profile.h"
#include "runtime/host/cancel.h"

static void forget(struct cuda_stream *s, struct cuda_plan *p)
{
	struct cuda *d = cuda_card_of(s);

	cuda_program_close(p->program);
	if (p->graph)
		d->api->graph_exec_destroy(p->graph);
	cuda_times_close(p->times);
	d->device.release(&d->device, p->args, d->cards * p->bytes);
	d->device.release(&d->device, p->on_cards, p->bytes);
	d->device.release(&d->device, p->outputs, p->outputs_bytes);
	for (unsigned i = 0; i < d->cards; i++) {
		free(p->side[i].launch);
		free(p->side[i].blocks);
		free(p->side[i].parts);
	}
	free(p);
}

/* A few tokens' plan, when that can be. Times are taken between launches. */
static bool is_one_launch(const struct cuda_stream *s)
{
	const struct cuda *d = cuda_card_of(s);

	return (d->launch == CUDA_BESIDE || d->launch == CUDA_ONE) && s->launch == STREAM_LAUNCH_TOKEN &&
	       !s->stream.profile;
}

/* The driver needs seconds for a program. One of several tokens is made when there were some passes of it already, and
 * for so many numbers of tokens in a session's life. */
enum { PASSES_FIRST = 4, SEVERAL_MAX = 6 };

static struct cuda_dataflow *dataflow_of(struct cuda_stream *s, const struct plan *p)
{
	return &s->dataflow[p->tokens > 1];
}

static void begin_program(struct cuda_stream *s, struct cuda_plan *c)
{
	if (c->plan->tokens == 1 || ++c->passes != PASSES_FIRST || s->several == SEVERAL_MAX)
		return;
	s->several++;
	cuda_program_begin(c->program);
}

static bool make_program(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	const enum cuda_program_when when =
		cuda_card_of(s)->launch == CUDA_ONE ? CUDA_PROGRAM_NOW
		: c->plan->tokens > 1               ? CUDA_PROGRAM_LATER
						    : CUDA_PROGRAM_BESIDE;
	struct cuda_program_memory at[CUDA_CARDS_MAX];

	for (unsigned i = 0; i < cuda_card_of(s)->cards; i++)
		at[i] = (struct cuda_program_memory){ .args = c->side[i].args,
			                              .here = (void *)((uint8_t *)c->side[i].args + c->commands),
			                              .on_card = c->side[i].on_card + c->commands };
	c->program = cuda_program_open(cuda_card_of(s), s->registry, c->plan, at, dataflow_of(s, c->plan), when, err);
	return c->program != NULL;
}

static bool fill(struct cuda_stream *s, struct cuda_plan *c, struct plan *p, struct error *err)
{
	struct cuda *d = cuda_card_of(s);
	size_t commands = is_one_launch(s) ? cuda_program_commands(p) : 0;

	c->plan = p;
	c->bytes = (p->n_args * sizeof *p->args + 63) / 64 * 64;
	cuda_find_inputs(s, c);
	c->commands = c->bytes;
	c->bytes += commands * sizeof(struct ptx_command);
	if (!cuda_find_outputs(s, c, err) ||
	    !(c->args = d->device.alloc(&d->device, d->cards * c->bytes, DEVICE_SHARED, err)) ||
	    !(c->on_cards = d->device.alloc(&d->device, c->bytes, DEVICE_BUFFERS, err)))
		return false;
	cuda_set_args(s, c);
	if (!cuda_partition_units(s, c))
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %zu launches", p->n_ops);
	if ((s->stream.profile && !(c->times = cuda_times_open(d, p, err))) || (commands && !make_program(s, c, err)))
		return false;
	return s->launch == STREAM_LAUNCH_OP || cuda_record(s, c, err);
}

static bool prepare(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct cuda_stream *s = (struct cuda_stream *)stream;
	struct cuda *d = cuda_card_of(s);
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

	cuda_enter(cuda_card_of(s), NULL); /* and if not: what can be given back is */
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	forget(s, c);
	p->prepared = NULL;
}

/* ---- running */

static int wait_for_all(const struct cuda_stream *s)
{
	struct cuda *d = cuda_card_of(s);
	int result = 0;

	for (unsigned i = d->cards; i-- > 0 && !result;)
		result = cuda_wait(d, s->queue[i]);
	return result;
}

static bool has_units(const struct cuda_stream *s, const struct cuda_plan *c, size_t i)
{
	bool has = false;

	for (unsigned card = 0; card < cuda_card_of(s)->cards; card++)
		has |= c->side[card].blocks[i] != 0;
	return has;
}

/* One launch, waited for. *took: nanoseconds, where somebody asks for them. */
static int run_op(const struct cuda_stream *s, struct cuda_plan *c, size_t i, uint64_t *took)
{
	int result = cuda_times_mark(c->times, i, s->queue[0], false);

	if (!result)
		result = cuda_launch_op(s, c, i);
	if (!result)
		result = cuda_times_mark(c->times, i + 1, s->queue[0], false);
	if (!result)
		result = wait_for_all(s);
	return !result && c->times ? cuda_times_between(c->times, i, i + 1, took) : result;
}

/* One by one, so that a run can be cancelled between them, and what fails has a name. */
static bool run_apart(struct cuda_stream *s, struct cuda_plan *c, struct plan *p, struct error *err)
{
	struct cuda *d = cuda_card_of(s);
	int result = cuda_send(s, c, 0, c->commands);

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
		s->counters.launches += has_units(s, c, i);
		if (c->times && c->side[0].blocks[i]) {
			end = profile_now();
			profile_launch(s->stream.profile, 0, p, i, end - took, end);
		}
	}
	if (!result && c->n_outputs) {
		result = cuda_fetch(s, c);
		if (!result)
			result = cuda_wait(d, s->queue[0]);
	}
	return !result || cuda_died(d, result, "a pass", err);
}

static bool run_graph(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct cuda *d = cuda_card_of(s);
	uint64_t began = c->times ? profile_now() : 0;
	int result = d->api->graph_launch(c->graph, s->queue[0]);

	if (!result)
		result = cuda_wait(d, s->queue[0]);
	if (!result && c->times) {
		s->stream.ended = profile_now();
		result = cuda_times_tell(c->times, c->plan, c->side[0].blocks, s->stream.profile, began,
		                         s->stream.ended);
	}
	s->counters.launches++;
	if (!result)
		return true;
	char what[64];
	snprintf(what, sizeof what, "a pass of %zu launches", c->plan->n_ops);
	return cuda_died(d, result, what, err);
}

/* On all cards; a card gives to others while it runs, so none begins before all are ready to be given to. */
static int launch_program(struct cuda_stream *s, struct cuda_plan *c)
{
	struct cuda *d = cuda_card_of(s);
	const bool clean = cuda_program_is_clean(c->program);
	int result = cuda_send(s, c, c->inputs, c->bytes);

	for (unsigned i = d->cards; !clean && i-- > 0 && !result;) {
		result = d->api->context_set(d->card[i].context);
		if (!result)
			result = cuda_program_clean(c->program, i, s->queue[i]);
	}
	if (!clean && !result)
		result = cuda_meet(s);
	for (unsigned i = d->cards; i-- > 0 && !result;) {
		result = d->cards > 1 ? d->api->context_set(d->card[i].context) : 0;
		if (!result)
			result = cuda_program_launch(c->program, i, s->queue[i]);
	}
	cuda_program_launched(c->program);
	return !result && d->cards > 1 ? cuda_fetch(s, c) : result;
}

static bool run_program(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct cuda *d = cuda_card_of(s);

	cuda_program_change(c->program);
	int result = launch_program(s, c);
	if (!result)
		result = wait_for_all(s);
	s->counters.launches++;
	s->counters.barriers += cuda_program_barriers(c->program);
	s->counters.commands += c->plan->n_ops;
	return !result || cuda_died(d, result, "a pass in one launch", err);
}

static bool run(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct cuda_stream *s = (struct cuda_stream *)stream;
	struct cuda_plan *c = p->prepared;
	struct cuda *d = cuda_card_of(s);

	if (!cuda_is_alive(d, err) || !cuda_enter(d, err))
		return false;
	if (cancel_any(s->stream.cancel))
		return cancel_error(err);
	int result = cuda_settle(d);
	if (result)
		return cuda_died(d, result, "copies to it", err);
	for (unsigned card = 0; card < d->cards; card++)
		for (size_t i = 0; i < p->n_changing; i++)
			c->side[card].args[p->changing[i].slot - p->args] = cuda_on_card(d, card, *p->changing[i].slot);
	cuda_take_inputs(c);
	if (c->program && cuda_program_is_ready(c->program))
		return run_program(s, c, err);
	if (c->program)
		begin_program(s, c);
	struct cuda_dataflow *dataflow = dataflow_of(s, p); /* other launches know of one region */
	dataflow->used[0] = p->dataflow_bytes > dataflow->used[0] ? p->dataflow_bytes : dataflow->used[0];
	return c->graph ? run_graph(s, c, err) : run_apart(s, c, p, err);
}

/* ---- streams */

static void count(const struct stream *s, struct stream_counters *out)
{
	*out = ((const struct cuda_stream *)s)->counters;
}

static void close_queues(struct cuda_stream *s)
{
	struct cuda *d = cuda_card_of(s);

	for (unsigned i = d->cards; i-- > 0;) {
		cuda_enter_card(d, i, NULL);
		if (s->event[i])
			d->api->event_destroy(s->event[i]);
		if (s->queue[i])
			d->api->stream_destroy(s->queue[i]);
	}
}

static bool open_queues(struct cuda_stream *s, struct error *err)
{
	struct cuda *d = cuda_card_of(s);

	for (unsigned i = d->cards; i-- > 0;) {
		if (!cuda_enter_card(d, i, err))
			return false;
		int result = d->api->stream_create(&s->queue[i], CUDA_STREAM_APART);
		if (!result && d->cards > 1)
			result = d->api->event_create(&s->event[i], CUDA_EVENT_NO_TIME);
		if (result)
			return cuda_failed(d, result, "opening a queue", err);
	}
	return true;
}

static void close_stream(struct stream *stream)
{
	struct cuda_stream *s = (struct cuda_stream *)stream;
	struct cuda *d = cuda_card_of(s);

	cuda_enter(d, NULL); /* and if not: what can be given back is */
	for (struct cuda_plan *p = s->plans, *next; p; p = next) {
		next = p->next;
		forget(s, p);
	}
	for (unsigned i = 0; i < 2; i++)
		cuda_dataflow_close(&s->dataflow[i], d);
	close_queues(s);
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
		.max_blocks = o->workgroups
	};
	if (open_queues(s, err))
		return &s->stream;
	close_queues(s);
	free(s);
	return NULL;
}
