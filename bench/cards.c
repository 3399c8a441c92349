#include "bench/cards.h"

#include <stdio.h>
#include <string.h>

#define GB 1e9
#define MIB 0x1p20
#define GIB 0x1p30
static const struct card cards[] = {
	{ "gfx1030", "RX 6800 XT", 72, 2.015e9, 512 * GB, 16 * GIB, 128 * MIB, 4 * MIB },
	{ "gfx1100", "RX 7900 XTX", 96, 2.3e9, 960 * GB, 24 * GIB, 96 * MIB, 6 * MIB },
	{ "gfx1101", "RX 7800 XT", 60, 2.124e9, 624 * GB, 16 * GIB, 64 * MIB, 4 * MIB },
	{ "gfx1201", "RX 9070 XT", 64, 2.4e9, 640 * GB, 16 * GIB, 64 * MIB, 8 * MIB },
};

const struct card *card_find(const char *target)
{
	for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
		if (strcmp(cards[i].target, target) == 0)
			return &cards[i];
	return NULL;
}

const char *card_targets(char *text, unsigned long size)
{
	size_t at = 0;

	for (size_t i = 0; i < sizeof cards / sizeof *cards && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", cards[i].target);
	return text;
}
