/* runtime/batch/batch_turns.c - what stays for the next turn of a conversation, where layers keep windows or states.
 *
 * These belong to the end of a text: who goes on with less of it finds nothing to go on with. Two places are worth
 * keeping. Templates leave reasoning out of earlier answers, so the next prompt is the last one, but for what began its
 * answer, and then goes on differently. And conversations that begin with the same instructions part behind them.
 *
 * Owns: these places, the marks. States stay where one ends, and passes over prompts end there. What windows hold at a
 * mark is copied when they are about to slide past it, so that short answers cost nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/batch/batch.h"
#include "runtime/session/session_kv.h"

/* With what templates begin an answer, which the next prompt may not repeat; a beginning that is worth a copy. */
enum { BEGINS_ANSWER = 16, MIN_WORTH = NUMERICS_CHUNK };

static void copy_marks(struct batch_member *m)
{
	for (int i = 0; i < BATCH_MARKS; i++)
		m->session->memory.states.mark[i] = m->mark[i];
}

void batch_mark_turn(struct batch_member *m, size_t n)
{
	size_t at = m->session->length - (n < BEGINS_ANSWER ? n : BEGINS_ANSWER);

	if (!m->batch->fixed_bytes || n <= BEGINS_ANSWER || at < MIN_WORTH)
		return;
	m->mark[MARK_TURN] = at;
	if (m->admitted)
		copy_marks(m);
}

/* A state that is there already and nearly as far will do. */
void batch_mark_fork(struct batch_member *m, const struct batch_found *from)
{
	size_t at = from->same - from->tokens > BEGINS_ANSWER ? from->same : from->tokens;

	m->mark[MARK_FORK] = m->batch->fixed_bytes && at >= MIN_WORTH && at < m->mark[MARK_TURN] ? at : 0;
	copy_marks(m);
}

uint32_t batch_cut_at_mark(const struct batch_member *m, uint64_t position, uint32_t n)
{
	for (int i = 0; m->session->memory.states.bytes && i < BATCH_MARKS; i++)
		if (m->mark[i] > position && m->mark[i] < position + n)
			n = (uint32_t)(m->mark[i] - position);
	return session_adapted_alike(m->session, position, n);
}

/* ---- windows */

static bool would_be_lost(const struct batch_member *m, size_t mark, uint64_t position, uint32_t tokens)
{
	const struct model_spec *spec = &m->batch->model->file.spec;
	struct session_memory after = m->session->memory;

	if (!mark || mark >= position || !session_memory_serves(spec, mark, after.window_first))
		return false;
	session_memory_slide(&after, spec, position, tokens);
	return !session_memory_serves(spec, mark, after.window_first);
}

static bool is_remembered(const struct batch_member *m, size_t mark)
{
	const struct jit_batch *b = m->batch;

	for (size_t i = 0; i < b->n_kept; i++)
		if (b->kept[i].computed >= mark && b->kept[i].adapters == m->session->adapters.root &&
		    memcmp(b->kept[i].ids, session_keys(m->session), mark * sizeof *b->kept[i].ids) == 0 &&
		    session_memory_serves(&b->model->file.spec, mark, b->kept[i].memory.window_first))
			return true;
	return false;
}

static bool copy_memory(struct batch_kept *k, const struct batch_member *m, struct error *err)
{
	const struct jit_batch *b = m->batch;
	const struct session_memory *from = &m->session->memory;
	const struct model_spec *spec = &b->model->file.spec;

	k->memory.kv.type = from->kv.type;
	if (!session_memory_open(&k->memory, b->model->device, spec, b->engine.tokens, b->context,
	                         SESSION_PAGES_ELSEWHERE, err))
		return false;
	for (size_t i = 0; i < k->pages.n; i++)
		session_memory_set_page(&k->memory, (uint32_t)i, k->pages.page[i]->at);
	session_memory_begin_window(&k->memory, spec, k->computed, from->window_first);
	return kv_copy(&k->memory, from, spec, k->computed, k->computed, err);
}

/* The first tokens, with their pages and what windows hold there. Nothing else makes room for it. */
static void remember(struct batch_member *m, size_t tokens)
{
	struct jit_batch *b = m->batch;
	size_t chunks = kv_chunks(tokens);
	struct batch_kept k = { .ids = malloc(tokens * sizeof *k.ids), .computed = tokens };
	struct error ignored = { 0 };

	k.adapters = m->session->adapters.root;
	k.pages.page = malloc(chunks * sizeof(struct kv_page *));
	bool reserved = k.ids && k.pages.page && kv_pages_reserve(&b->pages, b->fixed_bytes);
	if (reserved) {
		memcpy(k.ids, session_keys(m->session), tokens * sizeof *k.ids);
		for (; k.pages.n < chunks; k.pages.n++) {
			k.pages.page[k.pages.n] = m->pages.page[k.pages.n];
			kv_pages_hold(&b->pages, k.pages.page[k.pages.n], KV_REMEMBERS);
		}
		k.pages.capacity = chunks;
		if (copy_memory(&k, m, &ignored) && batch_remember(b, &k))
			return;
		kv_pages_give_back(&b->pages, b->fixed_bytes);
	}
	while (k.pages.n)
		kv_pages_drop(&b->pages, k.pages.page[--k.pages.n], KV_REMEMBERS);
	session_memory_close(&k.memory);
	free(k.pages.page);
	free(k.ids);
}

void batch_keep_marks(struct batch_member *m, uint64_t position, uint32_t tokens)
{
	for (int i = 0; m->session->memory.window_chunks && i < BATCH_MARKS; i++)
		if (would_be_lost(m, m->mark[i], position, tokens) && !is_remembered(m, m->mark[i]))
			remember(m, m->mark[i]);
}
