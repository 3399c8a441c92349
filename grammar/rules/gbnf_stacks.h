/* grammar/rules/gbnf_stacks.h - what a machine of rules is made of, and where its stacks lead without a byte.
 *
 * A stack is an NFA state in a rule, and below it the states where the rules that began it go on; equal stacks are one.
 * A rule that is the last part of another leaves nothing on the stack. Below the rules that can begin with each other
 * (gbnf_left.h) lies the one that is wanted.
 */
#ifndef GRAMMAR_GBNF_STACKS_H
#define GRAMMAR_GBNF_STACKS_H

#include "grammar/rules/gbnf_parts.h"
#include "grammar/schema/interner.h"
#include "grammar/machine/machine.h"

/* Below a stack's top, where it is not the number of a stack. */
enum { BELOW_NOTHING = 0, BELOW_UNKNOWN = UINT32_MAX };
struct stack {
	uint32_t nfa_state, below;
};
struct state {
	uint32_t top;
	uint32_t row;       /* of next[]; none until a byte is asked for */
	bool ends, unknown; /* one of the stacks is finished; what is below the top goes on */
};
struct gbnf_machine {
	struct machine machine;
	struct nfa nfa;
	struct left left;
	uint8_t class_of[256]; /* bytes that no NFA state tells apart are a class */
	unsigned classes;
	struct interner stacks; /* two words each */
	struct interner states; /* two words for each stack, in ascending order */
	struct state *state;    /* [number - 1] */
	size_t n, room;
	uint32_t *next; /* [row][class] */
	size_t rows, next_room;
	struct stack *found; /* the stacks on the way to a state, those that stay in front */
	size_t n_found, found_room;
	uint32_t *seen; /* a hash table: one more than an index into found */
	size_t slots;
};

/* The machine fails; false. */
bool stacks_fail(struct gbnf_machine *m);
/* Adds a stack to those found, once. False: the machine failed. */
bool stacks_find(struct gbnf_machine *m, uint32_t nfa_state, uint32_t below);
/* The same of a rule at its first state, with all that it can begin with. */
bool stacks_begin(struct gbnf_machine *m, uint32_t entry, uint32_t below);
/* Adds all that the stacks found lead to without a byte. */
bool stacks_follow(struct gbnf_machine *m);

#endif
