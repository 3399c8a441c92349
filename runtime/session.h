/* runtime/session.h - what the programs that measure jitrun need of a session beyond jitrun.h. */
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include "runtime/jitrun.h"

/* From now on the token chosen at position p is ids[p] while p < n, whatever the logits say, so that the decoding of a known text can be timed;
 * everything is computed as if it had been chosen. ids: borrowed until replaced. NULL, 0: choices are free again. */
void session_force(jit_session *s, const int32_t *ids, size_t n);

#endif
