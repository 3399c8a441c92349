/* language/kernel.h - a kernel with its constants bound: what expand.c and infer.c make of the file's tree, and what
 * lower*.c read. Nothing of it changes once it is bound, so that any number of threads may build from it.
 */
#ifndef LANGUAGE_KERNEL_H
#define LANGUAGE_KERNEL_H

#include "language/tree.h"

struct jk_kernel {
	struct jk_file *f;
	struct arena arena;
	const struct symbol *source; /* in the file */
	struct symbol *parameters, *indices;
	struct node *body;
	bool cooperates;
	uint64_t *constant; /* of the file, by number */
	bool *known;
	uint64_t block; /* instances of a unit: of a kernel by lanes along its last index */
	uint64_t rows;  /* of a unit, along the index before, where a CPU runs it: lower_copies.c */
	uint64_t instances, units;
	uint32_t n_symbols, n_nodes, n_indices;
	struct symbol **memory; /* private arrays and tiles, in the order of their declarations */
	uint32_t n_memory;
	struct jk_parameter parameter[JK_MAX_PARAMETERS];
	size_t n_parameters;
	struct jk_use *use;
	uint32_t *use_of; /* by the element's number in the file: 1 + its number in use, or 0 */
	size_t n_uses;
	struct jk_local *local;
	size_t n_locals, locals_capacity;
	bool apart;        /* some access keeps a lane from having neighbours: lower_quads.c */
	bool wants_ahead;  /* instances read rows of an array that lie far apart */
	bool wants_bounce; /* a vector's first lane becomes a scalar somewhere */
	uint64_t bytes_read, bytes_written, operations;
	uint8_t id[2][JK_ID_BYTES];
};

/* expand.c: fills parameters, indices, body and memory. False: messages. */
bool jk_expand(struct jk_kernel *k, struct jk_messages *m);
/* sync.c: whether sync stands where tiles need it. False: a message. */
bool jk_sync_check(const struct jk_kernel *k, struct jk_messages *m);

void jk_sha256(const void *const *bytes, const size_t *n, size_t count, uint8_t out[32]);

/* lower_copies.c: how many rows a unit has, and which index tells them apart; NULL where there is one index. */
uint64_t jk_rows_of(const struct jk_kernel *k);
uint64_t jk_rows_on(const struct jk_kernel *k, const struct target *t);
uint64_t jk_units_by(const struct jk_kernel *k, uint64_t rows); /* of so many rows; of a kernel by lanes */
const struct symbol *jk_row_index(const struct jk_kernel *k);

/* infer.c: what may differ between lanes, and where values are known. False: messages. */
bool jk_infer(struct jk_kernel *k, struct jk_messages *m);

#endif
