/* runtime/session/session_limits.h - what else bounds the choices of a session, beside its grammar.
 *
 * Owns: tokens that alone may be chosen, tokens and texts that may not, how long an answer goes on at least, and how
 * many tokens its reasoning may have before it is closed. The choice is a function of the logits and of the tokens
 * before, so drafts and batches change nothing of it.
 */
#ifndef RUNTIME_SESSION_LIMITS_H
#define RUNTIME_SESSION_LIMITS_H

#include <stdint.h>

#include "base/error.h"
#include "include/jitrun.h"

struct session_tokens {
	const int32_t *ids;
	size_t n;
};

struct session_limits_options {
	const int32_t *allowed; /* n_allowed tokens that alone may be chosen; 0: all may */
	size_t n_allowed;
	const struct session_tokens *words; /* the last token of each is not chosen behind its others */
	size_t n_words;
	const char *const *texts; /* that the generated text does not hold; none is empty */
	size_t n_texts;
	int64_t min; /* tokens before which neither the model's end tokens nor those of `ends` are chosen */
	const int32_t *ends;
	size_t n_ends;
	int64_t budget;      /* tokens of reasoning, behind which it is closed; -1: as many as it takes */
	const char *message; /* what then stands before the closing mark; NULL: nothing */
};

/* Immutable, and may be shared by sessions. What the options point to is copied. NULL: err. */
struct session_limits;
struct session_limits *session_limits_open(const jit_model *m, const struct session_limits_options *o,
                                           struct error *err);
void session_limits_close(struct session_limits *l);

/* They hold for the tokens that follow those that the session has. l: borrowed until others are set; NULL: none. */
bool session_set_limits(jit_session *s, const struct session_limits *l, struct error *err);

/* ---- for session.c, where s->limited is not NULL */

struct session_limited;
/* The next token by these logits. False: none that may be chosen can follow, or there is no memory. */
bool session_limits_choose(jit_session *s, const float *logits, int32_t *id, struct error *err);
/* Tokens from position n on are none any more. */
void session_limits_rewind(jit_session *s, size_t n);
void session_limited_close(struct session_limited *w);

#endif
