/* runtime/device/cuda_simulated.c - NVIDIA's driver library as far as jitrun uses it, with two simulated cards: number
 * 0 has compute capability 8.0, number 1 9.0. See cuda_api.h and sim/ptx.h.
 *
 * So the device (cuda*.c) runs whole without a card. The card's memory is the process's. With JITRUN_SIM_HIDE in the
 * environment the host cannot touch it but while something is copied or runs: a host that forgets to upload or to read
 * back dies there, as it would misread a real card. What a launch does wrong is told by cuGetErrorString.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device/cuda.h"
#include "runtime/host/system.h"
#include "sim/ptx.h"

enum {
	CARDS = 2,
	UNITS = 2,
	MEMORY = 1 << 30,
	SHARED_UNASKED = 48 << 10,
	SHARED_MOST = 160 << 10,
	PARAMS = 4,
	THREADS_MOST = 1024
};
enum { INVALID = 1, LAUNCH_FAILED = 719, CAPTURE_WRONG = 901 };

struct block {
	struct block *next;
	void *p;
	size_t bytes;
	bool hidden;
};

struct module {
	struct ptx_text *text;
	uint32_t shared_most;
	char image[];
};

/* What a queue does: a copy (module NULL) or a launch. */
struct act {
	const struct module *module;
	uint64_t to;
	const void *from;
	size_t bytes;
	uint32_t blocks, threads, shared;
	bool overlaps;
	uint64_t param[PARAMS];
};
struct graph {
	struct act *act;
	size_t n, capacity;
};
struct queue {
	struct graph *recorded; /* NULL: nothing is recorded */
};

static struct {
	pthread_mutex_t lock;
	struct ptx_memory *memory;
	struct block *blocks;
	size_t used;
	uint64_t seed;
	char trap[512]; /* the last one's sentence */
} machine = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local unsigned capability = 90; /* of this thread's card */
static int cards[CARDS] = { 80, 90 };

/* ---- the card and its memory */

static void protect(int protection)
{
	for (const struct block *b = machine.blocks; b; b = b->next)
		if (b->hidden)
			mprotect(b->p, (b->bytes + 4095) / 4096 * 4096, protection);
}

static void begin(void)
{
	pthread_mutex_lock(&machine.lock);
	protect(PROT_READ | PROT_WRITE);
}

static int end(int result)
{
	protect(PROT_NONE);
	pthread_mutex_unlock(&machine.lock);
	return result;
}

static int sim_init(uint32_t flags)
{
	begin();
	if (!machine.memory)
		machine.memory = ptx_memory_open();
	return end(machine.memory ? 0 : CUDA_OUT_OF_MEMORY);
}

static int give(int *to, int value)
{
	*to = value;
	return 0;
}

static int sim_driver_version(int *version) { return give(version, 13000); }
static int sim_device_count(int *n) { return give(n, CARDS); }
static int sim_device_get(int *device, int ordinal) { return give(device, ordinal); }

static int sim_device_name(char *name, int size, int device)
{
	snprintf(name, (size_t)size, "simulated sm%d", cards[device]);
	return 0;
}

static int sim_device_attribute(int *value, int attribute, int device)
{
	*value = attribute == CUDA_UNITS ? UNITS : attribute == CUDA_MAJOR ? cards[device] / 10 : cards[device] % 10;
	return 0;
}

static int sim_device_memory(size_t *bytes, int device) { return *bytes = MEMORY, 0; }

static int sim_context_retain(void **context, int device)
{
	*context = &cards[device];
	return sim_init(0);
}

static int sim_context_release(int device) { return 0; }

static int sim_context_set(void *context)
{
	capability = (unsigned)*(int *)context;
	return 0;
}

static int sim_memory_info(size_t *free_bytes, size_t *bytes)
{
	begin();
	*bytes = MEMORY;
	*free_bytes = MEMORY - machine.used;
	return end(0);
}

static int add_block(void **p, size_t bytes, bool hidden)
{
	struct block *b = calloc(1, sizeof *b);

	if (b && machine.used + bytes <= MEMORY && (b->p = system_map(bytes)) &&
	    ptx_memory_add(machine.memory, b->p, bytes)) {
		b->bytes = bytes;
		b->hidden = hidden;
		b->next = machine.blocks;
		machine.blocks = b;
		machine.used += bytes;
		*p = b->p;
		return 0;
	}
	if (b && b->p)
		system_unmap(b->p, bytes);
	free(b);
	return CUDA_OUT_OF_MEMORY;
}

static int remove_block(const void *p)
{
	for (struct block **at = &machine.blocks; *at; at = &(*at)->next)
		if ((*at)->p == p) {
			struct block *gone = *at;
			*at = gone->next;
			ptx_memory_remove(machine.memory, p);
			machine.used -= gone->bytes;
			system_unmap(gone->p, gone->bytes);
			free(gone);
			return 0;
		}
	return INVALID;
}

static int sim_memory_alloc(uint64_t *address, size_t bytes)
{
	void *p = NULL;

	begin();
	int result = add_block(&p, bytes, getenv("JITRUN_SIM_HIDE") != NULL);
	*address = (uint64_t)(uintptr_t)p;
	return end(result);
}

static int sim_memory_free(uint64_t address)
{
	begin();
	return end(remove_block((void *)(uintptr_t)address));
}

static int sim_host_alloc(void **p, size_t bytes, uint32_t flags)
{
	begin();
	return end(add_block(p, bytes, false));
}

static int sim_host_free(void *p)
{
	begin();
	return end(remove_block(p));
}

static int copy(void *to, const void *from, size_t bytes)
{
	begin();
	memcpy(to, from, bytes);
	return end(0);
}

static int sim_copy_to(uint64_t to, const void *from, size_t bytes) { return copy((void *)(uintptr_t)to, from, bytes); }
static int sim_copy_from(void *to, uint64_t from, size_t bytes) { return copy(to, (void *)(uintptr_t)from, bytes); }

static int sim_set_bytes(uint64_t to, uint8_t value, size_t bytes)
{
	begin();
	memset((void *)(uintptr_t)to, value, bytes);
	return end(0);
}

/* ---- kernels: a linker's state is a copy of the text, which is its result as well */

struct linker {
	char *log;
	size_t log_bytes, n;
	char *text;
};

static int sim_link_create(uint32_t n, int *options, void **values, void **state)
{
	struct linker *l = calloc(1, sizeof *l);

	for (uint32_t i = 0; l && i < n; i++) {
		if (options[i] == CUDA_ERROR_LOG)
			l->log = values[i];
		else if (options[i] == CUDA_ERROR_LOG_BYTES)
			l->log_bytes = (size_t)(uintptr_t)values[i];
	}
	*state = l;
	return l ? 0 : CUDA_OUT_OF_MEMORY;
}

static int sim_link_add(void *state, int type, void *data, size_t bytes, const char *name, uint32_t n, int *options,
                        void **values)
{
	struct linker *l = state;
	struct error err = { 0 };

	if (type != CUDA_INPUT_PTX || !bytes || ((char *)data)[bytes - 1])
		return INVALID;
	struct ptx_text *t = ptx_text_read(data, capability, &err);
	if (!t) {
		if (l->log)
			snprintf(l->log, l->log_bytes, "%s", err.text);
		return CUDA_INVALID_PTX;
	}
	ptx_text_free(t);
	l->n = bytes;
	l->text = malloc(bytes);
	if (l->text)
		memcpy(l->text, data, bytes);
	return l->text ? 0 : CUDA_OUT_OF_MEMORY;
}

static int sim_link_complete(void *state, void **cubin, size_t *bytes)
{
	struct linker *l = state;

	*cubin = l->text;
	*bytes = l->n;
	return l->text ? 0 : INVALID;
}

static int sim_link_destroy(void *state)
{
	free(((struct linker *)state)->text);
	free(state);
	return 0;
}

static int sim_module_load(void **module, const void *image)
{
	struct error err = { 0 };
	struct module *m = calloc(1, sizeof *m);

	if (!m)
		return CUDA_OUT_OF_MEMORY;
	m->shared_most = SHARED_UNASKED;
	m->text = ptx_text_read(image, capability, &err);
	*module = m;
	if (m->text)
		return 0;
	pthread_mutex_lock(&machine.lock);
	snprintf(machine.trap, sizeof machine.trap, "%s", err.text);
	pthread_mutex_unlock(&machine.lock);
	free(m);
	*module = NULL;
	return CUDA_INVALID_PTX;
}

static int sim_module_unload(void *module)
{
	ptx_text_free(((struct module *)module)->text);
	free(module);
	return 0;
}

static int sim_module_function(void **function, void *module, const char *name)
{
	*function = module;
	return ptx_text_has(((struct module *)module)->text, name) ? 0 : 500;
}

static int sim_function_set(void *function, int attribute, int value)
{
	if (attribute != CUDA_FUNCTION_SHARED || value < 0 || value > SHARED_MOST)
		return INVALID;
	((struct module *)function)->shared_most = (uint32_t)value;
	return 0;
}

static int sim_function_blocks(int *n, void *function, int threads, size_t shared_bytes)
{
	*n = threads > THREADS_MOST || shared_bytes > ((struct module *)function)->shared_most ? 0 : 1;
	return 0;
}

/* ---- queues */

static int do_act(const struct act *a)
{
	struct error err = { 0 };

	if (!a->module) {
		memcpy((void *)(uintptr_t)a->to, a->from, a->bytes);
		return 0;
	}
	void *params[PARAMS];
	for (unsigned i = 0; i < PARAMS; i++)
		params[i] = (void *)(uintptr_t)&a->param[i];
	struct ptx_run run = { .blocks = a->blocks,
		               .threads = a->threads,
		               .shared_bytes = a->shared,
		               .params = params,
		               .seed = machine.seed++,
		               .overlaps = a->overlaps };
	if (ptx_text_run(a->module->text, machine.memory, &run, &err))
		return 0;
	snprintf(machine.trap, sizeof machine.trap, "%s", err.text);
	return LAUNCH_FAILED;
}

static int put(struct queue *q, const struct act *a)
{
	struct graph *g = q ? q->recorded : NULL;

	if (!g) {
		begin();
		return end(do_act(a));
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

static int sim_copy_to_later(uint64_t to, const void *from, size_t bytes, void *stream)
{
	return put(stream, &(struct act){ .to = to, .from = from, .bytes = bytes });
}

static int sim_launch(const struct cuda_launch_config *c, void *function, void **params, void **extra)
{
	struct act a = {
		.module = function,
		.blocks = c->grid[0],
		.threads = c->block[0],
		.shared = c->shared_bytes,
		.overlaps = c->n_attributes && c->attribute->id == CUDA_LAUNCH_OVERLAPS && c->attribute->of.value
	};

	if (!a.blocks || c->grid[1] != 1 || c->grid[2] != 1 || c->block[1] != 1 || c->block[2] != 1 ||
	    a.shared > a.module->shared_most || (a.overlaps && capability < 90))
		return INVALID;
	memcpy(&a.param[0], params[0], 8);
	memcpy(&a.param[1], params[1], 8);
	memcpy(&a.param[2], params[2], 4);
	memcpy(&a.param[3], params[3], 4);
	return put(c->stream, &a);
}

static int sim_stream_create(void **stream, uint32_t flags)
{
	*stream = calloc(1, sizeof(struct queue));
	return *stream ? 0 : CUDA_OUT_OF_MEMORY;
}

static int sim_stream_wait(void *stream) { return 0; }
static int sim_stream_destroy(void *stream) { return free(stream), 0; }

static int sim_capture_begin(void *stream, int mode)
{
	struct queue *q = stream;

	if (q->recorded)
		return CAPTURE_WRONG;
	q->recorded = calloc(1, sizeof *q->recorded);
	return q->recorded ? 0 : CUDA_OUT_OF_MEMORY;
}

static int sim_capture_end(void *stream, void **graph)
{
	struct queue *q = stream;

	*graph = q->recorded;
	q->recorded = NULL;
	return *graph ? 0 : CAPTURE_WRONG;
}

static int sim_graph_instantiate(void **exec, void *graph, unsigned long long flags)
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

static int sim_graph_launch(void *exec, void *stream)
{
	const struct graph *g = exec;
	int result = 0;

	begin();
	for (size_t i = 0; i < g->n && !result; i++)
		result = do_act(&g->act[i]);
	return end(result);
}

static int sim_graph_destroy(void *graph)
{
	free(((struct graph *)graph)->act);
	free(graph);
	return 0;
}

static int sim_graph_exec_destroy(void *exec) { return sim_graph_destroy(exec); }

/* ---- what went wrong */

static int sim_error_name(int result, const char **name)
{
	*name = result == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
	        : result == LAUNCH_FAILED    ? "CUDA_ERROR_LAUNCH_FAILED"
	        : result == CUDA_INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
	                                     : "CUDA_ERROR_INVALID_VALUE";
	return 0;
}

static int sim_error_text(int result, const char **text)
{
	*text = result == LAUNCH_FAILED || result == CUDA_INVALID_PTX ? machine.trap
	        : result == CUDA_OUT_OF_MEMORY                        ? "out of memory"
	                                                              : "invalid argument";
	return 0;
}

const struct cuda_api *cuda_simulated(void)
{
	static const struct cuda_api api = {
#define X(member, name, arguments) .member = sim_##member,
		CUDA_FUNCTIONS(X)
#undef X
	};
	return &api;
}
