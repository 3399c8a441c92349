/* runtime/plan/weights.h - a model's weights as kernels want them.
 *
 * Owns: the packed matrices in one large mapping, the small f32 vectors (norms, biases, rotation frequencies), and the
 * packing itself: tensor by tensor in parallel, each thread reading some rows at a time into a buffer that stays in its
 * cache, so that peak memory is little more than the packed weights. Never reads the model's files afterwards.
 */
#ifndef RUNTIME_WEIGHTS_H
#define RUNTIME_WEIGHTS_H

#include "jit/target.h"
#include "loaders/model.h"
#include "runtime/host/pool.h"

struct device;

struct weights_matrix {
	enum dtype type;
	uint64_t rows, k;
	const uint8_t *packed; /* blocks of 32 rows (templates.h); those of gate and up alternate if
	                          weights_gate_up_interleaved() */
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
	const float *final_norm;
	struct weights_layer *layer;
	float *inv_freq;                    /* head_dim/2, scaling included */
	float rope_factor;                  /* multiplies cos and sin */
	uint64_t packed_bytes, token_bytes; /* token_bytes: matrix bytes read for one token */
	struct device *device;              /* whose memory holds all but inv_freq; NULL after weights_describe() */
	uint8_t *arena;
	size_t arena_bytes;
	float *vectors;
	size_t vectors_bytes;
};

/* progress may be NULL; non-zero from it stops with ERROR_ARGUMENT. Files that changed since the model was opened are
 * an error. */
bool weights_open(struct weights *w, const struct model *m, struct device *device, struct pool *pool,
                  int (*progress)(void *user, uint64_t done, uint64_t total), void *user, struct error *err);
/* The same without numbers: types, sizes and which vectors there are, enough to build a plan that is never run. Needs
 * no tensor data. */
bool weights_describe(struct weights *w, const struct model_spec *s, struct error *err);
/* Gate and up go through one kernel, block by block in turn, when their types are the same. */
static inline bool weights_gate_up_interleaved(enum dtype gate, enum dtype up) { return gate == up; }
void weights_close(struct weights *w);

#endif
