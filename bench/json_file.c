#include "bench/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/json_read.h"

/* All bytes of a file or a pipe, or some more than `max`; NULL: err. */
static char *read_bytes(const char *path, uint64_t max, const char *label, size_t *n, struct error *err)
{
	FILE *f = fopen(path, "rbe");
	char *bytes = NULL, *more;
	size_t capacity = 0;
	bool ok = f != NULL;

	for (*n = 0; ok && !feof(f) && *n <= max; ok = !ferror(f)) {
		if (*n == capacity) {
			capacity = capacity ? 2 * capacity : 1 << 16;
			if (!(more = realloc(bytes, capacity))) {
				ok = error_set(err, ERROR_MEMORY, "%s: no memory for its bytes", label);
				break;
			}
			bytes = more;
		}
		*n += fread(bytes + *n, 1, capacity - *n, f);
	}
	if (!ok)
		error_set(err, ERROR_IO, "%s: cannot be read: %s", label, strerror(errno));
	if (f)
		fclose(f);
	if (ok)
		return bytes;
	free(bytes);
	return NULL;
}

json_t *json_file_read(const char *path, uint64_t max, struct error *err)
{
	char label[200];
	size_t n, mark = 0;

	error_quote(label, sizeof label, path, strlen(path));
	char *bytes = read_bytes(path, max, label, &n, err);
	if (bytes)
		text_coding(bytes, n, &mark); /* another one is refused by json_read() */
	json_t *o = bytes ? json_read(bytes + mark, n - mark, max, label, err) : NULL;
	free(bytes);
	return o;
}
