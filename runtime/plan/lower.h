/* runtime/plan/lower.h - the pass that makes ops of a graph's nodes, for so many tokens and a target.
 *
 *   plan.c            the lists of a plan: ops, stages, sections
 *   lower.c           what is decided over several nodes; the walk over all of them
 *   live.c            which bytes values have
 *   addresses.c       which value is in them
 *   plan_tiles.c      how the tokens of a matmul are cut into tiles, and which widths that gives
 *   plan_matmul.c     rules of matrix products: their tiles' ops, and what prepares their inputs
 *   plan_experts.c    rules of mixtures of experts
 *   plan_adapt.c      rules of adapters, and how a pass's tokens are cut into tiles for them
 *   plan_rotation.c   rules of rotation and of storing keys and values
 *   plan_attention.c  the rule of attention, whole or with its context in parts
 *   plan_latent.c     those of latent attention
 *   plan_recurrent.c  rules of convolutions, the delta rule and the selective scan
 *   plan_steps.c      rules of norms, scales, sums and logits
 *   plan_dataflow.c   what nodes await of each other while a pass runs, and where it lies
 *   plan_inputs.c     embeddings, and what layers get of a token's own
 *   order.c           barriers and stages, behind all rules: no rule knows of any
 *
 * Owns: the builder, and the names of the rules. A rule is called once for each node of its kind and adds one op, a
 * few, or none where another node's kernel does its work.
 */
#ifndef RUNTIME_LOWER_H
#define RUNTIME_LOWER_H

#include "kernels-templates/matmul/recipe.h"
#include "runtime/plan/graph.h"
#include "runtime/plan/live.h"
#include "runtime/plan/plan.h"

enum { PLAN_CUTS_MAX = 5 /* sorts of tiles that a matmul's tokens are cut into */ };

/* An op that interleaves inputs, whole: two that are the same write the same bytes. */
struct plan_interleave {
	struct key key;
	int64_t units;
	uint64_t arg[INTERLEAVE_ARGS];
};
_Static_assert(sizeof(struct plan_interleave) == sizeof(struct key) + 8 + 8 * INTERLEAVE_ARGS,
               "interleavings are compared as bytes");

/* What lowering knows of a value. */
struct plan_value {
	bool int8;                   /* a matrix reads it as int8 blocks */
	bool inside;                 /* a norm that those make which read it */
	uint32_t overwritten;        /* the node that writes over it; UINT32_MAX: none */
	graph_ref holds, holds_int8; /* of the first value of its group: which one is there now, and as int8 blocks */
	/* Where it lies in the dataflow region, by form, and the records that it is merged of; NULL: it does not. */
	void *given[FORM_SCALES + 1];
	uint8_t *records;
};

/* ... and of a node. */
struct plan_node {
	bool awaited; /* its ops await what they read and give what they make, where they have such a form */
	bool parts;   /* of a cache and of several tokens: attention rotates, stores and has its context in parts */
	size_t op;    /* of attention: its first op */
};

struct plan_builder {
	struct plan *p;
	const struct graph *g;
	const struct weights *w;
	struct plan_value *of;  /* by value */
	struct plan_node *node; /* by node */
	uint32_t *sum;          /* by node: as plan_find_sums() says */
	const struct model_spec *spec;
	const struct plan_buffers *buf;
	const struct plan_cache *kv;
	const struct plan_options *opt;
	size_t op_capacity, args_used, changing_capacity;
	uint32_t n; /* tokens */
	/* Whose they are; and of which of them ops are added, `spans` outside of a loop over plan_span_at(). */
	const struct plan_span *span;
	uint32_t spans, sequence;
	/* The ops that wrote what the buffers of interleaved inputs hold, and how many ops there were behind each. */
	struct plan_interleave interleaved[PLAN_CUTS_MAX];
	size_t interleaved_end[PLAN_CUTS_MAX];
	unsigned n_interleaved;
	uint64_t dataflow_used; /* bytes of plan_buffers.dataflow in use, where ops give values */
};

static inline struct plan_node *plan_node_of(const struct plan_builder *b, const struct graph_node *n)
{
	return &b->node[n - b->g->node];
}

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
                         uint32_t flags, uint32_t tokens, struct plan_tiles out[PLAN_CUTS_MAX]);

/* Whether this matrix times so many tokens makes the norm of its input itself, in every op. flags: of the matmul. */
bool plan_norm_inside(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags, uint32_t tokens,
                      bool awaited);

/* ---- dataflow plans (plan_dataflow.c); for others all of this does nothing */

/* Whether all ops of the plan can await and give, but for those that stand behind barriers. */
bool plan_hands(const struct plan_builder *b);
/* How the tokens of a matmul that awaits are cut: one tile, or two. 0: there is no such way. flags: the key's. */
unsigned plan_dataflow_tiles(const struct plan_builder *b, const struct weights_matrix *w, uint32_t flags,
                             uint32_t tokens, struct plan_tiles out[2]);
/* A value is made: its place in the region, if it is given. */
void plan_dataflow_put(struct plan_builder *b, graph_ref v);
void plan_dataflow_end(struct plan_builder *b);

/* ---- caches and rotations (plan_rotation.c) */

/* The slots of an op for a layer's cache: where its keys begin in a page, and its values (NULL: there are none); the
 * table of pages, and where the first token is (NULL: that is no matter). */
struct plan_cache_slots {
	uint64_t *keys, *values, *pages, *position;
};
void plan_set_cache(struct plan_builder *b, uint32_t layer, const struct plan_cache_slots *slots);
/* Where a table of cosines or sines begins (rope.h). */
uint64_t plan_angles(const struct plan_builder *b, const float *tables, uint32_t table);
/* Where a token's row of f32 is, of rows that are `width` wide and padded. */
static inline uint64_t plan_row_at(const float *rows, uint32_t token, uint64_t width)
{
	return plan_address(rows + token * numerics_pad(width));
}

/* ---- values (addresses.c) */

/* An activation in both of its forms, of which a rule uses those that it needs; or, where there is `norm`, f32 whose
 * norm by these weights each matmul makes for itself. */
struct activations {
	float *x;
	int8_t *q;
	struct activation_block *s;
	const float *norm;
	/* where it lies when it is laid out anew for wide tiles */
	float *interleaved;
	int8_t *interleaved_q;
	struct activation_block *interleaved_s;
};
/* Where a value lies in a form; NULL: it has none. */
void *plan_at(const struct plan_builder *b, graph_ref v, enum plan_form form);
/* A value's f32; NULL of none. */
float *plan_floats(const struct plan_builder *b, graph_ref v);
/* Node number `node` makes the value. What was in its place must have been read by then. */
void plan_put(struct plan_builder *b, graph_ref v, uint32_t node);
/* Whether a value's int8 blocks are there; from now on they are. */
bool plan_has_int8(const struct plan_builder *b, graph_ref v);
void plan_put_int8(struct plan_builder *b, graph_ref v);
struct activations plan_operand(const struct plan_builder *b, graph_ref v);

/* ---- what lower.c decides */

/* Adds the ops of all nodes. False: there is no memory. */
bool plan_lower(struct plan_builder *b, const struct graph *g);
/* The plan of a graph whose last section is the logits. The builder has what plan_build() is told. */
bool plan_of_graph(struct plan_builder *b, const struct graph *g, enum plan_logits which, struct error *err);
/* sum: by node, the sum that its kernel makes, a node's number and 1; 0: none. */
void plan_find_sums(const struct graph *g, uint32_t *sum);
/* What the node's kernel adds its result to; 0: nothing. */
graph_ref plan_added_to(const struct plan_builder *b, const struct graph_node *n);
/* Whether a sum is made by the kernel that makes its summand. */
bool plan_is_summed(const struct plan_builder *b, const struct graph_node *n);
/* KEY_PAIR where both matrices of a node are multiplied as one; else 0. */
uint32_t plan_pair_of(const struct plan_builder *b, const struct graph_node *n);
/* Makes a value's int8 blocks where they are wanted and not there. */
void plan_ready(struct plan_builder *b, graph_ref v);
/* Whether a matmul with these weights reads its input as int8. */
bool plan_wants_int8(const struct plan_builder *b, const struct weights_matrix *w);

/* ---- ops that several rules add */

struct matmul {
	const struct weights_matrix *w, *w2; /* w2: with KEY_PAIR */
	const float *bias, *bias2;           /* NULL: none */
	struct activations in;
	const float *from; /* with KEY_RESIDUAL, of dataflow plans: what the product is added to */
	float *out;
	int8_t *outq; /* and outs: with KEY_QUANTISED_OUT */
	struct activation_block *outs;
	const float *added, *added2; /* with KEY_ADDED; added2: with KEY_PAIR, too */
	float *greatest;             /* with KEY_GREATEST */
	bool awaited;                /* as plan_node says */
	uint32_t flags, tokens;      /* flags: KEY_PAIR, KEY_GATED, KEY_RESIDUAL, KEY_QUANTISED_OUT, KEY_GREATEST */
	enum key_act act;            /* with KEY_PAIR and KEY_GATED */
};
void plan_multiply(struct plan_builder *b, const struct matmul *m);
/* What adapters add: to one matrix, or to both of a pair. Where a pair has them for one alone, the other gets what adds
 * nothing (plan_added()). second: n's second matrix is the one. */
void plan_set_added(const struct plan_builder *b, const struct graph_node *n, struct matmul *m, bool second);
/* plan_experts.c: whether the slots of the plan's tokens are sorted by expert. */
bool plan_sorts_slots(const struct plan_builder *b);
/* n tokens of width k times a number, or as KEY_SCALE's flags say; by: its argument. */
void plan_scale(struct plan_builder *b, const float *in, float *out, uint32_t n, uint64_t k, uint64_t by,
                uint32_t flags);
/* The int8 blocks of what is there as f32, k of each token. */
void plan_quantise(struct plan_builder *b, struct activations a, uint64_t k);
/* The norm of so many tokens of width k, with another vector as its result, or added to it. Returns its arguments. */
uint64_t *plan_norm(struct plan_builder *b, const float *x, const float *weight, float *out, uint32_t k, uint32_t flags,
                    uint32_t tokens);
/* The same, with biases: NULL, none. */
uint64_t *plan_biased_norm(struct plan_builder *b, const float *x, const float *weight, const float *bias, float *out,
                           uint32_t k, uint32_t flags, uint32_t tokens);

/* ---- adapters (plan_adapt.c) */

/* Whether the plan's tokens may have adapters of that matrix. */
bool plan_adapts(const struct plan_builder *b, const struct weights_matrix *w);
/* Whether a product with the matrix of that operand is SCALED, too, as adapters have magnitudes or biases. */
bool plan_scales(const struct plan_builder *b, const struct graph_node *n, unsigned in);
/* Whether the node is one of adapters that no token of the plan has. */
bool plan_is_idle(const struct plan_builder *b, const struct graph_node *n);
/* The value of that operand, where it is made; NULL. */
const float *plan_added(const struct plan_builder *b, const struct graph_node *n, unsigned in);
/* Whether tokens of the plan may have an output matrix of their own, and their products with it in place of so many
 * rows of logits. node: NODE_HEAD. */
bool plan_replaces_head(const struct plan_builder *b);
void plan_replace_logits(struct plan_builder *b, const struct graph_node *node, uint32_t rows);
/* Puts what adapters add to so many rows of logits where these are to be. node: NODE_HEAD. */
void plan_adapt_logits(struct plan_builder *b, const struct graph_node *node, uint32_t rows);
/* Sets the plan's tiles. False: there is no memory. */
bool plan_cut_adapted(const struct plan_builder *b);

/* ---- attention */

/* The attention of a layer, and how it is to be done. */
struct plan_attention {
	const struct weights_layer *l;
	uint32_t layer;
	bool awaited, parts; /* as of its node */
};
/* That of a node of rotation, of storing, or of attention itself. */
struct plan_attention plan_attention_of(const struct plan_builder *b, const struct graph_node *n);
/* Whether passes of a few tokens by launches have their context in parts. */
bool plan_is_small(const struct plan_builder *b);
/* Whether attention of the pass's several tokens can rotate, store, and have parts. */
bool plan_attends_several(const struct plan_builder *b, uint32_t layer);
bool plan_quantises_inside(const struct plan_builder *b, struct plan_attention a);
bool plan_rotates_inside(const struct plan_builder *b, struct plan_attention a);
/* The flags of a norm of each head; the slots of attention that rotates, from that token on. */
uint32_t plan_head_norm(const struct plan_builder *b, const float *weight);
void plan_set_rotation(const struct plan_builder *b, const struct graph_node *n, uint32_t first, uint64_t *a);
/* The units of a chain that one head of keys has, of an op with so many for each; 0: the layer has no chain. */
uint32_t plan_chained(const struct plan_builder *b, struct plan_attention a, uint32_t units);
/* Whether its context is in parts, which are merged. */
bool plan_merges(const struct plan_builder *b, struct plan_attention a);
/* Whether each token of the pass sees all of them, which are parts of a picture; and whether in that layer. */
bool plan_sees_whole(const struct plan_builder *b);
bool plan_layer_sees_whole(const struct plan_builder *b, uint32_t layer);
/* Whether a value is the tokens' embedding, in whose place features of a picture are. plan_inputs.c */
bool plan_is_shown(const struct plan_builder *b, graph_ref v);
/* Behind all layers of a dataflow plan, in the stage of the last norm: the keys and values of attention that
 * does not store them, because other units of it have copies of the same chunks. */
void plan_store_behind(struct plan_builder *b);
/* Of latent attention. */
void plan_latent_rotate(struct plan_builder *b, const struct graph_node *n);
void plan_latent_store(struct plan_builder *b, const struct graph_node *n);
void plan_latent_attend(struct plan_builder *b, const struct graph_node *n);

/* ---- rules, one for each kind of node (graph.h) */

void lower_embed(struct plan_builder *b, const struct graph_node *n);
void lower_shown(struct plan_builder *b, const struct graph_node *n);
void lower_norm(struct plan_builder *b, const struct graph_node *n);
void lower_matmul(struct plan_builder *b, const struct graph_node *n);
void lower_adapt_down(struct plan_builder *b, const struct graph_node *n);
void lower_adapt_up(struct plan_builder *b, const struct graph_node *n);
void lower_adapt_tokens(struct plan_builder *b, const struct graph_node *n);
void lower_by_head(struct plan_builder *b, const struct graph_node *n);
void lower_add(struct plan_builder *b, const struct graph_node *n);
void lower_scale(struct plan_builder *b, const struct graph_node *n);
void lower_gate(struct plan_builder *b, const struct graph_node *n);
void lower_xielu(struct plan_builder *b, const struct graph_node *n);
void lower_layer_inputs(struct plan_builder *b, const struct graph_node *n);
void lower_rotate(struct plan_builder *b, const struct graph_node *n);
void lower_store(struct plan_builder *b, const struct graph_node *n);
void lower_attend(struct plan_builder *b, const struct graph_node *n);
void lower_conv(struct plan_builder *b, const struct graph_node *n);
void lower_delta(struct plan_builder *b, const struct graph_node *n);
void lower_scan(struct plan_builder *b, const struct graph_node *n);
void lower_channel(struct plan_builder *b, const struct graph_node *n);
void lower_route(struct plan_builder *b, const struct graph_node *n);
void lower_experts(struct plan_builder *b, const struct graph_node *n);
void lower_combine(struct plan_builder *b, const struct graph_node *n);
void lower_head(struct plan_builder *b, const struct graph_node *n);

#endif
