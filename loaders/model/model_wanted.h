/* loaders/model/model_wanted.h - which tensors a model has by its config.json alone: for models that are made, not
 * read.
 *
 * Owns: their names, and shapes as files of safetensors have them. Bound are config.json's own fields, as when a model
 * is read, so that a file with these tensors is one of the model.
 */
#ifndef LOADERS_MODEL_WANTED_H
#define LOADERS_MODEL_WANTED_H

#include "loaders/model/model.h"

/* What a new tensor holds. */
enum wanted_kind {
	WANTED_MATRIX, /* random numbers */
	WANTED_NORM,   /* what multiplies by 1 */
	WANTED_BIAS    /* 0 */
};
struct wanted_tensor {
	char *name;
	enum wanted_kind kind;
	uint32_t rank;
	uint64_t dim[2]; /* the slowest first */
};
struct model_wanted {
	struct wanted_tensor *tensor;
	uint32_t n, room;
	bool less_one; /* norms are kept less 1 */
};

/* config: the text of config.json, n bytes. False: err, for a mixture of experts and other models with tensors that
 * are neither matrices, norms nor biases, too. model_wanted_free() is due in any case. */
bool model_wanted_read(struct model_wanted *w, const void *config, uint64_t n, struct error *err);
void model_wanted_free(struct model_wanted *w);

#endif
