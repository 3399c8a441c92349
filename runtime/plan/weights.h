/* runtime/plan/weights.h - a model's weights as kernels want them.
 *
 * Owns: the list of a model's matrices and vectors, and what is known of them without reading any. What fills them is
 * the device's (runtime/model/load_weights.h).
 */
#ifndef RUNTIME_WEIGHTS_H
#define RUNTIME_WEIGHTS_H

#include "jit/target.h"
#include "kernels-templates/templates.h"
#include "loaders/model/model.h"
#include "runtime/plan/memory.h"

#include <stdatomic.h>

struct cut_shares;
struct device;

/* What adapters have for a matrix: tables by an adapter's number, in the device's memory. */
struct weights_site {
	uint8_t *down, *up; /* addresses of their first and of their second matrices */
	uint8_t *facts;     /* struct adapt_fact */
	uint32_t ranks;     /* that a token's adapters may have together, a multiple of ADAPT_RANKS */
	/* Adapters that have something for it, those of them whose kernels are SCALED, and those that have rows of
	 * their own in place of the embedding's. */
	_Atomic uint32_t users, scaled, whole;
};

struct weights_matrix {
	enum dtype type;
	uint64_t rows, k;
	const uint8_t *packed; /* blocks of 32 rows (docs/kernel-templates.md); those of gate and up alternate if
	                          weights_gate_up_interleaved() */
	const struct weights_site *site; /* NULL: no adapter can be added */
};

/* Each as in struct model_layer. Vectors are padded to 32 with zeros; NULL: none. */
struct weights_layer {
	union {
		struct {
#define X(name, ...) struct weights_matrix name;
			MATRIX_SLOTS_EACH(X)
#undef X
		};
		struct weights_matrix matrix[MATRIX_SLOTS];
	};
	union {
		struct {
#define X(name, ...) const float *name;
			VECTOR_SLOTS_EACH(X)
#undef X
		};
		const float *vector[VECTOR_SLOTS];
	};
};

struct weights {
	struct weights_matrix embed, lm_head; /* lm_head.packed == embed.packed when tied */
	struct weights_matrix head_whole;     /* nothing but the site of what adapters have for all of lm_head */
	struct weights_matrix input_embed, input_proj; /* with model_spec.layer_input */
	struct weights_matrix pos_embed, type_embed;   /* of encoders, where there are any */
	const float *score_bias; /* [head][2 * weights_bias_reach()]: what scores get by distance; of models that
	                            generate [head], what they get for each position of it; NULL: nothing */
	const float *final_norm, *final_norm_bias, *head_bias, *input_norm, *embed_norm, *embed_norm_bias;
	struct weights_layer *layer;
	uint64_t packed_bytes, token_bytes; /* token_bytes: matrix bytes read for one token */
	struct device *device;              /* whose memory holds them; NULL after weights_describe() */
	void (*release)(struct weights *w); /* gives that memory back; NULL: there is none */
	uint8_t *arena;
	size_t arena_bytes;
	float *vectors;
	size_t vectors_bytes;
};

/* Those outside of layers, each by its name here and in struct model_spec. */
#define WEIGHTS_VECTORS_EACH(X) \
	X(final_norm) X(final_norm_bias) X(head_bias) X(input_norm) X(embed_norm) X(embed_norm_bias)

/* Without numbers: types, sizes and which vectors there are, enough to build a plan that is never run. Needs no tensor
 * data. */
bool weights_describe(struct weights *w, const struct model_spec *s, struct error *err);
/* Gate and up go through one kernel, block by block in turn, when their types are the same. */
static inline bool weights_gate_up_interleaved(enum dtype gate, enum dtype up) { return gate == up; }
void weights_close(struct weights *w);

/* What one of several processes computes with: the matrices and vectors of some layers, and perhaps those outside. */
struct weights_part {
	uint32_t first, end;           /* layers */
	bool ends;                     /* embeddings and logits */
	const struct cut_shares *rows; /* of these matrices, the rows that they say; NULL: all */
};

/* ---- for the code that fills them */

/* The matrices in the order a token reads them, so that one token streams memory from front to back. */
struct weights_entry {
	const struct model_tensor *tensor;
	struct weights_matrix *matrix;
	enum weights_pairing { WEIGHTS_ALONE, WEIGHTS_FIRST_OF_TWO, WEIGHTS_SECOND_OF_TWO } pairing; /* in one kernel */
	/* Where it lies among them, as weights_lay() says: its first block, and bytes from a block to the next. */
	uint64_t at, stride, blocks, block_bytes;
};
/* e: layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE. Returns how many. */
enum { WEIGHTS_OUTSIDE = 6 };
size_t weights_list(struct weights_entry *e, const struct model_spec *s, struct weights *w);
/* The layer that a tensor belongs to; as many as there are: to none. */
uint32_t weights_layer_of(const struct model_spec *s, const struct model_tensor *t);
/* Keeps the entries of a part (NULL: all), in their order. Returns how many. */
size_t weights_keep_part(struct weights_entry *e, size_t n, const struct model_spec *s,
                         const struct weights_part *part);
/* Where each matrix lies, one behind the other. Returns how many bytes they take together; INT64_MAX when that is more
 * than can be. */
uint64_t weights_lay(struct weights_entry *e, size_t n, enum weight_layout layout);
/* What a kernel sees of them when they lie at `arena`, NULL when nobody knows where yet. */
void weights_point(struct weights *w, const struct model_spec *s, const struct weights_entry *e, size_t n,
                   const uint8_t *arena);
/* The same of the vectors at `there`, each with its padding; NULL: only how many floats they take together is wanted.
 */
uint64_t weights_point_vectors(struct weights *w, const struct model_spec *s, const float *there);
/* Names the way all of them lie, for what is kept packed; and how many bytes they are. */
struct weights_layout {
	uint64_t id, matrix_bytes, vector_bytes, token_bytes;
};
bool weights_layout(const struct model_spec *s, enum weight_layout layout, struct weights_layout *out,
                    struct error *err);
/* The same of one format alone: what packing makes of certain rows. */
bool weights_format_id(enum dtype t, enum weight_layout layout, uint64_t *id, struct error *err);
/* Bytes behind the last matrix or vector that are there too: kernels prefetch past the end and may load whole vectors
 * there. */
enum { WEIGHTS_SLACK = 4096, WEIGHTS_VECTORS_SLACK = 256 };
bool weights_check_types(const struct weights_entry *e, size_t n, struct error *err);
/* Of encoders whose scores are biased by distance: positions that a table reaches to each side, else 0; how many
 * numbers models have that bias scores; these.
 * bucket: of model_spec.score_bias, [buckets][heads]. */
uint32_t weights_bias_reach(const struct model_spec *s);
uint64_t weights_bias_count(const struct model_spec *s);
void weights_fill_bias(float *out, const struct model_spec *s, const float *bucket);
/* An empty layer for each of the model's. */
bool weights_allocate(struct weights *w, const struct model_spec *s, struct error *err);

#endif
