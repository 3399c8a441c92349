/* tests/fuzz/targets.c - the list of targets, and the files of those that open files. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct fuzz_target fuzz_target[FUZZ_COUNT] = {
#define X(name) { #name, fuzz_##name },
	FUZZ_TARGETS(X)
#undef X
};

const struct fuzz_target *fuzz_find(const char *name)
{
	for (int i = 0; i < FUZZ_COUNT; i++)
		if (strcmp(fuzz_target[i].name, name) == 0)
			return &fuzz_target[i];
	return NULL;
}

static char directory[64], path[2][200];

static void remove_directory(void)
{
	for (int i = 0; i < 2; i++)
		if (path[i][0])
			unlink(path[i]);
	rmdir(directory);
}

const char *fuzz_directory(void)
{
	if (!directory[0]) {
		strcpy(directory, "/tmp/jitrun-fuzz-XXXXXX");
		if (!mkdtemp(directory) || atexit(remove_directory))
			abort();
	}
	return directory;
}

const char *fuzz_file(unsigned number, const char *name, const uint8_t *p, size_t n)
{
	snprintf(path[number], sizeof path[number], "%s/%s", fuzz_directory(), name);
	FILE *f = fopen(path[number], "wb");
	if (!f || fwrite(p, 1, n, f) != n || fclose(f))
		abort();
	return path[number];
}
