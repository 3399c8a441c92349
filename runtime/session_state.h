/* runtime/session_state.h - the inside of a jit_session, shared by the files runtime/session*.c.
 *
 * A session owns the KV cache, the activation buffers, the plans and the position. Tokens 0 .. computed-1 are in the KV
 * cache; `length` may be ahead of it by tokens chosen or fed but not yet computed. Nothing is allocated per token:
 * plans are built once for each number of tokens, all buffers at open or when first needed.
 *
 *   session_open.c     options, opening, closing
 *   session_passes.c   a pass: its plan and its run
 *   session_compute.c  which passes compute the tokens that are due; logits are finite, or nobody gets them
 *   session.c          tokens fed, chosen, taken back
 *   session_score.c    the probability of known tokens
 *   session_embed.c    hidden states, and a text's embedding
 *   session_text.c     the text of tokens
 *   session_grammar.c  choices that keep to a grammar
 *   session_stats.c    counters, report, trace
 */
#ifndef RUNTIME_SESSION_STATE_H
#define RUNTIME_SESSION_STATE_H

#include "runtime/device/device.h"
#include "runtime/device/profile.h"
#include "runtime/host/cancel.h"
#include "runtime/model.h"
#include "runtime/plan/rope.h"
#include "runtime/compile_ahead.h"
#include "runtime/sampling/sampling.h"
#include "runtime/session.h"
#include "runtime/session_memory.h"
#include "runtime/speculate/speculate.h"
#include "runtime/tuning/tuner.h"

enum { SESSION_LOGIT_KINDS = 4 }; /* of enum plan_logits */

struct jit_session {
	jit_model *model;
	struct stream *device_stream;
	struct pool *pool;
	struct tuner *tuner;                 /* while it finds something out */
	unsigned tune_passes;                /* for it to take; 0: it has had its turn, or none */
	struct compile_ahead *compile_ahead; /* NULL: kernels are made when they are needed, or are there already */
	uint64_t stalls;                     /* kernels that were not there when a decoding pass was first made */
	bool general;                        /* session_pin_general() */
	struct profile *profile;             /* NULL: not asked for */
	struct session_memory memory;
	struct rope rope;
	struct plan **plan; /* [tokens + 1][SESSION_LOGIT_KINDS], built when first needed */
	uint32_t batch, context;
	uint32_t tokens; /* of the widest pass: a batch, or drafts */
	int32_t *ids;    /* context + 1: the last may be chosen but never computed */
	size_t length, computed;
	bool logits_valid;   /* they belong to token computed - 1 */
	const float *logits; /* where they are */
	struct speculate speculate;
	struct sampling sampling;
	struct cancel cancel;
	const int32_t *forced;
	size_t n_forced; /* choices made elsewhere, by position */
	struct utf8_stream stream;
	struct stop *stop;               /* NULL: no text ends a generation */
	struct session_grammar *grammar; /* NULL: any text will do */
	char *text;
	size_t text_capacity;
	uint64_t prompt_tokens, decode_tokens, decode_passes;
	double prompt_seconds, decode_seconds;
};

/* ---- session_passes.c */

struct plan_options session_plan_options(const jit_session *s);
/* Has the kernels of passes over drafts made in the background. */
void session_request_drafts(jit_session *s);
struct plan *session_find_plan(jit_session *s, uint32_t tokens, enum plan_logits logits, enum profile_pass kind,
                               struct error *err);
bool session_map_all_logits(jit_session *s, struct error *err);
/* One pass over n tokens from position `computed` on; the caller says what of it counts. *seconds: what it took,
 * without making its plan. */
bool session_compute_pass(jit_session *s, const int32_t *ids, uint32_t n, enum plan_logits logits,
                          enum profile_pass kind, double *seconds, struct error *err);

/* ---- session_compute.c */

/* Whether the logits of the tokens from `computed` on are finite, in the rows of a pass over all of them. */
bool session_check_rows(const jit_session *s, uint32_t tokens, struct error *err);
/* Computes tokens computed .. length-1, in passes of at most `batch`; logits of the last. */
bool session_compute(jit_session *s, enum profile_pass kind, struct error *err);
/* Makes the logits of the one token that is chosen and not computed: they are there since a draft came true, or a pass
 * is due. */
bool session_compute_chosen(jit_session *s, struct error *err);
/* The end of a prompt, before which whatever the next token needs is made. */
void session_prompt_done(jit_session *s);

/* ---- session_grammar.c: where s->grammar is not NULL */

/* The logits, with -infinity for tokens that the grammar forbids. NULL: it allows none, or there is no memory. */
const float *session_grammar_logits(jit_session *s, const float *logits, struct error *err);
/* Tokens for the positions from s->length on. False: all is as it was. */
bool session_grammar_take(jit_session *s, const int32_t *ids, size_t n, struct error *err);
/* Tokens from position n on are none any more. */
void session_grammar_rewind(jit_session *s, size_t n);
void session_grammar_close(struct session_grammar *g);

/* ---- session.c */

/* Tokens to append: they must be in the vocabulary and find room. */
int session_check_tokens(const jit_session *s, const int32_t *ids, size_t n, jit_error *err);
/* Computes what is pending and makes sure there are logits. */
int session_ensure_logits(jit_session *s, jit_error *err);
/* What a session was before tokens were appended. */
struct session_mark {
	size_t length, computed;
	bool had_logits;
};
struct session_mark session_mark(const jit_session *s);
/* After a feed that failed: the tokens there were, and their logits, which are computed once more when somebody asks.
 * After one that was cancelled, those of the passes that were finished as well. Returns the status. */
int session_take_back(jit_session *s, struct session_mark before, const struct error *e, jit_error *err);
/* Where the next pass begins: at position n, or at 0 where layers with a window have no longer what that needs. */
void session_go_back(jit_session *s, size_t n);
/* As model_report(); a request that was answered is over. */
int session_report(jit_session *s, jit_error *err, const struct error *e);

#endif
