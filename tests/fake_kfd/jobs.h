/* tests/fake_kfd/jobs.h - a model run on a card of the fake driver, as a process of its own, and whether it ended well.
 */
#ifndef FAKE_KFD_JOBS_H
#define FAKE_KFD_JOBS_H

#include <stdbool.h>

#include "tests/fake_kfd/run_faked.h"

extern char self[1024]; /* this program, which a job is run by */
extern bool by_library; /* cards are used through libhsakmt; else by calls of the driver alone */

struct job {
	const char *model, *passes;
	int launch;
	const char *how; /* child.h */
	int workgroups;
};
extern const struct job small;

/* False: the model or the fake driver is not there. */
bool start_job(struct faked *f, const struct job *j, const char *device, struct faked_process *p);
bool do_job(struct faked *f, const struct job *j, const char *device);
void describe(const struct faked *f, const char *what);
/* The driver objected to nothing that is not the library's doing. */
bool nothing_left(const struct faked *f);
/* Right all the same, or refused in one sentence, `says` in it. `left`: what the driver objects to, where it may. */
bool ended_well(const struct faked *f, const struct faked *truth, const char *says, bool left);
/* How often a trace has that call. */
unsigned count(const char *trace, const char *name);
/* What a run asks of the driver when nothing goes wrong; false: skip. */
bool learn(struct faked *truth, const char *card);

#endif
