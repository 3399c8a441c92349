/* runtime/model/load_packed.h - weights that were packed before, from a packed model's file into a device's reach.
 *
 * Owns: whether they are mapped or copied. A device whose memory is the process's sees the pages of the file, which all
 * processes share; others get a copy, compared with its checksums on the way.
 */
#ifndef RUNTIME_LOAD_PACKED_H
#define RUNTIME_LOAD_PACKED_H

#include "jit/store/container.h"
#include "runtime/device/device.h"
#include "runtime/host/pool.h"
#include "runtime/plan/weights.h"

/* As weights_open(). c: borrowed for the call; m says what is in it. copy: nothing is mapped. */
bool weights_open_packed(struct weights *w, const struct model *m, const struct container *c, struct device *device,
                         bool copy, struct pool *pool, int (*progress)(void *user, uint64_t done, uint64_t total),
                         void *user, struct error *err);

#endif
