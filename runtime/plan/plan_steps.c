/* runtime/plan/plan_steps.c - the steps of a pass, but for matmul: each an op or a few, with their operands.
 *
 * Owns: which kernel a step is, and where it finds and leaves what it works on (PLAN_BUFFERS).
 */
#include <assert.h>

#include "base/math_host.h"
#include "runtime/plan/plan_build.h"
#include "runtime/plan/rope.h"

struct activations plan_normed(const struct plan_builder *b)
{
	return (struct activations){ .x = b->buf->xn, .q = b->buf->xnq, .s = b->buf->xns };
}

struct activations plan_attended(const struct plan_builder *b)
{
	return (struct activations){ .x = b->buf->ao, .q = b->buf->aoq, .s = b->buf->aos };
}

struct activations plan_gated(const struct plan_builder *b)
{
	return (struct activations){ .x = b->buf->h, .q = b->buf->hq, .s = b->buf->hs };
}

bool plan_wants_int8(const struct plan_builder *b, const struct weights_matrix *w)
{
	return plan_activation(b->opt, w->type) == DTYPE_Q8_0;
}

/* The op of a norm of so many tokens of width k, with another vector as its result, or added to it. */
static uint64_t *add_norm(struct plan_builder *b, const float *x, const float *weight, float *out, uint32_t k,
                          uint32_t flags, uint32_t tokens)
{
	struct key key = plan_key(b, KEY_NORM);

	key.k = k;
	key.flags = flags | (b->spec->centred ? KEY_CENTRED : 0) |
	            (b->handed && b->n > 1 && flags & KEY_QUANTISED_OUT ? KEY_AWAITED : 0);
	uint64_t *a = plan_add_op(b, &key, 0, tokens);
	a[NORM_X] = plan_address(x);
	a[NORM_WEIGHT] = plan_address(weight);
	a[NORM_OUT] = plan_address(out);
	a[NORM_EPS] = plan_f32_slot(b->spec->norm_eps);
	plan_last_op(b)->serial = tokens == 1;
	return a;
}

void step_norm_heads(struct plan_builder *b, const float *x, const float *weight, float *out, uint32_t k,
                     uint32_t tokens)
{
	add_norm(b, x, weight, out, k, 0, tokens);
}

void step_norm(struct plan_builder *b, const float *x, const float *weight, bool int8, uint32_t tokens,
               struct activations out)
{
	uint64_t *a = add_norm(b, x, weight, out.x, b->spec->hidden, int8 ? KEY_QUANTISED_OUT : 0, tokens);

	a[NORM_OUTQ] = plan_address(out.q);
	a[NORM_OUTS] = plan_address(out.s);
}

void step_norm_into(struct plan_builder *b, const float *x, const float *weight, float *out, uint32_t flags)
{
	add_norm(b, x, weight, out, b->spec->hidden, flags, b->n);
}

void step_latent_norm(struct plan_builder *b, const float *x, const float *weight, uint32_t k, bool int8,
                      struct activations out)
{
	uint64_t *a = add_norm(b, x, weight, out.x, k, int8 ? KEY_QUANTISED_OUT : 0, b->n);

	a[NORM_EPS] = plan_f32_slot(MODEL_LATENT_EPS);
	a[NORM_OUTQ] = plan_address(out.q);
	a[NORM_OUTS] = plan_address(out.s);
}

void step_scale(struct plan_builder *b, const float *in, float *out, uint32_t n, uint64_t k, uint64_t by,
                uint32_t flags)
{
	struct key key = plan_key(b, KEY_SCALE);

	key.flags = flags;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(n * (numerics_pad(k) / 32)));
	a[SCALE_IN] = plan_address(in);
	a[SCALE_OUT] = plan_address(out);
	a[SCALE_BY] = by;
	plan_last_op(b)->serial = n * k <= 1 << 14;
}

void step_quantise(struct plan_builder *b, struct activations a, uint64_t k)
{
	struct key key = plan_key(b, KEY_QUANTISE);
	uint64_t *arg = plan_add_op(b, &key, 0, (int64_t)(b->n * (numerics_pad(k) / 32)));
	arg[QUANTISE_X] = plan_address(a.x);
	arg[QUANTISE_OUTQ] = plan_address(a.q);
	arg[QUANTISE_OUTS] = plan_address(a.s);
	plan_last_op(b)->serial = b->n == 1;
}

struct activations step_input(struct plan_builder *b, const float *weight, bool int8)
{
	struct activations stream = { .x = b->buf->x, .q = b->buf->xnq, .s = b->buf->xns };

	if (weight) {
		plan_handed_norm(b);
		step_norm(b, b->buf->x, weight, int8, b->n, plan_normed(b));
		return plan_normed(b);
	}
	if (int8)
		step_quantise(b, stream, b->spec->hidden);
	return stream;
}

struct activations step_input_of(struct plan_builder *b, const struct weights_layer *l, const float *weight,
                                 enum matrix_slot first, enum matrix_slot last)
{
	bool int8 = false, inside = weight;

	for (enum matrix_slot i = first; i <= last; i++) {
		if (!l->matrix[i].packed)
			continue;
		int8 = int8 || plan_wants_int8(b, &l->matrix[i]);
		uint32_t pair = i == MATRIX_gate || i == MATRIX_up ? plan_pair(l) : 0;
		inside = inside && plan_norm_inside(b, &l->matrix[i], pair, b->n);
	}
	return inside ? (struct activations){ .x = b->buf->x, .norm = weight } : step_input(b, weight, int8);
}

/* Queries as they are rotated, and keys: behind a norm over all heads, where nobody writes until attention is done. */
static float *queries(const struct plan_builder *b, const struct weights_layer *l)
{
	return l->q_row_norm ? b->buf->qr : b->buf->q;
}

static float *keys(const struct plan_builder *b, const struct weights_layer *l)
{
	return l->k_row_norm ? b->buf->q : b->buf->k;
}

static void norm_rows(struct plan_builder *b, const struct weights_layer *l)
{
	const struct model_spec *s = b->spec;

	add_norm(b, b->buf->q, l->q_row_norm, queries(b, l), s->heads * s->head_dim, 0, b->n);
	add_norm(b, b->buf->k, l->k_row_norm, keys(b, l), s->kv_heads * s->head_dim, 0, b->n);
}

void step_queries_keys_values(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	const struct plan_buffers *f = b->buf;
	uint32_t n = b->n;

	step_matmul(b, &(struct matmul){ .w = &l->q, .bias = l->q_bias, .in = in, .out = f->q, .tokens = n });
	if (l->k.packed) /* else they are another layer's */
		step_matmul(b, &(struct matmul){ .w = &l->k, .bias = l->k_bias, .in = in, .out = f->k, .tokens = n });
	if (l->v.packed) /* else they are what the keys are made of */
		step_matmul(b, &(struct matmul){ .w = &l->v, .bias = l->v_bias, .in = in, .out = f->v, .tokens = n });
	if (l->q_gate.packed)
		step_matmul(b, &(struct matmul){
				       .w = &l->q_gate, .bias = l->q_gate_bias, .in = in, .out = f->m3, .tokens = n });
	if (l->q_row_norm && l->k_row_norm)
		norm_rows(b, l);
}

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

	*slots->keys = plan_cache_place(kv, b->spec, of);
	if (slots->values)
		*slots->values = *slots->keys + plan_cache_keys(kv->type, b->spec, of);
	plan_changing_slot(b, slots->pages, window ? PLAN_WINDOW_PAGES : PLAN_PAGES, 0);
	plan_changing_slot(b, slots->position, PLAN_POSITION, 0);
}

static uint32_t rotation_of_queries(const struct plan_builder *b, uint32_t layer)
{
	return b->spec->query_scale != 0 ? (uint32_t)ROPE_TABLE_QUERIES : rotation(b, layer);
}

/* What scores are multiplied by. */
static uint64_t scale_of_queries(const struct plan_builder *b, uint32_t layer)
{
	const struct model_spec *s = b->spec;
	double usual = 1.0 / math_host_sqrt((double)model_sizes_of(s, layer).head_dim);

	return plan_f32_slot(s->attention_scale.given ? s->attention_scale.value : (float)usual);
}

void plan_set_rotation(const struct plan_builder *b, const struct weights_layer *l, uint32_t layer, uint32_t first,
                       uint64_t *a)
{
	const struct plan_buffers *buf = b->buf;
	const struct model_sizes z = model_sizes_of(b->spec, layer);
	const uint64_t width = (uint64_t)z.kv_heads * z.head_dim, angles = first * (z.head_dim / 2) * sizeof(float);
	uint32_t table = rotation_of_queries(b, layer), of_keys = rotation(b, layer);

	a[ATTENTION_Q] = plan_row(queries(b, l), first, (uint64_t)b->spec->heads * z.head_dim);
	a[ATTENTION_K] = plan_row(keys(b, l), first, width);
	a[ATTENTION_V] = plan_row(l->v.packed ? buf->v : keys(b, l), first, width);
	a[ATTENTION_COS] = plan_angles(b, buf->cos, table) + angles;
	a[ATTENTION_SIN] = plan_angles(b, buf->sin, table) + angles;
	a[ATTENTION_NORM] = plan_address(l->q_norm);
	a[ATTENTION_SCALE] = scale_of_queries(b, layer);
	a[ATTENTION_KEY_COS] = plan_angles(b, buf->cos, of_keys) + angles;
	a[ATTENTION_KEY_SIN] = plan_angles(b, buf->sin, of_keys) + angles;
	a[ATTENTION_KEY_NORM] = plan_address(l->k_norm);
	a[ATTENTION_EPS] = plan_head_eps(b->spec);
}

static void rotate(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *buf = b->buf;
	struct key key = plan_key(b, KEY_ROPE);
	uint32_t table = rotation_of_queries(b, layer);
	const struct model_sizes z = model_sizes_of(s, layer);

	key.heads = s->heads;
	key.head_dim = z.head_dim;
	key.flags = plan_head_norm(b, l->q_norm);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)b->n * s->heads);
	a[ROPE_IN] = plan_address(queries(b, l));
	a[ROPE_OUT] = plan_address(buf->qr);
	a[ROPE_COS] = plan_angles(b, buf->cos, table);
	a[ROPE_SIN] = plan_angles(b, buf->sin, table);
	a[ROPE_NORM] = plan_address(l->q_norm);
	a[ROPE_EPS] = plan_head_eps(s);
	a[ROPE_SCALE] = scale_of_queries(b, layer);
	plan_last_op(b)->fused_units = plan_chained(b, layer, s->heads / z.kv_heads);
}

static void store(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, const struct plan_span *span)
{
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
	key.flags = plan_head_norm(b, l->k_norm) | (s->value_norms ? KEY_VALUE_NORM : 0);
	uint64_t *a = plan_add_op(b, &key, 0, template_kv_store_units(b->opt->target, z.kv_heads, n));
	a[KV_STORE_K] = plan_row(keys(b, l), span->first, width);
	a[KV_STORE_V] = plan_row(l->v.packed ? buf->v : keys(b, l), span->first, width);
	plan_set_cache(b, layer,
	               &(struct plan_cache_slots){
			       &a[KV_STORE_KEYS], &a[KV_STORE_VALUES], &a[KV_STORE_PAGES], &a[KV_STORE_POS0] });
	a[KV_STORE_COS] = plan_angles(b, buf->cos, rotation(b, layer)) + angles;
	a[KV_STORE_SIN] = plan_angles(b, buf->sin, rotation(b, layer)) + angles;
	a[KV_STORE_NORM] = plan_address(l->k_norm);
	a[KV_STORE_EPS] = plan_head_eps(s);
	a[KV_STORE_COLUMNS] = n;
	plan_last_op(b)->fused_units = plan_chained(b, layer, 1);
	plan_last_op(b)->unit_cost = n < group ? n : group;
}

void step_rotate_and_store(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	const struct plan_span *span;

	if (plan_rotates_inside(b, l, layer))
		return;
	rotate(b, l, layer);
	for (uint32_t i = 0; l->k.packed && (span = plan_span_at(b, i)); i++)
		store(b, l, layer, span);
}

void step_add_product(struct plan_builder *b, const struct weights_matrix *w, const float *bias, struct activations in,
                      const float *norm)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *f = b->buf;
	bool direct = !norm && !s->residual_scale.given;
	const float *from = b->handed ? f->x : NULL;
	float *sum = direct ? f->x : f->xn;

	step_matmul(b, &(struct matmul){ .w = w,
	                                 .bias = bias,
	                                 .in = in,
	                                 .from = from,
	                                 .out = from ? plan_next_stream(b) : sum,
	                                 .flags = direct ? KEY_RESIDUAL : 0,
	                                 .tokens = b->n });
	if (norm) {
		add_norm(b, f->xn, norm, f->x, s->hidden, KEY_RESIDUAL, b->n);
	} else if (!direct) {
		step_scale(b, f->xn, f->x, b->n, s->hidden, plan_f32_slot(s->residual_scale.value), KEY_RESIDUAL);
	}
}

void step_mixer_output(struct plan_builder *b, const struct weights_layer *l, const struct weights_matrix *o)
{
	if (plan_wants_int8(b, o))
		step_quantise(b, plan_attended(b), o->k);
	step_add_product(b, o, o == &l->o ? l->o_bias : NULL, plan_attended(b), l->attn_post_norm);
}

void step_attention_output(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	if (plan_quantises_inside(b, l, layer))
		step_add_product(b, &l->o, l->o_bias, plan_attended(b), l->attn_post_norm);
	else
		step_mixer_output(b, l, &l->o);
}

enum key_act plan_act(enum model_act act)
{
	static const enum key_act acts[] = { [MODEL_SILU] = ACT_SILU,
		                             [MODEL_GELU] = ACT_GELU,
		                             [MODEL_RELU2] = ACT_RELU2,
		                             [MODEL_SWIGLU_OAI] = ACT_SWIGLU_OAI };
	return acts[act];
}

void step_gate_and_up(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	enum key_act act = plan_act(b->spec->act);
	struct activations h = plan_gated(b);
	uint32_t out = plan_wants_int8(b, &l->down) ? KEY_QUANTISED_OUT : 0;
	struct matmul m = {
		.w = &l->gate, .bias = l->gate_bias, .in = in, .out = h.x, .outq = h.q, .outs = h.s, .tokens = b->n
	};

	if (!l->gate.packed) {
		m.w = &l->up;
		m.bias = l->up_bias;
		m.act = act;
		m.flags = out;
		step_matmul(b, &m);
	} else if (plan_pair(l)) {
		m.w2 = &l->up;
		m.bias2 = l->up_bias;
		m.act = act;
		m.flags = KEY_PAIR | out;
		step_matmul(b, &m);
	} else {
		step_matmul(b, &m);
		m.w = &l->up;
		m.bias = l->up_bias;
		m.act = act;
		m.flags = KEY_GATED | out;
		step_matmul(b, &m);
	}
}

void step_down(struct plan_builder *b, const struct weights_layer *l)
{
	step_add_product(b, &l->down, l->down_bias, plan_gated(b), l->ffn_post_norm);
}

/* The rows that are wanted, those that stand side by side in the stream together: a run from span *i on, which is set
 * to the next span. Returns how many rows it has. */
static uint32_t next_rows(const struct plan_builder *b, uint32_t *i, uint32_t *first)
{
	const struct plan_span *s = &b->span[*i];
	uint32_t n = s->rows;

	*first = s->first + s->tokens - s->rows;
	for (; n && *i + 1 < b->spans && s[1].rows == s[1].tokens; s++, ++*i)
		n += s[1].rows;
	++*i;
	return n;
}

/* The final norm of the rows that are wanted, one behind the other; returns how many. Those that stand side by side in
 * the stream are one op. */
static uint32_t norm_rows_wanted(struct plan_builder *b, const float *weight, bool int8)
{
	if (b->n > 1)
		plan_handed_norm(b);
	const struct activations out = plan_normed(b);
	uint64_t hidden = numerics_pad(b->spec->hidden);
	uint32_t rows = 0, first;

	for (uint32_t i = 0, n; i < b->spans; rows += n) {
		if (!(n = next_rows(b, &i, &first)))
			continue;
		uint64_t *a = add_norm(b, b->buf->x + first * hidden, weight, out.x + rows * hidden, b->spec->hidden,
		                       int8 ? KEY_QUANTISED_OUT : 0, n);
		a[NORM_OUTQ] = plan_address(out.q + rows * hidden);
		a[NORM_OUTS] = plan_address(out.s + rows * (hidden / 32));
	}
	step_store_behind(b); /* blocks that have no norm to make have nothing else to do */
	return rows;
}

/* The product that makes logits of so many rows, from row `first` on. */
static void add_logits(struct plan_builder *b, const struct weights *w, struct activations in, uint32_t first,
                       uint32_t rows)
{
	const uint64_t vocab = numerics_pad(b->spec->vocab);
	bool keeps = plan_keeps_greatest(b->spec, b->opt->target);

	step_matmul(b, &(struct matmul){ .w = &w->lm_head,
	                                 .in = in,
	                                 .out = b->buf->logits + first * vocab,
	                                 .greatest = b->buf->greatest ? b->buf->greatest + first * (vocab / 32) : NULL,
	                                 .flags = keeps ? KEY_GREATEST : 0,
	                                 .tokens = rows });
}

/* The logits of all rows that are wanted, with the norm inside; 0: that is not to be done. Rows that stand apart would
 * have the matrix read several times, which a general pass does anyway. */
static uint32_t logits_with_norm(struct plan_builder *b, const struct weights *w)
{
	uint64_t hidden = numerics_pad(b->spec->hidden);
	uint32_t rows = 0, runs = 0, first;

	for (uint32_t i = 0, n; i<b->spans; rows += n, runs += n> 0)
		n = next_rows(b, &i, &first);
	if (!rows || (runs > 1 && !b->opt->general) || !plan_norm_inside(b, &w->lm_head, 0, rows))
		return 0;
	rows = 0;
	for (uint32_t i = 0, n; i < b->spans; rows += n) {
		if (!(n = next_rows(b, &i, &first)))
			continue;
		add_logits(b, w, (struct activations){ .x = b->buf->x + first * hidden, .norm = w->final_norm }, rows,
		           n);
	}
	return rows;
}

void step_logits(struct plan_builder *b, const struct weights *w, enum plan_logits which)
{
	const struct plan_buffers *f = b->buf;
	uint32_t n = which == PLAN_ALL_NORMED ? 0 : logits_with_norm(b, w);

	if (!n) {
		/* The same kernel whether or not the output matrix follows, so that no list of kernels grows by it. */
		n = norm_rows_wanted(b, w->final_norm, plan_wants_int8(b, &w->lm_head));
		if (which == PLAN_ALL_NORMED)
			return;
		add_logits(b, w, plan_normed(b), 0, n);
	}
	assert(n <= f->logit_tokens);
	const struct model_scale by[] = { b->spec->logit_scale, b->spec->logit_cap };
	for (int i = 0; i < 2; i++)
		if (by[i].given)
			step_scale(b, f->logits, f->logits, n, b->spec->vocab, plan_f32_slot(by[i].value),
			           i ? KEY_CAP : 0);
}
