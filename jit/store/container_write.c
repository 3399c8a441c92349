/* jit/store/container_write.c - writes packed models: sections one behind the other into a temporary file, then the
 * index, and last the header, without which it is none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/container_layout.h"
#include "jit/store/record.h"
#include "jit/store/safefile.h"

struct container_writer {
	struct safefile file;
	int dir;
	char name[256], path[201]; /* for sentences; in its directory */
	struct container_section section[CONTAINER_MAX_SECTIONS];
	uint32_t n;
};

struct container_writer *container_begin(const char *path, unsigned mode, struct error *err)
{
	struct container_writer *w = calloc(1, sizeof *w);
	const char *name;

	if (!w) {
		error_set(err, ERROR_MEMORY, "no memory to write a packed model");
		return NULL;
	}
	w->dir = safefile_directory(path, "the packed model", &name, w->name, err);
	if (w->dir < 0) {
		free(w);
		return NULL;
	}
	strcpy(w->path, name);
	safefile_sweep(w->dir, w->path);
	enum safefile_step step = safefile_begin(&w->file, w->dir, w->path, mode);
	if (!step)
		return w;
	safefile_failed(step, "the packed model", w->name, err);
	close(w->dir);
	free(w);
	return NULL;
}

void container_abandon(struct container_writer *w)
{
	if (!w)
		return;
	safefile_abandon(&w->file);
	close(w->dir);
	free(w);
}

static bool write_at(struct container_writer *w, uint64_t at, const void *bytes, size_t n, struct error *err)
{
	for (const uint8_t *p = bytes; n;) {
		ssize_t r = pwrite(w->file.fd, p, n, (off_t)at);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return safefile_failed(SAFEFILE_WRITE, "the packed model", w->name, err);
		p += r;
		at += (uint64_t)r;
		n -= (size_t)r;
	}
	return true;
}

/* The file grows to the section's end at once: what is not written there is zeros. */
bool container_add(struct container_writer *w, const struct container_section *s, const void *content,
                   struct error *err)
{
	struct container_section *own = &w->section[w->n], *before = w->n ? own - 1 : NULL;

	if (w->n == CONTAINER_MAX_SECTIONS)
		return error_set(err, ERROR_UNSUPPORTED, "the packed model %s would have more than %d sections",
		                 w->name, CONTAINER_MAX_SECTIONS);
	*own = *s;
	own->offset = container_offset(before ? before->offset + before->bytes : CONTAINER_HEADER, s->bytes);
	own->first_chunk = before ? before->first_chunk + container_chunks(before->bytes) : 0;
	uint64_t end = own->offset + own->bytes;
	if (s->bytes > INT64_MAX / 2 || end > INT64_MAX / 2)
		return error_set(err, ERROR_UNSUPPORTED, "the packed model %s would have %llu bytes", w->name,
		                 (unsigned long long)end);
	if (!safefile_may_grow_to(end) || ftruncate(w->file.fd, (off_t)end))
		return safefile_failed(SAFEFILE_WRITE, "the packed model", w->name, err);
	w->n++;
	return !content || write_at(w, own->offset, content, (size_t)own->bytes, err);
}

bool container_write(struct container_writer *w, uint64_t offset, const void *bytes, size_t n, struct error *err)
{
	return write_at(w, w->section[w->n - 1].offset + offset, bytes, n, err);
}

static bool sum_section(struct container_writer *w, const struct container_section *s, uint8_t *sums, uint8_t *buffer,
                        struct error *err)
{
	for (uint64_t at = 0, i = s->first_chunk; at < s->bytes; at += CONTAINER_CHUNK, i++) {
		size_t n = s->bytes - at < CONTAINER_CHUNK ? (size_t)(s->bytes - at) : CONTAINER_CHUNK;
		if (!safefile_read(w->file.fd, buffer, n, (off_t)(s->offset + at)))
			return error_set(err, ERROR_IO, "cannot read back the packed model %s: %s", w->name,
			                 errno ? strerror(errno) : "it is shorter than what was written");
		record_put64(sums + 8 * (size_t)i, record_checksum(buffer, n, s->kind));
	}
	return true;
}

static bool fill_index(struct container_writer *w, uint8_t *index, uint8_t *buffer, struct error *err)
{
	for (uint32_t i = 0; i < w->n; i++) {
		const struct container_section *s = &w->section[i];
		uint8_t *r = index + (size_t)i * CONTAINER_RECORD;
		record_put32(r, s->kind);
		record_put32(r + 4, s->number);
		record_put64(r + 8, s->offset);
		record_put64(r + 16, s->bytes);
		record_put64(r + 24, s->layout);
		memcpy(r + 32, s->name, strnlen(s->name, CONTAINER_NAME - 1));
		if (!sum_section(w, s, index + (size_t)w->n * CONTAINER_RECORD, buffer, err))
			return false;
	}
	return true;
}

static bool write_end(struct container_writer *w, const uint8_t *index, size_t n, uint64_t at, struct error *err)
{
	uint8_t header[CONTAINER_HEADER] = { 0 };

	memcpy(header, container_magic, sizeof container_magic);
	record_put32(header + CONTAINER_AT_VERSION, CONTAINER_VERSION);
	record_put32(header + CONTAINER_AT_SECTIONS, w->n);
	record_put64(header + CONTAINER_AT_BYTES, at + n);
	record_put64(header + CONTAINER_AT_INDEX, at);
	record_put64(header + CONTAINER_AT_INDEX_SUM, record_checksum(index, n, CONTAINER_VERSION));
	record_put64(header + CONTAINER_AT_SUM, record_checksum(header, CONTAINER_AT_SUM, CONTAINER_VERSION));
	if (!safefile_may_grow_to(at + n))
		return safefile_failed(SAFEFILE_WRITE, "the packed model", w->name, err);
	return write_at(w, at, index, n, err) && write_at(w, 0, header, sizeof header, err);
}

static bool write_index(struct container_writer *w, uint64_t *bytes, struct error *err)
{
	const struct container_section *last = w->n ? &w->section[w->n - 1] : NULL;
	uint64_t chunks = last ? last->first_chunk + container_chunks(last->bytes) : 0;
	uint64_t at = container_offset(last ? last->offset + last->bytes : CONTAINER_HEADER, 0);
	size_t n = (size_t)w->n * CONTAINER_RECORD + 8 * (size_t)chunks;
	uint8_t *index = calloc(1, n + 1), *buffer = malloc(CONTAINER_CHUNK);
	bool good = (index && buffer) ||
	            error_set(err, ERROR_MEMORY, "no memory for the index of the packed model %s", w->name);

	good = good && fill_index(w, index, buffer, err) && write_end(w, index, n, at, err);
	free(index);
	free(buffer);
	*bytes = at + n;
	return good;
}

bool container_commit(struct container_writer *w, uint64_t *bytes, struct error *err)
{
	if (!write_index(w, bytes, err)) {
		container_abandon(w);
		return false;
	}
	enum safefile_step step = safefile_commit(&w->file);
	if (step)
		safefile_failed(step, "the packed model", w->name, err);
	close(w->dir);
	free(w);
	return !step;
}
