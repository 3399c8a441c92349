/* base/bytes.h - bytes that grow. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
	char *p;                /* n bytes; NULL: none yet */
	size_t n, at, capacity; /* at: how many of them are on their way already */
	bool lost;              /* there was no memory for some */
};

void bytes_add(struct bytes *b, const void *p, size_t n);
void bytes_text(struct bytes *b, const char *text);
void bytes_print(struct bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What a function that makes texts gave: appended and freed; NULL: lost. */
void bytes_take(struct bytes *b, char *text);
void bytes_clear(struct bytes *b); /* keeps the memory */
void bytes_free(struct bytes *b);

#endif
