/* runtime/engine/engine_kept.c - what several ranks keep of a session, gathered on rank 0, and given back.
 *
 * Owns: which bytes of a session's cache and states a rank keeps: those of its layers, or by rows of its heads of keys.
 * Each lies at the same address of the sessions' memory on all ranks (ranks/ranks.h), so rank 0 has room for all.
 */
#include <stdlib.h>

#include "runtime/engine/engine_ranks.h"

/* Up to two ranges of bytes: keys, values. */
struct range {
	uint64_t begin, end;
};

static bool keeps_layer(const struct ranks *r, unsigned rank, uint32_t layer)
{
	return layer >= r->range[rank].first && layer < r->range[rank].end;
}

/* What a rank other than 0 keeps of it. By rows all ranks keep states, and what latent attention keeps, so that rank 0
 * needs nothing of that; given: by it. */
static void find_kept(struct range out[2], const jit_model *m, const struct engine_kept *item, unsigned rank,
                      bool given)
{
	const struct model_spec *s = &m->file.spec;
	const struct ranks *r = m->ranks;

	out[0] = out[1] = (struct range){ 0, 0 };
	if (r->by_rows && (item->layer >= s->layers || s->latent.rank)) {
		out[0].end = given ? item->bytes : 0;
		return;
	}
	if (item->layer >= s->layers) {
		out[0] = (struct range){ plan_state_offset(s, r->range[rank].first),
			                 plan_state_offset(s, r->range[rank].end) };
		return;
	}
	if (!r->by_rows) {
		out[0].end = keeps_layer(r, rank, item->layer) ? item->bytes : 0;
		return;
	}
	const uint64_t heads = model_sizes_of(s, item->layer).kv_heads, keys = item->bytes / 2, head = keys / heads,
		       first = cut_share_begin(&r->shares, rank, heads) * head,
		       end = cut_share_begin(&r->shares, rank + 1, heads) * head;
	out[0] = (struct range){ first, end };
	out[1] = (struct range){ keys + first, keys + end };
}

/* ---- between rank 0 and another one; either side: whether it is the one that sends */

static bool move_range(struct carrier *by, unsigned peer, bool sends, uint8_t *at, struct range r, struct error *err)
{
	if (r.begin >= r.end)
		return true;
	return sends ? carrier_send(by, peer, at + r.begin, r.end - r.begin, err)
	             : carrier_receive(by, peer, at + r.begin, r.end - r.begin, err);
}

/* rank: the one that is not 0. */
static bool move_items(const jit_model *m, const struct engine_kept *item, size_t n, unsigned rank, bool sends,
                       struct error *err)
{
	struct carrier *by = m->ranks->carrier;
	const unsigned peer = by->rank == 0 ? rank : 0;
	struct range kept[2];

	for (size_t i = 0; i < n; i++) {
		uint8_t *at = ranks_at(m->ranks, item[i].at);
		if (!at)
			return error_set(err, ERROR_FORMAT, "memory of a session is not there");
		find_kept(kept, m, &item[i], rank, sends == (by->rank == 0));
		if (!move_range(by, peer, sends, at, kept[0], err) || !move_range(by, peer, sends, at, kept[1], err))
			return false;
	}
	return true;
}

bool engine_move_kept(const jit_model *m, enum ranks_what what, struct engine_kept *kept, size_t n, struct error *err)
{
	struct ranks *r = m->ranks;
	const struct ranks_command c = { .what = what, .bytes = n * sizeof *kept };

	ranks_begin(r);
	bool ok = !n || ranks_tell(r, &c, kept, err);
	for (unsigned i = 1; ok && i < r->carrier->size; i++)
		ok = move_items(m, kept, n, i, what == RANKS_SPREAD, err);
	ranks_end(r);
	return ok;
}

/* ---- other ranks */

bool engine_kept_follow(const jit_model *m, const struct ranks_command *c, struct error *err)
{
	struct engine_kept *item = c->bytes ? malloc((size_t)c->bytes) : NULL;

	if (c->bytes % sizeof *item || !item)
		return error_set(err, item ? ERROR_FORMAT : ERROR_MEMORY, "a list of a session's pieces has %llu bytes",
		                 (unsigned long long)c->bytes);
	const bool ok =
		carrier_broadcast(m->ranks->carrier, 0, item, (size_t)c->bytes, err) &&
		move_items(m, item, c->bytes / sizeof *item, m->ranks->carrier->rank, c->what == RANKS_COLLECT, err);
	free(item);
	return ok;
}
