/* runtime/plan/compile_ahead.h - the kernels of the passes to come, made before those passes are.
 *
 * What a session needs changes with what it does: a prompt goes through tiles of many columns and a narrower rest, decoding through passes of one column, and where the
 * text repeats itself through passes of 4, 8 or 16; the first session on a processor also tries schedules. Each of these is a regime: a set of kernels of its own. The
 * session says which passes it expects; a thread of the session has the registry generate or load what is missing while the session computes, and the session goes over to
 * a pass with guesses only once its kernels are there. So no kernel is ever made between two tokens, and as every regime computes the same bits (numerics.h),
 * when it changes is seen in time alone.
 *
 * Owns: the list of what is expected, and the thread, which begins with the first kernel that is missing: where all are known there is none. Never runs a kernel. A
 * kernel that cannot be made is no error here: whoever runs it asks the registry again and is told.
 */
#ifndef RUNTIME_REGIME_H
#define RUNTIME_REGIME_H

#include "jit/store/registry.h"
#include "runtime/plan/plan.h"
#include "runtime/device/profile.h"

struct regime;
struct regime_options {
	struct registry *registry;
	const struct model_spec *spec;
	struct plan_options plan;
	enum dtype kv;
	struct profile *profile;        /* for the track "background" of traces; NULL: none */
	bool finish;                    /* regime_close makes what is still expected, which somebody will find in the cache; otherwise it is dropped */
};

/* Borrows everything. NULL: err. All that follows is for the session's thread. */
struct regime *regime_open(const struct regime_options *o, struct error *err);
/* Ends the thread. */
void regime_close(struct regime *r);

/* A pass of this kind is to come; tuned: over all schedules of kernels that plan.tune knows nothing of. Does not wait. Again when plan.tune has learnt. */
void regime_expect(struct regime *r, uint32_t columns, enum plan_logits logits, bool tuned);
/* Whether all kernels of a pass that was expected are there. */
bool regime_ready(const struct regime *r, uint32_t columns, enum plan_logits logits);
/* Waits for it; for all that is expected. */
void regime_wait(struct regime *r, uint32_t columns, enum plan_logits logits);
void regime_rest(struct regime *r);

struct regime_counters { uint64_t made, nanoseconds; };         /* kernels that the thread generated or loaded, and its time */
void regime_count(const struct regime *r, struct regime_counters *out);

#endif
