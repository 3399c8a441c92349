/* runtime/engine/engine_ranks.c - a pass that several ranks compute: rank 0's side, and what all have in common. See
 * engine_ranks.h. */
#include "runtime/engine/engine_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/model/adapters.h"
#include "runtime/plan/cut.h"

static struct ranks *ranks_of(const struct engine *e) { return e->model->ranks; }

/* The first op of a layer; where a plan ends without logits, its end stands for them. */
static uint32_t op_of_layer(const struct plan *p, uint32_t layer)
{
	return layer + 1 < p->n_sections ? p->section[layer + 1] : (uint32_t)p->n_ops;
}

/* The stage that begins with that op. */
static size_t stage_of(const struct plan *p, uint32_t op)
{
	size_t s = 0;

	while (s < p->n_stages && p->stage[s] < op)
		s++;
	return s;
}

static bool run_ops(const struct engine *e, struct plan *p, uint32_t from, uint32_t end, struct error *err)
{
	const size_t first = stage_of(p, from), n = stage_of(p, end) - first;
	struct plan part = *p;

	part.stage += first;
	part.n_stages = n;
	if (n && !e->stream->run(e->stream, &part, e->pool, err))
		return false;
	p->static_share = part.static_share;
	return true;
}

/* ---- what is carried */

/* Of both cuts of this rank's: in front of its layers, and behind them; on rank 0 behind them, and before the logits.
 */
static bool find_carried(const struct engine *e, struct plan *p, struct error *err)
{
	const struct model_spec *s = &e->model->file.spec;
	const struct split_range own = ranks_own(ranks_of(e));
	const bool first = ranks_of(e)->carrier->rank == 0;
	const uint64_t choices = (uint64_t)p->tokens * s->experts_used;

	if (p->carried)
		return true;
	if (!(p->carried = calloc(2, sizeof *p->carried)))
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %u layers", s->layers);
	return cut_carried(p, &e->memory.buf, choices, op_of_layer(p, first ? s->layers : own.first), &p->carried[0],
	                   err) &&
	       cut_carried(p, &e->memory.buf, choices, op_of_layer(p, own.end), &p->carried[1], err);
}

static bool send_carried(const struct engine *e, const struct cut_carried *c, unsigned to, struct error *err)
{
	struct carrier *by = ranks_of(e)->carrier;

	if (!carrier_send(by, to, &c->bytes, sizeof c->bytes, err))
		return false;
	for (size_t i = 0; i < c->n; i++)
		if (!carrier_send(by, to, c->range[i].at, c->range[i].bytes, err))
			return false;
	return true;
}

static bool receive_carried(const struct engine *e, const struct cut_carried *c, unsigned from, struct error *err)
{
	struct carrier *by = ranks_of(e)->carrier;
	uint64_t bytes;

	if (!carrier_receive(by, from, &bytes, sizeof bytes, err))
		return false;
	if (bytes != c->bytes)
		return error_set(err, ERROR_DEVICE,
		                 "rank %u sends %llu bytes of a pass, and %llu are expected: this is a fault of jitrun",
		                 from, (unsigned long long)bytes, (unsigned long long)c->bytes);
	for (size_t i = 0; i < c->n; i++)
		if (!carrier_receive(by, from, c->range[i].at, c->range[i].bytes, err))
			return false;
	return true;
}

/* ---- other ranks */

bool engine_run_share(struct engine *e, struct plan *p, struct error *err)
{
	if (ranks_of(e)->by_rows)
		return engine_run_rows(e, p, err);
	const struct carrier *by = ranks_of(e)->carrier;
	const struct split_range own = ranks_own(ranks_of(e));
	const bool last = by->rank + 1 == by->size;

	if (!find_carried(e, p, err) || !receive_carried(e, &p->carried[0], by->rank - 1, err) ||
	    !run_ops(e, p, op_of_layer(p, own.first), op_of_layer(p, own.end), err))
		return false;
	return (last && p->logits == PLAN_NO_LOGITS) || send_carried(e, &p->carried[1], last ? 0 : by->rank + 1, err);
}

/* ---- rank 0 */

bool engine_tell_open(struct engine *e, int threads, struct error *err)
{
	struct ranks *r = ranks_of(e);
	struct engine_numbers n = {
		.kv = e->kv,
		.context = e->context,
		.batch = e->batch,
		.tokens = e->tokens,
		.rows = e->rows,
		.drafts = e->drafts,
		.speculate = (uint32_t)e->speculate,
		.exact = e->exact,
		.adapted = e->adapted,
		.threads = threads
	};

	ranks_begin(r);
	e->number = ++r->last_number;
	const struct ranks_command c = { .what = RANKS_ENGINE, .number = e->number, .bytes = sizeof n };
	const bool ok = ranks_tell(r, &c, &n, err) && ranks_replies(r, err);
	ranks_end(r);
	return ok;
}

void engine_tell_close(struct engine *e)
{
	struct ranks *r = ranks_of(e);

	if (!e->number)
		return;
	ranks_begin(r);
	ranks_tell(r, &(struct ranks_command){ .what = RANKS_ENGINE_CLOSE, .number = e->number }, NULL, NULL);
	ranks_end(r);
	e->number = 0;
	free(e->message);
}

/* Of a plan over several sequences; NULL: it is one session's. */
static const struct engine_joint *joint_of(const struct engine *e, const struct plan *p)
{
	for (size_t i = 0; e->joint && i < ENGINE_JOINT_MAX; i++)
		if (e->joint[i].plan == p)
			return &e->joint[i];
	return NULL;
}

/* Entries of a table that a run over so many tokens reads: up to the last one's, and one more. */
static uint32_t pages_of(uint64_t position, uint32_t tokens)
{
	return (uint32_t)((position + tokens - 1) / NUMERICS_CHUNK) + 2;
}

static ranks_address *put_table(ranks_address *to, const struct ranks *r, const void *table, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at;
		memcpy(&at, (const uint8_t *)table + i * sizeof at, sizeof at);
		*to++ = ranks_address_of(r, (const void *)(uintptr_t)at);
	}
	return to;
}

/* Sets *bytes, and e->message. */
static bool write_pass(struct engine *e, const struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                       size_t *bytes, struct error *err)
{
	const struct engine_joint *j = joint_of(e, p);
	const struct plan_span alone = { 0, p->tokens, p->logits == PLAN_NO_LOGITS ? 0 : 1 };
	const struct plan_span *span = j ? j->span : &alone;
	const uint32_t spans = j ? j->spans : 1, tables = e->kv.window_page_bytes ? 2 : 1;
	const struct ranks *r = ranks_of(e);
	const uint32_t sets = e->adapts ? e->sets : 0;
	size_t pages = 0;

	for (uint32_t i = 0; i < spans; i++)
		pages += pages_of(at[i].position, span[i].tokens);
	*bytes = sizeof(struct engine_pass) + spans * sizeof(struct engine_span) +
	         tables * pages * sizeof(ranks_address) + sets * sizeof(struct adapt_set);
	if (*bytes > e->message_room) {
		void *more = realloc(e->message, *bytes);
		if (!more)
			return error_set(err, ERROR_MEMORY, "no memory for what is told of a pass");
		e->message = more;
		e->message_room = *bytes;
	}
	struct engine_pass *head = (struct engine_pass *)e->message;
	struct engine_span *s = (struct engine_span *)(head + 1);
	ranks_address *to = (ranks_address *)(s + spans);
	*head = (struct engine_pass){ p->tokens,      (uint32_t)p->logits, (uint32_t)kind, spans, j != NULL,
		                      j && j->normed, at->position,        sets,           0 };
	for (uint32_t i = 0; i < spans; i++) {
		s[i] = (struct engine_span){ .span = span[i],
			                     .pages = pages_of(at[i].position, span[i].tokens),
			                     .set = sets ? (uint32_t)e->set_of[i] : 0,
			                     .position = at[i].position,
			                     .before = ranks_address_of(r, at[i].before),
			                     .behind = ranks_address_of(r, at[i].behind) };
		to = put_table(to, r, at[i].pages, s[i].pages);
		if (tables == 2)
			to = put_table(to, r, at[i].window_pages, s[i].pages);
	}
	if (sets)
		memcpy(to, e->memory.buf.adapt_sets, sets * sizeof(struct adapt_set));
	return true;
}

/* Who cuts a plan by rows needs the same one on all ranks, so it must be of the adapters that they have now: between
 * ranks_begin() and ranks_end() none comes or goes. */
static bool match_adapters(struct engine *e, struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                           struct error *err)
{
	if (!e->adapts || p->adapted == adapters_version(e->model))
		return true;
	if (!engine_build_again(e, p, at->position, kind, err))
		return false;
	plan_set_sequences(p, at);
	engine_set_tiles(e, p);
	return true;
}

/* All ranks begin it together, and none may leave it: who is to cancel it waits until it is over. */
static bool run_together(struct engine *e, struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                         struct error *err)
{
	const struct cancel *cancel = e->stream->cancel;
	struct ranks *r = ranks_of(e);
	size_t bytes = 0;

	if (cancel_any(cancel))
		return cancel_error(err);
	ranks_begin(r);
	e->stream->cancel = NULL;
	bool ok = match_adapters(e, p, at, kind, err) && write_pass(e, p, at, kind, &bytes, err);
	const struct ranks_command c = { .what = RANKS_PASS, .number = e->number, .bytes = bytes };
	ok = ok && ranks_tell(r, &c, e->message, err) && engine_run_rows(e, p, err);
	e->stream->cancel = cancel;
	ranks_end(r);
	return ok;
}

/* To the next rank, and back from the last one where logits are wanted. */
static bool pass_on(struct engine *e, const struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                    struct error *err)
{
	struct ranks *r = ranks_of(e);
	size_t bytes = 0;

	ranks_begin(r);
	bool ok = write_pass(e, p, at, kind, &bytes, err);
	const struct ranks_command c = { .what = RANKS_PASS, .number = e->number, .bytes = bytes };
	ok = ok && ranks_tell(r, &c, e->message, err) && send_carried(e, &p->carried[1], 1, err) &&
	     (p->logits == PLAN_NO_LOGITS || receive_carried(e, &p->carried[0], r->carrier->size - 1, err));
	ranks_end(r);
	return ok;
}

bool engine_run_ranks(struct engine *e, struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                      struct error *err)
{
	const uint32_t layers = e->model->file.spec.layers;

	if (ranks_of(e)->by_rows)
		return run_together(e, p, at, kind, err);
	return find_carried(e, p, err) && run_ops(e, p, 0, op_of_layer(p, ranks_own(ranks_of(e)).end), err) &&
	       pass_on(e, p, at, kind, err) && run_ops(e, p, op_of_layer(p, layers), (uint32_t)p->n_ops, err);
}
