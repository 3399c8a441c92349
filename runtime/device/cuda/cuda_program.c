/* runtime/device/cuda/cuda_program.c - a plan of a token, or a few, as one launch on an NVIDIA card. See cuda.h and
 * jit/ptx/program.h.
 *
 * Each op is a command, with its arguments in it; the blocks of the launch, one a multiprocessor, walk over them all.
 * The text of the plan's kernels together is a module of its own, of which the driver makes code for up to a second
 * when the model is used for the first time. So a thread does that, and until it is done passes go through the graph,
 * to the same bits.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/lanes.h"
#include "jit/program_key.h"
#include "jit/ptx/program.h"
#include "jit/ptx/ptx.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/cuda/cuda_partition.h"

enum { STAGE_OPS_MAX = 64 /* that are distributed together */ };

/* A slot that differs from run to run, and where it is in the commands. */
struct change {
	const uint64_t *slot;
	size_t command;
	unsigned arg;
};

/* A slot that points into the dataflow region; at: where in there. */
struct pointer {
	size_t command;
	unsigned arg;
	uint64_t at;
};

struct cuda_program {
	struct cuda *d;
	struct registry *registry;
	struct key key;
	struct ptx_command *command[CUDA_CARDS_MAX]; /* of each card, in the same order */
	uint64_t on_card;                            /* where the first one has them */
	uint32_t n, barriers, arrivals;
	void *sync; /* the cards' */
	size_t sync_bytes;
	struct change *change;
	size_t n_changes;
	struct pointer *pointer;
	size_t n_pointers;
	uint64_t dataflow_bytes;
	struct cuda_dataflow *dataflow;     /* NULL: nothing is */
	struct cuda_kernel *_Atomic kernel; /* NULL: it is being made, or could not be */
	pthread_t thread;
	bool making; /* the thread is to be joined */
};

size_t cuda_program_commands(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_ops; i++) {
		if (p->op[i].n_args > PTX_COMMAND_SLOTS)
			return 0;
		n += p->op[i].end > p->op[i].begin;
	}
	return (p->tokens == 1 || p->dataflow_bytes) && p->n_kernels <= PROGRAM_KERNELS_MAX ? n : 0;
}

/* ---- commands */

/* Distributes the stage whose ops end in front of `end`; its commands are the last ones. A card may have no units of an
 * op, of which others have some. */
static void partition(struct cuda_program *out, unsigned card, struct cuda_ring *d, const struct plan *p, size_t end,
                      uint32_t partitioned)
{
	struct cuda_lot lot[STAGE_OPS_MAX];
	struct ptx_command *of[STAGE_OPS_MAX];
	uint32_t n = 0, at = out->n;

	for (size_t i = end; at > partitioned && i-- > 0;) {
		const struct plan_op *l = &p->op[i];
		const struct plan_kernel *k = &p->kernel[l->kernel];
		const bool together = ((const struct cuda_kernel *)k->handle)->cooperative;
		if (l->end <= l->begin)
			continue;
		struct ptx_command *c = &out->command[card][--at];
		const struct cut_units u = cut_units_of(l, card, out->d->cards);
		c->begin = u.begin;
		if (u.n) {
			of[n] = c;
			lot[n++] = (struct cuda_lot){ .units = u.n,
				                      .waves = together ? 1 : out->d->device.facts.target->waves,
				                      .last_are_long = k->key.kind == KEY_ATTENTION };
		}
	}
	for (uint32_t i = 0; i < n / 2; i++) { /* they were found from the last one on */
		const struct cuda_lot l = lot[i];
		struct ptx_command *c = of[i];
		lot[i] = lot[n - 1 - i], lot[n - 1 - i] = l;
		of[i] = of[n - 1 - i], of[n - 1 - i] = c;
	}
	if (n)
		cuda_partition(d, lot, n);
	for (uint32_t i = 0; i < n; i++) {
		of[i]->first = lot[i].first;
		of[i]->blocks = lot[i].blocks;
		of[i]->per = lot[i].per;
		of[i]->rest = lot[i].rest;
	}
}

/* Whether an op of the stage behind op i waits for all that is before it, and not just for what it reads. */
static bool next_stage_waits(const struct plan *p, size_t i)
{
	for (size_t k = i + 1; k < p->n_ops; k++) {
		if (p->op[k].end > p->op[k].begin && !p->op[k].awaits)
			return true;
		if (p->op[k].barrier)
			return false;
	}
	return false;
}

static void set_commands(struct cuda_program *out, unsigned card, const struct plan *p, const uint64_t *args,
                         const struct key *list, size_t kernels)
{
	struct cuda_ring ring = { .blocks = out->d->units };
	struct ptx_command *command = out->command[card];
	uint32_t partitioned = 0;

	out->n = out->barriers = 0;
	for (size_t i = 0; i < p->n_ops; i++) {
		const struct plan_op *l = &p->op[i];
		const struct plan_kernel *k = &p->kernel[l->kernel];
		struct ptx_command *c = &command[out->n];
		if (l->end > l->begin) {
			*c = (struct ptx_command){ .function = (uint32_t)program_number(list, kernels, &k->key),
				                   .waits = l->awaits ? 0 : out->barriers };
			memcpy(c->arg, args + (l->arg - p->args), l->n_args * sizeof *c->arg);
			out->n++;
		}
		/* Those that await begin before those that do not. */
		if (l->barrier || i + 1 == p->n_ops || p->op[i + 1].awaits != l->awaits ||
		    out->n - partitioned == STAGE_OPS_MAX) {
			partition(out, card, &ring, p, i + 1, partitioned);
			partitioned = out->n;
		}
		if (l->barrier && out->n && !command[out->n - 1].arrives && next_stage_waits(p, i))
			command[out->n - 1].arrives = ++out->barriers;
	}
}

static bool find_changes(struct cuda_program *out, const struct plan *p, struct error *err)
{
	size_t command = 0;

	out->change = calloc(p->n_changing + 1, sizeof *out->change);
	if (!out->change)
		return error_set(err, ERROR_MEMORY, "no memory for a program of %u commands", out->n);
	for (size_t i = 0; i < p->n_ops; i++) {
		const struct plan_op *l = &p->op[i];
		if (l->end <= l->begin)
			continue;
		for (size_t k = 0; k < p->n_changing; k++)
			if (p->changing[k].slot >= l->arg && p->changing[k].slot < l->arg + l->n_args)
				out->change[out->n_changes++] =
					(struct change){ .slot = p->changing[k].slot,
					                 .command = command,
					                 .arg = (unsigned)(p->changing[k].slot - l->arg) };
		command++;
	}
	return true;
}

/* ---- the dataflow region: a word is written once in a launch, so launches alternate between two, and each empties
 * that of the next one */

static bool find_pointers(struct cuda_program *out, const struct plan *p, struct error *err)
{
	const uint64_t begin = (uint64_t)(uintptr_t)p->dataflow;

	if (!p->dataflow_bytes)
		return true;
	out->pointer = calloc((size_t)out->n * PTX_COMMAND_SLOTS, sizeof *out->pointer);
	if (!out->pointer)
		return error_set(err, ERROR_MEMORY, "no memory for a program of %u commands", out->n);
	for (size_t i = 0; i < out->n; i++)
		for (unsigned k = 0; k < PTX_COMMAND_SLOTS; k++) {
			const uint64_t to = out->command[0][i].arg[k];
			if (to >= begin && to - begin < p->dataflow_bytes)
				out->pointer[out->n_pointers++] = (struct pointer){ i, k, to - begin };
		}
	return true;
}

bool cuda_dataflow_open(struct cuda_dataflow *h, struct cuda *d, const struct plan *p, struct error *err)
{
	if (!p->dataflow_bytes || h->region[0] == (uint64_t)(uintptr_t)p->dataflow)
		return true;
	cuda_dataflow_close(h, d);
	h->own = d->device.alloc(&d->device, p->dataflow_room, DEVICE_BUFFERS, err);
	if (!h->own)
		return false;
	h->bytes = h->used[0] = h->used[1] = p->dataflow_room;
	h->region[0] = (uint64_t)(uintptr_t)p->dataflow;
	h->region[1] = (uint64_t)(uintptr_t)h->own;
	return true;
}

void cuda_dataflow_close(struct cuda_dataflow *h, struct cuda *d)
{
	d->device.release(&d->device, h->own, h->bytes);
	*h = (struct cuda_dataflow){ 0 };
}

/* ---- the module */

static void *make_beside(void *user)
{
	struct cuda_program *p = user;

	atomic_store(&p->kernel, cuda_get_kernel(p->d, p->registry, &p->key, NULL));
	return NULL;
}

static bool get_module(struct cuda_program *p, enum cuda_program_when when, struct error *err)
{
	struct cuda_kernel *k = cuda_find_kernel(p->d, &p->key);

	if (!k && when == CUDA_PROGRAM_NOW && !(k = cuda_get_kernel(p->d, p->registry, &p->key, err)))
		return false;
	atomic_store(&p->kernel, k);
	if (when == CUDA_PROGRAM_BESIDE)
		cuda_program_begin(p);
	return true;
}

/* A sealed model has what was there when it was opened. */
void cuda_program_begin(struct cuda_program *p)
{
	if (!p->making && !atomic_load(&p->kernel) && !registry_is_sealed(p->registry))
		p->making = pthread_create(&p->thread, NULL, make_beside, p) == 0; /* if not, the graph does it all */
}

static bool name_kernels(struct cuda_program *p, const struct plan *plan, const struct key **list, size_t *n,
                         struct error *err)
{
	struct key *key = malloc(plan->n_kernels * sizeof *key);

	if (!key)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", plan->n_kernels);
	for (size_t i = 0; i < plan->n_kernels; i++)
		key[i] = plan->kernel[i].key;
	bool ok = program_key(&p->key, key, plan->n_kernels, err);
	*list = ok ? program_kernels(&p->key, n) : NULL;
	free(key);
	return ok;
}

struct cuda_program *cuda_program_open(struct cuda *d, struct registry *r, const struct plan *plan,
                                       const struct cuda_program_memory at[], struct cuda_dataflow *dataflow,
                                       enum cuda_program_when when, struct error *err)
{
	struct cuda_program *p = calloc(1, sizeof *p);
	const struct key *list = NULL;
	size_t n = 0;

	if (!p) {
		error_set(err, ERROR_MEMORY, "no memory for a program");
		return NULL;
	}
	p->d = d;
	p->registry = r;
	p->on_card = at->on_card;
	p->dataflow = plan->dataflow_bytes ? dataflow : NULL;
	p->dataflow_bytes = plan->dataflow_bytes;
	if (name_kernels(p, plan, &list, &n, err)) {
		for (unsigned i = 0; i < d->cards; i++) {
			p->command[i] = at[i].here;
			set_commands(p, i, plan, at[i].args, list, n);
		}
		p->sync_bytes = ((size_t)p->barriers + 1) * PTX_SYNC_BYTES;
		if (find_changes(p, plan, err) && find_pointers(p, plan, err) &&
		    (!p->dataflow || cuda_dataflow_open(p->dataflow, d, plan, err)) &&
		    (p->sync = d->device.alloc(&d->device, p->sync_bytes, DEVICE_BUFFERS, err)) &&
		    get_module(p, when, err))
			return p;
	}
	cuda_program_close(p);
	return NULL;
}

void cuda_program_close(struct cuda_program *p)
{
	if (!p)
		return;
	if (p->making)
		pthread_join(p->thread, NULL);
	p->d->device.release(&p->d->device, p->sync, p->sync_bytes);
	free(p->change);
	free(p->pointer);
	free(p);
}

bool cuda_program_is_ready(const struct cuda_program *p) { return atomic_load(&p->kernel) != NULL; }
uint32_t cuda_program_barriers(const struct cuda_program *p) { return p->barriers; }

/* ---- running */

void cuda_program_change(struct cuda_program *p)
{
	for (unsigned i = 0; i < p->d->cards; i++) {
		for (size_t k = 0; k < p->n_changes; k++)
			p->command[i][p->change[k].command].arg[p->change[k].arg] =
				cuda_on_card(p->d, i, *p->change[k].slot);
		for (size_t k = 0; k < p->n_pointers; k++)
			p->command[i][p->pointer[k].command].arg[p->pointer[k].arg] =
				cuda_on_card(p->d, i, p->dataflow->region[p->dataflow->next] + p->pointer[k].at);
	}
}

bool cuda_program_is_clean(const struct cuda_program *p)
{
	return !p->dataflow || !p->dataflow->used[p->dataflow->next];
}

int cuda_program_clean(struct cuda_program *p, unsigned card, void *queue)
{
	const struct cuda_dataflow *h = p->dataflow;

	return p->d->api->set_words_later(cuda_on_card(p->d, card, h->region[h->next]), IR_EMPTY, h->used[h->next] / 4,
	                                  queue);
}

int cuda_program_launch(struct cuda_program *p, unsigned card, void *queue)
{
	const struct target *t = p->d->device.facts.target;
	const struct cuda_kernel *k = atomic_load(&p->kernel);
	const struct cuda_dataflow *h = p->dataflow;
	struct ptx_program_launch l = { .commands = cuda_on_card(p->d, card, p->on_card),
		                        .n = p->n,
		                        .sync = cuda_on_card(p->d, card, (uint64_t)(uintptr_t)p->sync),
		                        .arrivals = p->arrivals,
		                        .empty = h ? cuda_on_card(p->d, card, h->region[!h->next]) : 0,
		                        .empty_bytes = h ? h->used[!h->next] : 0 };
	struct cuda_launch_attribute together = { .id = CUDA_LAUNCH_TOGETHER, .of = { .value = 1 } };
	const struct cuda_launch_config config = {
		.grid = { p->d->units, 1, 1 },
		.block = { t->waves * t->lanes, 1, 1 },
		.shared_bytes = k->shared_bytes,
		.stream = queue,
		.attribute = &together,
		.n_attributes = 1
	};
	void *params[] = { &l.commands, &l.n, &l.sync, &l.arrivals, &l.empty, &l.empty_bytes };

	return p->d->api->launch(&config, k->function[card], params, NULL);
}

void cuda_program_launched(struct cuda_program *p)
{
	struct cuda_dataflow *h = p->dataflow;

	p->arrivals += p->d->cards * p->d->units;
	if (!h)
		return;
	h->used[h->next] = p->dataflow_bytes;
	h->next = !h->next;
	h->used[h->next] = 0;
}
