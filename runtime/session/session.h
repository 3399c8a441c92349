/* runtime/session/session.h - what the programs that measure jitrun need of a session beyond jitrun.h. */
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include "base/error.h"
#include "grammar/machine/effort.h" /* for callers that bound what a thread's grammars take */
#include "runtime/device/collect.h"
#include "include/jitrun.h"
#include "runtime/plan/plan.h"

/* The passes a session makes: of 1 to SESSION_MAX_TOKENS tokens, with the logits of none or of the last; of up to
 * SESSION_ALL_LOGITS, with the logits of all. */
enum { SESSION_MAX_TOKENS = PLAN_TOKENS_MAX, SESSION_ALL_LOGITS = PLAN_ALL_LOGITS_MAX };

/* What a session has that nobody asked for another size. The context, in tokens: what the model was trained for, as far
 * as its keys and values find room in so many bytes, but 4096 in any case. Of cards with dataflow passes: no more
 * than what those can hold. And the tokens of a pass. */
uint32_t session_usual_context(const struct model_spec *s, enum dtype kv, uint64_t memory);
uint32_t session_card_context(const struct model_spec *s, uint32_t context);
uint32_t session_usual_batch(const struct target *t, uint32_t context);
/* What a session with these options (NULL: all defaults) takes: of a model, of which the file and the target are known.
 * False: err. */
struct session_needs {
	uint32_t context;
	uint64_t kv_bytes, pass_bytes;
};
bool session_measure(jit_model *m, const jit_session_options *options, struct session_needs *out, struct error *err);

/* From now on the token chosen at position p is ids[p] while p < n, whatever the logits say, so that the decoding of a
 * known text can be timed; everything is computed as if it had been chosen. ids: borrowed until replaced. NULL, 0:
 * choices are free again. */
void session_force(jit_session *s, const int32_t *ids, size_t n);

/* Of a new session: as if n tokens had been computed; what the cache holds of them is 0. For measuring what tokens cost
 * at that position. False: no room. */
bool session_skip(jit_session *s, size_t n);

/* Of a session that has computed nothing: all its passes go through the kernels that do any number of tokens, one token
 * after the other, with the usual schedules, which every other kernel must agree with to the bit. */
void session_pin_general(jit_session *s);
/* Of such a session: passes of one token have their context in parts from this position on, whatever workers there are.
 */
void session_part_context(jit_session *s, uint64_t from);
/* For finding out what passes take: the plan of a pass; its kernels once more, of which there may be others now; and
 * such a pass over tokens 0 at the position where the session is, of which nothing is kept. logits: of all
 * tokens. False, NULL: err. */
struct plan *session_plan(jit_session *s, uint32_t tokens, bool logits, struct error *err);
bool session_prepare(jit_session *s, struct plan *p, struct error *err);
bool session_pass(jit_session *s, const struct plan *p, struct error *err);
/* Waits until nothing is made in the background. */
void session_rest(jit_session *s);

/* From now on sums up the squares of what the model's matrices are multiplied with. The session must be open when it is
 * closed (runtime/device/collect.h). NULL: err. */
struct collect *session_collect(jit_session *s, struct error *err);

/* Of a session in a batch that was ready: whether others have had its memory since. Then steps compute its tokens
 * again, and it is ready once more. */
bool session_begins_again(jit_session *s);

/* What runs its plans; a simulated card's can be told and asked more (runtime/device/simulated/simulator.h). */
struct stream *session_stream(jit_session *s);

/* jit_session_score that says what else might have stood in each place: top[i * n_top] and the n_top - 1 behind it
 * become the likeliest tokens (at most JIT_LOGPROBS_MOST, and the vocabulary) after everything before ids[i], the lower
 * id first among equals; for the first token of an empty session their ids are -1. logprob may be NULL, top where n_top
 * is 0. The same bits as jit_session_logprobs has for a token that is chosen there. */
int session_score_top(jit_session *s, const int32_t *ids, size_t n, float *logprob, jit_logprob *top, size_t n_top,
                      jit_error *err);

/* A grammar for a session that there may not be yet, with its first tokens found: so that a caller that computes for
 * many has no part of that work. *steps: what may be taken (grammar/machine/effort.h), for one usually
 * SESSION_GRAMMAR_STEPS; and what was left of it. NULL: err. */
enum { SESSION_GRAMMAR_STEPS = 60000000 };
struct session_grammar *session_grammar_open(jit_model *m, int kind, const char *text, size_t n, uint64_t *steps,
                                             struct error *err);
void session_grammar_close(struct session_grammar *g);
/* As jit_session_set_grammar; the session takes it over. */
void session_grammar_give(jit_session *s, struct session_grammar *g);
/* Whether nobody wants the session's text any more, asked while its grammar is at work; beside jit_session_cancel(). */
void session_grammar_watch(jit_session *s, bool (*gone)(void *user), void *user);

/* For a caller that computes for many and has another thread look for what a session's grammar allows next. From now
 * on nothing of the grammar is opened but by session_grammar_find(). */
void session_grammar_defer(jit_session *s);
/* Whether the next choice needs something that session_grammar_find() would find; steps that this took last. */
bool session_grammar_is_due(const jit_session *s);
uint64_t session_grammar_cost(const jit_session *s);
/* Takes the grammar out of the session until session_grammar_give() puts it back, so that another thread may have it;
 * meanwhile no token is chosen. */
struct session_grammar *session_grammar_lend(jit_session *s);
/* Of a grammar that was lent, on any thread; what is wrong is told when a token is chosen. gone: whether nobody wants
 * it any more, asked at times. */
void session_grammar_find(struct session_grammar *g, bool (*gone)(void *user), void *user);

/* Whether an expression, a grammar as Lark writes them, or a schema can be held. False: err says what of it cannot, and
 * where.
 */
bool session_grammar_reads(int kind, const char *text, size_t n, uint64_t *steps, struct error *err);

/* What a text may have before the part that its grammar is about: reasoning, and tokens that open that part. All zero:
 * the grammar begins at once. A pair of marks is think_mark(2 * pair) and the one behind it (answers/think.h). */
struct session_lead {
	bool inside;                   /* the prompt has opened reasoning, */
	unsigned pair;                 /* with the first of these marks */
	uint32_t may;                  /* else: bits of pairs whose first mark the text may begin with */
	const int32_t *first, *behind; /* what opens the grammar's part: at the beginning, and behind the reasoning */
	size_t n_first, n_behind;
	bool may_end; /* the text may end within the reasoning */
};
/* Of the grammar that the session has just been given; copied. Reasoning is free until its closing mark, but no end
 * token is chosen in it, unless may_end says so. False: no memory. */
bool session_grammar_lead(jit_session *s, const struct session_lead *lead, struct error *err);

/* Takes n tokens out of the text behind the first `keep`, so that it can go on where the context is full; at least one
 * stays behind them. The rest is computed again, by the next steps where the session is of a batch. */
int session_shift(jit_session *s, size_t keep, size_t n, jit_error *err);

/* Tokens from its beginning on that are computed. */
size_t session_computed(const jit_session *s);
/* What jit_session_embed makes with JIT_POOL_MEAN and normalise, of the sums of all n rows of a text: `embedding`
 * floats of jit_model_info. */
int session_mean(const jit_model *m, const double *sum, size_t n, float *out, jit_error *err);

#endif
