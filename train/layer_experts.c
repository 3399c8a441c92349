/* train/layer_experts.c - a mixture of experts as a graph of tensors.
 *
 * Every expert computes every token, and a token takes what its chosen ones give: shapes of graphs are fixed. Experts
 * follow one another in a loop, so that one of them is unpacked at a time.
 */
#include "graph/loop.h"
#include "train/layer_parts.h"

/* Whether an expert is chosen for a token, bool[tokens, experts]: fewer than so many come before it. */
static tensor_value chosen(struct drawing *w, tensor_value by)
{
	struct draw *d = &w->d;
	const struct shape pairs = { 3, { w->tokens, w->s->experts, w->s->experts } };
	const tensor_value own = draw_expand(d, by, 2), other = draw_expand(d, by, 1),
			   first = draw_binary(d, OP_lt, draw_iota(d, JIT_TYPE_I32, &pairs, 2),
	                                       draw_iota(d, JIT_TYPE_I32, &pairs, 1));
	const tensor_value before = draw_binary(d, OP_or, draw_binary(d, OP_gt, other, own),
	                                        draw_binary(d, OP_and, draw_binary(d, OP_eq, other, own), first));
	const tensor_value rank = draw_reduce(d, OP_reduce_sum, draw_convert(d, before, JIT_TYPE_F32), 4, false);

	return draw_with(d, OP_lt, rank, w->s->experts_used);
}

/* What a token takes of each expert, f32[tokens, experts]. */
static tensor_value shares(struct drawing *w, tensor_value in)
{
	const struct model_spec *s = w->s;
	struct draw *d = &w->d;
	const tensor_value logits = layer_product(w, SLOT_router, SLOT_logit_bias, in);
	tensor_value share, by, sum;

	if (s->router_sigmoid) {
		share = draw_unary(d, OP_logistic, logits);
		by = layer_tensor(w, SLOT_router_bias)
		             ? draw_binary(d, OP_add, share, layer_weight(w, SLOT_router_bias))
		             : share;
	} else {
		const tensor_value max = draw_unary(d, OP_ceil, draw_reduce(d, OP_reduce_max, logits, 2, true));
		share = draw_unary(d, OP_exp, draw_binary(d, OP_sub, logits, max));
		by = logits;
	}
	const tensor_value all = share;
	share = draw_select(d, chosen(w, by), share, draw_number(d, 0, share));
	if (!s->router_sigmoid || s->router_normed) {
		sum = draw_reduce(d, OP_reduce_sum, s->router_normed || s->router_sigmoid ? share : all, 2, true);
		if (s->router_sigmoid)
			sum = draw_with(d, OP_add, sum, s->router_share_eps ? 1e-6 : 1e-20);
		share = draw_binary(d, OP_div, share, sum);
	}
	return s->router_scale.given ? draw_with(d, OP_mul, share, (double)s->router_scale.value) : share;
}

/* ---- the loop over experts */

struct expert_loop {
	struct loop l;
	struct draw d; /* of its body */
	tensor_value operand[16];
	uint32_t operands;
};

static tensor_value add_input(struct drawing *w, struct expert_loop *t, const char *name, tensor_value v, bool slice)
{
	struct shape s = draw_shape(&w->d, v);

	if (slice && s.rank) {
		s = (struct shape){ .rank = s.rank - 1 };
		for (unsigned i = 0; i < s.rank && i + 1 < TENSOR_MAX_RANK; i++)
			s.dim[i] = draw_dim(&w->d, v, i + 1);
	}
	t->operand[t->operands++] = v;
	return v ? tensor_graph_input(&t->l.body, name, draw_type(&w->d, v), &s, w->d.err) : 0;
}

/* All experts' matrices or biases in a slot; one iteration's slice, as f32. */
static tensor_value add_matrix(struct drawing *w, struct expert_loop *t, const char *name, enum tensor_slot slot)
{
	const struct model_tensor *of = layer_tensor(w, slot);

	return of ? layer_unpacked(&t->d, add_input(w, t, name, layer_weight(w, slot), true), of) : 0;
}

static tensor_value times(struct draw *d, tensor_value x, tensor_value matrix, tensor_value bias)
{
	const tensor_value y = draw_dot(d, x, matrix, 1, 1, 0);

	return bias ? draw_binary(d, OP_add, y, bias) : y;
}

static tensor_value draw_loop(struct drawing *w, struct expert_loop *t, tensor_value in, tensor_value share)
{
	struct draw *d = &t->d;
	const tensor_value sum = add_input(w, t, "sum", draw_number(&w->d, 0, in), false),
			   own = add_input(w, t, "share", draw_transpose(&w->d, share, (unsigned[]){ 1, 0 }), true),
			   gate = add_matrix(w, t, "gate", SLOT_expert_gate),
			   gate_bias = add_matrix(w, t, "gate_bias", SLOT_expert_gate_bias),
			   up = add_matrix(w, t, "up", SLOT_expert_up),
			   up_bias = add_matrix(w, t, "up_bias", SLOT_expert_up_bias),
			   down = add_matrix(w, t, "down", SLOT_expert_down),
			   down_bias = add_matrix(w, t, "down_bias", SLOT_expert_down_bias);

	t->l.stacked = t->operands - 1;
	const tensor_value x = add_input(w, t, "x", in, false);
	const tensor_value h =
		layer_gated(d, w->s->act, gate ? times(d, x, gate, gate_bias) : 0, times(d, x, up, up_bias));
	const tensor_value y = draw_binary(d, OP_mul, times(d, h, down, down_bias), draw_expand(d, own, 1));
	const tensor_value next = draw_binary(d, OP_add, sum, y);

	return next && tensor_graph_output(&t->l.body, "next", next, w->d.err)
	               ? graph_scan(w->d.g, &t->l, t->operand, t->operands, w->d.err)
	               : 0;
}

static tensor_value sum_of_experts(struct drawing *w, tensor_value in)
{
	struct expert_loop t = { .l = { .carried = 1, .length = w->s->experts } };

	t.d = (struct draw){ .g = &t.l.body, .err = w->d.err };
	tensor_graph_init(&t.l.body);
	const tensor_value y = draw_loop(w, &t, in, shares(w, in));
	loop_close(&t.l);
	return y;
}

tensor_value layer_experts(struct drawing *w, tensor_value in)
{
	struct draw *d = &w->d;
	const tensor_value y = sum_of_experts(w, in);

	if (!layer_tensor(w, SLOT_shared_up))
		return y;
	const tensor_value gate = layer_tensor(w, SLOT_shared_gate)
	                                  ? layer_product(w, SLOT_shared_gate, TENSOR_SLOTS, in)
	                                  : 0,
			   h = layer_gated(d, w->s->act, gate, layer_product(w, SLOT_shared_up, TENSOR_SLOTS, in));
	tensor_value shared = layer_product(w, SLOT_shared_down, TENSOR_SLOTS, h);
	if (layer_tensor(w, SLOT_shared_router))
		shared =
			draw_binary(d, OP_mul, shared,
		                    draw_unary(d, OP_logistic, layer_product(w, SLOT_shared_router, TENSOR_SLOTS, in)));
	return draw_binary(d, OP_add, y, shared);
}
