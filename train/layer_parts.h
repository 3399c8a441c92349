/* train/layer_parts.h - what the files that draw a layer share. */
#ifndef TRAIN_LAYER_PARTS_H
#define TRAIN_LAYER_PARTS_H

#include "train/layer.h"

struct drawing {
	struct draw d;
	struct layer_graph *l;
	const struct model *m;
	const struct model_spec *s;
	uint32_t layer, tokens;
	const struct layer_adapters *adapters;
	tensor_value cosine, sine, segment, sees;
	/* For matrices that share a tensor of the file, by the slot of the first: their A x, and B. */
	tensor_value down[TENSOR_SLOTS], up[TENSOR_SLOTS];
};

/* ---- layer.c */

const struct model_tensor *layer_tensor(const struct drawing *w, enum tensor_slot slot);
/* The tensor in a slot; 0: the layer has none. */
tensor_value layer_weight(struct drawing *w, enum tensor_slot slot);
/* W x, with the adapter and the bias, where there are any. */
tensor_value layer_product(struct drawing *w, enum tensor_slot slot, enum tensor_slot bias, tensor_value x);
/* The activation of a gate, times what is up; gate 0: that of up. */
tensor_value layer_gated(struct draw *d, enum model_act act, tensor_value gate, tensor_value up);
static inline tensor_value layer_silu(struct draw *d, tensor_value x)
{
	return draw_binary(d, OP_mul, x, draw_unary(d, OP_logistic, x));
}

/* layer_experts.c: a mixture of experts. layer_delta.c: the gated delta rule, layer_scan.c: the selective scan of Mamba
 * 2 and that of Mamba 1, all up to their last matrix. */
tensor_value layer_experts(struct drawing *w, tensor_value in);
tensor_value layer_delta(struct drawing *w, tensor_value in);
tensor_value layer_scan(struct drawing *w, tensor_value in);
tensor_value layer_channel(struct drawing *w, tensor_value in);

/* ---- layer_delta.c */

/* bool[tokens, 1]: whether the token `back` before is of the same text. */
tensor_value layer_same_text(struct drawing *w, uint64_t back);
/* Each channel's numbers of the last tokens by its weights, oldest first, its bias if there is one, and silu. */
tensor_value layer_convolved(struct drawing *w, tensor_value x);

#endif
