/* runtime/engine/compile_ahead.h - the kernels of the passes to come, made before those passes are.
 *
 * What a session needs changes with what it does: a prompt goes through tiles of many tokens and a narrower rest.
 * Decoding goes through passes of one token, or of 4, 8 or 16 where the text repeats itself. The first session on a
 * processor also tries schedules. Each of these has a set of kernels of its own. The session says which passes it
 * expects; while it computes, a thread of the session has the registry generate or load what is missing. Only once its
 * kernels are there does the session go over to a pass with draft tokens. So no kernel is ever made between two tokens,
 * and as all of them compute the same bits (numerics.h), a change is seen in time alone.
 *
 * Owns: the list of what is expected, and the thread, which begins with the first kernel that is missing: where all are
 * known there is none. Never runs a kernel. A kernel that cannot be made is no error here: the pass that runs it asks
 * the registry again and is told.
 */
#ifndef RUNTIME_COMPILE_AHEAD_H
#define RUNTIME_COMPILE_AHEAD_H

#include "jit/store/registry.h"
#include "runtime/plan/plan.h"
#include "runtime/device/profile.h"

struct compile_ahead;
struct compile_ahead_options {
	struct registry *registry;
	const struct model_spec *spec;
	struct plan_options plan;
	enum dtype kv;
	struct profile *profile; /* for the track "background" of traces; NULL: none */
	bool finish; /* compile_ahead_close makes what is still expected, which somebody will find in the cache;
	                otherwise it is dropped */
};

/* Borrows everything. NULL: err. All that follows is for the session's thread. */
struct compile_ahead *compile_ahead_open(const struct compile_ahead_options *o, struct error *err);
/* Ends the thread. */
void compile_ahead_close(struct compile_ahead *r);

/* A pass of this kind is to come; tuned: over all schedules of kernels that plan.tune knows nothing of. Does not wait.
 * Again when plan.tune has learnt. */
void compile_ahead_request(struct compile_ahead *r, uint32_t tokens, enum plan_logits logits, bool tuned);
/* Whether all kernels of a pass that was expected are there. */
bool compile_ahead_ready(const struct compile_ahead *r, uint32_t tokens, enum plan_logits logits);
/* Waits for it; for all that is expected. */
void compile_ahead_wait(struct compile_ahead *r, uint32_t tokens, enum plan_logits logits);
void compile_ahead_drain(struct compile_ahead *r);

struct compile_ahead_counters {
	uint64_t made, nanoseconds;
}; /* kernels that the thread generated or loaded, and its time */
void compile_ahead_count(const struct compile_ahead *r, struct compile_ahead_counters *out);

#endif
