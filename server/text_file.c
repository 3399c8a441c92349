/* server/text_file.c - small files that the server reads whole at its start. */
#include "server/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_file_read(const char *path, size_t most, size_t *n, struct error *err)
{
	FILE *f = fopen(path, "rbe");
	char *text = f ? malloc(most + 1) : NULL;
	bool ok;

	errno = f && !text ? ENOMEM : errno;
	*n = text ? fread(text, 1, most + 1, f) : 0;
	ok = text && !ferror(f);
	if (!ok)
		error_set(err, ERROR_IO, "%s: cannot be read: %s", path, strerror(errno));
	else if (*n > most)
		ok = error_set(err, ERROR_FORMAT, "%s: has more than %zu bytes", path, most);
	else
		text[*n] = 0;
	if (f)
		fclose(f);
	if (ok)
		return text;
	free(text);
	return NULL;
}
