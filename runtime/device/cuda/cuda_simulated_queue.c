/* runtime/device/cuda/cuda_simulated_queue.c - launches, queues and graphs of the simulated library. See
 * cuda_simulated.h.
 *
 * Launches that do not wait for each other run in any order. In a graph of several queues their acts come in any order
 * that the events allow. A launch that waits for words of other cards runs when somebody waits for its queue, together
 * with those of the other queues; what a queue is given behind it waits as well.
 */
#include "runtime/device/cuda/cuda_simulated.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/profile.h"

enum { PARAMS = 8 };

/* When it was last reached; 0: never. In a graph, behind so many acts. */
struct event {
	uint64_t nanoseconds;
	struct graph *graph;
	size_t at;
};

/* What a queue does: an event, a copy (module NULL), the same word many times (words), or a launch. */
struct act {
	struct queue *queue; /* in a graph: whose; and in front of it are that many acts which it waits for */
	size_t behind;
	int card;
	struct event *event;
	size_t words;
	uint32_t word;
	const struct cuda_simulated_module *module;
	uint64_t to;
	const void *from;
	size_t bytes;
	uint32_t blocks, parts, ops, threads, shared;
	bool overlaps, together;
	uint64_t param[PARAMS];
};
struct graph {
	struct act *act;
	size_t n, capacity;
};
struct queue {
	struct queue *next;
	struct graph *recorded; /* NULL: nothing is recorded */
	size_t behind;          /* of what is recorded next */
	struct graph later;     /* a launch with other cards, and what waits behind it */
};
static struct queue *queues; /* all */

static const struct cuda_simulated_block *block_of(uint64_t address)
{
	const struct cuda_simulated_block *b = cuda_simulation.blocks;

	while (b && address - (uint64_t)(uintptr_t)b->p >= b->bytes)
		b = b->next;
	return b;
}

static bool is_with_others(const struct act *a)
{
	return a->module && a->together && ptx_text_is_for_cards(a->module->text);
}

/* The same launch on n cards. */
static int do_launch(struct act *const act[], unsigned n)
{
	const struct act *a = act[0];
	struct error err = { 0 };
	void *params[CUDA_CARDS_MAX * PARAMS];
	int card[CUDA_CARDS_MAX];
	unsigned bytes[PARAMS];
	const size_t each = ptx_text_params(a->module->text, a->module->entry, bytes, PARAMS);
	const struct cuda_simulated_block *args = block_of(a->param[0]);

	for (unsigned k = 0; k < n; k++) {
		card[k] = act[k]->card;
		for (size_t i = 0; i < each; i++)
			params[k * each + i] = (void *)(uintptr_t)&act[k]->param[i];
	}
	struct ptx_run run = {
		.entry = a->module->entry,
		.cooperative = a->together,
		.sums = cuda_simulation.sums,
		.blocks = a->blocks,
		.blocks_y = a->parts,
		.blocks_z = a->ops,
		.threads = a->threads,
		.shared_bytes = a->shared,
		.params = params,
		.card = card,
		.cards = n,
		.seed = cuda_simulation.seed++,
		.overlaps = a->overlaps && a->param[4] & PTX_WAIT_FIRST,
		.steady = args ? (uint64_t)(uintptr_t)args->p : 0,
		.steady_bytes = args ? args->bytes : 0
	};
	if (ptx_text_run(a->module->text, cuda_simulation.memory, &run, &err))
		return 0;
	snprintf(cuda_simulation.trap, sizeof cuda_simulation.trap, "%s", err.text);
	return CUDA_SIMULATED_LAUNCH_FAILED;
}

static int do_now(struct act *a)
{
	if (a->event) {
		a->event->nanoseconds = profile_now();
		return 0;
	}
	for (size_t i = 0; i < a->words; i++)
		((uint32_t *)(uintptr_t)a->to)[i] = a->word;
	if (a->module)
		return do_launch(&a, 1);
	if (a->bytes)
		memcpy((void *)(uintptr_t)a->to, a->from, a->bytes);
	return 0;
}

static int do_act(struct act *a)
{
	int result = do_now(a);

	cuda_simulated_copy_now(CUDA_SIMULATED_ALL);
	return result;
}

static int append(struct graph *g, const struct act *a)
{
	if (g->n == g->capacity) {
		g->capacity = 2 * g->capacity + 64;
		struct act *grown = realloc(g->act, g->capacity * sizeof *grown);
		if (!grown)
			return CUDA_OUT_OF_MEMORY;
		g->act = grown;
	}
	g->act[g->n++] = *a;
	return 0;
}

static int put(struct queue *q, struct act *a)
{
	a->card = cuda_simulated_card;
	a->queue = q;
	if (q && q->recorded) {
		a->behind = q->behind;
		return append(q->recorded, a);
	}
	cuda_simulated_begin();
	if (!q) /* copies are this queue's, too */
		cuda_simulated_copy_now(cuda_simulated_card);
	return cuda_simulated_end(q && (q->later.n || is_with_others(a)) ? append(&q->later, a) : do_act(a));
}

/* Where a program's launches count, on whichever card. */
static uint64_t sync_of(const struct act *a)
{
	return a->param[2] & ~((uint64_t)(CUDA_CARDS_MAX - 1) << PTX_CARD_SHIFT);
}

/* What a queue waits to do: a launch with those of other queues that belong to it, and what is behind it. */
static int do_later(struct queue *mine)
{
	struct queue *with[CUDA_CARDS_MAX];
	struct act *first[CUDA_CARDS_MAX];
	unsigned n = 0;
	int result = 0;

	for (struct queue *q = queues; mine->later.n && q; q = q->next)
		if (q->later.n && n < CUDA_CARDS_MAX && sync_of(q->later.act) == sync_of(mine->later.act)) {
			with[n] = q;
			first[n++] = q->later.act;
		}
	if (!n)
		return 0;
	result = do_launch(first, n);
	cuda_simulated_copy_now(CUDA_SIMULATED_ALL);
	for (unsigned k = 0; k < n; k++) {
		struct graph *g = &with[k]->later;
		size_t at = 1;
		while (at < g->n && !is_with_others(&g->act[at]) && !result)
			result = do_act(&g->act[at++]);
		at = result ? g->n : at;
		memmove(g->act, g->act + at, (g->n - at) * sizeof *g->act);
		g->n -= at;
	}
	return result ? result : do_later(mine);
}

int sim_copy_to_later(uint64_t to, const void *from, size_t bytes, void *stream)
{
	return put(stream, &(struct act){ .to = to, .from = from, .bytes = bytes });
}

int sim_copy_from_later(void *to, uint64_t from, size_t bytes, void *stream)
{
	return put(stream,
	           &(struct act){
			   .to = (uint64_t)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .bytes = bytes });
}

int sim_set_words_later(uint64_t to, uint32_t value, size_t n, void *stream)
{
	return to % 4 ? CUDA_SIMULATED_INVALID : put(stream, &(struct act){ .to = to, .word = value, .words = n });
}

static bool has_attribute(const struct cuda_launch_config *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_attributes; i++)
		if (c->attribute[i].id == id)
			return c->attribute[i].of.value != 0;
	return false;
}

int sim_launch(const struct cuda_launch_config *c, void *function, void **params, void **extra)
{
	struct act a = { .module = function,
		         .blocks = c->grid[0],
		         .parts = c->grid[1],
		         .ops = c->grid[2],
		         .threads = c->block[0],
		         .shared = c->shared_bytes,
		         .overlaps = has_attribute(c, CUDA_LAUNCH_OVERLAPS),
		         .together = has_attribute(c, CUDA_LAUNCH_TOGETHER) };
	unsigned bytes[PARAMS];
	size_t n = ptx_text_params(a.module->text, a.module->entry, bytes, PARAMS);

	if (n > PARAMS || !a.blocks || !a.parts || !a.ops || c->block[1] != 1 || c->block[2] != 1 ||
	    a.shared > a.module->shared_max || (a.overlaps && cuda_simulated_capability < 90))
		return CUDA_SIMULATED_INVALID;
	if (a.together && a.blocks * a.parts * a.ops > cuda_simulation.units)
		return CUDA_SIMULATED_TOO_MANY;
	for (size_t i = 0; i < n; i++)
		memcpy(&a.param[i], params[i], bytes[i]);
	return put(c->stream, &a);
}

int sim_stream_create(void **stream, uint32_t flags)
{
	struct queue *q = *stream = calloc(1, sizeof *q);

	if (!q)
		return CUDA_OUT_OF_MEMORY;
	cuda_simulated_begin();
	q->next = queues;
	queues = q;
	return cuda_simulated_end(0);
}

int sim_stream_wait(void *stream)
{
	cuda_simulated_begin();
	if (!stream)
		cuda_simulated_copy_now(cuda_simulated_card);
	return cuda_simulated_end(stream ? do_later(stream) : 0);
}

int sim_stream_query(void *stream) { return sim_stream_wait(stream); }

int sim_stream_destroy(void *stream)
{
	struct queue **at = &queues, *q = stream;

	cuda_simulated_begin();
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	free(q->later.act);
	free(q);
	return cuda_simulated_end(0);
}

/* While the event's queue is recorded, this one is as well from then on. Else acts are done when they are given, or
 * behind a launch with others, which all queues that wait do together. */
int sim_stream_wait_event(void *stream, void *event, uint32_t flags)
{
	struct queue *q = stream;
	const struct event *e = event;

	if (q->recorded && q->recorded != e->graph)
		return CUDA_SIMULATED_CAPTURE_WRONG;
	if (!e->graph)
		return 0;
	q->recorded = e->graph;
	q->behind = e->at > q->behind ? e->at : q->behind;
	return 0;
}

int sim_event_create(void **event, uint32_t flags)
{
	*event = calloc(1, sizeof(struct event));
	return *event ? 0 : CUDA_OUT_OF_MEMORY;
}

int sim_event_destroy(void *event) { return free(event), 0; }

/* A recorded event without the flag orders queues and has no time. */
int sim_event_record(void *event, void *stream, uint32_t flags)
{
	struct queue *q = stream;
	struct event *e = event;
	struct graph *g = q ? q->recorded : NULL;

	if (!g && flags == CUDA_EVENT_IN_GRAPH)
		return CUDA_SIMULATED_INVALID;
	if (g && flags != CUDA_EVENT_IN_GRAPH) {
		e->graph = g;
		e->at = g->n;
		return 0;
	}
	e->graph = NULL;
	return put(q, &(struct act){ .event = e });
}

int sim_event_elapsed(float *milliseconds, void *start, void *end)
{
	const struct event *from = start, *to = end;

	if (!from->nanoseconds || to->nanoseconds < from->nanoseconds)
		return CUDA_SIMULATED_NOT_RECORDED;
	*milliseconds = 1e-6f * (float)(to->nanoseconds - from->nanoseconds);
	return 0;
}

int sim_capture_begin(void *stream, int mode)
{
	struct queue *q = stream;

	if (q->recorded)
		return CUDA_SIMULATED_CAPTURE_WRONG;
	q->recorded = calloc(1, sizeof *q->recorded);
	q->behind = 0;
	return q->recorded ? 0 : CUDA_OUT_OF_MEMORY;
}

/* All that other queues have done must be waited for; else there is no graph. */
int sim_capture_end(void *stream, void **graph)
{
	struct queue *q = stream;
	struct graph *g = *graph = q->recorded;
	const size_t joined = q->behind;
	int result = g ? 0 : CUDA_SIMULATED_CAPTURE_WRONG;

	cuda_simulated_begin();
	for (struct queue *other = queues; g && other; other = other->next) {
		if (other->recorded != g)
			continue;
		for (size_t i = joined; i < g->n && other != q; i++)
			result = g->act[i].queue == other ? CUDA_SIMULATED_NOT_JOINED : result;
		other->recorded = NULL;
		other->behind = 0;
	}
	if (g && result) {
		sim_graph_destroy(g);
		*graph = NULL;
	}
	return cuda_simulated_end(result);
}

int sim_graph_instantiate(void **exec, void *graph, unsigned long long flags)
{
	const struct graph *g = graph;
	struct graph *e = calloc(1, sizeof *e);

	*exec = e;
	if (!e || !(e->act = malloc((g->n + 1) * sizeof *e->act))) {
		free(e);
		return CUDA_OUT_OF_MEMORY;
	}
	if (g->n)
		memcpy(e->act, g->act, g->n * sizeof *e->act);
	e->n = g->n;
	return 0;
}

/* Whether it does not wait for the launch before it. */
static bool is_beside(const struct act *a) { return a->module && a->overlaps && !(a->param[4] & PTX_WAIT_FIRST); }

/* Launches that do not wait for each other, in any order. */
static int do_all(struct act *a, size_t n)
{
	size_t first = (size_t)(cuda_simulation.seed % n), result = 0;
	bool down = cuda_simulation.seed / n & 1;

	for (size_t i = 0; i < n && !result; i++)
		result = (size_t)do_act(&a[(first + (down ? n - i : i)) % n]);
	return (int)result;
}

static int do_one_queue(struct graph *g)
{
	size_t next;
	int result = 0;

	for (size_t i = 0; i < g->n && !result; i = next) {
		next = i + 1;
		while (next < g->n && is_beside(&g->act[next]))
			next++;
		result = do_all(&g->act[i], next - i);
	}
	return result;
}

/* Whether an act may be done: those of its queue in front of it are, and what it waits for. */
static bool may_be_done(const struct graph *g, const bool *done, size_t i)
{
	bool may = !done[i];

	for (size_t k = 0; k < i && may; k++)
		may = done[k] || (k >= g->act[i].behind && g->act[k].queue != g->act[i].queue);
	return may;
}

static int do_queues(struct graph *g)
{
	bool *done = calloc(g->n, sizeof *done);
	int result = done ? 0 : CUDA_OUT_OF_MEMORY;

	for (size_t left = done ? g->n : 0, first = 0; left && !result; left--) {
		size_t ready[CUDA_CARDS_MAX], n = 0;
		while (done[first])
			first++;
		for (size_t i = first; i < g->n && n < CUDA_CARDS_MAX && i < first + 64; i++)
			if (may_be_done(g, done, i))
				ready[n++] = i;
		size_t next = ready[cuda_simulation.seed++ % n];
		result = do_act(&g->act[next]);
		done[next] = true;
	}
	free(done);
	return result;
}

int sim_graph_launch(void *exec, void *stream)
{
	struct graph *g = exec;
	bool several = false;

	for (size_t i = 1; i < g->n; i++)
		several |= g->act[i].queue != g->act[0].queue;
	cuda_simulated_begin();
	return cuda_simulated_end(several ? do_queues(g) : do_one_queue(g));
}

int sim_graph_destroy(void *graph)
{
	free(((struct graph *)graph)->act);
	free(graph);
	return 0;
}

int sim_graph_exec_destroy(void *exec) { return sim_graph_destroy(exec); }
