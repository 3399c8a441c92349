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
/* On a rank other than 0: its part, when rank 0 asks for it. False: err. */
bool model_fingerprint_follow(const jit_model *m, struct error *err);

/* ---- fingerprint_ranks.c */

enum { FINGERPRINT_BLOCK = 1 << 20 };
/* Of weights that several ranks have together: the checksums of their blocks, one behind the other; first those of the
 * matrices, then those of the vectors. All ranks call it at the same time; only rank 0 has them then, malloc'ed, others
 * NULL. False: err. */
bool fingerprint_blocks(const jit_model *m, uint64_t **sums, struct error *err);

#endif
