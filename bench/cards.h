/* bench/cards.h - graphics cards as their makers describe them, for predictions.
 *
 * Owns: the table. Every number is from the card's public data sheet; nothing here was measured.
 */
#ifndef BENCH_CARDS_H
#define BENCH_CARDS_H

#include <stdint.h>

struct card {
	const char *target, *name;
	unsigned units;              /* compute units, each of two SIMDs */
	double clock;                /* Hz, in long runs of work ("game clock") */
	double bandwidth;            /* bytes/s, of the memory */
	double memory, cache, l2;    /* bytes: of the card; of the last cache before memory; of the one shared by all units */
	unsigned vgprs, granule;     /* vector registers of a SIMD's lane; they are given to waves in such pieces */
};

enum { CARD_SIMDS = 2, CARD_MAX_WAVES = 16 /* of a SIMD */, CARD_LDS = 64 << 10 /* of a unit */ };

const struct card *card_find(const char *target);            /* NULL: there is no data */
/* The targets in the table, joined by ", ". Returns text. */
const char *card_targets(char *text, unsigned long size);
/* How many workgroups of so many waves live on the card at once. */
unsigned card_resident(const struct card *c, unsigned waves, unsigned vgprs, unsigned lds);

#endif
