/* tests/loaders/file_changes.c - see file_changes.h. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "runtime/device/device.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/file_changes.h"

char change_dir[300]; /* fresh for each test */

int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(change_dir, sizeof change_dir, "%s/jitrun-changes-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(change_dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) { return remove(path); }

int remove_dir(void **state) { return nftw(change_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

const char *in_dir(const char *name)
{
	static char path[2][700];
	static int which;

	snprintf(path[which ^= 1], sizeof path[0], "%s/%s", change_dir, name);
	return path[which];
}

void put_back(const struct kept *k)
{
	const struct timespec long_ago[2] = { { 1000000000, 0 }, { 1000000000, 0 } };

	tiny_write(change_dir, k->name, k->p, k->n);
	assert_int_equal(utimensat(AT_FDCWD, in_dir(k->name), long_ago, 0), 0);
}
