/* loaders/files/file.c - opens and reads one regular file. See file.h.
 *
 * Rule: every way the system can refuse becomes one sentence with the path. The copy lies in pages set aside for all it
 * may become, so that it grows without moving.
 */
#include "loaders/files/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "loaders/files/file_kind.h"

enum { FIRST_READ = 1 << 18, MAX_AT_ONCE = 1 << 30 };

void file_label(char out[200], const char *path)
{
	size_t n = strlen(path);
	const size_t keep = 120;

	if (n <= keep) {
		error_quote(out, 200, path, n);
		return;
	}
	const char *tail = path + n - keep;
	while (((unsigned char)*tail & 0xc0) == 0x80)
		tail++;
	memcpy(out, "...", 3);
	error_quote(out + 3, 197, tail, strlen(tail));
}

static const char *kind_of(mode_t mode)
{
	return S_ISDIR(mode)                    ? "a directory"
	       : S_ISFIFO(mode)                 ? "a FIFO"
	       : S_ISSOCK(mode)                 ? "a socket"
	       : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
	                                        : "of an unknown kind";
}

static bool examine(const struct file *f, int fd, struct stat *st, struct error *err)
{
	return fstat(fd, st) == 0 || error_set(err, ERROR_IO, "%s: cannot be examined: %s", f->label, strerror(errno));
}

static bool accept_fd(struct file *f, struct error *err)
{
	struct stat st;

	if (!examine(f, f->fd, &st, err))
		return false;
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_IO, "%s: is %s, expected a regular file", f->label, kind_of(st.st_mode));
	if (st.st_size <= 0)
		return error_set(err, ERROR_FORMAT, "%s: is empty (0 bytes)", f->label);
	f->size = (uint64_t)st.st_size;
	f->device = st.st_dev;
	f->inode = st.st_ino;
	f->written = st.st_mtim;
	return true;
}

/* O_NONBLOCK: a FIFO without a writer must be refused, not waited for */
static int open_path(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }

bool file_open(struct file *f, const char *path, struct error *err)
{
	memset(f, 0, sizeof *f);
	file_label(f->label, path);
	f->path = strdup(path);
	if (!f->path)
		return error_set(err, ERROR_MEMORY, "%s: no memory for the name of a file", f->label);
	f->fd = open_path(path);
	f->is_open = f->fd >= 0;
	if (!f->is_open)
		error_set(err, ERROR_IO, "%s: cannot be opened: %s", f->label, strerror(errno));
	if (f->is_open && accept_fd(f, err))
		return true;
	file_close(f);
	return false;
}

void file_memory(struct file *f, const void *bytes, uint64_t n, const char *name)
{
	memset(f, 0, sizeof *f);
	file_label(f->label, name);
	f->base = bytes;
	f->have = f->size = n;
}

void file_rest(struct file *f)
{
	if (f->is_open)
		close(f->fd);
	f->is_open = false;
}

void file_close(struct file *f)
{
	file_rest(f);
	if (f->room)
		munmap((void *)(uintptr_t)f->base, (size_t)f->room);
	free(f->path);
	memset(f, 0, sizeof *f);
}

static bool same(const struct file *f, int fd, struct error *err)
{
	struct stat st;

	if (!examine(f, fd, &st, err))
		return false;
	if (st.st_dev != f->device || st.st_ino != f->inode)
		return error_set(err, ERROR_IO, "%s: was replaced by another file while it was read", f->label);
	if ((uint64_t)st.st_size != f->size + f->mark)
		return error_set(err, ERROR_IO,
		                 "%s: changed while it was read (it had %" PRIu64 " bytes, now it has %lld)", f->label,
		                 f->size, (long long)st.st_size);
	if (st.st_mtim.tv_sec != f->written.tv_sec || st.st_mtim.tv_nsec != f->written.tv_nsec)
		return error_set(err, ERROR_IO,
		                 "%s: changed while it was read (it was written to, and still has %" PRIu64 " bytes)",
		                 f->label, f->size);
	return true;
}

/* The file's descriptor, or one for as long as release() does not come; -1: err. */
static int borrow(const struct file *f, struct error *err)
{
	if (f->is_open)
		return f->fd;
	int fd = open_path(f->path);
	if (fd < 0)
		error_set(err, ERROR_IO, "%s: cannot be opened again: %s", f->label, strerror(errno));
	else if (!same(f, fd, err)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void release(const struct file *f, int fd)
{
	if (!f->is_open)
		close(fd);
}

bool file_same(const struct file *f, struct error *err)
{
	if (!f->path)
		return true;
	int fd = borrow(f, err);
	bool ok = fd >= 0 && (!f->is_open || same(f, fd, err));
	if (fd >= 0)
		release(f, fd);
	return ok;
}

bool file_verdict(const struct file *f, bool ok, const struct error *why, struct error *err)
{
	return file_same(f, err) && (ok || error_set(err, why->code, "%s", why->text));
}

static bool read_at(const struct file *f, int fd, uint64_t offset, size_t n, uint8_t *out, struct error *err)
{
	while (n) {
		ssize_t got = pread(fd, out, n < MAX_AT_ONCE ? n : MAX_AT_ONCE, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(err, ERROR_IO, "%s: cannot be read at byte %" PRIu64 ": %s", f->label, offset,
			                 strerror(errno));
		if (got == 0)
			return same(f, fd, err) &&
			       error_set(err, ERROR_IO,
			                 "%s: ends at byte %" PRIu64 ", though it is said to have %" PRIu64, f->label,
			                 offset, f->size);
		out += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return true;
}

bool file_read(const struct file *f, uint64_t offset, size_t n, void *out, struct error *err)
{
	assert(offset <= f->size && n <= f->size - offset);
	if (offset + n <= f->have) {
		if (n)
			memcpy(out, f->base + offset, n);
		return true;
	}
	int fd = borrow(f, err);
	if (fd < 0)
		return false;
	bool ok = read_at(f, fd, offset, n, out, err);
	release(f, fd);
	return ok;
}

static uint64_t pages(uint64_t n)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

static bool make_room(struct file *f, struct error *err)
{
	uint64_t n = pages(f->size < FILE_MAX_HEAD ? f->size : FILE_MAX_HEAD);
	void *p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu64 " bytes of it: %s", f->label, n,
		                 strerror(errno));
	f->base = p;
	f->room = n;
	return true;
}

bool file_reach(struct file *f, uint64_t n, struct error *err)
{
	assert(n <= f->size);
	if (n <= f->have)
		return true;
	if (n > FILE_MAX_HEAD)
		return error_set(err, ERROR_FORMAT, "%s: the header has %" PRIu64 " bytes or more, expected at most %d",
		                 f->label, n, FILE_MAX_HEAD);
	if (!f->room && !make_room(f, err))
		return false;
	uint64_t end = f->have ? 2 * f->have : FIRST_READ; /* ahead of who asks for a few bytes at a time */
	end = end < n ? n : end;
	end = end > f->size ? f->size : end;
	end = end > f->room ? f->room : end;
	if (!file_read(f, f->have, (size_t)(end - f->have), (uint8_t *)(uintptr_t)f->base + f->have, err))
		return false;
	f->have = end;
	return true;
}

static bool take_coding(struct file *f, struct error *err)
{
	size_t mark;
	const char *other = text_coding(f->base, (size_t)f->size, &mark);

	if (other)
		return error_set(err, ERROR_FORMAT, "%s: is a text in %s, expected UTF-8", f->label, other);
	if (mark && f->room) {
		memmove((uint8_t *)(uintptr_t)f->base, f->base + mark, (size_t)f->size - mark);
		f->mark = mark;
		f->size = f->have = f->size - mark;
	}
	return true;
}

bool file_text(struct file *f, uint64_t max, struct error *err)
{
	if (f->size > max)
		return error_set(err, ERROR_FORMAT, "%s: has %" PRIu64 " bytes, expected at most %" PRIu64, f->label,
		                 f->size, max);
	bool ok = file_reach(f, f->size, err) && file_same(f, err) && take_coding(f, err) &&
	          !file_is_stand_in(f->base, f->size, f->label, err);
	file_rest(f);
	return ok;
}

void file_trim(struct file *f, uint64_t n)
{
	uint64_t keep = pages(n);

	if (!f->room || keep >= f->room)
		return;
	munmap((uint8_t *)(uintptr_t)f->base + keep, (size_t)(f->room - keep));
	f->room = keep;
	f->have = f->have < keep ? f->have : keep;
	f->base = keep ? f->base : NULL;
}
