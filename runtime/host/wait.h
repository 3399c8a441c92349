/* runtime/host/wait.h - a word that threads wait on until another thread changes it.
 *
 * Owns: how waiting is done. A thread looks again and again for a while, and then sleeps in the kernel. Looking takes
 * the least time where the other thread runs on a core of its own. How long it looks follows from what became of its
 * last waits. Looking does not help where there are more threads than free cores. Then it hardly looks any more, which
 * leaves the core to those who have work, and tries a long look now and then. No wait spins without bound; an editor
 * keeps that.
 */
#ifndef RUNTIME_WAIT_H
#define RUNTIME_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

/* Of one thread, for waits of one kind; zero to begin with. sleeps: how often it went to sleep, for those who want to
 * know. */
struct wait_habit {
	uint32_t failed, waits;
	_Atomic uint64_t sleeps;
};

/* The most looks of one wait: some tens of microseconds, longer than any skew between threads on free cores, short
 * beside a time slice. */
enum { WAIT_SPINS = 1500 };

/* Returns when *word is not `old`; what was written before the change is seen. sleepers: zero to begin with, one for
 * each word. */
void wait_while(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t old, struct wait_habit *habit);
/* After the word was changed, by a sequentially consistent operation: wakes those who sleep. */
void wait_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers);

#endif
