/* jit/store/cache_dir.c - one directory of a cache.
 *
 * Owns: entries. An entry is read whole and its checksum compared before a field is believed. Editors who change the
 * layout raises RECORD_VERSION.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/cache_dir_state.h"
#include "jit/store/cache_lock.h"

void cache_dir_entry_name(const struct key *key, char out[NAME_BYTES])
{
	uint64_t hash = key_hash(key);

	for (int i = 0; i < 16; i++)
		out[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
	memcpy(out + 16, entry_suffix, sizeof entry_suffix);
}

bool cache_dir_is_entry_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == 16 && strcmp(name + 16, entry_suffix) == 0;
}

/* --- opening */

/* Opens dir, making it and its parents when they are not there. -1: errno. */
static int open_or_make(const char *dir)
{
	char path[PATH_MAX];
	size_t n = strlen(dir);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (n >= sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(path, dir, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		path[i] = 0;
		if (mkdir(path, 0700) && errno != EEXIST && access(path, F_OK))
			return -1;
		path[i] = dir[i];
	}
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

struct cache_dir *cache_dir_open(const char *path, const struct cache_options *opt, struct error *err)
{
	char name[256];
	struct stat st;
	int fd = opt->read_only ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : open_or_make(path);
	struct cache_dir *d = NULL;

	error_quote(name, sizeof name, path, strlen(path));
	if (fd < 0 || fstat(fd, &st))
		error_set(err, ERROR_IO, "cannot open%s the cache directory %s: %s", opt->read_only ? "" : " or make",
		          name, strerror(errno));
	else if (safefile_trusted(&st, "the cache directory", name, err) && !(d = calloc(1, sizeof *d)))
		error_set(err, ERROR_MEMORY, "no memory for the cache directory %s", name);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	d->path = path;
	d->fd = fd;
	d->user = geteuid();
	d->writable = !opt->read_only && st.st_uid == geteuid() && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
	d->limit = opt->limit_bytes ? opt->limit_bytes : (uint64_t)CACHE_DEFAULT_LIMIT_MIB << 20;
	d->lock_fd = -1;
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

void cache_dir_close(struct cache_dir *d)
{
	if (!d)
		return;
	if (d->lock_fd >= 0)
		close(d->lock_fd);
	close(d->fd);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

bool cache_dir_writable(const struct cache_dir *d) { return d->writable; }

/* --- what is in use */

/* -1: locks are not to be had, and the last use alone protects an entry. */
static int lock_of(struct cache_dir *d)
{
	int fd = d->lock_fd, none = -1;

	if (!d->writable || fd == -2)
		return -1;
	if (fd == -1) {
		fd = cache_lock_open(d->fd);
		if (fd < 0 && safefile_shortage(errno))
			return -1; /* the next one asks again */
		if (!atomic_compare_exchange_strong(&d->lock_fd, &none, fd < 0 ? -2 : fd)) {
			if (fd >= 0)
				close(fd);
			fd = none; /* another thread's */
		}
	}
	return fd < 0 ? -1 : fd;
}

void cache_dir_hold(struct cache_dir *d, uint64_t *file, size_t n)
{
	int fd = n ? lock_of(d) : -1;

	if (fd >= 0)
		cache_lock_hold(fd, file, n);
}

/* --- writing */

bool cache_dir_store(struct cache_dir *d, const struct key *key, const struct object *o, uint64_t *evicted,
                     struct error *err)
{
	uint8_t header[CACHE_ENTRY_HEADER];
	char name[NAME_BYTES], quoted[256];
	uint8_t *body = record_pack(header + CACHE_ENTRY_PREFACE, key, o, CACHE_ENTRY_HEADER, err);
	struct stat st;

	if (!body)
		return false;
	memcpy(header, entry_magic, sizeof entry_magic);
	record_put32(header + 8, RECORD_VERSION);
	record_put32(header + 12, RECORD_BYTES);
	uint32_t body_bytes = record_get32(header + CACHE_ENTRY_PREFACE + RECORD_AT_BODY);
	cache_dir_entry_name(key, name);
	const struct safefile_part part[] = { { header, sizeof header }, { body, body_bytes } };
	enum safefile_step step = safefile_replace(d->fd, name, 0600, part, 2);
	if (step)
		safefile_failed(step, "an entry of the cache directory",
		                error_quote(quoted, sizeof quoted, d->path, strlen(d->path)), err);
	free(body);
	if (step)
		return false;
	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		uint64_t file = cache_lock_number(&st);
		cache_dir_hold(d, &file, 1);
	}
	pthread_mutex_lock(&d->lock);
	cache_dir_keep_limit(d, sizeof header + body_bytes, evicted);
	pthread_mutex_unlock(&d->lock);
	return true;
}

bool cache_dir_remove(struct cache_dir *d, const struct cache_item *item, struct error *err)
{
	char name[256];

	if (unlinkat(d->fd, item->file, 0) == 0 || errno == ENOENT)
		return true;
	return error_set(err, ERROR_IO, "cannot remove %s from the cache directory %s: %s", item->file,
	                 error_quote(name, sizeof name, d->path, strlen(d->path)), strerror(errno));
}

bool cache_dir_remove_key(struct cache_dir *d, const struct key *key, bool *was_there, struct error *err)
{
	struct cache_item item = { .key = *key };
	struct stat st;

	cache_dir_entry_name(key, item.file);
	*was_there = fstatat(d->fd, item.file, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
	return !*was_there || cache_dir_remove(d, &item, err);
}
