/* jit/store/container.h - packed models (.jkm) as files: sections with checksums, that a process may map.
 *
 * Owns: the layout, and which sections there may be. What is in a section is its reader's: runtime/packed and
 * jit/store/pack. Numbers are little-endian:
 *
 *   header   0 magic (8)  8 version  12 sections  16 file bytes (8)  24 offset of the index (8)
 *            32 checksum of the index (8)  40 zero (16)  56 checksum of the header (8)
 *   bytes of the sections, in their order: each begins at the next page, one of 2 MiB or more at the next 2 MiB
 *   index    at the next page: a record for each section, then a checksum for each MiB of each section
 *
 *   record   0 kind  4 number  8 offset (8)  16 bytes (8)  24 layout (8)  32 name (32), zeros behind it
 *
 * No time, no path and no processor is in it, so that the same sections give the same file wherever it is made.
 *
 * WHAT IS CHECKED WHEN. Opening compares the checksums of header and index, and every offset with where the section
 * must lie. container_load() compares a section's checksums while it copies it. What is mapped is not compared before
 * it is used: container_verify() does that, and writing begins with nothing else.
 *
 * A mapped file that is cut ends the process that reads it there, so only files that nobody but this user and root can
 * write are mapped: container_trusted().
 */
#ifndef JIT_CONTAINER_H
#define JIT_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { CONTAINER_VERSION = 1, CONTAINER_CHUNK = 1 << 20, CONTAINER_NAME = 32, CONTAINER_MAX_SECTIONS = 1 << 14 };

/* number says which of several, in a way that is the kind's own. */
enum container_kind {
	CONTAINER_SOURCE = 1, /* a header or a text of the model's files; number: enum model_source_role */
	CONTAINER_VECTORS,    /* norms and biases, as kernels read them */
	CONTAINER_KERNELS,    /* a pack */
	CONTAINER_WEIGHTS,    /* matrices, as kernels read them; number: enum weight_layout */
	CONTAINER_ORIGIN,     /* what a cached file was made from */
	CONTAINER_KINDS
};

struct container_section {
	enum container_kind kind;
	uint32_t number;
	uint64_t offset, bytes; /* in the file */
	uint64_t layout;        /* names what the bytes mean, where that can change; else 0 */
	char name[CONTAINER_NAME];
	uint64_t first_chunk; /* of all sections' checksums */
};

/* ---- reading; thread-safe */

struct container;
/* Whether the file begins as one; false, too, for what is no file that can be read. */
bool container_is(const char *path);
bool container_is_fd(int fd);
struct container *container_open(const char *path, struct error *err);
/* The same of an open file, which the caller closes. */
struct container *container_open_fd(int fd, const char *path, struct error *err);
void container_close(struct container *c);

const char *container_name(const struct container *c); /* as messages quote it */
int container_fd(const struct container *c);
uint64_t container_bytes(const struct container *c);
size_t container_count(const struct container *c);
const struct container_section *container_get(const struct container *c, size_t i);
/* The first of a kind and number. NULL: there is none. */
const struct container_section *container_find(const struct container *c, enum container_kind kind, uint32_t number);

/* Bytes of a section, with nothing compared. */
bool container_read(const struct container *c, const struct container_section *s, uint64_t offset, size_t n, void *out,
                    struct error *err);
/* All of a section, malloc'ed, compared with its checksums. NULL: err. */
uint8_t *container_load(const struct container *c, const struct container_section *s, struct error *err);
/* A CONTAINER_CHUNK of a section, or what is left of it, which *n says, compared with its checksum. */
bool container_load_chunk(const struct container *c, const struct container_section *s, uint64_t chunk, void *out,
                          size_t *n, struct error *err);
/* The pages of the file, read-only and shared, for system_unmap(). NULL: err. */
const uint8_t *container_map(const struct container *c, const struct container_section *s, struct error *err);
/* Compares a section with its checksums. */
bool container_verify(const struct container *c, const struct container_section *s, struct error *err);
/* Whether only this user and root can have written the file. */
bool container_trusted(const struct container *c, struct error *err);
/* Whether the file is still as it was opened, by its size and its time of change. */
bool container_same(const struct container *c, struct error *err);

/* ---- writing */

struct container_writer;
/* Beside path, which is replaced when all is there. mode: less the umask. NULL: err. */
struct container_writer *container_begin(const char *path, unsigned mode, struct error *err);
/* Adds a section of s->bytes; its offset and first_chunk are decided here. content NULL: it is zeros until
 * container_write() comes. False: err. */
bool container_add(struct container_writer *w, const struct container_section *s, const void *content,
                   struct error *err);
/* Bytes of the section added last; from many threads. */
bool container_write(struct container_writer *w, uint64_t offset, const void *bytes, size_t n, struct error *err);
/* Reads all back for the checksums, writes index and header, syncs and renames; the writer is gone. *bytes: of the
 * file. */
bool container_commit(struct container_writer *w, uint64_t *bytes, struct error *err);
void container_abandon(struct container_writer *w); /* NULL is fine */

#endif
