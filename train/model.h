/* train/model.h - a model that is trained: what its files say, checked for what training knows, and its weights as
 * floats.
 *
 * Owns: which models can be trained, and the sentence about one that cannot. Rows of queries and keys come in the order
 * of the kernels (model_source_row()), in which the two halves of a head rotate.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include "loaders/model/model.h"

/* Opens and checks. On failure *m is closed. */
bool train_model_open(struct model *m, const char *path, struct error *err);

/* A tensor of a layer by its slot; NULL: the model has none there. */
const struct model_tensor *train_tensor_of(const struct model *m, uint32_t layer, enum tensor_slot slot);
/* rows * cols floats, as the file has them: norms that are kept less 1 stay so. */
bool train_read(const struct model *m, const struct model_tensor *t, float *out, struct error *err);
/* The same of a matrix as the file has it packed: rows of t->row_bytes. */
bool train_read_packed(const struct model *m, const struct model_tensor *t, uint8_t *out, struct error *err);
/* One row of a matrix. */
bool train_read_row(const struct model *m, const struct model_tensor *t, uint64_t row, float *out, struct error *err);

/* Slots of matrices and vectors are numbered together (enum tensor_slot); here by their own numbers. */
extern const int8_t train_matrix_of[TENSOR_SLOTS], train_vector_of[TENSOR_SLOTS]; /* -1: it is none */
static inline bool train_slot_is_matrix(enum tensor_slot slot) { return train_matrix_of[slot] >= 0; }

/* A slot's name in files of safetensors, as "self_attn.q_proj.weight", and its short name, "q_proj". */
const char *train_slot_name(enum tensor_slot slot);

#endif
