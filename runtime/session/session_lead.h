/* runtime/session/session_lead.h - what a text may have before the part that its grammar is about: reasoning, and a
 * fixed opening.
 *
 * Owns: where in it the text is, which tokens may follow there, and where the grammar begins. Reasoning is free text up
 * to the mark that closes it (answers/think.h), but for tokens that end answers. Behind the mark a little white space
 * may stand.
 */
#ifndef RUNTIME_SESSION_LEAD_H
#define RUNTIME_SESSION_LEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "grammar/grammar.h"
#include "loaders/tokenizer/tokenizer.h"
#include "runtime/session/session.h"

/* BEFORE: the reasoning's opening mark or the grammar's text may come. OPENING: fixed tokens are left. BEHIND: the
 * grammar alone says what follows. */
enum lead_phase { LEAD_BEHIND, LEAD_BEFORE, LEAD_INSIDE, LEAD_SPACE, LEAD_OPENING };

struct lead;
/* NULL: no memory. */
struct lead *lead_open(const struct tokenizer *t, uint32_t vocab, const struct session_lead *o, struct error *err);
void lead_close(struct lead *l);
enum lead_phase lead_phase(const struct lead *l);

/* At its beginning again, and so is the grammar. */
void lead_restart(struct lead *l, struct grammar *g);
/* The next token, while the phase is not LEAD_BEHIND; own: what the grammar sees of it, NULL: nothing. False: it may
 * not follow, or there is no memory. */
bool lead_take(struct lead *l, struct grammar *g, int32_t id, const struct grammar_token *own, struct error *err);

/* Whether the grammar's own first tokens may come now: what it allows is to be added then. */
bool lead_has_grammar(const struct lead *l);
/* In out, which has -infinity for all tokens that the grammar forbids here, puts those of logits that the lead allows.
 * *any: there are some. False: no memory. */
bool lead_allow(struct lead *l, const float *logits, float *out, bool *any);

/* For drafts: tokens that must follow, at most `max`; and how many of n tokens stay in the lead. */
uint32_t lead_guess(const struct lead *l, int32_t *ids, uint32_t max);
uint32_t lead_fit(const struct lead *l, const int32_t *ids, uint32_t n);

#endif
