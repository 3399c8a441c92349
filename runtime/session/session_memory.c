#include "runtime/session/session_memory.h"

#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"

/* What kernels may read behind the cache. */
enum { SLACK = SESSION_PAGE_SLACK };
/* Of models that encode: texts of a pass that are shorter than a page. */
enum { SHORT_TEXTS = 64 };
/* Positions behind a window that stay all the same: short rewinds need not compute the text anew. */
enum { KEEP = NUMERICS_CHUNK };

static uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

/* What a window and the widest pass can need together, wherever in their chunks they begin. */
static uint32_t window_chunks(const struct model_spec *s, uint32_t tokens)
{
	return (uint32_t)(((uint64_t)s->sliding_window + KEEP + tokens + 2 * NUMERICS_CHUNK - 2) / NUMERICS_CHUNK);
}

/* Of the pages alone: the context's, and those of layers with a window. */
static uint64_t pages_bytes(const struct session_memory *m) { return m->kv.page_bytes * m->chunks; }
static uint64_t ring_bytes(const struct session_memory *m) { return m->kv.window_page_bytes * m->window_chunks; }
static uint64_t states_bytes(const struct session_memory *m) { return m->states.bytes * m->states.slots; }

/* Of one table. */
static uint64_t table_bytes(const struct session_memory *m)
{
	return round_up((m->chunks + 1) * sizeof *m->page, NUMERICS_CHUNK);
}

void session_memory_measure(struct session_memory *m, const struct model_spec *s, uint32_t tokens, uint32_t context)
{
	struct plan_cache *kv = &m->kv;
	uint64_t sliding = 0, others = 0;

	m->chunks = (uint32_t)(round_up(context, NUMERICS_CHUNK) / NUMERICS_CHUNK);
	if (s->encodes) /* texts of a pass have pages of their own, however short they are */
		m->chunks = (uint32_t)(round_up(tokens, NUMERICS_CHUNK) / NUMERICS_CHUNK) + SHORT_TEXTS;
	for (uint32_t layer = 0; layer < s->layers; layer++)
		*(plan_layer_slides(s, layer) ? &sliding : &others) += plan_cache_bytes(kv->type, s, layer);
	if (s->encodes) { /* layers have one place, all of whose positions a pass reads */
		sliding = others = 0;
		for (uint32_t layer = 0; layer < s->layers; layer++)
			others = plan_cache_bytes(kv->type, s, layer) > others ? plan_cache_bytes(kv->type, s, layer)
			                                                       : others;
	}
	m->window_chunks = window_chunks(s, tokens);
	if (!sliding || m->window_chunks >= m->chunks) {
		others += sliding;
		m->window_chunks = sliding = 0;
	}
	kv->page_bytes = others;
	kv->window_page_bytes = sliding;
	states_measure(&m->states, s);
	m->kv_bytes = pages_bytes(m) + ring_bytes(m) + SLACK + states_bytes(m);
}

uint64_t session_memory_fixed_bytes(const struct session_memory *m) { return ring_bytes(m) + states_bytes(m); }

bool session_memory_check(const struct session_memory *m, const struct pass_memory *p, struct device *d,
                          uint32_t context, struct error *err)
{
	uint64_t needed = m->kv_bytes + p->buffers_bytes + p->shared_bytes,
		 available = d->facts.host_runs ? system_available_memory() : UINT64_MAX;

	return needed <= available ||
	       error_set(err, ERROR_MEMORY,
	                 "a context of %u tokens needs %.1f GiB of memory (KV cache %.1f GiB) and %.1f GiB are "
	                 "available; ask for a smaller context",
	                 context, (double)needed / 0x1p30, (double)m->kv_bytes / 0x1p30, (double)available / 0x1p30);
}

/* The pages of layers with a window never move; the others' lie one behind the other, or are not there yet. */
static bool open_tables(struct session_memory *m, uint8_t *pages, uint8_t *ring, struct error *err)
{
	m->page = calloc(2 * ((size_t)m->chunks + 1), sizeof *m->page);
	if (!m->page)
		return error_set(err, ERROR_MEMORY, "no memory for the table of %u pages", m->chunks);
	m->window_page = m->page + m->chunks + 1;
	for (uint32_t i = 0; pages && i < m->chunks; i++)
		session_memory_set_page(m, i, pages + i * m->kv.page_bytes);
	for (uint32_t i = 0; m->window_chunks && i <= m->chunks; i++)
		m->window_page[i] = ring + i % m->window_chunks * m->kv.window_page_bytes;
	return !m->window_chunks || device_upload_addresses(m->device, m->own + m->tables_at + table_bytes(m),
	                                                    m->window_page, m->chunks + 1, err);
}

bool session_memory_open(struct session_memory *m, struct device *d, const struct model_spec *s, uint32_t tokens,
                         uint32_t context, enum session_pages where, struct error *err)
{
	m->device = d;
	session_memory_measure(m, s, tokens, context);
	uint64_t pages = where == SESSION_OWN_PAGES ? pages_bytes(m) : 0;
	if (where == SESSION_PAGES_ELSEWHERE)
		m->kv_bytes -= pages_bytes(m);
	m->own_bytes = pages + session_memory_fixed_bytes(m) + SLACK + 2 * table_bytes(m);
	if (!(m->own = d->alloc(d, m->own_bytes, DEVICE_CACHE, err)))
		return false;
	m->states.base = m->own + pages + ring_bytes(m) + SLACK;
	m->tables_at = m->own_bytes - 2 * table_bytes(m);
	return open_tables(m, pages ? m->own : NULL, m->own + pages, err);
}

/* ---- tables */

static void change(struct session_memory *m, uint32_t entry, uint8_t *page)
{
	if (m->changed_from == m->changed_to)
		m->changed_from = m->changed_to = entry;
	m->page[entry] = page;
	if (entry < m->changed_from)
		m->changed_from = entry;
	if (entry >= m->changed_to)
		m->changed_to = entry + 1;
}

void session_memory_set_page(struct session_memory *m, uint32_t chunk, uint8_t *page)
{
	change(m, chunk, page);
	if (chunk + 1 < m->held)
		return;
	m->held = chunk + 1;
	change(m, m->held, page); /* what is prefetched behind the last page is somewhere */
}

void session_memory_keep_pages(struct session_memory *m, uint32_t chunks)
{
	if (chunks >= m->held)
		return;
	m->held = chunks;
	change(m, chunks, chunks ? m->page[chunks - 1] : NULL);
}

bool session_memory_tables(struct session_memory *m, const void **pages, const void **window_pages, struct error *err)
{
	uint8_t *table = m->own + m->tables_at;
	uint32_t from = m->changed_from, n = m->changed_to - from;

	if (n && !device_upload_addresses(m->device, table + from * sizeof *m->page, m->page + from, n, err))
		return false;
	m->changed_from = m->changed_to = 0;
	*pages = table;
	*window_pages = table + table_bytes(m);
	return true;
}

/* ---- layers with a window */

/* The first chunk that a pass at a position wants to keep of layers with a window. */
static uint32_t first_kept(const struct model_spec *s, uint64_t position)
{
	uint64_t kept = (uint64_t)s->sliding_window + KEEP;

	return position < kept ? 0 : (uint32_t)((position - kept) / NUMERICS_CHUNK);
}

void session_memory_slide(struct session_memory *m, const struct model_spec *s, uint64_t position, uint32_t tokens)
{
	uint64_t end = ((uint64_t)m->window_first + m->window_chunks) * NUMERICS_CHUNK;

	if (m->window_chunks && position + tokens > end)
		m->window_first = first_kept(s, position);
}

bool session_memory_serves(const struct model_spec *s, uint64_t position, uint32_t first)
{
	return first == 0 ||
	       (s->sliding_window && position + 1 >= first * (uint64_t)NUMERICS_CHUNK + s->sliding_window);
}

void session_memory_begin_window(struct session_memory *m, const struct model_spec *s, uint64_t positions,
                                 uint32_t first)
{
	uint32_t kept = m->window_chunks ? first_kept(s, positions) : 0;

	m->window_first = kept > first ? kept : first;
}

uint8_t *session_memory_chunk(const struct session_memory *m, const struct model_spec *s, uint32_t layer,
                              uint32_t chunk)
{
	uint64_t at = plan_cache_offset(&m->kv, s, layer);

	if (m->window_chunks && plan_layer_slides(s, layer))
		return chunk < m->window_first || chunk - m->window_first >= m->window_chunks
		               ? NULL
		               : m->window_page[chunk] + at;
	if (chunk >= m->held || (plan_layer_slides(s, layer) && chunk < m->window_first))
		return NULL;
	return m->page[chunk] + at;
}

void session_memory_close(struct session_memory *m)
{
	struct device *d = m->device;

	if (!d)
		return;
	d->release(d, m->own, m->own_bytes);
	free(m->page);
	*m = (struct session_memory){ 0 };
}
