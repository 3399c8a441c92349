/* runtime/device/simulated/simulator.c - a simulated card as a device. See simulator.h.
 *
 * Its memory is the process's, registered with the simulator, which lets kernels touch nothing else. With
 * JITRUN_SIM_HIDE in the environment the host cannot touch it either, but for DEVICE_SHARED, while nothing runs and
 * nothing is copied: a host that forgets to upload or to read back dies there, as it would misread a real card.
 */
#include "runtime/device/simulated/simulator.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/host/system.h"

struct region {
	struct region *next;
	void *base;
	size_t bytes;
};

struct simulator {
	struct device device;
	struct sim_device *sim;
	pthread_mutex_t lock; /* what it knows of memory and code changes with nothing running: sessions take turns */
	bool hides;
	struct region *hidden;
};

/* At a barrier. In vain, the simulator notices sooner that nothing happens any more. */
enum { POLLS = 1 << 30 };

struct sim_stream {
	struct card_stream card;
	struct simulator_options options;
	struct simulator_counters counters; /* those of the card are copied here after each run */
	struct rdna_program_sync sync;
};

static struct simulator *simulator_of(const struct card_stream *c) { return (struct simulator *)c->stream.device; }

/* ---- memory */

static void protect(const struct simulator *c, int protection)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (const struct region *r = c->hidden; r; r = r->next)
		mprotect(r->base, (r->bytes + page - 1) / page * page, protection);
}

/* While the card works, or copies: the simulator reads and writes its memory as the host. */
static void begin(struct simulator *c)
{
	pthread_mutex_lock(&c->lock);
	protect(c, PROT_READ | PROT_WRITE);
}

static void end(struct simulator *c)
{
	protect(c, PROT_NONE);
	pthread_mutex_unlock(&c->lock);
}

static bool know(struct simulator *c, void *p, size_t bytes, enum device_memory what, struct error *err)
{
	static const struct {
		const char *name;
		bool writable;
		unsigned tally;
	} kinds[] = { [DEVICE_WEIGHTS] = { "the weights", false, SIMULATOR_WEIGHTS },
		      [DEVICE_CACHE] = { "the KV cache", true, SIMULATOR_CACHE },
		      [DEVICE_VECTORS] = { "norms and biases", false, SIMULATOR_OTHER },
		      [DEVICE_BUFFERS] = { "the activations", true, SIMULATOR_OTHER },
		      [DEVICE_SHARED] = { "what the host shares", true, SIMULATOR_OTHER },
		      [DEVICE_ARRAYS] = { "the arrays of a kernel", true, SIMULATOR_OTHER } };
	struct region *r = c->hides && what != DEVICE_SHARED ? malloc(sizeof *r) : NULL;

	if (c->hides && what != DEVICE_SHARED && !r)
		return error_set(err, ERROR_MEMORY, "no memory for a simulated card's list of its own");
	if (!sim_map(c->sim, p, bytes, kinds[what].name, kinds[what].writable, err)) {
		free(r);
		return false;
	}
	sim_count_as(c->sim, p, kinds[what].tally);
	if (r) {
		*r = (struct region){ c->hidden, p, bytes };
		c->hidden = r;
	}
	return true;
}

static void *sim_alloc(struct device *d, size_t bytes, enum device_memory what, struct error *err)
{
	struct simulator *c = (struct simulator *)d;
	void *p = device_host_alloc(d, bytes, what, err);

	if (!p)
		return NULL;
	begin(c);
	bool ok = know(c, p, bytes, what, err);
	end(c);
	if (ok)
		return p;
	system_unmap(p, bytes);
	return NULL;
}

static void sim_release(struct device *d, void *p, size_t bytes)
{
	struct simulator *c = (struct simulator *)d;

	if (!p)
		return;
	begin(c);
	sim_unmap(c->sim, p);
	for (struct region **at = &c->hidden; *at; at = &(*at)->next)
		if ((*at)->base == p) {
			struct region *gone = *at;
			*at = gone->next;
			free(gone);
			break;
		}
	end(c);
	system_unmap(p, bytes);
}

static bool sim_copy(struct device *d, void *to, const void *from, size_t bytes, struct error *err)
{
	struct simulator *c = (struct simulator *)d;

	if (!c->hides)
		return device_host_copy(d, to, from, bytes, err);
	begin(c);
	memcpy(to, from, bytes);
	end(c);
	return true;
}

/* ---- what card.h asks of a driver */

static void begin_stream(struct card_stream *c) { begin(simulator_of(c)); }
static void end_stream(struct card_stream *c) { end(simulator_of(c)); }

static void *map_block(struct card_stream *c, size_t bytes, const char *name, struct error *err)
{
	void *p = calloc(1, bytes);

	if (!p)
		error_set(err, ERROR_MEMORY, "no memory for %zu bytes of %s", bytes, name);
	else if (!sim_map(simulator_of(c)->sim, p, bytes, name, false, err)) {
		free(p);
		return NULL;
	}
	return p;
}

static void unmap_block(struct card_stream *c, void *p, size_t bytes)
{
	sim_unmap(simulator_of(c)->sim, p);
	free(p);
}

static bool load_code(struct card_stream *c, struct card_plan *p, struct error *err)
{
	struct sim_object *o = sim_load(simulator_of(c)->sim, p->program.bytes, p->program.size, err);

	if (!o)
		return false;
	const struct sim_kernel *k = sim_find(o, RDNA_PROGRAM_KERNEL);
	p->code = o;
	p->vgprs = k->vgprs;
	p->lds = k->lds_size;
	return true;
}

static void unload_code(struct card_stream *c, struct card_plan *p) { sim_unload(p->code); }

/* The simulator knows one kernel; which function of it the trap is in, its offset says. */
static bool report_trap(const struct card_plan *p, const struct sim_trap *trap, const struct error *why,
                        struct error *err)
{
	char text[KEY_TEXT_MAX];
	uint64_t from;
	const struct key *in = card_function_at(p, trap->offset, &from);

	if (!trap->trapped || !in)
		return error_set(err, why->code, "%s%s", why->text, trap->trapped ? ", in the driver" : "");
	return error_set(err, why->code, "%s, +0x%llx in %s", why->text, (unsigned long long)(trap->offset - from),
	                 key_text(in, text, sizeof text));
}

/* After a launch that did not end well. */
static void start_anew(struct sim_stream *c)
{
	c->sync = (struct rdna_program_sync){ 0 };
	c->card.arrivals = 0;
}

static bool dispatch(struct sim_stream *c, const struct card_plan *p, size_t first, size_t end,
                     struct sim_counters *count, struct error *err)
{
	const uint32_t groups[3] = { p->program.workgroups, 1, 1 },
		       items[3] = { RDNA_PROGRAM_WAVES * c->card.stream.device->facts.target->lanes, 1, 1 };
	struct rdna_program_args args = card_launch_args(&c->card, p, first, end);
	struct sim_trap trap;
	struct sim_options o = { .memory = c->options.memory,
		                 .seed = c->options.seed + c->card.counters.launches,
		                 .races = c->options.races,
		                 .resident = p->room,
		                 .counters = count,
		                 .trap = &trap };
	const struct sim_kernel *kernel = sim_find(p->code, RDNA_PROGRAM_KERNEL);
	struct error why = { 0 };

	args.sync = (uint64_t)(uintptr_t)&c->sync;
	args.polls = POLLS;
	if (!sim_dispatch(simulator_of(&c->card)->sim, kernel, &args, sizeof args, groups, items, &o, &why)) {
		start_anew(c);
		return report_trap(p, &trap, &why, err);
	}
	if (!card_check_sync(&c->card, p, first, end, &c->sync, err)) {
		start_anew(c);
		return false;
	}
	if (c->options.watch)
		c->options.watch(c->options.user, p->plan, kernel, first,
		                 end == p->program.n_commands + 1 ? first : end, count);
	return true;
}

static bool dispatch_counted(struct card_stream *card, const struct card_plan *p, size_t first, size_t end,
                             struct error *err)
{
	struct sim_stream *c = (struct sim_stream *)card;
	struct sim_counters count = { 0 };
	bool ok = dispatch(c, p, first, end, &count, err);

	sim_counters_add(&c->counters.sim, &count);
	return ok;
}

/* Who watches learns what a command without units costs. */
static bool begin_pass(struct card_stream *card, const struct card_plan *p, struct error *err)
{
	struct sim_stream *c = (struct sim_stream *)card;
	const size_t idle = p->program.n_commands;

	return !c->options.watch || dispatch(c, p, idle, idle + 1, &(struct sim_counters){ 0 }, err);
}

static double predict(const struct card_stream *card, const struct card_plan *p, size_t op)
{
	const struct sim_stream *c = (const struct sim_stream *)card;

	return c->options.predict ? c->options.predict(c->options.user, p->plan, op) : 0;
}

static const struct card_driver simulated = {
	.begin = begin_stream,
	.end = end_stream,
	.map = map_block,
	.unmap = unmap_block,
	.load = load_code,
	.unload = unload_code,
	.dispatch = dispatch_counted,
	.pass = begin_pass,
	.predict = predict,
	.name = "the simulated card"
};

static bool sim_run(struct stream *s, struct plan *p, struct pool *pool, struct error *err)
{
	struct sim_stream *c = (struct sim_stream *)s;
	bool ok = card_run(s, p, pool, err);

	c->counters.card = c->card.counters;
	return ok;
}

static void sim_count(const struct stream *s, struct stream_counters *out)
{
	const struct simulator_counters *c = &((const struct sim_stream *)s)->counters;
	const struct sim_tally *weights = &c->sim.tally[SIMULATOR_WEIGHTS], *cache = &c->sim.tally[SIMULATOR_CACHE];

	*out = (struct stream_counters){
		.launches = c->card.launches,
		.barriers = c->card.barriers,
		.instructions = c->sim.instructions,
		.load_bytes = c->sim.load_bytes,
		.load128_bytes = c->sim.load128_bytes,
		.weight_bytes = weights->load_bytes + weights->scalar_bytes,
		.cache_bytes = cache->load_bytes + cache->scalar_bytes,
		.store_bytes = c->sim.store_bytes,
		.scalar_bytes = c->sim.scalar_bytes
	};
}

/* ---- opening and closing */

static void sim_close_stream(struct stream *stream)
{
	struct sim_stream *c = (struct sim_stream *)stream;
	struct simulator *d = simulator_of(&c->card);

	card_forget(&c->card);
	begin(d);
	sim_unmap(d->sim, &c->sync);
	end(d);
	free(c);
}

static struct stream *sim_stream(struct device *device, const struct stream_options *o, struct error *err)
{
	struct simulator *d = (struct simulator *)device;
	struct sim_stream *c = calloc(1, sizeof *c);

	if (!c) {
		error_set(err, ERROR_MEMORY, "no memory for a session on the simulated card");
		return NULL;
	}
	c->card = (struct card_stream){
		.stream = { .device = device,
		            .prepare = card_prepare,
		            .forget = card_forget_plan,
		            .run = sim_run,
		            .count = sim_count,
		            .close = sim_close_stream },
		.driver = &simulated,
		.registry = o->registry
	};
	simulator_set(&c->card.stream, &(struct simulator_options){
					       .launch = o->launch, .units = o->units, .workgroups = o->workgroups });
	begin(d);
	bool ok = sim_map(d->sim, &c->sync, sizeof c->sync, "the counter of arrivals", true, err);
	end(d);
	if (ok)
		return &c->card.stream;
	free(c);
	return NULL;
}

static void sim_shut(struct device *device)
{
	struct simulator *d = (struct simulator *)device;

	assert(!d->hidden);
	if (d->sim)
		sim_close(d->sim);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static struct device *open_nvidia(const struct target *t, struct error *err)
{
	static const int alike[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct device *d = t->id == TARGET_SM80 ? cuda_open(cuda_simulated(), CUDA_SIMULATED_80, err)
	                                        : cuda_open_cards(cuda_simulated(), alike, t->cards, err);

	if (d)
		d->facts.clock = DEVICE_CLOCK_SIMULATOR;
	return d;
}

static struct device *open_card(const char *which, const char *isa, struct error *err)
{
	const struct target *t = target_find(which);
	char names[TARGET_LIST_MAX];

	if (isa) {
		error_set(err, ERROR_ARGUMENT,
		          "isa \"%.32s\": the device sim:%.32s has its instruction set in its name", isa, which);
		return NULL;
	}
	if (!t || !t->backend->simulated) {
		error_set(err, ERROR_ARGUMENT, "device \"sim:%.32s\" is no card; known targets: %s", which,
		          target_list(names, sizeof names, TARGETS_OF_CARDS, "", ", "));
		return NULL;
	}
	if (t->backend == &backend_ptx)
		return open_nvidia(t, err);
	struct simulator *d = calloc(1, sizeof *d);
	if (!d) {
		error_set(err, ERROR_MEMORY, "no memory for the simulated card");
		return NULL;
	}
	d->hides = getenv("JITRUN_SIM_HIDE") != NULL;
	d->device = (struct device){
		.facts = { .target = t, .host_reaches = !d->hides, .clock = DEVICE_CLOCK_SIMULATOR },
		.alloc = sim_alloc,
		.release = sim_release,
		.upload = sim_copy,
		.read = sim_copy,
		.stream = sim_stream,
		.close = sim_shut
	};
	pthread_mutex_init(&d->lock, NULL);
	if ((d->sim = sim_open(t->name, err)))
		return &d->device;
	sim_shut(&d->device);
	return NULL;
}

static void each_card(device_visit_fn visit, void *user)
{
	for (int i = TARGET_NONE + 1; i < TARGET_COUNT; i++) {
		struct device_entry e = {
			.about = "simulated, very slowly: runs the code for that card, no card is needed"
		};
		if (!target_table[i].backend->simulated)
			continue;
		snprintf(e.name, sizeof e.name, "sim:%s", target_table[i].name);
		visit(user, &e);
	}
}

const struct device_driver device_simulator = { .name = "sim:", .open = open_card, .each = each_card };

bool simulator_set(struct stream *s, const struct simulator_options *o)
{
	struct sim_stream *c = (struct sim_stream *)s;

	if (s->run != sim_run)
		return false;
	c->options = *o;
	c->card.launch = o->launch;
	c->card.units = o->units ? o->units : SIMULATOR_UNITS;
	c->card.workgroups = o->workgroups;
	return true;
}

const struct simulator_counters *simulator_count(const struct stream *s)
{
	return s->run == sim_run ? &((const struct sim_stream *)s)->counters : NULL;
}
