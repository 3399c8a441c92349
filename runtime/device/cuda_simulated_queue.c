/* runtime/device/cuda_simulated_queue.c - launches, queues and graphs of the simulated library. See cuda_simulated.h.
 *
 * Launches that do not wait for each other run in any order.
 */
#include "runtime/device/cuda_simulated.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/profile.h"

enum { PARAMS = 8 };

/* When it was last reached; 0: never. */
struct event {
	uint64_t nanoseconds;
};

/* What a queue does: an event, a copy (module NULL), the same word many times (words), or a launch. */
struct act {
	struct event *event;
	size_t words;
	uint32_t word;
	const struct cuda_simulated_module *module;
	uint64_t to;
	const void *from;
	size_t bytes;
	uint32_t blocks, parts, threads, shared;
	bool overlaps, together;
	uint64_t param[PARAMS];
};
struct graph {
	struct act *act;
	size_t n, capacity;
};
struct queue {
	struct graph *recorded; /* NULL: nothing is recorded */
};

static const struct cuda_simulated_block *block_of(uint64_t address)
{
	const struct cuda_simulated_block *b = cuda_simulation.blocks;

	while (b && address - (uint64_t)(uintptr_t)b->p >= b->bytes)
		b = b->next;
	return b;
}

static int do_act(const struct act *a)
{
	struct error err = { 0 };

	if (a->event) {
		a->event->nanoseconds = profile_now();
		return 0;
	}
	for (size_t i = 0; i < a->words; i++)
		((uint32_t *)(uintptr_t)a->to)[i] = a->word;
	if (!a->module) {
		if (a->bytes)
			memcpy((void *)(uintptr_t)a->to, a->from, a->bytes);
		return 0;
	}
	void *params[PARAMS];
	const struct cuda_simulated_block *args = block_of(a->param[0]);
	for (unsigned i = 0; i < PARAMS; i++)
		params[i] = (void *)(uintptr_t)&a->param[i];
	struct ptx_run run = {
		.entry = a->module->entry,
		.cooperative = a->together,
		.sums = cuda_simulation.sums,
		.blocks = a->blocks,
		.blocks_y = a->parts,
		.threads = a->threads,
		.shared_bytes = a->shared,
		.params = params,
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

static int put(struct queue *q, const struct act *a)
{
	struct graph *g = q ? q->recorded : NULL;

	if (!g) {
		cuda_simulated_begin();
		return cuda_simulated_end(do_act(a));
	}
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

int sim_copy_to_later(uint64_t to, const void *from, size_t bytes, void *stream)
{
	return put(stream, &(struct act){ .to = to, .from = from, .bytes = bytes });
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
		         .threads = c->block[0],
		         .shared = c->shared_bytes,
		         .overlaps = has_attribute(c, CUDA_LAUNCH_OVERLAPS),
		         .together = has_attribute(c, CUDA_LAUNCH_TOGETHER) };
	unsigned bytes[PARAMS];
	size_t n = ptx_text_params(a.module->text, a.module->entry, bytes, PARAMS);

	if (n > PARAMS || !a.blocks || !a.parts || c->grid[2] != 1 || c->block[1] != 1 || c->block[2] != 1 ||
	    a.shared > a.module->shared_most || (a.overlaps && cuda_simulated_capability < 90))
		return CUDA_SIMULATED_INVALID;
	if (a.together && a.blocks * a.parts > cuda_simulation.units)
		return CUDA_SIMULATED_TOO_MANY;
	for (size_t i = 0; i < n; i++)
		memcpy(&a.param[i], params[i], bytes[i]);
	return put(c->stream, &a);
}

int sim_stream_create(void **stream, uint32_t flags)
{
	*stream = calloc(1, sizeof(struct queue));
	return *stream ? 0 : CUDA_OUT_OF_MEMORY;
}

int sim_stream_wait(void *stream) { return 0; }
int sim_stream_query(void *stream) { return 0; }
int sim_stream_destroy(void *stream) { return free(stream), 0; }

int sim_event_create(void **event, uint32_t flags)
{
	*event = calloc(1, sizeof(struct event));
	return *event ? 0 : CUDA_OUT_OF_MEMORY;
}

int sim_event_destroy(void *event) { return free(event), 0; }

/* A recorded event without the flag would order queues and have no time. */
int sim_event_record(void *event, void *stream, uint32_t flags)
{
	const bool recording = stream && ((struct queue *)stream)->recorded;

	if (recording != (flags == CUDA_EVENT_IN_GRAPH))
		return CUDA_SIMULATED_INVALID;
	return put(stream, &(struct act){ .event = event });
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
	return q->recorded ? 0 : CUDA_OUT_OF_MEMORY;
}

int sim_capture_end(void *stream, void **graph)
{
	struct queue *q = stream;

	*graph = q->recorded;
	q->recorded = NULL;
	return *graph ? 0 : CUDA_SIMULATED_CAPTURE_WRONG;
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
static int do_all(const struct act *a, size_t n)
{
	size_t first = (size_t)(cuda_simulation.seed % n), result = 0;
	bool down = cuda_simulation.seed / n & 1;

	for (size_t i = 0; i < n && !result; i++)
		result = (size_t)do_act(&a[(first + (down ? n - i : i)) % n]);
	return (int)result;
}

int sim_graph_launch(void *exec, void *stream)
{
	const struct graph *g = exec;
	size_t next;
	int result = 0;

	cuda_simulated_begin();
	for (size_t i = 0; i < g->n && !result; i = next) {
		next = i + 1;
		while (next < g->n && is_beside(&g->act[next]))
			next++;
		result = do_all(&g->act[i], next - i);
	}
	return cuda_simulated_end(result);
}

int sim_graph_destroy(void *graph)
{
	free(((struct graph *)graph)->act);
	free(graph);
	return 0;
}

int sim_graph_exec_destroy(void *exec) { return sim_graph_destroy(exec); }
