/* grammar/automaton_parts.h - the nondeterministic automaton between an expression and its automaton.
 *
 * Owns: its places, each of which waits for a byte, leads on without one, or is the end.
 */
#ifndef GRAMMAR_AUTOMATON_PARTS_H
#define GRAMMAR_AUTOMATON_PARTS_H

#include "grammar/expression.h"

enum place_kind { PLACE_MATCH, PLACE_BYTES, PLACE_SPLIT, PLACE_BEGIN, PLACE_END, PLACE_RULE };

struct place {
	enum place_kind kind;
	uint8_t low, high;   /* PLACE_BYTES: those that lead to out */
	bool ends;           /* a text may end here */
	bool hopeful;        /* some text can be completed from here */
	uint32_t out, other; /* other: the second way of a PLACE_SPLIT; where the rule of a PLACE_RULE begins */
};
struct places {
	struct place *place;
	size_t n, capacity;
	uint32_t entry;
	bool failed; /* no memory, or too many */
};

/* For grammars of rules, which begin and end each by themselves: adds the places of one; a PLACE_RULE has the rule's
 * number in `other`, until all rules are there and the caller has put in where it begins. Then marks all places. */
bool places_add(struct places *p, const struct expression *x, uint32_t node, uint32_t *entry);
void places_mark(struct places *p);

/* Bytes that no place tells apart are a class; returns how many there are. */
unsigned places_classes(const struct places *p, uint8_t class_of[256]);

/* False: no memory, or there would be too many. */
bool places_make(struct places *p, const struct expression *x, uint32_t node, bool anywhere);

#endif
