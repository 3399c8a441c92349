/* runtime/plan/arch_latent.c - the layer of models with latent attention (DeepSeek's MLA): one row of the cache serves
 * all heads.
 *
 * Owns: the steps of that attention, in the form that never makes the heads' own keys and values: queries go through a
 * matrix of their head to where the latent vectors are, and what comes out of attention through another one
 * (kernels-templates/numerics.h, rule 9a). What a buffer holds changes on the way: `q` the heads' queries, then their
 * results; `qr` queries of a low rank, then those that attention reads; `ao` what the next matrix reads.
 */
#include <assert.h>

#include "base/math_host.h"
#include "runtime/plan/plan_build.h"
#include "runtime/plan/rope.h"

static struct activations of_heads(const struct plan_builder *b, float *x)
{
	return (struct activations){ .x = x, .q = b->buf->aoq, .s = b->buf->aos };
}

static struct activations input(struct plan_builder *b, const struct weights_layer *l)
{
	const struct weights_matrix *queries = l->q_a.packed ? &l->q_a : &l->q;

	if (l->attn_norm && plan_norm_inside(b, queries, 0, b->n) && plan_norm_inside(b, &l->kv_a, 0, b->n))
		return (struct activations){ .x = b->buf->x, .norm = l->attn_norm };
	return step_input(b, l->attn_norm, plan_wants_int8(b, queries) || plan_wants_int8(b, &l->kv_a));
}

/* Queries, through a matrix of low rank where there is one, and the latent vectors with what rotates behind them. */
static void queries_and_latents(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *f = b->buf;
	bool low = l->q_a.packed;

	step_matmul(b, &(struct matmul){
			       .w = low ? &l->q_a : &l->q, .in = in, .out = low ? f->qr : f->q, .tokens = b->n });
	step_matmul(b, &(struct matmul){ .w = &l->kv_a, .in = in, .out = f->k, .tokens = b->n });
	if (!low)
		return;
	step_latent_norm(b, f->qr, l->q_a_norm, s->latent.query_rank, plan_wants_int8(b, &l->q_b), of_heads(b, f->ao));
	step_matmul(b, &(struct matmul){ .w = &l->q_b, .in = of_heads(b, f->ao), .out = f->q, .tokens = b->n });
}

/* What rotates of the queries, to where attention reads it, and their other dimensions. */
static void rotate(struct plan_builder *b)
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
	a[ROPE_IN] = plan_address(f->q);
	a[ROPE_OUT] = plan_address(f->qr);
	a[ROPE_REST] = plan_address(f->ao);
	a[ROPE_COS] = plan_angles(b, f->cos, table);
	a[ROPE_SIN] = plan_angles(b, f->sin, table);
	a[ROPE_SCALE] = plan_f32_slot(s->attention_scale.value);
}

static void store(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, const struct plan_span *span)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *f = b->buf;
	uint32_t group = template_kv_store_tokens(b->opt->target), n = span->tokens;
	uint64_t angles = span->first * rope_half(s) * sizeof(float);
	struct key key = plan_key(b, KEY_KV_STORE);

	key.kv_heads = 1;
	key.head_dim = model_cache_dim(s, layer);
	key.k = s->latent.rank;
	key.kv = key_type(b->kv->type);
	key.flags = KEY_LATENT;
	uint64_t *a = plan_add_op(b, &key, 0, template_kv_store_units(b->opt->target, 1, n));
	a[KV_STORE_K] = plan_row(f->k, span->first, key.head_dim);
	plan_set_cache(b, layer,
	               &(struct plan_cache_slots){ &a[KV_STORE_KEYS], NULL, &a[KV_STORE_PAGES], &a[KV_STORE_POS0] });
	a[KV_STORE_COS] = plan_angles(b, f->cos, ROTATION_MAIN) + angles;
	a[KV_STORE_SIN] = plan_angles(b, f->sin, ROTATION_MAIN) + angles;
	a[KV_STORE_NORM] = plan_address(l->kv_a_norm);
	a[KV_STORE_EPS] = plan_f32_slot(MODEL_LATENT_EPS);
	a[KV_STORE_COLUMNS] = n;
	plan_last_op(b)->unit_cost = n < group ? n : group;
}

/* A matrix for each head, `rows` of them each: from k's of each head, padded, to rows that lie `apart` elements apart.
 */
static void by_head(struct plan_builder *b, const struct weights_matrix *w, uint32_t rows, struct activations in,
                    float *out, uint32_t apart)
{
	const uint32_t heads = b->spec->heads;
	uint64_t width = heads * numerics_pad(w->k), out_width = numerics_pad((uint64_t)heads * apart);
	enum dtype act = plan_activation(b->opt, w->type);
	struct plan_tiles t[PLAN_CUTS_MOST];
	struct key key = plan_key(b, KEY_MATMUL);

	if (act == DTYPE_Q8_0)
		step_quantise(b, in, width);
	key.weight = key_type(w->type);
	key.activation = key_type(act);
	key.rows = rows;
	key.k = (uint32_t)w->k;
	key.heads = heads;
	key.head_dim = apart;
	key.row_blocks = 1;
	key.flags = KEY_BY_HEAD;
	for (unsigned n = plan_cut_matmul(b->opt, b->p->logits, w, KEY_BY_HEAD, b->n, t), i = 0; i < n; i++) {
		assert(!t[i].flags);
		key.tile_n = t[i].width;
		uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(heads * numerics_pad(rows) / 32));
		plan_last_op(b)->unit_cost = plan_tiles_columns(&t[i]);
		a[MATMUL_W] = plan_address(w->packed);
		a[MATMUL_X] = act == DTYPE_Q8_0 ? plan_address(in.q + t[i].first * width)
		                                : plan_address(in.x + t[i].first * width);
		a[MATMUL_XS] = act == DTYPE_Q8_0 ? plan_address(in.s + t[i].first * (width / 32)) : 0;
		a[MATMUL_OUT] = plan_address(out + t[i].first * out_width);
		a[MATMUL_TILES] = t[i].tiles;
		a[MATMUL_COLUMNS] = plan_tiles_columns(&t[i]);
	}
}

static void attend(struct plan_builder *b, uint32_t layer, const struct plan_span *span)
{
	const struct model_spec *s = b->spec;
	uint32_t units = template_latent_units(s->heads, b->opt->general ? 1 : span->tokens);
	struct key key = plan_key(b, KEY_ATTENTION);

	key.heads = s->heads;
	key.kv_heads = units;
	key.head_dim = model_cache_dim(s, layer);
	key.k = s->latent.rank;
	key.kv = key_type(b->kv->type);
	key.tile_n = 1;
	key.flags = KEY_LATENT;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)span->tokens * units);
	a[ATTENTION_Q] = plan_row(b->buf->qr, span->first, (uint64_t)s->heads * key.head_dim);
	plan_set_cache(b, layer,
	               &(struct plan_cache_slots){ &a[ATTENTION_KEYS], NULL, &a[ATTENTION_PAGES], &a[ATTENTION_POS0] });
	a[ATTENTION_OUT] = plan_row(b->buf->ao, span->first, (uint64_t)s->heads * s->latent.rank);
	a[ATTENTION_COLUMNS] = span->tokens;
	plan_last_op(b)->uneven = b->n > 1;
}

void arch_latent_layer(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	const struct model_latent *latent = &b->spec->latent;
	const struct plan_buffers *f = b->buf;
	const struct plan_span *span;

	queries_and_latents(b, l, input(b, l));
	rotate(b);
	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		store(b, l, layer, span);
	by_head(b, &l->k_b, latent->rank, of_heads(b, f->ao), f->qr, latent->rank + latent->rotating);
	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		attend(b, layer, span);
	by_head(b, &l->v_b, latent->value, of_heads(b, f->ao), f->q, latent->value);
	if (plan_wants_int8(b, &l->o))
		step_quantise(b, of_heads(b, f->q), l->o.k);
	step_add_product(b, &l->o, NULL, of_heads(b, f->q), NULL);

	if (l->router.packed) {
		step_experts(b, l, step_input(b, l->ffn_norm, plan_experts_want_int8(b, l)));
		return;
	}
	step_gate_and_up(b, l, step_input_of(b, l, l->ffn_norm, MATRIX_gate, MATRIX_up));
	step_down(b, l);
}
