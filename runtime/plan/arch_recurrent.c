/* runtime/plan/arch_recurrent.c - mixers that keep a state instead of keys and values (arch.h). */
#include "runtime/plan/arch.h"

/* The convolution of those of the layer's channels that x has, which begin with this one. by: what its input is
 * multiplied by; gate: what its result is; 0: neither. */
static graph_ref convolve_part(const struct arch *a, graph_ref x, uint64_t first, graph_ref by, graph_ref gate,
                               enum key_act act)
{
	const struct model_recurrent *r = &a->spec->recurrent;
	const uint64_t width = graph_value(a->g, x)->width;
	const float *taps = a->l->taps + first * r->taps, *bias = a->l->taps_bias;
	const struct graph_node n = {
		.kind = NODE_CONV,
		.act = (uint8_t)act,
		.rows = (uint32_t)first,
		.in = { [IN_X] = x,
		        [IN_W] = gate,
		        [IN_W2] = by,
		        [IN_BIAS] = graph_vector(a->g, bias ? bias + first : NULL, width),
		        [IN_BIAS2] = graph_vector(a->g, taps, width * r->taps),
		        [IN_INTO] = graph_kept(a->g, GRAPH_STATE, a->layer) }
	};

	return graph_node(a->g, &n, width);
}

/* Of all channels. */
static graph_ref convolve(const struct arch *a, graph_ref x, graph_ref by, graph_ref gate, enum key_act act)
{
	return convolve_part(a, x, 0, by, gate, act);
}

/* A vector with a number for each head of values. */
static graph_ref of_heads(const struct arch *a, const float *v)
{
	return graph_vector(a->g, v, a->spec->recurrent.value_heads);
}

/* NODE_DELTA or NODE_SCAN, whose results are of all heads of values. */
static graph_ref rule(const struct arch *a, const struct graph_node *n)
{
	const struct model_recurrent *r = &a->spec->recurrent;
	struct graph_node with = *n;

	with.in[IN_INTO] = graph_kept(a->g, GRAPH_STATE, a->layer);
	return graph_node(a->g, &with, (uint64_t)r->value_heads * r->value_dim);
}

/* A norm of groups of a token's numbers; shared: all by the same weights. */
static graph_ref norm_groups(const struct arch *a, graph_ref x, const float *weight, uint32_t groups, bool shared)
{
	const uint64_t width = graph_value(a->g, x)->width;
	const float own = shared ? a->spec->head_eps : 0;
	const struct graph_node n = {
		.kind = NODE_NORM,
		.number = own != 0 ? own : a->spec->norm_eps,
		.groups = groups,
		.shared = shared,
		.in = { [IN_X] = x, [IN_W] = graph_vector(a->g, weight, shared ? width / groups : width) }
	};

	return graph_node(a->g, &n, width);
}

graph_ref arch_conv(const struct arch *a, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const graph_ref b = graph_matmul(a->g, in, &l->conv_b, NULL), c = graph_matmul(a->g, in, &l->conv_c, NULL),
			x = graph_matmul(a->g, in, &l->conv_x, NULL);

	return convolve(a, b, x, c, ACT_NONE);
}

/* What the rule reads: queries, keys and values in one row, or in three. */
static void delta_inputs(const struct arch *a, graph_ref in, struct graph_node *n)
{
	const struct weights_layer *l = a->l;
	const struct model_recurrent *r = &a->spec->recurrent;
	const uint64_t keys = (uint64_t)r->key_heads * r->key_dim;

	if (l->delta_qkv.packed) {
		n->in[IN_X] = convolve(a, graph_matmul(a->g, in, &l->delta_qkv, NULL), 0, 0, ACT_SILU);
		return;
	}
	n->in[IN_X] = convolve_part(a, graph_matmul(a->g, in, &l->delta_q, NULL), 0, 0, 0, ACT_SILU);
	n->in[IN_ADDED] = convolve_part(a, graph_matmul(a->g, in, &l->delta_k, NULL), keys, 0, 0, ACT_SILU);
	n->in[IN_ADDED2] = convolve_part(a, graph_matmul(a->g, in, &l->delta_v, NULL), 2 * keys, 0, 0, ACT_SILU);
}

graph_ref arch_delta(const struct arch *a, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const graph_ref z = graph_matmul(a->g, in, &l->delta_z, NULL);
	struct graph_node n = { .kind = NODE_DELTA,
		                .in = { [IN_W2] = graph_matmul(a->g, in, &l->delta_b, NULL),
		                        [IN_W] = graph_matmul(a->g, in, &l->delta_a, NULL),
		                        [IN_BIAS] = of_heads(a, l->delta_decay),
		                        [IN_BIAS2] = of_heads(a, l->delta_dt) } };

	delta_inputs(a, in, &n);
	return graph_multiply(a->g, norm_groups(a, rule(a, &n), l->delta_norm, a->spec->recurrent.value_heads, true), z,
	                      ACT_SILU);
}

/* A token's norm is over all heads, or over each of the groups by itself where the layers are Nemotron's, Falcon H1's
 * or Mamba's. */
graph_ref arch_scan(const struct arch *a, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const struct model_spec *s = a->spec;
	const uint32_t groups = s->one_part || s->attends_beside ? s->recurrent.key_heads : 1;
	const graph_ref z = arch_factor(a, graph_matmul(a->g, in, &l->scan_z, NULL), s->factors.scan_gate),
			xbc = graph_matmul(a->g, in, &l->scan_xbc, NULL),
			dt = arch_factor(a, graph_matmul(a->g, in, &l->scan_dt, NULL), s->factors.scan_steps),
			x = convolve(a, xbc, 0, 0, ACT_SILU),
			y = rule(a, &(struct graph_node){ .kind = NODE_SCAN,
	                                                  .in = { [IN_X] = x,
	                                                          [IN_W] = dt,
	                                                          [IN_W2] = of_heads(a, l->scan_decay),
	                                                          [IN_BIAS] = of_heads(a, l->scan_dt_bias),
	                                                          [IN_BIAS2] = of_heads(a, l->scan_skip) } });

	if (s->scan_norm == SCAN_NORM_FIRST)
		return graph_multiply(a->g, norm_groups(a, y, l->scan_norm, groups, false), z, ACT_SILU);
	const graph_ref gated = graph_multiply(a->g, y, z, ACT_SILU);
	return s->scan_norm == SCAN_NORM_NONE ? gated : norm_groups(a, gated, l->scan_norm, groups, false);
}

/* A product, behind its norm if there is one. */
static graph_ref normed(const struct arch *a, graph_ref in, const struct weights_matrix *w, const float *norm)
{
	const graph_ref x = graph_matmul(a->g, in, w, NULL);
	const float own = a->spec->head_eps, eps = own != 0 ? own : a->spec->norm_eps;

	return norm ? graph_keep(a->g, graph_norm(a->g, x, norm, eps)) : x;
}

graph_ref arch_channel(const struct arch *a, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const struct model_recurrent *r = &a->spec->recurrent;
	const uint64_t width = (uint64_t)r->value_heads * r->value_dim;
	const graph_ref z = graph_matmul(a->g, in, &l->channel_z, NULL),
			x = convolve(a, graph_matmul(a->g, in, &l->channel_x, NULL), 0, 0, ACT_SILU),
			dt = normed(a, x, &l->channel_dt, l->channel_dt_norm),
			b = normed(a, x, &l->channel_b, l->channel_b_norm),
			c = normed(a, x, &l->channel_c, l->channel_c_norm);
	const struct graph_node n = {
		.kind = NODE_CHANNEL,
		.in = { [IN_X] = x,
		        [IN_W] = graph_matmul(a->g, dt, &l->channel_steps, NULL),
		        [IN_W2] = b,
		        [IN_ADDED] = c,
		        [IN_BIAS] = graph_vector(a->g, l->channel_bias, width),
		        [IN_BIAS2] = graph_vector(a->g, l->channel_decay, width * r->key_dim),
		        [IN_ADDED2] = graph_vector(a->g, l->channel_skip, width),
		        [IN_INTO] = graph_kept(a->g, GRAPH_STATE, a->layer) }
	};

	return graph_multiply(a->g, graph_node(a->g, &n, width), z, ACT_SILU);
}
