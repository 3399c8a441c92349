/* grammar/regex/automaton_parts.h - the nondeterministic automaton between an expression and its automaton.
 *
 * Owns: its states, each of which waits for a byte, leads on without one, or is the end.
 */
#ifndef GRAMMAR_AUTOMATON_PARTS_H
#define GRAMMAR_AUTOMATON_PARTS_H

#include "grammar/regex/expression.h"

/* NFA_TOKEN waits for a whole token, the one in `other` or any other. NFA_AHEAD and NFA_AHEAD_NOT lead on where
 * what follows begins, or does not begin, with a text whose states start at `other` and whose end is a NFA_DONE. */
enum nfa_kind {
	NFA_MATCH,
	NFA_BYTES,
	NFA_SPLIT,
	NFA_BEGIN,
	NFA_END,
	NFA_RULE,
	NFA_TOKEN,
	NFA_AHEAD,
	NFA_AHEAD_NOT,
	NFA_DONE
};

struct nfa_state {
	enum nfa_kind kind;
	uint8_t low, high;   /* NFA_BYTES: those that lead to out. NFA_TOKEN: low is 1 for all tokens but `other` */
	bool ends;           /* a text may end here */
	bool live;           /* some text can be completed from here; a NFA_BEGIN: only at the beginning */
	uint32_t out, other; /* other: the second way of a NFA_SPLIT; where the rule of a NFA_RULE begins; see above */
};
struct nfa {
	struct nfa_state *nfa_state;
	size_t n, capacity;
	uint32_t entry;
	bool looks;  /* some state looks ahead */
	bool failed; /* no memory, or too many */
};

/* For grammars of rules, which begin and end each by themselves: adds the states of one; a NFA_RULE has the rule's
 * number in `other`, until all rules are there and the caller has put in where it begins. Then marks all states. */
bool nfa_add(struct nfa *p, const struct expression *x, uint32_t node, uint32_t *entry);
void nfa_mark(struct nfa *p);

/* One state; NO_NFA_STATE: it failed. */
enum { NO_NFA_STATE = UINT32_MAX };
uint32_t nfa_add_state(struct nfa *p, struct nfa_state nfa_state);
/* automaton_set.c: where one character of n ranges begins, behind which `next` follows. */
uint32_t nfa_add_set(struct nfa *p, const struct character_range *r, size_t n, uint32_t next);

/* Bytes that no state tells apart are a class; returns how many there are. */
unsigned nfa_classes(const struct nfa *p, uint8_t class_of[256]);

/* automaton_look.c: states of expressions that look ahead, as words; equal states are equal words. No words: no text
 * can follow. failed: no memory, or too many. */
struct threads {
	uint32_t *word;
	size_t n, room;
	bool failed;
};
void threads_begin(const struct nfa *p, struct threads *out);
void threads_step(const struct nfa *p, const uint32_t *from, size_t n, uint8_t byte, struct threads *out);
/* Whether the text may end here. */
bool threads_accept(const struct nfa *p, const uint32_t *word, size_t n);

/* False: no memory, or there would be too many. */
bool nfa_make(struct nfa *p, const struct expression *x, uint32_t node, bool anywhere);

#endif
