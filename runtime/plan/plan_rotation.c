/* runtime/plan/plan_rotation.c - rules of rotation and of storing keys and values, each its own op or attention's.
 *
 * Owns: where a layer's keys and values are in pages, and which angles it rotates by (rope.h).
 */
#include "base/math_host.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/rope.h"

static uint64_t plan_head_eps(const struct model_spec *s)
{
	return plan_f32_slot(s->head_eps != 0 ? s->head_eps : s->norm_eps);
}

uint32_t plan_head_norm(const struct plan_builder *b, const float *weight)
{
	return !weight ? 0 : b->spec->norms_rotated ? KEY_QK_NORM | KEY_NORM_LAST : KEY_QK_NORM;
}

uint64_t plan_angles(const struct plan_builder *b, const float *tables, uint32_t table)
{
	return plan_address(tables) + (uint64_t)table * b->buf->tokens * rope_half(b->spec) * sizeof *tables;
}

static uint32_t rotation(const struct plan_builder *b, uint32_t layer)
{
	return b->spec->layer_rotation ? b->spec->layer_rotation[layer] : (uint32_t)ROTATION_MAIN;
}

void plan_set_cache(struct plan_builder *b, uint32_t layer, const struct plan_cache_slots *slots)
{
	const struct plan_cache *kv = b->kv;
	uint32_t of = model_sizes_of(b->spec, layer).kv_layer;
	bool window = kv->window_page_bytes && plan_layer_slides(b->spec, layer);

	*slots->keys = plan_cache_offset(kv, b->spec, of);
	if (slots->values)
		*slots->values = *slots->keys + plan_cache_keys(kv->type, b->spec, of);
	plan_changing_slot(b, slots->pages, window ? PLAN_WINDOW_PAGES : PLAN_PAGES, 0);
	if (slots->position)
		plan_changing_slot(b, slots->position, PLAN_POSITION, 0);
}

static uint32_t rotation_of_queries(const struct plan_builder *b, uint32_t layer)
{
	const uint32_t own = rotation(b, layer);

	return b->spec->query_scale != 0 && (!b->spec->query_scale_still || own == ROTATION_NONE)
	               ? (uint32_t)ROPE_TABLE_QUERIES
	               : own;
}

/* What scores are multiplied by. */
static uint64_t scale_of_queries(const struct plan_builder *b, uint32_t layer)
{
	const struct model_spec *s = b->spec;
	double usual = 1.0 / math_host_sqrt((double)model_sizes_of(s, layer).head_dim);

	return plan_f32_slot(s->attention_scale.given ? s->attention_scale.value : (float)usual);
}

/* Attention finds what it rotates where the nodes of rotation and of storing would. */
void plan_set_rotation(const struct plan_builder *b, const struct graph_node *n, uint32_t first, uint64_t *a)
{
	const struct graph_node *rotate = graph_producer(b->g, n->in[IN_X]), *store = graph_producer(b->g, n->in[IN_W]);
	const uint32_t layer = n->layer, table = rotation_of_queries(b, layer), of_keys = rotation(b, layer);
	const struct plan_buffers *buf = b->buf;
	const struct model_sizes z = model_sizes_of(b->spec, layer);
	const uint64_t width = (uint64_t)z.kv_heads * z.head_dim, angles = first * (z.head_dim / 2) * sizeof(float);

	a[ATTENTION_Q] = plan_row_at(plan_floats(b, rotate->in[IN_X]), first,
	                             (uint64_t)model_heads_of(b->spec, layer) * z.head_dim);
	a[ATTENTION_K] = plan_row_at(plan_floats(b, store->in[IN_X]), first, width);
	a[ATTENTION_V] = plan_row_at(plan_floats(b, store->in[IN_W2]), first, width);
	a[ATTENTION_COS] = plan_angles(b, buf->cos, table) + angles;
	a[ATTENTION_SIN] = plan_angles(b, buf->sin, table) + angles;
	a[ATTENTION_NORM] = plan_address(graph_vector_of(b->g, rotate->in[IN_W]));
	a[ATTENTION_SCALE] = scale_of_queries(b, layer);
	a[ATTENTION_KEY_COS] = plan_angles(b, buf->cos, of_keys) + angles;
	a[ATTENTION_KEY_SIN] = plan_angles(b, buf->sin, of_keys) + angles;
	a[ATTENTION_KEY_NORM] = plan_address(graph_vector_of(b->g, store->in[IN_W]));
	a[ATTENTION_EPS] = plan_head_eps(b->spec);
}

void lower_rotate(struct plan_builder *b, const struct graph_node *n)
{
	const float *norm = graph_vector_of(b->g, n->in[IN_W]);
	const uint32_t layer = n->layer;
	const struct model_spec *s = b->spec;
	const struct plan_buffers *buf = b->buf;
	struct key key = plan_key(b, KEY_ROPE);
	uint32_t table = rotation_of_queries(b, layer);
	const struct model_sizes z = model_sizes_of(s, layer);

	if (s->latent.rank) {
		plan_latent_rotate(b, n);
		return;
	}
	if (plan_rotates_inside(b, plan_attention_of(b, n)))
		return;
	key.heads = model_heads_of(s, layer);
	key.head_dim = z.head_dim;
	key.flags = plan_head_norm(b, norm);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)b->n * key.heads);
	a[ROPE_IN] = plan_address(plan_floats(b, n->in[IN_X]));
	a[ROPE_OUT] = plan_address(plan_floats(b, n->out[0]));
	a[ROPE_COS] = plan_angles(b, buf->cos, table);
	a[ROPE_SIN] = plan_angles(b, buf->sin, table);
	a[ROPE_NORM] = plan_address(norm);
	a[ROPE_EPS] = plan_head_eps(s);
	a[ROPE_SCALE] = scale_of_queries(b, layer);
	plan_last_op(b)->fused_units = plan_chained(b, plan_attention_of(b, n), key.heads / z.kv_heads);
}

static void store(struct plan_builder *b, const struct graph_node *node, const struct plan_span *span)
{
	const float *norm = graph_vector_of(b->g, node->in[IN_W]);
	const uint32_t layer = node->layer;
	const struct model_spec *s = b->spec;
	const struct plan_buffers *buf = b->buf;
	uint32_t group = template_kv_store_tokens(b->opt->target), n = span->tokens;
	const struct model_sizes z = model_sizes_of(s, layer);
	const uint64_t width = (uint64_t)z.kv_heads * z.head_dim,
		       angles = span->first * (z.head_dim / 2) * sizeof(float);
	struct key key = plan_key(b, KEY_KV_STORE);

	key.kv_heads = z.kv_heads;
	key.head_dim = z.head_dim;
	key.kv = key_type(b->kv->type);
	key.flags = plan_head_norm(b, norm) | (s->value_norms ? KEY_VALUE_NORM : 0);
	uint64_t *a = plan_add_op(b, &key, 0, template_kv_store_units(b->opt->target, z.kv_heads, n));
	a[KV_STORE_K] = plan_row_at(plan_floats(b, node->in[IN_X]), span->first, width);
	a[KV_STORE_V] = plan_row_at(plan_floats(b, node->in[IN_W2]), span->first, width);
	plan_set_cache(b, layer,
	               &(struct plan_cache_slots){
			       &a[KV_STORE_KEYS], &a[KV_STORE_VALUES], &a[KV_STORE_PAGES], &a[KV_STORE_POS0] });
	a[KV_STORE_COS] = plan_angles(b, buf->cos, rotation(b, layer)) + angles;
	a[KV_STORE_SIN] = plan_angles(b, buf->sin, rotation(b, layer)) + angles;
	a[KV_STORE_NORM] = plan_address(norm);
	a[KV_STORE_EPS] = plan_head_eps(s);
	a[KV_STORE_COLUMNS] = n;
	plan_last_op(b)->fused_units = plan_chained(b, plan_attention_of(b, node), 1);
	plan_last_op(b)->unit_cost = n < group ? n : group;
}

void lower_store(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_span *span;

	if (b->spec->latent.rank) {
		plan_latent_store(b, n);
		return;
	}
	for (uint32_t i = 0; !plan_rotates_inside(b, plan_attention_of(b, n)) && (span = plan_span_at(b, i)); i++)
		store(b, n, span);
}
