/* runtime/engine/engine_adapt.c - which adapters the sequences of a pass have, and plans that must be built again when
 * adapters come or go (engine.h). */
#include <assert.h>
#include <string.h>

#include "runtime/engine/engine.h"
#include "runtime/model/adapters.h"

/* Plans for other adapters than the model has now: which matrices they add to may have changed. */
static void forget_adapted(struct engine *e)
{
	for (size_t i = engine_plan_count(e) / 2; i < engine_plan_count(e); i++) {
		engine_forget_plan(e, &e->plan[i]);
		if (e->shown_plan)
			engine_forget_plan(e, &e->shown_plan[i]);
	}
	for (size_t i = 0; e->joint && i < ENGINE_JOINT_MAX; i++)
		if (e->joint[i].adapts)
			engine_forget_joint(e, &e->joint[i]);
}

/* The number of such a set among those of the pass, of which there are n; it may be one more. */
static int32_t set_number(struct engine *e, const struct adapters_chosen *c, uint32_t *n)
{
	struct adapt_set *all = e->memory.buf.adapt_sets, set;
	uint32_t i = 0;

	adapters_set(&set, c);
	/* Scales are one where their bits are. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-*) */
	while (i < *n && memcmp(&all[i], &set, sizeof set) != 0)
		i++;
	if (i == *n)
		all[(*n)++] = set;
	return (int32_t)i;
}

void engine_adapt(struct engine *e, const struct adapters_chosen *const chosen[], uint32_t n)
{
	const uint64_t version = adapters_version(e->model);
	uint32_t sets = 1;

	assert(n <= ENGINE_SPANS_MAX);
	e->adapts = false;
	if (!e->adapted)
		return;
	if (version != e->adapters_seen)
		forget_adapted(e);
	e->adapters_seen = version;
	e->memory.buf.adapt_sets[0] = (struct adapt_set){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		e->set_of[i] = set_number(e, chosen[i], &sets);
		e->adapts |= e->set_of[i] != 0;
	}
	e->sets = sets;
}

void engine_adapt_as_told(struct engine *e, const struct adapt_set *set, uint32_t sets)
{
	const uint64_t version = adapters_version(e->model);

	e->adapts = sets != 0;
	if (!sets)
		return;
	if (version != e->adapters_seen)
		forget_adapted(e);
	e->adapters_seen = version;
	memcpy(e->memory.buf.adapt_sets, set, sets * sizeof *set);
}

void engine_read_rows(const struct engine *e, const struct adapters_chosen *c, uint32_t first, uint32_t n)
{
	const struct plan_buffers *buf = &e->memory.buf;
	const struct weights_site *site = e->model->weights.embed.site;

	if (!e->adapts)
		return;
	const uint64_t ranks = numerics_pad(site->ranks), hidden = numerics_pad(e->model->file.spec.hidden);
	/* Ranks may have to build the pass's plan again, with adapters that come now. */
	if (atomic_load(&site->users) || e->number)
		adapters_read_rows(c, buf->ids + first, n, buf->adapt_tokens + first * ranks, ranks);
	if (atomic_load(&site->whole) || e->number)
		adapters_read_whole(c, buf->ids + first, n, buf->adapt_factors + first * hidden,
		                    buf->adapt_whole + first * hidden, hidden);
}

/* The tiles of a plan, with the sets of their sequences. */
void engine_set_tiles(const struct engine *e, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_adapt_tiles; i++) {
		struct adapt_tile tile = p->adapt_tile[i];
		tile.set = e->set_of[tile.set];
		e->memory.buf.adapt_tiles[i] = tile;
	}
}
