/* runtime/device/simulator.c - a simulated card as a device. See simulator.h.
 *
 * Its memory is the process's, registered with the simulator, which lets kernels touch nothing else. With
 * JITRUN_SIM_HIDE in the environment the host cannot touch it either, but for DEVICE_SHARED, while nothing runs and
 * nothing is copied: a host that forgets to upload or to read back dies there, as it would misread a real card.
 */
#include "runtime/device/simulator.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device/program.h"
#include "runtime/device/profile.h"
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

struct sim_plan {
	struct sim_plan *next;
	const struct plan *plan;
	uint64_t *args; /* a copy of the plan's, for the card; positions are copied before each run */
	struct program program;
	struct sim_object *object;
	uint32_t room; /* workgroups that live at once */
};

/* At a barrier. In vain, the simulator notices sooner that nothing happens any more. */
enum { POLLS = 1 << 30 };

struct sim_stream {
	struct stream stream;
	struct registry *registry;
	struct simulator_options options;
	struct simulator_counters counters;
	struct sim_plan *plans;
	struct rdna_program_sync sync;
	uint32_t arrivals; /* what sync shows */
};

static struct simulator *simulator_of(const struct stream *s) { return (struct simulator *)s->device; }

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
		      [DEVICE_SHARED] = { "what the host shares", true, SIMULATOR_OTHER } };
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

/* ---- plans */

static void forget(struct simulator *c, struct sim_plan *s)
{
	if (s->args)
		sim_unmap(c->sim, s->args);
	if (s->program.command)
		sim_unmap(c->sim, s->program.command);
	if (s->object)
		sim_unload(s->object);
	program_free(&s->program);
	free(s->args);
	free(s);
}

/* Barriers wait for all workgroups of a launch: those beyond what lives at once would never arrive. */
static bool deal(struct sim_stream *c, struct sim_plan *s, struct error *err)
{
	const struct target *t = c->stream.device->facts.target;
	const struct sim_kernel *k = sim_find(s->object, RDNA_PROGRAM_KERNEL);
	uint32_t wanted = c->options.workgroups;

	s->room = t->backend->resident(t, c->options.units, k->vgprs, k->lds_size);
	if (!s->room || wanted > s->room)
		return error_set(err, ERROR_DEVICE,
		                 "%u workgroups are to run at once, but there is room for %u on %u compute unit%s of "
		                 "%s: each needs %u vector registers a lane and %u bytes of LDS",
		                 wanted, s->room, c->options.units, c->options.units == 1 ? "" : "s", t->name, k->vgprs,
		                 k->lds_size);
	program_partition(&s->program, s->plan, wanted ? wanted : s->room);
	return true;
}

static bool load(struct sim_stream *c, struct sim_plan *s, const struct plan *p, struct error *err)
{
	struct sim_device *sim = simulator_of(&c->stream)->sim;

	if (!(s->args = malloc(p->n_args * sizeof *s->args)))
		return error_set(err, ERROR_MEMORY, "no memory for the arguments of a plan of %zu launches", p->n_ops);
	memcpy(s->args, p->args, p->n_args * sizeof *s->args);
	return program_make(&s->program, p, s->args, c->registry, c->stream.device->facts.target, err) &&
	       (s->object = sim_load(sim, s->program.bytes, s->program.size, err)) && deal(c, s, err) &&
	       sim_map(sim, s->args, p->n_args * sizeof *s->args, "a plan's arguments", false, err) &&
	       sim_map(sim, s->program.command, (s->program.n_commands + 1) * sizeof *s->program.command,
	               "a plan's commands", false, err);
}

static bool sim_prepare(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct sim_stream *c = (struct sim_stream *)stream;
	struct sim_plan *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(err, ERROR_MEMORY, "no memory for a plan of the simulated card");
	s->plan = p;
	bool ok = device_make_plan(c->registry, p, pool, err);
	begin(simulator_of(stream));
	ok = ok && load(c, s, p, err);
	if (!ok)
		forget(simulator_of(stream), s);
	end(simulator_of(stream));
	if (!ok)
		return false;
	s->next = c->plans;
	c->plans = s;
	p->prepared = s;
	return true;
}

/* ---- running */

/* The simulator knows one kernel; which function of it the trap is in, its offset says. */
static bool report_trap(const struct sim_plan *s, const struct sim_trap *trap, const struct error *why,
                        struct error *err)
{
	uint64_t offset = trap->offset, best = 0;
	const struct key *in = NULL;
	char text[KEY_TEXT_MAX];

	for (size_t i = 0; i < s->plan->n_kernels; i++)
		if (s->program.offset[i] <= offset && s->program.offset[i] >= best) {
			best = s->program.offset[i];
			in = &s->plan->kernel[i].key;
		}
	if (!trap->trapped || !in)
		return error_set(err, why->code, "%s%s", why->text, trap->trapped ? ", in the driver" : "");
	return error_set(err, why->code, "%s, +0x%llx in %s", why->text, (unsigned long long)(offset - best),
	                 key_text(in, text, sizeof text));
}

/* After a launch that did not end well. */
static void start_anew(struct sim_stream *c)
{
	c->sync = (struct rdna_program_sync){ 0 };
	c->arrivals = 0;
}

/* What the driver left: every barrier completed, and nothing else counted there. */
static bool check_sync(struct sim_stream *c, const struct sim_plan *s, size_t first, size_t end, struct error *err)
{
	const struct rdna_program_sync at = c->sync;
	uint32_t expected = c->arrivals + s->program.workgroups * (uint32_t)program_barriers(&s->program, first, end);

	c->arrivals = at.arrivals;
	if (!at.left && at.arrivals == expected)
		return true;
	start_anew(c);
	if (!at.left)
		return error_set(err, ERROR_DEVICE, "%u arrivals at barriers were counted, expected %u", at.arrivals,
		                 expected);
	return error_set(
		err, ERROR_DEVICE,
		"a launch was given up: at the barrier of command %zu workgroup %u waited for %u others in vain",
		end - 1 - at.left, at.workgroup, at.missing);
}

static bool dispatch(struct sim_stream *c, const struct sim_plan *s, size_t first, size_t end,
                     struct sim_counters *count, struct error *err)
{
	const uint32_t groups[3] = { s->program.workgroups, 1, 1 },
		       items[3] = { RDNA_PROGRAM_WAVES * c->stream.device->facts.target->lanes, 1, 1 };
	const struct rdna_program_args args = {
		.commands = (uint64_t)(uintptr_t)s->program.command,
		.first = (uint32_t)first,
		.end = (uint32_t)end,
		.sync = (uint64_t)(uintptr_t)&c->sync,
		.workgroups = s->program.workgroups,
		.polls = POLLS,
		.arrivals = c->arrivals
	};
	struct sim_trap trap;
	struct sim_options o = { .memory = c->options.memory,
		                 .seed = c->options.seed + c->counters.launches,
		                 .races = c->options.races,
		                 .resident = s->room,
		                 .counters = count,
		                 .trap = &trap };
	const struct sim_kernel *kernel = sim_find(s->object, RDNA_PROGRAM_KERNEL);
	struct error why = { 0 };

	if (!sim_dispatch(simulator_of(&c->stream)->sim, kernel, &args, sizeof args, groups, items, &o, &why)) {
		start_anew(c);
		return report_trap(s, &trap, &why, err);
	}
	if (!check_sync(c, s, first, end, err))
		return false;
	if (c->options.watch)
		c->options.watch(c->options.user, s->plan, kernel, first,
		                 end == s->program.n_commands + 1 ? first : end, count);
	return true;
}

static bool launch(struct sim_stream *c, const struct sim_plan *s, size_t first, size_t end, struct error *err)
{
	struct sim_counters count = { 0 };
	bool ok = dispatch(c, s, first, end, &count, err);

	sim_counters_add(&c->counters.sim, &count);
	c->counters.launches++;
	c->counters.commands += end - first;
	c->counters.barriers += program_barriers(&s->program, first, end);
	return ok;
}

/* Positions are the only arguments that differ from run to run. */
static void copy_positions(const struct sim_plan *s)
{
	for (size_t i = 0; i < s->plan->n_positions; i++)
		s->args[s->plan->position[i] - s->plan->args] = *s->plan->position[i];
}

static bool launch_all(struct sim_stream *c, const struct sim_plan *s, const struct plan *p, struct error *err)
{
	struct profile *profile = c->stream.profile;
	bool ok = true;

	if (c->options.launch == STREAM_LAUNCH_TOKEN)
		return launch(c, s, 0, p->n_ops, err);
	if (c->options.launch == STREAM_LAUNCH_LAYER) {
		for (size_t i = 0; ok && i < p->n_sections; i++)
			ok = launch(c, s, p->section[i], p->section[i + 1], err);
		return ok;
	}
	for (size_t i = 0; ok && i < p->n_ops; i++) {
		uint64_t start = profile ? profile_now() : 0;
		ok = launch(c, s, i, i + 1, err);
		if (profile)
			profile_launch(profile, 0, p, i, start, profile_now());
	}
	return ok;
}

static bool sim_run(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct sim_stream *c = (struct sim_stream *)stream;
	const struct sim_plan *s = p->prepared;

	begin(simulator_of(stream));
	c->counters.passes++;
	copy_positions(s);
	bool ok =
		(!c->options.watch ||
	         dispatch(c, s, s->program.n_commands, s->program.n_commands + 1, &(struct sim_counters){ 0 }, err)) &&
		launch_all(c, s, p, err);
	end(simulator_of(stream));
	return ok;
}

static void sim_count(const struct stream *s, struct stream_counters *out)
{
	const struct simulator_counters *c = &((const struct sim_stream *)s)->counters;
	const struct sim_tally *weights = &c->sim.tally[SIMULATOR_WEIGHTS], *cache = &c->sim.tally[SIMULATOR_CACHE];

	*out = (struct stream_counters){
		.launches = c->launches,
		.barriers = c->barriers,
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
	struct simulator *d = simulator_of(stream);

	begin(d);
	for (struct sim_plan *s = c->plans, *next; s; s = next) {
		next = s->next;
		forget(d, s);
	}
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
	c->stream = (struct stream){
		.device = device, .prepare = sim_prepare, .run = sim_run, .count = sim_count, .close = sim_close_stream
	};
	c->registry = o->registry;
	simulator_set(&c->stream, &(struct simulator_options){
					  .launch = o->launch, .units = o->units, .workgroups = o->workgroups });
	begin(d);
	bool ok = sim_map(d->sim, &c->sync, sizeof c->sync, "the counter of arrivals", true, err);
	end(d);
	if (ok)
		return &c->stream;
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

static struct device *open_card(const char *which, const char *isa, struct error *err)
{
	const struct target *t = target_find(which);
	char names[TARGET_LIST_MAX];

	if (isa) {
		error_set(err, ERROR_ARGUMENT,
		          "isa \"%.32s\": the device sim:%.32s has its instruction set in its name", isa, which);
		return NULL;
	}
	if (!t || t->backend->host_runs) {
		error_set(err, ERROR_ARGUMENT, "device \"sim:%.32s\" is no card; known targets: %s", which,
		          target_list(names, sizeof names, TARGETS_OF_CARDS, "", ", "));
		return NULL;
	}
	struct simulator *d = calloc(1, sizeof *d);
	if (!d) {
		error_set(err, ERROR_MEMORY, "no memory for the simulated card");
		return NULL;
	}
	d->hides = getenv("JITRUN_SIM_HIDE") != NULL;
	d->device = (struct device){
		.facts = { .target = t, .host_reaches = !d->hides },
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
		if (target_table[i].backend->host_runs)
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
	if (!c->options.units)
		c->options.units = SIMULATOR_UNITS;
	return true;
}

const struct simulator_counters *simulator_count(const struct stream *s)
{
	return s->run == sim_run ? &((const struct sim_stream *)s)->counters : NULL;
}
