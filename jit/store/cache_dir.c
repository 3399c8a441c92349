/* jit/store/cache_dir.c - one directory of a cache.
 *
 * Owns: entries. An entry is read whole and its checksum compared before a field is believed. Whoever changes the
 * layout raises RECORD_VERSION.
 */
#include "jit/store/cache_dir.h"

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

#include "base/array.h"
#include "jit/store/cache_lock.h"
#include "jit/store/safefile.h"

enum {
	TOUCH_SECONDS = 60, /* an entry's last use is written down no more often */
	NAME_BYTES = 24,
	NEAR_BYTES = 16384, /* a file of this size is read without asking for memory */
	MAX_FILE = CACHE_ENTRY_HEADER + RECORD_MAX_BODY,
};
static const char entry_magic[8] = "jitr\nko";
static const char entry_suffix[] = ".jko";

struct cache_dir {
	const char *path; /* borrowed */
	int fd;
	bool writable;
	uid_t user; /* who opened it, and is trusted besides root */
	uint64_t limit;
	_Atomic int lock_fd;  /* -1: not opened yet; -2: cannot be */
	pthread_mutex_t lock; /* the two below, and one eviction at a time */
	bool measured;
	uint64_t room; /* bytes that may be stored before the directory is measured again */
};

/* What a directory says of a file, without opening it. */
struct found {
	char name[NAME_BYTES];
	uint64_t bytes, file;
	int64_t last_use;
};

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

/* --- reading */

static const char *const
	not_readable = "unreadable",
	*const damaged = "damaged", *const other_version = "of another version of jitrun",
	*const other_name = "under another key's name", *const not_trusted = "perhaps written by others";

/* A whole file: in room, or in memory of its own. */
struct whole {
	uint8_t *bytes;
	size_t n;
	struct stat st;
	uint8_t room[NEAR_BYTES];
};

static void whole_free(struct whole *w)
{
	if (w->bytes != w->room)
		free(w->bytes);
	w->bytes = NULL;
}

static enum record_answer read_whole(struct whole *w, int fd, const char **trouble)
{
	w->n = (size_t)w->st.st_size;
	w->bytes = w->n <= sizeof w->room ? w->room : malloc(w->n);
	if (w->bytes && safefile_read(fd, w->bytes, w->n, 0))
		return RECORD_FOUND;
	*trouble = !w->bytes || errno ? not_readable : damaged; /* 0: cut since its size was asked for */
	whole_free(w);
	return *trouble == damaged ? RECORD_DAMAGED : RECORD_FAILED;
}

static enum record_answer read_file(const struct cache_dir *d, int fd, struct whole *w, const char **trouble)
{
	if (fstat(fd, &w->st))
		return RECORD_FAILED;
	if (!S_ISREG(w->st.st_mode))
		return RECORD_DAMAGED;
	*trouble = !safefile_safe(&w->st, d->user) ? not_trusted
	           : w->st.st_size <= CACHE_ENTRY_HEADER || w->st.st_size > MAX_FILE
	                   ? damaged
	                   : NULL;
	return *trouble ? RECORD_DAMAGED : read_whole(w, fd, trouble);
}

/* A whole file into memory: FOUND says that there may be an entry in it. FAILED: errno. *trouble, for a person, unless
 * it is found or absent. using: it counts as a use. */
static enum record_answer read_entry(const struct cache_dir *d, const char *name, bool using, struct whole *w,
                                     const char **trouble)
{
	int fd = openat(d->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	w->bytes = NULL;
	*trouble = not_readable;
	if (fd < 0) /* a link, a socket */
		return errno == ENOENT                    ? RECORD_ABSENT
		       : errno == ELOOP || errno == ENXIO ? RECORD_DAMAGED
		                                          : RECORD_FAILED;
	enum record_answer answer = read_file(d, fd, w, trouble);
	int why = errno;
	int64_t age = w->bytes && using && d->writable ? (int64_t)time(NULL) - w->st.st_mtime : 0;
	if (age > TOUCH_SECONDS || age < -TOUCH_SECONDS) /* in the future: the clock was set back */
		futimens(fd, NULL);
	close(fd);
	errno = why;
	return answer;
}

/* What is wrong with an entry's bytes, or NULL. r is filled when that is not the version. */
static const char *entry_trouble(const uint8_t *p, size_t n, struct record *r)
{
	memset(r, 0, sizeof *r);
	if (memcmp(p, entry_magic, sizeof entry_magic))
		return damaged;
	if (record_get32(p + 8) != RECORD_VERSION || record_get32(p + 12) != RECORD_BYTES)
		return other_version;
	if (!record_read(r, p + CACHE_ENTRY_PREFACE) || r->offset != CACHE_ENTRY_HEADER ||
	    r->body_bytes != n - CACHE_ENTRY_HEADER)
		return damaged;
	return record_sound(p + CACHE_ENTRY_PREFACE, p + CACHE_ENTRY_HEADER, r->body_bytes) ? NULL : damaged;
}

/* errno says why. */
static enum record_answer read_failed(const struct cache_dir *d, const struct key *key, struct error *err)
{
	char text[KEY_TEXT_MAX], name[256], file[NAME_BYTES];
	int why = errno;

	entry_name(key, file);
	error_set(err, why == ENOMEM ? ERROR_MEMORY : ERROR_IO,
	          "the code of %s cannot be read from %s in the cache directory %s: %s",
	          key_text(key, text, sizeof text), file, error_quote(name, sizeof name, d->path, strlen(d->path)),
	          strerror(why));
	return RECORD_FAILED;
}

enum record_answer cache_dir_load(struct cache_dir *d, const struct key *key, struct object *out, uint64_t *file,
                                  struct error *err)
{
	char name[NAME_BYTES];
	const char *trouble;
	struct whole w;

	entry_name(key, name);
	enum record_answer answer = read_entry(d, name, true, &w, &trouble);
	if (answer != RECORD_FOUND)
		return answer == RECORD_FAILED ? read_failed(d, key, err) : answer;
	/* the checksum is compared by record_unpack, before it unpacks, and once */
	const uint8_t *record = w.bytes + CACHE_ENTRY_PREFACE;
	struct record r;
	bool good = memcmp(w.bytes, entry_magic, sizeof entry_magic) == 0 &&
	            record_get32(w.bytes + 8) == RECORD_VERSION && record_get32(w.bytes + 12) == RECORD_BYTES &&
	            record_read(&r, record) && key_equal(&r.key, key) && r.offset == CACHE_ENTRY_HEADER &&
	            r.body_bytes == w.n - CACHE_ENTRY_HEADER;
	answer = good ? record_unpack(out, record, w.bytes + CACHE_ENTRY_HEADER) : RECORD_DAMAGED;
	if (answer == RECORD_FAILED)
		read_failed(d, key, err);
	whole_free(&w);
	*file = cache_lock_number(&w.st);
	return answer;
}

/* --- looking at the directory */

static int found_order(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->last_use != y->last_use ? x->last_use < y->last_use ? -1 : 1 : strcmp(x->name, y->name);
}

/* What a directory has: entries' names, sizes and times, in no order; free(). */
struct seen {
	struct found *list;
	size_t n, room;
	struct cache_leftovers left;
};

static bool is_temporary(const char *name)
{
	size_t n = strlen(name), s = strlen(safefile_temporary);

	return n > s && strcmp(name + n - s, safefile_temporary) == 0;
}

/* Of a temporary file: removed when its writer died and this is about removing. */
static void see_temporary(const struct cache_dir *d, const char *name, const struct stat *st, bool sweeping,
                          struct seen *seen)
{
	bool abandoned = safefile_abandoned(d->fd, name, st);

	if (!S_ISREG(st->st_mode) || (abandoned && sweeping && unlinkat(d->fd, name, 0) == 0))
		return;
	seen->left.files++;
	seen->left.abandoned += abandoned;
	seen->left.bytes += (uint64_t)st->st_size;
}

/* A time in the future is one before the clock was set back: not used since, so the oldest. False: errno. */
static bool see_file(const struct cache_dir *d, const char *name, bool sweeping, int64_t now, struct seen *seen)
{
	struct stat st;
	bool entry = is_entry_name(name);

	if (!entry && !is_temporary(name))
		return true;
	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT;
	if (!entry)
		see_temporary(d, name, &st, sweeping, seen);
	if (!entry || S_ISDIR(st.st_mode))
		return true;
	if (!array_grow((void **)&seen->list, &seen->room, seen->n + 1, sizeof *seen->list))
		return false;
	struct found *f = &seen->list[seen->n++];
	memcpy(f->name, name, 16 + sizeof entry_suffix);
	f->bytes = (uint64_t)st.st_size;
	f->file = cache_lock_number(&st);
	f->last_use = st.st_mtime > now + TOUCH_SECONDS ? 0 : st.st_mtime;
	return true;
}

/* False: errno, and nothing to free. */
static bool scan(const struct cache_dir *d, bool sweeping, struct seen *seen)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int64_t now = time(NULL);
	bool good = dir != NULL;

	*seen = (struct seen){ 0 };
	while (good) {
		errno = 0; /* the end and a failure are told apart by it alone */
		struct dirent *e = readdir(dir);
		good = e ? see_file(d, e->d_name, sweeping, now, seen) : errno == 0;
		if (!e)
			break;
	}
	int why = errno;
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	if (!good)
		free(seen->list);
	errno = why;
	return good;
}

static bool scan_failed(const struct cache_dir *d, struct error *err)
{
	char name[256];

	return error_set(err, ERROR_IO, "cannot list the cache directory %s: %s",
	                 error_quote(name, sizeof name, d->path, strlen(d->path)), strerror(errno));
}

bool cache_dir_size(struct cache_dir *d, uint64_t *bytes, uint64_t *entries, struct cache_leftovers *left,
                    struct error *err)
{
	struct seen seen;

	if (!scan(d, false, &seen))
		return scan_failed(d, err);
	for (size_t i = 0; i < seen.n; i++)
		*bytes += seen.list[i].bytes;
	*entries += seen.n;
	left->files += seen.left.files;
	left->abandoned += seen.left.abandoned;
	left->bytes += seen.left.bytes;
	free(seen.list);
	return true;
}

/* --- making room */

/* Removes from a list in order of use until bytes fit. Returns the bytes left. *why: errno of the first that could not
 * be removed. */
static uint64_t make_room(const struct cache_dir *d, const struct found *list, size_t n, uint64_t bytes, uint64_t fit,
                          struct cache_gc *out, int *why)
{
	int held_fd = cache_lock_look(d->fd);

	for (size_t i = 0; i < n && bytes > fit; i++) {
		if (cache_lock_held(held_fd, list[i].file)) {
			out->in_use++;
		} else if (unlinkat(d->fd, list[i].name, 0) == 0 || errno == ENOENT) {
			out->removed++;
			out->removed_bytes += list[i].bytes;
			bytes -= list[i].bytes;
		} else if (!*why) {
			*why = errno;
		}
	}
	if (held_fd >= 0)
		close(held_fd);
	return bytes;
}

/* With d->lock, after n bytes were stored. The directory is measured at first, and again before it can have outgrown
 * its limit: others store too. */
static void keep_limit(struct cache_dir *d, uint64_t stored, uint64_t *evicted)
{
	struct cache_gc gone = { 0 };
	struct seen seen;
	int why = 0;

	if (d->measured && stored <= d->room) {
		d->room -= stored;
		return;
	}
	if (!scan(d, true, &seen))
		return;
	uint64_t bytes = seen.left.bytes;
	for (size_t i = 0; i < seen.n; i++)
		bytes += seen.list[i].bytes;
	if (bytes > d->limit) { /* more than what is too much, lest every store comes here */
		qsort(seen.list, seen.n, sizeof *seen.list, found_order);
		bytes = make_room(d, seen.list, seen.n, bytes, d->limit - d->limit / 8, &gone, &why);
		*evicted += gone.removed;
	}
	free(seen.list);
	d->measured = true;
	d->room = bytes < d->limit ? d->limit - bytes : d->limit / 64;
	if (d->room > d->limit / 16)
		d->room = d->limit / 16;
}

/* Whether this program could never use an entry. One that the system does not let it read now may be as good as any. */
static bool is_useless(const struct cache_dir *d, const struct found *f)
{
	const char *trouble;
	struct whole w;
	struct record r;
	char name[NAME_BYTES] = "";
	enum record_answer answer = read_entry(d, f->name, false, &w, &trouble);

	if (answer == RECORD_FOUND && !entry_trouble(w.bytes, w.n, &r))
		entry_name(&r.key, name);
	whole_free(&w);
	return answer != RECORD_FAILED && strcmp(name, f->name) != 0;
}

bool cache_dir_gc(struct cache_dir *d, uint64_t limit, struct cache_gc *out, struct error *err)
{
	struct seen seen;
	size_t useless = 0;
	int why = 0;
	char name[256];

	if (!scan(d, true, &seen))
		return scan_failed(d, err);
	uint64_t bytes = seen.left.bytes, before = out->removed;
	for (size_t i = 0; i < seen.n; i++) {
		if (is_useless(d, &seen.list[i]))
			seen.list[i].last_use = INT64_MIN;
		bytes += seen.list[i].bytes;
	}
	if (seen.n)
		qsort(seen.list, seen.n, sizeof *seen.list, found_order);
	while (useless < seen.n && seen.list[useless].last_use == INT64_MIN)
		useless++;
	bytes = make_room(d, seen.list, useless, bytes, 0, out, &why);
	bytes = make_room(d, seen.list + useless, seen.n - useless, bytes, limit, out, &why);
	out->entries += seen.n - (out->removed - before);
	out->bytes += bytes;
	free(seen.list);
	return !why || error_set(err, ERROR_IO, "cannot remove entries from the cache directory %s: %s",
	                         error_quote(name, sizeof name, d->path, strlen(d->path)), strerror(why));
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
	entry_name(key, name);
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
	keep_limit(d, sizeof header + body_bytes, evicted);
	pthread_mutex_unlock(&d->lock);
	return true;
}

/* --- for those who look after it */

/* False: this process lacks something, which is no trouble of the entry's; errno. */
static bool list_entry(struct cache_dir *d, const struct found *f, struct cache_item *out)
{
	char name[NAME_BYTES];
	struct record r = { 0 };
	struct whole w;
	enum record_answer answer = read_entry(d, f->name, false, &w, &out->trouble);

	if (answer == RECORD_FAILED && safefile_shortage(errno))
		return false;
	if (answer == RECORD_FOUND)
		out->trouble = entry_trouble(w.bytes, w.n, &r);
	whole_free(&w);
	out->readable = answer == RECORD_FOUND && !out->trouble;
	out->failed = answer == RECORD_FAILED;
	if (out->readable) {
		out->key = r.key;
		out->code_bytes = r.object.code_bytes;
		entry_name(&r.key, name);
		if (strcmp(name, f->name) != 0)
			out->trouble = other_name;
	}
	out->stored_bytes = f->bytes;
	out->path = d->path;
	memcpy(out->file, f->name, sizeof f->name);
	out->last_use = f->last_use;
	return true;
}

bool cache_dir_list(struct cache_dir *d, struct cache_item **items, size_t *n, struct error *err)
{
	struct seen seen;

	*items = NULL;
	*n = 0;
	if (!scan(d, false, &seen))
		return scan_failed(d, err);
	struct cache_item *out = *items = calloc(seen.n + 1, sizeof *out);
	bool good = out != NULL;
	for (size_t i = 0; good && i < seen.n; i++)
		good = list_entry(d, &seen.list[i], &out[i]);
	int why = errno;
	free(seen.list);
	*n = good ? seen.n : 0;
	errno = why;
	return good || scan_failed(d, err);
}

enum record_answer cache_dir_read(struct cache_dir *d, const struct cache_item *item, struct object *out,
                                  struct error *err)
{
	const char *trouble;
	struct whole w;
	struct record r;
	enum record_answer answer = read_entry(d, item->file, false, &w, &trouble);

	if (answer == RECORD_FOUND)
		answer = entry_trouble(w.bytes, w.n, &r)
		                 ? RECORD_DAMAGED
		                 : record_unpack(out, w.bytes + CACHE_ENTRY_PREFACE, w.bytes + CACHE_ENTRY_HEADER);
	if (answer == RECORD_FAILED)
		read_failed(d, &item->key, err);
	whole_free(&w);
	return answer;
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
	*was_there = fstatat(d->fd, item.file, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
	return !*was_there || cache_dir_remove(d, &item, err);
}
