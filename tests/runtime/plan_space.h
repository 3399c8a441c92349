/* tests/runtime/plan_space.h - a model of two layers, a session's buffers and its cache, of which there are addresses
 * alone: plans for it can be built and checked, not run. */
#ifndef TESTS_PLAN_SPACE_H
#define TESTS_PLAN_SPACE_H

#include "runtime/plan/live.h"

/* Every operand has an area of addresses of its own, far from all others: what number it has is in an address's upper
 * bits. Nothing lies there. */
enum { PLAN_LAYERS = 2, PLAN_MATRICES = 7, PLAN_AREA_BITS = 32, PLAN_AREAS_MAX = 160 };

struct plan_space {
	struct model_spec spec;
	struct weights weights;
	struct weights_layer layer[PLAN_LAYERS];
	uint8_t sliding[PLAN_LAYERS], mixer[PLAN_LAYERS];
	struct plan_buffers buffers;
	const struct graph *graph; /* of plan_space_settle() */
	struct plan_cache kv;
	uint8_t *pages;                 /* of the cache, which stand for all */
	uint64_t bytes[PLAN_AREAS_MAX]; /* of each area */
	unsigned areas;
};

struct plan_options;
/* Before plans are built with such options: bytes for all values. They belong to one space, the last one settled. */
bool plan_space_settle(struct plan_space *s, const struct plan_options *opt);
/* Where a value lies; what is made with a matrix, by a norm with such weights, by the first node of a kind in a layer,
 * and the stream. Of a summand: where the sum lies. */
const float *plan_space_at(const struct plan_space *s, graph_ref v);
const float *plan_space_product(const struct plan_space *s, const struct weights_matrix *w);
const float *plan_space_norm(const struct plan_space *s, uint64_t weight);
const float *plan_space_made(const struct plan_space *s, enum graph_kind kind, uint32_t layer);
const float *plan_space_stream(const struct plan_space *s);

/* Formats of q, k, v, o, gate, up and down of each layer, then of the output's matrix. */
struct plan_types {
	enum dtype layer[PLAN_LAYERS][PLAN_MATRICES], output;
};

/* The first layer is plain; the second has biases, norms of heads, sinks and a window. tokens, logit_tokens: what the
 * buffers hold. */
void plan_space_open(struct plan_space *s, const struct plan_types *types, const struct target *target, enum dtype kv,
                     uint32_t tokens, uint32_t logit_tokens);

/* Attention becomes latent, in the first layer's formats of q, k and o of both; low: queries go through a low rank. */
void plan_space_latent(struct plan_space *s, const struct plan_types *types, const struct target *target,
                       uint32_t tokens, bool low);

/* The second layer has a state instead of attention, its matrices in the formats of q, k and o. */
void plan_space_recurrent(struct plan_space *s, const struct plan_types *types, const struct target *target,
                          uint32_t tokens, enum model_mixer mixer);

/* The feed-forward layers become mixtures of experts, of the formats of gate, up and down. By softmax: the first has no
 * shared expert, the second one with a gate, and biases. By sigmoid: both have a bias of the choice, groups and a
 * shared expert, that of the first without a gate. */
void plan_space_mix(struct plan_space *s, const struct plan_types *types, const struct target *target, uint32_t tokens,
                    bool sigmoid);

/* What a family may have beside that, each by itself or together: a gate of attention in the second layer; norms behind
 * attention in both and behind the feed-forward layer in the second; scales and bounds of embeddings, results, scores
 * and logits; what layers get of a token's own, behind a norm in the second, which is then scaled; of a mixture, a
 * dense feed-forward layer beside the experts, instead of a shared one; in the first layer, norms of whole rows of
 * queries and keys; and scores that lose with distance. */
enum {
	PLAN_GATE = 1,
	PLAN_POST_NORMS = 2,
	PLAN_SCALES = 4,
	PLAN_INPUTS_OWN = 8,
	PLAN_DENSE_BESIDE = 16,
	PLAN_ROW_NORMS = 32,
	PLAN_SLOPES = 64
};
void plan_space_add(struct plan_space *s, const struct plan_types *types, const struct target *target, uint32_t tokens,
                    unsigned what);

#endif
