/* runtime/batch/batch_pass.c - a pass of a batch, and the logits that it leaves.
 *
 * Owns: the logits of the last pass. They lie in the engine's memory, where the next one overwrites them; those that
 * nobody has read by then are copied.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/batch/batch.h"
#include "runtime/host/system.h"

void batch_drop_windows(struct jit_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		speculate_drop(&b->member[i]->session->speculate);
}

bool batch_copy_logits(struct jit_batch *b, struct error *err)
{
	size_t bytes = b->model->file.spec.vocab * sizeof(float);

	for (size_t i = 0; i < b->n; i++) {
		struct batch_member *m = b->member[i];
		jit_session *s = m->session;
		if (!s->logits_valid || s->logits == m->own_logits)
			continue;
		if (!m->own_logits && !(m->own_logits = malloc(bytes)))
			return error_set(err, ERROR_MEMORY, "no memory for a session's logits");
		memcpy(m->own_logits, s->logits, bytes);
		s->logits = m->own_logits;
	}
	return true;
}

bool batch_keep_logits(struct jit_batch *b, struct error *err)
{
	batch_drop_windows(b);
	return batch_copy_logits(b, err);
}

bool batch_refuse_stall(const struct jit_batch *b, struct error *err)
{
	return error_set(err, ERROR_STALLED,
	                 "a step of the batch computed nothing although %zu sessions wait for tokens; passes have at "
	                 "most %u tokens: this is a fault of jitrun",
	                 jit_batch_pending(b), b->engine.batch);
}

/* ---- a pass over several sessions */

struct pass {
	struct plan *plan;
	const float *logits; /* where it leaves its rows */
	struct plan_span span[BATCH_CHUNKS_MAX];
	struct plan_sequence at[BATCH_CHUNKS_MAX];
};

static void cut(struct pass *p, const struct batch_chunk *chunk, uint32_t n)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < n; first += chunk[i++].tokens)
		p->span[i] = (struct plan_span){ first, chunk[i].tokens, chunk[i].rows };
}

/* Its tokens and their angles, and where its session keeps what. */
static bool append_chunk(struct jit_batch *b, struct pass *p, const struct batch_chunk *chunk, uint32_t i,
                         struct error *err)
{
	const struct plan_buffers *buf = &b->engine.memory.buf;
	jit_session *s = chunk->member->session;
	uint32_t first = p->span[i].first, text = chunk->tokens - chunk->drafts;

	memcpy(buf->ids + first, s->ids + chunk->position, text * sizeof *s->ids);
	memcpy(buf->ids + first + text, s->speculate.window.ids + 1, chunk->drafts * sizeof *s->ids);
	engine_read_rows(&b->engine, session_adapters_at(s, chunk->position), first, chunk->tokens);
	plan_fill_positions(buf, &b->model->file.spec, first, chunk->position, chunk->tokens);
	session_fill_angles(s, buf, first, chunk->position, chunk->tokens);
	return session_begin_run(s, chunk->position, chunk->tokens, &p->at[i], err);
}

/* One session's pass without draft tokens is like any other session's, whose kernels are known and tuned. */
static bool find_plan(struct jit_batch *b, struct pass *p, const struct batch_chunk *chunk, uint32_t n,
                      struct error *err)
{
	struct engine *e = &b->engine;
	const struct adapters_chosen *chosen[BATCH_CHUNKS_MAX] = { NULL };

	for (uint32_t i = 0; i < n; i++)
		chosen[i] = session_adapters_at(chunk[i].member->session, chunk[i].position);
	engine_adapt(e, chosen, n);
	engine_show(e, false);
	if (n == 1 && chunk->rows <= 1) {
		p->logits = e->memory.buf.logits;
		p->plan = engine_find_plan(e, chunk->tokens, chunk->position,
		                           chunk->rows ? PLAN_LAST_LOGITS : PLAN_NO_LOGITS,
		                           chunk->tokens == 1 ? PROFILE_DECODE : PROFILE_PROMPT, err);
		return p->plan != NULL;
	}
	if (!engine_map_all_logits(e, err))
		return false;
	p->logits = e->memory.all_logits;
	p->plan = engine_find_joint(e, p->span, n, false, err);
	return p->plan != NULL;
}

static void take_rows(struct jit_batch *b, const struct pass *p, const struct batch_chunk *chunk, uint32_t n)
{
	uint64_t stride = numerics_pad(b->model->file.spec.vocab);
	uint32_t row = 0;

	for (uint32_t i = 0; i < n; row += chunk[i++].rows) {
		jit_session *s = chunk[i].member->session;
		session_end_run(s, &p->at[i], chunk[i].tokens);
		s->logits = p->logits + row * stride;
		s->logits_valid = chunk[i].rows > 0;
	}
}

/* False with err->code 0: it needs several passes. */
static bool run_joint(struct jit_batch *b, const struct batch_chunk *chunk, uint32_t n, struct error *err)
{
	struct pass p;

	cut(&p, chunk, n);
	if (!find_plan(b, &p, chunk, n, err))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!append_chunk(b, &p, &chunk[i], i, err))
			return false;
	if (!engine_run(&b->engine, p.plan, p.at, PROFILE_DECODE, &b->cancel, err))
		return false;
	take_rows(b, &p, chunk, n);
	return true;
}

bool batch_run(struct jit_batch *b, const struct batch_chunk *chunk, uint32_t n, struct error *err)
{
	if (run_joint(b, chunk, n, err))
		return true;
	for (uint32_t i = 0; err->code == ERROR_NONE && i < n; i++)
		if (!batch_keep_logits(b, err) || !run_joint(b, &chunk[i], 1, err))
			return false;
	return err->code == ERROR_NONE;
}
