/* runtime/tuning/tuner.h - finds the fastest schedules of kernels on this machine, while a plan is run again and
 * again.
 *
 * The runs use several schedules of a kernel in turn, op by op, and time them; then each kernel has its best. All
 * schedules compute the same bits, so no result changes. A session does so in its first decoding passes, which it
 * makes anyway. That costs what slower schedules lose, which is limited, a clock reading for each op, and the
 * milliseconds to generate the schedules. The thorough search of jitwarm tune does the same for longer. Results go to
 * jit/store/tune.h, where later sessions and processes find them.
 *
 * Owns: which op uses which schedule in a run, and the judgement. Never runs anything itself.
 */
#ifndef RUNTIME_TUNER_H
#define RUNTIME_TUNER_H

#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "runtime/plan/plan.h"

enum { TUNER_QUICK = 16 /* passes */, TUNER_COST_MS = 40 /* that a session may lose to schedules that are slower */ };
/* A schedule must be so much faster than the one before to be worth a difference between machines. */
#define TUNER_WORTH 1.02
/* ... and none is so much: then something else took the processor, and nothing was found out. */
#define TUNER_MAX_PLAUSIBLE_GAIN 1.75

/* What was found out about a kernel, of which key has the schedule that was first in the list. */
struct tuner_verdict {
	const struct key *key;
	uint32_t schedule[TEMPLATE_SCHEDULES_MAX];
	double time[TEMPLATE_SCHEDULES_MAX]; /* the lower quartile of an op, nanoseconds of all workers; 0: too few
	                                         samples, or none to be believed */
	unsigned n, best;                    /* best: the first, unless another is WORTH it */
	uint32_t samples;                    /* of the one that has the fewest */
};

struct tuner_options {
	struct plan *plan; /* built, and not yet prepared since: its kernels grow */
	unsigned passes; /* until kernels with enough samples are judged; the others get three times as many at most */
	int workers;
	double cost; /* seconds that may be lost to slower schedules; 0: any */
	/* The schedules to try of a kernel, its own first; fewer than two: none. */
	unsigned (*list)(void *user, const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MAX]);
	void (*judged)(void *user, const struct tuner_verdict *v);
	void *user;
};

struct tuner;
/* NULL with err->code 0: there is nothing to measure. */
struct tuner *tuner_open(const struct tuner_options *o, struct error *err);
/* The tuner of a session: it tries the few most promising schedules of kernels that tune has no result for, and stores
 * its results there. only: kernels that this registry has already; NULL: any. */
struct tuner *tuner_open_quick(struct tune *tune, struct plan *plan, unsigned passes, int workers,
                               struct registry *only, struct error *err);
/* Before the end: ops get back the schedules they had. */
void tuner_close(struct tuner *t);
/* The most schedules there are for one op of a run, rounded up: how many runs give each a sample. */
unsigned tuner_rounds(const struct tuner *t);
void tuner_set_passes(struct tuner *t, unsigned passes);
/* How many kernels are judged; their ops have the best. */
unsigned tuner_judged(const struct tuner *t);
/* Before and after each run of the plan; an `after` may have verdicts passed. True: the last has been, close it. */
void tuner_before(struct tuner *t);
bool tuner_after(struct tuner *t);

#endif
