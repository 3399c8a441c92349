/* runtime/batch/batch_pages.c - the pages of a batch's session: its own, and those it shares with others.
 *
 * Owns: that who writes a page is alone with it, and that the session's table has the addresses of its pages. A page of
 * which others know is copied before it is written, as far as its first positions are still wanted. Models whose layers
 * keep windows or states share pages where a session begins; afterwards they go on alone, because their pages are not
 * all that a token needs.
 */
#include "base/array.h"
#include "runtime/batch/batch.h"
#include "runtime/session/session_kv.h"

uint64_t batch_begins_at(const jit_session *s)
{
	const struct session_states *t = &s->memory.states;

	return t->bytes ? states_position(t, states_find(t, s->computed)) : s->computed;
}

static size_t first_written(const struct batch_member *m) { return batch_begins_at(m->session) / NUMERICS_CHUNK; }

static bool room_for(struct batch_pages *p, size_t n, struct error *err)
{
	void *all = p->page;
	bool ok = array_grow(&all, &p->capacity, n, sizeof *p->page);

	p->page = all;
	return ok || error_set(err, ERROR_MEMORY, "no memory for a list of %zu pages", n);
}

/* In place of what is there, or behind the last one. */
static void put(struct batch_member *m, size_t chunk, struct kv_page *page)
{
	if (chunk < m->pages.n)
		kv_pages_drop(&m->batch->pages, m->pages.page[chunk], KV_USES);
	else
		m->pages.n = chunk + 1;
	m->pages.page[chunk] = page;
	session_memory_set_page(&m->session->memory, (uint32_t)chunk, page->at);
}

bool batch_pages_adopt(struct batch_member *m, const struct batch_pages *from, size_t chunks, struct error *err)
{
	if (!room_for(&m->pages, chunks, err))
		return false;
	for (; m->pages.n < chunks; m->pages.n++) {
		m->pages.page[m->pages.n] = from->page[m->pages.n];
		kv_pages_hold(&m->batch->pages, m->pages.page[m->pages.n], KV_USES);
	}
	return true;
}

void batch_pages_keep(struct batch_member *m, size_t chunks)
{
	while (m->pages.n > chunks)
		kv_pages_drop(&m->batch->pages, m->pages.page[--m->pages.n], KV_USES);
	if (m->published > chunks)
		m->published = chunks;
	if (m->session->memory.device)
		session_memory_keep_pages(&m->session->memory, (uint32_t)m->pages.n);
}

/* ---- pages to write */

uint64_t batch_pages_wanted(const struct batch_member *m, size_t chunks)
{
	size_t n = 0;

	for (size_t c = first_written(m); c < chunks; c++) { /* what others remember, they can be made to forget */
		const struct kv_page *p = c < m->pages.n ? m->pages.page[c] : NULL;
		n += !p || p->holders - p->remembering > 1;
	}
	return n * m->batch->pages.page_bytes;
}

static bool copy_page(struct batch_member *m, struct kv_page *to, const struct kv_page *from, struct error *err)
{
	struct kv_pages *p = &m->batch->pages;

	return !p->page_bytes || kv_copy_bytes(p->device, to->at, from->at, p->page_bytes, err);
}

static bool own_page(struct batch_member *m, size_t chunk, struct error *err)
{
	struct kv_pages *all = &m->batch->pages;
	size_t nobody = SIZE_MAX;

	for (;;) {
		struct kv_page *old = chunk < m->pages.n ? m->pages.page[chunk] : NULL;
		if (old && old->holders == 1) {
			kv_pages_hide(all, old);
			break;
		}
		struct kv_page *page = kv_pages_take(all, err);
		if (page) {
			bool wanted = old && batch_begins_at(m->session) > chunk * NUMERICS_CHUNK;
			if (!wanted || copy_page(m, page, old, err)) {
				put(m, chunk, page);
				break;
			}
			kv_pages_drop(all, page, KV_USES);
		}
		if (err->code != ERROR_NONE || !batch_forget_some(m->batch, &nobody))
			return false;
	}
	if (m->published > chunk)
		m->published = chunk;
	return true;
}

bool batch_pages_fill(struct batch_member *m, size_t chunks, struct error *err)
{
	const jit_session *s = m->session;
	size_t computed = kv_chunks(s->computed), max = chunks > computed ? chunks : computed;

	if (!room_for(&m->pages, chunks, err))
		return false;
	for (size_t c = first_written(m); c < chunks; c++)
		if (!own_page(m, c, err))
			return false;
	batch_pages_keep(m, max + 1); /* one more may be for draft tokens */
	return true;
}

bool batch_pages_writable(const struct batch_member *m, uint64_t position, uint32_t tokens, struct error *err)
{
	for (size_t c = position / NUMERICS_CHUNK; c <= (position + tokens - 1) / NUMERICS_CHUNK; c++) {
		const struct kv_page *p = c < m->pages.n ? m->pages.page[c] : NULL;
		if (!p || p->holders != 1 || p->number || m->session->memory.page[c] != p->at)
			return error_set(err, ERROR_ARGUMENT,
			                 "page %zu of the KV cache is not this session's alone: it must not be written",
			                 c);
	}
	return true;
}

/* ---- pages that others find */

static bool shares(const struct batch_member *m) { return !m->batch->fixed_bytes; }

static uint64_t parent_of(const struct batch_member *m, size_t chunk)
{
	return chunk ? m->pages.page[chunk - 1]->number : m->session->adapters.root;
}

void batch_pages_publish(struct batch_member *m)
{
	const jit_session *s = m->session;
	struct kv_pages *all = &m->batch->pages;

	for (; shares(m) && m->published < s->computed / NUMERICS_CHUNK; m->published++) {
		size_t c = m->published;
		struct kv_page *page = m->pages.page[c];
		if (c && !parent_of(m, c))
			return;
		struct kv_page *known =
			kv_pages_publish(all, page, parent_of(m, c), session_keys(s) + c * NUMERICS_CHUNK);
		if (known != page) {
			kv_pages_hold(all, known, KV_USES);
			put(m, c, known);
		}
	}
}

void batch_pages_take_over(struct batch_member *m, struct error *err)
{
	jit_session *s = m->session;
	struct kv_pages *all = &m->batch->pages;

	while (shares(m)) {
		size_t c = s->computed / NUMERICS_CHUNK, end = (c + 1) * NUMERICS_CHUNK;
		if (end >= s->length || (c && !parent_of(m, c)) || !room_for(&m->pages, c + 1, err))
			return;
		struct kv_page *known = kv_pages_find(all, parent_of(m, c), session_keys(s) + c * NUMERICS_CHUNK);
		if (!known)
			return;
		if (c >= m->pages.n || m->pages.page[c] != known) {
			kv_pages_hold(all, known, KV_USES);
			put(m, c, known);
		}
		m->batch->stats.reused_tokens += end - s->computed;
		s->computed = end;
		m->published = c + 1;
	}
}
