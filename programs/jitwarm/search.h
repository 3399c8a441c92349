/* programs/jitwarm/search.h - the thorough search for schedules, on a model's own weights, with all threads of a
 * session.
 *
 * Owns: the way through the schedules. A model makes passes of one token, of 4, 8 and 16 with draft tokens, and of a
 * prompt's tiles. For each of them one field of the schedule is changed at a time, in all kernels of the pass at once.
 * All values of the field take turns with what was best so far (runtime/tuning/tuner.h), until no field gains anything
 * more. What came out is compared with the usual schedule once again, and that is the gain. Never keeps anything:
 * results go to the caller's table.
 */
#ifndef PROGRAMS_SEARCH_H
#define PROGRAMS_SEARCH_H

#include "jit/store/tune.h"
#include "include/jitrun.h"

/* What a kind of pass took, as it is done. */
struct search_progress {
	uint32_t tokens;
	bool prompt;
	unsigned kernels, rounds, passes, better;
	double seconds;
	bool cut; /* time was up */
};

struct search_options {
	double seconds; /* about; 0: until nothing is found any more */
	void (*progress)(void *user, const struct search_progress *p);
	void *user;
};
enum { SEARCH_CONTEXT = 128 /* tokens that the session must have room for, and compute in a pass */ };

/* A session of a model that was opened without results; its first SEARCH_CONTEXT / 8 tokens are fed. */
bool search_schedules(jit_session *s, struct tune *results, const struct search_options *o, struct error *err);

#endif
