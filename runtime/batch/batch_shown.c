/* runtime/batch/batch_shown.c - passes of a batch over pictures, and over the texts in front of them.
 *
 * Such a pass has the tokens of one session alone. Owns: whose it is, that others have every second pass meanwhile, and
 * that it takes no longer than they shall wait, unless a picture's tokens see each other and cannot be cut.
 */
#include "runtime/batch/batch.h"
#include "runtime/session/session_pictures.h"
#include "runtime/session/session_state.h"

bool batch_waits_for_pictures(const struct batch_member *m)
{
	return batch_is_pending(m) && session_pictures_due(m->session, batch_begins_at(m->session));
}

static void count(struct jit_batch *b, uint32_t tokens, double seconds)
{
	b->stats.passes++;
	b->stats.tokens += tokens;
	b->stats.prompt_tokens += tokens;
	b->stats.seconds += seconds;
	b->stats.width[0]++;
	if (tokens)
		batch_costs_took(&b->costs, tokens, seconds);
}

static void compute(struct batch_member *m)
{
	struct jit_batch *b = m->batch;
	jit_session *s = m->session;
	const size_t before = s->computed;
	const double start = b->now();
	struct error e = { 0 };

	if (!batch_keep_logits(b, &e) || !session_compute_passes(s, PROFILE_PROMPT, batch_prompt_room(b, 0), &e)) {
		batch_fail(m, &e);
		return;
	}
	count(b, (uint32_t)(s->computed - before), b->now() - start);
	s->prompt_tokens += s->computed - before;
	batch_pages_publish(m);
	if (s->computed == s->length)
		m->submitted = 0;
}

bool batch_compute_pictures(struct jit_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct batch_member *m = b->member[i];
		if (!batch_waits_for_pictures(m) || !batch_has_room(m) || !batch_waits_for_pictures(m))
			continue;
		compute(m);
		return true;
	}
	return false;
}

bool batch_pictures_are_next(struct jit_batch *b)
{
	bool others = false;

	for (size_t i = 0; i < b->n; i++)
		others = others || (batch_is_pending(b->member[i]) && !batch_waits_for_pictures(b->member[i]));
	b->showed = !(b->showed && others);
	return b->showed;
}
