/* train/layer_delta.c - the gated delta rule as a graph of tensors: a convolution over the last tokens, and a state
 * that goes from token to token in a loop. Both begin anew with each text of a row.
 */
#include "graph/loop.h"
#include "train/layer_parts.h"

tensor_value layer_same_text(struct drawing *w, uint64_t back)
{
	struct draw *d = &w->d;
	const tensor_value last = draw_slice(d, w->segment, 0, 0, w->tokens - back, 1),
			   none = draw_scalar(d, -2, JIT_TYPE_I32); /* no text's number */
	const tensor_value before = draw_pad(d, last, none, (int64_t[]){ (int64_t)back }, (int64_t[]){ 0 });

	return draw_expand(d, draw_binary(d, OP_eq, w->segment, before), 1);
}

tensor_value layer_convolved(struct drawing *w, tensor_value x)
{
	const struct model_recurrent *r = &w->s->recurrent;
	struct draw *d = &w->d;
	const tensor_value taps = draw_dims(d, layer_weight(w, SLOT_taps), 2, (uint64_t[]){ r->channels, r->taps });
	tensor_value sum = 0;

	for (uint32_t i = 0; i < r->taps; i++) {
		const uint64_t back = r->taps - 1 - i;
		tensor_value y = x;
		if (back >= w->tokens)
			continue;
		if (back) {
			y = draw_slice(d, x, 0, 0, w->tokens - back, 1);
			y = draw_pad(d, y, draw_scalar(d, 0, JIT_TYPE_F32), (int64_t[]){ (int64_t)back, 0 },
			             (int64_t[]){ 0, 0 });
			y = draw_select(d, layer_same_text(w, back), y, draw_number(d, 0, y));
		}
		y = draw_binary(d, OP_mul, y, draw_squeeze(d, draw_slice(d, taps, 1, i, i + 1, 1), 1));
		sum = sum ? draw_binary(d, OP_add, sum, y) : y;
	}
	if (layer_tensor(w, SLOT_taps_bias))
		sum = draw_binary(d, OP_add, sum, layer_weight(w, SLOT_taps_bias));
	return layer_silu(d, sum);
}

/* Of queries and keys: [tokens, heads, dim], each of length 1. */
static tensor_value unit(struct draw *d, tensor_value x)
{
	const tensor_value square = draw_reduce(d, OP_reduce_sum, draw_binary(d, OP_mul, x, x), 4, true);

	return draw_binary(d, OP_mul, x, draw_unary(d, OP_rsqrt, draw_with(d, OP_add, square, 1e-6)));
}

/* Each head of keys for the heads of values that have it. */
static tensor_value for_values(struct drawing *w, tensor_value x)
{
	const struct model_recurrent *r = &w->s->recurrent;
	const uint64_t each = r->value_heads / r->key_heads;
	const unsigned axis = r->tiled ? 1 : 2;
	struct shape s = { 4,
		           { w->tokens, r->tiled ? each : r->key_heads, r->tiled ? r->key_heads : each, r->key_dim } };

	x = draw_broadcast(&w->d, draw_expand(&w->d, x, axis), &s);
	return draw_dims(&w->d, x, 3, (uint64_t[]){ w->tokens, r->value_heads, r->key_dim });
}

enum { STATE, QUERY, KEY, VALUE, DECAY, RATE, OPERANDS };

/* A token: the state fades, what it says of the key is corrected by the rate, and the query reads it. */
static bool draw_iteration(struct draw *d, const struct model_recurrent *r)
{
	const uint64_t h = r->value_heads, k = r->key_dim, v = r->value_dim;
	static const char *const name[OPERANDS] = { "state", "query", "key", "value", "decay", "rate" };
	const struct shape shape[OPERANDS] = { { 3, { h, k, v } }, { 2, { h, k } }, { 2, { h, k } },
		                               { 2, { h, v } },    { 1, { h } },    { 1, { h } } };
	tensor_value in[OPERANDS];

	for (unsigned i = 0; i < OPERANDS; i++)
		in[i] = tensor_graph_input(d->g, name[i], JIT_TYPE_F32, &shape[i], d->err);
	const tensor_value state = draw_binary(d, OP_mul, in[STATE], draw_expand(d, draw_expand(d, in[DECAY], 1), 2));
	const tensor_value said = draw_dot(d, in[KEY], state, 1, 1, 1); /* [heads, values] */
	const tensor_value change =
		draw_binary(d, OP_mul, draw_binary(d, OP_sub, in[VALUE], said), draw_expand(d, in[RATE], 1));
	const tensor_value next =
		draw_binary(d, OP_add, state,
	                    draw_binary(d, OP_mul, draw_expand(d, in[KEY], 2), draw_expand(d, change, 1)));
	const tensor_value out = draw_dot(d, in[QUERY], next, 1, 1, 1);

	return out && tensor_graph_output(d->g, "next", next, d->err) && tensor_graph_output(d->g, "out", out, d->err);
}

static tensor_value in_iterations(struct drawing *w, tensor_value operand[OPERANDS])
{
	const struct model_recurrent *r = &w->s->recurrent;
	struct loop l = { .carried = 1, .stacked = OPERANDS - 1, .length = w->tokens };
	struct draw d = { .g = &l.body, .err = w->d.err };
	const struct shape state = { 3, { r->value_heads, r->key_dim, r->value_dim } };
	tensor_value v = 0;

	tensor_graph_init(&l.body);
	operand[STATE] = draw_broadcast(&w->d, draw_scalar(&w->d, 0, JIT_TYPE_F32), &state);
	if (operand[STATE] && operand[RATE] && operand[QUERY] && operand[KEY] && draw_iteration(&d, r))
		v = graph_scan(w->d.g, &l, operand, OPERANDS, w->d.err);
	loop_close(&l);
	return v ? v + 1 : 0;
}

/* exp(-exp(A) softplus(a + bias)), and 0 where a text begins. */
static tensor_value decays(struct drawing *w, tensor_value in)
{
	struct draw *d = &w->d;
	const struct model_tensor *t = layer_tensor(w, SLOT_delta_decay);
	tensor_value by = layer_weight(w, SLOT_delta_decay);

	if (t && t->minus_exp)
		by = draw_unary(d, OP_neg, draw_unary(d, OP_exp, by));
	const tensor_value a = draw_binary(d, OP_add, layer_product(w, SLOT_delta_a, TENSOR_SLOTS, in),
	                                   layer_weight(w, SLOT_delta_dt));
	const tensor_value decay = draw_unary(d, OP_exp, draw_binary(d, OP_mul, draw_softplus(d, a), by));

	return draw_select(d, layer_same_text(w, 1), decay, draw_number(d, 0, decay));
}

tensor_value layer_delta(struct drawing *w, tensor_value in)
{
	const struct model_recurrent *r = &w->s->recurrent;
	const uint64_t keys = (uint64_t)r->key_heads * r->key_dim, values = (uint64_t)r->value_heads * r->value_dim;
	struct draw *d = &w->d;
	tensor_value operand[OPERANDS];
	const tensor_value x = layer_convolved(w, layer_product(w, SLOT_delta_qkv, TENSOR_SLOTS, in)),
			   z = layer_product(w, SLOT_delta_z, TENSOR_SLOTS, in);

	for (unsigned i = 0; i < 2; i++) {
		tensor_value part = draw_slice(d, x, 1, i * keys, (i + 1) * keys, 1);
		part = unit(d, draw_dims(d, part, 3, (uint64_t[]){ w->tokens, r->key_heads, r->key_dim }));
		operand[QUERY + i] = for_values(w, part);
	}
	operand[QUERY] = draw_with(d, OP_mul, operand[QUERY], 1 / __builtin_sqrt((double)r->key_dim));
	operand[VALUE] = draw_dims(d, draw_slice(d, x, 1, 2 * keys, 2 * keys + values, 1), 3,
	                           (uint64_t[]){ w->tokens, r->value_heads, r->value_dim });
	operand[DECAY] = decays(w, in);
	operand[RATE] = draw_unary(d, OP_logistic, layer_product(w, SLOT_delta_b, TENSOR_SLOTS, in));
	const tensor_value y = in_iterations(w, operand);
	const tensor_value normed =
		y ? draw_binary(d, OP_mul, draw_rms(d, y, 4, (double)w->s->norm_eps), layer_weight(w, SLOT_delta_norm))
		  : 0;
	return draw_binary(d, OP_mul, draw_dims(d, normed, 2, (uint64_t[]){ w->tokens, values }), layer_silu(d, z));
}
