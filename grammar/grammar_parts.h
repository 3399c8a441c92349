/* grammar/grammar_parts.h - the inside of a grammar, shared by grammar.c and grammar_drafts.c. */
#ifndef GRAMMAR_PARTS_H
#define GRAMMAR_PARTS_H

#include "grammar/grammar.h"

struct grammar {
	const struct vocabulary *v;
	const struct machine_tokens *tokens;
	uint32_t *whole; /* the tokens that rules about tokens can take, as bits; NULL: not asked for so far */
	unsigned kind;
	char *source;
	size_t n_source;
	struct machine *machine;
	struct masks *masks;
	struct effort effort; /* for the machine and the masks */
	size_t bytes;         /* that all of it may take */
	uint64_t opened;      /* what the machine took to be made */
	uint64_t cost;        /* what the last mask took */
	uint32_t *bits;
	bool found, ends; /* bits and ends are of the place behind the tokens taken */
	char *text;       /* of the tokens taken */
	size_t n_text, text_room;
	struct taken {
		uint32_t state, aside, id;
		size_t text; /* bytes up to its end */
	} * taken;
	size_t n, room;
	size_t walked; /* of them, so many have a state: those that a mask allowed are walked when that is asked for */
	struct aside {
		struct machine *machine;
		struct effort effort;
		size_t n;         /* of the tokens taken, so many have a state in it */
		bool off, closed; /* closed: only grammar_open_drafts() opens it */
	} aside;
};

/* A machine of its source. NULL: err. */
struct machine *grammar_machine(const struct grammar *g, struct error *err);
/* Where a token leads: by its bytes, and where a rule is about tokens, as a whole; both may go on. */
uint32_t grammar_walk(const struct grammar *g, struct machine *m, uint32_t state, const struct grammar_token *t);
/* Of the tokens taken, number i. */
struct grammar_token grammar_token_at(const struct grammar *g, size_t i);

#endif
