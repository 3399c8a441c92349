/* jit/store/safefile.c - reading and replacing the files that hold code. */
#include "jit/store/safefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
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
		return error_set(
			err, ERROR_ARGUMENT,
			"%s %s belongs to user %lu, and code is taken only from user %lu who runs this, or root", what,
			name, (unsigned long)st->st_uid, (unsigned long)user);
	return error_set(err, ERROR_ARGUMENT,
	                 "%s %s has mode %04o, which lets others write it; expected none of 0022 (chmod go-w)", what,
	                 name, (unsigned)st->st_mode & 07777);
}

bool safefile_read(int fd, void *out, size_t n, off_t at)
{
	for (uint8_t *p = out; n;) {
		ssize_t r = pread(fd, p, n, at);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			errno = r < 0 ? errno : 0;
			return false;
		}
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

/* --- temporary files: how old one is says that its writer had time to lock it, the lock that the writer lives. A
 * rename comes before the lock is given back */

enum { YOUNG_SECONDS = 5, STALE_SECONDS = 3600, NAME_LENGTH_MAX = 200 };
const char safefile_temporary[] = ".tmp";

static void temporary_name(char out[NAME_MAX + 1], const char *name)
{
	static _Atomic uint64_t number;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	/* the time tells processes apart that share a number because they live in different containers */
	snprintf(out, NAME_MAX + 1, ".%.*s-%ld-%llu-%09ld%s", NAME_LENGTH_MAX, name, (long)getpid(),
	         (unsigned long long)number++, (long)now.tv_nsec, safefile_temporary);
}

bool safefile_abandoned(int dir, const char *name, const struct stat *st)
{
	int64_t age = (int64_t)time(NULL) - st->st_mtime;
	int64_t old = age < 0 ? -age : age; /* in the future: the clock was set back, and nobody knows */

	if (!S_ISREG(st->st_mode) || old <= YOUNG_SECONDS)
		return false;
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0, living = !locked && errno == EWOULDBLOCK;
	close(fd);
	return locked || (!living && old > STALE_SECONDS);
}

static bool is_temporary_of(const char *name, const char *of)
{
	size_t n = strlen(of);

	if (name[0] != '.' || strncmp(name + 1, of, n) != 0 || name[n + 1] != '-')
		return false;
	return strcmp(name + n + 1 + strspn(name + n + 1, "-0123456789"), safefile_temporary) == 0;
}

void safefile_sweep(int dir, const char *name)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct stat st;

	for (struct dirent *e; d && (e = readdir(d));)
		if (is_temporary_of(e->d_name, name) && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    safefile_abandoned(dir, e->d_name, &st))
			unlinkat(dir, e->d_name, 0);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

/* --- replacing */

bool safefile_replaceable(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ||
	       S_ISDIR(st.st_mode);
}

bool safefile_may_grow_to(uint64_t bytes)
{
	struct rlimit max;

	if (getrlimit(RLIMIT_FSIZE, &max) || max.rlim_cur == RLIM_INFINITY || bytes <= max.rlim_cur)
		return true;
	errno = EFBIG;
	return false;
}

bool safefile_may_grow_by(int fd, uint64_t n)
{
	struct stat st;

	return fstat(fd, &st) || !S_ISREG(st.st_mode) || safefile_may_grow_to((uint64_t)st.st_size + n);
}

/* n bytes where the file stands, which need not be its end. */
static bool may_write(int fd, uint64_t n)
{
	struct stat st;
	const off_t at = lseek(fd, 0, SEEK_CUR);

	return fstat(fd, &st) || !S_ISREG(st.st_mode) || at < 0 || safefile_may_grow_to((uint64_t)at + n);
}

/* 0, and not a negative count, is what tells glibc that a write failed. */
static ssize_t stream_write(void *user, const char *p, size_t n)
{
	int fd = *(const int *)user;

	return may_write(fd, n) && write_all(fd, (const uint8_t *)p, n) ? (ssize_t)n : 0;
}

static int stream_seek(void *user, off64_t *at, int from)
{
	const off64_t to = lseek(*(const int *)user, *at, from);

	if (to < 0)
		return -1;
	*at = to;
	return 0;
}

static int stream_close(void *user)
{
	int closed = close(*(const int *)user);

	free(user);
	return closed;
}

FILE *safefile_stream(const char *path)
{
	int *fd = malloc(sizeof *fd);

	if (!fd)
		return NULL;
	*fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	FILE *f = *fd < 0 ? NULL
	                  : fopencookie(fd, "w",
	                                (cookie_io_functions_t){
						.write = stream_write, .seek = stream_seek, .close = stream_close });
	if (f)
		return f;
	int why = errno;
	if (*fd >= 0)
		close(*fd);
	free(fd);
	errno = why;
	return NULL;
}

enum safefile_step safefile_begin(struct safefile *f, int dir, const char *name, mode_t mode)
{
	*f = (struct safefile){ .dir = dir, .name = name };
	temporary_name(f->temporary, name);
	f->fd = openat(dir, f->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (f->fd < 0)
		return SAFEFILE_CREATE;
	flock(f->fd, LOCK_EX | LOCK_NB); /* where there are no locks, its age protects it */
	return SAFEFILE_DONE;
}

void safefile_abandon(struct safefile *f)
{
	int why = errno;

	unlinkat(f->dir, f->temporary, 0);
	close(f->fd);
	errno = why;
}

enum safefile_step safefile_commit(struct safefile *f)
{
	enum safefile_step failed = fsync(f->fd)                                      ? SAFEFILE_SYNC
	                            : renameat(f->dir, f->temporary, f->dir, f->name) ? SAFEFILE_RENAME
	                                                                              : SAFEFILE_DONE;
	if (failed)
		safefile_abandon(f);
	else
		close(f->fd); /* synced: what this would say was said */
	return failed;
}

enum safefile_step safefile_replace(int dir, const char *name, mode_t mode, const struct safefile_part *part,
                                    int n_parts)
{
	struct safefile f;
	uint64_t bytes = 0;

	for (int i = 0; i < n_parts; i++)
		bytes += part[i].n;
	if (!safefile_may_grow_to(bytes))
		return SAFEFILE_WRITE;
	enum safefile_step failed = safefile_begin(&f, dir, name, mode);
	if (failed)
		return failed;
	for (int i = 0; i < n_parts; i++)
		if (!write_all(f.fd, part[i].bytes, part[i].n)) {
			safefile_abandon(&f);
			return SAFEFILE_WRITE;
		}
	return safefile_commit(&f);
}

int safefile_directory(const char *path, const char *what, const char **name, char quoted[256], struct error *err)
{
	const char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	error_quote(quoted, 256, path, strlen(path));
	if (!**name || strlen(*name) > NAME_LENGTH_MAX) {
		error_set(err, ERROR_ARGUMENT,
		          "%s is no name for %s: it has %zu bytes after its last slash, expected 1 to %d", quoted, what,
		          strlen(*name), NAME_LENGTH_MAX);
		return -1;
	}
	if (!safefile_replaceable(AT_FDCWD, path)) {
		error_set(err, ERROR_IO, "%s %s is no regular file, so it is not replaced", what, quoted);
		return -1;
	}
	char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	int dir = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, why = errno;
	free(folder);
	if (dir < 0)
		error_set(err, ERROR_IO, "cannot open the directory of %s %s: %s", what, quoted, strerror(why));
	return dir;
}

bool safefile_failed(enum safefile_step step, const char *what, const char *name, struct error *err)
{
	static const char *const did[] = { [SAFEFILE_CREATE] = "create a file beside",
		                           [SAFEFILE_WRITE] = "write all of",
		                           [SAFEFILE_SYNC] = "sync",
		                           [SAFEFILE_RENAME] = "replace" };

	return error_set(err, ERROR_IO, "cannot %s %s %s: %s", did[step], what, name, strerror(errno));
}

bool safefile_shortage(int why)
{
	return why == ENOMEM || why == EMFILE || why == ENFILE || why == EAGAIN || why == ENOBUFS || why == ENOLCK;
}
