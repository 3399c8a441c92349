/* runtime/plan/arch.h - models drawn as graphs (graph.h).
 *
 *   arch.c            a whole model: embeddings, layers, logits
 *   arch_llama.c      the layer of Llama, and of the families that differ from it by what tensors they have
 *   arch_bert.c       the layer of BERT, whose norms stand behind its sums
 *   arch_latent.c     the layer with latent attention
 *   arch_recurrent.c  mixers that keep a state instead of keys and values
 *   arch_experts.c    mixtures of experts, in place of a feed-forward layer or beside one
 *
 * Owns: which nodes a model has, by its description and its tensors. Nothing here depends on a target, on how many
 * tokens a pass has, or on which kernels there are.
 */
#ifndef RUNTIME_ARCH_H
#define RUNTIME_ARCH_H

#include "runtime/plan/graph.h"

/* What is drawn: one layer of it, where that matters. */
struct arch {
	struct graph *g;
	const struct model_spec *spec;
	const struct weights *w;
	const struct weights_layer *l;
	uint32_t layer;
	graph_ref inputs; /* what layers get of a token's own; 0: nothing */
	uint32_t shown;   /* levels of pictures' features */
};

/* Room of a graph for one layer, and for the rest. */
enum { ARCH_NODES_LAYER = 80, ARCH_NODES_OUTSIDE = 16 };

/* A section for the embeddings, one for each layer, and one for the logits. adapted: with nodes for adapters. False:
 * err; else graph_close() is due. shown: levels of pictures' features (plan_layout_options). */
bool arch_graph(struct graph *g, const struct model_spec *spec, const struct weights *w, bool adapted, uint32_t shown,
                struct error *err);

/* ---- forms of a layer: from the stream to the stream */

#define X(id, name) graph_ref arch_##name##_layer(const struct arch *a, graph_ref stream);
MODEL_FORMS(X)
#undef X

/* ---- what forms share */

/* The activation function of the feed-forward layers. */
enum key_act arch_act(const struct model_spec *spec);
/* x behind the model's norm by these weights; as it is where there are none. */
graph_ref arch_norm(const struct arch *a, graph_ref x, const float *weight);
graph_ref arch_biased_norm(const struct arch *a, graph_ref x, const float *weight, const float *bias);
/* The product added to the stream: as it is, behind a norm, or scaled as the model's description says. */
graph_ref arch_add(const struct arch *a, graph_ref stream, graph_ref product, const float *norm);
/* act(gate x) * (up x), or act(up x) where there is no gate. */
graph_ref arch_gated(const struct arch *a, graph_ref in, const struct weights_matrix *gate,
                     const struct weights_matrix *up, const float *gate_bias, const float *up_bias);
/* A product times a factor, if there is one. */
graph_ref arch_factor(const struct arch *a, graph_ref product, float factor);
/* The dense feed-forward layer of `in`, added to the stream. */
graph_ref arch_feed_forward(const struct arch *a, graph_ref stream, graph_ref in);

/* Attention, from a layer's input to what its last matrix reads. */
graph_ref arch_attention(const struct arch *a, graph_ref in);

/* Mixers without keys and values, from a layer's input to what its last matrix reads. */
#define X(id, name, rule) graph_ref arch_##name(const struct arch *a, graph_ref in);
MODEL_MIXERS(X)
#undef X

/* A mixture of experts of `in`, added to the stream. */
graph_ref arch_experts(const struct arch *a, graph_ref stream, graph_ref in);
/* Experts and a dense feed-forward layer, each behind norms of its own; the router reads the stream. */
graph_ref arch_experts_beside(const struct arch *a, graph_ref stream);

#endif
