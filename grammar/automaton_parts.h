/* grammar/automaton_parts.h - the nondeterministic automaton between an expression and its automaton.
 *
 * Owns: its places, each of which waits for a byte, leads on without one, or is the end.
 */
#ifndef GRAMMAR_AUTOMATON_PARTS_H
#define GRAMMAR_AUTOMATON_PARTS_H

#include "grammar/expression.h"

enum place_kind { PLACE_MATCH, PLACE_BYTES, PLACE_SPLIT, PLACE_BEGIN, PLACE_END };

struct place {
	enum place_kind kind;
	uint8_t low, high;   /* PLACE_BYTES: those that lead to out */
	bool ends;           /* a text may end here */
	bool hopeful;        /* some text can be completed from here */
	uint32_t out, other; /* other: the second way of a PLACE_SPLIT */
};
struct places {
	struct place *place;
	size_t n, capacity;
	uint32_t entry;
	bool failed; /* no memory, or too many */
};

/* False: no memory, or there would be too many. */
bool places_make(struct places *p, const struct expression *x, uint32_t node, bool anywhere);

#endif
