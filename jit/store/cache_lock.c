#include "jit/store/cache_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "jit/store/safefile.h"

static const char lock_name[] = "lock";

uint64_t cache_lock_number(const struct stat *st) { return (uint64_t)st->st_ino & INT64_MAX >> 1; }

static struct flock bytes_of(uint64_t first, uint64_t n, short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)first, .l_len = (off_t)n };
}

int cache_lock_open(int dir)
{
	return openat(dir, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

static int number_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void cache_lock_hold(int fd, uint64_t *file, size_t n)
{
	qsort(file, n, sizeof *file, number_order);
	for (size_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && file[next] - file[next - 1] <= 1; next++)
			;
		struct flock bytes = bytes_of(file[i], file[next - 1] - file[i] + 1, F_RDLCK);
		fcntl(fd, F_OFD_SETLK, &bytes);
	}
}

int cache_lock_look(int dir)
{
	int fd = openat(dir, lock_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 ? fd : safefile_shortage(errno) || errno == EIO ? -2 : -1;
}

bool cache_lock_held(int look, uint64_t file)
{
	struct flock byte = bytes_of(file, 1, F_WRLCK);

	if (look < 0)
		return look == -2;
	return fcntl(look, F_OFD_GETLK, &byte) ? safefile_shortage(errno) : byte.l_type != F_UNLCK;
}
