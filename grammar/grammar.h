/* grammar/grammar.h - a text that is made token by token and must keep to a grammar.
 *
 * Owns: where the text is in its grammar, after each token, so that tokens can be taken back; and the machine and the
 * masks behind it, which are made anew when they have grown too large.
 */
#ifndef GRAMMAR_GRAMMAR_H
#define GRAMMAR_GRAMMAR_H

#include "grammar/machine/machine.h"
#include "grammar/vocabulary.h"

/* GRAMMAR_SCHEMA: a JSON Schema; GRAMMAR_REGEX: an expression of whole texts, as ECMA-262 writes them; GRAMMAR_GBNF:
 * rules, as llama.cpp writes them; GRAMMAR_CALL: a call of a function (call.h); GRAMMAR_LARK:
 * rules as Lark writes them (lark.h). */
enum grammar_kind { GRAMMAR_SCHEMA, GRAMMAR_REGEX, GRAMMAR_GBNF, GRAMMAR_CALL, GRAMMAR_LARK, GRAMMAR_KINDS = 0xff };
/* Beside a kind, of schemas and calls: WRITE_ADDITIONAL, WRITE_IN_ANY_ORDER (machine.h). */

struct grammar;

/* A token and its text; 0 bytes: it spells nothing. */
struct grammar_token {
	uint32_t id;
	const char *text;
	size_t n;
};

/* At the beginning of a text. The vocabulary must outlive it, and tokens, of which rules may speak; NULL: of none.
 * NULL: err says what of the grammar is not supported, where it stands, or that no text is right. */
struct grammar *grammar_open(const struct vocabulary *v, unsigned kind, const char *text, size_t n,
                             const struct machine_tokens *tokens, struct error *err);
void grammar_close(struct grammar *g);
/* Grammars that this thread opens from now on are one of so many that share what one may keep (EFFORT_BYTES). 0, 1:
 * they share it with none. */
void grammar_share(unsigned n);
/* The same, and finds the first tokens. *steps: what both may take together (effort.h), and what was left of it. */
struct grammar *grammar_open_within(const struct vocabulary *v, unsigned kind, const char *text, size_t n,
                                    const struct machine_tokens *tokens, uint64_t *steps, struct error *err);
/* Whether somebody no longer wants what is looked for, asked at times while that takes long: then it is an error
 * (ERROR_CANCELLED). */
void grammar_watch(struct grammar *g, bool (*stop)(void *user), void *user);
/* Steps that the next tokens may take (effort.h). */
uint64_t grammar_left(const struct grammar *g);

/* Tokens whose text may come next, as bits (mask.h); *ends: the text may end here. Valid until the next call. NULL: no
 * memory, or the grammar needs more states than may be, or more work (ERROR_UNSUPPORTED). */
const uint32_t *grammar_allowed(struct grammar *g, bool *ends, struct error *err);
/* Whether they are known already, and grammar_allowed() has nothing to look for; steps that it took last. */
bool grammar_is_found(const struct grammar *g);
uint64_t grammar_cost(const struct grammar *g);
/* Whether rules speak of whole tokens: then those that spell nothing are taken, too. */
bool grammar_is_of_tokens(const struct grammar *g);
/* Whether any text at all may come next, and so may control tokens, which need not be taken. */
bool grammar_is_free(const struct grammar *g);
/* A token was chosen. False: no memory, or it is not allowed; then all is as it was. One that grammar_allowed() has
 * just allowed costs nothing here: what it leads to is looked for with the next tokens. */
bool grammar_take(struct grammar *g, const struct grammar_token *token, struct error *err);
/* The bytes that come next for sure, at most so many: those that nothing else can stand for, but for white space and
 * other spellings of the same character. */
size_t grammar_forced(struct grammar *g, char *out, size_t max);
/* How many of these tokens can come next. */
size_t grammar_fitting(struct grammar *g, const struct grammar_token *token, size_t n);
/* Both open what they search in with their first call, which may take some time. Closed: grammar_open_drafts() does
 * that, on a thread that has the time; as long as it is wanted, there are no drafts. */
void grammar_close_drafts(struct grammar *g, bool wanted);
bool grammar_wants_drafts(const struct grammar *g);
void grammar_open_drafts(struct grammar *g);
/* How many tokens were taken; back to after the first n of them. */
size_t grammar_taken(const struct grammar *g);
void grammar_rewind(struct grammar *g, size_t n);

#endif
