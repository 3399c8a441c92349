/* runtime/device/cuda/cuda_simulated.c - NVIDIA's driver library as far as jitrun uses it, with simulated cards: number
 * 0 has compute capability 8.0, the others 9.0. See cuda_api.h and sim/ptx.h.
 *
 * So the device (cuda*.c) runs whole without a card. The card's memory is the process's. With JITRUN_SIM_HIDE in the
 * environment the host cannot touch it but while something is copied or runs: a host that forgets to upload or to read
 * back dies there, as it would misread a real card. What a launch does wrong is told by cuGetErrorString.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "runtime/host/system.h"

enum { CARDS = CUDA_SIMULATED_FIRST_90 + CUDA_SIMULATED_CARDS_90, MEMORY = CUDA_SIMULATED_MEMORY };
enum {
	SHARED_UNASKED = 48 << 10,
	SHARED_MAX = 227 << 10,
	THREADS_MAX = 1024,
	CACHE = 192 << 10 /* so that some matrices of small models are larger, and some are not */
};
struct cuda_simulated cuda_simulation = { .lock = PTHREAD_MUTEX_INITIALIZER, .units = 2 };

_Thread_local unsigned cuda_simulated_capability = 90;
_Thread_local int cuda_simulated_card;
static int cards[CARDS] = { 80, 90, 90, 90, 90, 90, 90, 90, 90 };

/* ---- the card and its memory */

static void protect(int protection)
{
	for (const struct cuda_simulated_block *b = cuda_simulation.blocks; b; b = b->next)
		if (b->hidden)
			mprotect(b->p, (b->bytes + 4095) / 4096 * 4096, protection);
}

void cuda_simulated_begin(void)
{
	pthread_mutex_lock(&cuda_simulation.lock);
	protect(PROT_READ | PROT_WRITE);
}

int cuda_simulated_end(int result)
{
	if (cuda_simulation.lost && !result)
		result = CUDA_SIMULATED_LAUNCH_FAILED;
	protect(PROT_NONE);
	pthread_mutex_unlock(&cuda_simulation.lock);
	return result;
}

static int sim_init(uint32_t flags)
{
	cuda_simulated_begin();
	if (!cuda_simulation.memory)
		cuda_simulation.memory = ptx_memory_open();
	return cuda_simulated_end(cuda_simulation.memory ? 0 : CUDA_OUT_OF_MEMORY);
}

static int give(int *to, int value)
{
	*to = value;
	return 0;
}

/* No real driver has such a last digit: code that is kept of this one is not taken for theirs. */
static int sim_driver_version(int *version) { return give(version, 13001); }
static int sim_device_count(int *n) { return give(n, CARDS); }
static int sim_device_get(int *device, int ordinal) { return give(device, ordinal); }

static int sim_device_name(char *name, int size, int device)
{
	snprintf(name, (size_t)size, "simulated sm%d", cards[device]);
	return 0;
}

static int sim_device_attribute(int *value, int attribute, int device)
{
	*value = attribute == CUDA_UNITS        ? (int)cuda_simulation.units
	         : attribute == CUDA_SHARED_MAX ? SHARED_MAX
	         : attribute == CUDA_CACHE      ? CACHE
	         : attribute == CUDA_MAJOR      ? cards[device] / 10
	                                        : cards[device] % 10;
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
	cuda_simulated_card = (int)((int *)context - cards);
	cuda_simulated_capability = (unsigned)cards[cuda_simulated_card];
	return 0;
}

static int sim_memory_info(size_t *free_bytes, size_t *bytes)
{
	cuda_simulated_begin();
	*bytes = MEMORY;
	*free_bytes = MEMORY - cuda_simulation.used;
	return cuda_simulated_end(0);
}

static int add_block(void **p, size_t bytes, bool hidden)
{
	struct cuda_simulated_block *b = calloc(1, sizeof *b);

	if (b && cuda_simulation.used + bytes <= MEMORY && (b->p = system_map(bytes)) &&
	    ptx_memory_add(cuda_simulation.memory, b->p, bytes)) {
		b->bytes = bytes;
		b->hidden = hidden;
		b->next = cuda_simulation.blocks;
		cuda_simulation.blocks = b;
		cuda_simulation.used += bytes;
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
	for (struct cuda_simulated_block **at = &cuda_simulation.blocks; *at; at = &(*at)->next)
		if ((*at)->p == p) {
			struct cuda_simulated_block *gone = *at;
			*at = gone->next;
			ptx_memory_remove(cuda_simulation.memory, p);
			cuda_simulation.used -= gone->bytes;
			system_unmap(gone->p, gone->bytes);
			free(gone);
			return 0;
		}
	return CUDA_SIMULATED_INVALID;
}

static int sim_memory_alloc(uint64_t *address, size_t bytes)
{
	void *p = NULL;

	cuda_simulated_begin();
	int result = add_block(&p, bytes, getenv("JITRUN_SIM_HIDE") != NULL);
	*address = (uint64_t)(uintptr_t)p;
	return cuda_simulated_end(result);
}

static int sim_memory_free(uint64_t address)
{
	cuda_simulated_begin();
	cuda_simulated_copy_now(CUDA_SIMULATED_ALL);
	return cuda_simulated_end(remove_block((void *)(uintptr_t)address));
}

static int sim_host_alloc(void **p, size_t bytes, uint32_t flags)
{
	cuda_simulated_begin();
	return cuda_simulated_end(add_block(p, bytes, false));
}

static int sim_host_free(void *p)
{
	cuda_simulated_begin();
	return cuda_simulated_end(remove_block(p));
}

/* ---- copies, in the order in which they were given */

enum { COPIES_MAX = 1 << 20 /* bytes that wait */ };

struct cuda_simulated_copy {
	struct cuda_simulated_copy *next; /* the one before it */
	uint8_t *to;
	size_t bytes;
	int card;  /* whose queue has it */
	bool sets; /* all bytes to the first one */
	uint8_t from[];
};

/* Those of a card's, or of all, from the first one on. */
static void do_copies(struct cuda_simulated_copy **at, int card)
{
	struct cuda_simulated_copy *c = *at;

	if (!c)
		return;
	do_copies(&c->next, card);
	if (card != CUDA_SIMULATED_ALL && c->card != card)
		return;
	if (c->sets)
		memset(c->to, *c->from, c->bytes);
	else
		memcpy(c->to, c->from, c->bytes);
	cuda_simulation.copies_bytes -= sizeof *c + c->bytes;
	*at = c->next;
	free(c);
}

void cuda_simulated_copy_now(int card) { do_copies(&cuda_simulation.copies, card); }

void cuda_simulated_forget_copies(const uint8_t *to, size_t bytes)
{
	for (struct cuda_simulated_copy **at = &cuda_simulation.copies; *at;) {
		struct cuda_simulated_copy *c = *at;
		if (c->to >= to + bytes || to >= c->to + c->bytes) {
			at = &c->next;
			continue;
		}
		snprintf(cuda_simulation.trap, sizeof cuda_simulation.trap,
		         "memory was unmapped while card %d was still to copy %zu bytes there", c->card, c->bytes);
		cuda_simulation.lost = true;
		cuda_simulation.copies_bytes -= sizeof *c + c->bytes;
		*at = c->next;
		free(c);
	}
}

static int copy_later(uint64_t to, const uint8_t *from, size_t bytes, bool sets)
{
	struct cuda_simulated_copy *c = malloc(sizeof *c + (sets ? 1 : bytes));

	if (!c)
		return CUDA_OUT_OF_MEMORY;
	*c = (struct cuda_simulated_copy){
		.to = (uint8_t *)(uintptr_t)to, .bytes = bytes, .card = cuda_simulated_card, .sets = sets
	};
	memcpy(c->from, from, sets ? 1 : bytes);
	cuda_simulated_begin();
	c->next = cuda_simulation.copies;
	cuda_simulation.copies = c;
	cuda_simulation.copies_bytes += sizeof *c + bytes;
	if (cuda_simulation.copies_bytes > COPIES_MAX)
		cuda_simulated_copy_now(CUDA_SIMULATED_ALL);
	return cuda_simulated_end(0);
}

static int sim_copy_to(uint64_t to, const void *from, size_t bytes) { return copy_later(to, from, bytes, false); }
static int sim_set_bytes(uint64_t to, uint8_t value, size_t bytes) { return copy_later(to, &value, bytes, true); }

static int sim_copy_from(void *to, uint64_t from, size_t bytes)
{
	cuda_simulated_begin();
	cuda_simulated_copy_now(cuda_simulated_card);
	memcpy(to, (const void *)(uintptr_t)from, bytes);
	return cuda_simulated_end(0);
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
		return CUDA_SIMULATED_INVALID;
	struct ptx_text *t = ptx_text_read(data, cuda_simulated_capability, &err);
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
	return l->text ? 0 : CUDA_SIMULATED_INVALID;
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
	struct cuda_simulated_module *m = calloc(1, sizeof *m);

	if (!m)
		return CUDA_OUT_OF_MEMORY;
	m->shared_max = SHARED_UNASKED;
	m->text = ptx_text_read(image, cuda_simulated_capability, &err);
	*module = m;
	if (m->text)
		return 0;
	pthread_mutex_lock(&cuda_simulation.lock);
	snprintf(cuda_simulation.trap, sizeof cuda_simulation.trap, "%s", err.text);
	pthread_mutex_unlock(&cuda_simulation.lock);
	free(m);
	*module = NULL;
	return CUDA_INVALID_PTX;
}

static int sim_module_unload(void *module)
{
	ptx_text_free(((struct cuda_simulated_module *)module)->text);
	free(module);
	return 0;
}

static int sim_module_function(void **function, void *module, const char *name)
{
	struct cuda_simulated_module *m = module;

	snprintf(m->entry, sizeof m->entry, "%s", name);
	*function = module;
	return ptx_text_has(m->text, name) ? 0 : 500;
}

static int sim_function_set(void *function, int attribute, int value)
{
	if (attribute != CUDA_FUNCTION_SHARED || value < 0 || value > SHARED_MAX)
		return CUDA_SIMULATED_INVALID;
	((struct cuda_simulated_module *)function)->shared_max = (uint32_t)value;
	return 0;
}

static int sim_function_blocks(int *n, void *function, int threads, size_t shared_bytes)
{
	*n = threads > THREADS_MAX || shared_bytes > ((struct cuda_simulated_module *)function)->shared_max ? 0 : 1;
	return 0;
}

/* ---- what went wrong */

static int sim_error_name(int result, const char **name)
{
	*name = result == CUDA_OUT_OF_MEMORY             ? "CUDA_ERROR_OUT_OF_MEMORY"
	        : result == CUDA_SIMULATED_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
	        : result == CUDA_INVALID_PTX             ? "CUDA_ERROR_INVALID_PTX"
	                                                 : "CUDA_ERROR_INVALID_VALUE";
	return 0;
}

static int sim_error_text(int result, const char **text)
{
	*text = result == CUDA_SIMULATED_LAUNCH_FAILED || result == CUDA_INVALID_PTX ? cuda_simulation.trap
	        : result == CUDA_OUT_OF_MEMORY                                       ? "out of memory"
	                                                                             : "invalid argument";
	return 0;
}

const struct cuda_api *cuda_simulated(void)
{
	static const struct cuda_api api = {
#define X(member, name, arguments, passed) .member = sim_##member,
		CUDA_FUNCTIONS(X)
#undef X
	};
	return &api;
}
