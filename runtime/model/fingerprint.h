/* runtime/model/fingerprint.h - which model a session's state belongs to.
 *
 * Owns: what counts as another model: all that decides the bits of its keys and values, weights included.
 */
#ifndef RUNTIME_FINGERPRINT_H
#define RUNTIME_FINGERPRINT_H

#include "runtime/host/pool.h"
#include "runtime/model/model.h"

/* Reads all weights when it is first asked for, on the pool's threads. False: err. */
bool model_fingerprint(jit_model *m, struct pool *pool, uint64_t *out, struct error *err);

#endif
