/* jit/cache_dir.c - one directory of a cache.
 *
 * Owns: entries and the file of locks. An entry is read whole and its checksum compared before a field is believed. Whoever changes the layout raises RECORD_VERSION.
 */
#include "jit/cache_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "jit/array.h"
#include "jit/safefile.h"

enum {
	STALE_SECONDS = 3600,            /* a temporary file this old has lost its writer */
	TOUCH_SECONDS = 60,              /* an entry's last use is written down no more often */
	NAME_BYTES = 24,
	NEAR_BYTES = 16384,              /* a file of this size is read without asking for memory */
	MAX_FILE = CACHE_ENTRY_HEADER + RECORD_MAX_BODY,
};
static const char entry_magic[8] = "jitr\nko";
static const char entry_suffix[] = ".jko", temporary_suffix[] = ".tmp", lock_name[] = "lock";

struct cache_dir {
	const char *path;                /* borrowed */
	int fd;
	bool writable;
	uid_t user;                      /* who opened it, and is trusted besides root */
	uint64_t limit;
	_Atomic int lock_fd;             /* -1: not opened yet; -2: cannot be */
	_Atomic uint64_t temporaries;
	pthread_mutex_t lock;            /* the two below, and one eviction at a time */
	bool measured;
	uint64_t room;                   /* bytes that may be stored before the directory is measured again */
};

/* What a directory says of a file, without opening it. */
struct found { char name[NAME_BYTES]; uint64_t bytes, file; int64_t last_use; };

static void entry_name(const struct key *key, char out[NAME_BYTES])
{
	uint64_t hash = key_hash(key);

	for (int i = 0; i < 16; i++)
		out[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
	memcpy(out + 16, entry_suffix, sizeof entry_suffix);
}

static bool is_entry_name(const char *name)
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
		error_set(err, ERROR_IO, "cannot open%s the cache directory %s: %s", opt->read_only ? "" : " or make", name, strerror(errno));
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

/* --- what is in use: read locks of open file descriptions. A file's byte is the one of its number, because files that were made together have neighbouring
 * numbers: the system keeps such locks as one, and hundreds of single ones would be searched for each one more. Who comes to have a dead file's number is held too, which
 * harms nobody; who replaces a file takes away from others' locks what they hold, but they have loaded it */

static int open_lock(int dir) { return openat(dir, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600); }

static uint64_t file_number(const struct stat *st) { return (uint64_t)st->st_ino & INT64_MAX >> 1; }

static struct flock bytes_of(uint64_t first, uint64_t n, short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)first, .l_len = (off_t)n };
}

/* -1: locks are not to be had, and the last use alone protects an entry. */
static int lock_of(struct cache_dir *d)
{
	int fd = d->lock_fd, none = -1;

	if (!d->writable || fd == -2)
		return -1;
	if (fd == -1) {
		fd = open_lock(d->fd);
		if (!atomic_compare_exchange_strong(&d->lock_fd, &none, fd < 0 ? -2 : fd)) {
			if (fd >= 0)
				close(fd);
			fd = none;                       /* another thread's */
		}
	}
	return fd < 0 ? -1 : fd;
}

static int number_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void cache_dir_hold(struct cache_dir *d, uint64_t *file, size_t n)
{
	int fd = n ? lock_of(d) : -1;

	if (fd < 0)
		return;
	qsort(file, n, sizeof *file, number_order);
	for (size_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && file[next] - file[next - 1] <= 1; next++)
			;
		struct flock bytes = bytes_of(file[i], file[next - 1] - file[i] + 1, F_RDLCK);
		fcntl(fd, F_OFD_SETLK, &bytes);
	}
}

/* lock_fd was opened for this question: locks do not stand in the way of those who took them. */
static bool is_held(int lock_fd, uint64_t file)
{
	struct flock byte = bytes_of(file, 1, F_WRLCK);

	return lock_fd >= 0 && fcntl(lock_fd, F_OFD_GETLK, &byte) == 0 && byte.l_type != F_UNLCK;
}

/* --- reading */

static const char *const not_readable = "cannot be read", *const damaged = "damaged", *const other_version = "of another version of jitrun",
                  *const other_name = "under another key's name", *const not_trusted = "others may have written it";

/* A whole file: in room, or in memory of its own. */
struct whole { uint8_t *bytes; size_t n; struct stat st; uint8_t room[NEAR_BYTES]; };

static void whole_free(struct whole *w)
{
	if (w->bytes != w->room)
		free(w->bytes);
	w->bytes = NULL;
}

static void read_whole(struct whole *w, int fd)
{
	w->n = (size_t)w->st.st_size;
	w->bytes = w->n <= sizeof w->room ? w->room : malloc(w->n);
	if (w->bytes && !safefile_read(fd, w->bytes, w->n, 0))
		whole_free(w);
}

/* A whole entry into memory. False: *trouble says why; NULL there too when there is no such file. using: it counts as a use. */
static bool read_entry(const struct cache_dir *d, const char *name, bool using, struct whole *w, const char **trouble)
{
	int fd = openat(d->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	w->bytes = NULL;
	*trouble = fd < 0 && errno == ENOENT ? NULL : not_readable;
	if (fd < 0)
		return false;
	if (fstat(fd, &w->st) == 0 && S_ISREG(w->st.st_mode)) {
		if (!safefile_safe(&w->st, d->user))
			*trouble = not_trusted;
		else if (w->st.st_size <= CACHE_ENTRY_HEADER || w->st.st_size > MAX_FILE)
			*trouble = damaged;
		else
			read_whole(w, fd);
	}
	int64_t age = w->bytes && using && d->writable ? (int64_t)time(NULL) - w->st.st_mtime : 0;
	if (age > TOUCH_SECONDS || age < -TOUCH_SECONDS)         /* in the future: the clock was set back */
		futimens(fd, NULL);
	close(fd);
	return w->bytes != NULL;
}

/* What is wrong with an entry's bytes, or NULL. r is filled when that is not the version. */
static const char *entry_trouble(const uint8_t *p, size_t n, struct record *r)
{
	memset(r, 0, sizeof *r);
	if (memcmp(p, entry_magic, sizeof entry_magic))
		return damaged;
	if (record_get32(p + 8) != RECORD_VERSION || record_get32(p + 12) != RECORD_BYTES)
		return other_version;
	if (!record_read(r, p + CACHE_ENTRY_PREFACE) || r->offset != CACHE_ENTRY_HEADER || r->body_bytes != n - CACHE_ENTRY_HEADER)
		return damaged;
	return record_sound(p + CACHE_ENTRY_PREFACE, p + CACHE_ENTRY_HEADER, r->body_bytes) ? NULL : damaged;
}

bool cache_dir_load(struct cache_dir *d, const struct key *key, struct object *out, bool *there, uint64_t *file)
{
	char name[NAME_BYTES];
	const char *trouble;
	struct whole w;

	entry_name(key, name);
	bool good = read_entry(d, name, true, &w, &trouble);
	*there = good || trouble;
	if (!good)
		return false;
	/* the checksum is compared by record_unpack, before it unpacks, and once */
	const uint8_t *record = w.bytes + CACHE_ENTRY_PREFACE;
	struct record r;
	good = memcmp(w.bytes, entry_magic, sizeof entry_magic) == 0 && record_get32(w.bytes + 8) == RECORD_VERSION &&
	       record_get32(w.bytes + 12) == RECORD_BYTES && record_read(&r, record) && key_equal(&r.key, key) && r.offset == CACHE_ENTRY_HEADER &&
	       r.body_bytes == w.n - CACHE_ENTRY_HEADER && record_unpack(out, record, w.bytes + CACHE_ENTRY_HEADER);
	whole_free(&w);
	*file = file_number(&w.st);
	return good;
}

/* --- looking at the directory */

static int found_order(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->last_use != y->last_use ? x->last_use < y->last_use ? -1 : 1 : strcmp(x->name, y->name);
}

/* Removes what writers that died left behind; in the future: the clock was set back, and nobody knows. */
static void sweep(int dir, const char *name)
{
	size_t n = strlen(name), s = sizeof temporary_suffix - 1;
	struct stat st;

	if (n <= s || strcmp(name + n - s, temporary_suffix) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	int64_t age = (int64_t)time(NULL) - st.st_mtime;
	if (age > STALE_SECONDS || age < -STALE_SECONDS)
		unlinkat(dir, name, 0);
}

/* The entries' names, sizes and times, in no order; free(). A time in the future is one before the clock was set back: not used since, so the oldest. */
static struct found *scan(const struct cache_dir *d, bool sweeping, size_t *n)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t room = 0;
	struct found *list = NULL;
	bool good = dir && array_grow((void **)&list, &room, 1, sizeof *list);       /* an empty list is no failure */
	int64_t now = time(NULL);
	struct stat st;

	*n = 0;
	for (struct dirent *e; good && (e = readdir(dir));) {
		if (sweeping)
			sweep(d->fd, e->d_name);
		if (!is_entry_name(e->d_name) || fstatat(d->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || S_ISDIR(st.st_mode))
			continue;
		if (!(good = array_grow((void **)&list, &room, *n + 1, sizeof *list)))
			break;
		struct found *f = &list[(*n)++];
		memcpy(f->name, e->d_name, 16 + sizeof entry_suffix);
		f->bytes = (uint64_t)st.st_size;
		f->file = file_number(&st);
		f->last_use = st.st_mtime > now + TOUCH_SECONDS ? 0 : st.st_mtime;
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	if (good)
		return list;
	free(list);
	return NULL;
}

static bool scan_failed(const struct cache_dir *d, struct error *err)
{
	char name[256];

	return error_set(err, ERROR_IO, "cannot list the cache directory %s: %s", error_quote(name, sizeof name, d->path, strlen(d->path)), strerror(errno));
}

bool cache_dir_size(struct cache_dir *d, uint64_t *bytes, uint64_t *entries, struct error *err)
{
	size_t n;
	struct found *list = scan(d, false, &n);

	if (!list)
		return scan_failed(d, err);
	for (size_t i = 0; i < n; i++)
		*bytes += list[i].bytes;
	*entries += n;
	free(list);
	return true;
}

/* --- making room */

/* Removes from a list in order of use until bytes fit. Returns the bytes left. */
static uint64_t make_room(const struct cache_dir *d, const struct found *list, size_t n, uint64_t bytes, uint64_t fit, struct cache_gc *out)
{
	int lock_fd = openat(d->fd, lock_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	for (size_t i = 0; i < n && bytes > fit; i++) {
		if (is_held(lock_fd, list[i].file)) {
			out->in_use++;
		} else if (unlinkat(d->fd, list[i].name, 0) == 0) {
			out->removed++;
			out->removed_bytes += list[i].bytes;
			bytes -= list[i].bytes;
		}
	}
	if (lock_fd >= 0)
		close(lock_fd);
	return bytes;
}

/* With d->lock, after n bytes were stored. The directory is measured at first, and again before it can have outgrown its limit: others store too. */
static void keep_limit(struct cache_dir *d, uint64_t stored, uint64_t *evicted)
{
	struct cache_gc gone = { 0 };
	uint64_t bytes = 0;
	size_t n;

	if (d->measured && stored <= d->room) {
		d->room -= stored;
		return;
	}
	struct found *list = scan(d, true, &n);
	if (!list)
		return;
	for (size_t i = 0; i < n; i++)
		bytes += list[i].bytes;
	if (bytes > d->limit) {                  /* more than what is too much, lest every store comes here */
		qsort(list, n, sizeof *list, found_order);
		bytes = make_room(d, list, n, bytes, d->limit - d->limit / 8, &gone);
		*evicted += gone.removed;
	}
	free(list);
	d->measured = true;
	d->room = bytes < d->limit ? d->limit - bytes : d->limit / 64;
	if (d->room > d->limit / 16)
		d->room = d->limit / 16;
}

bool cache_dir_gc(struct cache_dir *d, uint64_t limit, struct cache_gc *out, struct error *err)
{
	size_t n;
	struct found *list = scan(d, true, &n);
	uint64_t bytes = 0;

	if (!list)
		return scan_failed(d, err);
	for (size_t i = 0; i < n; i++) {
		const char *trouble;
		struct whole w;
		struct record r;
		char name[NAME_BYTES] = "";
		if (read_entry(d, list[i].name, false, &w, &trouble) && !(trouble = entry_trouble(w.bytes, w.n, &r)))
			entry_name(&r.key, name);
		whole_free(&w);
		if (strcmp(name, list[i].name) != 0)
			list[i].last_use = INT64_MIN;
		bytes += list[i].bytes;
	}
	qsort(list, n, sizeof *list, found_order);
	size_t useless = 0;
	while (useless < n && list[useless].last_use == INT64_MIN)
		useless++;
	uint64_t before = out->removed;
	bytes = make_room(d, list, useless, bytes, 0, out);
	bytes = make_room(d, list + useless, n - useless, bytes, limit, out);
	out->entries += n - (out->removed - before);
	out->bytes += bytes;
	free(list);
	return true;
}

/* --- writing */

bool cache_dir_store(struct cache_dir *d, const struct key *key, const struct object *o, uint64_t *evicted)
{
	uint8_t header[CACHE_ENTRY_HEADER];
	char name[NAME_BYTES], temporary[96];
	struct timespec now;
	uint8_t *body = record_pack(header + CACHE_ENTRY_PREFACE, key, o, CACHE_ENTRY_HEADER, NULL);

	if (!body)
		return false;
	memcpy(header, entry_magic, sizeof entry_magic);
	record_put32(header + 8, RECORD_VERSION);
	record_put32(header + 12, RECORD_BYTES);
	uint32_t body_bytes = record_get32(header + CACHE_ENTRY_PREFACE + RECORD_AT_BODY);
	entry_name(key, name);
	clock_gettime(CLOCK_REALTIME, &now);
	/* the time tells processes apart that share a number because they live in different containers */
	snprintf(temporary, sizeof temporary, "%.16s-%ld-%llu-%09ld%s", name, (long)getpid(), (unsigned long long)d->temporaries++,
	         (long)now.tv_nsec, temporary_suffix);
	const struct safefile_part part[] = { { header, sizeof header }, { body, body_bytes } };
	bool good = safefile_replace(d->fd, name, temporary, 0600, part, 2) == SAFEFILE_DONE;
	free(body);
	if (good) {
		struct stat st;
		uint64_t file;
		if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			file = file_number(&st);
			cache_dir_hold(d, &file, 1);
		}
		pthread_mutex_lock(&d->lock);
		keep_limit(d, sizeof header + body_bytes, evicted);
		pthread_mutex_unlock(&d->lock);
	}
	return good;
}

/* --- for those who look after it */

bool cache_dir_list(struct cache_dir *d, struct cache_item **items, size_t *n, struct error *err)
{
	struct found *list = scan(d, false, n);
	struct cache_item *out = *items = list ? calloc(*n + 1, sizeof *out) : NULL;

	if (!list)
		return scan_failed(d, err);
	if (!out) {
		free(list);
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu entries", *n);
	}
	for (size_t i = 0; i < *n; i++) {
		char name[NAME_BYTES];
		struct record r = { 0 };
		struct whole w;
		bool whole = read_entry(d, list[i].name, false, &w, &out[i].trouble);
		if (whole)
			out[i].trouble = entry_trouble(w.bytes, w.n, &r);
		whole_free(&w);
		out[i].readable = whole && !out[i].trouble;
		if (out[i].readable) {
			out[i].key = r.key;
			out[i].code_bytes = r.object.code_bytes;
			entry_name(&r.key, name);
			if (strcmp(name, list[i].name) != 0)
				out[i].trouble = other_name;
		}
		out[i].stored_bytes = list[i].bytes;
		out[i].path = d->path;
		memcpy(out[i].file, list[i].name, sizeof list[i].name);
		out[i].last_use = list[i].last_use;
	}
	free(list);
	return true;
}

bool cache_dir_read(struct cache_dir *d, const struct cache_item *item, struct object *out)
{
	const char *trouble;
	struct whole w;
	struct record r;
	bool good = read_entry(d, item->file, false, &w, &trouble) && !entry_trouble(w.bytes, w.n, &r) &&
	            record_unpack(out, w.bytes + CACHE_ENTRY_PREFACE, w.bytes + CACHE_ENTRY_HEADER);

	whole_free(&w);
	return good;
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

	entry_name(key, item.file);
	*was_there = fstatat(d->fd, item.file, &st, AT_SYMLINK_NOFOLLOW) == 0;
	return !*was_there || cache_dir_remove(d, &item, err);
}
