/* tests/fuzz/fuzz_main.c - the targets for libFuzzer; the environment variable JITRUN_FUZZ names the one to run. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct fuzz_target *target;
	const char *name = getenv("JITRUN_FUZZ");

	if (!target && (!name || !(target = fuzz_find(name)))) {
		fprintf(stderr, "JITRUN_FUZZ names no target; expected one of");
		for (int i = 0; i < FUZZ_COUNT; i++)
			fprintf(stderr, " %s", fuzz_target[i].name);
		fprintf(stderr, "\n");
		exit(2);
	}
	target->one(p, n);
	return 0;
}
