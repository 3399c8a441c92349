#include "runtime/dev_sim.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/profile.h"
#include "runtime/program.h"

struct sim_plan { struct sim_plan *next; const struct plan *plan; struct program program; struct sim_object *object; uint32_t room; /* workgroups that live at once */ };

struct dev_sim {
	struct device device;
	struct registry *registry;
	const struct target *target;
	struct sim_device *sim;
	struct dev_sim_options options;
	struct dev_sim_counters counters;
	struct sim_plan *plans;
	uint32_t arrivals;
};

static bool sim_memory(struct device *d, void *base, size_t bytes, enum device_memory what, struct error *err)
{
	static const struct { const char *name; bool writable; unsigned tally; } kinds[] = {
		[DEVICE_WEIGHTS] = { "the weights", false, DEV_SIM_WEIGHTS }, [DEVICE_CACHE] = { "the KV cache", true, DEV_SIM_CACHE },
		[DEVICE_VECTORS] = { "norms and biases", false, DEV_SIM_OTHER }, [DEVICE_BUFFERS] = { "the session", true, DEV_SIM_OTHER },
		[DEVICE_ALL_LOGITS] = { "the logits of all columns", true, DEV_SIM_OTHER } };
	struct sim_device *sim = ((struct dev_sim *)d)->sim;

	if (!sim_map(sim, base, bytes, kinds[what].name, kinds[what].writable, err))
		return false;
	sim_count_as(sim, base, kinds[what].tally);
	return true;
}

static void forget(struct sim_plan *s)
{
	if (s->object)
		sim_unload(s->object);
	program_free(&s->program);
	free(s);
}

/* Barriers wait for all workgroups of a launch: those beyond what lives at once would never arrive. */
static bool deal(struct dev_sim *c, struct sim_plan *s, struct error *err)
{
	const struct sim_kernel *k = sim_find(s->object, RDNA_PROGRAM_KERNEL);
	uint32_t wanted = c->options.workgroups;

	s->room = c->target->backend->resident(c->target, c->options.units, k->vgprs, k->lds_size);
	if (!s->room || wanted > s->room)
		return error_set(err, ERROR_DEVICE, "%u workgroups are to run at once, but there is room for %u on %u compute unit%s of %s: each needs %u vector registers a lane and %u bytes of LDS",
		                 wanted, s->room, c->options.units, c->options.units == 1 ? "" : "s", c->target->name, k->vgprs, k->lds_size);
	program_deal(&s->program, s->plan, wanted ? wanted : s->room);
	return true;
}

static bool sim_prepare(struct device *d, struct plan *p, struct pool *pool, struct error *err)
{
	struct dev_sim *c = (struct dev_sim *)d;
	struct sim_plan *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(err, ERROR_MEMORY, "no memory for a plan of the simulated card");
	s->plan = p;
	if (!dev_make_plan(c->registry, p, pool, err) || !program_make(&s->program, p, c->registry, c->target, err) ||
	    !(s->object = sim_load(c->sim, s->program.bytes, s->program.size, err)) || !deal(c, s, err) ||
	    !sim_map(c->sim, p->args, p->n_args * sizeof *p->args, "a plan's arguments", false, err) ||
	    !sim_map(c->sim, s->program.phase, (s->program.n_phases + 1) * sizeof *s->program.phase, "a plan's phases", false, err)) {
		sim_unmap(c->sim, p->args);
		forget(s);
		return false;
	}
	s->next = c->plans;
	c->plans = s;
	p->prepared = s;
	return true;
}

/* The simulator knows one kernel; which function of it the trap is in, its offset says. */
static bool report_trap(const struct sim_plan *s, const struct error *trap, struct error *err)
{
	const char *at = strstr(trap->text, " trapped at +0x");
	uint64_t offset = at ? strtoull(at + strlen(" trapped at +0x"), NULL, 16) : 0, best = 0;
	const struct key *in = NULL;
	char text[KEY_TEXT_MAX];

	for (size_t i = 0; i < s->plan->n_kernels; i++)
		if (s->program.offset[i] <= offset && s->program.offset[i] >= best) {
			best = s->program.offset[i];
			in = &s->plan->kernel[i].key;
		}
	if (!at || !in)
		return error_set(err, trap->code, "%s%s", trap->text, at ? ", in the driver" : "");
	return error_set(err, trap->code, "%s, +0x%llx in %s", trap->text, (unsigned long long)(offset - best), key_text(in, text, sizeof text));
}

static bool dispatch(struct dev_sim *c, const struct sim_plan *s, size_t first, size_t end, struct sim_counters *count, struct error *err)
{
	const uint32_t groups[3] = { s->program.workgroups, 1, 1 }, items[3] = { RDNA_PROGRAM_WAVES * c->target->lanes, 1, 1 };
	const struct rdna_program_args args = { .phases = (uint64_t)(uintptr_t)s->program.phase, .first = (uint32_t)first, .end = (uint32_t)end,
		.arrivals = (uint64_t)(uintptr_t)&c->arrivals, .workgroups = s->program.workgroups };
	struct sim_options o = { .memory = c->options.memory, .seed = c->options.seed + c->counters.launches, .races = c->options.races,
		.resident = s->room, .counters = count };
	const struct sim_kernel *kernel = sim_find(s->object, RDNA_PROGRAM_KERNEL);
	struct error trap = { 0 };

	c->arrivals = 0;
	if (!sim_dispatch(c->sim, kernel, &args, sizeof args, groups, items, &o, &trap))
		return report_trap(s, &trap, err);
	if (c->options.watch)
		c->options.watch(c->options.user, s->plan, kernel, first, end == s->program.n_phases + 1 ? first : end, count);
	return true;
}

static bool launch(struct dev_sim *c, const struct sim_plan *s, size_t first, size_t end, struct error *err)
{
	struct sim_counters count = { 0 };
	bool ok = dispatch(c, s, first, end, &count, err);

	sim_counters_add(&c->counters.sim, &count);
	c->counters.launches++;
	c->counters.phases += end - first;
	c->counters.barriers += program_barriers(&s->program, first, end);
	return ok;
}

static bool sim_run(struct device *d, struct plan *p, struct pool *pool, struct error *err)
{
	struct dev_sim *c = (struct dev_sim *)d;
	const struct sim_plan *s = p->prepared;
	bool ok = true;
	(void)pool;

	c->counters.passes++;
	if (c->options.watch)
		ok = dispatch(c, s, s->program.n_phases, s->program.n_phases + 1, &(struct sim_counters){ 0 }, err);
	if (!ok)
		return false;
	if (c->options.launch == LAUNCH_TOKEN)
		return launch(c, s, 0, p->n_launches, err);
	if (c->options.launch == LAUNCH_LAYER) {
		for (size_t i = 0; ok && i < p->n_parts; i++)
			ok = launch(c, s, p->part[i], p->part[i + 1], err);
		return ok;
	}
	for (size_t i = 0; ok && i < p->n_launches; i++) {
		uint64_t start = d->profile ? profile_now() : 0;
		ok = launch(c, s, i, i + 1, err);
		if (d->profile)
			profile_launch(d->profile, 0, p, i, start, profile_now());
	}
	return ok;
}

static void sim_shut(struct device *d)
{
	struct dev_sim *c = (struct dev_sim *)d;

	for (struct sim_plan *s = c->plans, *next; s; s = next) {
		next = s->next;
		forget(s);
	}
	if (c->sim)
		sim_close(c->sim);
	free(c);
}

struct device *dev_sim_open(struct registry *r, const struct target *t, const struct dev_sim_options *o, struct error *err)
{
	struct dev_sim *c = calloc(1, sizeof *c);

	if (!c) {
		error_set(err, ERROR_MEMORY, "no memory for the simulated card");
		return NULL;
	}
	c->device = (struct device){ .name = "sim", .memory = sim_memory, .prepare = sim_prepare, .run = sim_run, .close = sim_shut };
	c->registry = r;
	c->target = t;
	dev_sim_set(&c->device, o);
	c->sim = sim_open(t->name, err);
	if (c->sim && sim_map(c->sim, &c->arrivals, sizeof c->arrivals, "the counter of arrivals", true, err))
		return &c->device;
	sim_shut(&c->device);
	return NULL;
}

void dev_sim_set(struct device *d, const struct dev_sim_options *o)
{
	struct dev_sim *c = (struct dev_sim *)d;

	c->options = *o;
	if (!c->options.units)
		c->options.units = DEV_SIM_UNITS;
}

const struct dev_sim_counters *dev_sim_count(const struct device *d) { return &((const struct dev_sim *)d)->counters; }
