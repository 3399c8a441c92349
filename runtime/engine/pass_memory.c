#include "runtime/engine/pass_memory.h"

#include "kernels-templates/numerics.h"

/* What kernels may read behind a buffer, or behind the last value. */
enum { ALIGN = 64, SLACK = 256 };

struct arena {
	uint8_t *base;
	uint64_t at;
};

/* Two passes over the same list: the first with base NULL counts, the second hands out. */
static void *arena_take(struct arena *p, uint64_t bytes)
{
	void *out = p->base ? p->base + p->at : NULL;

	p->at += (bytes + SLACK + ALIGN - 1) / ALIGN * ALIGN;
	return out;
}

/* ranks: of a token's adapters; 0: it can have none. */
static void lay_out_shared(struct arena *to, struct plan_buffers *b, const struct model_spec *s, uint32_t ranks)
{
	b->ids = arena_take(to, plan_ids_bytes(b->tokens));
	b->cos = arena_take(to, plan_angles_bytes(s, b->tokens));
	b->sin = arena_take(to, plan_angles_bytes(s, b->tokens));
	if (ranks) {
		b->adapt_tiles = arena_take(to, 2 * (uint64_t)b->tokens * sizeof *b->adapt_tiles);
		b->adapt_sets = arena_take(to, ADAPT_SETS * sizeof *b->adapt_sets);
		b->adapt_tokens = arena_take(to, b->tokens * numerics_pad(ranks) * sizeof *b->adapt_tokens);
		b->adapt_factors = arena_take(to, b->tokens * numerics_pad(s->hidden) * sizeof *b->adapt_factors);
		b->adapt_whole = arena_take(to, b->tokens * numerics_pad(s->hidden) * sizeof *b->adapt_whole);
	}
	b->logits = arena_take(to, numerics_pad(s->vocab) * sizeof *b->logits);
	b->greatest = arena_take(to, numerics_pad(s->vocab) / 32 * sizeof *b->greatest);
}

static uint32_t ranks_of(const struct weights *w, const struct plan_layout_options *o)
{
	return o->adapted && w->embed.site ? w->embed.site->ranks : 0;
}

static bool measure(struct pass_memory *m, struct plan_layout *l, const struct model_spec *s, const struct weights *w,
                    const struct plan_layout_options *o, struct error *err)
{
	struct arena shared = { 0 };

	if (!plan_layout_open(l, s, w, o, err))
		return false;
	m->buf.tokens = o->tokens;
	m->buf.logit_tokens = 1;
	lay_out_shared(&shared, &m->buf, s, ranks_of(w, o));
	m->buffers_bytes = l->bytes + SLACK;
	m->shared_bytes = shared.at;
	return true;
}

bool pass_memory_measure(struct pass_memory *m, const struct model_spec *s, const struct plan_layout_options *o,
                         struct error *err)
{
	struct plan_layout l = { 0 };
	struct weights w;

	if (!weights_describe(&w, s, err))
		return false;
	const bool ok = measure(m, &l, s, &w, o, err);
	plan_layout_close(&l);
	weights_close(&w);
	return ok;
}

bool pass_memory_open(struct pass_memory *m, struct device *d, const struct model_spec *s, const struct weights *w,
                      const struct plan_layout_options *o, struct error *err)
{
	struct arena shared = { 0 };

	m->device = d;
	if (!measure(m, &m->layout, s, w, o, err) ||
	    !(m->buffers = d->alloc(d, m->buffers_bytes, DEVICE_BUFFERS, err)) ||
	    !(m->shared = d->alloc(d, m->shared_bytes, DEVICE_SHARED, err)))
		return false;
	shared.base = m->shared;
	lay_out_shared(&shared, &m->buf, s, ranks_of(w, o));
	m->buf.values = m->buffers;
	m->buf.layout = &m->layout;
	return true;
}

bool pass_memory_logits(struct pass_memory *m, const struct model_spec *s, uint32_t tokens, struct error *err)
{
	if (m->all_logits)
		return true;
	const uint64_t n = tokens * numerics_pad(s->vocab);

	m->all_logits_bytes = (n + n / 32) * sizeof *m->all_logits + SLACK;
	m->all_logits = m->device->alloc(m->device, m->all_logits_bytes, DEVICE_SHARED, err);
	m->all_greatest = m->all_logits ? m->all_logits + n : NULL;
	return m->all_logits != NULL;
}

bool pass_memory_shown(struct pass_memory *m, const struct model_spec *s, uint32_t levels, struct error *err)
{
	if (m->buf.shown)
		return true;
	m->shown_bytes = (uint64_t)levels * m->buf.tokens * numerics_pad(s->hidden) * sizeof *m->buf.shown + SLACK;
	m->buf.shown = m->device->alloc(m->device, m->shown_bytes, DEVICE_SHARED, err);
	return m->buf.shown != NULL;
}

static void take_records(struct pass_memory *m, const struct model_spec *s, uint32_t tokens, struct error *err)
{
	const size_t bytes = tokens * plan_record_bytes(s, m->buf.context) + SLACK;

	m->buf.records = m->device->alloc(m->device, bytes, DEVICE_BUFFERS, err);
	if (!m->buf.records)
		return;
	m->records_bytes = bytes;
	m->buf.record_tokens = tokens;
}

bool pass_memory_records(struct pass_memory *m, const struct model_spec *s, uint64_t context, uint32_t tokens,
                         struct error *err)
{
	const uint32_t max = m->device->facts.host_runs ? 1 : plan_record_tokens(s, context, m->buf.tokens);

	m->buf.context = context;
	if (!m->buf.records && max > 1)
		take_records(m, s, max, NULL);
	if (!m->buf.records && tokens == 1)
		take_records(m, s, 1, err);
	return m->buf.records || tokens > 1;
}

bool pass_memory_dataflow(struct pass_memory *m, const struct model_spec *s, uint64_t context, uint32_t tokens,
                          struct plan_buffers *to, struct error *err)
{
	const bool several = tokens > 1;
	uint32_t widest = several ? plan_dataflow_tokens(s, context, m->buf.tokens) : 1;
	uint64_t bytes = tokens <= widest ? plan_dataflow_bytes(s, context, widest) : 0;

	to->dataflow = NULL;
	if (!bytes)
		return true;
	if (!m->dataflow[several].tokens) {
		m->dataflow[several].tokens = widest;
		m->dataflow[several].bytes = bytes + SLACK;
		m->dataflow[several].at =
			m->device->alloc(m->device, bytes + SLACK, DEVICE_BUFFERS, several ? NULL : err);
	}
	to->context = context;
	to->dataflow = m->dataflow[several].at;
	to->dataflow_room = bytes;
	return to->dataflow || several;
}

void pass_memory_close(struct pass_memory *m)
{
	struct device *d = m->device;

	if (!d)
		return;
	d->release(d, m->buf.records, m->records_bytes);
	for (unsigned i = 0; i < 2; i++)
		d->release(d, m->dataflow[i].at, m->dataflow[i].bytes);
	d->release(d, m->buf.shown, m->shown_bytes);
	d->release(d, m->all_logits, m->all_logits_bytes);
	d->release(d, m->shared, m->shared_bytes);
	d->release(d, m->buffers, m->buffers_bytes);
	plan_layout_close(&m->layout);
	*m = (struct pass_memory){ 0 };
}
