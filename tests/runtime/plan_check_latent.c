/* tests/runtime/plan_check_latent.c - what the kernels of latent attention read and write, and whether that is there:
 * plan_check_heads.c for queries and a row of the cache that all heads share, and products with a matrix for each head.
 *
 * Rotation and the heads' matrices fill rows of queries together: first the former its part of each head, then the
 * latter the rest. */
#include <string.h>

#include "tests/runtime/plan_checker.h"
#include "tests/support/widths.h"

static uint64_t row_dims(const struct checker *c) { return c->s->spec.latent.rank + c->s->spec.latent.rotating; }

/* Bytes of a token: queries as attention reads them. */
static uint64_t query_bytes(const struct checker *c) { return numerics_pad(c->s->spec.heads * row_dims(c)) * 4; }

static void check_angles(struct checker *c, unsigned cos, unsigned sin)
{
	given(c, cos, c->s->buffers.cos, "angles");
	given(c, sin, c->s->buffers.sin, "angles");
}

static void check_all(struct checker *c, int64_t begin, int64_t end, int64_t units)
{
	plan_require(c, begin == 0 && end == units, "units");
}

void touch_latent_cache(struct checker *c, bool write, uint32_t layer, uint64_t keys)
{
	uint64_t bytes = c->s->kv.page_bytes / PLAN_LAYERS, at = plan_address(c->s->pages) + keys;

	plan_require(c, keys == layer * bytes, "cache");
	touch(c, write, at, bytes, (struct content){ .value = CACHED_KEYS, .of = layer, .form = CACHED, .origin = at });
}

static void do_latent_cache(struct checker *c, bool write, uint32_t layer, unsigned slot)
{
	const uint64_t keys = c->op->arg[slot];

	if (!c->wrong && range_of(c, slot, 0).bytes != c->s->kv.page_bytes / PLAN_LAYERS)
		plan_complain(c, "wrong bytes of a page");
	touch_latent_cache(c, write, layer, keys);
	judged(c, slot);
}

void do_latent_rope(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	const uint32_t i = layer_of(c, arg[ROPE_IN], QUERIES), n = c->p->tokens;

	plan_require(c,
	             k->heads == s->heads && k->head_dim == s->latent.rotating && k->k == s->latent.rest &&
	                     k->rows == s->latent.rank && k->flags == KEY_LATENT,
	             "sizes or flags");
	check_angles(c, ROPE_COS, ROPE_SIN);
	plan_require(c, (uint32_t)arg[ROPE_SCALE] == plan_bits_of(s->attention_scale.value), "scale");
	check_all(c, begin, end, (int64_t)n * s->heads);
	reads(c, ROPE_IN, QUERIES, i, 0);
	writes_between(c, ROPE_OUT, ROTATED_PART, i, 0);
	writes(c, ROPE_REST, REST_OF_QUERIES, i, 0);
}

void do_latent_store(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	const uint32_t i = layer_of(c, arg[KV_STORE_K], KEYS), n = c->p->tokens;

	plan_require(c,
	             k->kv_heads == 1 && k->head_dim == row_dims(c) && k->k == s->latent.rank &&
	                     k->kv == c->s->kv.type + 1 && k->flags == KEY_LATENT && arg[KV_STORE_COLUMNS] == n,
	             "sizes, cache, flags or tokens");
	plan_require(c,
	             arg[KV_STORE_NORM] == plan_address(c->s->layer[i].kv_a_norm) &&
	                     (uint32_t)arg[KV_STORE_EPS] == plan_bits_of(1e-6f),
	             "norm");
	check_angles(c, KV_STORE_COS, KV_STORE_SIN);
	check_all(c, begin, end, template_kv_store_units(c->opt->target, 1, n));
	check_changing(c, &arg[KV_STORE_POS0], PLAN_POSITION, 0);
	check_changing(c, &arg[KV_STORE_PAGES], PLAN_PAGES, 0);
	reads(c, KV_STORE_K, KEYS, i, 0);
	do_latent_cache(c, true, i, KV_STORE_KEYS);
}

void do_latent_attention(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	const uint32_t i = layer_of(c, arg[ATTENTION_Q], ROTATED), n = c->p->tokens,
		       units = template_latent_units(s->heads, c->opt->general ? 1 : n);

	plan_require(c,
	             k->heads == s->heads && k->kv_heads == units && k->head_dim == row_dims(c) &&
	                     k->k == s->latent.rank && k->kv == c->s->kv.type + 1 && k->tile_n == 1 &&
	                     k->flags == KEY_LATENT && arg[ATTENTION_COLUMNS] == n,
	             "sizes, cache, flags or tokens");
	check_all(c, begin, end, (int64_t)n * units);
	check_changing(c, &arg[ATTENTION_POS0], PLAN_POSITION, 0);
	check_changing(c, &arg[ATTENTION_PAGES], PLAN_PAGES, 0);
	reads(c, ATTENTION_Q, ROTATED, i, 0);
	do_latent_cache(c, false, i, ATTENTION_KEYS);
	writes(c, ATTENTION_OUT, ATTENDED_LATENT, i, 0);
}

/* ---- a matrix for each head */

void do_by_head(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;

	const struct weights_matrix *w = NULL;
	uint32_t i = 0;
	bool keys = false;

	for (; i < PLAN_LAYERS && !w; i++) {
		const struct weights_layer *l = &c->s->layer[i];
		keys = arg[MATMUL_W] == plan_address(l->k_b.packed);
		w = keys ? &l->k_b : arg[MATMUL_W] == plan_address(l->v_b.packed) ? &l->v_b : NULL;
	}
	if (!w) {
		plan_complain(c, "multiplies by no matrix of heads");
		return;
	}
	i--;
	const enum dtype act = c->opt->f32_activations ? DTYPE_F32 : weight_default_activation(w->type);
	const bool int8 = act == DTYPE_Q8_0;
	const uint32_t rows = keys ? s->latent.rank : s->latent.value, inner = keys ? s->latent.rest : s->latent.rank;
	const uint64_t out = keys ? query_bytes(c) : numerics_pad(s->heads * s->latent.value) * 4,
		       tokens = arg[MATMUL_COLUMNS], at = arg[MATMUL_OUT] - plan_address(plan_space_product(c->s, w)),
		       first = at / out;
	const enum value from = keys ? REST_OF_QUERIES : ATTENDED_LATENT;

	plan_require(c,
	             k->weight == w->type + 1 && k->activation == act + 1 && k->rows == rows && k->k == inner &&
	                     k->heads == s->heads && k->head_dim == (keys ? row_dims(c) : s->latent.value) &&
	                     k->row_blocks == 1 && k->flags == KEY_BY_HEAD && k->act == ACT_NONE &&
	                     k->numerics == NUMERICS_EXACT && k->kv_heads == 0,
	             "format, sizes or flags");
	plan_require(
		c, k->tile_n >= 1 && k->tile_n <= widths_plain(c->opt->target) && (!c->opt->general || k->tile_n == 1),
		"tokens");
	check_all(c, begin, end, (int64_t)(s->heads * numerics_pad(rows) / 32));
	plan_check_tiles(c, k, arg);
	plan_require(c, tokens > 0 && at % out == 0 && first + tokens <= c->p->tokens && int8 == (arg[MATMUL_XS] != 0),
	             "tokens of results, or scales");
	if (c->wrong)
		return;
	reads(c, MATMUL_X, from, i, first);
	if (int8)
		reads(c, MATMUL_XS, from, i, first);
	if (keys) /* what rotates lies between what the matrices leave, and must be there before */
		read_plain(c, ROTATED_PART, i, PLAIN_FLOATS, out, arg[MATMUL_OUT], first, tokens);
	writes_between(c, MATMUL_OUT, keys ? ROTATED : ATTENDED, i, first);
}
