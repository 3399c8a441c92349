/* runtime/model/adapter_update.h - what an adapter has for one matrix of a model, between its files and the device's
 * memory; private to runtime/model/adapter_*.c.
 *
 *   adapter_open.c   which updates there are, and where they go
 *   adapter_pack.c   their numbers as kernels read them
 *   adapter_norms.c  what magnitudes and biases come to
 *   adapter_rows.c   an embedding that is there whole
 */
#ifndef RUNTIME_ADAPTER_UPDATE_H
#define RUNTIME_ADAPTER_UPDATE_H

#include "loaders/adapter/adapter.h"
#include "runtime/model/model.h"

/* What an adapter adds to one matrix of the model, on its way to memory. */
struct update {
	const struct adapter_part *part;
	const struct weights_matrix *matrix;
	float *a, *b, *extra; /* extra: [ADAPT_EXTRAS][padded rows]; NULL: none */
	enum adapt_type type;
	uint32_t rank;       /* a multiple of ADAPT_RANKS */
	uint64_t at_a, at_b; /* in the adapter's memory */
	struct adapt_fact fact;
};

/* Rows of its first matrix: of its ranks, or of what is whole. */
static inline uint64_t update_down(const struct update *p) { return p->part->rank ? p->part->rank : p->part->rows; }
/* Matrices that it has one behind the other. */
static inline uint64_t update_experts(const struct update *p) { return p->part->experts ? p->part->experts : 1; }
static inline bool update_embeds(const struct update *p) { return p->part->target == ADAPTER_EMBEDDING; }
enum matrix_slot update_matrix_slot(enum tensor_slot slot);

/* The type of fewest bits that none of its numbers is changed by; bytes of one. */
enum adapt_type update_narrowest(const struct update *p);
size_t update_element(enum adapt_type type);
/* Into the adapter's memory. */
void update_pack(uint8_t *to, const struct update *p);

/* Its vectors, where there are any. False: err. */
bool update_read_extras(struct update *p, const struct adapter_file *f, const jit_model *m, struct error *err);

#endif
