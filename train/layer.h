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

#include "graph/draw.h"
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
	bool packed; /* as the file has it, and not of f32 */
	struct shape shape;
};
enum { LAYER_INPUTS_MAX = 80 };

/* How adapters are added. */
struct layer_adapters {
	bool on[TENSOR_SLOTS]; /* which matrices have one */
	uint32_t rank;
	float scale;
	bool dora, dropout;
};

struct layer_graph {
	struct tensor_graph g; /* its input i is input[i]; its output is the stream */
	struct layer_input input[LAYER_INPUTS_MAX];
	uint32_t inputs;
};

/* adapters NULL: none. False: err; layer_graph_free() is due in any case. */
bool layer_draw(struct layer_graph *l, const struct model *m, uint32_t layer, uint32_t tokens,
                const struct layer_adapters *adapters, struct error *err);
void layer_graph_free(struct layer_graph *l);
/* Whether two layers have the same graph. */
bool layer_is_like(const struct model *m, uint32_t a, uint32_t b);

/* ---- what layers and the head share */

/* by: the norm's weights; x 0: 0. */
tensor_value layer_normed(struct draw *d, const struct model_spec *s, tensor_value x, tensor_value by, float eps);
/* Where there is a bound: bound * tanh(x / bound). */
tensor_value layer_bounded(struct draw *d, tensor_value x, const struct model_scale *cap);
/* An input for so many rows of a frozen matrix as the file has it: f32, f16 or bf16[rows, cols], else u8[rows, bytes].
 */
tensor_value layer_matrix_input(struct draw *d, const char *name, const struct model_tensor *t, uint64_t rows,
                                struct shape *s);
/* That matrix as f32. */
tensor_value layer_unpacked(struct draw *d, tensor_value v, const struct model_tensor *t);

/* ---- head.c
 *
 * The head: inputs "x" f32[rows, hidden], "target" i32[rows], "norm" and "norm_bias" f32[hidden], of which the second
 * is read where the model has it, and the matrix in chunks of some rows "head.0", "head.1" and so on, whose logits are
 * summed in this order: f32[some, hidden], or packed; output "loss" f32[rows]. */
enum { HEAD_X, HEAD_TARGET, HEAD_NORM, HEAD_NORM_BIAS, HEAD_MATRIX, HEAD_CHUNKS_MAX = 40 };
struct head_cut {
	uint64_t rows; /* of a chunk; the last one may have fewer */
	uint32_t chunks;
};
/* chunk: how many numbers of the matrix are unpacked, and laid out for a product, at a time. */
struct head_cut head_cut_of(const struct model *m, uint64_t chunk);
static inline uint64_t head_chunk_rows(const struct head_cut *c, uint64_t vocab, uint32_t chunk)
{
	return chunk + 1 < c->chunks ? c->rows : vocab - chunk * c->rows;
}
static inline const struct model_tensor *head_tensor_of(const struct model *m)
{
	return m->spec.tied ? &m->spec.embed : &m->spec.lm_head;
}
bool head_draw(struct tensor_graph *g, const struct model *m, const struct head_cut *cut, uint32_t rows, bool packed,
               struct error *err);

#endif
