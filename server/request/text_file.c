/* server/request/text_file.c - small files that the server reads whole at its start. */
#include "server/request/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

char *text_file_read(const char *path, size_t max, size_t *n, struct error *err)
{
	FILE *f = fopen(path, "rbe");
	char *text = f ? malloc(max + 1) : NULL;
	const char *other = NULL;
	size_t mark = 0;
	bool ok;

	errno = f && !text ? ENOMEM : errno;
	*n = text ? fread(text, 1, max + 1, f) : 0;
	ok = text && !ferror(f);
	if (ok)
		other = text_coding(text, *n, &mark);
	if (!ok)
		error_set(err, ERROR_IO, "%s: cannot be read: %s", path, strerror(errno));
	else if (*n > max)
		ok = error_set(err, ERROR_FORMAT, "%s: has more than %zu bytes", path, max);
	else if (other)
		ok = error_set(err, ERROR_FORMAT, "%s: is a text in %s, expected UTF-8", path, other);
	else
		memmove(text, text + mark, *n -= mark);
	if (ok)
		text[*n] = 0;
	if (f)
		fclose(f);
	if (ok)
		return text;
	free(text);
	return NULL;
}
