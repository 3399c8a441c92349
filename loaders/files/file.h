/* loaders/files/file.h - a regular file that is read, never mapped, and a cursor that cannot leave it.
 *
 * Owns: the descriptor, a copy of the file's first bytes (a header, or a whole text), and the name that messages use.
 * Parsers look at the copy alone, so what was checked is what is used, whatever happens to the file meanwhile. What
 * follows a header is read piece by piece into the caller's memory.
 *
 * A file that changes is noticed by its size and its time of change: callers ask file_same() after their last read,
 * and a short read asks by itself. A file that is replaced, by renaming another to its name, stays readable through
 * the descriptor. Two changes go unnoticed: one within the same tick of the file system's clock as the write before it
 * (some milliseconds), and one whose author sets the time back.
 *
 * Never: writes, blocks on a FIFO, or hands out an address that was not first compared with the bytes that are there.
 */
#ifndef LOADERS_FILE_H
#define LOADERS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "base/error.h"

enum { FILE_MAX_HEAD = 1 << 28 }; /* bytes that are ever copied; the largest headers and tokenizers have some 30 MB */

struct file {
	const uint8_t *base; /* its first `have` bytes; they never move */
	uint64_t have, size;
	uint64_t room; /* bytes set aside at base; 0: the caller's memory, or nothing yet */
	uint64_t mark; /* bytes before base that say how a text is spelled, and are no part of it */
	int fd;
	bool is_open; /* fd is */
	char *path;   /* NULL: the caller's memory */
	dev_t device;
	ino_t inode;
	struct timespec written; /* as it was opened */
	char label[200];         /* the path, quoted for messages; a long one keeps its end */
};

/* Refuses anything but a non-empty regular file, without ever blocking. Reads nothing yet. */
bool file_open(struct file *f, const char *path, struct error *err);
/* The caller's memory under a name, for readers that expect a file. */
void file_memory(struct file *f, const void *bytes, uint64_t n, const char *name);
/* All zero is closed. */
void file_close(struct file *f);
/* Writes the path as messages show it. */
void file_label(char out[200], const char *path);

/* Sees to it that the first n bytes, of which the file must have that many, are at base. */
bool file_reach(struct file *f, uint64_t n, struct error *err);
/* The whole of a text in UTF-8, without a byte order mark, which may have so many bytes; the descriptor is closed. What
 * stands in for a file that was not downloaded is refused. */
bool file_text(struct file *f, uint64_t max, struct error *err);
/* Gives back what the copy has beyond n bytes. */
void file_trim(struct file *f, uint64_t n);

/* Copies bytes that lie within the file's size. From any thread. */
bool file_read(const struct file *f, uint64_t offset, size_t n, void *out, struct error *err);
/* Whether the file is still what was opened; false is the sentence that says what became of it. */
bool file_same(const struct file *f, struct error *err);
/* What a reader of the file concluded, ok or why not; but when the file changed meanwhile, that. */
bool file_verdict(const struct file *f, bool ok, const struct error *why, struct error *err);
/* Closes the descriptor and keeps the copy. Further reads open the path anew each time, and it must be the same
 * file still. */
void file_rest(struct file *f);

struct cursor {
	struct file *file;
	uint64_t at;
	struct error *err; /* set when false does not mean that too few bytes are left */
};

static inline uint64_t cursor_left(const struct cursor *c) { return c->file->size - c->at; }

static inline bool cursor_skip(struct cursor *c, uint64_t n)
{
	if (n > cursor_left(c))
		return false;
	if (c->at + n > c->file->have && !file_reach(c->file, c->at + n, c->err))
		return false;
	c->at += n;
	return true;
}

static inline bool cursor_u32(struct cursor *c, uint32_t *out)
{
	if (!cursor_skip(c, sizeof *out))
		return false;
	memcpy(out, c->file->base + c->at - sizeof *out, sizeof *out);
	return true;
}

static inline bool cursor_u64(struct cursor *c, uint64_t *out)
{
	if (!cursor_skip(c, sizeof *out))
		return false;
	memcpy(out, c->file->base + c->at - sizeof *out, sizeof *out);
	return true;
}

#endif
