/* tests/kernels/signature_state.h - a trial's memory, for the two files that make it and judge by it. */
#ifndef TESTS_SIGNATURE_STATE_H
#define TESTS_SIGNATURE_STATE_H

#include "tests/kernels/signature_trial.h"

/* What rows say of a byte, and what was done with it. */
enum {
	SAYS_READ = 1,
	SAYS_WRITE = 2,
	SAYS_SOME_READ = 4,
	SAYS_SOME_WRITE = 8,
	SAYS_DATAFLOW_READ = 16,
	SAYS_DATAFLOW_WRITE = 32,
	DID_READ = 1,
	DID_WRITE = 2,
	DID_DATAFLOW_READ = 4,
	DID_DATAFLOW_WRITE = 8,
	DID_PLAIN_READ = 16
};

struct area {
	uint8_t *memory, *at, *begun,
		*result; /* at: behind the guard; begun, result: what lies at `at` before and after */
	uint8_t *says, *did;
	uint64_t bytes, room; /* room: with what may be read behind it */
	const char *name;
};

struct state {
	const struct trial *t;
	const struct trial_lies *lies;
	struct area area[TRIAL_AREAS];
	unsigned areas;
	uint64_t arg[TRIAL_ARGS];
	unsigned args, area_of[TRIAL_ARGS];
	uint64_t pages;
	unsigned first_page;
	int64_t begin, end; /* the units at hand */
	char *text;
	bool wrong;
};

/* signature_memory.c: the pieces that a span of this use has. */
uint64_t trial_count(const struct state *s, struct kernel_use use, const struct kernel_span *span);
/* Memory for all arguments, filled; s->arg. trial_free() it. */
void trial_make_launch(struct state *s);
void trial_free(struct state *s);

#endif
