/* runtime/sampling/dry.h - DRY ("don't repeat yourself"): a penalty for tokens that would make a repetition longer.
 *
 * Owns: the search for repetitions and the texts that end them (sequence breakers: the end of a line, a quotation
 * mark). Where the end of the text was said before, the token that followed there is penalised, the more the longer the
 * two passages agree: multiplier * base ^ (length - allowed). A passage does not reach over a breaker. Breakers are
 * looked for in the bytes that the tokens spell, so it does not matter how a tokenizer cuts them. Time grows with the
 * window, not with its square.
 */
#ifndef RUNTIME_SAMPLING_DRY_H
#define RUNTIME_SAMPLING_DRY_H

#include "runtime/sampling/candidates.h"

enum { DRY_BREAKERS = 64, DRY_BREAKER_BYTES = 64 }; /* the most of them, and of each */

struct dry_breaker {
	unsigned char bytes[DRY_BREAKER_BYTES];
	uint32_t n;
};

struct dry {
	float multiplier; /* 0: off */
	float base;       /* less than 1: off */
	int32_t allowed;  /* length that is not penalised yet */
	int32_t window;   /* of so many last tokens; 0 or less: off */
	struct dry_breaker *breaker;
	uint32_t n_breakers;
	/* What a token spells; valid until the next call. NULL when there are no breakers. */
	const char *(*piece)(void *user, int32_t id, size_t *n);
	void *piece_user;
	int32_t *same; /* room for every token of the window */
};

/* tally: room for each token of the vocabulary, all 0, and so again afterwards. */
void dry_apply(struct candidates *c, const struct dry *d, const int32_t *text, size_t n, int32_t *tally);

/* Of the last tokens of a text: how many stand behind the last breaker that begins among them; n when there is none. */
size_t dry_behind_breaker(const struct dry *d, const int32_t *text, size_t n);

#endif
