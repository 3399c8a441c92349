#include "pull/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { FOLDERS_DEEP = 32 };

static char *join(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *join(struct error *err, const char *format, ...)
{
	char *out = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&out, format, ap) < 0) {
		out = NULL;
		error_set(err, ERROR_MEMORY, "no memory for the name of a file");
	}
	va_end(ap);
	return out;
}

static bool refuse(struct error *err, const char *path, const char *what, int why)
{
	char quoted[300];

	return error_set(err, ERROR_IO, "%s: %s: %s", error_quote(quoted, sizeof quoted, path, strlen(path)), what,
	                 strerror(why));
}

char *cache_root(const char *given, struct error *err)
{
	static const struct {
		const char *variable, *behind;
	} folders[] = { { "HF_HUB_CACHE", "" },
		        { "HUGGINGFACE_HUB_CACHE", "" },
		        { "HF_HOME", "/hub" },
		        { "XDG_CACHE_HOME", "/huggingface/hub" },
		        { "HOME", "/.cache/huggingface/hub" } };
	const char *home = getenv("HOME");

	if (given)
		return join(err, "%s", given);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		const char *value = getenv(folders[i].variable);
		if (!value || !*value)
			continue;
		if (strncmp(value, "~/", 2) == 0 && home)
			return join(err, "%s%s%s", home, value + 1, folders[i].behind);
		return join(err, "%s%s", value, folders[i].behind);
	}
	error_set(err, ERROR_IO, "where is the cache? HOME is not set, nor is HF_HUB_CACHE");
	return NULL;
}

/* With all above it. */
static bool make_folder(const char *path, struct error *err)
{
	char *copy = join(err, "%s", path);
	bool ok = copy != NULL;

	for (char *at = copy ? copy + 1 : NULL; ok; at++) {
		at += strcspn(at, "/");
		bool last = !*at;
		*at = 0;
		if (mkdir(copy, 0777) != 0 && errno != EEXIST && errno != EISDIR)
			ok = access(copy, F_OK) == 0 || refuse(err, copy, "the folder cannot be made", errno);
		if (last)
			break;
		*at = '/';
	}
	free(copy);
	return ok;
}

static bool make_folders(const struct hub_cache *c, const struct reference *r, struct error *err)
{
	static const char *const below[] = { "blobs", "snapshots", "refs" };
	char *locks = join(err, "%s/.locks/models--%s--%s", c->root, r->owner, r->name);
	bool ok = locks && make_folder(locks, err);

	for (size_t i = 0; i < sizeof below / sizeof *below && ok; i++) {
		char *path = join(err, "%s/%s", c->folder, below[i]);
		ok = path && make_folder(path, err);
		free(path);
	}
	free(locks);
	return ok;
}

bool hub_cache_open(struct hub_cache *c, const char *root, const struct reference *r, bool make, struct error *err)
{
	*c = (struct hub_cache){ .blobs = -1 };
	c->root = join(err, "%s", root);
	c->folder = join(err, "%s/models--%s--%s", root, r->owner, r->name);
	char *blobs = c->folder ? join(err, "%s/blobs", c->folder) : NULL;
	bool ok = c->root && blobs && (!make || make_folders(c, r, err));
	if (ok) {
		c->blobs = open(blobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (c->blobs < 0 && (make || (errno != ENOENT && errno != ENOTDIR)))
			ok = refuse(err, blobs, "the folder cannot be opened", errno);
	}
	free(blobs);
	return ok;
}

void hub_cache_close(struct hub_cache *c)
{
	if (c->blobs >= 0)
		close(c->blobs);
	free(c->root);
	free(c->folder);
	*c = (struct hub_cache){ .blobs = -1 };
}

/* ---- blobs and their locks */

/* Whether the file that was locked is still the one of that name: others remove it when they are done. */
static bool is_same(int fd, const char *path)
{
	struct stat ours, now;

	return fstat(fd, &ours) == 0 && stat(path, &now) == 0 && ours.st_ino == now.st_ino && ours.st_dev == now.st_dev;
}

int cache_lock(const struct hub_cache *c, const char *etag, void (*waiting)(void *user), void *user,
               const volatile sig_atomic_t *interrupted, struct error *err)
{
	char *path = join(err, "%s/.locks/%s/%s.lock", c->root, strrchr(c->folder, '/') + 1, etag);
	int fd = -1;

	while (path) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (fd < 0) {
			refuse(err, path, "the lock cannot be made", errno);
			break;
		}
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same(fd, path))
			break;
		bool busy = errno == EWOULDBLOCK;
		close(fd);
		fd = -1;
		if (interrupted && *interrupted) {
			error_set(err, ERROR_CANCELLED, "interrupted");
			break;
		}
		if (busy && waiting)
			waiting(user);
		waiting = busy ? NULL : waiting;
		nanosleep(&(struct timespec){ .tv_nsec = busy ? 100000000 : 1000000 }, NULL);
	}
	free(path);
	return fd;
}

void cache_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

bool cache_has_blob(const struct hub_cache *c, const struct listing_file *f)
{
	struct stat st;

	return c->blobs >= 0 && *f->etag && fstatat(c->blobs, f->etag, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (!f->has_size || (uint64_t)st.st_size == f->size);
}

static void incomplete_name(char out[ETAG_MAX + 16], const char *etag)
{
	snprintf(out, ETAG_MAX + 16, "%s.incomplete", etag);
}

uint64_t cache_left(const struct hub_cache *c, const struct listing_file *f)
{
	char name[ETAG_MAX + 16];
	struct stat st;

	incomplete_name(name, f->etag);
	return c->blobs >= 0 && fstatat(c->blobs, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	                       (uint64_t)st.st_size <= f->size
	               ? (uint64_t)st.st_size
	               : 0;
}

int cache_begin_blob(const struct hub_cache *c, const char *etag, uint64_t *have, struct error *err)
{
	char name[ETAG_MAX + 16];
	struct stat st;

	incomplete_name(name, etag);
	int fd = openat(c->blobs, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd < 0 || fstat(fd, &st) != 0)
		refuse(err, name, "cannot be written in the cache", errno);
	else if (!S_ISREG(st.st_mode))
		error_set(err, ERROR_IO, "%s/blobs/%s is no file", c->folder, name);
	else {
		*have = (uint64_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

bool cache_end_blob(const struct hub_cache *c, const char *etag, int fd, struct error *err)
{
	char name[ETAG_MAX + 16];

	incomplete_name(name, etag);
	bool written = fsync(fd) == 0;
	int why = errno;
	if (close(fd) != 0 && written) {
		written = false;
		why = errno;
	}
	if (!written)
		return refuse(err, name, "could not be written in the cache", why);
	return renameat(c->blobs, name, c->blobs, etag) == 0 ||
	       refuse(err, name, "could not be renamed in the cache", errno);
}

void cache_drop_blob(const struct hub_cache *c, const char *etag)
{
	char name[ETAG_MAX + 16];

	incomplete_name(name, etag);
	unlinkat(c->blobs, name, 0);
}

bool cache_room(const struct hub_cache *c, uint64_t *room)
{
	struct statvfs fs;

	if (c->blobs < 0 || fstatvfs(c->blobs, &fs) != 0 || fs.f_blocks == 0)
		return false;
	*room = (uint64_t)fs.f_bavail * fs.f_frsize;
	return true;
}

/* ---- snapshots */

/* Below a folder, one part of a path after the other, and no link among them. *name: its last part. -1: errno. */
static int open_below(int folder, const char *path, bool make, const char **name)
{
	char part[256];
	int at = dup(folder);

	*name = path;
	for (const char *slash; at >= 0 && (slash = strchr(*name, '/')); *name = slash + 1) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - *name), *name);
		if (make && mkdirat(at, part, 0777) != 0 && errno != EEXIST)
			break;
		int next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int why = errno;
		close(at);
		at = next;
		errno = why;
	}
	if (at >= 0 && strchr(*name, '/')) {
		int why = errno;
		close(at);
		errno = why;
		return -1;
	}
	return at;
}

static int open_snapshot(const struct hub_cache *c, const char *commit, bool make, struct error *err)
{
	char *path = join(err, "%s/snapshots/%s", c->folder, commit);
	int fd = -1;

	if (path && (!make || mkdir(path, 0777) == 0 || errno == EEXIST))
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (path && fd < 0)
		refuse(err, path, make ? "the folder cannot be made" : "the folder cannot be opened", errno);
	free(path);
	return fd;
}

/* Replaces what has the name, all at once. */
static bool put_link(int folder, const char *name, const char *target)
{
	char old[ETAG_MAX + 4 * FOLDERS_DEEP], temporary[64];
	ssize_t n = readlinkat(folder, name, old, sizeof old - 1);

	old[n > 0 ? n : 0] = 0;
	if (strcmp(old, target) == 0 || symlinkat(target, folder, name) == 0)
		return true;
	if (errno != EEXIST)
		return false;
	snprintf(temporary, sizeof temporary, ".jitpull-%ld", (long)getpid());
	unlinkat(folder, temporary, 0);
	if (symlinkat(target, folder, temporary) != 0)
		return false;
	if (renameat(folder, temporary, folder, name) == 0)
		return true;
	int why = errno;
	unlinkat(folder, temporary, 0);
	errno = why;
	return false;
}

bool cache_link(const struct hub_cache *c, const char *commit, const struct listing_file *f, struct error *err)
{
	char target[ETAG_MAX + 4 * FOLDERS_DEEP] = "";
	size_t n = 0, deep = 2;
	const char *name;

	for (const char *at = f->path; *at; at++)
		deep += *at == '/';
	if (deep >= FOLDERS_DEEP)
		return error_set(err, ERROR_UNSUPPORTED, "\"%.200s\" lies too deep in folders", f->path);
	int top = open_snapshot(c, commit, true, err), folder = top < 0 ? -1 : open_below(top, f->path, true, &name);
	for (size_t i = 0; i < deep; i++)
		n += (size_t)snprintf(target + n, sizeof target - n, "../");
	snprintf(target + n, sizeof target - n, "blobs/%s", f->etag);
	bool ok = folder >= 0 && put_link(folder, name, target);
	if (!ok && top >= 0)
		refuse(err, f->path, "cannot be put into the cache's snapshot", errno);
	if (folder >= 0)
		close(folder);
	if (top >= 0)
		close(top);
	return ok;
}

char *cache_path(const struct hub_cache *c, const char *commit, const char *file, struct error *err)
{
	return join(err, "%s/snapshots/%s%s%s", c->folder, commit, file ? "/" : "", file ? file : "");
}

/* ---- refs */

/* Written beside it and renamed. */
static bool write_small(int folder, const char *name, const char *text)
{
	char temporary[64];
	size_t n = strlen(text);

	snprintf(temporary, sizeof temporary, ".jitpull-%ld", (long)getpid());
	unlinkat(folder, temporary, 0);
	int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
	if (fd >= 0 && close(fd) != 0)
		ok = false;
	ok = ok && renameat(folder, temporary, folder, name) == 0;
	int why = errno;
	if (!ok && fd >= 0)
		unlinkat(folder, temporary, 0);
	errno = why;
	return ok;
}

static int open_refs(const struct hub_cache *c)
{
	char *path = join(NULL, "%s/refs", c->folder);
	int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	free(path);
	return fd;
}

bool cache_write_ref(const struct hub_cache *c, const char *revision, const char *commit, struct error *err)
{
	const char *name;
	int refs = open_refs(c), folder = refs < 0 ? -1 : open_below(refs, revision, true, &name);
	bool ok = folder >= 0 && write_small(folder, name, commit);

	if (!ok)
		refuse(err, revision, "the cache's note of this revision cannot be written", errno);
	if (folder >= 0)
		close(folder);
	if (refs >= 0)
		close(refs);
	return ok;
}

bool cache_read_ref(const struct hub_cache *c, const char *revision, char commit[41])
{
	const char *name;
	int refs = open_refs(c), folder = refs < 0 ? -1 : open_below(refs, revision, false, &name);
	int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, commit, 40);

	commit[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
	if (refs >= 0)
		close(refs);
	return is_commit(commit);
}

/* ---- what is here */

static bool list_below(int folder, const char *above, unsigned deep, struct listing *l, struct error *err)
{
	DIR *d = fdopendir(folder);
	bool ok = d != NULL;

	if (!d)
		close(folder);
	for (struct dirent *e; ok && (e = readdir(d));) {
		struct stat st;
		bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
		char *path = dots ? NULL : join(err, "%s%s%s", above, *above ? "/" : "", e->d_name);
		int below =
			path && deep ? openat(folder, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
		ok = dots || path;
		if (below >= 0)
			ok = list_below(below, path, deep - 1, l, err);
		else if (path && fstatat(folder, e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
		         !path_trouble(path)) {
			struct listing_file *f = listing_add(l, path, err);
			ok = f != NULL;
			if (ok) {
				f->size = (uint64_t)st.st_size;
				f->has_size = true;
			}
		}
		free(path);
	}
	if (d)
		closedir(d);
	return ok;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct listing_file *)a)->path, ((const struct listing_file *)b)->path);
}

bool cache_list(const struct hub_cache *c, const char *commit, struct listing *l, struct error *err)
{
	int top = open_snapshot(c, commit, false, err);
	bool ok = top >= 0 && list_below(top, "", FOLDERS_DEEP, l, err);

	if (ok && l->n)
		qsort(l->file, l->n, sizeof *l->file, by_path);
	memcpy(l->commit, commit, sizeof l->commit);
	return ok;
}
