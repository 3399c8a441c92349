/* grammar/regex/automaton.h - whether bytes, taken one by one, can still become a text of an expression.
 *
 * Owns: the deterministic automaton of an expression over the bytes of UTF-8. Its states are numbers, made as they are
 * reached, by the subset construction; a state that no text can be completed from is AUTOMATON_DEAD.
 *
 * One thread at a time may walk it, for walking makes states.
 */
#ifndef GRAMMAR_AUTOMATON_H
#define GRAMMAR_AUTOMATON_H

#include "grammar/machine/easy.h"
#include "grammar/regex/expression.h"

enum { AUTOMATON_DEAD = 0, AUTOMATON_START = 1 };

struct automaton;

/* Of the texts that an expression describes: whole texts, or with `anywhere` all that contain one, between whose
 * beginning and end anything may stand. NULL: no memory, or it is too large; err says so. The tree may go afterwards.
 */
struct automaton *automaton_open(const struct expression *x, uint32_t node, bool anywhere, struct error *err);
/* The same of a machine that needs nothing but bytes, and more than an automaton has; it is taken over. NULL: no
 * memory.
 */
struct machine;
struct automaton *automaton_of_machine(struct machine *m, struct error *err);
void automaton_close(struct automaton *a);

/* Where a byte leads. When there is no memory for a state, or there are too many, AUTOMATON_DEAD, and
 * automaton_failed() from then on. */
uint32_t automaton_step(struct automaton *a, uint32_t state, uint8_t byte);
/* After how many characters of a class it may be dead, at the earliest: none of them before leads to a dead state.
 * Where that takes long to find out, less. */
uint32_t automaton_reach(struct automaton *a, uint32_t state, enum easy class);
/* The smaller of both; a state that is dead already cannot become it. */
static inline uint32_t automaton_shorter(struct automaton *a, uint32_t state, enum easy class, uint32_t max)
{
	uint32_t reach = state == AUTOMATON_DEAD ? UINT32_MAX : automaton_reach(a, state, class);

	return reach < max ? reach : max;
}
/* Marks bytes that are told apart from the one before. */
void automaton_borders(const struct automaton *a, bool border[256]);
/* Whether the bytes so far are such a text. */
bool automaton_accepts(const struct automaton *a, uint32_t state);
bool automaton_failed(const struct automaton *a);
bool automaton_is_live(struct automaton *a);       /* there are such texts */
size_t automaton_bytes(const struct automaton *a); /* of memory, more or less */

#endif
