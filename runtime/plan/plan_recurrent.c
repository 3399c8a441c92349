/* runtime/plan/plan_recurrent.c - the steps of layers that keep a state instead of keys and values.
 *
 * Owns: where these ops find the state before the pass, and leave the one behind it (plan_set_sequences()): a run reads
 * one and writes another, so that the one before stays for who goes back.
 */
#include <math.h>

#include "base/math_host.h"
#include "runtime/plan/plan_build.h"

/* An op's two slots of a state, which begins so far in that of all layers. */
static void state_slots(struct plan_builder *b, uint64_t *before, uint64_t *behind, uint64_t offset)
{
	plan_changing_slot(b, before, PLAN_STATE_BEFORE, offset);
	plan_changing_slot(b, behind, PLAN_STATE_BEHIND, offset);
}

/* What a convolution reads and leaves; by, gate: NULL but of a gated one. */
struct convolution {
	const float *in, *by, *gate;
	float *out;
	enum key_act act;
};

static uint64_t row_of(const float *rows, const struct plan_span *span, uint64_t width)
{
	return rows ? plan_address(rows + span->first * width) : 0;
}

static void convolve_span(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                          const struct convolution *c, const struct plan_span *span)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	struct key key = plan_key(b, KEY_CONV);

	key.k = r->channels;
	key.rows = r->taps;
	key.flags = (c->gate ? KEY_GATED : 0) | (l->taps_bias ? KEY_BIAS : 0);
	key.act = (uint8_t)c->act;
	uint64_t *a = plan_add_op(b, &key, 0, r->channels / 32);
	a[CONV_X] = row_of(c->in, span, r->channels);
	a[CONV_X2] = row_of(c->by, span, r->channels);
	a[CONV_GATE] = row_of(c->gate, span, r->channels);
	a[CONV_WEIGHT] = plan_address(l->taps);
	a[CONV_OUT] = row_of(c->out, span, r->channels);
	a[CONV_COLUMNS] = span->tokens;
	a[CONV_BIAS] = plan_address(l->taps_bias);
	state_slots(b, &a[CONV_STATE_IN], &a[CONV_STATE_OUT], plan_state_offset(b->spec, layer));
	plan_last_op(b)->serial = b->n == 1 && r->channels <= 4096;
}

/* The convolution of a layer. */
static void convolve(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, const struct convolution *c)
{
	const struct plan_span *span;

	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		convolve_span(b, l, layer, c, span);
}

void step_short_convolution(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                            struct activations in)
{
	const struct plan_buffers *f = b->buf;
	uint32_t n = b->n;

	step_matmul(b, &(struct matmul){ .w = &l->conv_b, .in = in, .out = f->m, .tokens = n });
	step_matmul(b, &(struct matmul){ .w = &l->conv_c, .in = in, .out = f->m2, .tokens = n });
	step_matmul(b, &(struct matmul){ .w = &l->conv_x, .in = in, .out = f->m3, .tokens = n });
	convolve(b, l, layer, &(struct convolution){ .in = f->m, .by = f->m3, .gate = f->m2, .out = f->ao });
}

/* So many numbers of each token, times the activation function of others. */
static void gate(struct plan_builder *b, const float *x, const float *by, float *out, uint64_t width, enum key_act act)
{
	struct key key = plan_key(b, KEY_GATE);

	key.act = (uint8_t)act;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(b->n * (numerics_pad(width) / 32)));
	a[GATE_X] = plan_address(x);
	a[GATE_GATE] = plan_address(by);
	a[GATE_OUT] = plan_address(out);
	plan_last_op(b)->serial = b->n * width <= 1 << 13;
}

void step_gate_attention(struct plan_builder *b)
{
	const struct plan_buffers *f = b->buf;

	gate(b, f->ao, f->m3, f->ao, (uint64_t)b->spec->heads * b->spec->head_dim, ACT_SIGMOID);
}

/* A norm of the pass's tokens of `groups` columns of `k`, each with weights of its own, or all with the same. */
struct group_norm {
	const float *x, *weight;
	float *out;
	uint32_t k, groups;
	bool shared;
};
static void norm_groups(struct plan_builder *b, const struct group_norm *n)
{
	struct key key = plan_key(b, KEY_NORM);

	key.k = n->k;
	key.heads = n->groups > 1 ? n->groups : 0;
	key.kv_heads = n->shared;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)b->n * n->groups);
	a[NORM_X] = plan_address(n->x);
	a[NORM_WEIGHT] = plan_address(n->weight);
	a[NORM_OUT] = plan_address(n->out);
	a[NORM_EPS] = plan_f32_slot(b->spec->norm_eps);
	plan_last_op(b)->serial = b->n == 1 && n->groups == 1;
}

/* What goes through the convolution, the gate of the result, and for each head of values what is forgotten and how much
 * is corrected. */
static void delta_inputs(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	const struct plan_buffers *f = b->buf;
	uint32_t n = b->n;

	step_matmul(b, &(struct matmul){ .w = &l->delta_qkv, .in = in, .out = f->m, .tokens = n });
	step_matmul(b, &(struct matmul){ .w = &l->delta_z, .in = in, .out = f->m3, .tokens = n });
	step_matmul(b, &(struct matmul){ .w = &l->delta_b, .in = in, .out = f->mb, .tokens = n });
	step_matmul(b, &(struct matmul){ .w = &l->delta_a, .in = in, .out = f->ma, .tokens = n });
}

static void delta_span(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                       const struct plan_span *span)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	const struct plan_buffers *f = b->buf;
	struct key key = plan_key(b, KEY_DELTA);

	key.heads = r->value_heads;
	key.kv_heads = r->key_heads;
	key.head_dim = r->key_dim;
	key.rows = r->value_dim;
	key.flags = r->tiled ? KEY_TILED : 0;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)r->value_heads * template_value_blocks(r->value_dim));
	a[DELTA_QKV] = row_of(f->m2, span, r->channels);
	a[DELTA_A] = plan_row(f->ma, span->first, r->value_heads);
	a[DELTA_B] = plan_row(f->mb, span->first, r->value_heads);
	a[DELTA_DECAY] = plan_address(l->delta_decay);
	a[DELTA_DT] = plan_address(l->delta_dt);
	a[DELTA_SCALE] = plan_f32_slot((float)(1.0 / math_host_sqrt((double)r->key_dim)));
	a[DELTA_OUT] = row_of(f->m, span, (uint64_t)r->value_heads * r->value_dim);
	a[DELTA_COLUMNS] = span->tokens;
	state_slots(b, &a[DELTA_STATE_IN], &a[DELTA_STATE_OUT],
	            plan_state_offset(b->spec, layer) + plan_conv_bytes(b->spec));
}

void step_delta_rule(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, struct activations in)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	const struct plan_buffers *f = b->buf;
	const struct plan_span *span;

	delta_inputs(b, l, in);
	convolve(b, l, layer, &(struct convolution){ .in = f->m, .out = f->m2, .act = ACT_SILU });
	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		delta_span(b, l, layer, span);
	if (r->value_dim % 32)
		norm_groups(b, &(struct group_norm){ f->m, l->delta_norm, f->m2, r->value_dim, r->value_heads, true });
	else
		step_norm_heads(b, f->m, l->delta_norm, f->m2, r->value_dim, b->n * r->value_heads);
	gate(b, f->m2, f->m3, f->ao, (uint64_t)r->value_heads * r->value_dim, ACT_SILU);
}

/* A token's norm is over all heads, or over each of the groups by itself where the layers are Nemotron's. */
static void gated_norm(struct plan_builder *b, const struct weights_layer *l, uint32_t width)
{
	const struct plan_buffers *f = b->buf;
	uint32_t groups = b->spec->one_part ? b->spec->recurrent.key_heads : 1;

	gate(b, f->m, f->m3, f->m, width, ACT_SILU);
	norm_groups(b, &(struct group_norm){ f->m, l->scan_norm, f->ao, width / groups, groups, false });
}

static void scan_span(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                      const struct plan_span *span)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	const struct plan_buffers *f = b->buf;
	struct key key = plan_key(b, KEY_SCAN);

	key.heads = r->value_heads;
	key.kv_heads = r->key_heads;
	key.head_dim = r->key_dim;
	key.rows = r->value_dim;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)r->value_heads * template_value_blocks(r->value_dim));
	a[SCAN_XBC] = row_of(f->m2, span, r->channels);
	a[SCAN_DT] = plan_row(f->ma, span->first, r->value_heads);
	a[SCAN_DT_BIAS] = plan_address(l->scan_dt_bias);
	a[SCAN_DECAY] = plan_address(l->scan_decay);
	a[SCAN_SKIP] = plan_address(l->scan_skip);
	a[SCAN_FLOOR] = plan_f32_slot(r->floor);
	a[SCAN_CEILING] = plan_f32_slot(r->ceiling != 0 ? r->ceiling : INFINITY);
	a[SCAN_OUT] = row_of(f->m, span, (uint64_t)r->value_heads * r->value_dim);
	a[SCAN_COLUMNS] = span->tokens;
	state_slots(b, &a[SCAN_STATE_IN], &a[SCAN_STATE_OUT],
	            plan_state_offset(b->spec, layer) + plan_conv_bytes(b->spec));
}

void step_selective_scan(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, struct activations in)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	const struct plan_buffers *f = b->buf;
	const struct plan_span *span;

	step_matmul(b, &(struct matmul){ .w = &l->scan_z, .in = in, .out = f->m3, .tokens = b->n });
	step_matmul(b, &(struct matmul){ .w = &l->scan_xbc, .in = in, .out = f->m, .tokens = b->n });
	step_matmul(b, &(struct matmul){ .w = &l->scan_dt, .in = in, .out = f->ma, .tokens = b->n });
	convolve(b, l, layer, &(struct convolution){ .in = f->m, .out = f->m2, .act = ACT_SILU });
	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		scan_span(b, l, layer, span);
	gated_norm(b, l, r->value_heads * r->value_dim);
}
