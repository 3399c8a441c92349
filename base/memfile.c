#include "base/memfile.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for n bytes where the stream is, and the 0. */
static bool has_room(struct memfile *m, size_t n)
{
	size_t capacity = m->capacity ? m->capacity : 512;

	if (n >= SIZE_MAX / 2 - m->at)
		return false;
	while (capacity <= m->at + n)
		capacity *= 2;
	char *wider = capacity == m->capacity ? m->bytes : realloc(m->bytes, capacity);
	if (!wider)
		return false;
	m->bytes = wider;
	m->capacity = capacity;
	return true;
}

static ssize_t keep(void *user, const char *p, size_t n)
{
	struct memfile *m = user;

	if (m->cut || !has_room(m, n)) {
		m->cut = true;
		errno = ENOMEM;
		return 0; /* glibc's way to say it; a negative count is no error to it */
	}
	memcpy(m->bytes + m->at, p, n);
	m->at += n;
	m->n = m->at > m->n ? m->at : m->n;
	return (ssize_t)n;
}

/* To what was written, or behind it. */
static int seek(void *user, off64_t *to, int whence)
{
	struct memfile *m = user;
	off64_t from = whence == SEEK_SET ? 0 : (off64_t)(whence == SEEK_CUR ? m->at : m->n);

	if (*to < -from || *to > (off64_t)m->n - from) {
		errno = EINVAL;
		return -1;
	}
	m->at = (size_t)(from + *to);
	*to = (off64_t)m->at;
	return 0;
}

bool memfile_open(struct memfile *m)
{
	*m = (struct memfile){ 0 };
	m->out = has_room(m, 0) ? fopencookie(m, "w", (cookie_io_functions_t){ .write = keep, .seek = seek }) : NULL;
	m->cut = m->out == NULL;
	return m->out != NULL;
}

char *memfile_take(struct memfile *m, size_t *n)
{
	bool failed = m->out && ferror(m->out);

	if (m->out && fclose(m->out) != 0)
		failed = true;
	m->cut = m->cut || failed;
	if (m->cut) {
		free(m->bytes);
		m->bytes = NULL;
		m->n = 0;
	} else {
		m->bytes[m->n] = 0;
	}
	char *bytes = m->bytes;
	if (n)
		*n = m->n;
	*m = (struct memfile){ 0 };
	return bytes;
}
