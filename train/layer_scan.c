/* train/layer_scan.c - the selective scan as a graph of tensors, that of Mamba 2 and that of Mamba 1: a state that goes
 * from token to token in a loop. It begins anew with each text of a row.
 */
#include "graph/loop.h"
#include "train/layer_parts.h"

enum { OPERANDS_MAX = 6 };

/* The loop of a scan, its operands in the order of the body's inputs: the state, what each token has of its own, and
 * what all have. */
struct scanning {
	struct loop l;
	struct draw d; /* of its body */
	tensor_value operand[OPERANDS_MAX], in[OPERANDS_MAX];
	uint32_t operands;
	bool ok;
};

static void begin(struct scanning *t, struct drawing *w, const struct shape *state)
{
	*t = (struct scanning){ .l = { .carried = 1, .length = w->tokens }, .ok = true };
	t->d = (struct draw){ .g = &t->l.body, .err = w->d.err };
	tensor_graph_init(&t->l.body);
	t->operand[0] = draw_broadcast(&w->d, draw_scalar(&w->d, 0, JIT_TYPE_F32), state);
	t->ok = t->operand[0] && (t->in[0] = tensor_graph_input(&t->l.body, "state", JIT_TYPE_F32, state, w->d.err));
	t->operands = 1;
}

static void add_operand(struct scanning *t, struct drawing *w, const char *name, tensor_value v, bool stacked)
{
	struct shape s = draw_shape(&w->d, v);

	t->ok = t->ok && v;
	if (!t->ok)
		return;
	for (unsigned i = 0; stacked && i + 1 < s.rank; i++)
		s.dim[i] = s.dim[i + 1];
	s.rank -= stacked;
	t->l.stacked += stacked;
	t->operand[t->operands] = v;
	t->in[t->operands] = tensor_graph_input(&t->l.body, name, JIT_TYPE_F32, &s, w->d.err);
	t->ok = t->in[t->operands++] != 0;
}

/* What each token reads of the state: the loop's stacked result. */
static tensor_value end(struct scanning *t, struct drawing *w, tensor_value next, tensor_value out)
{
	tensor_value v = 0;

	if (next && out && tensor_graph_output(t->d.g, "next", next, w->d.err) &&
	    tensor_graph_output(t->d.g, "out", out, w->d.err))
		v = graph_scan(w->d.g, &t->l, t->operand, t->operands, w->d.err);
	return v ? v + 1 : 0;
}

/* -exp(A) where the file has A. */
static tensor_value decay_of(struct drawing *w, enum tensor_slot slot)
{
	const struct model_tensor *t = layer_tensor(w, slot);
	const tensor_value by = layer_weight(w, slot);

	return t && t->minus_exp ? draw_unary(&w->d, OP_neg, draw_unary(&w->d, OP_exp, by)) : by;
}

static tensor_value scaled(struct draw *d, tensor_value x, float factor)
{
	return factor != 0 ? draw_with(d, OP_mul, x, (double)factor) : x;
}

/* ---- Mamba 2: a number by which a head forgets */

static uint64_t values_of(const struct model_recurrent *r) { return (uint64_t)r->value_heads * r->value_dim; }

/* The groups' vectors in a column's part, one for each head: [tokens, heads, state]. */
static tensor_value for_heads(struct drawing *w, tensor_value x, uint64_t first)
{
	const struct model_recurrent *r = &w->s->recurrent;
	const uint64_t groups = r->key_heads, each = r->value_heads / groups;
	const struct shape s = { 4, { w->tokens, groups, each, r->key_dim } };
	struct draw *d = &w->d;

	x = draw_dims(d, draw_slice(d, x, 1, first, first + groups * r->key_dim, 1), 3,
	              (uint64_t[]){ w->tokens, groups, r->key_dim });
	return draw_dims(d, draw_broadcast(d, draw_expand(d, x, 2), &s), 3,
	                 (uint64_t[]){ w->tokens, r->value_heads, r->key_dim });
}

/* By how much each head takes up of a token: [tokens, heads]. */
static tensor_value steps_of(struct drawing *w, tensor_value in)
{
	const struct model_recurrent *r = &w->s->recurrent;
	struct draw *d = &w->d;
	tensor_value step = scaled(d, layer_product(w, SLOT_scan_dt, TENSOR_SLOTS, in), w->s->factors.scan_steps);

	step = draw_softplus(d, draw_binary(d, OP_add, step, layer_weight(w, SLOT_scan_dt_bias)));
	if (r->floor > 0)
		step = draw_with(d, OP_max, step, (double)r->floor);
	return r->ceiling > 0 ? draw_with(d, OP_min, step, (double)r->ceiling) : step;
}

static tensor_value by_heads(struct drawing *w, tensor_value x, tensor_value step, tensor_value value)
{
	const struct model_recurrent *r = &w->s->recurrent;
	const struct shape state = { 3, { r->value_heads, r->key_dim, r->value_dim } };
	struct draw *d = &w->d;
	struct scanning t;

	tensor_value decay = draw_unary(d, OP_exp, draw_binary(d, OP_mul, step, decay_of(w, SLOT_scan_decay)));
	decay = draw_select(d, layer_same_text(w, 1), decay, draw_number(d, 0, decay));
	begin(&t, w, &state);
	add_operand(&t, w, "decay", decay, true);
	add_operand(&t, w, "taken", draw_binary(d, OP_mul, value, draw_expand(d, step, 2)), true);
	add_operand(&t, w, "key", for_heads(w, x, values_of(r)), true);
	add_operand(&t, w, "query", for_heads(w, x, values_of(r) + (uint64_t)r->key_heads * r->key_dim), true);
	tensor_value y = 0;
	if (t.ok) {
		struct draw *b = &t.d;
		const tensor_value kept = draw_binary(b, OP_mul, t.in[0],
		                                      draw_expand(b, draw_expand(b, t.in[1], 1), 2)),
				   more = draw_binary(b, OP_mul, draw_expand(b, t.in[3], 2),
		                                      draw_expand(b, t.in[2], 1)),
				   next = draw_binary(b, OP_add, kept, more);
		y = end(&t, w, next, draw_dot(b, t.in[4], next, 1, 1, 1));
	}
	loop_close(&t.l);
	return y;
}

/* A norm of each group of a token's numbers by itself. */
static tensor_value normed_by_groups(struct drawing *w, tensor_value x)
{
	const struct model_recurrent *r = &w->s->recurrent;
	const uint64_t groups = w->s->one_part || w->s->attends_beside ? r->key_heads : 1;

	x = draw_dims(&w->d, x, 3, (uint64_t[]){ w->tokens, groups, values_of(r) / groups });
	x = x ? draw_rms(&w->d, x, 4, (double)w->s->norm_eps) : 0;
	x = draw_dims(&w->d, x, 2, (uint64_t[]){ w->tokens, values_of(r) });
	return draw_binary(&w->d, OP_mul, x, layer_weight(w, SLOT_scan_norm));
}

tensor_value layer_scan(struct drawing *w, tensor_value in)
{
	const struct model_recurrent *r = &w->s->recurrent;
	struct draw *d = &w->d;
	const tensor_value z = scaled(d, layer_product(w, SLOT_scan_z, TENSOR_SLOTS, in), w->s->factors.scan_gate),
			   x = layer_convolved(w, layer_product(w, SLOT_scan_xbc, TENSOR_SLOTS, in)),
			   step = steps_of(w, in),
			   value = draw_dims(d, draw_slice(d, x, 1, 0, values_of(r), 1), 3,
	                                     (uint64_t[]){ w->tokens, r->value_heads, r->value_dim });
	const tensor_value skip = draw_expand(d, layer_weight(w, SLOT_scan_skip), 1);
	tensor_value y = draw_binary(d, OP_add, by_heads(w, x, step, value), draw_binary(d, OP_mul, value, skip));

	y = draw_dims(d, y, 2, (uint64_t[]){ w->tokens, values_of(r) });
	if (w->s->scan_norm == SCAN_NORM_FIRST)
		return draw_binary(d, OP_mul, normed_by_groups(w, y), layer_silu(d, z));
	y = draw_binary(d, OP_mul, y, layer_silu(d, z));
	return w->s->scan_norm == SCAN_NORM_NONE ? y : normed_by_groups(w, y);
}

/* ---- Mamba 1: each number of a channel's state forgets at a rate of its own */

/* A product behind its norm, where there is one. */
static tensor_value narrow(struct drawing *w, enum tensor_slot slot, enum tensor_slot norm, tensor_value x)
{
	const tensor_value y = layer_product(w, slot, TENSOR_SLOTS, x);
	const float own = w->s->head_eps, eps = own != 0 ? own : w->s->norm_eps;

	return layer_tensor(w, norm) ? layer_normed(&w->d, w->s, y, layer_weight(w, norm), eps) : y;
}

/* 1 for each token that goes on with the text before it, else 0. */
static tensor_value goes_on(struct drawing *w)
{
	return draw_convert(&w->d, draw_squeeze(&w->d, layer_same_text(w, 1), 1), JIT_TYPE_F32);
}

static tensor_value by_channels(struct drawing *w, tensor_value x, tensor_value step)
{
	const struct model_recurrent *r = &w->s->recurrent;
	const uint64_t dims[] = { values_of(r), r->key_dim };
	const struct shape state = { 2, { dims[0], dims[1] } };
	const tensor_value decay = draw_dims(&w->d, decay_of(w, SLOT_channel_decay), 2, dims),
			   taken = narrow(w, SLOT_channel_b, SLOT_channel_b_norm, x),
			   read = narrow(w, SLOT_channel_c, SLOT_channel_c_norm, x);
	struct draw *d = &w->d;
	struct scanning t;
	tensor_value y = 0;

	/* The steps of a text's first token forget nothing: the state is 0 then. */
	begin(&t, w, &state);
	add_operand(&t, w, "on", goes_on(w), true);
	add_operand(&t, w, "step", step, true);
	add_operand(&t, w, "taken",
	            draw_binary(d, OP_mul, draw_expand(d, draw_binary(d, OP_mul, x, step), 2),
	                        draw_expand(d, taken, 1)),
	            true);
	add_operand(&t, w, "read", read, true);
	add_operand(&t, w, "decay", decay, false);
	if (t.ok) {
		struct draw *b = &t.d;
		const tensor_value rate = draw_unary(b, OP_exp,
		                                     draw_binary(b, OP_mul, t.in[5], draw_expand(b, t.in[2], 1))),
				   kept = draw_binary(b, OP_mul, draw_binary(b, OP_mul, t.in[0], rate), t.in[1]),
				   next = draw_binary(b, OP_add, kept, t.in[3]);
		y = end(&t, w, next, draw_reduce(b, OP_reduce_sum, draw_binary(b, OP_mul, next, t.in[4]), 2, false));
	}
	loop_close(&t.l);
	return y;
}

tensor_value layer_channel(struct drawing *w, tensor_value in)
{
	struct draw *d = &w->d;
	const tensor_value z = layer_product(w, SLOT_channel_z, TENSOR_SLOTS, in),
			   x = layer_convolved(w, layer_product(w, SLOT_channel_x, TENSOR_SLOTS, in)),
			   dt = narrow(w, SLOT_channel_dt, SLOT_channel_dt_norm, x);
	const tensor_value step = draw_softplus(d, layer_product(w, SLOT_channel_steps, SLOT_channel_bias, dt));
	const tensor_value y = draw_binary(d, OP_add, by_channels(w, x, step),
	                                   draw_binary(d, OP_mul, x, layer_weight(w, SLOT_channel_skip)));

	return draw_binary(d, OP_mul, y, layer_silu(d, z));
}
