/* grammar/call/threads.c - sets of threads (threads.h). */
#include "grammar/call/threads.h"

#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 1 << 22, WORDS = sizeof(struct thread) / sizeof(uint32_t) };

bool threads_add(struct threads *s, const struct thread *t)
{
	for (unsigned i = 0; i < s->n_found; i++)
		if (memcmp(&s->found[i], t, sizeof *t) == 0)
			return false;
	s->failed |= s->n_found == THREADS_MAX;
	if (s->failed)
		return false;
	s->found[s->n_found++] = *t;
	return true;
}

static int by_words(const void *a, const void *b) { return memcmp(a, b, sizeof(struct thread)); }

uint32_t threads_settle(struct threads *s)
{
	_Static_assert(sizeof(struct thread) == 4 * sizeof(uint32_t), "threads are words");
	uint32_t state = MACHINE_DEAD;

	s->failed |= s->states.n >= STATES_MAX;
	if (s->n_found && !s->failed) {
		qsort(s->found, s->n_found, sizeof *s->found, by_words);
		state = interner_add(&s->states, (const uint32_t *)s->found, WORDS * (size_t)s->n_found, NULL);
		s->failed |= state == 0;
	}
	s->n_found = 0;
	return state;
}

const struct thread *threads_of(const struct threads *s, uint32_t state, size_t *n)
{
	*n = 0;
	if (state == MACHINE_DEAD)
		return NULL;
	const uint32_t *words = interner_get(&s->states, state, n);
	*n /= WORDS;
	return (const struct thread *)words;
}

static uint32_t slot_of(uint32_t state, uint8_t byte) { return (state * 257u + byte) % THREADS_RECENT; }

bool threads_recall(const struct threads *s, uint32_t state, uint8_t byte, uint32_t *next)
{
	const uint32_t at = slot_of(state, byte);

	*next = s->recent[at].next;
	return s->recent[at].state == state && s->recent[at].byte == byte;
}

void threads_note(struct threads *s, uint32_t state, uint8_t byte, uint32_t next)
{
	const uint32_t at = slot_of(state, byte);

	s->recent[at].state = state;
	s->recent[at].byte = byte;
	s->recent[at].next = next;
}

size_t threads_bytes(const struct threads *s) { return interner_bytes(&s->states); }

void threads_clear(struct threads *s) { interner_clear(&s->states); }
