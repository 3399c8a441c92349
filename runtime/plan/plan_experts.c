/* runtime/plan/plan_experts.c - the steps of a mixture of experts: choice, the chosen matrices, and the sum.
 *
 * Owns: when slots are sorted by expert. One token's are not: its slots have as many matrices as there are slots. Those
 * of several tokens are, so that tokens that share an expert share the reading of its weights.
 */
#include "runtime/plan/plan_build.h"

/* Tiles of a pass are no wider than it is. */
static uint32_t tile_width(const struct plan_builder *b)
{
	uint32_t width = plan_route_width(b->opt);

	while (width > b->n)
		width /= 2;
	return b->opt->general ? 1 : width;
}

static bool sorted(const struct plan_builder *b) { return tile_width(b) > 1; }

bool plan_experts_want_int8(const struct plan_builder *b, const struct weights_layer *l)
{
	const struct weights_matrix *const reads[] = { &l->router,      &l->expert_gate, &l->expert_up,
		                                       &l->shared_gate, &l->shared_up,   &l->shared_router };

	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
		if (reads[i]->packed && plan_wants_int8(b, reads[i]))
			return true;
	return false;
}

/* As many groups as there can be. */
static uint32_t group_count(const struct plan_builder *b)
{
	uint32_t slots = b->n * b->spec->experts_used;
	return slots < b->spec->experts ? slots : b->spec->experts;
}

static void choose(struct plan_builder *b, const struct weights_layer *l)
{
	const struct model_spec *s = b->spec;
	struct key key = plan_key(b, KEY_ROUTE);

	key.rows = s->experts;
	key.heads = s->experts_used;
	key.kv_heads = s->expert_groups;
	key.k = s->expert_groups_used;
	key.flags = (s->router_sigmoid ? KEY_SIGMOID | (s->router_normed ? KEY_NORMED : 0) |
	                                         (s->router_normed && s->router_millionth ? KEY_MILLIONTH : 0)
	             : !s->router_normed ? KEY_OF_ALL
	                                 : 0) |
	            (l->router_bias ? KEY_BIAS : 0) | (l->expert_scale ? KEY_SCALED : 0);
	uint64_t *a = plan_add_op(b, &key, 0, b->n);
	a[ROUTE_LOGITS] = plan_address(b->buf->routed);
	a[ROUTE_CHOSEN] = plan_address(b->buf->chosen);
	a[ROUTE_SHARES] = plan_address(b->buf->shares);
	a[ROUTE_SCALE] = plan_f32_slot(s->router_scale.given ? s->router_scale.value : 1);
	a[ROUTE_BIAS] = plan_address(l->router_bias);
	a[ROUTE_TIMES] = plan_address(l->expert_scale);
	plan_last_op(b)->serial = b->n == 1;
}

/* Tokens' activations, copied to the places of their slots. */
static void scatter(struct plan_builder *b, struct activations in, bool int8)
{
	const struct plan_buffers *f = b->buf;
	struct key key = plan_key(b, KEY_SCATTER);

	key.k = b->spec->hidden;
	key.heads = b->spec->experts_used;
	key.activation = key_type(int8 ? DTYPE_Q8_0 : DTYPE_F32);
	uint64_t *a = plan_add_op(b, &key, 0, b->n);
	a[SCATTER_X] = int8 ? plan_address(in.q) : plan_address(in.x);
	a[SCATTER_XS] = int8 ? plan_address(in.s) : 0;
	a[SCATTER_PLACES] = plan_address(f->places);
	a[SCATTER_OUT] = int8 ? plan_address(f->exq) : plan_address(f->ex);
	a[SCATTER_OUTS] = int8 ? plan_address(f->exs) : 0;
}

/* Slots by expert, and with them their inputs in the forms that gate and up read. */
static struct activations sort(struct plan_builder *b, struct activations in, const struct weights_layer *l)
{
	const struct model_spec *s = b->spec;
	const struct plan_buffers *f = b->buf;
	const bool up = plan_wants_int8(b, &l->expert_up),
		   gate = l->expert_gate.packed ? plan_wants_int8(b, &l->expert_gate) : up;
	struct key key = plan_key(b, KEY_DISPATCH);

	key.rows = s->experts;
	key.heads = s->experts_used;
	uint64_t *a = plan_add_op(b, &key, 0, 1);
	a[DISPATCH_CHOSEN] = plan_address(f->chosen);
	a[DISPATCH_TOKENS] = b->n;
	a[DISPATCH_PLACES] = plan_address(f->places);
	a[DISPATCH_GROUPS] = plan_address(f->groups);
	a[DISPATCH_GROUP_COUNT] = group_count(b);
	plan_last_op(b)->serial = true;

	if (gate || up)
		scatter(b, in, true);
	if (!gate || !up)
		scatter(b, in, false);
	return (struct activations){ .x = f->ex, .q = f->exq, .s = f->exs };
}

/* One matrix of each slot, or pair of matrices; inputs: slots that share an input. */
static void multiply(struct plan_builder *b, const struct matmul *m, uint32_t inputs)
{
	const struct model_spec *s = b->spec;
	enum dtype act = plan_activation(b->opt, m->w->type);
	struct key key = plan_key(b, KEY_MATMUL);
	uint32_t blocks = (uint32_t)(numerics_pad(m->w->rows) / 32);

	key.weight = key_type(m->w->type);
	key.activation = key_type(act);
	key.rows = (uint32_t)m->w->rows;
	key.k = (uint32_t)m->w->k;
	key.tile_n = tile_width(b);
	key.row_blocks = 1;
	key.act = (uint8_t)m->act;
	key.flags = KEY_EXPERTS | m->flags | (m->bias ? KEY_BIAS : 0) | (m->bias2 ? KEY_BIAS2 : 0);
	if (!sorted(b)) {
		key.heads = s->experts_used;
		key.kv_heads = inputs;
	}
	uint64_t units = (uint64_t)blocks * (sorted(b) ? group_count(b) : b->n * s->experts_used);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)units);
	a[MATMUL_W] = plan_address(m->w->packed);
	a[MATMUL_X] = act == DTYPE_Q8_0 ? plan_address(m->in.q) : plan_address(m->in.x);
	a[MATMUL_XS] = act == DTYPE_Q8_0 ? plan_address(m->in.s) : 0;
	a[MATMUL_OUT] = plan_address(m->out);
	a[MATMUL_TILES] = 1;
	a[MATMUL_COLUMNS] = key.tile_n;
	a[MATMUL_BIAS] = plan_address(m->bias);
	a[MATMUL_W2] = m->w2 ? plan_address(m->w2->packed) : 0;
	a[MATMUL_BIAS2] = plan_address(m->bias2);
	if (m->flags & KEY_QUANTISED_OUT) {
		a[MATMUL_OUTQ] = plan_address(m->outq);
		a[MATMUL_OUTS] = plan_address(m->outs);
	}
	a[MATMUL_ROUTES] = sorted(b) ? plan_address(b->buf->groups) : plan_address(b->buf->chosen);
	plan_last_op(b)->uneven = sorted(b);
}

/* act(gate) * up of each slot. */
static void gate_and_up(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	const struct plan_buffers *f = b->buf;
	uint32_t out = plan_wants_int8(b, &l->expert_down) ? KEY_QUANTISED_OUT : 0, used = b->spec->experts_used;
	struct matmul m = { .w = &l->expert_gate,
		            .bias = l->expert_gate_bias,
		            .in = in,
		            .out = f->eh,
		            .outq = f->ehq,
		            .outs = f->ehs };

	if (!l->expert_gate.packed) {
		m.w = &l->expert_up;
		m.flags = out;
		m.act = plan_act(b->spec->act);
		multiply(b, &m, used);
		return;
	}
	if (weights_gate_up_interleaved(l->expert_gate.type, l->expert_up.type)) {
		m.w2 = &l->expert_up;
		m.bias2 = l->expert_up_bias;
		m.flags = KEY_PAIR | out;
		m.act = plan_act(b->spec->act);
		multiply(b, &m, used);
		return;
	}
	multiply(b, &m, used);
	m.w = &l->expert_up;
	m.bias = l->expert_up_bias;
	m.flags = KEY_GATED | out;
	m.act = plan_act(b->spec->act);
	multiply(b, &m, used);
}

/* The weighted sums of `slots` results of each token, added to the stream; `free` has room for them where they are to
 * be scaled, or stay where a feed-forward layer stands beside. */
static void combine(struct plan_builder *b, const float *in, const float *shares, uint32_t slots, uint32_t flags,
                    float *free)
{
	const struct model_spec *s = b->spec;
	const bool direct = !s->residual_scale.given && !s->experts_beside;
	struct key key = plan_key(b, KEY_COMBINE);

	key.k = s->hidden;
	key.heads = slots;
	key.flags = flags | (direct ? KEY_RESIDUAL : 0);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(b->n * (numerics_pad(s->hidden) / 32)));
	a[COMBINE_IN] = plan_address(in);
	a[COMBINE_SHARES] = plan_address(shares);
	a[COMBINE_PLACES] = flags & KEY_SORTED ? plan_address(b->buf->places) : 0;
	a[COMBINE_OUT] = direct ? plan_address(b->buf->x) : plan_address(free);
	plan_last_op(b)->serial = b->n * numerics_pad(s->hidden) * slots <= 1 << 14;
	if (s->residual_scale.given)
		step_scale(b, free, b->buf->x, b->n, s->hidden, plan_f32_slot(s->residual_scale.value), KEY_RESIDUAL);
}

/* The expert of all tokens, up to its gate; its share's logit takes the place of the router's. */
static void begin_shared(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	const struct weights_layer dense = { .gate = l->shared_gate, .up = l->shared_up, .down = l->shared_down };

	if (l->shared_router.packed)
		step_matmul(b, &(struct matmul){
				       .w = &l->shared_router, .in = in, .out = b->buf->routed, .tokens = b->n });
	step_gate_and_up(b, &dense, in);
}

static void end_shared(struct plan_builder *b, const struct weights_layer *l)
{
	const struct weights_layer dense = { .down = l->shared_down };
	const struct plan_buffers *f = b->buf;

	if (!l->shared_router.packed) {
		step_down(b, &dense);
		return;
	}
	step_matmul(b, &(struct matmul){ .w = &l->shared_down, .in = plan_gated(b), .out = f->xn, .tokens = b->n });
	combine(b, f->xn, f->routed, 1, KEY_SIGMOID, f->ex);
}

/* The router's logits, and its choice. */
static void route(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	step_matmul(b,
	            &(struct matmul){
			    .w = &l->router, .bias = l->logit_bias, .in = in, .out = b->buf->routed, .tokens = b->n });
	choose(b, l);
}

/* What reads the norm's output comes first: its memory is free for what is to be scaled, then. */
static void multiply_chosen(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	const struct plan_buffers *f = b->buf;

	gate_and_up(b, l, sorted(b) ? sort(b, in, l) : in);
	if (l->shared_up.packed)
		begin_shared(b, l, in);
	multiply(b,
	         &(struct matmul){ .w = &l->expert_down,
	                           .bias = l->expert_down_bias,
	                           .in = { .x = f->eh, .q = f->ehq, .s = f->ehs },
	                           .out = f->ex },
	         1);
	combine(b, f->ex, f->shares, b->spec->experts_used, sorted(b) ? KEY_SORTED : 0, f->xn);
	if (l->shared_up.packed)
		end_shared(b, l);
}

void step_experts(struct plan_builder *b, const struct weights_layer *l, struct activations in)
{
	route(b, l, in);
	multiply_chosen(b, l, in);
}

void step_experts_beside(struct plan_builder *b, const struct weights_layer *l)
{
	const struct plan_buffers *f = b->buf;
	const bool int8 = plan_wants_int8(b, &l->gate) || plan_wants_int8(b, &l->up);

	step_gate_and_up(b, l, step_input(b, l->ffn_norm, int8));
	step_matmul(b,
	            &(struct matmul){
			    .w = &l->down, .bias = l->down_bias, .in = plan_gated(b), .out = f->xn, .tokens = b->n });
	step_norm_into(b, f->xn, l->dense_post_norm, f->beside, 0);
	route(b, l, step_input(b, l->router_scale, plan_wants_int8(b, &l->router)));
	multiply_chosen(b, l, step_input(b, l->expert_norm, plan_experts_want_int8(b, l)));
	step_norm_into(b, f->xn, l->expert_post_norm, f->beside, KEY_RESIDUAL);
	step_norm_into(b, f->beside, l->ffn_post_norm, f->x, KEY_RESIDUAL);
}
