/* runtime/device/cuda_program.c - a plan of a token, or a few, as one launch on an NVIDIA card. See cuda.h and
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
#include "runtime/device/cuda.h"
#include "runtime/device/cuda_deal.h"

enum { STAGE_OPS_MOST = 64 /* that are dealt out together */ };

/* A slot that differs from run to run, and where it is in the commands. */
struct change {
	const uint64_t *slot;
	uint64_t *to;
};

/* A slot that points to what is handed over; at: where in there. */
struct pointer {
	uint64_t *to, at;
};

struct cuda_program {
	struct cuda *d;
	struct registry *registry;
	struct key key;
	struct ptx_command *command;
	uint64_t on_card;
	uint32_t n, barriers, arrivals;
	void *sync; /* the card's */
	size_t sync_bytes;
	struct change *change;
	size_t n_changes;
	struct pointer *pointer;
	size_t n_pointers;
	uint64_t handed_bytes;
	struct cuda_handed *handed;         /* NULL: nothing is */
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
	return (p->tokens == 1 || p->handed_bytes) && p->n_kernels <= PROGRAM_KERNELS_MOST ? n : 0;
}

/* ---- commands */

/* Deals out the stage whose ops end in front of `end`; its commands are the last ones. */
static void deal(struct cuda_program *out, struct cuda_dealer *d, const struct plan *p, size_t end, uint32_t *dealt)
{
	struct cuda_lot lot[STAGE_OPS_MOST];
	uint32_t n = out->n - *dealt;

	for (size_t i = end, at = n; at > 0 && i-- > 0;) {
		const struct plan_op *l = &p->op[i];
		const struct plan_kernel *k = &p->kernel[l->kernel];
		const bool together = ((const struct cuda_kernel *)k->handle)->cooperative;
		if (l->end > l->begin)
			lot[--at] = (struct cuda_lot){ .units = (uint64_t)(l->end - l->begin),
				                       .waves = together ? 1 : out->d->device.facts.target->waves,
				                       .last_are_long = k->key.kind == KEY_ATTENTION };
	}
	if (n)
		cuda_deal(d, lot, n);
	for (uint32_t i = 0; i < n; i++) {
		struct ptx_command *c = &out->command[*dealt + i];
		c->first = lot[i].first;
		c->blocks = lot[i].blocks;
		c->per = lot[i].per;
		c->rest = lot[i].rest;
	}
	*dealt = out->n;
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

static void set_commands(struct cuda_program *out, const struct plan *p, const uint64_t *args, const struct key *list,
                         size_t kernels)
{
	struct cuda_dealer dealer = { .blocks = out->d->units };
	uint32_t dealt = 0;

	for (size_t i = 0; i < p->n_ops; i++) {
		const struct plan_op *l = &p->op[i];
		const struct plan_kernel *k = &p->kernel[l->kernel];
		struct ptx_command *c = &out->command[out->n];
		if (l->end > l->begin) {
			*c = (struct ptx_command){ .begin = l->begin,
				                   .function = (uint32_t)program_number(list, kernels, &k->key),
				                   .waits = l->awaits ? 0 : out->barriers };
			memcpy(c->arg, args + (l->arg - p->args), l->n_args * sizeof *c->arg);
			out->n++;
		}
		/* Those that await begin before those that do not. */
		if (l->barrier || i + 1 == p->n_ops || p->op[i + 1].awaits != l->awaits ||
		    out->n - dealt == STAGE_OPS_MOST)
			deal(out, &dealer, p, i + 1, &dealt);
		if (l->barrier && out->n && !out->command[out->n - 1].arrives && next_stage_waits(p, i))
			out->command[out->n - 1].arrives = ++out->barriers;
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
				out->change[out->n_changes++] = (struct change){
					.slot = p->changing[k].slot,
					.to = &out->command[command].arg[p->changing[k].slot - l->arg]
				};
		command++;
	}
	return true;
}

/* ---- what is handed over: a word is written once in a launch, so launches use two regions in turn, and each empties
 * that of the next one */

static bool find_pointers(struct cuda_program *out, const struct plan *p, struct error *err)
{
	const uint64_t begin = (uint64_t)(uintptr_t)p->handed;

	if (!p->handed_bytes)
		return true;
	out->pointer = calloc((size_t)out->n * PTX_COMMAND_SLOTS, sizeof *out->pointer);
	if (!out->pointer)
		return error_set(err, ERROR_MEMORY, "no memory for a program of %u commands", out->n);
	for (size_t i = 0; i < out->n; i++)
		for (unsigned k = 0; k < PTX_COMMAND_SLOTS; k++) {
			uint64_t *to = &out->command[i].arg[k];
			if (*to >= begin && *to - begin < p->handed_bytes)
				out->pointer[out->n_pointers++] = (struct pointer){ to, *to - begin };
		}
	return true;
}

bool cuda_handed_open(struct cuda_handed *h, struct cuda *d, const struct plan *p, struct error *err)
{
	if (!p->handed_bytes || h->region[0] == (uint64_t)(uintptr_t)p->handed)
		return true;
	cuda_handed_close(h, d);
	h->own = d->device.alloc(&d->device, p->handed_room, DEVICE_BUFFERS, err);
	if (!h->own)
		return false;
	h->bytes = h->used[0] = h->used[1] = p->handed_room;
	h->region[0] = (uint64_t)(uintptr_t)p->handed;
	h->region[1] = (uint64_t)(uintptr_t)h->own;
	return true;
}

void cuda_handed_close(struct cuda_handed *h, struct cuda *d)
{
	d->device.release(&d->device, h->own, h->bytes);
	*h = (struct cuda_handed){ 0 };
}

/* Of the launch that comes. */
static int take_region(struct cuda_program *p, struct ptx_program_launch *l, void *queue)
{
	struct cuda_handed *h = p->handed;
	const unsigned mine = h->turn, other = !mine;
	int result = 0;

	if (h->used[mine])
		result = p->d->api->set_words_later(h->region[mine], IR_EMPTY, h->used[mine] / 4, queue);
	l->empty = h->region[other];
	l->empty_bytes = h->used[other];
	h->used[mine] = p->handed_bytes;
	h->used[other] = 0;
	h->turn = other;
	return result;
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
                                       const struct cuda_program_place *at, struct cuda_handed *handed,
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
	p->command = at->here;
	p->on_card = at->on_card;
	p->handed = plan->handed_bytes ? handed : NULL;
	p->handed_bytes = plan->handed_bytes;
	if (name_kernels(p, plan, &list, &n, err)) {
		set_commands(p, plan, at->args, list, n);
		p->sync_bytes = ((size_t)p->barriers + 1) * PTX_SYNC_BYTES;
		if (find_changes(p, plan, err) && find_pointers(p, plan, err) &&
		    (!p->handed || cuda_handed_open(p->handed, d, plan, err)) &&
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
	for (size_t i = 0; i < p->n_changes; i++)
		*p->change[i].to = *p->change[i].slot;
	for (size_t i = 0; i < p->n_pointers; i++)
		*p->pointer[i].to = p->handed->region[p->handed->turn] + p->pointer[i].at;
}

int cuda_program_launch(struct cuda_program *p, void *queue)
{
	const struct target *t = p->d->device.facts.target;
	const struct cuda_kernel *k = atomic_load(&p->kernel);
	struct ptx_program_launch l = {
		.commands = p->on_card, .n = p->n, .sync = (uint64_t)(uintptr_t)p->sync, .arrivals = p->arrivals
	};
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

	int result = p->handed ? take_region(p, &l, queue) : 0;
	p->arrivals += p->d->units;
	return result ? result : p->d->api->launch(&config, k->function, params, NULL);
}
