/* runtime/plan/graph.h - what is to be computed: values, and nodes that make values of others.
 *
 * Owns: values with an identity. Each is made by one node, or comes from outside; nothing writes it twice. A graph has
 * no addresses, no order but that of its nodes' dependences, no barriers and no kernels: lowering (lower.h) finds these
 * for so many tokens and a target. Whatever draws a graph knows none of them. An editor keeps nodes free of language
 * models: a node says what is computed, of which widths.
 */
#ifndef RUNTIME_GRAPH_H
#define RUNTIME_GRAPH_H

#include "kernels-templates/templates.h"
#include "runtime/plan/weights.h"

/* A value by its number. 0: none. */
typedef uint32_t graph_ref;

enum graph_storage {
	GRAPH_TEMPORARY,
	GRAPH_WEIGHT, /* a matrix or a vector of the model */
	GRAPH_CACHE,  /* a layer's keys and values, which stay */
	GRAPH_STATE   /* what a layer carries from pass to pass */
};

struct graph_value {
	uint64_t width; /* numbers of a token, f32 */
	uint8_t storage;
	uint32_t layer;                      /* of a cache or a state */
	const struct weights_matrix *matrix; /* of a weight, or vector */
	const float *vector;
	uint32_t producer;         /* its node; GRAPH_OUTSIDE: none */
	uint32_t users, last_user; /* how many operands of nodes it is; the last one's node */
};
enum { GRAPH_OUTSIDE = -1 };

/* What a node computes of its operands; operands in brackets may be missing. */
enum graph_kind {
	NODE_EMBED, /* rows of W that the pass's ids, positions or types choose: `rows`, enum graph_ids */
	NODE_SHOWN, /* what a picture's tokens have for the stream here: `rows`, the level of their features; of other
	             * tokens nothing. Nothing but a sum reads it */
	NODE_NORM, /* NORM(X) with weights W [and biases], of `groups` equal groups where not 0, the weights `shared` by
	              them */
	NODE_MATMUL,       /* act(W X + [BIAS]); with W2: act(W X + [BIAS]) * (W2 X + [BIAS2]); [ADDED] and [ADDED2] are
	                      added to W X and W2 X */
	NODE_ADAPT_DOWN,   /* the products of X by the first matrices of its tokens' adapters of the matrix W */
	NODE_ADAPT_UP,     /* and of those, X, by the second ones: what the adapters add to W's product */
	NODE_ADAPT_TOKENS, /* what the tokens' adapters add to their rows of the embedding W; nothing but a sum reads
	                    * it; second result: the products that it is made of */
	NODE_BY_HEAD,      /* a matrix for each head: W X, into the first `rows` of each head of INTO */
	NODE_ADD,          /* X + W */
	NODE_SCALE,        /* X times `number`, or times the numbers W */
	NODE_GATE,         /* X * act(W); of `groups` equal groups where not 0, each times one number of W */
	NODE_XIELU,        /* xIELU of X, by the numbers W */
	NODE_LAYER_INPUTS, /* what each layer gets of a token's own: of a product X, an embedding W2, weights W */
	NODE_ROTATE, /* queries X with [W], the norm of heads, rotated and scaled; second result: what does not rotate
	              */
	NODE_STORE,  /* keys X with [W], and values [W2], into the cache INTO */
	NODE_ATTEND, /* queries X over the cache W [with sinks BIAS] [and biases by distance BIAS2] */
	NODE_CONV,   /* X [* W2] through the taps BIAS2 on the state INTO, [+ BIAS], [times W]; of all channels, X's are
	              * those from `rows` on */
	NODE_DELTA,  /* X, or queries X, keys ADDED and values ADDED2, forgotten W and corrected W2, with decay BIAS and
	              * steps BIAS2, on the state INTO; without these two W is the factor of the state */
	NODE_SCAN,   /* X, steps W [+ BIAS], with decay W2 and skip BIAS2, on the state INTO */
	NODE_CHANNEL, /* X, steps W [+ BIAS], taken up by W2 and read by ADDED, with decay BIAS2 and skip ADDED2, on the
	               * state INTO */
	NODE_ROUTE,   /* the choice of experts by logits X; `rows`: of one, whose share is 1 */
	NODE_EXPERTS, /* NODE_MATMUL with the matrices that INTO chooses, for each slot; second result: X in their order
	               */
	NODE_COMBINE, /* the sum of slots X by the choice W, or X times the sigmoid of W */
	NODE_HEAD, /* of the rows that are wanted of X: the norm BIAS [with BIAS2], and the product with W, scaled and
	            * bounded; second result: that norm; third: what NODE_ADAPT_DOWN makes of it */
	NODE_KINDS
};

/* Operands by name. */
enum { IN_X, IN_W, IN_BIAS, IN_W2, IN_BIAS2, IN_INTO, IN_ADDED, IN_ADDED2, GRAPH_INS };
enum { GRAPH_OUTS = 3 };
/* Lists that a pass has a number of each token in. */
enum graph_ids { IDS_TOKENS, IDS_POSITIONS, IDS_TYPES, GRAPH_IDS };

struct graph_node {
	uint8_t kind, act; /* enum graph_kind, enum key_act */
	bool kept;         /* an op of its own, whatever reads its result */
	bool shared;       /* NODE_NORM */
	uint32_t layer, groups, rows;
	float number;
	graph_ref in[GRAPH_INS], out[GRAPH_OUTS];
};

struct graph {
	struct graph_value *value; /* number 0 is none */
	struct graph_node *node;
	uint32_t *section; /* the first node of each section; section[n_sections] is n_nodes */
	uint32_t n_values, n_nodes, n_sections, values_max, nodes_max, sections_max;
	uint32_t layer; /* of the nodes that are drawn now */
	bool adapted;   /* matrices that adapters can be added to have nodes for these */
};

/* Room for so many; false: there is no memory. */
bool graph_open(struct graph *g, uint32_t nodes, uint32_t sections);
void graph_close(struct graph *g);
/* The nodes to come are another section. layer: theirs. */
void graph_section(struct graph *g, uint32_t layer);
void graph_end(struct graph *g);

/* Values from outside. 0 for what there is none of: a matrix that is not packed, NULL. */
graph_ref graph_matrix(struct graph *g, const struct weights_matrix *w);
graph_ref graph_vector(struct graph *g, const float *v, uint64_t width);
graph_ref graph_kept(struct graph *g, enum graph_storage storage, uint32_t layer);

/* Adds a node with one result of such a width, and returns that. */
graph_ref graph_node(struct graph *g, const struct graph_node *n, uint64_t width);
/* What makes this value gets an op of its own, whatever reads it. Returns the value. */
graph_ref graph_keep(struct graph *g, graph_ref v);
/* A further result of the last node. */
graph_ref graph_result(struct graph *g, uint64_t width);

/* ---- nodes that many graphs have */

graph_ref graph_matmul(struct graph *g, graph_ref x, const struct weights_matrix *w, const float *bias);
/* act(W x + bias); with W2: that times W2 x + bias2. One of the matrices may be missing, then it is act of the other's
 * product. */
struct graph_gate {
	const struct weights_matrix *gate, *up;
	const float *gate_bias, *up_bias;
	enum key_act act;
};
graph_ref graph_gated(struct graph *g, graph_ref x, const struct graph_gate *m);
/* What adapters add to the products of experts' matrices, for each slot of a choice; 0: there can be none. */
graph_ref graph_adapted_slots(struct graph *g, graph_ref x, const struct weights_matrix *w, graph_ref choice,
                              uint32_t slots);
graph_ref graph_norm(struct graph *g, graph_ref x, const float *weight, float eps);
/* bias NULL: none. */
graph_ref graph_biased_norm(struct graph *g, graph_ref x, const float *weight, const float *bias, float eps);
graph_ref graph_add(struct graph *g, graph_ref x, graph_ref y);
graph_ref graph_scale(struct graph *g, graph_ref x, float number);
/* x times as many numbers, or one. */
graph_ref graph_times(struct graph *g, graph_ref x, graph_ref by);
/* x * act(gate) */
graph_ref graph_multiply(struct graph *g, graph_ref x, graph_ref gate, enum key_act act);

static inline const struct graph_value *graph_value(const struct graph *g, graph_ref v) { return &g->value[v]; }
static inline const struct weights_matrix *graph_matrix_of(const struct graph *g, graph_ref v)
{
	return g->value[v].matrix;
}
static inline const float *graph_vector_of(const struct graph *g, graph_ref v) { return g->value[v].vector; }
/* The node that makes it; NULL: none does. */
static inline const struct graph_node *graph_producer(const struct graph *g, graph_ref v)
{
	return g->value[v].producer == (uint32_t)GRAPH_OUTSIDE ? NULL : &g->node[g->value[v].producer];
}

#endif
