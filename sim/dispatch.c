/* sim/dispatch.c - a launch: workgroups become resident, their waves get their first registers and are interleaved to
 * the end.
 *
 * Owns: the launch state that the AMDHSA ABI promises, the seeded scheduler, barriers and deadlocks, traps.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/wave.h"

void sim_trap(struct sim_wave *w, const char *format, ...)
{
	struct sim_run *r = w->run;
	const struct sim_inst *in = r->now;
	w->stop = true;
	if (r->trapped)
		return;
	r->trapped = true;
	char why[256], bytes[64] = "";
	va_list ap;
	va_start(ap, format);
	vsnprintf(why, sizeof why, format, ap);
	va_end(ap);
	unsigned length = 1;
	const char *name = NULL;
	if (in) {
		name = sim_decode_name(r->dev, r->words + in->index, r->n_code - in->index, &length);
		for (unsigned i = 0, at = 0; i < length && i < 4; i++)
			at += (unsigned)snprintf(bytes + at, sizeof bytes - at, " %08x", r->words[in->index + i]);
	}
	uint64_t offset = in ? (uint64_t)in->index * 4 - (r->kernel->entry - (uint64_t)(uintptr_t)r->words) : 0;
	if (r->opt.trap)
		*r->opt.trap = (struct sim_trap){
			.trapped = true, .offset = offset, .workgroup = w->group->linear, .wave = w->id
		};
	error_set(r->err, ERROR_DEVICE, "kernel %s trapped at +0x%llx (%s:%s), workgroup %u wave %u: %s",
	          r->kernel->name, (unsigned long long)offset, name ? name : "?", bytes, w->group->linear, w->id, why);
}

/* --- the list of runnable waves */

static void make_runnable(struct sim_run *r, struct sim_wave *w)
{
	w->state = WAVE_RUN;
	w->slot = r->n_runnable;
	r->runnable[r->n_runnable++] = w;
}

static void unlist(struct sim_run *r, struct sim_wave *w, uint8_t state)
{
	struct sim_wave *last = r->runnable[--r->n_runnable];
	r->runnable[w->slot] = last;
	last->slot = w->slot;
	w->state = state;
	w->stop = true;
}

/* --- barriers: signal, then wait for the phase to change */

void sim_barrier_signal(struct sim_wave *w)
{
	struct sim_group *g = w->group;
	if (w->signalled) {
		sim_trap(w, "it signals the barrier again before waiting for it");
		return;
	}
	w->signalled = true;
	w->phase = g->phase;
	if (++g->n_barrier < g->n_waves)
		return;
	g->n_barrier = 0;
	g->phase++;
	w->run->c.barriers++;
	for (unsigned i = 0; i < g->n_waves; i++)
		if (g->waves[i].state == WAVE_BARRIER) {
			g->waves[i].signalled = false;
			make_runnable(w->run, &g->waves[i]);
		}
}

void sim_barrier_wait(struct sim_wave *w)
{
	if (!w->signalled) {
		sim_trap(w, "it waits for a barrier that it did not signal");
		return;
	}
	if (w->group->phase != w->phase) {
		w->signalled = false;
		return;
	}
	unlist(w->run, w, WAVE_BARRIER);
}

static void group_end(struct sim_run *r, struct sim_group *g)
{
	g->used = false;
	r->live_groups--;
}

void sim_wave_end(struct sim_wave *w)
{
	struct sim_group *g = w->group;
	sim_retire_all(w);
	if (w->run->trapped)
		return;
	if (g->n_barrier) {
		sim_trap(w, "the wave ends while %u of the %u waves of its workgroup are at a barrier", g->n_barrier,
		         g->n_waves);
		return;
	}
	w->run->progress = w->run->steps;
	unlist(w->run, w, WAVE_DONE);
	if (--g->n_live == 0)
		group_end(w->run, g);
}

/* --- launch state */

static void set_s(struct sim_wave *w, unsigned reg, uint32_t v)
{
	w->s[reg] = v;
	w->sdef[reg] = 1;
}
static unsigned set_s64(struct sim_wave *w, unsigned reg, uint64_t v)
{
	set_s(w, reg, (uint32_t)v);
	set_s(w, reg + 1, (uint32_t)(v >> 32));
	return reg + 2;
}

static void launch_scalars(struct sim_wave *w)
{
	struct sim_run *r = w->run;
	const struct sim_kernel *k = r->kernel;
	unsigned n = 0, p = k->properties, user = k->rsrc2 >> 1 & 31;
	if (p & 1) {
		n = set_s64(w, n, 0);
		n = set_s64(w, n, 0);
	}
	if (p & 2)
		n = set_s64(w, n, (uint64_t)(uintptr_t)r->packet);
	if (p & 4)
		n = set_s64(w, n, 0);
	if (p & 8)
		n = set_s64(w, n, (uint64_t)(uintptr_t)r->kernarg);
	if (p & 16)
		n = set_s64(w, n, 1);
	if (p & 32)
		n = set_s64(w, n, 0);
	if (p & 64)
		set_s(w, n++, k->scratch_size);
	n = user;
	const uint32_t *id = w->group->id;
	if (r->dev->gen < 2) {
		for (unsigned i = 0; i < 3; i++)
			if (k->rsrc2 >> (7 + i) & 1)
				set_s(w, n++, id[i]);
		if (k->rsrc2 >> 10 & 1)
			set_s(w, n++, w->group->n_waves);
		if (r->dev->gen == 0 && (k->rsrc2 & 1))
			set_s(w, n++, 0);
	} else {
		set_s(w, REG_TTMP + 9, id[0]);
		set_s(w, REG_TTMP + 7, (id[1] & 0xffff) | id[2] << 16);
		set_s(w, REG_TTMP + 8, w->id << 25);
	}
}

static void launch_vectors(struct sim_wave *w, uint32_t items)
{
	struct sim_run *r = w->run;
	unsigned dims = r->kernel->rsrc2 >> 11 & 3, first = w->id * LANES;
	const uint32_t *size = r->group_size;
	w->s[REG_EXEC] = items - first >= LANES ? ~0u : (1u << (items - first)) - 1;
	w->sdef[REG_EXEC] = w->sdef[124] = 1;
	for (unsigned l = 0; l < LANES && first + l < items; l++) {
		uint32_t i = first + l, x = i % size[0], y = i / size[0] % size[1], z = i / size[0] / size[1];
		if (r->dev->gen) {
			w->v[l] = x | y << 10 | z << 20;
			continue;
		}
		w->v[l] = x;
		if (dims >= 1)
			w->v[LANES + l] = y;
		if (dims >= 2)
			w->v[2 * LANES + l] = z;
	}
	for (unsigned d = 0; d <= (r->dev->gen ? 0 : dims); d++)
		w->vdef[d] = ~0u;
}

static void launch_wave(struct sim_group *g, unsigned id, uint32_t items)
{
	struct sim_wave *w = &g->waves[id];
	struct sim_run *r = w->run;
	uint32_t *v = w->v, *vdef = w->vdef;
	uint8_t *scratch = w->scratch;
	uint32_t *pending_clocks = w->pending_clocks;
	struct sim_queue q[COUNT_KINDS];
	memcpy(q, w->q, sizeof q);
	memset(w, 0, sizeof *w);
	memcpy(w->q, q, sizeof q);
	for (unsigned k = 0; k < COUNT_KINDS; k++)
		w->q[k].n = 0;
	w->run = r;
	w->v = v;
	w->vdef = vdef;
	w->scratch = scratch;
	w->pending_clocks = pending_clocks;
	w->scratch_stride = r->kernel->scratch_size;
	w->n_vgprs = r->kernel->vgprs;
	w->group = g;
	w->id = id;
	for (size_t i = 0; i < (size_t)w->n_vgprs * LANES; i++)
		v[i] = POISON;
	for (unsigned i = 0; i < 132; i++)
		w->s[i] = POISON;
	w->s[REG_SCC] = w->s[124] = 0;
	memset(vdef, 0, w->n_vgprs * sizeof *vdef);
	w->pc = (uint32_t)((r->kernel->entry - (uint64_t)(uintptr_t)r->words) / 4);
	w->mode = r->kernel->rsrc1 >> 12 & 0xff;
	sim_mode_changed(w);
	launch_scalars(w);
	launch_vectors(w, items);
	make_runnable(r, w);
}

static bool launch_group(struct sim_run *r, struct sim_group *g, uint64_t linear, struct error *err)
{
	uint32_t items = r->group_size[0] * r->group_size[1] * r->group_size[2];
	g->used = true;
	g->linear = (uint32_t)linear;
	g->id[0] = (uint32_t)(linear % r->groups[0]);
	g->id[1] = (uint32_t)(linear / r->groups[0] % r->groups[1]);
	g->id[2] = (uint32_t)(linear / r->groups[0] / r->groups[1]);
	g->n_live = g->n_waves;
	g->n_barrier = 0;
	g->phase = 0;
	for (uint32_t i = 0; i < g->lds_size / 4; i++)
		((uint32_t *)(void *)g->lds)[i] = POISON;
	memset(g->lds_def, 0, (g->lds_size / 128 + 1) * 4);
	g->lds_undefined = (g->lds_size + 3) / 4;
	if (r->race && !sim_caches_group(g, r->n_groups))
		return error_set(err, ERROR_MEMORY, "no memory for the clocks of %llu workgroups",
		                 (unsigned long long)r->n_groups);
	r->live_groups++;
	r->c.workgroups++;
	r->c.waves += g->n_waves;
	for (unsigned i = 0; i < g->n_waves; i++)
		launch_wave(g, i, items);
	return true;
}

/* --- memory of a launch */

static bool make_group(struct sim_run *r, struct sim_group *g, unsigned n_waves)
{
	const struct sim_kernel *k = r->kernel;
	g->n_waves = n_waves;
	g->lds_size = k->lds_size;
	g->lds = calloc(1, k->lds_size + 16u);
	g->lds_def = calloc(k->lds_size / 128 + 2, 4);
	g->waves = calloc(n_waves, sizeof *g->waves);
	if (!g->lds || !g->lds_def || !g->waves)
		return false;
	for (unsigned i = 0; i < n_waves; i++) {
		struct sim_wave *w = &g->waves[i];
		w->run = r;
		w->v = aligned_alloc(64, (size_t)k->vgprs * LANES * 4);
		w->vdef = malloc(k->vgprs * sizeof *w->vdef);
		w->scratch = k->scratch_size ? calloc(LANES, k->scratch_size) : NULL;
		if (!w->v || !w->vdef || (k->scratch_size && !w->scratch))
			return false;
	}
	return true;
}

static void free_group(struct sim_group *g)
{
	for (unsigned i = 0; g->waves && i < g->n_waves; i++) {
		free(g->waves[i].v);
		free(g->waves[i].vdef);
		free(g->waves[i].scratch);
		free(g->waves[i].pending_clocks);
		sim_queue_free(&g->waves[i]);
	}
	free(g->waves);
	free(g->lds);
	free(g->lds_def);
	free(g->clock);
}

static bool refill(struct sim_run *r, struct error *err)
{
	for (unsigned i = 0; i < r->n_resident && r->next_group < r->n_groups; i++)
		if (!r->resident[i].used && !launch_group(r, &r->resident[i], r->next_group++, err))
			return false;
	return true;
}

static void check_progress(struct sim_run *r)
{
	struct sim_wave *w = r->runnable[0];
	if (r->steps - r->progress > r->opt.stall_limit)
		sim_trap(w,
		         "%llu instructions ran without any change of memory or end of a wave: a barrier or spin loop "
		         "that cannot complete",
		         (unsigned long long)r->opt.stall_limit);
	if (r->opt.max_instructions && r->steps > r->opt.max_instructions)
		sim_trap(w, "more than %llu instructions ran", (unsigned long long)r->opt.max_instructions);
}

static bool schedule(struct sim_run *r, struct error *err)
{
	while (!r->trapped) {
		if (r->live_groups < r->n_resident && r->next_group < r->n_groups && !refill(r, err))
			return false;
		if (!r->live_groups)
			return true;
		if (!r->n_runnable) {
			struct sim_group *g = r->resident;
			while (!g->used)
				g++;
			struct sim_wave *w = g->waves;
			while (w->state == WAVE_DONE)
				w++;
			sim_trap(w,
			         "a barrier cannot complete: %u of %u waves of the workgroup are at it and no wave can "
			         "run",
			         g->n_barrier, g->n_waves);
			break;
		}
		uint64_t x = sim_random(r);
		sim_run_wave(r->runnable[(uint32_t)(x >> 8) % r->n_runnable], 1 + (unsigned)(x & 127));
		if (r->n_runnable && !r->trapped)
			check_progress(r);
	}
	return false;
}

static bool open_run(struct sim_run *r, const void *kernarg, size_t n, struct error *err)
{
	uint64_t items = (uint64_t)r->group_size[0] * r->group_size[1] * r->group_size[2];
	unsigned n_waves = (unsigned)((items + LANES - 1) / LANES), cap = r->opt.resident ? r->opt.resident : 256;
	r->n_resident = r->n_groups < cap ? (unsigned)r->n_groups : cap;
	r->resident = calloc(r->n_resident, sizeof *r->resident);
	r->runnable = calloc((size_t)r->n_resident * n_waves, sizeof *r->runnable);
	r->kernarg = aligned_alloc(64, (n + 64) & ~63ull);
	bool ok = r->resident && r->runnable && r->kernarg;
	for (unsigned i = 0; ok && i < r->n_resident; i++)
		ok = make_group(r, &r->resident[i], n_waves);
	if (!ok)
		return error_set(err, ERROR_MEMORY, "no memory for %u resident workgroups of kernel %s", r->n_resident,
		                 r->kernel->name);
	if (n)
		memcpy(r->kernarg, kernarg, n);
	for (unsigned i = 0; i < 3; i++) {
		uint16_t size = (uint16_t)r->group_size[i];
		uint32_t grid = r->groups[i] * r->group_size[i];
		memcpy(r->packet + 4 + 2 * i, &size, 2);
		memcpy(r->packet + 12 + 4 * i, &grid, 4);
	}
	if (n && !sim_map(r->dev, r->kernarg, n, "the kernel arguments", false, err))
		return false;
	if (!sim_map(r->dev, r->packet, sizeof r->packet, "the dispatch packet", false, err))
		return false;
	if (r->opt.races && !sim_race_open(r))
		return error_set(err, ERROR_MEMORY, "no memory to watch races");
	return true;
}

static void close_run(struct sim_run *r)
{
	for (unsigned i = 0; r->resident && i < r->n_resident; i++)
		free_group(&r->resident[i]);
	sim_race_close(r);
	if (r->kernarg)
		sim_unmap(r->dev, r->kernarg);
	sim_unmap(r->dev, r->packet);
	free(r->resident);
	free(r->runnable);
	free(r->kernarg);
}

void sim_counters_add(struct sim_counters *to, const struct sim_counters *from)
{
	uint64_t *a = (uint64_t *)(void *)to;
	const uint64_t *b = (const uint64_t *)(const void *)from;
	for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
		a[i] += b[i];
}

bool sim_dispatch(struct sim_device *dev, const struct sim_kernel *kernel, const void *kernarg, size_t kernarg_size,
                  const uint32_t groups[3], const uint32_t group_size[3], const struct sim_options *options,
                  struct error *err)
{
	uint64_t items = (uint64_t)group_size[0] * group_size[1] * group_size[2],
		 n = (uint64_t)groups[0] * groups[1] * groups[2];
	struct error inner = { .code = ERROR_NONE };
	if (options->trap)
		*options->trap = (struct sim_trap){ 0 };
	if (kernel->object->dev != dev)
		return error_set(err, ERROR_ARGUMENT, "kernel %s was loaded on another device", kernel->name);
	if (!items || items > 1024)
		return error_set(err, ERROR_ARGUMENT, "the workgroup size of kernel %s is %llu, expected 1 to 1024",
		                 kernel->name, (unsigned long long)items);
	if (n > 1u << 24)
		return error_set(err, ERROR_ARGUMENT,
		                 "kernel %s is launched with %llu workgroups, expected at most 16777216", kernel->name,
		                 (unsigned long long)n);
	if (options->races && n > 4096)
		return error_set(err, ERROR_ARGUMENT,
		                 "races are watched among at most 4096 workgroups, and kernel %s has %llu",
		                 kernel->name, (unsigned long long)n);
	if (kernarg_size < kernel->kernarg_size)
		return error_set(err, ERROR_ARGUMENT, "kernel %s takes %u bytes of arguments, and %zu were given",
		                 kernel->name, kernel->kernarg_size, kernarg_size);
	if (!n)
		return true;
	struct sim_object *o = kernel->object;
	struct sim_run *r = calloc(1, sizeof *r);
	if (!r)
		return error_set(err, ERROR_MEMORY, "no memory for a launch");
	*r = (struct sim_run){
		.dev = dev,
		.object = o,
		.kernel = kernel,
		.code = o->code,
		.n_code = (uint32_t)(o->text_size / 4),
		.words = (const uint32_t *)(const void *)(o->image + o->text),
		.opt = *options,
		.err = &inner,
		.n_groups = n,
		.groups = { groups[0], groups[1], groups[2] },
		.group_size = { group_size[0], group_size[1], group_size[2] }
	};
	r->rng = (options->seed + 1) * 0x9e3779b97f4a7c15ull | 1;
	if (!r->opt.stall_limit)
		r->opt.stall_limit = 200000000;
	bool ok = open_run(r, kernarg, kernarg_size, &inner) && schedule(r, &inner) && !r->trapped;
	r->c.instructions = r->steps;
	if (options->counters)
		sim_counters_add(options->counters, &r->c);
	close_run(r);
	free(r);
	return ok || error_set(err, inner.code, "%s", inner.text);
}
