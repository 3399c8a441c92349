/* runtime/plan/plan_attention.c - the rule of attention: whole, or with the context in parts (plan.h).
 *
 * Owns: which of the two a layer has, where the records of parts lie, and who stores what attention of columns apart
 * leaves to be stored. All give the same bits.
 */
#include <assert.h>

#include "runtime/plan/lower.h"

/* Into how many parts this pass cuts what a layer attends to; 0: a unit goes through all of it. Short windows are not
 * worth it. */
static unsigned context_parts(const struct plan_builder *b, struct plan_attention a)
{
	enum { SHORT = 1024 };
	const struct model_spec *s = b->spec;
	bool is_short = plan_layer_slides(s, a.layer) && s->sliding_window <= SHORT;

	if ((b->n > 1 && !a.parts) || is_short || s->encodes)
		return 0;
	unsigned parts = template_attention_parts(b->opt->target, model_sizes_of(s, a.layer).kv_heads);
	for (uint32_t n = 1; n < b->spans && parts > 1; n *= 2)
		parts /= 2; /* several sequences keep a card as busy */
	return parts;
}

struct plan_attention plan_attention_of(const struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_node *of = plan_node_of(b, n);

	return (struct plan_attention){ &b->w->layer[n->layer], n->layer, of->awaited, of->parts };
}

uint32_t plan_chained(const struct plan_builder *b, struct plan_attention a, uint32_t units)
{
	return b->n > 1 || (b->opt->context == PLAN_PARTS && context_parts(b, a)) ? 0 : units;
}

static bool can_rotate(const struct plan_builder *b, struct plan_attention a)
{
	const struct model_sizes z = model_sizes_of(b->spec, a.layer);

	return a.l->k.packed && !a.l->q_norm == !a.l->k_norm && !b->spec->encodes &&
	       template_attention_rotates(b->opt->target, model_heads_of(b->spec, a.layer), z.kv_heads, z.head_dim);
}

bool plan_rotates_inside(const struct plan_builder *b, struct plan_attention a)
{
	return (b->n == 1 || context_parts(b, a)) && can_rotate(b, a);
}

bool plan_merges(const struct plan_builder *b, struct plan_attention a)
{
	return (b->opt->context == PLAN_PARTS || b->n > 1) && context_parts(b, a);
}

/* A layer's, if that of several tokens had its context in parts. */
static struct plan_attention in_parts(const struct plan_builder *b, uint32_t layer)
{
	return (struct plan_attention){ .l = &b->w->layer[layer], .layer = layer, .parts = true };
}

bool plan_attends_several(const struct plan_builder *b, uint32_t layer)
{
	const struct model_sizes z = model_sizes_of(b->spec, layer);
	const struct plan_attention a = in_parts(b, layer);
	bool all = plan_merges(b, a) && can_rotate(b, a);

	for (uint32_t i = 0; all && i < b->spans; i++)
		all = template_attention_columns(b->opt->target, model_heads_of(b->spec, layer), z.kv_heads, z.head_dim,
		                                 b->span[i].tokens);
	return all;
}

bool plan_quantises_inside(const struct plan_builder *b, struct plan_attention a)
{
	return plan_rotates_inside(b, a) && !a.l->q_gate.packed && !a.l->head_gate.packed && !a.l->attn_sub_norm &&
	       plan_wants_int8(b, &a.l->o) && model_sizes_of(b->spec, a.layer).head_dim % 32 == 0;
}

static struct key attention_key(const struct plan_builder *b, struct plan_attention a, uint32_t n)
{
	const struct model_spec *s = b->spec;
	const struct model_sizes z = model_sizes_of(s, a.layer);
	struct key key = plan_key(b, KEY_ATTENTION);

	key.heads = model_heads_of(s, a.layer);
	key.kv_heads = z.kv_heads;
	key.head_dim = z.head_dim;
	key.kv = key_type(b->kv->type);
	key.flags = (plan_layer_slides(s, a.layer) ? KEY_WINDOW : 0) | (s->score_cap.given ? KEY_CAP : 0) |
	            (a.l->sinks ? KEY_SINKS : 0) | (s->encodes ? KEY_BOTH : 0) | (b->w->score_bias ? KEY_BIAS : 0);
	if (s->window_chunks && key.flags & KEY_WINDOW)
		key.k = s->sliding_window;
	if (plan_rotates_inside(b, a))
		key.flags |= KEY_ROTATES | plan_head_norm(b, a.l->q_norm) | (s->value_norms ? KEY_VALUE_NORM : 0);
	key.tile_n =
		template_attention_tile_n(b->opt->target, key.heads, z.kv_heads, z.head_dim, b->opt->general ? 1 : n);
	return key;
}

static struct key merge_key(const struct plan_builder *b, struct plan_attention a, const struct key *attention)
{
	struct key key = plan_key(b, KEY_MERGE);

	key.heads = attention->heads;
	key.head_dim = attention->head_dim;
	key.k = attention->k;
	if (attention->rows && attention->tile_n > 1) {
		key.tile_n = attention->tile_n;
		key.kv_heads = attention->kv_heads;
	}
	key.flags = (attention->flags & (KEY_WINDOW | KEY_SINKS)) | (a.awaited ? KEY_AWAITED : 0);
	if (plan_quantises_inside(b, a))
		key.flags |= KEY_QUANTISED_OUT;
	return key;
}

/* More than a text has tokens; a multiple of what tiles are wide. */
enum { SEES_ALL = 1 << 24 };

/* Units [0, units) of attention of a span's tokens; returns its arguments. */
static uint64_t *add_attention(struct plan_builder *b, const struct graph_node *n, const struct plan_span *span,
                               const struct key *key, int64_t units)
{
	const struct model_spec *s = b->spec;
	uint64_t *a = plan_add_op(b, key, 0, units);

	a[ATTENTION_Q] = plan_row_at(plan_floats(b, n->in[IN_X]), span->first, (uint64_t)key->heads * key->head_dim);
	if (key->flags & KEY_ROTATES)
		plan_set_rotation(b, n, span->first, a);
	plan_set_cache(b, n->layer,
	               &(struct plan_cache_slots){
			       &a[ATTENTION_KEYS], &a[ATTENTION_VALUES], &a[ATTENTION_PAGES],
			       s->encodes || plan_layer_sees_whole(b, n->layer) ? NULL : &a[ATTENTION_POS0] });
	if (s->encodes) /* how far a token sees beyond itself */
		a[ATTENTION_POS0] = plan_layer_slides(s, n->layer) ? s->sliding_window / 2 : SEES_ALL;
	a[ATTENTION_SLIDING] = s->sliding_window;
	a[ATTENTION_COLUMNS] = span->tokens;
	a[ATTENTION_CAP] = plan_f32_slot(s->score_cap.value);
	a[ATTENTION_SINKS] = plan_address(graph_vector_of(b->g, n->in[IN_BIAS]));
	a[ATTENTION_BIAS] = plan_address(graph_vector_of(b->g, n->in[IN_BIAS2]));
	a[ATTENTION_REACH] = weights_bias_reach(s);
	return a;
}

/* Units of a head of keys and a part. */
static int64_t units_of_tokens(const struct key *key)
{
	return key->row_blocks ? (key->tile_n + key->row_blocks - 1) / key->row_blocks : 1;
}

/* In parts: all of a span's tokens in one unit, or a few, and then fewer parts keep a card as busy. */
static struct key parts_key(const struct plan_builder *b, struct plan_attention a, const struct plan_span *span)
{
	struct key key = attention_key(b, a, span->tokens);

	key.rows = context_parts(b, a);
	if (a.awaited && key.flags & KEY_ROTATES)
		key.flags |= KEY_AWAITED;
	if (b->n > 1) {
		key.tile_n = span->tokens;
		key.row_blocks = (uint8_t)template_attention_apart(b->opt->target, &key);
	}
	for (int64_t n = 1; n < units_of_tokens(&key) && key.rows > 1; n *= 2)
		key.rows /= 2;
	return key;
}

/* Whether a layer's attention can be that of plan_is_small(), without taking longer where the context is short: a unit
 * goes through its rows, so that they are few, or columns lie apart. */
static bool attends_small(const struct plan_builder *b, uint32_t layer)
{
	enum { ROWS = 12 };
	const struct plan_attention a = in_parts(b, layer);

	if (!plan_layer_attends(b->spec, layer) || !context_parts(b, a))
		return true;
	if (!plan_attends_several(b, layer))
		return false;
	const struct key key = parts_key(b, a, b->span);
	return key.row_blocks || key.heads / key.kv_heads * b->span->tokens <= ROWS;
}

/* Of several sequences each has one token: others are too many sorts of passes to have kernels of. */
bool plan_is_small(const struct plan_builder *b)
{
	bool all = b->n > 1 && b->n <= PLAN_DATAFLOW_MAX && !b->spec->encodes && b->n <= b->buf->record_tokens &&
	           b->buf->records && b->opt->target->lane_bytes && b->opt->context != PLAN_WHOLE && !b->opt->general &&
	           (b->spans == 1 || b->n == b->spans);

	for (uint32_t i = 0; all && i < b->spec->layers; i++)
		all = attends_small(b, i);
	return all;
}

/* Of a span: those of the spans before it lie in front. */
static uint64_t records_at(const struct plan_builder *b, const struct graph_node *n, const struct plan_span *span)
{
	const uint8_t *own = b->of[n->out[0]].records;

	return plan_address(own ? own : b->buf->records) +
	       (b->n > 1 ? span->first * plan_record_bytes(b->spec, b->buf->context) : 0);
}

static void attend_in_parts(struct plan_builder *b, const struct graph_node *n, const struct plan_span *span)
{
	const struct key key = parts_key(b, plan_attention_of(b, n), span);
	uint64_t *a = add_attention(b, n, span, &key, units_of_tokens(&key) * key.rows * key.kv_heads);

	a[ATTENTION_OUT] = records_at(b, n, span);
}

static void merge_parts(struct plan_builder *b, const struct graph_node *n, const struct plan_span *span)
{
	const struct plan_attention attention = plan_attention_of(b, n);
	const struct key of = parts_key(b, attention, span), *key = &of, merge = merge_key(b, attention, key);
	const struct activations out = plan_operand(b, n->out[0]);
	uint64_t *a =
		plan_add_op(b, &merge, 0, (int64_t)span->tokens * key->heads * template_merge_units(key->head_dim));

	a[MERGE_RECORDS] = records_at(b, n, span);
	const uint64_t width = (uint64_t)key->heads * key->head_dim, behind = span->first * numerics_pad(width);
	a[MERGE_OUT] = plan_row_at(out.x, span->first, width);
	plan_changing_slot(b, &a[MERGE_POS0], PLAN_POSITION, 0);
	a[MERGE_SLIDING] = b->spec->sliding_window;
	a[MERGE_SINKS] = plan_address(attention.l->sinks);
	if (merge.flags & KEY_QUANTISED_OUT) {
		a[MERGE_OUTQ] = plan_address(out.q + behind);
		a[MERGE_OUTS] = plan_address(out.s + behind / 32);
	}
}

static void attend(struct plan_builder *b, const struct graph_node *node, const struct plan_span *span)
{
	const struct plan_attention attention = plan_attention_of(b, node);
	const struct activations out = plan_operand(b, node->out[0]);
	const uint32_t n = span->tokens;
	struct key key = attention_key(b, attention, n), parts = parts_key(b, attention, span),
		   merge = merge_key(b, attention, &key);

	if (plan_quantises_inside(b, attention))
		key.flags |= KEY_QUANTISED_OUT;
	/* Tiles lie at multiples of their width, wherever the pass begins: there may be one more of them than tokens
	 * fill. */
	uint32_t tiles = key.tile_n > 1 ? (n + 2 * key.tile_n - 2) / key.tile_n : n;
	uint64_t *a = add_attention(b, node, span, &key, (int64_t)tiles * key.kv_heads);
	a[ATTENTION_OUT] = plan_row_at(out.x, span->first, (uint64_t)key.heads * key.head_dim);
	if (key.flags & KEY_QUANTISED_OUT) {
		a[ATTENTION_OUTQ] = plan_address(out.q);
		a[ATTENTION_OUTS] = plan_address(out.s);
	}
	plan_last_op(b)->uneven = b->n > 1;
	plan_last_op(b)->fused_units =
		b->n == 1 &&
		!(key.flags &
	          KEY_ROTATES); /* a head of the cache, with its queries: written, then read by the same worker */
	if (parts.rows && b->opt->context == PLAN_PARTS_TO_COME) {
		plan_expect_kernel(b, &parts);
		plan_expect_kernel(b, &merge);
	}
}

/* ---- tokens of a picture that see all of it */

bool plan_sees_whole(const struct plan_builder *b) { return b->opt->shows && b->spec->pictures_whole && b->n > 1; }

bool plan_layer_sees_whole(const struct plan_builder *b, uint32_t layer)
{
	return plan_sees_whole(b) && (!b->spec->pictures_windowed || plan_layer_slides(b->spec, layer));
}

/* The token is as if it were the pass's last, which is that of the picture; its window begins where its own place says,
 * but not behind the picture's first token of this pass. */
static void attend_whole(struct plan_builder *b, const struct graph_node *node, uint32_t token)
{
	const struct activations out = plan_operand(b, node->out[0]);
	const struct plan_span span = { token, 1, 0 };
	const struct key key = attention_key(b, plan_attention_of(b, node), 1);
	const uint32_t behind = b->n - 1 - token, window = b->spec->sliding_window + behind;
	uint64_t *a = add_attention(b, node, &span, &key, (int64_t)key.tile_n * key.kv_heads);

	plan_changing_slot(b, &a[ATTENTION_POS0], PLAN_POSITION, b->n - 1);
	a[ATTENTION_SLIDING] = window > b->n ? window : b->n;
	a[ATTENTION_OUT] = plan_row_at(out.x, token, (uint64_t)key.heads * key.head_dim);
}

/* Whether that op of attention leaves keys and values to be stored. */
static bool is_apart(const struct plan_builder *b, size_t attention)
{
	const struct plan *p = b->p;

	return p->kernel[p->op[attention].kernel].key.row_blocks != 0;
}

/* The keys and values of that op's columns; nothing but attention's own op knows where they are. */
static void store_columns(struct plan_builder *b, uint32_t layer, size_t at)
{
	const struct plan_op *of = &b->p->op[at];
	const struct key *attention = &b->p->kernel[of->kernel].key;
	struct key key = plan_key(b, KEY_KV_STORE);

	key.kv_heads = attention->kv_heads;
	key.head_dim = attention->head_dim;
	key.kv = attention->kv;
	key.flags = attention->flags & (KEY_QK_NORM | KEY_NORM_LAST | KEY_VALUE_NORM);
	uint64_t *a = plan_add_op(b, &key, 0,
	                          template_kv_store_units(b->opt->target, key.kv_heads, of->arg[ATTENTION_COLUMNS]));
	a[KV_STORE_K] = of->arg[ATTENTION_K];
	a[KV_STORE_V] = of->arg[ATTENTION_V];
	plan_set_cache(b, layer,
	               &(struct plan_cache_slots){
			       &a[KV_STORE_KEYS], &a[KV_STORE_VALUES], &a[KV_STORE_PAGES], &a[KV_STORE_POS0] });
	a[KV_STORE_COS] = of->arg[ATTENTION_KEY_COS];
	a[KV_STORE_SIN] = of->arg[ATTENTION_KEY_SIN];
	a[KV_STORE_NORM] = of->arg[ATTENTION_KEY_NORM];
	a[KV_STORE_EPS] = of->arg[ATTENTION_EPS];
	a[KV_STORE_COLUMNS] = of->arg[ATTENTION_COLUMNS];
}

void lower_attend(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_attention a = plan_attention_of(b, n);
	const bool merges = plan_merges(b, a);
	const size_t first = plan_node_of(b, n)->op = b->p->n_ops;
	const struct plan_span *span;

	if (b->spec->latent.rank) {
		plan_latent_attend(b, n);
		return;
	}
	if (plan_quantises_inside(b, a))
		plan_put_int8(b, n->out[0]);
	const bool whole = plan_layer_sees_whole(b, n->layer);
	for (uint32_t i = 0; whole && i < b->n; i++) {
		plan_span_at(b, 0);
		attend_whole(b, n, i);
	}
	for (uint32_t i = 0; !whole && (span = plan_span_at(b, i)); i++)
		(merges ? attend_in_parts : attend)(b, n, span);
	for (uint32_t i = 0; merges && (span = plan_span_at(b, i)); i++) {
		merge_parts(b, n, span);
		if (!a.awaited && is_apart(b, first + i))
			store_columns(b, a.layer, first + i);
	}
}

void plan_store_behind(struct plan_builder *b)
{
	for (uint32_t i = 0; b->n > 1 && i < b->g->n_nodes; i++) {
		const struct graph_node *n = &b->g->node[i];
		const struct plan_node *of = plan_node_of(b, n);
		for (uint32_t s = 0; n->kind == NODE_ATTEND && of->awaited && plan_span_at(b, s); s++)
			if (is_apart(b, of->op + s))
				store_columns(b, n->layer, of->op + s);
	}
}
