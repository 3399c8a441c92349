#include "eml/seen.h"

#include <stdlib.h>

void seen_free(struct seen *s)
{
	free(s->key);
	free(s->number);
	*s = (struct seen){ .slots = 0 };
}

bool seen_reserve(struct seen *s, size_t n)
{
	struct seen next = { .slots = s->slots ? s->slots : 1024 };

	while (next.slots / 8 * 5 < n)
		next.slots *= 2;
	if (next.slots == s->slots)
		return true;
	next.key = calloc(next.slots, sizeof *next.key);
	next.number = malloc(next.slots * sizeof *next.number);
	if (!next.key || !next.number) {
		seen_free(&next);
		return false;
	}
	for (size_t i = 0; i < s->slots; i++)
		if (s->key[i])
			seen_put(&next, s->key[i], s->number[i]);
	seen_free(s);
	*s = next;
	return true;
}
