/* grammar/call/threads.h - states that are sets of threads: ways to read a text, of which its next bytes tell the
 * right.
 *
 * Owns: the sets, by number, and the steps that were made lately. What threads mean is their machine's alone.
 */
#ifndef GRAMMAR_CALL_THREADS_H
#define GRAMMAR_CALL_THREADS_H

#include "grammar/machine/machine.h"
#include "grammar/schema/interner.h"

struct thread {
	uint32_t mode, at, aux, inner; /* inner: a state of the machine inside */
};

enum { THREADS_MAX = 1024, THREADS_RECENT = 1 << 12 };

struct threads {
	struct interner states;
	struct thread found[THREADS_MAX]; /* of the next state */
	unsigned n_found;
	bool failed; /* too many threads or states, or no memory */
	struct {
		uint32_t state, byte, next;
	} recent[THREADS_RECENT];
};

/* Adds a thread to the next state. False: it is there already, or there are too many. */
bool threads_add(struct threads *s, const struct thread *t);
/* The state of the threads that were added, which are none then. MACHINE_DEAD: of none, or after a failure. */
uint32_t threads_settle(struct threads *s);
/* Those of a state, up to the next threads_settle(). */
const struct thread *threads_of(const struct threads *s, uint32_t state, size_t *n);
/* The state behind a byte, when it was found lately. */
bool threads_recall(const struct threads *s, uint32_t state, uint8_t byte, uint32_t *next);
void threads_note(struct threads *s, uint32_t state, uint8_t byte, uint32_t next);
size_t threads_bytes(const struct threads *s);
void threads_clear(struct threads *s);

#endif
