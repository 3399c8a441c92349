/* loaders/files/imatrix.h - importance matrices: how much each column of a model's matrices matters, as sums of the
 * squares of what it was multiplied with while the model read some text.
 *
 * Owns: the file in memory, checked: every number is finite and not negative. Both forms that llama.cpp writes are
 * read: GGUF with two tensors for each matrix (NAME.in_sum2 and NAME.counts), and the older list without a magic
 * number.
 */
#ifndef LOADERS_IMATRIX_H
#define LOADERS_IMATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct imatrix_entry {
	char *name;             /* of the tensor: "blk.0.attn_q.weight" */
	uint64_t columns, rows; /* rows: experts, each with importances of its own; otherwise 1 */
	float *mean;            /* rows * columns: the mean squares. A row of an expert that was never asked is all 0 */
};

struct imatrix {
	struct imatrix_entry *entry; /* sorted by name */
	uint32_t n;
	uint32_t chunks; /* of text; 0: not said */
};

bool imatrix_read(struct imatrix *m, const char *path, struct error *err);
void imatrix_free(struct imatrix *m);
/* NULL: there is none of this name. */
const struct imatrix_entry *imatrix_find(const struct imatrix *m, const char *name, uint64_t n);

#endif
