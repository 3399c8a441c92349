/* runtime/plan/arch_experts.c - mixtures of experts (arch.h): choice, the chosen matrices, and the sum. */
#include "runtime/plan/arch.h"

/* whole: the one chosen expert has all. */
static graph_ref route_by(const struct arch *a, graph_ref logits, bool whole)
{
	const struct weights_layer *l = a->l;
	const struct graph_node n = { .kind = NODE_ROUTE,
		                      .rows = whole,
		                      .in = { [IN_X] = logits,
		                              [IN_BIAS] = graph_vector(a->g, l->router_bias, a->spec->experts),
		                              [IN_W] = graph_vector(a->g, l->expert_scale, a->spec->experts) } };

	return graph_node(a->g, &n, a->spec->experts_used);
}

static graph_ref route(const struct arch *a, graph_ref in)
{
	return route_by(a, graph_matmul(a->g, in, &a->l->router, a->l->logit_bias), false);
}

/* As graph_gated(), of each slot of the choice. */
static graph_ref chosen(const struct arch *a, graph_ref x, const struct graph_gate *m, graph_ref choice)
{
	const bool pair = m->gate && m->gate->packed;
	const struct weights_matrix *w = pair ? m->gate : m->up;
	struct graph_node n = { .kind = NODE_EXPERTS, .act = (uint8_t)m->act };

	n.in[IN_X] = x;
	n.in[IN_W] = graph_matrix(a->g, w);
	n.in[IN_BIAS] = graph_vector(a->g, pair ? m->gate_bias : m->up_bias, w->rows);
	n.in[IN_W2] = pair ? graph_matrix(a->g, m->up) : 0;
	n.in[IN_BIAS2] = pair ? graph_vector(a->g, m->up_bias, w->rows) : 0;
	n.in[IN_INTO] = choice;
	n.in[IN_ADDED] = graph_adapted_slots(a->g, x, w, choice, a->spec->experts_used);
	n.in[IN_ADDED2] = pair ? graph_adapted_slots(a->g, x, m->up, choice, a->spec->experts_used) : 0;
	return graph_node(a->g, &n, a->spec->experts_used * numerics_pad(w->rows));
}

/* The sum of slots by their shares; of one slot, by the sigmoid of `by`. */
static graph_ref combine(const struct arch *a, graph_ref x, graph_ref by, enum key_act act)
{
	const struct graph_node n = { .kind = NODE_COMBINE, .act = (uint8_t)act, .in = { [IN_X] = x, [IN_W] = by } };

	return graph_node(a->g, &n, a->spec->hidden);
}

/* The sum of the chosen experts' results, and on the way the shared expert up to its gate, which reads the same: its
 * share's logit in *share, 0 where it has none, and *shared. */
static graph_ref experts(const struct arch *a, graph_ref in, graph_ref choice, graph_ref *shared, graph_ref *share)
{
	const struct weights_layer *l = a->l;
	const graph_ref h = chosen(a, in,
	                           &(struct graph_gate){ &l->expert_gate, &l->expert_up, l->expert_gate_bias,
	                                                 l->expert_up_bias, arch_act(a->spec) },
	                           choice);

	graph_result(a->g, (uint64_t)a->spec->experts_used * numerics_pad(a->spec->hidden));
	*shared = *share = 0;
	if (l->shared_up.packed && !a->spec->experts_scaled) {
		*share = l->shared_router.packed ? graph_matmul(a->g, in, &l->shared_router, NULL) : 0;
		*shared = arch_gated(a, in, &l->shared_gate, &l->shared_up, NULL, NULL);
	}
	const graph_ref y =
		chosen(a, h, &(struct graph_gate){ .up = &l->expert_down, .up_bias = l->expert_down_bias }, choice);
	return combine(a, y, choice, ACT_NONE);
}

/* Of one chosen expert, whose share is in its input. */
static graph_ref scaled_experts(const struct arch *a, graph_ref stream, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const graph_ref logits = graph_matmul(a->g, in, &l->router, NULL),
			scaled = graph_keep(a->g, combine(a, in, route_by(a, logits, false), ACT_NONE));
	graph_ref none, share;

	stream = arch_add(a, stream, experts(a, scaled, route_by(a, logits, true), &none, &share), NULL);
	const graph_ref shared = arch_gated(a, in, &l->shared_gate, &l->shared_up, NULL, NULL);
	return arch_add(a, stream, graph_matmul(a->g, shared, &l->shared_down, NULL), NULL);
}

/* A shared expert without a logit has no share: it is added as it is. Each sum goes to the stream, or all of them
 * through the layer's norm if there is one. */
graph_ref arch_experts(const struct arch *a, graph_ref stream, graph_ref in)
{
	if (a->spec->experts_scaled)
		return scaled_experts(a, stream, graph_keep(a->g, in));
	const struct weights_layer *l = a->l;
	const graph_ref choice = route(a, in);
	graph_ref shared, share, sum = experts(a, in, choice, &shared, &share);

	if (!l->ffn_post_norm)
		stream = arch_add(a, stream, sum, NULL);
	if (shared) {
		const graph_ref y = graph_matmul(a->g, shared, &l->shared_down, NULL),
				shares = share ? combine(a, y, share, ACT_SIGMOID) : y;
		if (a->spec->shared_scale.given)
			stream = graph_add(a->g, stream, graph_scale(a->g, shares, a->spec->shared_scale.value));
		else if (l->ffn_post_norm)
			sum = graph_add(a->g, sum, shares);
		else
			stream = arch_add(a, stream, shares, NULL);
	}
	return l->ffn_post_norm ? arch_add(a, stream, sum, l->ffn_post_norm) : stream;
}

/* Three norms of the stream, which are ops of their own. */
graph_ref arch_experts_beside(const struct arch *a, graph_ref stream)
{
	const struct weights_layer *l = a->l;
	graph_ref shared, share;
	const graph_ref h = arch_gated(a, graph_keep(a->g, arch_norm(a, stream, l->ffn_norm)), &l->gate, &l->up,
	                               l->gate_bias, l->up_bias),
			dense = arch_norm(a, graph_matmul(a->g, h, &l->down, l->down_bias), l->dense_post_norm),
			choice = route(a, graph_keep(a->g, arch_norm(a, stream, l->router_scale))),
			sum = experts(a, graph_keep(a->g, arch_norm(a, stream, l->expert_norm)), choice, &shared,
	                              &share),
			both = graph_add(a->g, dense, arch_norm(a, sum, l->expert_post_norm));

	return graph_add(a->g, stream, arch_norm(a, both, l->ffn_post_norm));
}
