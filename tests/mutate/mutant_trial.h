/* tests/mutate/mutant_trial.h - one file that is nearly right, opened, read and moved. */
#ifndef TESTS_MUTATE_MUTANT_TRIAL_H
#define TESTS_MUTATE_MUTANT_TRIAL_H

#include <stdint.h>

#include "jit/store/cache.h"
#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "tests/mutate/mutate.h"

struct trial {
	struct mutant m;
	enum mutant_kind kind;
	char path[300];
	unsigned opened, refused;
	uint64_t bytes;
};

extern char mutant_base[64];
void limit_memory(uint64_t bytes);
/* One sentence, and about this file. */
void refused(struct trial *t, const char *text);
void try_model(struct trial *t);
void empty_directory(const char *dir);
void try_cache(struct trial *t);
void try_tune(struct trial *t);

#endif
