/* jit/store/container.c - packed models as files: opened, read and mapped. Every number in a file is hostile until
 * checked. */
#include "jit/store/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/store/container_layout.h"
#include "jit/store/record.h"
#include "jit/store/safefile.h"

struct container {
	int fd;
	struct stat seen;
	uint64_t bytes;
	uint8_t *index; /* as it is in the file */
	const uint8_t *sums;
	struct container_section *section;
	uint32_t n;
	char name[256];
};

uint64_t container_offset(uint64_t end, uint64_t bytes)
{
	uint64_t align = bytes >= CONTAINER_LARGE ? CONTAINER_LARGE : CONTAINER_PAGE;

	return (end + align - 1) / align * align;
}

uint64_t container_chunks(uint64_t bytes) { return (bytes + CONTAINER_CHUNK - 1) / CONTAINER_CHUNK; }

/* --- opening */

static bool damaged(const struct container *c, const char *field, uint64_t value, uint64_t expected, struct error *err)
{
	return error_set(err, ERROR_FORMAT, "the packed model %s is damaged: its %s is %llu, expected %llu", c->name,
	                 field, (unsigned long long)value, (unsigned long long)expected);
}

static bool read_at(const struct container *c, void *out, size_t n, uint64_t at, struct error *err)
{
	if (safefile_read(c->fd, out, n, (off_t)at))
		return true;
	return error_set(err, ERROR_IO, "%zu bytes at %llu of the packed model %s cannot be read: %s", n,
	                 (unsigned long long)at, c->name, errno ? strerror(errno) : "the file became shorter");
}

static bool check_version(const struct container *c, const uint8_t *h, struct error *err)
{
	uint32_t version = record_get32(h + CONTAINER_AT_VERSION);

	if (memcmp(h, container_magic, sizeof container_magic))
		return error_set(err, ERROR_FORMAT, "%s is no packed model: it begins with other bytes", c->name);
	if (version == __builtin_bswap32(CONTAINER_VERSION))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the packed model %s has big-endian numbers, expected little-endian ones", c->name);
	if (version != CONTAINER_VERSION)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the packed model %s has version %u, expected %d: it was made by another version of "
		                 "jitrun; pack it again",
		                 c->name, version, CONTAINER_VERSION);
	return true;
}

static bool check_header(struct container *c, const uint8_t *h, uint64_t *index, struct error *err)
{
	if (!check_version(c, h, err))
		return false;
	if (record_get64(h + CONTAINER_AT_SUM) != record_checksum(h, CONTAINER_AT_SUM, CONTAINER_VERSION))
		return error_set(err, ERROR_FORMAT,
		                 "the packed model %s is damaged: the checksum of its header does not fit", c->name);
	if (record_get64(h + CONTAINER_AT_BYTES) != c->bytes)
		return damaged(c, "size", c->bytes, record_get64(h + CONTAINER_AT_BYTES), err);
	c->n = record_get32(h + CONTAINER_AT_SECTIONS);
	if (c->n > CONTAINER_MAX_SECTIONS)
		return damaged(c, "number of sections", c->n, CONTAINER_MAX_SECTIONS, err);
	*index = record_get64(h + CONTAINER_AT_INDEX);
	if (*index > c->bytes || *index < CONTAINER_HEADER)
		return damaged(c, "offset of the index", *index, c->bytes, err);
	uint64_t max = c->n * (uint64_t)(CONTAINER_RECORD + 8) + container_chunks(c->bytes) * 8;
	if (c->bytes - *index > max)
		return damaged(c, "size of the index", c->bytes - *index, max, err);
	return true;
}

/* Where a section lies is no choice: behind the one before it. */
static bool read_section(struct container *c, uint32_t i, uint64_t index, struct error *err)
{
	const uint8_t *r = c->index + (size_t)i * CONTAINER_RECORD;
	struct container_section *s = &c->section[i], *before = i ? s - 1 : NULL;
	uint32_t kind = record_get32(r);
	uint64_t end = before ? before->offset + before->bytes : CONTAINER_HEADER;

	*s = (struct container_section){ .kind = (enum container_kind)kind,
		                         .number = record_get32(r + 4),
		                         .offset = record_get64(r + 8),
		                         .bytes = record_get64(r + 16),
		                         .layout = record_get64(r + 24) };
	for (int k = 0; k < CONTAINER_NAME - 1 && r[32 + k]; k++) /* sentences quote it */
		s->name[k] = (char)(r[32 + k] > ' ' && r[32 + k] < 0x7f ? r[32 + k] : '?');
	s->first_chunk = before ? before->first_chunk + container_chunks(before->bytes) : 0;
	if (kind < 1 || kind >= CONTAINER_KINDS)
		return damaged(c, "kind of a section", kind, CONTAINER_KINDS - 1, err);
	if (s->bytes > c->bytes)
		return damaged(c, "size of a section", s->bytes, c->bytes, err);
	if (s->offset != container_offset(end, s->bytes))
		return damaged(c, "offset of a section", s->offset, container_offset(end, s->bytes), err);
	if (s->offset > index || s->bytes > index - s->offset)
		return damaged(c, "end of a section", s->offset + s->bytes, index, err);
	return true;
}

static bool read_sections(struct container *c, uint64_t index, struct error *err)
{
	uint64_t bytes = c->bytes - index, chunks = 0, end = CONTAINER_HEADER;

	for (uint32_t i = 0; i < c->n; i++) {
		if (!read_section(c, i, index, err))
			return false;
		chunks += container_chunks(c->section[i].bytes);
		end = c->section[i].offset + c->section[i].bytes;
	}
	uint64_t expected = c->n * (uint64_t)CONTAINER_RECORD + 8 * chunks;
	if (bytes != expected)
		return damaged(c, "size of the index", bytes, expected, err);
	if (index != container_offset(end, 0))
		return damaged(c, "offset of the index", index, container_offset(end, 0), err);
	c->sums = c->index + (size_t)c->n * CONTAINER_RECORD;
	return true;
}

static bool read_index(struct container *c, struct error *err)
{
	uint8_t header[CONTAINER_HEADER];
	uint64_t index = 0;

	if (c->bytes < sizeof header)
		return error_set(err, ERROR_FORMAT,
		                 "the packed model %s is damaged: it has %llu bytes, expected at least %zu", c->name,
		                 (unsigned long long)c->bytes, sizeof header);
	if (!read_at(c, header, sizeof header, 0, err) || !check_header(c, header, &index, err))
		return false;
	size_t bytes = (size_t)(c->bytes - index);
	if (bytes < c->n * (size_t)CONTAINER_RECORD)
		return damaged(c, "size of the index", bytes, c->n * (uint64_t)CONTAINER_RECORD, err);
	c->index = malloc(bytes + 1);
	c->section = calloc(c->n + 1, sizeof *c->section);
	if (!c->index || !c->section)
		return error_set(err, ERROR_MEMORY, "no memory for the %zu bytes of the index of the packed model %s",
		                 bytes, c->name);
	if (!read_at(c, c->index, bytes, index, err))
		return false;
	if (record_get64(header + CONTAINER_AT_INDEX_SUM) != record_checksum(c->index, bytes, CONTAINER_VERSION))
		return error_set(err, ERROR_FORMAT,
		                 "the packed model %s is damaged: the checksum of its index does not fit", c->name);
	return read_sections(c, index, err);
}

/* Non-blocking: a pipe in its place would wait for a writer. */
static int open_path(const char *path) { return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); }

bool container_is_fd(int fd)
{
	char magic[sizeof container_magic] = "";
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && safefile_read(fd, magic, sizeof magic, 0) &&
	       memcmp(magic, container_magic, sizeof magic) == 0;
}

bool container_is(const char *path)
{
	int fd = open_path(path);
	bool yes = fd >= 0 && container_is_fd(fd);

	if (fd >= 0)
		close(fd);
	return yes;
}

/* Takes the descriptor; a negative one is errno's. */
static struct container *open_own(int fd, const char *path, struct error *err)
{
	struct container *c = calloc(1, sizeof *c);
	int why = errno;

	if (!c) {
		error_set(err, ERROR_MEMORY, "no memory for a packed model");
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	error_quote(c->name, sizeof c->name, path, strlen(path));
	c->fd = fd;
	errno = why;
	bool good = fd >= 0 && fstat(fd, &c->seen) == 0;
	if (!good)
		error_set(err, ERROR_IO, "cannot open the packed model %s: %s", c->name, strerror(errno));
	else if (!S_ISREG(c->seen.st_mode))
		good = error_set(err, ERROR_FORMAT, "%s is no packed model: it is no regular file", c->name);
	if (good) {
		c->bytes = (uint64_t)c->seen.st_size;
		good = read_index(c, err);
	}
	if (good)
		return c;
	container_close(c);
	return NULL;
}

struct container *container_open(const char *path, struct error *err) { return open_own(open_path(path), path, err); }

struct container *container_open_fd(int fd, const char *path, struct error *err)
{
	return open_own(fcntl(fd, F_DUPFD_CLOEXEC, 0), path, err);
}

void container_close(struct container *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	free(c->index);
	free(c->section);
	free(c);
}

/* --- what is in it */

const char *container_name(const struct container *c) { return c->name; }
int container_fd(const struct container *c) { return c->fd; }
uint64_t container_bytes(const struct container *c) { return c->bytes; }
size_t container_count(const struct container *c) { return c->n; }
const struct container_section *container_get(const struct container *c, size_t i) { return &c->section[i]; }

const struct container_section *container_find(const struct container *c, enum container_kind kind, uint32_t number)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->section[i].kind == kind && c->section[i].number == number)
			return &c->section[i];
	return NULL;
}

bool container_read(const struct container *c, const struct container_section *s, uint64_t offset, size_t n, void *out,
                    struct error *err)
{
	if (offset > s->bytes || n > s->bytes - offset)
		return error_set(err, ERROR_ARGUMENT, "%zu bytes at %llu are not within a section of %llu", n,
		                 (unsigned long long)offset, (unsigned long long)s->bytes);
	return read_at(c, out, n, s->offset + offset, err);
}

bool container_load_chunk(const struct container *c, const struct container_section *s, uint64_t chunk, void *out,
                          size_t *n, struct error *err)
{
	uint64_t at = chunk * CONTAINER_CHUNK, left = s->bytes - at;

	*n = (size_t)(left < CONTAINER_CHUNK ? left : CONTAINER_CHUNK);
	if (!container_read(c, s, at, *n, out, err))
		return false;
	if (record_get64(c->sums + 8 * (size_t)(s->first_chunk + chunk)) == record_checksum(out, *n, s->kind))
		return true;
	return error_set(
		err, ERROR_FORMAT,
		"the packed model %s is damaged: the checksum of %zu bytes at %llu, of its section %s, does not fit",
		c->name, *n, (unsigned long long)(s->offset + at), s->name);
}

uint8_t *container_load(const struct container *c, const struct container_section *s, struct error *err)
{
	uint8_t *p = malloc((size_t)s->bytes + 1);
	bool good = p || error_set(err, ERROR_MEMORY, "no memory for %llu bytes of the packed model %s",
	                           (unsigned long long)s->bytes, c->name);
	size_t n;

	for (uint64_t i = 0; good && i < container_chunks(s->bytes); i++)
		good = container_load_chunk(c, s, i, p + i * CONTAINER_CHUNK, &n, err);
	if (good)
		return p;
	free(p);
	return NULL;
}

bool container_verify(const struct container *c, const struct container_section *s, struct error *err)
{
	uint8_t *p = malloc(CONTAINER_CHUNK);
	bool good = p || error_set(err, ERROR_MEMORY, "no memory to check the packed model %s", c->name);
	size_t n;

	for (uint64_t i = 0; good && i < container_chunks(s->bytes); i++)
		good = container_load_chunk(c, s, i, p, &n, err);
	free(p);
	return good;
}

const uint8_t *container_map(const struct container *c, const struct container_section *s, struct error *err)
{
	void *p = mmap(NULL, (size_t)s->bytes, PROT_READ, MAP_SHARED, c->fd, (off_t)s->offset);

	if (p == MAP_FAILED) {
		error_set(err, errno == ENOMEM ? ERROR_MEMORY : ERROR_IO,
		          "%llu bytes of the packed model %s cannot be mapped: %s", (unsigned long long)s->bytes,
		          c->name, strerror(errno));
		return NULL;
	}
	madvise(p, (size_t)s->bytes, MADV_HUGEPAGE); /* where the file system has huge pages in the page cache */
	madvise(p, (size_t)s->bytes, MADV_WILLNEED);
	return p;
}

bool container_trusted(const struct container *c, struct error *err)
{
	return safefile_trusted(&c->seen, "the packed model", c->name, err);
}

bool container_same(const struct container *c, struct error *err)
{
	struct stat now;

	if (fstat(c->fd, &now))
		return error_set(err, ERROR_IO, "the packed model %s cannot be examined: %s", c->name, strerror(errno));
	bool same = now.st_size == c->seen.st_size && now.st_mtim.tv_sec == c->seen.st_mtim.tv_sec &&
	            now.st_mtim.tv_nsec == c->seen.st_mtim.tv_nsec;
	return same || error_set(err, ERROR_IO,
	                         "the packed model %s changed while it was in use (it had %llu bytes, now it has %lld)",
	                         c->name, (unsigned long long)c->bytes, (long long)now.st_size);
}
