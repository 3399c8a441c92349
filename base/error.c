#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *e, enum error_code code, const char *format, ...)
{
	va_list ap;

	if (!e || e->code != ERROR_NONE)
		return false;
	e->code = code;
	va_start(ap, format);
	int n = vsnprintf(e->text, sizeof e->text, format, ap);
	va_end(ap);
	if (n >= (int)sizeof e->text) {
		/* cut: step back over the bytes of a character that lost its end */
		size_t end = sizeof e->text - 1, i = end;
		while (i > 0 && end - i < 4 && ((unsigned char)e->text[i - 1] & 0xc0) == 0x80)
			i--;
		if (i > 0 && (unsigned char)e->text[i - 1] >= 0xc0) {
			unsigned char lead = (unsigned char)e->text[i - 1];
			size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
			if (end - (i - 1) < need)
				e->text[i - 1] = 0;
		}
	}
	return false;
}

static unsigned utf8_length(const unsigned char *p, unsigned long long left)
{
	unsigned n = p[0] < 0x80 ? 1 : (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : (p[0] & 0xf8) == 0xf0 ? 4 : 0;

	if (!n || n > left || (n == 2 && p[0] < 0xc2))
		return 0;
	for (unsigned i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))) ||
	    (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || p[0] > 0xf4 || (p[0] == 0xf4 && p[1] > 0x8f))))
		return 0;
	return n;
}

const char *error_quote(char *out, unsigned cap, const void *bytes, unsigned long long n)
{
	const unsigned char *p = bytes;
	unsigned at = 0;

	if (cap == 0)
		return out;
	for (unsigned long long i = 0; i < n;) {
		unsigned len = utf8_length(p + i, n - i);
		bool plain = len > 1 || (len == 1 && p[i] >= 0x20 && p[i] != 0x7f);
		unsigned need = plain ? len : 4;
		if (at + need + 4 > cap) {       /* room for "..." and the end */
			for (unsigned d = 0; d < 3 && at + 1 < cap; d++)
				out[at++] = '.';
			break;
		}
		if (plain)
			memcpy(out + at, p + i, len);
		else
			snprintf(out + at, 5, "\\x%02x", p[i]);
		at += need;
		i += plain ? len : 1;
	}
	out[at] = 0;
	return out;
}
