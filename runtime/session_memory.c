#include "runtime/session_memory.h"

#include "kernels-templates/numerics.h"
#include "runtime/host/system.h"

/* Between buffers: what kernels may read behind one of them. */
enum { ALIGN = 64, SLACK = 256 };

static uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

struct place {
	uint8_t *base;
	uint64_t at;
};

/* Two passes over the same list: the first with base NULL counts, the second hands out. */
static void *place(struct place *p, uint64_t bytes)
{
	void *out = p->base ? p->base + p->at : NULL;
	p->at += round_up(bytes + SLACK, ALIGN);
	return out;
}

static void place_buffers(struct place to[DEVICE_SHARED + 1], struct plan_buffers *b, const struct model_spec *s)
{
#define X(type, name, width, memory) b->name = place(&to[memory], plan_buffer_bytes(s, width, sizeof(type), b->tokens));
	PLAN_BUFFERS(X)
#undef X
	b->logits = place(&to[DEVICE_SHARED], numerics_pad(s->vocab) * sizeof *b->logits);
}

static uint64_t kv_layout(struct plan_cache *kv, const struct model_spec *s, uint32_t context)
{
	kv->k_bytes =
		round_up((uint64_t)s->kv_heads * NUMERICS_CHUNK * template_kv_row_bytes(kv->type, s->head_dim), ALIGN);
	kv->layer_bytes = 2 * kv->k_bytes;
	kv->chunk_bytes = kv->layer_bytes * s->layers;
	return kv->chunk_bytes * (round_up(context, NUMERICS_CHUNK) / NUMERICS_CHUNK) + SLACK;
}

/* What is the host's memory can be asked for beforehand, so that a machine does not run out of it in the middle of a
 * text. */
static bool check_room(const struct session_memory *m, uint32_t context, struct error *err)
{
	uint64_t needed = m->kv_bytes + m->buffers_bytes + m->shared_bytes,
		 available = m->device->facts.host_runs ? system_available_memory() : UINT64_MAX;

	return needed <= available ||
	       error_set(err, ERROR_MEMORY,
	                 "a context of %u tokens needs %.1f GiB of memory (KV cache %.1f GiB) and %.1f GiB are "
	                 "available; ask for a smaller context",
	                 context, (double)needed / 0x1p30, (double)m->kv_bytes / 0x1p30, (double)available / 0x1p30);
}

/* Where the buffers lie, but for where they begin. */
void session_memory_measure(struct session_memory *m, const struct model_spec *s, uint32_t tokens, uint32_t context)
{
	struct place to[DEVICE_SHARED + 1] = { { 0 } };

	m->buf.tokens = tokens;
	m->buf.logit_tokens = 1;
	place_buffers(to, &m->buf, s);
	m->buffers_bytes = to[DEVICE_BUFFERS].at;
	m->shared_bytes = to[DEVICE_SHARED].at;
	m->kv_bytes = kv_layout(&m->kv, s, context);
}

bool session_memory_open(struct session_memory *m, struct device *d, const struct model_spec *s, uint32_t tokens,
                         uint32_t context, struct error *err)
{
	struct place to[DEVICE_SHARED + 1] = { { 0 } };

	m->device = d;
	session_memory_measure(m, s, tokens, context);
	if (!check_room(m, context, err) || !(m->buffers = d->alloc(d, m->buffers_bytes, DEVICE_BUFFERS, err)) ||
	    !(m->shared = d->alloc(d, m->shared_bytes, DEVICE_SHARED, err)) ||
	    !(m->kv.base = d->alloc(d, m->kv_bytes, DEVICE_CACHE, err)))
		return false;
	to[DEVICE_BUFFERS] = (struct place){ .base = m->buffers };
	to[DEVICE_SHARED] = (struct place){ .base = m->shared };
	place_buffers(to, &m->buf, s);
	return true;
}

bool session_memory_logits(struct session_memory *m, const struct model_spec *s, uint32_t tokens, struct error *err)
{
	if (m->all_logits)
		return true;
	m->all_logits_bytes = tokens * numerics_pad(s->vocab) * sizeof *m->all_logits + SLACK;
	return (m->all_logits = m->device->alloc(m->device, m->all_logits_bytes, DEVICE_SHARED, err)) != NULL;
}

void session_memory_close(struct session_memory *m)
{
	struct device *d = m->device;

	if (!d)
		return;
	d->release(d, m->all_logits, m->all_logits_bytes);
	d->release(d, m->kv.base, m->kv_bytes);
	d->release(d, m->shared, m->shared_bytes);
	d->release(d, m->buffers, m->buffers_bytes);
	*m = (struct session_memory){ 0 };
}
