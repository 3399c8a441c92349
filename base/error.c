#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

bool error_set(struct error *e, enum error_code code, const char *format, ...)
{
	char text[4096]; /* longer than what is kept: names of files alone may be */
	va_list ap;

	if (!e || e->code != ERROR_NONE)
		return false;
	e->code = code;
	va_start(ap, format);
	int n = vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	error_quote(e->text, sizeof e->text, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
	return false;
}

const char *error_quote(char *out, unsigned cap, const void *bytes, unsigned long long n)
{
	const unsigned char *p = bytes;
	unsigned at = 0;

	if (cap == 0)
		return out;
	for (unsigned long long i = 0; i < n;) {
		uint32_t code;
		unsigned len = text_char(p + i, n - i, &code), raw = len ? len : 1;
		bool plain = len && !text_misleads(code);
		unsigned need = plain ? len : 4 * raw;
		if (at + need + 4 > cap) { /* room for "..." and the end */
			for (unsigned d = 0; d < 3 && at + 1 < cap; d++)
				out[at++] = '.';
			break;
		}
		if (plain)
			memcpy(out + at, p + i, len);
		else
			for (unsigned k = 0; k < raw; k++)
				snprintf(out + at + 4 * k, 5, "\\x%02x", p[i + k]);
		at += need;
		i += raw;
	}
	out[at] = 0;
	return out;
}
