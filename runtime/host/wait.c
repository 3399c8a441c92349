/* runtime/host/wait.c - spinning, sleeping, waking. See wait.h. */
#include "runtime/host/wait.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Each look that did not help makes the next a quarter as long, down to a few; one wait in PROBE tries the longest
 * again. */
enum { PROBE = 32, FAILED_MAX = 4 };

static bool spin(_Atomic uint32_t *word, uint32_t old, uint32_t spins)
{
	for (uint32_t i = 0; i < spins; i++) {
		if (atomic_load_explicit(word, memory_order_acquire) != old)
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

void wait_while(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t old, struct wait_habit *habit)
{
	bool probe = habit->waits++ % PROBE == 0;

	if (spin(word, old, (uint32_t)WAIT_SPINS >> (probe ? 0 : 2 * habit->failed))) {
		habit->failed = 0;
		return;
	}
	if (habit->failed < FAILED_MAX)
		habit->failed++;
	habit->sleeps++;
	/* The sleeper counts itself before it looks at the word, the other changes the word before it looks at the
	 * count: one of them sees the other. */
	atomic_fetch_add(sleepers, 1);
	while (atomic_load(word) == old)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
	atomic_fetch_sub(sleepers, 1);
}

void wait_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
	if (atomic_load(sleepers))
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
