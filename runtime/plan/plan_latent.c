/* runtime/plan/plan_latent.c - the rules of rotation, cache and attention where one row of the cache serves all heads
 * (arch_latent.c).
 */
#include "runtime/plan/lower.h"
#include "runtime/plan/rope.h"

/* What rotates of the queries, to where attention reads it, and their other dimensions. */
void plan_latent_rotate(struct plan_builder *b, const struct graph_node *n)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *f = b->buf;
	struct key key = plan_key(b, KEY_ROPE);
	uint32_t table = s->query_scale != 0 ? (uint32_t)ROPE_TABLE_QUERIES : (uint32_t)ROTATION_MAIN;

	key.heads = s->heads;
	key.head_dim = s->latent.rotating;
	key.k = s->latent.rest;
	key.rows = s->latent.rank;
	key.flags = KEY_LATENT;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)b->n * s->heads);
	a[ROPE_IN] = plan_address(plan_floats(b, n->in[IN_X]));
	a[ROPE_OUT] = plan_address(plan_floats(b, n->out[0]));
	a[ROPE_REST] = plan_address(plan_floats(b, n->out[1]));
	a[ROPE_COS] = plan_angles(b, f->cos, table);
	a[ROPE_SIN] = plan_angles(b, f->sin, table);
	a[ROPE_SCALE] = plan_f32_slot(s->attention_scale.value);
}

static void store(struct plan_builder *b, const struct graph_node *node, const struct plan_span *span)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *f = b->buf;
	uint32_t group = template_kv_store_tokens(b->opt->target), n = span->tokens;
	uint64_t angles = span->first * rope_half(s) * sizeof(float);
	struct key key = plan_key(b, KEY_KV_STORE);

	key.kv_heads = 1;
	key.head_dim = model_cache_dim(s, node->layer);
	key.k = s->latent.rank;
	key.kv = key_type(b->kv->type);
	key.flags = KEY_LATENT;
	uint64_t *a = plan_add_op(b, &key, 0, template_kv_store_units(b->opt->target, 1, n));
	a[KV_STORE_K] = plan_row_at(plan_floats(b, node->in[IN_X]), span->first, key.head_dim);
	plan_set_cache(b, node->layer,
	               &(struct plan_cache_slots){ &a[KV_STORE_KEYS], NULL, &a[KV_STORE_PAGES], &a[KV_STORE_POS0] });
	a[KV_STORE_COS] = plan_angles(b, f->cos, ROTATION_MAIN) + angles;
	a[KV_STORE_SIN] = plan_angles(b, f->sin, ROTATION_MAIN) + angles;
	a[KV_STORE_NORM] = plan_address(graph_vector_of(b->g, node->in[IN_W]));
	a[KV_STORE_EPS] = plan_f32_slot(MODEL_LATENT_EPS);
	a[KV_STORE_COLUMNS] = n;
	plan_last_op(b)->unit_cost = n < group ? n : group;
}

void plan_latent_store(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_span *span;

	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		store(b, n, span);
}

static void attend(struct plan_builder *b, const struct graph_node *node, const struct plan_span *span)
{
	const struct model_spec *s = b->spec;
	uint32_t units = template_latent_units(s->heads, b->opt->general ? 1 : span->tokens);
	struct key key = plan_key(b, KEY_ATTENTION);

	key.heads = s->heads;
	key.kv_heads = units;
	key.head_dim = model_cache_dim(s, node->layer);
	key.k = s->latent.rank;
	key.kv = key_type(b->kv->type);
	key.tile_n = 1;
	key.flags = KEY_LATENT;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)span->tokens * units);
	a[ATTENTION_Q] = plan_row_at(plan_floats(b, node->in[IN_X]), span->first, (uint64_t)s->heads * key.head_dim);
	plan_set_cache(b, node->layer,
	               &(struct plan_cache_slots){ &a[ATTENTION_KEYS], NULL, &a[ATTENTION_PAGES], &a[ATTENTION_POS0] });
	a[ATTENTION_OUT] = plan_row_at(plan_floats(b, node->out[0]), span->first, (uint64_t)s->heads * s->latent.rank);
	a[ATTENTION_COLUMNS] = span->tokens;
	plan_last_op(b)->uneven = b->n > 1;
}

void plan_latent_attend(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_span *span;

	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		attend(b, n, span);
}
