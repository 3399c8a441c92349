/* train/layer.h - a layer of a model, and its head with the loss, as graphs of tensors.
 *
 * Owns: what of a model's description becomes which operations. A layer goes from the stream of one row of tokens,
 * f32[tokens, hidden], to the stream behind it; the head goes from some rows of the stream to the cross entropy of each
 * token that follows. Gradients are those graphs' vjp (graph/transforms.h).
 *
 * Tokens see those before them in their own segment: texts that share a row do not see each other.
 */
#ifndef TRAIN_LAYER_H
#define TRAIN_LAYER_H

#include "graph/graph.h"
#include "train/model.h"

/* What an input of a layer's graph is. */
enum layer_input_kind {
	LAYER_STREAM,    /* f32[tokens, hidden] */
	LAYER_COS,       /* f32[tokens, head_dim / 2], of each token's position */
	LAYER_SIN,       /* the same */
	LAYER_SEGMENT,   /* i32[tokens]: which text of the row a token belongs to */
	LAYER_WEIGHT,    /* the tensor in a slot */
	LAYER_A,         /* of an adapter, for the matrix in a slot: f32[rank, in] */
	LAYER_B,         /* f32[out, rank] */
	LAYER_MAGNITUDE, /* of DoRA: f32[out] */
	LAYER_NORM,      /* of DoRA, 1 / the norms of W + s B A: f32[out]; no gradient flows through it */
	LAYER_DROPOUT    /* f32[tokens, in]: 0, or 1 / (1 - p) */
};
struct layer_input {
	enum layer_input_kind kind;
	enum tensor_slot slot;
	struct shape shape;
};
enum { LAYER_INPUTS_MOST = 80 };

/* How adapters are added. */
struct layer_adapters {
	bool on[TENSOR_SLOTS]; /* which matrices have one */
	uint32_t rank;
	float scale;
	bool dora, dropout;
};

struct layer_graph {
	struct tensor_graph g; /* its input i is input[i]; its output is the stream */
	struct layer_input input[LAYER_INPUTS_MOST];
	uint32_t inputs;
};

/* adapters NULL: none. False: err; layer_graph_free() is due in any case. */
bool layer_draw(struct layer_graph *l, const struct model *m, uint32_t layer, uint32_t tokens,
                const struct layer_adapters *adapters, struct error *err);
void layer_graph_free(struct layer_graph *l);
/* Whether two layers have the same graph. */
bool layer_is_like(const struct model *m, uint32_t a, uint32_t b);

/* The head: inputs "x" f32[rows, hidden], "target" i32[rows], "norm" f32[hidden], "head" f32[vocab, hidden]; output
 * "loss" f32[rows]. */
enum { HEAD_X, HEAD_TARGET, HEAD_NORM, HEAD_MATRIX, HEAD_INPUTS };
bool head_draw(struct tensor_graph *g, const struct model *m, uint32_t rows, struct error *err);

#endif
