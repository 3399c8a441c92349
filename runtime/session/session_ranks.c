/* runtime/session/session_ranks.c - see session_ranks.h. */
#include "runtime/session/session_ranks.h"

#include <stdlib.h>

#include "runtime/engine/engine_ranks.h"

static bool move_all(const struct session_memory *m, const jit_model *model, const struct kv_extent *extent, uint64_t n,
                     enum ranks_what what, struct error *err)
{
	const struct session_states *t = &m->states;
	size_t k = 0;

	if (!model_leads(model))
		return true;
	struct engine_kept *kept = calloc(n + STATES_MAX + 1, sizeof *kept);
	if (!kept)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %llu pieces", (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++)
		if (extent[i].at)
			kept[k++] = (struct engine_kept){ ranks_address_of(model->ranks, extent[i].at), extent[i].bytes,
				                          extent[i].layer, 0 };
	for (uint32_t i = 0; i < t->slots && t->bytes; i++)
		if (t->used[i])
			kept[k++] = (struct engine_kept){ ranks_address_of(model->ranks, t->base + i * t->bytes),
				                          t->bytes, model->file.spec.layers, 0 };
	const bool ok = engine_move_kept(model, what, kept, k, err);
	free(kept);
	return ok;
}

bool session_gather(const struct session_memory *m, const jit_model *model, const struct kv_extent *extent, uint64_t n,
                    struct error *err)
{
	return move_all(m, model, extent, n, RANKS_COLLECT, err);
}

bool session_give_out(const struct session_memory *m, const jit_model *model, const struct kv_extent *extent,
                      uint64_t n, struct error *err)
{
	return move_all(m, model, extent, n, RANKS_SPREAD, err);
}
