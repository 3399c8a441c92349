/* runtime/batch/batch_memory.c - the memory that the sessions of a batch keep their tokens in.
 *
 * Owns: who has memory. It is counted in pages of 128 positions, of which several sessions may have one
 * (batch_pages.c), and what a session needs beside them in any case. A session is admitted when its whole text has room
 * beside all others', and gets a page when it grows by one. Where there is none, first what is remembered goes
 * (batch_kept.c), then sessions are set back: what they computed is remembered, as long as there is room, and the rest
 * is computed again. A new session takes over what was computed for its first tokens.
 */
#include <stdlib.h>

#include "runtime/batch/batch.h"
#include "runtime/host/system.h"
#include "runtime/session/session_kv.h"

/* Of what is free; of a card that does not know, so many sessions. */
enum { SHARE_OF_FREE = 2, SESSIONS_ON_CARDS = 4 };

/* For pages, where nobody says how much. session: the bytes of one whole context. */
static uint64_t usual_budget(struct device *d, uint64_t session)
{
	uint64_t left;

	if (d->facts.host_runs)
		return system_available_memory() / SHARE_OF_FREE;
	return d->available && d->available(d, &left) ? left / SHARE_OF_FREE : session * SESSIONS_ON_CARDS;
}

uint32_t batch_usual_context(const struct jit_batch *b, uint64_t bytes)
{
	struct device *d = b->model->device;
	const struct model_spec *spec = &b->model->file.spec;
	/* What is free may have become less when the pages are opened. */
	uint64_t memory = bytes ? bytes : usual_budget(d, 0) / 8 * 7;
	uint32_t n = session_usual_context(spec, b->engine.kv.type, memory);

	return d->facts.awaits ? session_card_context(spec, n) : n;
}

/* A card's driver is asked at once: a batch that has no room for a single token is of no use. */
static bool has_first_page(const struct jit_batch *b, struct error *err)
{
	struct device *d = b->model->device;
	const size_t fixed = b->fixed_bytes, page = b->pages.page_bytes ? b->pages.page_bytes + SESSION_PAGE_SLACK : 0;
	struct error ignored = { 0 };
	uint64_t left = 0;
	bool known = d->available && d->available(d, &left);
	void *first = fixed ? d->alloc(d, fixed, DEVICE_CACHE, &ignored) : NULL,
	     *second = page ? d->alloc(d, page, DEVICE_CACHE, &ignored) : NULL;
	bool ok = (first || !fixed) && (second || !page);

	if (first)
		d->release(d, first, fixed);
	if (second)
		d->release(d, second, page);
	if (!ok && known)
		error_set(
			err, ERROR_MEMORY,
			"the card has %llu bytes left beside the weights, and the first tokens of a session take %llu",
			(unsigned long long)left, (unsigned long long)(fixed + page));
	else if (!ok)
		error_set(err, ERROR_MEMORY,
		          "the card has no room beside the weights for the %llu bytes that the first tokens of a "
		          "session take",
		          (unsigned long long)(fixed + page));
	return ok;
}

bool batch_memory_open(struct jit_batch *b, uint64_t bytes, struct error *err)
{
	struct device *d = b->model->device;
	const struct engine *e = &b->engine;
	struct session_memory m = { .kv.type = e->kv.type };

	session_memory_measure(&m, &b->model->file.spec, e->tokens, b->context);
	b->fixed_bytes = session_memory_fixed_bytes(&m);
	kv_pages_open(&b->pages, d, m.kv.page_bytes, bytes ? bytes : usual_budget(d, m.kv_bytes));
	if (batch_bytes(b, 1) > b->pages.budget)
		return error_set(
			err, ERROR_MEMORY,
			bytes ? "kv_bytes: %llu are less than the %llu that the first tokens of a session take"
			      : "%llu bytes are free for the KV cache beside the weights, and the first tokens of a "
				"session take %llu",
			(unsigned long long)b->pages.budget, (unsigned long long)batch_bytes(b, 1));
	return d->facts.host_runs || has_first_page(b, err);
}

void batch_memory_close(struct jit_batch *b)
{
	while (b->n_kept)
		batch_forget(b, b->n_kept - 1);
	free(b->kept);
	kv_pages_close(&b->pages);
}

uint64_t batch_bytes(const struct jit_batch *b, size_t positions)
{
	return b->fixed_bytes + kv_chunks(positions) * b->pages.page_bytes;
}

/* ---- who has memory */

static bool has_room(const struct batch_member *m, uint64_t fixed, size_t chunks)
{
	const struct jit_batch *b = m->batch;

	return fixed + batch_pages_wanted(m, chunks) <= kv_pages_available(&b->pages, batch_kept_fixed(b));
}

/* As it lies there; the rest of what was remembered goes. */
static void take_kept_memory(struct batch_member *m, size_t kept)
{
	struct batch_kept *k = &m->batch->kept[kept];

	m->session->memory = k->memory;
	k->memory = (struct session_memory){ 0 };
	m->admitted = true;
	batch_forget(m->batch, kept);
	session_memory_keep_pages(&m->session->memory, (uint32_t)m->pages.n);
}

/* With what belongs to the end of what was found: copied, where there is room for both. */
static bool take_memory(struct batch_member *m, struct batch_found *from, struct error *err)
{
	struct jit_batch *b = m->batch;
	jit_session *s = m->session;
	const struct model_spec *spec = &b->model->file.spec;

	while (!kv_pages_reserve(&b->pages, b->fixed_bytes))
		if (!batch_forget_some(b, &from->kept)) { /* what was found is all there is */
			if (from->kept != SIZE_MAX)
				take_kept_memory(m, from->kept);
			return m->admitted;
		}
	m->admitted = true;
	if (!session_memory_open(&s->memory, b->model->device, spec, b->engine.tokens, b->context,
	                         SESSION_PAGES_ELSEWHERE, err))
		return false;
	for (size_t i = 0; i < m->pages.n; i++)
		session_memory_set_page(&s->memory, (uint32_t)i, m->pages.page[i]->at);
	if (from->kept != SIZE_MAX)
		from->memory = &b->kept[from->kept].memory;
	if (!from->tokens || !b->fixed_bytes)
		return true;
	session_memory_begin_window(&s->memory, spec, from->tokens, from->memory->window_first);
	return kv_copy(&s->memory, from->memory, spec, from->tokens, from->tokens, err);
}

/* Whether what is remembered is the session's from now on, who says nearly all of it again. */
static bool becomes_its_own(const struct batch_member *m, const struct batch_found *from, size_t chunks)
{
	const struct jit_batch *b = m->batch;

	if (from->kept == SIZE_MAX || !from->tokens)
		return false;
	return from->tokens + 1 >= from->computed ||
	       (b->fixed_bytes && 2 * b->fixed_bytes + batch_pages_wanted(m, chunks) >
	                                  kv_pages_available(&b->pages, batch_kept_fixed(b))); /* no room for both */
}

static void leave(struct batch_member *m)
{
	jit_session *s = m->session;

	if (m->admitted)
		kv_pages_give_back(&m->batch->pages, m->batch->fixed_bytes);
	batch_pages_keep(m, 0);
	free(m->pages.page);
	m->pages = (struct batch_pages){ 0 };
	session_memory_close(&s->memory);
	s->memory = (struct session_memory){ .kv.type = m->batch->engine.kv.type };
	m->admitted = false;
}

/* A member without memory gets it, with the beginning that was found. */
static bool admit(struct batch_member *m, size_t chunks, struct batch_found from, struct error *err)
{
	struct jit_batch *b = m->batch;
	jit_session *s = m->session;

	if (from.tokens && !batch_pages_adopt(m, from.pages, kv_chunks(from.tokens), err))
		return false;
	s->computed = from.tokens;
	bool own = becomes_its_own(m, &from, chunks), fixed = own && b->fixed_bytes;
	bool ok = has_room(m, fixed ? 0 : b->fixed_bytes, chunks);
	if (ok && from.kept != SIZE_MAX)
		b->kept[from.kept].used = ++b->clock;
	if (ok && fixed) {
		take_kept_memory(m, from.kept);
	} else if (ok) {
		if (own) {
			batch_forget(b, from.kept);
			from.kept = SIZE_MAX;
		}
		ok = take_memory(m, &from, err);
	}
	if (!ok || !batch_pages_fill(m, chunks, err)) {
		s->computed = 0;
		leave(m);
		return false;
	}
	states_forget(&s->memory.states, from.tokens);
	batch_mark_fork(m, &from);
	m->published = 0;
	while (m->published < from.tokens / NUMERICS_CHUNK && m->pages.page[m->published]->number)
		m->published++;
	b->stats.reused_tokens += from.tokens;
	return true;
}

bool batch_grant(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err)
{
	const struct batch_found nothing = { .kept = SIZE_MAX };
	size_t chunks = kv_chunks(positions < m->batch->context ? positions : m->batch->context);

	if (!m->admitted)
		return admit(m, chunks, how == BATCH_TAKE_OVER ? batch_find_beginning(m) : nothing, err);
	batch_pages_publish(m);
	if (how == BATCH_TAKE_OVER)
		batch_pages_take_over(m, err);
	return err->code == ERROR_NONE && has_room(m, 0, chunks) && batch_pages_fill(m, chunks, err);
}

void batch_release(struct batch_member *m)
{
	jit_session *s = m->session;

	if (!m->admitted)
		return;
	batch_pages_publish(m);
	if (batch_keep(m)) {
		s->memory = (struct session_memory){ .kv.type = m->batch->engine.kv.type };
		m->admitted = false;
	} else {
		leave(m);
	}
	m->published = 0;
	s->computed = 0;
	s->logits_valid = false;
	speculate_drop(&s->speculate);
}

/* ---- making room */

static bool is_idle(const struct batch_member *m)
{
	const jit_session *s = m->session;

	return s->length == s->computed || m->told == s->length || m->error.code != ERROR_NONE;
}

/* Who makes room for a member: those that compute nothing now, else those that came after it; the last one first. */
static struct batch_member *find_victim(const struct batch_member *m)
{
	const struct jit_batch *b = m->batch;

	for (size_t i = b->n; i-- > 0;)
		if (b->member[i] != m && b->member[i]->admitted && is_idle(b->member[i]))
			return b->member[i];
	for (size_t i = b->n; i-- > 0 && b->member[i] != m;)
		if (b->member[i]->admitted)
			return b->member[i];
	return NULL;
}

bool batch_make_room(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err)
{
	struct jit_batch *b = m->batch;
	struct batch_member *victim;

	while (!batch_grant(m, positions, how, err)) {
		if (err->code || !(victim = find_victim(m)))
			return false;
		batch_release(victim);
		b->stats.set_back++;
	}
	return true;
}
