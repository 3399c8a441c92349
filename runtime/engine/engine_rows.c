/* runtime/engine/engine_rows.c - a pass that all ranks compute together, each some rows of every matrix. */
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/engine_ranks.h"
#include "runtime/plan/cut_rows.h"

static uint64_t row_bytes(const struct engine *e) { return numerics_pad(e->model->file.spec.vocab) * sizeof(float); }

/* Values, the logits of one token or of several, and rows of adapters' embeddings. */
static size_t list_spaces(const struct engine *e, struct cut_space space[CUT_SPACES_MAX])
{
	const struct pass_memory *m = &e->memory;
	size_t n = 0;

	space[n++] = (struct cut_space){ (uintptr_t)m->buf.values, m->layout.bytes, false, false };
	space[n++] = (struct cut_space){ (uintptr_t)m->buf.logits, m->buf.logit_tokens * row_bytes(e), true, false };
	if (m->all_logits)
		space[n++] = (struct cut_space){ (uintptr_t)m->all_logits, e->rows * row_bytes(e), true, false };
	if (m->buf.adapt_tokens) { /* to behind adapt_whole: engine_read_rows() */
		const uint64_t begin = (uintptr_t)m->buf.adapt_tokens,
			       row = numerics_pad(e->model->file.spec.hidden) * sizeof(float);
		space[n++] = (struct cut_space){ begin, (uintptr_t)m->buf.adapt_whole + m->buf.tokens * row - begin,
			                         false, true };
	}
	return n;
}

/* When the plan is first run, its slots being set. */
static bool cut(struct engine *e, struct plan *p, struct error *err)
{
	const struct model_spec *s = &e->model->file.spec;
	struct cut_space space[CUT_SPACES_MAX];

	if (!p->rows)
		p->rows = cut_rows_open(p, s, &e->model->weights, &e->model->ranks->shares, space,
		                        list_spaces(e, space), (uint64_t)p->tokens * s->experts_used, err);
	if (!p->rows || p->rows->largest <= e->exchanged_room)
		return p->rows != NULL;
	void *more = realloc(e->exchanged, p->rows->largest);
	if (!more)
		return error_set(err, ERROR_MEMORY, "no memory for %llu bytes that ranks exchange",
		                 (unsigned long long)p->rows->largest);
	e->exchanged = more;
	e->exchanged_room = p->rows->largest;
	return true;
}

static bool run_stages(const struct engine *e, struct plan *all, uint32_t from, uint32_t end, struct error *err)
{
	struct plan part = *all;

	if (from == end)
		return true;
	part.stage += from;
	part.n_stages = end - from;
	if (!e->stream->run(e->stream, &part, e->pool, err))
		return false;
	all->static_share = part.static_share;
	return true;
}

static void pack(uint8_t *to, const struct cut_exchange *x, unsigned rank)
{
	for (size_t i = x->of[rank]; i < x->of[rank + 1]; to += x->range[i++].bytes)
		memcpy(to, x->range[i].at, x->range[i].bytes);
}

static void unpack(const uint8_t *from, const struct cut_exchange *x, unsigned rank)
{
	for (size_t i = x->of[rank]; i < x->of[rank + 1]; from += x->range[i++].bytes)
		memcpy(x->range[i].at, from, x->range[i].bytes);
}

static bool give_first(const struct engine *e, const struct cut_exchange *x, struct error *err)
{
	struct carrier *by = e->model->ranks->carrier;

	if (by->rank != 0 && !x->bytes[by->rank])
		return true;
	if (by->rank != 0) {
		pack(e->exchanged, x, by->rank);
		return carrier_send(by, 0, e->exchanged, x->bytes[by->rank], err);
	}
	for (unsigned r = 1; r < by->size; r++) {
		if (x->bytes[r] && !carrier_receive(by, r, e->exchanged, x->bytes[r], err))
			return false;
		unpack(e->exchanged, x, r);
	}
	return true;
}

static bool give_all(const struct engine *e, const struct cut_exchange *x, struct error *err)
{
	struct carrier *by = e->model->ranks->carrier;
	size_t begin[CARRIER_RANKS_MAX + 1] = { 0 };

	for (unsigned r = 0; r < by->size; r++)
		begin[r + 1] = begin[r] + x->bytes[r];
	pack(e->exchanged + begin[by->rank], x, by->rank);
	if (!carrier_gather_begin(by, e->exchanged, begin, err) || !carrier_gather_wait(by, err))
		return false;
	for (unsigned r = 0; r < by->size; r++)
		if (r != by->rank)
			unpack(e->exchanged + begin[r], x, r);
	return true;
}

bool engine_run_rows(struct engine *e, struct plan *p, struct error *err)
{
	uint32_t stage = 0;

	if (!cut(e, p, err))
		return false;
	struct plan *part = &p->rows->part;
	for (size_t i = 0; i < p->rows->n_exchanges; i++) {
		const struct cut_exchange *x = &p->rows->exchange[i];
		if (!run_stages(e, part, stage, x->stage, err) || !(x->to_first ? give_first : give_all)(e, x, err))
			return false;
		stage = x->stage;
	}
	return run_stages(e, part, stage, (uint32_t)part->n_stages, err);
}
