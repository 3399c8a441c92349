/* runtime/plan/arch.c - a whole model as a graph, and what forms of layers share (arch.h). */
#include "runtime/plan/arch.h"

enum key_act arch_act(const struct model_spec *spec)
{
	static const enum key_act acts[] = { [MODEL_SILU] = ACT_SILU,         [MODEL_GELU] = ACT_GELU,
		                             [MODEL_RELU2] = ACT_RELU2,       [MODEL_SWIGLU_OAI] = ACT_SWIGLU_OAI,
		                             [MODEL_GELU_ERF] = ACT_GELU_ERF, [MODEL_RELU] = ACT_RELU,
		                             [MODEL_XIELU] = ACT_NONE };
	return acts[spec->act];
}

graph_ref arch_norm(const struct arch *a, graph_ref x, const float *weight)
{
	return arch_biased_norm(a, x, weight, NULL);
}

graph_ref arch_biased_norm(const struct arch *a, graph_ref x, const float *weight, const float *bias)
{
	return weight ? graph_biased_norm(a->g, x, weight, bias, a->spec->norm_eps) : x;
}

graph_ref arch_add(const struct arch *a, graph_ref stream, graph_ref product, const float *norm)
{
	const struct model_scale *scale = &a->spec->residual_scale;

	if (norm)
		product = arch_norm(a, product, norm);
	else if (scale->given)
		product = graph_scale(a->g, product, scale->value);
	return graph_add(a->g, stream, product);
}

graph_ref arch_factor(const struct arch *a, graph_ref product, float factor)
{
	return factor != 0 ? graph_scale(a->g, product, factor) : product;
}

graph_ref arch_gated(const struct arch *a, graph_ref in, const struct weights_matrix *gate,
                     const struct weights_matrix *up, const float *gate_bias, const float *up_bias)
{
	return graph_gated(
		a->g, in,
		&(struct graph_gate){
			.gate = gate, .up = up, .gate_bias = gate_bias, .up_bias = up_bias, .act = arch_act(a->spec) });
}

/* xIELU of the product. */
static graph_ref bent(const struct arch *a, graph_ref in)
{
	const graph_ref x = graph_matmul(a->g, in, &a->l->up, a->l->up_bias);
	const struct graph_node n = { .kind = NODE_XIELU,
		                      .in = { [IN_X] = x, [IN_W] = graph_vector(a->g, a->l->xielu, XIELU_NUMBERS) } };

	return graph_node(a->g, &n, graph_value(a->g, x)->width);
}

/* act(gate x * factor) * (up x) */
static graph_ref gated_by_factor(const struct arch *a, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const graph_ref gate = arch_factor(a, graph_matmul(a->g, in, &l->gate, l->gate_bias),
	                                   a->spec->factors.ffn_gate),
			up = graph_matmul(a->g, in, &l->up, l->up_bias);

	return graph_multiply(a->g, up, gate, arch_act(a->spec));
}

graph_ref arch_feed_forward(const struct arch *a, graph_ref stream, graph_ref in)
{
	const struct weights_layer *l = a->l;
	const struct model_factors *f = &a->spec->factors;
	graph_ref h = f->ffn_gate != 0 ? gated_by_factor(a, in)
	              : l->xielu       ? bent(a, in)
	                               : arch_gated(a, in, &l->gate, &l->up, l->gate_bias, l->up_bias);

	if (l->ffn_sub_norm)
		h = graph_keep(a->g, arch_norm(a, h, l->ffn_sub_norm));
	return arch_add(a, stream, arch_factor(a, graph_matmul(a->g, h, &l->down, l->down_bias), f->ffn),
	                l->ffn_post_norm);
}

static graph_ref embed(const struct arch *a, const struct weights_matrix *w, enum graph_ids ids)
{
	const struct graph_node n = { .kind = NODE_EMBED, .rows = ids, .in = { [IN_W] = graph_matrix(a->g, w) } };

	return graph_node(a->g, &n, w->k);
}

static graph_ref adapted_tokens(const struct arch *a)
{
	const struct graph_node n = { .kind = NODE_ADAPT_TOKENS, .in = { [IN_W] = graph_matrix(a->g, &a->w->embed) } };
	const graph_ref sum = graph_node(a->g, &n, a->w->embed.k);

	graph_result(a->g, a->w->embed.k);
	return sum;
}

/* What the layers begin with. */
static graph_ref token_embedding(const struct arch *a)
{
	const struct weights *w = a->w;
	graph_ref e = embed(a, &w->embed, IDS_TOKENS);

	if (a->g->adapted && w->embed.site)
		e = graph_add(a->g, e, adapted_tokens(a));
	if (w->type_embed.packed)
		e = graph_add(a->g, e, embed(a, &w->type_embed, IDS_TYPES));
	if (w->pos_embed.packed)
		e = graph_add(a->g, e, embed(a, &w->pos_embed, IDS_POSITIONS));
	if (w->embed_norm)
		e = graph_biased_norm(a->g, e, w->embed_norm, w->embed_norm_bias, a->spec->norm_eps);
	return a->spec->embed_scale.given ? graph_scale(a->g, e, a->spec->embed_scale.value) : e;
}

/* For all layers at once: of a second embedding, and of a product of the first. */
static graph_ref layer_inputs(const struct arch *a, graph_ref stream)
{
	const graph_ref e = embed(a, &a->w->input_embed, IDS_TOKENS),
			p = graph_matmul(a->g, stream, &a->w->input_proj, NULL),
			norm = graph_vector(a->g, a->w->input_norm, a->spec->layer_input);
	const struct graph_node n = { .kind = NODE_LAYER_INPUTS,
		                      .rows = a->spec->layer_input,
		                      .number = a->spec->norm_eps * (float)a->spec->hidden,
		                      .in = { [IN_X] = p, [IN_W] = norm, [IN_W2] = e } };

	return graph_node(a->g, &n, (uint64_t)a->spec->layers * numerics_pad(a->spec->layer_input));
}

/* The gate's results times the layer's inputs, through a matrix into the stream; then a number. */
static graph_ref end_layer(const struct arch *a, graph_ref stream)
{
	const struct weights_layer *l = a->l;

	if (l->input_gate.packed) {
		const graph_ref gate = arch_gated(a, stream, NULL, &l->input_gate, NULL, NULL),
				own = graph_times(a->g, gate, a->inputs);
		stream = arch_add(a, stream, graph_matmul(a->g, own, &l->input_out, NULL), l->input_post_norm);
	}
	return l->layer_scale ? graph_times(a->g, stream, graph_vector(a->g, l->layer_scale, 1)) : stream;
}

/* Of tokens of pictures, what their features have for the layers behind the first ones. */
static graph_ref add_shown(const struct arch *a, graph_ref stream)
{
	if (a->layer + 1 >= a->shown)
		return stream;
	const struct graph_node n = { .kind = NODE_SHOWN, .rows = a->layer + 1 };
	return graph_add(a->g, stream, graph_node(a->g, &n, a->spec->hidden));
}

static graph_ref (*const layer_of[])(const struct arch *, graph_ref) = {
#define X(id, name) [FORM_##id] = arch_##name##_layer,
	MODEL_FORMS(X)
#undef X
};

static void draw(struct graph *g, const struct model_spec *spec, const struct weights *w, uint32_t shown)
{
	struct arch a = { .g = g, .spec = spec, .w = w, .shown = shown };

	graph_section(g, 0);
	graph_ref stream = token_embedding(&a);
	a.inputs = spec->layer_input ? layer_inputs(&a, stream) : 0;
	for (uint32_t i = 0; i < spec->layers; i++) {
		graph_section(g, i);
		a.l = &w->layer[i];
		a.layer = i;
		stream = add_shown(&a, end_layer(&a, layer_of[spec->form](&a, stream)));
	}
	graph_section(g, 0);
	graph_node(g,
	           &(struct graph_node){ .kind = NODE_HEAD,
	                                 .number = spec->norm_eps,
	                                 .in = { [IN_X] = stream,
	                                         [IN_W] = graph_matrix(g, &w->lm_head),
	                                         [IN_W2] = graph_vector(g, w->head_bias, spec->vocab),
	                                         [IN_BIAS] = graph_vector(g, w->final_norm, spec->hidden),
	                                         [IN_BIAS2] = graph_vector(g, w->final_norm_bias, spec->hidden) } },
	           spec->vocab);
	graph_result(g, spec->hidden);
	if (g->adapted && w->lm_head.site)
		graph_result(g, w->lm_head.site->ranks);
	graph_end(g);
}

bool arch_graph(struct graph *g, const struct model_spec *spec, const struct weights *w, bool adapted, uint32_t shown,
                struct error *err)
{
	if (!graph_open(g, spec->layers * ARCH_NODES_LAYER + ARCH_NODES_OUTSIDE, spec->layers + 2))
		return error_set(err, ERROR_MEMORY, "no memory for a graph of %u layers", spec->layers);
	g->adapted = adapted;
	draw(g, spec, w, shown);
	return true;
}
