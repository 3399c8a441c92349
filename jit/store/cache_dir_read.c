/* jit/store/cache_dir_read.c - reads entries, and says what is wrong with one that cannot be used. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/cache_dir_state.h"
#include "jit/store/cache_lock.h"

/* What may be wrong with a file. */
static const char *const not_readable = "unreadable";
static const char *const damaged = "damaged";
static const char *const other_version = "of another version of jitrun";
static const char *const not_trusted = "perhaps written by others";

void cache_dir_whole_free(struct whole *w)
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
	cache_dir_whole_free(w);
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

enum record_answer cache_dir_read_entry(const struct cache_dir *d, const char *name, bool using, struct whole *w,
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

const char *cache_dir_entry_trouble(const uint8_t *p, size_t n, struct record *r)
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

	cache_dir_entry_name(key, file);
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

	cache_dir_entry_name(key, name);
	enum record_answer answer = cache_dir_read_entry(d, name, true, &w, &trouble);
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
	cache_dir_whole_free(&w);
	*file = cache_lock_number(&w.st);
	return answer;
}

enum record_answer cache_dir_read(struct cache_dir *d, const struct cache_item *item, struct object *out,
                                  struct error *err)
{
	const char *trouble;
	struct whole w;
	struct record r;
	enum record_answer answer = cache_dir_read_entry(d, item->file, false, &w, &trouble);

	if (answer == RECORD_FOUND)
		answer = cache_dir_entry_trouble(w.bytes, w.n, &r)
		                 ? RECORD_DAMAGED
		                 : record_unpack(out, w.bytes + CACHE_ENTRY_PREFACE, w.bytes + CACHE_ENTRY_HEADER);
	if (answer == RECORD_FAILED)
		read_failed(d, &item->key, err);
	cache_dir_whole_free(&w);
	return answer;
}
