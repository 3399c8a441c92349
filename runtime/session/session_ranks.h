/* runtime/session/session_ranks.h - a session's cache and states, where several ranks keep parts of them
 * (engine/engine_ranks.h). */
#ifndef RUNTIME_SESSION_RANKS_H
#define RUNTIME_SESSION_RANKS_H

#include "runtime/model/model.h"
#include "runtime/session/session_kv.h"

/* Rank 0 has all of n pieces, and all states that count, as one process would. False: err. */
bool session_gather(const struct session_memory *m, const jit_model *model, const struct kv_extent *extent, uint64_t n,
                    struct error *err);
/* The others have their parts of what rank 0 has. False: err. */
bool session_give_out(const struct session_memory *m, const jit_model *model, const struct kv_extent *extent,
                      uint64_t n, struct error *err);

#endif
