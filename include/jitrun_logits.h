/* jitrun_logits.h - logits before the choice, logits of every token that is fed, and how far a prompt has come.
 *
 * Everything here follows jitrun.h: ERRORS, LOGITS, and what a session is.
 */
#ifndef JITRUN_LOGITS_H
#define JITRUN_LOGITS_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ---- changing logits */

/* Called by jit_session_next, once for each choice, on its thread: n_logits floats (the vocabulary) behind the n_ids
 * tokens of the session, chosen and fed ones. Both belong to the library and are valid during the call. The logits may
 * be changed: each must be a finite number then, or -infinity, after which that token is not chosen. Non-zero: no token
 * is chosen, and jit_session_next returns JIT_ERROR_CANCELLED. The function must not use the session, nor its batch. */
typedef int (*jit_logits_fn)(void *user, float *logits, size_t n_logits, const int32_t *ids, size_t n_ids);

/* From the next choice on. fn NULL: none. What it leaves is what the grammar, the rules of the model's files and all of
 * jit_sampling work on, in this order. jit_session_logits and jit_session_logprobs tell of the model's own logits as
 * ever. Draft tokens go on, and so do batches: the function sees the same logits with them and without, and where it
 * gives the same result for the same arguments, a session gives the same tokens. A fork of the session has none. */
int jit_session_set_logits_fn(jit_session *s, jit_logits_fn fn, void *user, jit_error *err);

/* ---- every token's logits */

/* Appends tokens as jit_session_feed does, and gives the logits after each: n rows of `vocab` floats (jit_model_info),
 * the same bits that jit_session_logits has after a feed that ends there. n_logits: how many floats there is room for,
 * n times vocab. Slower than a feed, as jit_session_score is, which needs no such room. After an error they hold
 * nothing of use. The hidden states of all tokens, of which these are made, give jit_session_embed and JIT_POOL_NONE.
 */
int jit_session_feed_logits(jit_session *s, const int32_t *ids, size_t n, float *logits, size_t n_logits,
                            jit_error *err);

/* ---- progress */

/* Called after each pass that computes tokens of a prompt (jit_session_feed, _feed_text, _feed_logits, _score, _embed,
 * and steps of a batch), on the thread that asked for it: `computed` tokens of the session are computed by then, of
 * `length`. Non-zero asks for what jit_session_cancel asks for, unless all are computed. The function must not use the
 * session otherwise, nor its batch. */
typedef int (*jit_prompt_fn)(void *user, size_t computed, size_t length);

/* From the next pass on. fn NULL: nobody is told. A fork of the session has none. */
int jit_session_set_prompt_fn(jit_session *s, jit_prompt_fn fn, void *user, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif
