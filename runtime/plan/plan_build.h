/* runtime/plan/plan_build.h - what the files that build plans share: the builder, its steps, and the forms of a layer.
 *
 *   plan.c         the lists of a plan: ops, stages, sections
 *   plan_tiles.c   how the tokens of a matmul are cut into tiles, and which widths that gives
 *   plan_matmul.c  the step matmul: its tiles' ops, and what prepares their inputs
 *   plan_experts.c the steps of a mixture of experts
 *   plan_attention.c  the step attention, whole or with its context in parts
 *   plan_steps.c   every other step of a pass
 *   plan_handed.c  what is handed over while a pass runs, and where it lies
 *   plan_inputs.c  embeddings, and what layers get of a token's own
 *   arch_NAME.c    a form of layer: its steps, in their order
 *
 *   order.c        barriers and stages, behind all steps: no step knows of any
 *
 * Owns: the names of the steps. A step adds one op or a few, which read and write activation buffers (PLAN_BUFFERS). A
 * step that only one form has may stand in its file.
 */
#ifndef RUNTIME_PLAN_BUILD_H
#define RUNTIME_PLAN_BUILD_H

#include "kernels-templates/matmul/recipe.h"
#include "runtime/plan/plan.h"

enum { PLAN_CUTS_MOST = 5 /* sorts of tiles that a matmul's tokens are cut into */ };

/* An op that turns inputs, whole: two that are the same write the same bytes. */
struct plan_turn {
	struct key key;
	int64_t units;
	uint64_t arg[INTERLEAVE_ARGS];
};
_Static_assert(sizeof(struct plan_turn) == sizeof(struct key) + 8 + 8 * INTERLEAVE_ARGS, "turns are compared as bytes");

struct plan_builder {
	struct plan *p;
	const struct model_spec *spec;
	const struct plan_buffers *buf;
	const struct plan_cache *kv;
	const struct plan_options *opt;
	size_t launch_capacity, args_used, changing_capacity;
	uint32_t n; /* tokens */
	/* Whose they are; and of which of them ops are added, `spans` outside of a loop over plan_span_at(). */
	const struct plan_span *span;
	uint32_t spans, sequence;
	/* The ops that wrote what the buffers of turned inputs hold, and how many ops there were behind each. */
	struct plan_turn turned[PLAN_CUTS_MOST];
	size_t turned_end[PLAN_CUTS_MOST];
	unsigned n_turned;
	/* A plan that hands over: buf is own, whose buffers of the stream, q, k and v, and of what is given of ao and
	 * h, floats or int8 blocks, lie in the region. */
	bool handed;
	bool few; /* a plan of launches for a few tokens, whose attention rotates, stores and splits the context */
	struct plan_buffers own, plain; /* plain: where they lie else */
	uint64_t handed_used;
};

/* ---- ops (plan.c) */

static inline uint64_t plan_address(const void *p) { return (uint64_t)(uintptr_t)p; }
/* An f32 as an argument. */
uint64_t plan_f32_slot(float f);
/* A key of that kind, for the plan's target. */
struct key plan_key(const struct plan_builder *b, enum key_kind kind);
/* Adds an op of units [begin, end). Returns its argument slots, all zero. */
uint64_t *plan_add_op(struct plan_builder *b, const struct key *key, int64_t begin, int64_t end);
/* What the plan has no op of, but others of the same session will have. */
void plan_expect_kernel(struct plan_builder *b, const struct key *key);
struct plan_op *plan_last_op(struct plan_builder *b);
/* What the slot is to hold differs from run to run; offset: of a state, the layer's. */
void plan_changing_slot(struct plan_builder *b, uint64_t *slot, enum plan_change what, uint64_t offset);
/* The span of a sequence, by number from 0, whose ops are added from now on; NULL: there are no more. Ops that know a
 * sequence (its cache, its state) are added for one after the other. */
const struct plan_span *plan_span_at(struct plan_builder *b, uint32_t sequence);

/* ---- tiles (plan_tiles.c) */

/* Columns first, first + 1, ... as `tiles` tiles. flags: KEY_MMA, KEY_WIDE, or neither. */
struct plan_tiles {
	uint32_t first, width, tiles, flags;
	uint32_t schedule; /* the key's */
	uint32_t missing;  /* columns that the last tile lacks (recipe.h: short_last) */
};
static inline uint32_t plan_tiles_columns(const struct plan_tiles *t) { return t->width * t->tiles - t->missing; }
static inline uint32_t plan_tiles_end(const struct plan_tiles *t) { return t->first + plan_tiles_columns(t); }

/* The key of a matmul of so many columns, to ask for its recipe: as ops have it, but for biases, what the activation
 * function is, and the code generator's id. */
struct key plan_matmul_key(const struct plan_options *opt, const struct weights_matrix *w, uint32_t flags,
                           uint32_t columns);
/* How a pass over so many columns should cut it. bounded: matrices may be multiplied in that class. */
struct matmul_widths plan_widths_of(const struct plan_options *opt, const struct weights_matrix *w, uint32_t flags,
                                    uint32_t columns, bool bounded);
/* Columns of a tile of experts', at most. */
uint32_t plan_route_width(const struct plan_options *opt);
/* What a matmul with such weights reads: f32, or int8 blocks. */
enum dtype plan_activation(const struct plan_options *opt, enum dtype weight);
/* The same of a matrix whose kernels have such flags; BF16 where f32 is multiplied in pairs. */
enum dtype plan_matmul_activation(const struct plan_options *opt, const struct weights_matrix *w, uint32_t flags);
/* How a matrix times so many tokens is done; returns how many sorts of tiles: those by matrices first. */
unsigned plan_cut_matmul(const struct plan_options *opt, enum plan_logits logits, const struct weights_matrix *w,
                         uint32_t flags, uint32_t tokens, struct plan_tiles out[PLAN_CUTS_MOST]);

/* KEY_PAIR where a layer's gate and its partner are multiplied as one; else 0. */
static inline uint32_t plan_pair(const struct weights_layer *l)
{
	return l->gate.packed && weights_gate_up_interleaved(l->gate.type, l->up.type) ? KEY_PAIR : 0;
}

/* Whether this matrix times so many tokens makes the norm of its input itself, in every op. flags: of the matmul. */
bool plan_norm_inside(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags, uint32_t tokens);

/* ---- plans that hand over (plan_handed.c); of others all of this does nothing */

bool plan_hands(const struct plan_builder *b, const struct weights *w);
/* How the tokens of a matmul that awaits are cut: one tile, or two. 0: there is no such way. flags: the key's. */
unsigned plan_handed_tiles(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags,
                           uint32_t tokens, struct plan_tiles out[2]);
void plan_handed_begin(struct plan_builder *b);
void plan_handed_layer(struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
/* Of several tokens: where the next norm leaves its int8 blocks, from now on buf->xnq and xns. */
void plan_handed_norm(struct plan_builder *b);
/* Where the stream goes on behind a product that is added to it: from now on buf->x. */
float *plan_next_stream(struct plan_builder *b);
void plan_handed_end(struct plan_builder *b);

/* ---- what steps work on (plan_steps.c) */

/* The slots of an op for a layer's cache: where its keys begin in a page, and its values (NULL: there are none); the
 * table of pages, and where the first token is. */
struct plan_cache_slots {
	uint64_t *keys, *values, *pages, *position;
};
void plan_set_cache(struct plan_builder *b, uint32_t layer, const struct plan_cache_slots *slots);
/* Where a table of cosines or sines begins (rope.h). */
uint64_t plan_angles(const struct plan_builder *b, const float *tables, uint32_t table);
/* Where a token's row of f32 is, of rows that are `width` wide and padded. */
static inline uint64_t plan_row(const float *rows, uint32_t token, uint64_t width)
{
	return plan_address(rows + token * numerics_pad(width));
}

/* ---- steps */

/* An activation in both of its forms, of which a step uses those that it needs; or, where there is `norm`, f32 whose
 * norm by these weights each matmul makes for itself. */
struct activations {
	float *x;
	int8_t *q;
	struct activation_block *s;
	const float *norm;
};
/* Those of the buffers: behind a norm, behind attention, inside the feed-forward layer. */
struct activations plan_normed(const struct plan_builder *b);
struct activations plan_attended(const struct plan_builder *b);
struct activations plan_gated(const struct plan_builder *b);

/* The activation function of a key. */
enum key_act plan_act(enum model_act act);

struct matmul {
	const struct weights_matrix *w, *w2; /* w2: with KEY_PAIR */
	const float *bias, *bias2;           /* NULL: none */
	struct activations in;
	const float *from; /* with KEY_RESIDUAL, where plans hand over: what the product is added to */
	float *out;
	int8_t *outq; /* and outs: with KEY_QUANTISED_OUT */
	struct activation_block *outs;
	float *greatest;        /* with KEY_GREATEST */
	uint32_t flags, tokens; /* flags: KEY_PAIR, KEY_GATED, KEY_RESIDUAL, KEY_QUANTISED_OUT, KEY_GREATEST */
	enum key_act act;       /* with KEY_PAIR and KEY_GATED */
};
/* n tokens of width k times a number, or as KEY_SCALE's flags say; by: its argument. */
void step_scale(struct plan_builder *b, const float *in, float *out, uint32_t n, uint64_t k, uint64_t by,
                uint32_t flags);
void step_matmul(struct plan_builder *b, const struct matmul *m);

/* Whether a matmul with these weights reads its input as int8. */
bool plan_wants_int8(const struct plan_builder *b, const struct weights_matrix *w);

/* The norm of tokens of x; int8: its blocks, too. */
void step_norm(struct plan_builder *b, const float *x, const float *weight, bool int8, uint32_t tokens,
               struct activations out);
/* A norm of the tokens of a buffer of hidden width, into another; KEY_RESIDUAL: added to it. */
void step_norm_into(struct plan_builder *b, const float *x, const float *weight, float *out, uint32_t flags);
/* The int8 blocks of what is there as f32, k of each token. */
void step_quantise(struct plan_builder *b, struct activations a, uint64_t k);
/* The norm of a vector of low rank, of k numbers (model.h: MODEL_LATENT_EPS). */
void step_latent_norm(struct plan_builder *b, const float *x, const float *weight, uint32_t k, bool int8,
                      struct activations out);
/* The stream's tokens, and what their layers get of each one's own. */
void step_embed(struct plan_builder *b, const struct weights *w);
/* What a layer's matrices read: the stream's tokens behind a norm, or as they are (weight NULL). */
struct activations step_input(struct plan_builder *b, const float *weight, bool int8);
/* The same where nobody but matrices `first` to `last` of the layer reads it, before the stream changes: without an op
 * where they all make the norm themselves. */
struct activations step_input_of(struct plan_builder *b, const struct weights_layer *l, const float *weight,
                                 enum matrix_slot first, enum matrix_slot last);
/* Q, K and V of these tokens; with norms over all heads together where there are any. Keys are left in buf->k. */
void step_queries_keys_values(struct plan_builder *b, const struct weights_layer *l, struct activations in);
/* Rotates queries and keys, behind their norms where there are any; stores keys and values. Nothing where the step
 * attention does so in its own op. */
bool plan_is_few(const struct plan_builder *b, const struct weights *w);
/* Whether attention of the pass's several tokens can rotate, store, and have parts. */
bool plan_attends_several(const struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
bool plan_quantises_inside(const struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
bool plan_rotates_inside(const struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
/* The flags of a norm of each head; the slots of attention that rotates, from that token on. */
uint32_t plan_head_norm(const struct plan_builder *b, const float *weight);
void plan_set_rotation(const struct plan_builder *b, const struct weights_layer *l, uint32_t layer, uint32_t first,
                       uint64_t *a);
void step_rotate_and_store(struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
/* The units of a chain that one head of keys has, of an op with so many for each; 0: the layer has no chain. */
uint32_t plan_chained(const struct plan_builder *b, uint32_t layer, uint32_t units);
/* Whether its context is in parts, which are merged. */
bool plan_merges(const struct plan_builder *b, uint32_t layer);
void step_attention(struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
/* Behind all layers of a plan that hands over, in the stage of the last norm: the keys and values of attention that
 * does not store them, because other units of it have copies of the same chunks. */
void step_store_behind(struct plan_builder *b);
/* A norm of each `k` numbers of a buffer in turn, `tokens` times so many. */
void step_norm_heads(struct plan_builder *b, const float *x, const float *weight, float *out, uint32_t k,
                     uint32_t tokens);
/* Attention's result, times the sigmoid of the gate that stood beside the queries. */
void step_gate_attention(struct plan_builder *b);
/* The gated delta rule, from a layer's input to its result, which is where attention leaves its own. */
void step_delta_rule(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, struct activations in);
/* The selective scan, likewise. */
void step_selective_scan(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, struct activations in);
/* A matrix whose results are added to the stream; on the way there, a norm or a scale. */
void step_add_product(struct plan_builder *b, const struct weights_matrix *w, const float *bias, struct activations in,
                      const float *norm);
/* A short convolution between two gates, from a layer's input to its output, which is added to the stream. */
void step_short_convolution(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                            struct activations in);
/* What mixed the tokens, times this matrix, added to the stream: as it is, scaled, or behind a norm. */
void step_mixer_output(struct plan_builder *b, const struct weights_layer *l, const struct weights_matrix *o);
/* The same of attention. */
void step_attention_output(struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
/* act(gate) * up of these tokens, in one op when the matrices are alike; act(up) where there is no gate. */
void step_gate_and_up(struct plan_builder *b, const struct weights_layer *l, struct activations in);
/* The feed-forward layer's output, added to the stream as attention's. */
void step_down(struct plan_builder *b, const struct weights_layer *l);
/* The feed-forward layer of a mixture of experts, added to the stream. */
void step_experts(struct plan_builder *b, const struct weights_layer *l, struct activations in);
/* Both a dense feed-forward layer and experts, each behind norms of its own; the router reads the stream. */
void step_experts_beside(struct plan_builder *b, const struct weights_layer *l);
/* Whether any of its matrices reads int8. */
bool plan_experts_want_int8(const struct plan_builder *b, const struct weights_layer *l);
/* After both: adds the layer's own input of the token to the stream, and multiplies the stream by a number. Each only
 * if there are tensors for it. */
void step_layer_end(struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
/* The final norm, and the output matrix unless only the norm is wanted. */
void step_logits(struct plan_builder *b, const struct weights *w, enum plan_logits which);

/* ---- forms of a layer */

#define X(id, name) void arch_##name##_layer(struct plan_builder *b, const struct weights_layer *l, uint32_t layer);
MODEL_FORMS(X)
#undef X

#endif
