/* runtime/batch/batch_step.c - a step of a batch: who takes part in the next pass, with which tokens.
 *
 * Owns: the order. Sessions that decode come before prompts, and prompts by when they came. The tokens of prompts in a
 * pass are so many that it should take no longer than was asked for, by what passes took before; so a prompt of any
 * length lets the others wait for one such pass. Where sessions that decode fill whole passes, prompts come first in
 * every other one. Draft tokens come in where all sessions together should get more tokens a second from it. None of it
 * changes a bit of what is computed.
 *
 * Every step gets somewhere: what is pending is either few tokens, which fit into a pass together and whose turn comes,
 * or a prompt, of which a part fits into any pass. A step that gets nowhere all the same is an error.
 */
#include <stdlib.h>

#include "kernels-templates/numerics.h"
#include "runtime/batch/batch.h"
#include "runtime/host/system.h"
#include "runtime/session/session_draft.h"
#include "runtime/model/sized.h"

enum {
	SMALL = 16,       /* tokens that are no prompt, where a pass has room for so many */
	PROMPT_MIN = 16,  /* tokens of prompts in a pass, whatever it takes */
	PROMPT_FIRST = 32 /* before anything was measured */
};

/* ---- what sessions are waiting for */

static bool is_ready(const struct batch_member *m)
{
	const jit_session *s = m->session;
	bool computed = s->computed == s->length && s->logits_valid;

	return m->told != s->length && (computed || m->error.code != ERROR_NONE || s->length > s->context);
}

bool batch_is_pending(const struct batch_member *m)
{
	const jit_session *s = m->session;

	return m->told != s->length && m->error.code == ERROR_NONE && s->computed < s->length &&
	       s->length <= s->context;
}

void batch_fail(struct batch_member *m, const struct error *e)
{
	jit_session *s = m->session;

	if (s->computed < m->submitted)
		session_take_back(s, m->before, e, NULL);
	else
		session_report(s, NULL, e);
	m->told = BATCH_NOT_TOLD;
	m->error = *e;
}

static void find_cancelled(struct jit_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct batch_member *m = b->member[i];
		struct error e = { 0 };
		if (!cancel_requested(&m->session->cancel.own))
			continue;
		cancel_error(&e);
		batch_fail(m, &e);
	}
}

/* Draft tokens that came true have their logits already: these sessions are ready without a pass, and before the next
 * one, in which those would be lost. */
static void find_hits(struct jit_batch *b)
{
	uint64_t stride = numerics_pad(b->model->file.spec.vocab);

	for (size_t i = 0; i < b->n; i++) {
		jit_session *s = b->member[i]->session;
		struct error e = { 0 };
		if (!batch_is_pending(b->member[i]) || s->length - s->computed != 1 ||
		    s->speculate.mode == SPECULATE_OFF ||
		    !speculate_hit(&s->speculate, s->computed, s->ids[s->computed]))
			continue;
		s->logits += stride;
		s->logits_valid = session_check_row(s, s->computed, s->logits, &e);
		if (!s->logits_valid) {
			batch_fail(b->member[i], &e);
			continue;
		}
		s->computed++;
		s->decode_tokens++;
	}
}

static void tell_ready(struct jit_batch *b, jit_session **ready, size_t max, size_t *n)
{
	for (size_t i = 0; i < b->n && *n < max; i++)
		if (is_ready(b->member[i])) {
			b->member[i]->told = b->member[i]->session->length;
			ready[(*n)++] = b->member[i]->session;
		}
}

static bool is_anything_due(const struct jit_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (batch_is_pending(b->member[i]))
			return true;
	return false;
}

size_t jit_batch_pending(const jit_batch *b)
{
	size_t n = 0;

	for (size_t i = 0; b && i < b->n; i++)
		n += is_ready(b->member[i]) || batch_is_pending(b->member[i]);
	return n;
}

/* ---- who takes part */

struct step {
	struct jit_batch *batch;
	struct batch_chunk chunk[BATCH_CHUNKS_MAX];
	uint32_t n, tokens, rows, prompt;
	uint32_t still;                  /* sessions with a few tokens that have no place yet */
	struct speculate_company others; /* tokens: of those that have one, with drafts that come true */
	uint32_t plain, drafted;         /* tokens of the pass without any drafts or prompts; drafts so far */
	bool alone;                      /* one session waits for anything */
};

bool batch_has_room(struct batch_member *m)
{
	struct error e = { 0 };

	if (batch_make_room(m, m->session->length, BATCH_TAKE_OVER, &e))
		return true;
	if (e.code == ERROR_NONE && batch_bytes(m->batch, m->session->length) > m->batch->pages.budget)
		error_set(&e, ERROR_MEMORY, "%zu tokens do not fit into the batch's memory", m->session->length);
	if (e.code)
		batch_fail(m, &e);
	return false;
}

/* Before anybody has a place in the pass: a session that is set back for another's sake came later, and has its turn
 * behind that one. */
static void share_memory(struct jit_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		b->member[i]->takes_part = batch_is_pending(b->member[i]) && !batch_waits_for_pictures(b->member[i]) &&
		                           batch_has_room(b->member[i]);
}

static uint32_t waiting(const jit_session *s) { return (uint32_t)(s->length - batch_begins_at(s)); }

/* They may need a page that the session has not got yet; nobody is set back for it. */
static uint32_t room_for_drafts(const jit_session *s, uint32_t wanted)
{
	struct error none = { 0 };

	if (batch_grant(s->member, s->computed + wanted, BATCH_COMPUTE_ALL, &none))
		return wanted;
	size_t room = s->member->pages.n * NUMERICS_CHUNK - s->computed;
	return room < wanted ? (uint32_t)room : wanted;
}

/* Drafts of a session whose layers keep a state are computed once more where they are refused: that is known of a
 * session that is alone, and not of one among others. */
static bool may_draft(const struct step *step, const jit_session *s)
{
	return s->speculate.mode == SPECULATE_FIXED || step->alone || !s->memory.states.bytes;
}

/* How many draft tokens follow the one that was chosen last. */
static uint32_t draft(struct step *step, jit_session *s, uint32_t room)
{
	const struct batch_costs *costs = &step->batch->costs;

	if (room > s->context - s->computed)
		room = (uint32_t)(s->context - s->computed);
	room = session_adapted_alike(s, s->computed, room);
	if (!may_draft(step, s))
		room = 1;
	room = room > 1 ? room_for_drafts(s, room) : room;
	if (step->alone) {
		session_draft(s, room);
		return speculate_next(&s->speculate, (uint32_t)s->length, room)->tokens - 1;
	}
	for (unsigned w = 0; w < SPECULATE_WIDTHS; w++)
		step->others.seconds[w] =
			batch_costs_hoped(costs, step->plain + step->drafted + speculate_tokens[w] - 1);
	return speculate_next_beside(&s->speculate, (uint32_t)s->length, room, &step->others)->tokens - 1;
}

/* The widest first: passes that differ only in who has which place are of one kind, and have one plan. */
static void put(struct step *step, const struct batch_chunk *p)
{
	uint32_t i = step->n++;

	for (; i > 0 && step->chunk[i - 1].tokens < p->tokens; i--)
		step->chunk[i] = step->chunk[i - 1];
	step->chunk[i] = *p;
}

/* Of the tokens that a session waits for, and draft tokens behind them. */
static void add(struct step *step, struct batch_member *m, uint32_t tokens)
{
	const struct engine *e = &step->batch->engine;
	jit_session *s = m->session;
	struct batch_chunk p = { .member = m, .position = batch_begins_at(s), .tokens = tokens };
	uint32_t wide = e->batch - step->tokens - tokens, high = e->rows - step->rows;

	p.rows = p.position + tokens == s->length;
	p.window = p.rows && s->length - s->computed == 1 && s->speculate.mode != SPECULATE_OFF;
	if (p.window) { /* a place for each of the others comes before drafts */
		wide = (wide > step->still ? wide - step->still : 0) + 1;
		high = high > step->still ? high - step->still : 1;
		p.drafts = draft(step, s, wide < high ? wide : high);
		step->drafted += p.drafts;
	} else {
		step->others.tokens++;
	}
	p.tokens += p.drafts;
	p.rows += p.drafts;
	step->tokens += p.tokens;
	step->rows += p.rows;
	put(step, &p);
}

static bool is_full(const struct step *step)
{
	return step->n == BATCH_CHUNKS_MAX || step->rows == step->batch->engine.rows;
}

/* Few tokens are computed together, and fit into a pass that has nothing else. */
static bool fits(const struct jit_batch *b, uint32_t tokens)
{
	return tokens <= (b->engine.batch < SMALL ? b->engine.batch : SMALL);
}

static bool is_decoding(const struct batch_member *m) { return m->takes_part && fits(m->batch, waiting(m->session)); }

static bool is_prompt(const struct batch_member *m) { return m->takes_part && !fits(m->batch, waiting(m->session)); }

/* What is to be computed without drafts. */
static void count_decoding(struct step *step)
{
	const struct jit_batch *b = step->batch;

	for (size_t i = 0; i < b->n; i++)
		if (is_decoding(b->member[i])) {
			step->plain += waiting(b->member[i]->session);
			step->still++;
		}
	step->others.tokens = step->still;
}

/* Sessions with a few tokens; who comes first changes from pass to pass where not all have room. */
static void add_decoding(struct step *step)
{
	struct jit_batch *b = step->batch;
	size_t first = b->next % (b->n ? b->n : 1);

	for (size_t k = 0; k < b->n; k++) {
		struct batch_member *m = b->member[(first + k) % b->n];
		uint32_t n;
		if (!is_decoding(m))
			continue;
		n = session_adapted_alike(m->session, batch_begins_at(m->session), waiting(m->session));
		if (is_full(step) || step->tokens + n > b->engine.batch) {
			b->next = first + k;
			return;
		}
		step->still--;
		step->others.tokens--;
		add(step, m, n);
	}
}

uint32_t batch_prompt_room(const struct jit_batch *b, uint32_t beside)
{
	uint32_t room = b->engine.batch - beside, fit = PROMPT_FIRST;

	if (batch_costs_of(&b->costs, 1) > 0)
		fit = batch_costs_fit(&b->costs, beside, room, b->max_pass_seconds);
	if (fit < PROMPT_MIN)
		fit = PROMPT_MIN;
	return fit < room ? fit : room;
}

static bool can_join(const struct step *step, const struct batch_member *m)
{
	for (uint32_t i = 0; i < step->n; i++)
		if (step->chunk[i].member == m)
			return true;
	return false;
}

/* At most so many tokens of prompts. */
static void add_prompts(struct step *step, uint32_t max)
{
	struct jit_batch *b = step->batch;
	uint32_t room = batch_prompt_room(b, step->tokens);

	room = room < max ? room : max;
	for (size_t i = 0; i < b->n && room && !is_full(step); i++) {
		struct batch_member *m = b->member[i];
		if (!is_prompt(m) || can_join(step, m))
			continue;
		uint32_t left = waiting(m->session), n = left < room ? left : room;
		n = batch_cut_at_mark(m, batch_begins_at(m->session), n);
		add(step, m, n);
		step->prompt += n;
		room -= n;
	}
}

static bool passes_over_prompts(const struct step *step)
{
	bool waits = false;

	for (size_t i = 0; i < step->batch->n; i++)
		waits = waits || is_prompt(step->batch->member[i]);
	return waits && !step->prompt;
}

/* Sessions that wait for a few tokens, then prompts; the other way round where these had no place in the last pass. */
static void add_all(struct step *step)
{
	struct jit_batch *b = step->batch;

	count_decoding(step);
	if (b->passed_over)
		add_prompts(step, PROMPT_MIN);
	add_decoding(step);
	add_prompts(step, UINT32_MAX);
	b->passed_over = passes_over_prompts(step);
}

/* ---- what a pass leaves */

static void finish_chunk(const struct batch_chunk *p)
{
	jit_session *s = p->member->session;
	size_t behind = p->position + p->tokens - p->drafts, from = p->member->before.computed;
	struct error e = { 0 };
	uint64_t *count = s->length - s->computed > 1 ? &s->prompt_tokens : &s->decode_tokens;

	s->decode_passes += count == &s->decode_tokens;
	if (behind > s->computed) {
		*count += behind - s->computed;
		s->computed = behind;
	}
	batch_pages_publish(p->member);
	if (count == &s->prompt_tokens)
		session_tell_prompt(s);
	s->logits_valid = p->rows > 0;
	if (!p->rows)
		return;
	if (session_check_row(s, s->computed - 1, s->logits, &e)) {
		p->member->submitted = 0; /* they were taken: should it be set back, they stay, whatever fails then */
		return;
	}
	s->logits_valid = false;
	if (s->computed == p->member->submitted)
		session_refuse_prompt(s, from, &e);
	else
		session_go_back(s, s->computed - 1);
	batch_fail(p->member, &e);
}

static void count(struct step *step, double seconds)
{
	struct jit_batch *b = step->batch;
	jit_batch_stats *t = &b->stats;
	unsigned width = 0;

	while (width < 15 && step->n > 1u << width)
		width++;
	t->passes++;
	t->tokens += step->tokens;
	t->prompt_tokens += step->prompt;
	t->decode_tokens += step->tokens - step->prompt;
	t->seconds += seconds;
	t->width[width]++;
	batch_costs_took(&b->costs, step->tokens, seconds);
}

static bool run(struct step *step, struct error *err)
{
	double start = step->batch->now();

	for (uint32_t i = 0; i < step->n; i++) {
		batch_keep_marks(step->chunk[i].member, step->chunk[i].position, step->chunk[i].tokens);
		step->chunk[i].member->session->logits_valid = false; /* it gets others, or none: nothing to keep */
	}
	if (!batch_copy_logits(step->batch, err) || !batch_run(step->batch, step->chunk, step->n, err))
		return false;
	double seconds = step->batch->now() - start;
	count(step, seconds);
	if (step->n == 1 && step->chunk->window)
		speculate_took(&step->chunk->member->session->speculate, seconds);
	for (uint32_t i = 0; i < step->n; i++)
		finish_chunk(&step->chunk[i]);
	return true;
}

/* Whether a session of the pass waits for fewer tokens than before, or for none any more. */
static bool got_somewhere(const struct step *step)
{
	for (uint32_t i = 0; i < step->n; i++) {
		const struct batch_chunk *p = &step->chunk[i];
		if (!batch_is_pending(p->member) || batch_begins_at(p->member->session) > p->position)
			return true;
	}
	return false;
}

static bool step_once(struct jit_batch *b, jit_session **ready, size_t max, size_t *n, struct error *err)
{
	struct step step = { .batch = b };

	if (cancel_any(&b->cancel))
		return cancel_error(err);
	find_cancelled(b);
	find_hits(b);
	tell_ready(b, ready, max, n);
	if (*n)
		return true;
	step.alone = jit_batch_pending(b) == 1;
	if (batch_pictures_are_next(b) && batch_compute_pictures(b)) {
		tell_ready(b, ready, max, n);
		return true;
	}
	batch_drop_windows(b);
	share_memory(b);
	add_all(&step);
	if (!step.n && batch_compute_pictures(b)) {
		tell_ready(b, ready, max, n);
		return true;
	}
	if (step.n && !run(&step, err))
		return false;
	tell_ready(b, ready, max, n);
	return *n || !is_anything_due(b) || got_somewhere(&step) || batch_refuse_stall(b, err);
}

int jit_batch_step(jit_batch *b, jit_session **ready, size_t max, size_t *n, jit_error *err)
{
	struct error e = { 0 };

	if (n)
		*n = 0;
	if (NEEDED(b, &e) && NEEDED_LIST(ready, max, &e) && NEEDED(n, &e))
		step_once(b, ready, max, n, &e);
	return model_report(err, &e);
}
