/* runtime/model/adapters_ranks.h - adapters of a model that several ranks compute: each has all of them, from its own
 * copy of their files, under the same numbers.
 *
 * Owns: the handshake. An adapter counts on all ranks or on none; one whose files are others on some rank is refused.
 */
#ifndef RUNTIME_ADAPTERS_RANKS_H
#define RUNTIME_ADAPTERS_RANKS_H

#include "runtime/model/adapter_open.h"
#include "runtime/ranks/ranks.h"

/* Rank 0, where it has them itself. Each does nothing where there are no other ranks. False: err. */
bool adapters_tell_enable(const jit_model *m, uint32_t ranks, struct error *err);
/* Between ranks_begin() and ranks_end(): the others open it, too. On an error none of them has it. */
bool adapter_tell_open(const jit_adapter *a, const char *path, struct error *err);
void adapter_tell_close(const jit_adapter *a);

/* On other ranks than 0: one of these three commands. False: err. */
bool adapters_follow(jit_model *m, const struct ranks_command *c, struct error *err);

#endif
