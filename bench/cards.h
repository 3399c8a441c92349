/* bench/cards.h - graphics cards as their makers describe them, for predictions.
 *
 * Owns: the table of what differs between cards of one target; what they have in common is in jit/target.h. Every
 * number is from the card's public data sheet; nothing was measured.
 */
#ifndef BENCH_CARDS_H
#define BENCH_CARDS_H

#include <stdint.h>

struct card {
	const char *target, *name;
	unsigned units;   /* compute units */
	double clock;     /* Hz, in long runs of work ("game clock") */
	double bandwidth; /* bytes/s, of the memory */
	double memory, cache,
		l2; /* bytes: of the card; of the last cache before memory; of the one shared by all units */
};

const struct card *card_find(const char *target); /* NULL: there is no data */
/* The targets in the table, joined by ", ". Returns text. */
const char *card_targets(char *text, unsigned long size);

#endif
