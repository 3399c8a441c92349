/* train/net.h - a model that learns: its graphs as executables, what of it is trained, and the way of a row of tokens
 * through it and back.
 *
 * Owns: weights on the device; the tensors that are trained, with their gradients; the order of sums. A row goes
 * forward layer by layer, and each layer's input is kept. On the way back a layer is computed once more, with its
 * gradients. Rows are computed one after the other, and a row's gradients are formed before they are added: so how many
 * rows a step has at once, and how many threads, changes no bit.
 */
#ifndef TRAIN_NET_H
#define TRAIN_NET_H

#include "include/jitrun_kernel.h"
#include "runtime/graph/executable.h"
#include "runtime/host/cancel.h"
#include "runtime/host/pool.h"
#include "runtime/plan/rope.h"
#include "train/layer.h"
#include "train/split.h"

/* Tensors outside of layers have one of these instead of a slot. */
enum { NET_EMBED = TENSOR_SLOTS, NET_POSITIONS, NET_FINAL_NORM, NET_NORM_BIAS, NET_HEAD, NET_OUTSIDE_END };
#define NET_NO_LAYER UINT32_MAX

/* One that is trained. */
struct net_tensor {
	char *name; /* as files call it: "model.layers.0.self_attn.q_proj.lora_A.weight" */
	uint32_t layer, slot;
	enum layer_input_kind kind; /* of adapters LAYER_A and so on; of others LAYER_WEIGHT */
	struct shape shape;
	bool by_file; /* rows are in the order of the file, else in that of the kernels */
	uint64_t n;
	float *value, *gradient; /* value: in `buffer`, where the host reaches that */
	float *mean, *square;    /* AdamW's moments */
	jit_buffer *buffer;
};

/* Where an input of a layer is. */
struct net_binding {
	jit_buffer *buffer; /* NULL: it is copied for each run */
	uint32_t tensor;    /* the one of struct net, plus 1; 0: it is not trained */
};

/* Layers whose graphs are the same share executables. */
struct net_class {
	struct layer_graph graph;
	struct executable *forward, *backward;
	struct executable *keeping; /* forward, with the values that `backward` then has as inputs; NULL: it has none */
	uint32_t n_kept;
	uint64_t kept[SPLIT_KEPT_MAX], kept_bytes; /* where each is among them, and all */
	struct executable *norms;                  /* of DoRA */
	uint32_t norm_input[LAYER_INPUTS_MAX];     /* of those, which input of the layer each input is */
	uint32_t norm_of[LAYER_INPUTS_MAX];        /* and which each output */
	uint32_t norm_inputs, norm_outputs;
};

struct net_options {
	uint32_t tokens; /* of a row */
	bool full;       /* all weights are trained, not adapters */
	bool keep;       /* what gradients need is kept, and no layer is computed twice */
	struct layer_adapters adapters;
	uint64_t chunk; /* numbers of the head's matrix that are used at a time; 0: the usual many */
	double dropout;
	uint64_t seed;
};

struct net {
	struct net_options o;
	const struct model *m;
	jit_compute *compute;
	struct pool *pool; /* for work on each number of what is trained */
	double *squares;   /* of parts of a tensor's gradient */
	const struct jit_cancel *cancel;
	struct rope rope;
	struct net_class *classes;
	uint32_t n_classes, *class_of; /* of each layer */
	struct net_binding (*binding)[LAYER_INPUTS_MAX];
	jit_buffer *final_norm, *norm_bias;   /* norm_bias: NULL where the model has none */
	jit_buffer *head, *embed, *positions; /* embed: of a model whose own head is trained, too; positions: trained */
	jit_buffer *memory;                   /* of all executables: they run one after the other */
	const float *embed_rows;              /* NULL: rows are read from the file */
	float *position_rows;                 /* embeddings of a row's positions; NULL: there are none */
	bool head_packed;
	struct head_cut cut;
	struct executable *head_loss, *head_back;
	struct net_tensor *tensor;
	uint32_t tensors;
	/* These plus 1; 0: not trained. */
	uint32_t embed_tensor, position_tensor, norm_tensor, norm_bias_tensor, head_tensor;
	float *tied_gradient; /* of the head, where it is the embedding: apart, so that the order of sums is fixed */
	float *stream;        /* layers + 2 of [tokens, hidden], with room for head_rows more */
	float *angle[ROTATION_NONE]; /* of each rotation: cosines of all positions, then sines; NULL: no layer has it */
	float *cosine, *sine, *scratch;
	uint8_t **kept;     /* of each layer, with `keep` */
	uint32_t head_rows; /* tokens whose logits are computed at a time */
	int32_t *head_target;
	float *head_counts, *head_loss_of;
	int32_t *segment;
};

/* A row: `tokens` of them, filled up with those that count nothing. */
struct net_row {
	const int32_t *ids, *position, *segment, *target; /* target: the token that follows */
	const uint8_t *counts;                            /* whether predicting the target counts */
};

/* m, compute and cancel are borrowed. NULL: err. */
struct net *net_open(const struct model *m, jit_compute *compute, const struct jit_cancel *cancel,
                     const struct net_options *o, struct error *err);
void net_close(struct net *n); /* n may be NULL */

/* Before the first row of a step, when tensors have new values. */
bool net_begin(struct net *n, struct error *err);
/* The sum of the cross entropies of what counts. weight 0: no gradients; else their part, which each that counts has in
 * the loss. number: of the row among all of the training, for dropout. */
bool net_row(struct net *n, const struct net_row *row, float weight, uint64_t number, double *loss, struct error *err);
/* Behind the last row: the gradients of tied matrices are put together. */
void net_end(struct net *n);

/* A number in -1..1 by its index in a tensor: splitmix64. */
double net_uniform(uint64_t seed, uint64_t tensor, uint64_t element);

#endif
