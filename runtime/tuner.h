/* runtime/tuner.h - finds out, while a session decodes, which schedules of its kernels this machine likes.
 *
 * The first decoding passes use all schedules in turn, launch by launch, and time them; then each kernel keeps the best. As schedules compute the same bits this
 * changes no token, and as the passes are made anyway it costs no time but that of the schedules that turn out slower, a clock reading a launch, and
 * the milliseconds that generating them takes. What was found goes to jit/tune.h, where later sessions and runs find it.
 *
 * Owns: which launch runs with which schedule in a pass, and the judgement. Never runs anything itself.
 */
#ifndef RUNTIME_TUNER_H
#define RUNTIME_TUNER_H

#include "jit/tune.h"
#include "runtime/plan.h"

enum { TUNER_QUICK = 16, TUNER_THOROUGH = 128 };           /* passes */

struct tuner;

/* Begins with a plan that is built and not yet prepared: adds to its kernels the schedules of those that tune knows nothing of, and makes plan->took. NULL with
 * err->code 0: there is nothing to find out. */
struct tuner *tuner_open(struct tune *tune, struct plan *plan, unsigned passes, struct error *err);
void tuner_close(struct tuner *t);
/* Before and after each run of the plan. The last `after` writes the results to tune and gives every launch its best kernel; true: it is over, close it. */
void tuner_before(struct tuner *t);
bool tuner_after(struct tuner *t);

#endif
