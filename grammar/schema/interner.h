/* grammar/schema/interner.h - arrays of words that are kept once: equal arrays have the same number.
 *
 * Owns: the arrays and their hash table. Numbers begin with 1; 0 is none.
 */
#ifndef GRAMMAR_INTERNER_H
#define GRAMMAR_INTERNER_H

#include <stddef.h>
#include <stdint.h>

struct interner {
	uint32_t *word;
	size_t n_words, word_room;
	struct interned {
		uint32_t at, n;
	} * entry;
	size_t n, room;
	uint32_t *slot;
	size_t slots;
};

/* 0: no memory. `made`, if not NULL, says whether it is new. */
uint32_t interner_add(struct interner *t, const uint32_t *word, size_t n, int *made);
/* Borrowed until the next one is added. */
const uint32_t *interner_get(const struct interner *t, uint32_t number, size_t *n);
size_t interner_bytes(const struct interner *t);
void interner_clear(struct interner *t);

#endif
