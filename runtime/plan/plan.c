/* runtime/plan/plan.c - a plan's lists: its ops, stages, sections and kernels.
 *
 * Owns: the memory of a plan, and the passes that fill it: a graph is drawn (arch.h), lowered (lower.h), and its ops
 * are ordered (order.h).
 */
#include "runtime/plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "runtime/plan/arch.h"
#include "runtime/plan/cut.h"
#include "runtime/plan/cut_rows.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/order.h"
#include "runtime/plan/rope.h"

/* PER_SEQUENCE: in a layer, for each sequence beyond the first. */
enum { LAUNCHES_PER_LAYER = 96, LAUNCHES_PER_SEQUENCE = 2, CHANGING_PER_LAYER = 10, LAUNCHES_OUTSIDE = 28 };

uint64_t plan_f32_slot(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

struct key plan_key(const struct plan_builder *b, enum key_kind kind)
{
	struct key k;
	memset(&k, 0, sizeof k);
	k.kind = (uint8_t)kind;
	k.target = (uint8_t)b->opt->target->id;
	k.codegen = key_codegen(k.target);
	return k;
}

static uint32_t find_kernel(struct plan_builder *b, const struct key *key)
{
	struct plan *p = b->p;
	for (size_t i = 0; i < p->n_kernels; i++) {
		const struct key *k = &p->kernel[i].key;
		if (k->rows == key->rows && k->k == key->k && k->tile_n == key->tile_n && key_equal(k, key))
			return (uint32_t)i;
	}
	assert(p->n_kernels < b->op_capacity);
	p->kernel[p->n_kernels] = (struct plan_kernel){ .key = *key };
	return (uint32_t)p->n_kernels++;
}

/* Of the kernel itself; but what adapters add is a load for each row, and such a kernel likes what the same one without
 * it does, which was measured more often. */
static bool find_tuned(struct tune *tune, const struct key *key, struct tune_result *out)
{
	struct key plain = *key;

	plain.flags &= ~(uint32_t)(KEY_ADDED | KEY_SCALED);
	return tune_find(tune, &plain, out) || (plain.flags != key->flags && tune_find(tune, key, out));
}

/* What this machine was found to like, of the kernel itself or of the one it follows. A file may also name what there
 * never was. */
static uint32_t schedule_of(const struct plan_options *o, const struct key *key)
{
	struct tune_result found;

	if (!o->tune || key->kind != KEY_MATMUL)
		return 0;
	struct key k = *key, like = template_tuned_like(key);
	if (find_tuned(o->tune, key, &found))
		k.schedule = found.key.schedule;
	else if (find_tuned(o->tune, &like, &found))
		k.schedule = template_schedule_follow(key, &found.key);
	return k.schedule && !template_schedule_refusal(&k) && (!o->only || registry_ready(o->only, &k))
	               ? k.schedule
	               : 0;
}

void plan_expect_kernel(struct plan_builder *b, const struct key *key) { find_kernel(b, key); }

uint64_t *plan_add_op(struct plan_builder *b, const struct key *key, int64_t begin, int64_t end)
{
	struct plan *p = b->p;
	assert(p->n_ops < b->op_capacity && template_args(key) <= PLAN_ARGS_MAX);
	struct plan_op *l = &p->op[p->n_ops++];
	struct key scheduled = *key;
	if (!key->schedule)
		scheduled.schedule = schedule_of(b->opt, key);
	*l = (struct plan_op){ .kernel = find_kernel(b, &scheduled),
		               .n_args = template_args(key),
		               .begin = begin,
		               .end = end,
		               .unit_cost = 1,
		               .arg = p->args + b->args_used };
	memset(l->arg, 0, PLAN_ARGS_MAX * sizeof *l->arg);
	b->args_used += PLAN_ARGS_MAX;
	return l->arg;
}

struct plan_op *plan_last_op(struct plan_builder *b) { return &b->p->op[b->p->n_ops - 1]; }

void plan_changing_slot(struct plan_builder *b, uint64_t *slot, enum plan_change what, uint64_t offset)
{
	bool of_span = b->sequence < b->spans;

	assert(b->p->n_changing < b->changing_capacity);
	b->p->changing[b->p->n_changing++] = (struct plan_changing){ slot, offset, what, of_span ? b->sequence : 0 };
	b->p->one_sequence |= !of_span;
}

const struct plan_span *plan_span_at(struct plan_builder *b, uint32_t sequence)
{
	b->sequence = sequence;
	return sequence < b->spans ? &b->span[sequence] : NULL;
}

/* The lists, but for the kernels, which the tuner makes longer, in one chunk; none of it cleared: entries are, when
 * they come into use. */
static bool make_room(struct plan_builder *b)
{
	struct plan *p = b->p;
	size_t n = b->op_capacity, layers = b->spec->layers;

	p->kernel = malloc(n * sizeof *p->kernel);
	p->op = malloc(n * (sizeof *p->op + PLAN_ARGS_MAX * sizeof *p->args) +
	               b->changing_capacity * sizeof *p->changing + (layers + 3) * sizeof *p->section +
	               (n + 1) * sizeof *p->stage);
	if (!p->kernel || !p->op)
		return false;
	p->args = (uint64_t *)(p->op + n);
	p->changing = (struct plan_changing *)(p->args + n * PLAN_ARGS_MAX);
	p->section = (uint32_t *)(p->changing + b->changing_capacity);
	p->stage = p->section + layers + 3;
	return true;
}

static bool no_memory(struct plan *p, const struct model_spec *spec, struct error *err)
{
	plan_free(p);
	return error_set(err, ERROR_MEMORY, "no memory for a plan of %u layers", spec->layers);
}

bool plan_of_graph(struct plan_builder *b, const struct graph *g, enum plan_logits which, struct error *err)
{
	const struct model_spec *spec = b->spec;
	struct plan *p = b->p;
	const size_t each = plan_sees_whole(b) ? b->n : 0; /* ops of attention, each of one token */
	size_t layer_launches = LAUNCHES_PER_LAYER + (size_t)(b->spans - 1) * LAUNCHES_PER_SEQUENCE + each;

	assert(b->n >= 1 && b->n <= b->buf->tokens && b->buf->layout->n_values == g->n_values);
	memset(p, 0, sizeof *p);
	p->tokens = b->n;
	p->logits = which;
	b->sequence = b->spans;
	b->op_capacity = spec->layers * layer_launches + LAUNCHES_OUTSIDE + b->spans;
	b->changing_capacity = (size_t)spec->layers * (CHANGING_PER_LAYER * b->spans + 2 * each);
	if (!make_room(b))
		return no_memory(p, spec, err);
	const bool ok = plan_lower(b, g);
	free(b->of);
	free(b->node);
	free(b->sum);
	if (!ok)
		return no_memory(p, spec, err);
	p->section[p->n_sections] = (uint32_t)p->n_ops;
	p->n_args = b->args_used;
	p->one_sequence &= b->spans > 1;
	if (b->opt->adapts && !plan_cut_adapted(b))
		return no_memory(p, spec, err);
	plan_dataflow_end(b);
	plan_order(p, (uint64_t)b->n * spec->experts_used);
	return true;
}

static bool build(struct plan_builder *b, const struct weights *w, enum plan_logits which, struct error *err)
{
	struct graph g;

	b->w = w;
	if (!arch_graph(&g, b->spec, w, b->buf->layout->adapted, b->buf->layout->shown, err))
		return false;
	const bool ok = plan_of_graph(b, &g, which, err);
	graph_close(&g);
	return ok;
}

bool plan_build(struct plan *p, const struct model_spec *spec, const struct weights *w,
                const struct plan_buffers *buffers, const struct plan_cache *kv, uint32_t tokens,
                enum plan_logits which, const struct plan_options *opt, struct error *err)
{
	uint32_t rows = which == PLAN_NO_LOGITS ? 0 : which == PLAN_LAST_LOGITS ? 1 : tokens;
	const struct plan_span all = { 0, tokens, rows };
	struct plan_builder b = {
		.p = p, .spec = spec, .buf = buffers, .kv = kv, .opt = opt, .n = tokens, .span = &all, .spans = 1
	};

	return build(&b, w, which, err);
}

bool plan_build_joint(struct plan *p, const struct model_spec *spec, const struct weights *w,
                      const struct plan_buffers *buffers, const struct plan_cache *kv, const struct plan_span *span,
                      uint32_t spans, bool normed, const struct plan_options *opt, struct error *err)
{
	struct plan_builder b = {
		.p = p, .spec = spec, .buf = buffers, .kv = kv, .opt = opt, .span = span, .spans = spans
	};
	uint32_t rows = 0;

	for (uint32_t i = 0; i < spans; i++) {
		b.n += span[i].tokens;
		rows += span[i].rows;
	}
	return build(&b, w, normed ? PLAN_ALL_NORMED : rows ? PLAN_ALL_LOGITS : PLAN_NO_LOGITS, err);
}

/* Addresses of operands that nothing reads: as a session has them, so that ops are ordered as they are there. */
static bool nowhere(struct plan_buffers *b, struct plan_layout *l, const struct model_spec *s, const struct weights *w,
                    uint32_t tokens, const struct plan_options *opt, struct error *err)
{
	const uint64_t logits = tokens * numerics_pad(s->vocab) * sizeof(float);
	uintptr_t at = 4096;

	if (!plan_layout_open(
		    l, s, w,
		    &(struct plan_layout_options){
			    .tokens = tokens, .f32_activations = opt->f32_activations, .adapted = opt->adapts },
		    err))
		return false;
	*b = (struct plan_buffers){ .tokens = tokens,
		                    .layout = l,
		                    .context = NUMERICS_CHUNK,
		                    .logit_tokens = tokens,
		                    .record_tokens = UINT32_MAX,
		                    .dataflow_room = UINT64_MAX };
	b->ids = (int32_t *)at;
	b->cos = (float *)(at += plan_ids_bytes(tokens));
	b->sin = (float *)(at += plan_angles_bytes(s, tokens));
	b->values = (uint8_t *)(at += plan_angles_bytes(s, tokens));
	b->logits = (float *)(at += l->bytes);
	b->greatest = (float *)(at += logits);
	b->records = (uint8_t *)(at += logits);
	b->dataflow = (uint8_t *)(at += tokens * plan_record_bytes(s, b->context));
	return true;
}

bool plan_outline(struct plan *p, const struct model_spec *spec, const struct weights *w, enum dtype kv,
                  uint32_t tokens, enum plan_logits logits, const struct plan_options *opt, struct error *err)
{
	const struct plan_cache cache = { .type = kv };
	struct plan_buffers buffers;
	struct plan_layout layout;

	if (!nowhere(&buffers, &layout, spec, w, tokens, opt, err))
		return false;
	const bool ok = plan_build(p, spec, w, &buffers, &cache, tokens, logits, opt, err);
	plan_layout_close(&layout);
	return ok;
}

bool plan_outline_pair(struct plan *p, const struct model_spec *spec, const struct weights *w, enum dtype kv,
                       const struct plan_options *opt, struct error *err)
{
	static const struct plan_span span[] = { { 0, 1, 1 }, { 1, 1, 1 } };
	const struct plan_cache cache = { .type = kv };
	struct plan_buffers buffers;
	struct plan_layout layout;

	if (!nowhere(&buffers, &layout, spec, w, 2, opt, err))
		return false;
	const bool ok = plan_build_joint(p, spec, w, &buffers, &cache, span, 2, false, opt, err);
	plan_layout_close(&layout);
	return ok;
}

static uint64_t changed_value(const struct plan_sequence *s, enum plan_change what)
{
	switch (what) {
	case PLAN_POSITION: return s->position;
	case PLAN_PAGES: return plan_address(s->pages);
	case PLAN_WINDOW_PAGES: return plan_address(s->window_pages);
	case PLAN_STATE_BEFORE: return plan_address(s->before);
	default: return plan_address(s->behind);
	}
}

void plan_set_sequences(struct plan *p, const struct plan_sequence *s)
{
	for (size_t i = 0; i < p->n_changing; i++) {
		const struct plan_changing *c = &p->changing[i];
		*c->slot = changed_value(&s[c->sequence], c->what) + c->offset;
	}
}

void plan_free(struct plan *p)
{
	for (unsigned i = 0; p->carried && i < 2; i++)
		cut_carried_close(&p->carried[i]);
	free(p->carried);
	cut_rows_close(p->rows);
	free(p->adapt_tile);
	free(p->kernel);
	free(p->op); /* and all that lies behind */
	memset(p, 0, sizeof *p);
}
