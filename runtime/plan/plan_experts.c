/* runtime/plan/plan_experts.c - rules of a mixture of experts: choice, the chosen matrices, and the sum.
 *
 * Owns: when slots are sorted by expert. One token's are not: its slots have as many matrices as there are slots. Those
 * of several tokens are, so that tokens that share an expert share the reading of its weights.
 */
#include "runtime/plan/lower.h"

/* Tiles of a pass are no wider than it is. */
static uint32_t tile_width(const struct plan_builder *b)
{
	uint32_t width = plan_route_width(b->opt);

	while (width > b->n)
		width /= 2;
	return b->opt->general ? 1 : width;
}

bool plan_sorts_slots(const struct plan_builder *b) { return tile_width(b) > 1; }

/* As many groups as there can be. */
static uint32_t group_count(const struct plan_builder *b)
{
	uint32_t slots = b->n * b->spec->experts_used;
	return slots < b->spec->experts ? slots : b->spec->experts;
}

static uint64_t choice_at(const struct plan_builder *b, graph_ref choice, enum plan_form form)
{
	return plan_address(plan_at(b, choice, form));
}

/* Slots by expert: where each one's column lies. */
static void dispatch(struct plan_builder *b, graph_ref choice)
{
	struct key key = plan_key(b, KEY_DISPATCH);

	key.rows = b->spec->experts;
	key.heads = b->spec->experts_used;
	uint64_t *a = plan_add_op(b, &key, 0, 1);
	a[DISPATCH_CHOSEN] = choice_at(b, choice, CHOICE_CHOSEN);
	a[DISPATCH_TOKENS] = b->n;
	a[DISPATCH_POSITIONS] = choice_at(b, choice, CHOICE_POSITIONS);
	a[DISPATCH_GROUPS] = choice_at(b, choice, CHOICE_GROUPS);
	a[DISPATCH_GROUP_COUNT] = group_count(b);
	plan_last_op(b)->serial = true;
}

void lower_route(struct plan_builder *b, const struct graph_node *n)
{
	const struct model_spec *s = b->spec;
	const float *bias = graph_vector_of(b->g, n->in[IN_BIAS]), *times = graph_vector_of(b->g, n->in[IN_W]);
	struct key key = plan_key(b, KEY_ROUTE);

	key.rows = s->experts;
	key.heads = s->experts_used;
	key.kv_heads = s->expert_groups;
	key.k = s->expert_groups_used;
	key.flags = (s->router_sigmoid ? KEY_SIGMOID | (s->router_normed ? KEY_NORMED : 0) |
	                                         (s->router_normed && s->router_share_eps ? KEY_SHARE_EPS : 0)
	             : !s->router_normed ? KEY_OF_ALL
	                                 : 0) |
	            (bias ? KEY_BIAS : 0) | (times ? KEY_SCALED : 0);
	if (n->rows) /* a softmax over one */
		key.flags = 0;
	if (s->router_near != 0)
		key.flags = KEY_GREATEST;
	uint64_t *a = plan_add_op(b, &key, 0, b->n);
	a[ROUTE_LOGITS] = plan_address(plan_floats(b, n->in[IN_X]));
	a[ROUTE_CHOSEN] = choice_at(b, n->out[0], CHOICE_CHOSEN);
	a[ROUTE_SHARES] = choice_at(b, n->out[0], CHOICE_SHARES);
	a[ROUTE_SCALE] = plan_f32_slot(s->router_near != 0     ? s->router_near
	                               : s->router_scale.given ? s->router_scale.value
	                                                       : 1);
	a[ROUTE_BIAS] = plan_address(bias);
	a[ROUTE_TIMES] = plan_address(times);
	plan_last_op(b)->serial = b->n == 1;
	if (plan_sorts_slots(b))
		dispatch(b, n->out[0]);
}

/* Tokens' activations, copied to the places of their slots. */
static void scatter(struct plan_builder *b, const struct graph_node *n, bool int8)
{
	const struct activations in = plan_operand(b, n->in[IN_X]), out = plan_operand(b, n->out[1]);
	struct key key = plan_key(b, KEY_SCATTER);

	key.k = b->spec->hidden;
	key.heads = b->spec->experts_used;
	key.activation = key_type(int8 ? DTYPE_Q8_0 : DTYPE_F32);
	uint64_t *a = plan_add_op(b, &key, 0, b->n);
	a[SCATTER_X] = int8 ? plan_address(in.q) : plan_address(in.x);
	a[SCATTER_XS] = int8 ? plan_address(in.s) : 0;
	a[SCATTER_POSITIONS] = choice_at(b, n->in[IN_INTO], CHOICE_POSITIONS);
	a[SCATTER_OUT] = int8 ? plan_address(out.q) : plan_address(out.x);
	a[SCATTER_OUTS] = int8 ? plan_address(out.s) : 0;
}

/* The inputs of slots by expert, in the forms that gate and up read. */
static struct activations sort(struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]), *w2 = graph_matrix_of(b->g, n->in[IN_W2]);
	const bool gate = plan_wants_int8(b, w), up = w2 ? plan_wants_int8(b, w2) : gate;

	if (gate || up)
		scatter(b, n, true);
	if (!gate || !up)
		scatter(b, n, false);
	return plan_operand(b, n->out[1]);
}

/* One matrix of each slot, or pair of matrices; inputs: slots that share an input. */
static void multiply(struct plan_builder *b, const struct matmul *m, graph_ref choice, uint32_t inputs)
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
	if (!plan_sorts_slots(b)) {
		key.heads = s->experts_used;
		key.kv_heads = inputs;
	}
	uint64_t units = (uint64_t)blocks * (plan_sorts_slots(b) ? group_count(b) : b->n * s->experts_used);
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
	if (m->flags & KEY_ADDED)
		a[MATMUL_ADDED] = plan_address(m->added);
	if (m->flags & KEY_ADDED && m->flags & KEY_PAIR)
		a[MATMUL_ADDED2] = plan_address(m->added2);
	if (m->flags & KEY_QUANTISED_OUT) {
		a[MATMUL_OUTQ] = plan_address(m->outq);
		a[MATMUL_OUTS] = plan_address(m->outs);
	}
	a[MATMUL_ROUTES] = choice_at(b, choice, plan_sorts_slots(b) ? CHOICE_GROUPS : CHOICE_CHOSEN);
	plan_last_op(b)->uneven = plan_sorts_slots(b);
}

/* Inputs come sorted where slots are; results of other slots are. */
void lower_experts(struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]), *w2 = graph_matrix_of(b->g, n->in[IN_W2]);
	const struct graph_node *by = graph_producer(b->g, n->in[IN_X]);
	const bool of_slots = by && by->kind == NODE_EXPERTS;
	const uint32_t inputs = of_slots ? 1 : b->spec->experts_used, pair = plan_pair_of(b, n);
	const struct activations in = plan_operand(b, n->in[IN_X]), out = plan_operand(b, n->out[0]);
	struct matmul m = { .w = w,
		            .bias = graph_vector_of(b->g, n->in[IN_BIAS]),
		            .in = !of_slots && plan_sorts_slots(b) ? sort(b, n) : in,
		            .out = out.x,
		            .outq = out.q,
		            .outs = out.s };

	if (w2 && !pair) {
		plan_set_added(b, n, &m, false);
		multiply(b, &m, n->in[IN_INTO], inputs);
		m.w = w2;
		m.bias = graph_vector_of(b->g, n->in[IN_BIAS2]);
		m.flags = KEY_GATED;
	} else if (pair) {
		m.w2 = w2;
		m.bias2 = graph_vector_of(b->g, n->in[IN_BIAS2]);
		m.flags = KEY_PAIR;
	}
	plan_set_added(b, n, &m, m.flags & KEY_GATED);
	m.act = (enum key_act)n->act;
	m.flags |= b->of[n->out[0]].int8 ? KEY_QUANTISED_OUT : 0;
	multiply(b, &m, n->in[IN_INTO], inputs);
}

/* The weighted sums of slots' results of each token; or one result times the sigmoid of its share's logit. */
void lower_combine(struct plan_builder *b, const struct graph_node *n)
{
	const struct model_spec *s = b->spec;
	const graph_ref to = plan_added_to(b, n);
	const struct graph_node *by = graph_producer(b->g, n->in[IN_X]);
	const bool sigmoid = n->act == ACT_SIGMOID, of_slots = by && by->kind == NODE_EXPERTS,
		   sorts = !sigmoid && of_slots && plan_sorts_slots(b);
	const uint32_t slots = sigmoid ? 1 : s->experts_used;
	struct key key = plan_key(b, KEY_COMBINE);

	key.k = s->hidden;
	key.heads = slots;
	key.flags = (sigmoid ? KEY_SIGMOID : 0) | (sorts ? KEY_SORTED : 0) | (to ? KEY_RESIDUAL : 0);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(b->n * (numerics_pad(s->hidden) / 32)));
	a[COMBINE_IN] = plan_address(plan_floats(b, n->in[IN_X]));
	a[COMBINE_SHARES] =
		plan_address(sigmoid ? plan_floats(b, n->in[IN_W]) : plan_at(b, n->in[IN_W], CHOICE_SHARES));
	a[COMBINE_POSITIONS] = sorts ? choice_at(b, n->in[IN_W], CHOICE_POSITIONS) : 0;
	a[COMBINE_OUT] = plan_address(plan_floats(b, to ? to : n->out[0]));
	plan_last_op(b)->serial = b->n * numerics_pad(s->hidden) * slots <= 1 << 14;
}
