/* loaders/adapter/adapter.h - a low-rank adapter's files, opened for a model: which of its matrices they add to.
 *
 * Owns: the open files and the checked list of pairs. After adapter_open() every pair is one matrix of the model, and
 * its tensors have the shapes that this needs; nothing is left over that might mean something. A path is a PEFT folder
 * (adapter_config.json and adapter_model.safetensors), a .safetensors file with its configuration beside it, or a GGUF
 * file. Whichever it is, the model may be either kind of file: rows come in the order of the kernels.
 *
 * Never: computes, allocates in proportion to a number that was not compared with the file, prints, exits.
 */
#ifndef LOADERS_ADAPTER_H
#define LOADERS_ADAPTER_H

#include "loaders/files/file.h"
#include "loaders/files/gguf.h"
#include "loaders/files/safetensors.h"
#include "loaders/model/model_adapter.h"

enum { ADAPTER_MAX_RANK = 4096, ADAPTER_MAX_INVOCATION = 4096 };

/* One of a pair, row after row. */
struct adapter_tensor {
	const char *name;            /* as messages show it; the adapter's */
	enum dtype type;             /* F32, F16 or BF16 */
	uint64_t rows, cols, offset; /* of one expert, which follow one another */
	uint32_t experts;            /* 0: it is of none */
	bool used;
};

/* What the files have for one module. */
struct adapter_pair {
	char *path; /* "model.layers.3.self_attn.q_proj", "blk.3.attn_q" */
	struct adapter_tensor a, b;
	struct adapter_tensor magnitude; /* of DoRA: a row of numbers, one for each of B's; name NULL: none */
	struct adapter_tensor bias;      /* of B, which lies as that */
	struct adapter_tensor own_bias;  /* that lies as that, in place of the model's */
	const char *parameter;           /* of target_parameters: "down_proj"; NULL: it is a module's */
	uint32_t rank;                   /* ... as the configuration says it */
	double scale;                    /* sessions compute with what it rounds to */
	bool embeds;                     /* its tensors are an embedding's: of tokens, and not of inputs */
	bool used;
};

/* A module that the files have whole: the matrix itself, in place of the model's. */
struct adapter_whole {
	char *path;
	struct adapter_tensor t;
	bool is_base; /* the model's own, which is there since its rows have pairs: nothing is read of it */
	bool used;
};

/* What a part is for: a matrix of a layer, or one that the model has once; that one whole, or a norm. */
enum adapter_target {
	ADAPTER_LAYER,
	ADAPTER_EMBEDDING,
	ADAPTER_OUTPUT,
	ADAPTER_WHOLE_EMBEDDING,
	ADAPTER_WHOLE_OUTPUT,
	ADAPTER_WHOLE_NORM
};

/* What that comes to for one matrix of the model: B's rows in the kernels' order are row_of() the file's. */
struct adapter_part {
	enum adapter_target target;
	uint32_t layer; /* of ADAPTER_LAYER */
	enum tensor_slot slot;
	uint32_t pair; /* or which of those that are whole */
	uint64_t rows, cols;
	uint32_t rank;    /* 0: it is whole; of experts the greatest */
	uint32_t experts; /* matrices, each of rows x cols; 0: it is one, and of no expert */
	struct model_location location;
};

/* Which way round the pairs of experts' parameters are: A has a column for each input, or for each output. */
enum adapter_direction { ADAPTER_UNKNOWN, ADAPTER_STRAIGHT, ADAPTER_CROSSED, ADAPTER_SQUARE };

struct adapter_file {
	struct file weights, config;
	bool is_gguf;
	bool merges; /* opened by adapter_open_to_merge() */
	union {
		struct gguf gguf;
		struct safetensors st;
	};
	struct adapter_pair *pair;
	size_t n_pairs, pairs_room;
	struct adapter_whole *whole;
	size_t n_whole, whole_room;
	bool ties; /* what is whole is meant for the embedding and the output at once */
	struct adapter_part *part;
	size_t n_parts;
	enum adapter_direction direction, saved; /* of parameters; as the version that saved them has those */
	int32_t *invocation;                     /* tokens behind which alone the adapter is on; NULL: it always is */
	size_t n_invocation;
};

/* False: err, and all is closed. */
bool adapter_open(struct adapter_file *f, const char *path, const struct model *m, struct error *err);
/* The same for one that becomes part of the model's own weights. That cannot be done with biases, nor where one matrix
 * is the embedding and the output's. */
bool adapter_open_to_merge(struct adapter_file *f, const char *path, const struct model *m, struct error *err);
void adapter_close(struct adapter_file *f);
/* The numbers of a part as f32: a, rank rows of cols; b, rows rows of rank; of experts so many of each, with zeros
 * where there is no pair or a lower rank. Of an embedding, rows are tokens. False: err. */
bool adapter_read(const struct adapter_file *f, const struct adapter_part *p, float *a, float *b, struct error *err);
/* n rows of a part that is whole, from row `first` on, as f32. False: err. */
bool adapter_read_whole(const struct adapter_file *f, const struct adapter_part *p, uint64_t first, uint64_t n,
                        float *out, struct error *err);
/* A number for each of B's rows, where its pair has such: its magnitudes, and its biases. False: err. */
bool adapter_read_magnitude(const struct adapter_file *f, const struct adapter_part *p, float *out, struct error *err);
bool adapter_read_bias(const struct adapter_file *f, const struct adapter_part *p, float *out, struct error *err);
bool adapter_read_own_bias(const struct adapter_file *f, const struct adapter_part *p, float *out, struct error *err);
/* Nothing more is read: whether it was the file that adapter_open() saw. */
bool adapter_read_done(const struct adapter_file *f, struct error *err);

/* ---- private to loaders/adapter/ */

/* adapter.c: the pair whose path is that name or ends in it behind a dot, from *hint on; *hint: behind it. NULL: none.
 */
struct adapter_pair *adapter_find_pair(const struct adapter_file *f, const char *name, size_t *hint);
/* adapter_check.c: every pair is whole, and of sizes that agree; whether a pair's tensors have the part's sizes, and an
 * embedding's. False: err. */
uint64_t adapter_rank_of(const struct adapter_file *f, const struct adapter_pair *p);
bool adapter_check_pairs(const struct adapter_file *f, struct error *err);
bool adapter_check_part(const struct adapter_file *f, const struct adapter_part *p, struct error *err);
bool adapter_check_embedding(const struct adapter_file *f, const struct adapter_part *p, struct error *err);
bool adapter_append_part(struct adapter_file *f, const struct adapter_part *p, size_t *room, struct error *err);
/* All of a tensor's numbers, malloc'ed. NULL: err. */
float *adapter_read_tensor(const struct adapter_file *f, const struct adapter_tensor *t, struct error *err);
/* adapter_norms.c: adds a part for each norm of the model that the files have whole. False: err. */
bool adapter_match_norms(struct adapter_file *f, const struct model *m, size_t *room, struct error *err);
/* adapter_experts.c: adds a part for experts' matrices of a layer. False: err. */
bool adapter_match_experts(struct adapter_file *f, const struct model *m, uint32_t layer, enum tensor_slot slot,
                           size_t *room, struct error *err);
bool adapter_read_experts(const struct adapter_file *f, const struct adapter_part *p, float *a, float *b,
                          struct error *err);
/* adapter_parameters.c: the same of a parameter that holds all experts' matrices. *found: there is one. */
bool adapter_match_parameter(struct adapter_file *f, const struct model *m, uint32_t layer, enum tensor_slot slot,
                             size_t *room, bool *found, struct error *err);
bool adapter_read_parameter(const struct adapter_file *f, const struct adapter_part *p, float *a, float *b,
                            struct error *err);

/* The pair of a module's path, made if there is none. NULL: err. */
struct adapter_pair *adapter_pair_of(struct adapter_file *f, const char *path, size_t n, struct error *err);
/* A tensor's first place in it. False: there is one already, or its type is not done. */
bool adapter_take(struct adapter_file *f, struct adapter_tensor *to, const struct adapter_tensor *t, struct error *err);
/* A module that is whole. Takes path, t->name over, also when it fails. */
bool adapter_take_whole(struct adapter_file *f, const struct adapter_whole *w, struct error *err);
bool adapter_open_peft(struct adapter_file *f, const char *dir, const char *weights, struct error *err);
bool adapter_open_gguf(struct adapter_file *f, const char *path, const struct model *m, struct error *err);

#endif
