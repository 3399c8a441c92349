/* runtime/batch_pass.c - a pass of a batch, and the logits that it leaves.
 *
 * Owns: the logits of the last pass. They lie in the engine's memory, where the next one overwrites them; those that
 * nobody has read by then are copied.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/batch.h"
#include "runtime/host/system.h"

bool batch_keep_logits(struct jit_batch *b, struct error *err)
{
	size_t bytes = b->model->file.spec.vocab * sizeof(float);

	for (size_t i = 0; i < b->n; i++) {
		struct batch_member *m = b->member[i];
		jit_session *s = m->session;
		speculate_drop(&s->speculate);
		if (!s->logits_valid || s->logits == m->own_logits)
			continue;
		if (!m->own_logits && !(m->own_logits = malloc(bytes)))
			return error_set(err, ERROR_MEMORY, "no memory for a session's logits");
		memcpy(m->own_logits, s->logits, bytes);
		s->logits = m->own_logits;
	}
	return true;
}

static bool run_piece(struct jit_batch *b, const struct batch_piece *p, struct error *err)
{
	jit_session *s = p->member->session;
	enum plan_logits logits = p->rows == 0 ? PLAN_NO_LOGITS : p->rows == 1 ? PLAN_LAST_LOGITS : PLAN_ALL_LOGITS;

	if (!batch_keep_logits(b, err) || (p->rows > 1 && !engine_map_all_logits(&b->engine, err)))
		return false;
	struct plan *plan =
		engine_find_plan(&b->engine, p->tokens, logits, p->rows ? PROFILE_DECODE : PROFILE_PROMPT, err);
	if (!plan || !session_run(s, plan, p->position, p->ids, PROFILE_DECODE, err))
		return false;
	s->logits = p->rows > 1 ? b->engine.memory.all_logits : b->engine.memory.buf.logits;
	s->logits_valid = p->rows > 0;
	return true;
}

bool batch_run(struct jit_batch *b, const struct batch_piece *piece, uint32_t n, struct error *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (!run_piece(b, &piece[i], err))
			return false;
	return true;
}
