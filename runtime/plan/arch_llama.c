/* runtime/plan/arch_llama.c - the layer of Llama, and of the families that differ from it by what tensors they have, by
 * scales, and by what rotates.
 *
 * A form of layer is this function: its nodes, in their order. Biases, norms, scales, gates and windows need no word
 * here where a node of them is drawn if there are tensors for it.
 */
#include "runtime/plan/arch.h"

/* Behind a norm over all heads together, or over each with weights of its own, where there is one. */
static graph_ref row_norm(const struct arch *a, graph_ref x, const float *weight)
{
	const uint64_t width = graph_value(a->g, x)->width, dim = model_sizes_of(a->spec, a->layer).head_dim;

	if (!a->l->q_row_norm || !a->l->k_row_norm)
		return x;
	if (!a->spec->head_weights)
		return arch_norm(a, x, weight);
	const struct graph_node by_head = { .kind = NODE_NORM,
		                            .number = a->spec->norm_eps,
		                            .groups = (uint32_t)(width / dim),
		                            .in = { [IN_X] = x, [IN_W] = graph_vector(a->g, weight, width) } };
	return graph_node(a->g, &by_head, width);
}

/* The cache with these tokens' keys and values. Without matrices of its own, the layer reads another one's. */
static graph_ref store(const struct arch *a, graph_ref k, graph_ref v)
{
	const struct weights_layer *l = a->l;
	const graph_ref cache = graph_kept(a->g, GRAPH_CACHE, model_sizes_of(a->spec, a->layer).kv_layer);

	if (!k)
		return cache;
	return graph_node(a->g,
	                  &(struct graph_node){ .kind = NODE_STORE,
	                                        .in = { [IN_X] = k,
	                                                [IN_W] = graph_vector(a->g, l->k_norm, a->spec->head_dim),
	                                                [IN_W2] = v,
	                                                [IN_INTO] = cache } },
	                  0);
}

/* Each head's result times the softplus of its number. */
static graph_ref by_heads(const struct arch *a, graph_ref x, graph_ref gate, uint32_t heads)
{
	const struct graph_node n = {
		.kind = NODE_GATE, .act = ACT_SOFTPLUS, .groups = heads, .in = { [IN_X] = x, [IN_W] = gate }
	};

	return graph_node(a->g, &n, graph_value(a->g, x)->width);
}

graph_ref arch_attention(const struct arch *a, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const uint32_t heads = model_heads_of(a->spec, a->layer);
	const uint64_t dim = model_sizes_of(a->spec, a->layer).head_dim, width = heads * dim;
	graph_ref q = graph_matmul(a->g, in, &l->q, l->q_bias), k = 0, v, gate = 0, of_heads = 0;

	if (l->k.packed) /* else they are another layer's */
		k = graph_matmul(a->g, in, &l->k, l->k_bias);
	v = k;
	if (l->v.packed) /* else they are what the keys are made of */
		v = graph_matmul(a->g, in, &l->v, l->v_bias);
	if (l->q_gate.packed)
		gate = graph_matmul(a->g, in, &l->q_gate, l->q_gate_bias);
	if (l->head_gate.packed)
		of_heads = graph_matmul(a->g, in, &l->head_gate, NULL);
	q = row_norm(a, q, l->q_row_norm);
	if (k) {
		const graph_ref normed = row_norm(a, k, l->k_row_norm);
		v = v == k ? normed : v;
		k = normed;
	}
	const graph_ref rotated =
		graph_node(a->g,
	                   &(struct graph_node){ .kind = NODE_ROTATE,
	                                         .in = { [IN_X] = q, [IN_W] = graph_vector(a->g, l->q_norm, dim) } },
	                   width);
	const graph_ref cache = store(a, k, v);
	const struct graph_node attend = { .kind = NODE_ATTEND,
		                           .in = { [IN_X] = rotated,
		                                   [IN_W] = cache,
		                                   [IN_BIAS] = graph_vector(a->g, l->sinks, heads),
		                                   [IN_BIAS2] = graph_vector(a->g, a->w->score_bias, heads) } };
	const graph_ref out = graph_node(a->g, &attend, width);
	if (l->attn_sub_norm)
		return graph_keep(a->g, arch_norm(a, out, l->attn_sub_norm));
	if (of_heads)
		return by_heads(a, out, of_heads, heads);
	return gate ? graph_multiply(a->g, out, gate, ACT_SIGMOID) : out;
}

/* The state's result and attention's, both of one input. */
static graph_ref mix_both(const struct arch *a, graph_ref stream, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const struct model_factors *f = &a->spec->factors;
	const graph_ref scan = graph_matmul(a->g, arch_scan(a, in), &l->scan_out, NULL),
			attention = graph_matmul(a->g, arch_attention(a, in), &l->o, l->o_bias);

	stream = arch_add(a, stream, arch_factor(a, scan, f->scan), NULL);
	return arch_add(a, stream, arch_factor(a, attention, f->attention), NULL);
}

/* What each mixer makes of its input, and the matrix whose product is added to the stream. */
static graph_ref mix(const struct arch *a, enum model_mixer mixer, graph_ref stream, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const float *norm = l->attn_post_norm;

	switch (mixer) {
#define X(id, name, rule) \
	case MIXER_##id: return arch_add(a, stream, graph_matmul(a->g, arch_##name(a, in), &l->name##_out, NULL), norm);
		MODEL_MIXERS(X)
#undef X
	default: return arch_add(a, stream, graph_matmul(a->g, arch_attention(a, in), &l->o, l->o_bias), norm);
	}
}

graph_ref arch_llama_layer(const struct arch *a, graph_ref stream)
{
	const struct model_spec *s = a->spec;
	const struct weights_layer *l = a->l;
	const enum model_mixer mixer = model_layer_mixer(s, a->layer);
	graph_ref in = 0, beside = 0;

	if (s->parallel && l->ffn_norm)
		beside = arch_biased_norm(a, stream, l->ffn_norm, l->ffn_norm_bias);
	if (mixer != MIXER_NONE) {
		in = arch_biased_norm(a, stream, l->attn_norm, l->attn_norm_bias);
		stream = s->attends_beside ? mix_both(a, stream, in) : mix(a, mixer, stream, in);
	}
	if (s->one_part && mixer != MIXER_NONE)
		return stream;
	if (l->router.packed && s->experts_beside)
		return arch_experts_beside(a, stream);
	if (!s->parallel)
		in = arch_biased_norm(a, stream, l->ffn_norm, l->ffn_norm_bias);
	else if (beside)
		in = beside;
	return l->router.packed ? arch_experts(a, stream, in) : arch_feed_forward(a, stream, in);
}
