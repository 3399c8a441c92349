/* runtime/session/session_grammar_parts.h - a session's grammar, for session_grammar.c and session_grammar_lent.c. */
#ifndef RUNTIME_SESSION_GRAMMAR_PARTS_H
#define RUNTIME_SESSION_GRAMMAR_PARTS_H

#include "grammar/grammar.h"
#include "runtime/session/session.h"
#include "runtime/session/session_lead.h"
#include "runtime/session/session_state.h"

/* Of whom tokens are asked: a tokenizer, and the marks that control tokens may be part of (NULL: none may). */
struct spelling {
	const struct tokenizer *tokenizer;
	const char *marks;
};

struct session_grammar {
	struct grammar *grammar;
	const struct vocabulary *vocabulary;
	struct marked_vocabulary *own; /* NULL: the vocabulary is the model's */
	struct spelling spelling;
	struct machine_tokens tokens; /* for rules that speak of them */
	struct speculate_rules rules; /* for drafts */
	float *logits;                /* of the whole vocabulary */
	size_t *position;             /* of the tokens taken, in the session */
	size_t room;
	struct lead *lead; /* what may stand before the grammar's part; NULL: nothing */
	size_t begin, led; /* with a lead: the session's tokens before it, and with it */
	uint32_t *silent;  /* bits of control tokens that spell nothing here; NULL: not asked for so far */
	bool lost;         /* memory ran out as tokens were taken back */
	struct error why;  /* session_grammar_find() found no mask; code ERROR_NONE: it did, or was not asked */
	const jit_session *session; /* whose it is; NULL: nobody's so far, or lent */
	bool (*gone)(void *user);   /* session_grammar_watch(); NULL */
	void *user;
};

#endif
