#include "grammar/schema/interner.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"

static uint64_t hash_of(const uint32_t *word, size_t n)
{
	uint64_t h = 0xcbf29ce484222325 ^ n;

	for (size_t i = 0; i < n; i++) {
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	return h;
}

static size_t find(const struct interner *t, const uint32_t *word, size_t n)
{
	size_t at = hash_of(word, n) & (t->slots - 1);

	for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
		const struct interned *e = &t->entry[t->slot[at] - 1];
		if (e->n == n && memcmp(t->word + e->at, word, n * sizeof *word) == 0)
			break;
	}
	return at;
}

static int grow_table(struct interner *t)
{
	size_t slots = t->slots ? 2 * t->slots : 256;
	uint32_t *old = t->slot, *table;

	if (2 * (t->n + 1) < t->slots)
		return 1;
	if (!(table = effort_calloc(slots, sizeof *table)))
		return 0;
	t->slot = table;
	t->slots = slots;
	for (size_t i = 0; i < t->n; i++)
		t->slot[find(t, t->word + t->entry[i].at, t->entry[i].n)] = (uint32_t)i + 1;
	free(old);
	return 1;
}

uint32_t interner_add(struct interner *t, const uint32_t *word, size_t n, int *made)
{
	void *words = t->word, *entries = t->entry;

	if (made)
		*made = 0;
	if (!effort_take(3 + n / 8) || !grow_table(t))
		return 0;
	size_t at = find(t, word, n);
	if (t->slot[at])
		return t->slot[at];
	const size_t bytes = interner_bytes(t);
	if (t->n_words + n > UINT32_MAX / 2 || !effort_array(&words, &t->word_room, t->n_words + n, sizeof *t->word))
		return 0;
	t->word = words;
	if (!effort_array(&entries, &t->room, t->n + 1, sizeof *t->entry))
		return 0;
	t->entry = entries;
	memcpy(t->word + t->n_words, word, n * sizeof *word);
	t->entry[t->n] = (struct interned){ (uint32_t)t->n_words, (uint32_t)n };
	t->n_words += n;
	t->slot[at] = (uint32_t)++t->n;
	if (made)
		*made = 1;
	return effort_grow(bytes, interner_bytes(t)) ? (uint32_t)t->n : 0;
}

const uint32_t *interner_get(const struct interner *t, uint32_t number, size_t *n)
{
	const struct interned *e = &t->entry[number - 1];

	if (n)
		*n = e->n;
	return t->word + e->at;
}

size_t interner_bytes(const struct interner *t)
{
	return t->word_room * sizeof *t->word + t->room * sizeof *t->entry + t->slots * sizeof *t->slot;
}

void interner_clear(struct interner *t)
{
	free(t->word);
	free(t->entry);
	free(t->slot);
	*t = (struct interner){ 0 };
}
