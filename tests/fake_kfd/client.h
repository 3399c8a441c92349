/* tests/fake_kfd/client.h - a program that uses a card through /dev/kfd in the fewest steps, rightly or with one
 * mistake.
 */
#ifndef FAKE_KFD_CLIENT_H
#define FAKE_KFD_CLIENT_H

enum mistake {
#define MISTAKE(name, ending, error, log, cards) M_##name,
#include "tests/fake_kfd/mistakes.def"
#undef MISTAKE
	MISTAKES
};

/* How it ends. REFUSED prints the error number of the call that was refused. */
enum ending { RIGHT = 0, REFUSED = 10, TIMEOUT = 11, FAULT = 12, WRONG = 13, NOT_MADE = 14, KILLED = 15 };

/* Adds numbers up on the last card that there is. Never returns. */
_Noreturn void client(enum mistake mistake);
/* Makes a queue through AMD's library. NOT_MADE: it is not installed. */
_Noreturn void hsakmt_client(void);

#endif
