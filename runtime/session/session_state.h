/* runtime/session/session_state.h - the inside of a jit_session, shared by the files runtime/session*.c.
 *
 * A session owns the KV cache, the position and all that chooses tokens; what computes them is its engine (engine.h).
 * Tokens 0 .. computed-1 are in the KV cache; `length` may be ahead of it by tokens chosen or fed but not yet computed.
 * Nothing is allocated per token: plans are built once for each number of tokens, all buffers at open or when first
 * needed.
 *
 *   session_open.c     options, opening, closing
 *   session_passes.c   a pass over a session's tokens
 *   session_compute.c  which passes compute the tokens that are due; logits are finite, or nobody gets them
 *   session.c          tokens fed, chosen, taken back
 *   session_draft.c    a draft model
 *   session_score.c    the probability of known tokens
 *   session_embed.c    hidden states, and a text's embedding
 *   session_encode.c   the same of models that encode, which have texts whole in a pass
 *   session_text.c     the text of tokens
 *   session_grammar.c  choices that keep to a grammar
 *   session_limits.c   what else bounds them
 *   session_shift.c    tokens taken out of the middle
 *   session_pictures.c tokens that are parts of pictures
 *   session_adapters.c which adapters count for which tokens
 *   session_told.c     functions of the caller's
 *   session_stats.c    counters, report, trace
 */
#ifndef RUNTIME_SESSION_STATE_H
#define RUNTIME_SESSION_STATE_H

#include "runtime/engine/engine.h"
#include "runtime/model/adapters.h"
#include "include/jitrun_logits.h"
#include "runtime/sampling/rules.h"
#include "runtime/sampling/sampling.h"
#include "runtime/session/session.h"
#include "runtime/session/session_limits.h"
#include "runtime/session/session_memory.h"
#include "runtime/session/session_pictures.h"

struct jit_session {
	jit_model *model;
	struct engine *engine;
	struct batch_member *member; /* of a batch, whose engine it is; NULL: it is alone */
	struct session_memory memory;
	uint32_t context;
	int32_t *ids; /* context + 1: the last may be chosen but never computed */
	size_t length, computed;
	size_t chosen_from, chosen_to; /* the tokens that were chosen last, with nothing fed in between */
	bool logits_valid;             /* they belong to token computed - 1 */
	double again_seconds;          /* what the last pass had to compute once more before it (session_passes.c) */
	const float *logits;           /* where they are */
	struct speculate speculate;
	struct session_draft *draft; /* NULL: no draft model */
	struct sampling sampling;
	struct rules rules;
	struct cancel cancel;
	struct session_told { /* session_told.c */
		jit_logits_fn logits_fn;
		void *logits_user;
		float *logits; /* vocab, once it was asked for */
		jit_prompt_fn prompt_fn;
		void *prompt_user;
	} told;
	struct adapters_chosen adapters;
	struct session_pictures pictures;
	const int32_t *forced;
	size_t n_forced; /* choices made elsewhere, by position */
	struct utf8_stream stream;
	struct stop *stop;               /* NULL: no text ends a generation */
	struct session_grammar *grammar; /* NULL: any text will do */
	struct session_limited *limited; /* NULL: nothing else bounds choices */
	char *text;
	size_t text_capacity;
	uint64_t prompt_tokens, decode_tokens, decode_passes;
	double prompt_seconds, decode_seconds;
};

/* ---- session_open.c */

/* All that is the session's own but for the memory of its tokens; context and mode of drafts are set already. */
bool session_open_own(jit_session *s, const jit_sampling *sampling, struct error *err);

/* ---- session_text.c */

/* From now on those texts end an answer that the model's own files name. False: err, and all is as it was. */
bool session_usual_stop(jit_session *s, struct error *err);

/* ---- session_passes.c */

/* Makes the session ready for a run over so many tokens from a position on, which reads and writes what *at says. What
 * the run leaves counts when it is over. */
bool session_begin_run(jit_session *s, uint64_t position, uint32_t tokens, struct plan_sequence *at, struct error *err);
void session_end_run(jit_session *s, const struct plan_sequence *at, uint32_t tokens);
/* The next pass is this session's, from that position on, with the adapters that it has there. */
void session_adapt(jit_session *s, uint64_t position);
/* A plan over these tokens, from a position on, and from the state there where layers have one. */
bool session_run(jit_session *s, struct plan *p, uint64_t position, const int32_t *ids, enum profile_pass kind,
                 struct error *err);
/* One pass over n tokens from position `computed` on; the caller says what of it counts. *seconds: what it took,
 * without making its plan, and without what was computed once more before it, which is s->again_seconds. */
bool session_compute_pass(jit_session *s, const int32_t *ids, uint32_t n, enum plan_logits logits,
                          enum profile_pass kind, double *seconds, struct error *err);

/* ---- session_adapters.c */

/* The adapters that count for the token there. */
const struct adapters_chosen *session_adapters_at(const jit_session *s, uint64_t position);
/* How many tokens from that position on, at most `max`, have the same ones. */
uint32_t session_adapted_alike(const jit_session *s, uint64_t position, uint32_t max);

/* ---- session_told.c */

/* The logits as the caller's function leaves them. NULL: err. */
const float *session_ask_logits(jit_session *s, const float *logits, struct error *err);
/* After a pass over tokens that were fed. */
void session_tell_prompt(jit_session *s);

/* ---- session_compute.c */

/* The greatest of each 32 of a row of logits; NULL: nobody kept them. */
const float *session_greatest(const jit_session *s, const float *row);
/* Whether the logits of the token at this position are finite, which lie in the row. */
bool session_check_row(const jit_session *s, size_t position, const float *row, struct error *err);
/* Those of the last token are not: says in err which is the first of the tokens from `from` on of which that is true,
 * since of those before the last none were computed. Returns false; the session is at `from`. */
bool session_refuse_prompt(jit_session *s, size_t from, struct error *err);
/* Whether the logits of the tokens from `computed` on are finite, in the rows of a pass over all of them. */
bool session_check_rows(const jit_session *s, uint32_t tokens, struct error *err);
/* Computes tokens computed .. length-1, in passes of at most `batch`; logits of the last. */
bool session_compute(jit_session *s, enum profile_pass kind, struct error *err);
/* The same, or `once`, if it is not 0, one pass of so many tokens at most; session_pass_tokens() says which may have
 * more. */
bool session_compute_passes(jit_session *s, enum profile_pass kind, uint32_t once, struct error *err);
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
/* Whether the text is in the reasoning that stands before the grammar's part. */
bool session_grammar_reasons(const jit_session *s);

/* ---- session_shift.c: n tokens behind the first `keep` are gone */

struct session_cut {
	size_t keep, n;
};
size_t session_cut_position(const struct session_cut *c, size_t position);
void session_grammar_shift(struct session_grammar *g, const struct session_cut *cut);
void session_limits_shift(jit_session *s, const struct session_cut *cut);

/* ---- batch.c: where s->member is not NULL */

/* Before it computes by itself: there is memory for so many positions, and the others' logits are safe. */
bool batch_member_ready(jit_session *s, size_t positions, struct error *err);
/* Whether the pages of these tokens are its own. */
bool batch_member_may_write(const jit_session *s, uint64_t position, uint32_t tokens, struct error *err);
/* Whether it has logits, or what became of it. */
int batch_member_logits(jit_session *s, jit_error *err);
/* Its tokens are others now, or fewer: what was said of them is over. */
void batch_member_changed(jit_session *s);
void batch_member_close(jit_session *s);

/* ---- session.c */

/* Tokens to append: they must be in the vocabulary and find room, and the model must be one that generates. */
int session_check_tokens(const jit_session *s, const int32_t *ids, size_t n, jit_error *err);
/* The same of any model. */
int session_check_ids(const jit_session *s, const int32_t *ids, size_t n, jit_error *err);
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
/* Whether `more` further tokens find room; the message says what the session has. */
int session_check_room(const jit_session *s, size_t more, jit_error *err);
/* As model_report(); a request that was answered is over. */
int session_report(jit_session *s, jit_error *err, const struct error *e);

#endif
