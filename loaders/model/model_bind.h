/* loaders/model/model_bind.h - what the files that bind tensors share; private to loaders/model/model_bind*.c. */
#ifndef LOADERS_MODEL_BIND_H
#define LOADERS_MODEL_BIND_H

#include "loaders/model/model_load.h"

enum { NAME_CAP = 96 };

struct binder {
	struct model *m;
	struct model_file *f;
	const char *label; /* what held the hyperparameters */
	struct error *err;
	const char *base, *head; /* what names begin with */
	bool taps;               /* the tensor that is bound is the taps of a convolution */
	bool flat;               /* ... or may be a matrix in the file */
	bool norms_whole;        /* norms that others have less 1 are there as they are */
	size_t locations_used;
	struct model_quants *quants_of_expert; /* where the matrix that is bound has its description; NULL: a new one */
};

/* The rows of a tensor that are meant: all of them, but where it holds several matrices. */
struct part_rows {
	uint64_t first, all;
};

/* A tensor that a layer may have. */
struct bind_slot_row {
	size_t at;           /* in struct model_layer */
	const char *name[2]; /* indexed by enum model_format */
	enum tensor_width rows, cols;
	bool vector;
	enum tensor_group group;
	enum tensor_order order;
};
extern const struct bind_slot_row bind_slots[TENSOR_SLOTS];
/* Its name behind the layer's number. */
const char *bind_own_name(const struct model_file *f, enum tensor_slot slot);
/* The tensor that holds this one's rows among those of slots *first to *last; NULL: it is one by itself. */
const char *bind_fused_name(const struct model_file *f, enum tensor_slot slot, enum tensor_slot *first,
                            enum tensor_slot *last);
/* What of the slot's own is not in the order of the kernels, or not the numbers that they take. */
void bind_note_order(const struct binder *b, uint32_t layer, const struct bind_slot_row *slot, struct model_tensor *t);
/* Whether norms are there less 1. */
bool bind_plus_one(const struct binder *b);
/* model_norms.c: the biases of the final norm and of the output matrix, by the names of their weights; and norms
 * without weights. */
bool bind_positions(struct binder *b); /* of models that generate */
bool bind_outer_biases(struct binder *b, const char *final_norm, const char *head);
void bind_plain_norms(struct model *m);
/* That norms of heads with weights of their own are of sizes that there are kernels for. */
bool bind_check_heads(const struct binder *b);

/* A tensor of that name and shape, into *out. vector: rows is 1. */
bool bind_tensor(struct binder *b, const char *name, uint64_t rows, uint64_t cols, bool vector, enum model_need need,
                 const struct part_rows *part, struct model_tensor *out);
/* model_wanted.c: lists a tensor that the model's files lack, and fills *out as if it were there. all: rows of the
 * tensor, or elements of a vector, where it holds others' as well; 0: it does not. */
struct wanted_shape {
	uint64_t rows, cols, all;
	bool vector, transposed;
};
bool bind_wanted(struct binder *b, const char *name, const struct wanted_shape *s, struct model_tensor *out);
/* Finds whether each expert's matrices are tensors, though the architecture's row has those of all in one:
 * transformers 5 saves some models so. */
void bind_find_experts(struct binder *b);
/* Where the name that the row gives the slot's tensor is not there: what the file calls it, as older transformers
 * called the norms of encoders, and as transformers 5 calls what a mixture has beside its experts, and saves it on
 * request. */
void bind_changed_name(const struct binder *b, uint32_t layer, enum tensor_slot k, char name[NAME_CAP]);
/* The name of the slot's tensor as transformers 5 holds it, which it saves on request whatever the family: all experts'
 * matrices in one tensor, gate and up together. True: it is there, the name that the row gives it is not; part: which
 * of its rows. */
bool bind_whole_name(const struct binder *b, uint32_t layer, enum tensor_slot k, char name[NAME_CAP],
                     struct part_rows *part);
/* The matrices of all experts, rows by cols each; a star in the name stands for an expert's number. by_columns: as
 * bind_columns() finds them. */
bool bind_experts(struct binder *b, const char *name, uint64_t rows, uint64_t cols, const struct part_rows *part,
                  bool by_columns, struct model_tensor *t);
/* The same where rows do not lie one behind the other (FUSED_BY_COLUMNS); and vectors of all experts. part, by_columns:
 * rows, or elements, of the tensor's in which these alternate with others, NULL: they do not. */
bool bind_columns(struct binder *b, const char *name, const struct part_rows *part, struct model_tensor *out);
/* The same where rows of a matrix are neighbours; if that is how the tensor lies. */
bool bind_lies_by_columns(const struct binder *b, const char *name, const struct part_rows *part,
                          const struct model_tensor *of);
bool bind_by_columns(struct binder *b, const char *name, const struct part_rows *part, struct model_tensor *out);
/* A matrix of the layer's own whose columns lie one behind the other (arch_row.columns_first). */
bool bind_transposed(struct binder *b, const char *name, uint32_t layer, const struct bind_slot_row *slot,
                     const struct part_rows *part, struct model_tensor *out);
bool bind_expert_vectors(struct binder *b, const char *name, uint64_t cols, const struct part_rows *by_columns,
                         struct model_tensor *out);
bool bind_check_type(struct binder *b, const char *name, const struct found_tensor *t, bool vector);
/* model_bind_recurrent.c: whether the slot's rows lie by heads of keys among those of others; and where. */
bool bind_by_key(const struct binder *b, enum tensor_slot k);
void bind_note_sections(const struct binder *b, enum tensor_slot k, struct model_tensor *t);
/* The same of the rows of queries and of the gate of attention's result, head by head. */
bool bind_by_heads(const struct binder *b, enum tensor_slot k);
void bind_note_heads(const struct binder *b, enum tensor_slot k, struct model_tensor *t);
/* The taps of queries, keys and values in tensors of their own (arch_row.taps_apart), as one vector. */
bool bind_taps_apart(struct binder *b, uint32_t layer, struct model_tensor *out);
bool bind_flatten_taps(struct binder *b, const char *name, struct found_tensor *t);
/* A vector that some files have as rows of a matrix: as one. */
void bind_flatten(struct found_tensor *t, uint64_t elements);
/* enum arch_fused: which matrices share tensors in these files. */
uint32_t bind_fused(const struct model_file *f);
/* model_encoder.c: what stands before a layer's number; what names begin with, of an encoder's class alone and of those
 * around it. */
const char *bind_layers_name(const struct model_file *f);
void bind_encoder_prefix(struct binder *b, const char *embed);
/* The tensor of a norm may have the name that the first files of BERT give it. */
void bind_old_norm_name(const struct binder *b, char name[NAME_CAP]);
/* A copy that lives as long as the file. */
const char *bind_keep_name(struct model_file *f, const char *name);

/* model_mlx.c: the name of the slot's tensor as MLX's converter has it, where there is one; whether taps lie as it lays
 * them; whether norms are there as they are. */
bool bind_mlx_name(const struct binder *b, uint32_t layer, enum tensor_slot k, char out[NAME_CAP]);
bool bind_mlx_taps(const struct binder *b, const struct found_tensor *t);
bool bind_mlx_norms(const struct binder *b);

/* model_latent.c: a tensor with a matrix for each head, for keys or for values; mlx: as MLX's converter has them. */
bool bind_by_head(struct binder *b, const char *name, bool keys, bool mlx, struct model_tensor *out);

#endif
