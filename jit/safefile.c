/* jit/safefile.c - reading and replacing the files that hold code. */
#include "jit/safefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

bool safefile_safe(const struct stat *st, uid_t user)
{
	return (st->st_uid == user || st->st_uid == 0) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

bool safefile_trusted(const struct stat *st, const char *what, const char *name, struct error *err)
{
	uid_t user = geteuid();

	if (safefile_safe(st, user))
		return true;
	if (st->st_uid != user && st->st_uid != 0)
		return error_set(err, ERROR_ARGUMENT, "%s %s belongs to user %lu, and code is taken only from user %lu who runs this, or root", what, name,
		                 (unsigned long)st->st_uid, (unsigned long)user);
	return error_set(err, ERROR_ARGUMENT, "%s %s has mode %04o, which lets others write it; expected none of 0022", what, name,
	                 (unsigned)st->st_mode & 07777);
}

bool safefile_read(int fd, void *out, size_t n, off_t at)
{
	for (uint8_t *p = out; n;) {
		ssize_t r = pread(fd, p, n, at);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		p += r;
		at += r;
		n -= (size_t)r;
	}
	return true;
}

static bool write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		p += r;
		n -= (size_t)r;
	}
	return true;
}

enum safefile_step safefile_replace(int dir, const char *name, const char *temporary, mode_t mode, const struct safefile_part *part, int n_parts)
{
	enum safefile_step failed = SAFEFILE_DONE;
	int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode), why;

	if (fd < 0)
		return SAFEFILE_CREATE;
	for (int i = 0; i < n_parts && !failed; i++)
		if (!write_all(fd, part[i].bytes, part[i].n))
			failed = SAFEFILE_WRITE;
	if (!failed && fsync(fd))
		failed = SAFEFILE_SYNC;
	why = errno;
	if (close(fd) && !failed) {
		failed = SAFEFILE_SYNC;
		why = errno;
	}
	if (!failed && renameat(dir, temporary, dir, name)) {
		failed = SAFEFILE_RENAME;
		why = errno;
	}
	if (failed)
		unlinkat(dir, temporary, 0);
	errno = why;
	return failed;
}
