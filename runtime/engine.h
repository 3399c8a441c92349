/* runtime/engine.h - what computes passes for the sessions of a model: threads, plans, kernels to come, and the memory
 * that passes work in. A session has one of its own; the sessions of a batch share the batch's.
 *
 * Owns: the plans, which are built when they are first needed and bound to no session: where a session's cache and
 * states lie is set before each run. Used by one thread at a time.
 */
#ifndef RUNTIME_ENGINE_H
#define RUNTIME_ENGINE_H

#include "runtime/compile_ahead.h"
#include "runtime/device/device.h"
#include "runtime/device/profile.h"
#include "runtime/host/cancel.h"
#include "runtime/jitrun_cards.h"
#include "runtime/model.h"
#include "runtime/pass_memory.h"
#include "runtime/plan/rope.h"
#include "runtime/speculate/speculate.h"
#include "runtime/tuning/tuner.h"

enum { ENGINE_LOGIT_KINDS = 4 }; /* of enum plan_logits */

struct engine {
	jit_model *model;
	struct stream *stream;
	struct pool *pool;
	struct tuner *tuner;                 /* while it finds something out */
	unsigned tune_passes;                /* for it to take; 0: it has had its turn, or none */
	struct compile_ahead *compile_ahead; /* NULL: kernels are made when they are needed, or are there already */
	uint64_t stalls;                     /* kernels that were not there when a decoding pass was first made */
	bool general;                        /* session_pin_general() */
	struct profile *profile;             /* NULL: not asked for */
	struct pass_memory memory;
	struct rope rope;
	struct plan **plan;   /* [tokens + 1][ENGINE_LOGIT_KINDS], built when first needed */
	struct plan_cache kv; /* where a session's cache has what; without addresses */
	uint32_t context;     /* positions of a session */
	uint32_t batch;       /* most tokens of a prompt in one pass */
	uint32_t tokens;      /* of the widest pass: a batch, or drafts */
	enum speculate_mode speculate;
	unsigned drafts; /* the width of SPECULATE_FIXED */
};

struct engine_options {
	int threads; /* 0: one per core this process may use */
	int profile; /* JIT_PROFILE_ */
	const jit_card_options *card;
	const struct cancel *cancel; /* of whoever waits for it to open */
};
/* Where the model, its sizes, the KV type and the mode of drafts are set already; memory is taken, and the rest made.
 * False: err, and engine_close() is still due. */
bool engine_open(struct engine *e, const struct engine_options *o, struct error *err);
void engine_close(struct engine *e);

struct plan_options engine_plan_options(const struct engine *e);
/* Has the kernels of passes over drafts made in the background. */
void engine_request_drafts(struct engine *e);
/* The plan of a pass for one session. NULL: err. */
struct plan *engine_find_plan(struct engine *e, uint32_t tokens, enum plan_logits logits, enum profile_pass kind,
                              struct error *err);
/* Memory for the logits of as many tokens as plans of PLAN_ALL_LOGITS give. */
bool engine_map_all_logits(struct engine *e, struct error *err);
/* Runs a plan, watched by the profile, and by the tuner while it is the tuner's. position: of its first token. cancel:
 * who may stop it. */
bool engine_run(struct engine *e, struct plan *p, uint64_t position, enum profile_pass kind,
                const struct cancel *cancel, struct error *err);

#endif
