/* runtime/device/collect.h - what a model's matrices are multiplied with: for each column the sum of squares, over all
 * tokens that a stream computes. They make an importance matrix, by which jitquant weighs errors.
 *
 * Owns: the sums. They are added up by one thread, between two stages, token by token: so they have the same bits for
 * any number of threads and any cut of the text into passes. Activations must be f32.
 */
#ifndef DEVICE_COLLECT_H
#define DEVICE_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loaders/model/model.h"
#include "runtime/plan/weights.h"

struct collect;
struct plan;
struct stream;

/* Begins, on a stream that stays open as long; err names the model. NULL: err. */
struct collect *collect_open(struct stream *s, const struct model_spec *spec, const struct weights *w,
                             struct error *err);
void collect_close(struct collect *c);
/* Called before op number `op` runs: its inputs are there, and those of the ops that prepared them, still. */
void collect_see(struct collect *c, const struct plan *p, size_t op);

/* Writes what was collected as a GGUF file (loaders/files/imatrix.h). text names what was read, chunks of so many
 * tokens. */
bool collect_write(const struct collect *c, const char *path, const char *text, uint32_t chunks, uint32_t chunk_tokens,
                   struct error *err);

#endif
