#include "runtime/session_memory.h"

#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"

/* What kernels may read behind the cache. */
enum { SLACK = 256 };
/* Positions behind a window that stay all the same: short rewinds need not compute the text anew. */
enum { KEEP = NUMERICS_CHUNK };

static uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

/* What a window and the widest pass can need together, wherever in their chunks they begin. */
static uint32_t window_chunks(const struct model_spec *s, uint32_t tokens)
{
	return (uint32_t)(((uint64_t)s->sliding_window + KEEP + tokens + 2 * NUMERICS_CHUNK - 2) / NUMERICS_CHUNK);
}

static uint64_t kv_layout(struct session_memory *m, const struct model_spec *s, uint32_t tokens, uint32_t context)
{
	struct plan_cache *kv = &m->kv;
	uint64_t chunks = round_up(context, NUMERICS_CHUNK) / NUMERICS_CHUNK, sliding = 0, others = 0;

	for (uint32_t layer = 0; layer < s->layers; layer++)
		*(plan_layer_slides(s, layer) ? &sliding : &others) += plan_cache_bytes(kv->type, s, layer);
	m->window_chunks = window_chunks(s, tokens);
	if (!sliding || m->window_chunks >= chunks) {
		others += sliding;
		m->window_chunks = sliding = 0;
	}
	kv->chunk_bytes = others;
	kv->window_chunk_bytes = sliding;
	states_measure(&m->states, s);
	return kv->chunk_bytes * chunks + kv->window_chunk_bytes * m->window_chunks + SLACK +
	       m->states.bytes * m->states.slots;
}

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

void session_memory_measure(struct session_memory *m, const struct model_spec *s, uint32_t tokens, uint32_t context)
{
	m->kv_bytes = kv_layout(m, s, tokens, context);
}

bool session_memory_open(struct session_memory *m, struct device *d, const struct model_spec *s, uint32_t tokens,
                         uint32_t context, struct error *err)
{
	m->device = d;
	session_memory_measure(m, s, tokens, context);
	if (!(m->kv.base = d->alloc(d, m->kv_bytes, DEVICE_CACHE, err)))
		return false;
	if (m->window_chunks)
		m->kv.window_base =
			m->kv.base + m->kv.chunk_bytes * (round_up(context, NUMERICS_CHUNK) / NUMERICS_CHUNK);
	m->states.base = m->kv.base + m->kv_bytes - m->states.bytes * m->states.slots;
	return true;
}

/* The first chunk that a pass at a position wants to keep of layers with a window. */
static uint32_t first_kept(const struct model_spec *s, uint64_t position)
{
	uint64_t kept = (uint64_t)s->sliding_window + KEEP;

	return position < kept ? 0 : (uint32_t)((position - kept) / NUMERICS_CHUNK);
}

/* Chunks move to the front, the first one first. */
static bool move_chunks(struct session_memory *m, uint32_t by, uint32_t n, struct error *err)
{
	struct device *d = m->device;
	uint64_t bytes = m->kv.window_chunk_bytes;
	uint8_t *base = m->kv.window_base, *copy;
	bool ok = true;

	if (d->facts.host_reaches) {
		memmove(base, base + by * bytes, n * bytes);
		return true;
	}
	if (!(copy = malloc(bytes)))
		return error_set(err, ERROR_MEMORY, "no memory to move a chunk of the KV cache");
	for (uint32_t i = 0; ok && i < n; i++)
		ok = d->read(d, copy, base + (i + by) * bytes, bytes, err) &&
		     d->upload(d, base + i * bytes, copy, bytes, err);
	free(copy);
	return ok;
}

bool session_memory_slide(struct session_memory *m, const struct model_spec *s, uint64_t position, uint32_t tokens,
                          struct error *err)
{
	uint64_t begin = m->window_first * (uint64_t)NUMERICS_CHUNK, used = position - begin;

	if (!m->kv.window_base || used + tokens <= m->window_chunks * (uint64_t)NUMERICS_CHUNK)
		return true;
	uint32_t first = first_kept(s, position), by = first - m->window_first;
	uint32_t kept = (uint32_t)((used + NUMERICS_CHUNK - 1) / NUMERICS_CHUNK) - by;
	if (!move_chunks(m, by, kept, err))
		return false;
	m->window_first = first;
	return true;
}

bool session_memory_serves(const struct model_spec *s, uint64_t position, uint32_t first)
{
	return first == 0 ||
	       (s->sliding_window && position + 1 >= first * (uint64_t)NUMERICS_CHUNK + s->sliding_window);
}

void session_memory_begin_window(struct session_memory *m, const struct model_spec *s, uint64_t positions,
                                 uint32_t first)
{
	uint32_t kept = m->kv.window_base ? first_kept(s, positions) : 0;

	m->window_first = kept > first ? kept : first;
}

uint8_t *session_memory_place(const struct session_memory *m, const struct model_spec *s, uint32_t layer,
                              uint32_t chunk)
{
	const struct plan_cache *kv = &m->kv;
	uint64_t at = plan_cache_place(kv, s, layer);

	if (!plan_layer_slides(s, layer))
		return kv->base + at + chunk * kv->chunk_bytes;
	if (chunk < m->window_first || (kv->window_base && chunk - m->window_first >= m->window_chunks))
		return NULL;
	return kv->window_base ? kv->window_base + at + (chunk - m->window_first) * kv->window_chunk_bytes
	                       : kv->base + at + chunk * kv->chunk_bytes;
}

void session_memory_close(struct session_memory *m)
{
	struct device *d = m->device;

	if (!d)
		return;
	d->release(d, m->kv.base, m->kv_bytes);
	*m = (struct session_memory){ 0 };
}
