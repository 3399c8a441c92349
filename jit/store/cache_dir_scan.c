/* jit/store/cache_dir_scan.c - looks through a directory: its size, its list, and what is deleted when it is too large.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "jit/store/cache_dir_state.h"
#include "jit/store/cache_lock.h"

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
	bool entry = cache_dir_is_entry_name(name);

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

void cache_dir_keep_limit(struct cache_dir *d, uint64_t stored, uint64_t *evicted)
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
	enum record_answer answer = cache_dir_read_entry(d, f->name, false, &w, &trouble);

	if (answer == RECORD_FOUND && !cache_dir_entry_trouble(w.bytes, w.n, &r))
		cache_dir_entry_name(&r.key, name);
	cache_dir_whole_free(&w);
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

/* --- for those who look after it */

/* False: this process lacks something, which is no trouble of the entry's; errno. */
static bool list_entry(struct cache_dir *d, const struct found *f, struct cache_item *out)
{
	char name[NAME_BYTES];
	struct record r = { 0 };
	struct whole w;
	enum record_answer answer = cache_dir_read_entry(d, f->name, false, &w, &out->trouble);

	if (answer == RECORD_FAILED && safefile_shortage(errno))
		return false;
	if (answer == RECORD_FOUND)
		out->trouble = cache_dir_entry_trouble(w.bytes, w.n, &r);
	cache_dir_whole_free(&w);
	out->readable = answer == RECORD_FOUND && !out->trouble;
	out->failed = answer == RECORD_FAILED;
	if (out->readable) {
		out->key = r.key;
		out->code_bytes = r.object.code_bytes;
		cache_dir_entry_name(&r.key, name);
		if (strcmp(name, f->name) != 0)
			out->trouble = "under another key's name";
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
