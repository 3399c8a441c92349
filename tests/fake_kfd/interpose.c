/* tests/fake_kfd/interpose.c - the C library's functions by which a program reaches devices and /sys: paths of the
 * cards lead into the fake's folder, open files of the devices to the fake, everything else goes on. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/fake_kfd/fake.h"

static bool active;

/* The next function of that name, looked up once. */
#define NEXT(type, name, ...) \
	static type (*next)(__VA_ARGS__); \
	if (!next) { \
		void *found = dlsym(RTLD_NEXT, name); \
		memcpy(&next, &found, sizeof next); \
	}

__attribute__((constructor)) static void begin(void)
{
	if (!cards_read())
		return;
	if (!sysfs_make() || !account_open()) {
		fprintf(stderr, "fake kfd: no folder for the cards' files: %s\n", strerror(errno));
		abort();
	}
	active = true;
}

__attribute__((destructor)) static void finish(void)
{
	if (!active)
		return;
	if (fake.pid == getpid()) {
		queues_left();
		memory_left();
	}
	active = false;
	sysfs_remove();
}

/* ---- paths */

static const char *led(const char *path, char out[1200])
{
	static const char *const ours[] = { "/run/lock/jitrun", "/sys/class/kfd",       "/sys/devices/virtual/kfd",
		                            "/sys/class/drm",   "/sys/dev/char/226:",   "/sys/module/amdgpu",
		                            "/sys/bus/pci",     "/sys/devices/pci0000", "/dev/dri",
		                            "/dev/kfd" };

	if (!active || !path)
		return path;
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!strncmp(path, ours[i], strlen(ours[i]))) {
			snprintf(out, 1200, "%s%s", fake.dir, path);
			return out;
		}
	return path;
}

static bool is_device(const char *path)
{
	return path && (!strcmp(path, "/dev/kfd") || !strncmp(path, "/dev/dri/renderD", 16) ||
	                !strncmp(path, "/dev/dri/card", 13));
}

static int open_any(int (*next)(int, const char *, int, mode_t), int dir, const char *path, int flags, mode_t mode)
{
	char out[1200];

	if (active && is_device(path)) {
		int fd = device_open(path, flags);
		if (fd != -2)
			return fd;
	}
	return next(dir, led(path, out), flags, mode);
}

static int next_openat(int dir, const char *path, int flags, mode_t mode)
{
	NEXT(int, "openat", int, const char *, int, ...)
	return next(dir, path, flags, mode);
}

static mode_t mode_of(int flags, va_list ap)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list ap; \
		va_start(ap, flags); \
		mode_t mode = mode_of(flags, ap); \
		va_end(ap); \
		return open_any(next_openat, AT_FDCWD, path, flags, mode); \
	}
#define OPENAT(name) \
	int name(int dir, const char *path, int flags, ...) \
	{ \
		va_list ap; \
		va_start(ap, flags); \
		mode_t mode = mode_of(flags, ap); \
		va_end(ap); \
		return open_any(next_openat, dir, path, flags, mode); \
	}
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __open_2(const char *path, int flags) { return open_any(next_openat, AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_any(next_openat, AT_FDCWD, path, flags, 0); }
int __openat_2(int dir, const char *path, int flags) { return open_any(next_openat, dir, path, flags, 0); }

#define FOPEN(name) \
	FILE *name(const char *restrict path, const char *restrict mode) \
	{ \
		char out[1200]; \
		NEXT(FILE *, #name, const char *, const char *) \
		return next(led(path, out), mode); \
	}
FOPEN(fopen)
FOPEN(fopen64)

DIR *opendir(const char *path)
{
	char out[1200];
	NEXT(DIR *, "opendir", const char *)
	return next(led(path, out));
}

int scandir(const char *restrict path, struct dirent ***restrict list, int (*filter)(const struct dirent *),
            int (*compare)(const struct dirent **, const struct dirent **))
{
	char out[1200];
	NEXT(int, "scandir", const char *, struct dirent ***, int (*)(const struct dirent *),
	     int (*)(const struct dirent **, const struct dirent **))
	return next(led(path, out), list, filter, compare);
}

ssize_t readlink(const char *restrict path, char *restrict to, size_t n)
{
	char out[1200];
	NEXT(ssize_t, "readlink", const char *, char *, size_t)
	return next(led(path, out), to, n);
}

ssize_t __readlink_chk(const char *path, char *to, size_t n, size_t room);
ssize_t __readlink_chk(const char *path, char *to, size_t n, size_t room)
{
	if (n > room)
		abort();
	return readlink(path, to, n);
}

/* What lies in the folder has the name that it has outside. */
char *realpath(const char *restrict path, char *restrict to)
{
	char out[1200];
	NEXT(char *, "realpath", const char *, char *)
	const char *there = led(path, out);
	char *p = next(there, to);
	if (p && there != path && !strncmp(p, fake.dir, strlen(fake.dir)))
		memmove(p, p + strlen(fake.dir), strlen(p + strlen(fake.dir)) + 1);
	return p;
}
char *__realpath_chk(const char *path, char *to, size_t room);
char *__realpath_chk(const char *path, char *to, size_t room)
{
	(void)room;
	return realpath(path, to);
}

int access(const char *path, int mode)
{
	char out[1200];
	NEXT(int, "access", const char *, int)
	if (active && is_device(path) && fake.inject.denied && (mode & (R_OK | W_OK))) {
		errno = EACCES;
		return -1;
	}
	return next(led(path, out), mode);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
	char out[1200];
	NEXT(int, "faccessat", int, const char *, int, int)
	return next(dir, led(path, out), mode, flags);
}

/* A device looks like one. */
static void device_stat(const char *path, struct stat *s)
{
	unsigned n = 0;

	if (!active || !is_device(path))
		return;
	s->st_mode = S_IFCHR | 0660;
	if (sscanf(path, "/dev/dri/renderD%u", &n) == 1 || sscanf(path, "/dev/dri/card%u", &n) == 1)
		s->st_rdev = makedev(226, n);
	else
		s->st_rdev = makedev(510, 0);
}

#define STAT(name, type) \
	int name(const char *restrict path, struct type *restrict s) \
	{ \
		char out[1200]; \
		NEXT(int, #name, const char *, struct type *) \
		int r = next(led(path, out), s); \
		if (r == 0) \
			device_stat(path, (struct stat *)(void *)s); \
		return r; \
	}
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

int fstatat(int dir, const char *restrict path, struct stat *restrict s, int flags)
{
	char out[1200];
	NEXT(int, "fstatat", int, const char *, struct stat *, int)
	int r = next(dir, led(path, out), s, flags);
	if (r == 0)
		device_stat(path, s);
	return r;
}

#define FSTAT(name, type) \
	int name(int fd, struct type *s) \
	{ \
		NEXT(int, #name, int, struct type *) \
		struct card *c = NULL; \
		int r = next(fd, s), kind = active && r == 0 ? device_kind(fd, &c, NULL, NULL) : FILE_NONE; \
		if (kind != FILE_NONE) { \
			s->st_mode = S_IFCHR | 0660; \
			s->st_rdev = kind == FILE_DRM ? makedev(226, c->render) : makedev(510, 0); \
		} \
		return r; \
	}
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

/* ---- open files */

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	struct card *c = NULL;
	NEXT(int, "ioctl", int, unsigned long, ...)

	va_start(ap, request);
	void *argument = va_arg(ap, void *);
	va_end(ap);
	int kind = active ? device_kind(fd, &c, NULL, NULL) : FILE_NONE;
	if (kind == FILE_NONE)
		return next(fd, request, argument);
	int error = kind == FILE_KFD ? kfd_ioctl(request, argument) : drm_ioctl(c, request, argument);
	if (error)
		errno = error;
	return error ? -1 : 0;
}

static void *mmap_any(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	struct card *c = NULL;
	int error = 0;
	NEXT(void *, "mmap", void *, size_t, int, int, int, off_t)

	int kind = active && fd >= 0 ? device_kind(fd, &c, NULL, NULL) : FILE_NONE;
	if (kind != FILE_NONE) {
		void *p = device_mmap(kind, c, at, bytes, protection, flags, (uint64_t)offset, &error);
		if (error)
			errno = error;
		return p;
	}
	void *p = next(at, bytes, protection, flags, fd, offset);
	if (active && p != MAP_FAILED && (flags & MAP_FIXED))
		memory_unmapped(p, bytes);
	return p;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return mmap_any(at, bytes, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
	return mmap_any(at, bytes, protection, flags, fd, offset);
}

int munmap(void *at, size_t bytes)
{
	NEXT(int, "munmap", void *, size_t)
	/* Before: as soon as the addresses are free, another thread may have a buffer placed there. */
	if (active && fake.pid)
		memory_unmapped(at, bytes);
	return next(at, bytes);
}
