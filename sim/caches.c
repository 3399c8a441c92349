/* sim/caches.c - which writes of other workgroups each cache of a workgroup has forgotten the old value of.
 *
 * Owns: what invalidations do, where races are watched. A workgroup has caches of its own, as if it were alone on its
 * shader array: L0 of its compute unit, GL1 behind it, and the scalar cache, which is filled from GL1 too. A cache is
 * as fresh as the time of the workgroup's vector clock (race.c) when it was last invalidated, and never fresher than
 * what it is filled from. Vector loads come behind an invalidation of GL1 by themselves; scalar ones go another way:
 * they count on GL1 only when the wave that invalidated it has waited for a load behind (gfx12: for the invalidation),
 * and on the scalar cache when it has waited for that.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/wave.h"

enum { PER_GROUP = 5, PER_WAVE = 2 };

bool sim_caches_group(struct sim_group *g, uint64_t groups)
{
	size_t n = (size_t)groups;
	uint32_t *c = realloc(g->clock, PER_GROUP * n * sizeof *c);
	if (!c)
		return false;
	memset(c, 0, PER_GROUP * n * sizeof *c);
	g->clock = c;
	g->l0 = c + n;
	g->gl1 = c + 2 * n;
	g->settled = c + 3 * n;
	g->scalar = c + 4 * n;
	g->clock[g->linear] = 1;
	return true;
}

/* The wave's own copies of clocks, for invalidations that have not been waited for: of GL1, of the scalar cache. */
static uint32_t *pending(struct sim_wave *w, bool scalar)
{
	size_t n = (size_t)w->run->n_groups;
	if (!w->pending_clocks && !(w->pending_clocks = calloc(PER_WAVE * n, sizeof(uint32_t))))
		sim_trap(w, "no memory to watch races");
	return w->pending_clocks && scalar ? w->pending_clocks + n : w->pending_clocks;
}

static void copy(struct sim_wave *w, uint32_t *to, const uint32_t *from)
{
	if (to)
		memcpy(to, from, (size_t)w->run->n_groups * sizeof *to);
}

static void raise(struct sim_wave *w, uint32_t *to, const uint32_t *from)
{
	for (uint64_t i = 0; i < w->run->n_groups; i++)
		if (from[i] > to[i])
			to[i] = from[i];
}

/* What the workgroup writes from now on is later. */
static void next_moment(struct sim_group *g) { g->clock[g->linear]++; }

/* seq: of the first access whose end says that this has ended. */
static void invalidate_gl1(struct sim_wave *w, uint64_t seq)
{
	struct sim_group *g = w->group;
	copy(w, g->gl1, g->clock);
	copy(w, pending(w, false), g->clock);
	w->gl1_pending = true;
	w->gl1_seq = seq;
	next_moment(g);
}

void sim_caches_invalidate(struct sim_wave *w, const struct sim_inst *in, uint64_t seq)
{
	struct sim_group *g = w->group;
	switch (in->id) {
	case OP_M_buffer_gl1_inv: invalidate_gl1(w, seq); break;
	case OP_M_buffer_gl0_inv: copy(w, g->l0, g->gl1); break;
	case OP_M_global_inv:
	case OP_M_global_wbinv:
		if (in->reach == REACH_L2)
			invalidate_gl1(w, seq);
		if (in->reach >= REACH_GL1)
			copy(w, g->l0, g->gl1);
		break;
	case OP_M_s_dcache_inv:
		copy(w, pending(w, true), g->settled);
		if (w->pending_clocks) /* its own stores have dropped their lines of GL1 */
			pending(w, true)[g->linear] = g->clock[g->linear];
		next_moment(g);
		break;
	case OP_M_s_gl1_inv: sim_trap(w, "it is not modelled where races are watched"); break;
	}
}

void sim_caches_retired(struct sim_wave *w, unsigned kind, const struct sim_access *a)
{
	if (kind == COUNT_LOAD && w->gl1_pending && a->seq >= w->gl1_seq) {
		raise(w, w->group->settled, pending(w, false));
		w->gl1_pending = false;
	}
	if (kind == COUNT_SMEM && a->in->id == OP_M_s_dcache_inv)
		raise(w, w->group->scalar, pending(w, true));
}
