/* grammar/regex/reach.h - how many characters of a class (easy.h) can follow, whichever they are.
 *
 * Owns: the walk over all of them, of anything that takes bytes.
 */
#ifndef GRAMMAR_REACH_H
#define GRAMMAR_REACH_H

#include "grammar/machine/easy.h"

enum { REACH_STATES = 64 };

struct reach {
	uint32_t (*step)(void *user, uint32_t state, uint8_t byte); /* 0: the text is dead */
	void *user;
	const uint8_t *class_of; /* [byte]: neighbours of the same class lead to the same state */
	/* That were reached, the first one too. */
	uint32_t state[REACH_STATES];
	unsigned n, steps;
};

/* After how many characters it may be dead, at the earliest: none of them before leads to a dead state. Where that
 * takes long to find out, less; UINT32_MAX: never. */
uint32_t reach_from(struct reach *r, uint32_t state, enum easy class);

#endif
