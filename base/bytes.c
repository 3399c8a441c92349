/* base/bytes.c - bytes that grow. */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void bytes_add(struct bytes *b, const void *p, size_t n)
{
	if (b->lost || n == 0)
		return;
	if (!array_grow((void **)&b->p, &b->capacity, b->n + n, 1)) {
		b->lost = true;
		return;
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void bytes_text(struct bytes *b, const char *text) { bytes_add(b, text, strlen(text)); }

void bytes_print(struct bytes *b, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof text)
		b->lost = true;
	else
		bytes_add(b, text, (size_t)n);
}

void bytes_take(struct bytes *b, char *text)
{
	if (text)
		bytes_text(b, text);
	else
		b->lost = true;
	free(text);
}

void bytes_clear(struct bytes *b) { b->n = b->at = 0; }

void bytes_free(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){ 0 };
}
