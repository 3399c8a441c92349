/* eml/seen.h - values that were met, by their hashes: a table from 64 bits to a number.
 *
 * Owns: the table, which grows. A hash is never 0. Two values with one hash count as equal: of ten million, one pair is
 * expected to be mistaken in three hundred thousand tables.
 */
#ifndef EML_SEEN_H
#define EML_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen {
	uint64_t *key; /* 0: free */
	uint32_t *number;
	size_t slots, n; /* slots: a power of two */
};
enum { SEEN_NONE = UINT32_MAX };

void seen_free(struct seen *s);
/* Makes room for n in all. False: there is no memory, and all is as it was. */
bool seen_reserve(struct seen *s, size_t n);
/* Begins to fetch the place of a hash. */
static inline void seen_fetch(const struct seen *s, uint64_t hash)
{
	__builtin_prefetch(&s->key[hash & (s->slots - 1)]);
}
/* Its number; SEEN_NONE: it was not met. */
static inline uint32_t seen_find(const struct seen *s, uint64_t hash)
{
	for (size_t at = hash & (s->slots - 1); s->slots && s->key[at]; at = (at + 1) & (s->slots - 1))
		if (s->key[at] == hash)
			return s->number[at];
	return SEEN_NONE;
}
/* Whether it is new; then it has that number from now on. Room was made. */
static inline bool seen_put(struct seen *s, uint64_t hash, uint32_t number)
{
	size_t at = hash & (s->slots - 1);

	for (; s->key[at]; at = (at + 1) & (s->slots - 1))
		if (s->key[at] == hash)
			return false;
	s->key[at] = hash;
	s->number[at] = number;
	s->n++;
	return true;
}

#endif
