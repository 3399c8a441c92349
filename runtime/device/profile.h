/* runtime/device/profile.h - where a session's time went: per kernel for --report, moment by moment for --trace.
 *
 * Owns: the sums and the events. Each worker writes to memory of its own, so that recording costs a clock reading and
 * a few stores. The names of kernels and where they came from are the registry's. A profile never changes what is
 * computed or in which order; a session that is not profiled has none.
 */
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include <stdio.h>

#include "jit/store/registry.h"
#include "runtime/plan/plan.h"

struct profile;
enum profile_pass { PROFILE_PROMPT, PROFILE_DECODE };

/* track: the trace's name for what computes, borrowed, where that is one card and no worker; else NULL. events: also
 * keep every op with its times, for profile_trace(). NULL: err. */
struct profile *profile_open(int workers, const char *track, bool events, struct error *err);
void profile_close(struct profile *p);

uint64_t profile_now(void); /* nanoseconds, monotonic */
/* Before a plan's first run: sets plan->profile_at. False: no memory. */
bool profile_add_plan(struct profile *p, struct plan *plan, struct error *err);
/* What the trace calls a kernel of the plan, cut to what struct object has room for; else it has the key's text. */
void profile_name(struct profile *p, const struct plan *plan, size_t kernel, const char *name);
/* By a worker: its share of op i took from start to end. */
void profile_launch(struct profile *p, int worker, const struct plan *plan, size_t i, uint64_t start, uint64_t end);
/* By the session's thread: a pass over the plan's tokens, its first token at `position`. */
void profile_ran(struct profile *p, enum profile_pass kind, const struct plan *plan, uint64_t position, uint64_t start,
                 uint64_t end);
/* By the thread that runs it: a launch of the plan's kernel, on the trace's track "launches". */
void profile_launched(struct profile *p, const struct plan *plan, size_t kernel, uint64_t start, uint64_t end);
/* By any thread: something else worth seeing in the trace, on a track of its own. name and track: text that outlives
 * the profile's last trace. */
void profile_note(struct profile *p, const char *track, const char *name, uint64_t start, uint64_t end);

/* One kernel of a profile, of all passes. */
struct profile_kernel {
	struct key key;
	uint64_t calls;         /* ops */
	uint64_t bytes;         /* they were expected to read and write in memory, in all */
	uint64_t nanoseconds;   /* of all workers together */
	char name[OBJECT_NAME]; /* what profile_name() said; "": nothing */
	unsigned columns;       /* the slot that says how many columns an op works on; none: template_args() */
};
struct profile_totals {
	uint64_t passes[2], tokens[2], nanoseconds[2];
	int workers;
	uint64_t dropped; /* events there was no room for */
};

/* The kernels, those that took longest first. *list is malloc'ed. False: no memory. */
bool profile_kernels(const struct profile *p, struct profile_kernel **list, size_t *n, struct profile_totals *totals);

bool profile_keeps_events(const struct profile *p);
/* Chrome's trace format (JSON): one track for each worker, one for passes, one for each track noted. False: the file
 * could not be written. */
bool profile_trace(const struct profile *p, FILE *out);

#endif
