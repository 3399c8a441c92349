/* loaders/mapped.h - a file mapped for reading, and a cursor that cannot leave it.
 *
 * Owns: the mapping of one regular file and the name by which messages call it. Never: writes, reads
 * ahead, or hands out an address that was not first compared with the bytes that are left.
 *
 * A file that is cut while it is mapped raises SIGBUS in whoever touches the missing pages; no check at
 * open can prevent that, and a lock would only bind programs that ask for it. Whoever replaces a model
 * file must therefore rename a new one into place, never write into the old one.
 */
#ifndef LOADERS_MAPPED_H
#define LOADERS_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

struct mapped {
	const uint8_t *base;
	uint64_t size;
	bool owned;          /* mapped here; false: the caller's memory */
	char label[200];     /* the path, quoted for messages; a long one keeps its end */
};

/* Refuses anything but a non-empty regular file, without ever blocking. */
bool mapped_open(struct mapped *m, const char *path, struct error *err);
/* The caller's memory under a name, for readers that expect a mapped file. */
void mapped_borrow(struct mapped *m, const void *bytes, uint64_t n, const char *name);
void mapped_close(struct mapped *m);
/* Writes the path as messages show it. */
void mapped_label(char out[200], const char *path);

struct cursor {
	const uint8_t *base;
	uint64_t at, end;
};

static inline uint64_t cursor_left(const struct cursor *c)
{
	return c->end - c->at;
}

static inline bool cursor_skip(struct cursor *c, uint64_t n)
{
	if (n > cursor_left(c))
		return false;
	c->at += n;
	return true;
}

static inline bool cursor_u32(struct cursor *c, uint32_t *out)
{
	if (cursor_left(c) < sizeof *out)
		return false;
	memcpy(out, c->base + c->at, sizeof *out);
	c->at += sizeof *out;
	return true;
}

static inline bool cursor_u64(struct cursor *c, uint64_t *out)
{
	if (cursor_left(c) < sizeof *out)
		return false;
	memcpy(out, c->base + c->at, sizeof *out);
	c->at += sizeof *out;
	return true;
}

#endif
