/* tests/fake_kfd/run_faked.h - runs a program on a fake driver's cards, and says how it ended and what the driver
 * objected to. */
#ifndef FAKE_KFD_RUN_FAKED_H
#define FAKE_KFD_RUN_FAKED_H

#include <stdbool.h>

enum { FAKED_TEXT = 16384 };
struct faked {
	const char *cards, *inject; /* FAKE_KFD, FAKE_KFD_INJECT */
	const char *dir;            /* NULL: of its own */
	bool traced;
	unsigned limit_ms; /* 0: a minute */
	/* out */
	int status, signal; /* signal: 0 when it ended by itself; SIGKILL at the limit */
	double seconds;
	char out[FAKED_TEXT], err[FAKED_TEXT], log[FAKED_TEXT];
	char *trace; /* static, when traced */
};

/* False, said on stdout: the fake driver was not built. */
bool faked_there(void);
/* The same; else runs argv to its end. */
bool faked_run(struct faked *f, const char *const *argv);
/* In two halves, to have several at once. */
struct faked_process {
	int pid;
	char folder[64];
};
bool faked_start(const struct faked *f, const char *const *argv, struct faked_process *p);
void faked_end(struct faked *f, struct faked_process *p);

#endif
