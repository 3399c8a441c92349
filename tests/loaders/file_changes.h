/* tests/loaders/file_changes.h - a directory of files, and the ways in which they change. */
#ifndef TESTS_LOADERS_FILE_CHANGES_H
#define TESTS_LOADERS_FILE_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/device/device.h"

enum change { NOTHING, CUT_HALF, CUT_ALL, CUT_ONE, LENGTHEN, OVERWRITE, TOUCH_ONE, REPLACE, REMOVE, CHANGES };
static const char *const change_name[CHANGES] = {
	"nothing",     "cut in half",    "cut to nothing", "cut by a byte", "lengthened",
	"overwritten", "a byte written", "replaced",       "removed"
};

/* A file of the model, written long ago: a change shows in its time however coarse the clock is. */
struct kept {
	const char *name;
	uint8_t *p;
	size_t n;
};

extern char change_dir[300]; /* fresh for each test */
;
int make_dir(void **state);
int remove_dir(void **state);
const char *in_dir(const char *name);
void change_file(const char *path, enum change c);
void put_back(const struct kept *k);

/* The tests of the other files of the program: the number that failed. */
int file_random_tests(void);

#endif
