/* loaders/model/model_adapter.h - which tensors of an adapter's files belong to which matrix of an open model.
 *
 * Owns: the names and the order of rows that a matrix has in either kind of file, whichever kind the model's own is.
 */
#ifndef LOADERS_MODEL_ADAPTER_H
#define LOADERS_MODEL_ADAPTER_H

#include "loaders/model/model.h"

enum { MODEL_LOCATION_NAME = 96 };
struct model_location {
	char name[MODEL_LOCATION_NAME]; /* "layers.3.self_attn.q_proj", "blk.3.attn_q" */
	uint64_t first_row,
		all_rows; /* of the tensor of that name, from which row on this matrix has its own, as order says */
	struct model_tensor order;
	uint32_t head_dim; /* for model_source_row() */
	uint32_t row_step; /* of parameters: how many rows from one of the matrix to its next */
	bool by_columns;   /* ... it is one that files may have column by column */
};
/* Of a matrix with its rows by themselves or in a row of others; gguf: in GGUF files, else in safetensors. False: files
 * of that kind have it in no such form (experts, matrices by head), or the model has no such matrix. */
bool model_location_of(const struct model *m, bool gguf, uint32_t layer, enum tensor_slot slot,
                       struct model_location *out);
/* The same of the matrices of experts: safetensors have them one by one, each with its number in the place of a star in
 * the name; GGUF files all in one tensor. False: they have them in no such form. */
bool model_experts_location_of(const struct model *m, bool gguf, uint32_t layer, enum tensor_slot slot,
                               struct model_location *out);
/* The same of experts' matrices as classes of transformers hold them, all in one parameter ("layers.3.mlp.experts.
 * gate_up_proj"); one that is called weight has its module's name alone. newer: as transformers 5 calls the module,
 * where files have another name. False: there is no such name. */
bool model_parameter_location_of(const struct model *m, uint32_t layer, enum tensor_slot slot, bool newer,
                                 struct model_location *out);
/* The same of a norm, whose order's plus_one says that files of that kind have it less 1; slot TENSOR_SLOTS: of the one
 * behind the last layer. False: the model has none there, or none with weights in files. */
bool model_norm_location_of(const struct model *m, bool gguf, uint32_t layer, enum tensor_slot slot,
                            struct model_location *out);
/* "llama": what GGUF calls the architecture; NULL: nothing. */
const char *model_gguf_name(const struct model *m);

#endif
