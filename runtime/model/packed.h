/* runtime/model/packed.h - packed models (.jkm): a model with its weights as kernels read them, its texts and its
 * kernels, in one file.
 *
 * Owns: what the sections of the file (jit/store/container.h) mean, writing them, and opening a model from them. The
 * headers and texts inside go through the loaders like those of other files. Weights come by load_packed.h,
 * kernels through the cache, which asks the file first.
 */
#ifndef RUNTIME_PACKED_H
#define RUNTIME_PACKED_H

#include "jit/store/container.h"
#include "jit/target.h"
#include "loaders/model/model.h"
#include "runtime/host/pool.h"

struct packed;

/* Opens the file and copies its texts. NULL: err. */
struct packed *packed_open(const char *path, struct error *err);
void packed_close(struct packed *p); /* after the model that was opened from it; NULL is fine */
const struct container *packed_container(const struct packed *p);
bool packed_has_kernels(const struct packed *p);
/* The model, as with MODEL_HEADER_ONLY: tensors are where load_packed.h finds them. */
bool packed_model(const struct packed *p, struct model *out, unsigned flags, struct error *err);

/* A model of any kind: *packed is NULL unless it is a packed one, and is closed by packed_close() after model_close().
 */
bool packed_or_files(struct model *out, struct packed **packed, const char *path, unsigned flags, struct error *err);

struct packed_options {
	const struct target *const *target; /* for whose layouts weights are packed */
	int n_targets;
	const void *kernels; /* a pack's bytes; NULL: none */
	size_t kernel_bytes;
	bool weights_only;  /* no texts: the process that opens it has the model's files */
	const void *origin; /* what names the files it is made from, in a cache; NULL: none */
	size_t origin_bytes;
	unsigned mode; /* of the file, less the umask */
	int (*progress)(void *user, uint64_t done, uint64_t total);
	void *user;
};
/* Writes a model that was opened with MODEL_KEEP_SOURCES: beside path, synced and renamed. The same bytes wherever it
 * is done. *bytes: of the file. weights_only: how it was opened does not matter. */
bool packed_write(const char *path, const struct model *m, const struct packed_options *o, struct pool *pool,
                  uint64_t *bytes, struct error *err);

#endif
