/* server/request/text_file.h - small files that the server reads whole at its start: keys, templates, certificates. */
#ifndef SERVER_TEXT_FILE_H
#define SERVER_TEXT_FILE_H

#include <stddef.h>

#include "base/error.h"

/* At most `max` bytes, malloc'ed and 0-terminated. NULL: err. */
char *text_file_read(const char *path, size_t max, size_t *n, struct error *err);

#endif
