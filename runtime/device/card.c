#include "runtime/device/card.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/profile.h"
#include "runtime/host/cancel.h"

/* ---- plans */

static void forget(struct card_stream *c, struct card_plan *s)
{
	const struct card_driver *d = c->driver;

	if (s->code)
		d->unload(c, s);
	if (s->commands)
		d->unmap(c, s->commands, s->commands_bytes);
	if (s->args)
		d->unmap(c, s->args, s->args_bytes);
	program_free(&s->program);
	free(s->seconds);
	free(s);
}

void card_forget_plan(struct stream *stream, struct plan *p)
{
	struct card_stream *c = (struct card_stream *)stream;
	struct card_plan *s = p->prepared, **link = &c->plans;

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	c->driver->begin(c);
	forget(c, s);
	c->driver->end(c);
	p->prepared = NULL;
}

void card_forget(struct card_stream *c)
{
	c->driver->begin(c);
	for (struct card_plan *s = c->plans, *next; s; s = next) {
		next = s->next;
		forget(c, s);
	}
	c->plans = NULL;
	c->driver->end(c);
}

void card_partition(struct card_plan *p, uint32_t workgroups)
{
	program_partition(&p->program, p->plan, workgroups);
	memcpy(p->commands, p->program.command, p->commands_bytes);
}

/* Barriers wait for all workgroups of a launch: those beyond what lives at once would never arrive. */
static bool find_room(const struct card_stream *c, struct card_plan *s, struct error *err)
{
	const struct target *t = c->stream.device->facts.target;

	s->room = t->backend->resident(t, c->units, s->vgprs, s->lds);
	if (s->room > RDNA_PROGRAM_MAX_WORKGROUPS)
		s->room = RDNA_PROGRAM_MAX_WORKGROUPS;
	return (s->room && c->workgroups <= s->room) ||
	       error_set(err, ERROR_DEVICE,
	                 "%u workgroups are to run at once, but there is room for %u on %u compute unit%s of "
	                 "%s: each needs %u vector registers a lane and %u bytes of LDS",
	                 c->workgroups, s->room, c->units, c->units == 1 ? "" : "s", t->name, s->vgprs, s->lds);
}

/* How long each op takes decides into how many commands it is cut. */
static bool predict(const struct card_stream *c, struct card_plan *s, struct error *err)
{
	const struct plan *p = s->plan;
	uint32_t *parts = calloc(p->n_ops, sizeof *parts);
	double *seconds = malloc(p->n_ops * sizeof *seconds);
	bool ok = parts && seconds;

	for (size_t i = 0; ok && i < p->n_ops; i++) {
		int64_t units = p->op[i].end - p->op[i].begin;
		seconds[i] = c->driver->predict(c, s, i);
		double n = ceil(seconds[i] / CARD_LAUNCH_SECONDS);
		parts[i] = n < 1 ? 1 : n < (double)units ? (uint32_t)n : (uint32_t)units;
	}
	ok = ok && program_split(&s->program, p, parts) &&
	     (s->seconds = calloc(s->program.n_commands + 1, sizeof(double)));
	for (size_t i = 0; ok && i < p->n_ops; i++)
		for (size_t k = s->program.of_op[i]; k < s->program.of_op[i + 1]; k++)
			s->seconds[k] = seconds[i] / parts[i];
	free(parts);
	free(seconds);
	return ok || error_set(err, ERROR_MEMORY, "no memory for the commands of a plan of %zu launches", p->n_ops);
}

static bool load(struct card_stream *c, struct card_plan *s, const struct plan *p, struct error *err)
{
	const struct card_driver *d = c->driver;

	s->args_bytes = p->n_args * sizeof *s->args;
	if (!(s->args = d->map(c, s->args_bytes, "a plan's arguments", err)))
		return false;
	memcpy(s->args, p->args, s->args_bytes);
	if (!program_make(&s->program, p, s->args, c->registry, c->stream.device->facts.target, err) ||
	    !d->load(c, s, err) || !find_room(c, s, err) || (d->predict && !predict(c, s, err)))
		return false;
	s->commands_bytes = (s->program.n_commands + 1) * sizeof *s->commands;
	if (!(s->commands = d->map(c, s->commands_bytes, "a plan's commands", err)))
		return false;
	card_partition(s, c->workgroups ? c->workgroups : s->room);
	return !d->ready || d->ready(c, s, err);
}

bool card_prepare(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct card_stream *c = (struct card_stream *)stream;
	struct card_plan *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %s", c->driver->name);
	s->plan = p;
	bool ok = device_make_plan(c->registry, p, pool, err);
	c->driver->begin(c);
	ok = ok && load(c, s, p, err);
	if (!ok)
		forget(c, s);
	c->driver->end(c);
	if (!ok)
		return false;
	s->next = c->plans;
	c->plans = s;
	p->prepared = s;
	return true;
}

/* ---- running */

/* A launch that has begun cannot be taken back: who cancels waits for its end. */
static bool launch(struct card_stream *c, const struct card_plan *s, size_t first, size_t end, struct error *err)
{
	if (cancel_any(c->stream.cancel))
		return cancel_error(err);
	bool ok = c->driver->dispatch(c, s, first, end, err);

	c->counters.launches++;
	c->counters.commands += end - first;
	c->counters.barriers += program_barriers(&s->program, first, end);
	return ok;
}

/* Ops first .. end-1, in as few launches as are not too long. */
static bool launch_ops(struct card_stream *c, const struct card_plan *s, size_t first, size_t end, struct error *err)
{
	size_t at = s->program.of_op[first], last = s->program.of_op[end];
	bool ok = true;

	while (ok && at < last) {
		size_t next = s->seconds ? at + 1 : last;
		double sum = s->seconds ? s->seconds[at] : 0;
		while (next < last && sum + s->seconds[next] <= CARD_LAUNCH_SECONDS)
			sum += s->seconds[next++];
		ok = launch(c, s, at, next, err);
		at = next;
	}
	return ok;
}

/* The arguments that differ from run to run. */
static void copy_changing(const struct card_plan *s)
{
	for (size_t i = 0; i < s->plan->n_changing; i++)
		s->args[s->plan->changing[i].slot - s->plan->args] = *s->plan->changing[i].slot;
}

/* Who asks where time goes gets a launch for each op: a launch has one time. */
static bool launch_all(struct card_stream *c, const struct card_plan *s, const struct plan *p, struct error *err)
{
	struct profile *profile = c->stream.profile;
	bool ok = true;

	if (c->launch == STREAM_LAUNCH_TOKEN && !profile)
		return launch_ops(c, s, 0, p->n_ops, err);
	if (c->launch == STREAM_LAUNCH_LAYER && !profile) {
		for (size_t i = 0; ok && i < p->n_sections; i++)
			ok = launch_ops(c, s, p->section[i], p->section[i + 1], err);
		return ok;
	}
	for (size_t i = 0; ok && i < p->n_ops; i++) {
		uint64_t start = profile ? profile_now() : 0;
		ok = launch_ops(c, s, i, i + 1, err);
		if (profile)
			profile_launch(profile, 0, p, i, start, profile_now());
	}
	return ok;
}

bool card_run(struct stream *stream, struct plan *p, struct pool *pool, struct error *err)
{
	struct card_stream *c = (struct card_stream *)stream;
	const struct card_plan *s = p->prepared;

	c->driver->begin(c);
	c->counters.passes++;
	copy_changing(s);
	bool ok = (!c->driver->pass || c->driver->pass(c, s, err)) && launch_all(c, s, p, err);
	c->driver->end(c);
	return ok;
}

/* ---- for drivers */

struct rdna_program_args card_launch_args(const struct card_stream *c, const struct card_plan *p, size_t first,
                                          size_t end)
{
	return (struct rdna_program_args){ .commands = (uint64_t)(uintptr_t)p->commands,
		                           .first = (uint32_t)first,
		                           .end = (uint32_t)end,
		                           .workgroups = p->program.workgroups,
		                           .arrivals = c->arrivals };
}

bool card_check_sync(struct card_stream *c, const struct card_plan *p, size_t first, size_t end,
                     const struct rdna_program_sync *at, struct error *err)
{
	uint32_t expected = c->arrivals + p->program.workgroups * (uint32_t)program_barriers(&p->program, first, end);

	c->arrivals = at->arrivals;
	if (!at->left && at->arrivals == expected)
		return true;
	c->arrivals = 0;
	if (!at->left)
		return error_set(err, ERROR_DEVICE, "%u arrivals at barriers were counted, expected %u", at->arrivals,
		                 expected);
	return error_set(
		err, ERROR_DEVICE,
		"a launch was given up: at the barrier of command %zu workgroup %u waited for %u others in vain",
		end - 1 - at->left, at->workgroup, at->missing);
}

const struct key *card_function_at(const struct card_plan *p, uint64_t offset, uint64_t *from)
{
	const struct key *in = NULL;

	*from = 0;
	for (size_t i = 0; i < p->plan->n_kernels; i++)
		if (p->program.offset[i] <= offset && p->program.offset[i] >= *from) {
			*from = p->program.offset[i];
			in = &p->plan->kernel[i].key;
		}
	return in;
}

size_t card_command_at(const struct card_plan *p, size_t first, size_t end, uint32_t barriers)
{
	size_t i = first;

	for (; barriers && i + 1 < end; i++)
		barriers -= p->program.command[i].flags & RDNA_COMMAND_BARRIER;
	return i;
}

const struct key *card_command_key(const struct card_plan *p, size_t command)
{
	size_t op = 0;

	while (op + 1 < p->plan->n_ops && p->program.of_op[op + 1] <= command)
		op++;
	return &p->plan->kernel[p->plan->op[op].kernel].key;
}
