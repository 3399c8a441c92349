/* runtime/model/load_weights.h - a model's weights, packed as kernels want them, in the memory of a device.
 *
 * Owns: the packed matrices in one large mapping, the small f32 vectors (norms, biases, rotation frequencies), and the
 * packing itself: tensor by tensor in parallel. Each thread reads some rows at a time into a buffer that stays in its
 * cache, so that peak memory is little more than the packed weights. Never reads the model's files afterwards.
 */
#ifndef RUNTIME_LOAD_WEIGHTS_H
#define RUNTIME_LOAD_WEIGHTS_H

#include "runtime/device/device.h"
#include "runtime/host/pool.h"
#include "runtime/plan/weights.h"

/* What they would take on such a target, without reading any: fills arena_bytes, packed_bytes, token_bytes and
 * vectors_bytes, and the types and sizes of the matrices. weights_close() is due when it is true. */
bool weights_measure(struct weights *w, const struct model_spec *s, const struct target *t, struct error *err);
/* Memory for so many bytes of matrices, of which several cards have their shares; NULL: err. How many bytes that is of
 * each card. */
uint8_t *weights_arena(struct device *d, const struct model_spec *s, enum weight_layout layout, size_t bytes,
                       struct error *err);
uint64_t weights_arena_bytes(struct device *d, const struct model_spec *s, enum weight_layout layout, uint64_t bytes);
/* part: of what alone there will be numbers; NULL: of all. progress may be NULL; non-zero from it stops with
 * ERROR_ARGUMENT. Files that changed since the model was opened are an error. */
bool weights_open(struct weights *w, const struct model *m, const struct weights_part *part, struct device *device,
                  struct pool *pool, int (*progress)(void *user, uint64_t done, uint64_t total), void *user,
                  struct error *err);

/* ---- load_vector.c: vectors as kernels read them */

/* How many bytes the longest takes in its file. */
size_t load_longest_vector(const struct model_spec *s);
/* One of a layer's that is there, as kernels read it. False: err. */
bool load_read_vector(float *out, const struct model *m, const struct model_tensor *t, struct error *err);
/* All vectors of a part, or all; converted: as they lie at w->vectors; raw has room for the longest. False: err. */
bool load_convert_all(const struct weights *w, float *converted, void *raw, const struct model *m,
                      const struct weights_part *part, struct error *err);

#endif
