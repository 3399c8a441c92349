/* grammar/regex/automaton_parts.h - the nondeterministic automaton between an expression and its automaton.
 *
 * Owns: its places, each of which waits for a byte, leads on without one, or is the end.
 */
#ifndef GRAMMAR_AUTOMATON_PARTS_H
#define GRAMMAR_AUTOMATON_PARTS_H

#include "grammar/regex/expression.h"

/* PLACE_TOKEN waits for a whole token, the one in `other` or any other. PLACE_AHEAD and PLACE_AHEAD_NOT lead on where
 * what follows begins, or does not begin, with a text whose places start at `other` and whose end is a PLACE_DONE. */
enum place_kind {
	PLACE_MATCH,
	PLACE_BYTES,
	PLACE_SPLIT,
	PLACE_BEGIN,
	PLACE_END,
	PLACE_RULE,
	PLACE_TOKEN,
	PLACE_AHEAD,
	PLACE_AHEAD_NOT,
	PLACE_DONE
};

struct place {
	enum place_kind kind;
	uint8_t low, high; /* PLACE_BYTES: those that lead to out. PLACE_TOKEN: low is 1 for all tokens but `other` */
	bool ends;         /* a text may end here */
	bool live;         /* some text can be completed from here; a PLACE_BEGIN: only at the beginning */
	uint32_t out,
		other; /* other: the second way of a PLACE_SPLIT; where the rule of a PLACE_RULE begins; see above */
};
struct places {
	struct place *place;
	size_t n, capacity;
	uint32_t entry;
	bool looks;  /* some place looks ahead */
	bool failed; /* no memory, or too many */
};

/* For grammars of rules, which begin and end each by themselves: adds the places of one; a PLACE_RULE has the rule's
 * number in `other`, until all rules are there and the caller has put in where it begins. Then marks all places. */
bool places_add(struct places *p, const struct expression *x, uint32_t node, uint32_t *entry);
void places_mark(struct places *p);

/* One place; NO_PLACE: it failed. */
enum { NO_PLACE = UINT32_MAX };
uint32_t place_add(struct places *p, struct place place);
/* automaton_set.c: where one character of n ranges begins, behind which `next` follows. */
uint32_t places_add_set(struct places *p, const struct character_range *r, size_t n, uint32_t next);

/* Bytes that no place tells apart are a class; returns how many there are. */
unsigned places_classes(const struct places *p, uint8_t class_of[256]);

/* automaton_look.c: states of expressions that look ahead, as words; equal states are equal words. No words: no text
 * can follow. failed: no memory, or too many. */
struct threads {
	uint32_t *word;
	size_t n, room;
	bool failed;
};
void threads_begin(const struct places *p, struct threads *out);
void threads_step(const struct places *p, const uint32_t *from, size_t n, uint8_t byte, struct threads *out);
/* Whether the text may end here. */
bool threads_accept(const struct places *p, const uint32_t *word, size_t n);

/* False: no memory, or there would be too many. */
bool places_make(struct places *p, const struct expression *x, uint32_t node, bool anywhere);

#endif
