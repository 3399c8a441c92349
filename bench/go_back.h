/* bench/go_back.h - a session is taken back, and is ready to go on at once.
 *
 * Owns: that what going back has computed once more is never part of a timed pass. A session with layers that keep a
 * state leaves that to the next feed, from the last state that it still has; so do windows that have moved on.
 */
#ifndef BENCH_GO_BACK_H
#define BENCH_GO_BACK_H

#include <stdbool.h>

#include "include/jitrun.h"

/* To n tokens of those that it has. */
bool go_back(jit_session *s, size_t n, jit_error *err);

#endif
