/* tests/faults/run.h - runs a program and lets a chosen call of it fail: a system call, whichever code makes it (the
 * program, a library, the C library inside fread()), or an allocation. Calls are counted from the program's first own
 * instruction on, in all its threads.
 */
#ifndef TESTS_FAULTS_RUN_H
#define TESTS_FAULTS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/faults/ask.h"

enum fault_call {
	FAULT_MALLOC,
	FAULT_MMAP,
	FAULT_MPROTECT,
	FAULT_MADVISE,
	FAULT_OPEN,
	FAULT_READ,
	FAULT_WRITE,
	FAULT_SYNC,
	FAULT_RENAME,
	FAULT_CLOSE,
	FAULT_STAT,
	FAULT_SEEK,
	FAULT_TRUNCATE,
	FAULT_UNLINK,
	FAULT_MKDIR,
	FAULT_LIST,
	FAULT_LOCK,
	FAULT_MEMFD,
	FAULT_THREAD,
	FAULT_SOCKET,
	FAULT_WATCH,
	FAULT_RECEIVE,
	FAULT_SEND,
	FAULT_CALLS
};
extern const char *const fault_names[FAULT_CALLS];

struct fault {
	enum fault_call call;
	unsigned at; /* the n-th, from 1 on; 0: none fails */
	int error;   /* what it fails with; 0: it is not refused but does half, of reads and writes */
	bool later;  /* all behind it, too */
};

struct outcome {
	pid_t pid;          /* it had this number */
	int status, signal; /* as it ended: by exit() or by a signal */
	int child_signal;   /* by which a process that it made ended; 0: none did */
	bool in_driver;     /* ... which met it inside a card's driver (NVIDIA's, Vulkan's), or in a function that this
	                       called */
	bool hung;          /* ... because it was ended after too long: half a minute, with JITRUN_TEST_FULL ten */
	char *out, *err;    /* what it wrote, with a 0 behind it; err is cut at 4 KiB */
	size_t n_out, n_err;
	unsigned count[FAULT_CALLS]; /* calls it made of the kinds that were watched */
};

/* Whether programs can be watched here, and allocations in them. Call it once, before others. Why not is said on
 * stdout. */
bool fault_begin(void);
extern bool fault_mallocs;

/* What a program is given: a file for standard input (NULL: /dev/null), and requests, when it is a server (NULL). */
struct given {
	const char *input;
	const struct ask *asks;
};

/* argv[0] is the program's path. f NULL: watch nothing; f->at == 0: count all kinds. */
void fault_run(const char *const *argv, const struct given *given, const struct fault *f, struct outcome *o);
void fault_free(struct outcome *o);

#endif
