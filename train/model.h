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

/* Whether all of its weights can be trained and saved. */
bool train_model_whole(const struct model *m, const char *path, struct error *err);

/* A tensor of a layer by its slot; NULL: the model has none there. */
const struct model_tensor *train_tensor_of(const struct model *m, uint32_t layer, enum tensor_slot slot);
/* Rows of all experts, or of what has none. */
static inline uint64_t train_rows(const struct model_tensor *t) { return t->rows * (t->experts ? t->experts : 1); }

/* Matrices, or vectors, of a layer that lie in one tensor of the file, as q, k and v of Phi 3. An adapter is for the
 * tensor: its B has the tensor's rows. */
struct train_group {
	enum tensor_slot first; /* of those that lie there */
	bool has[TENSOR_SLOTS];
	uint64_t rows, offset; /* of all of them; of vectors elements */
	bool apart;            /* they lie one behind the other, else interleaved */
	bool by_file;          /* rows of B are in the file's order, else in that of the kernels */
};
struct train_group train_group_of(const struct model *m, uint32_t layer, enum tensor_slot slot);
bool train_group_on(const struct train_group *g, const bool on[]); /* on: of slots */
/* Which row, or element, of the tensor a slot's is. */
uint64_t train_group_row(const struct model *m, uint32_t layer, enum tensor_slot slot, uint64_t row);

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
