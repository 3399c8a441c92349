/* runtime/engine/engine.h - what computes passes for the sessions of a model: threads, plans, kernels to come, and the
 * memory that passes work in. A session has one of its own; the sessions of a batch share the batch's.
 *
 * Owns: the plans, which are built when they are first needed and bound to no session: where a session's cache and
 * states lie is set before each run. Used by one thread at a time.
 */
#ifndef RUNTIME_ENGINE_H
#define RUNTIME_ENGINE_H

#include "runtime/engine/compile_ahead.h"
#include "runtime/device/device.h"
#include "runtime/device/profile.h"
#include "runtime/host/cancel.h"
#include "include/jitrun_cards.h"
#include "runtime/model/model.h"
#include "runtime/engine/pass_memory.h"
#include "runtime/plan/rope.h"
#include "runtime/speculate/speculate.h"
#include "runtime/tuning/tuner.h"

enum {
	ENGINE_LOGIT_KINDS = 4, /* of enum plan_logits */
	ENGINE_JOINT_MAX = 48,
	ENGINE_SPANS_MAX = ADAPT_SETS - 1 /* sequences of a pass */
};

/* A plan over several sequences. */
struct engine_joint {
	struct plan *plan;
	bool normed, adapts;
	struct plan_span *span;
	uint32_t spans;
	uint64_t used;
};

struct engine {
	jit_model *model;
	struct stream *stream;
	struct pool *pool;
	bool pool_is_borrowed;
	struct tuner *tuner;                 /* while it finds something out */
	unsigned tune_passes;                /* for it to take; 0: it has had its turn, or none */
	struct compile_ahead *compile_ahead; /* NULL: kernels are made when they are needed, or are there already */
	uint64_t stalls;                     /* kernels that were not there when a decoding pass was first made */
	bool general;                        /* session_pin_general() */
	bool keeps_greatest;                 /* plan_keeps_greatest(), and the last pass has */
	bool parts;                          /* there are more workers than a model has heads of keys ... */
	uint64_t parts_from;     /* ... so passes of one token from this position on have their context in parts */
	struct profile *profile; /* NULL: not asked for */
	struct pass_memory memory;
	struct rope rope;
	struct plan **plan; /* [2][tokens + 1][ENGINE_LOGIT_KINDS], built when first needed; of no tokens: of
	                       one, with the context in parts; the second half of passes with adapters */
	struct plan *
		*shown_plan; /* [tokens + 1][ENGINE_LOGIT_KINDS] of passes over a picture's tokens; NULL: none yet */
	uint32_t shown;      /* levels of pictures' features that passes may have; 0: none */
	bool shows;          /* the next one is over a picture's tokens: engine_show() */
	bool adapted;        /* passes may have adapters, since the model had some when it was opened */
	bool never_adapted;  /* passes have none, whatever the model has */
	bool adapts;         /* the next one has: engine_adapt() */
	int32_t set_of[ENGINE_SPANS_MAX]; /* its sequences' sets */
	uint32_t sets;                    /* in its memory; the first one is empty */
	uint64_t adapters_seen;           /* the version of the model's adapters that plans were built for */
	struct plan_cache kv;             /* where a session's cache has what; without addresses */
	uint32_t context;                 /* positions of a session */
	uint32_t batch;                   /* most tokens of a prompt in one pass */
	uint32_t tokens;                  /* of the widest pass: a batch, or drafts */
	uint32_t rows;                    /* of logits, at most, of passes that give several */
	struct engine_joint *joint;       /* plans over several sequences, ENGINE_JOINT_MAX of them; NULL until then */
	uint64_t clock;
	bool exact; /* whatever numerics the model was opened with */
	enum speculate_mode speculate;
	unsigned drafts;  /* the width of SPECULATE_FIXED */
	uint32_t number;  /* by which other ranks know it; 0: there are none (engine_ranks.h) */
	uint8_t *message; /* what they are told of a pass */
	size_t message_room;
	uint8_t *exchanged; /* by ranks that split rows */
	size_t exchanged_room;
};

struct engine_options {
	int threads;       /* 0: one per core this process may use */
	struct pool *pool; /* borrowed: other engines use it as well, in turns; NULL: one of its own */
	int profile;       /* JIT_PROFILE_ */
	const jit_card_options *card;
	const struct cancel *cancel; /* of the caller that waits for it to open */
};
/* Where the model, its sizes, the KV type and the mode of drafts are set already; memory is taken, and the rest made.
 * False: err, and engine_close() is still due. */
bool engine_open(struct engine *e, const struct engine_options *o, struct error *err);
void engine_close(struct engine *e);

/* Slots of e->plan and of e->shown_plan; those of passes with adapters are the second half. */
static inline size_t engine_plan_count(const struct engine *e)
{
	return 2 * ((size_t)e->tokens + 1) * ENGINE_LOGIT_KINDS;
}
/* *p: NULL then, and may be before. */
void engine_forget_plan(struct engine *e, struct plan **p);
void engine_forget_joint(struct engine *e, struct engine_joint *j);

struct plan_options engine_plan_options(const struct engine *e);
struct plan_layout_options engine_layout_options(const struct engine *e);
/* Has the kernels of passes over drafts made in the background. */
void engine_request_drafts(struct engine *e);
/* Which adapters the n sequences of the passes to come have: those that are found and run until this is called again.
 * Pointers are not kept. */
struct adapters_chosen;
void engine_adapt(struct engine *e, const struct adapters_chosen *const chosen[], uint32_t n);
/* Fills in what these adapters have for n tokens of the pass, from number `first` on, whose ids are there. */
void engine_read_rows(const struct engine *e, const struct adapters_chosen *c, uint32_t first, uint32_t n);
/* On a rank other than 0: the sets of the next pass's adapters, and e->set_of is set; 0: it has none. */
void engine_adapt_as_told(struct engine *e, const struct adapt_set *set, uint32_t sets);
/* Before a run: the tiles of a plan, with the sets of their sequences. */
void engine_set_tiles(const struct engine *e, const struct plan *p);
/* Whether the passes to come are over tokens of a picture, until this is called again; and memory for their features,
 * which is taken once. */
void engine_show(struct engine *e, bool shows);
bool engine_map_shown(struct engine *e, struct error *err);
/* The plan of a pass for one session, whose first token is at that position. NULL: err. */
struct plan *engine_find_plan(struct engine *e, uint32_t tokens, uint64_t position, enum plan_logits logits,
                              enum profile_pass kind, struct error *err);
/* The plan of a pass for several sequences, or one, which gives the logits of all rows (engine_map_all_logits()), or
 * with `normed` their final norm. NULL:
 * err; with err->code 0: there is none, and each is to have a pass of its own. */
struct plan *engine_find_joint(struct engine *e, const struct plan_span *span, uint32_t spans, bool normed,
                               struct error *err);
/* Memory for the logits of as many tokens as such passes give, and those of PLAN_ALL_LOGITS. */
bool engine_map_all_logits(struct engine *e, struct error *err);
/* The same plan built once more, as adapters came or went since it was: where it lies, and bound to no sequences.
 * False: err. */
bool engine_build_again(struct engine *e, struct plan *p, uint64_t position, enum profile_pass kind, struct error *err);
/* Runs a plan, watched by the profile, and by the tuner while it is the tuner's. at: of each of its sequences. cancel:
 * who may stop it. */
bool engine_run(struct engine *e, struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                const struct cancel *cancel, struct error *err);

#endif
