#include "base/text.h"

unsigned text_char(const void *bytes, size_t n, uint32_t *code)
{
	static const uint32_t min[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = bytes;
	unsigned length =
		n == 0                  ? 0
		: p[0] < 0x80           ? 1
		: (p[0] & 0xe0) == 0xc0 ? 2
		: (p[0] & 0xf0) == 0xe0 ? 3
		: (p[0] & 0xf8) == 0xf0 ? 4
					: 0;

	if (!length || length > n)
		return 0;
	uint32_t c = length == 1 ? p[0] : p[0] & (0x7fu >> length);
	for (unsigned i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < min[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*code = c;
	return length;
}

bool text_is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

bool text_misleads(uint32_t code)
{
	return text_is_control(code) || code == 0x2028 || code == 0x2029 || code == 0x061c || code == 0x200e ||
	       code == 0x200f || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

unsigned text_spell(uint32_t code, uint8_t out[4])
{
	unsigned n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (unsigned i = n; i-- > 1; code >>= 6)
		out[i] = (uint8_t)(0x80 | (code & 0x3f));
	out[0] = (uint8_t)(n == 1 ? code : (0xff00 >> n & 0xff) | code);
	return n;
}

static bool is_plain_letter(uint8_t c) { return (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n' || c == '\r'; }

const char *text_coding(const void *bytes, size_t n, size_t *mark)
{
	const uint8_t *p = bytes;

	*mark = n >= 3 && p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf ? 3 : 0;
	if (n >= 4 &&
	    ((p[0] == 0xff && p[1] == 0xfe && !p[2] && !p[3]) || (!p[0] && !p[1] && p[2] == 0xfe && p[3] == 0xff) ||
	     (is_plain_letter(p[0]) && !p[1] && !p[2] && !p[3]) || (!p[0] && !p[1] && !p[2] && is_plain_letter(p[3]))))
		return "UTF-32";
	if (n >= 2 && ((p[0] == 0xff && p[1] == 0xfe) || (p[0] == 0xfe && p[1] == 0xff)))
		return "UTF-16";
	if (n >= 4 && ((is_plain_letter(p[0]) && !p[1] && is_plain_letter(p[2]) && !p[3]) ||
	               (!p[0] && is_plain_letter(p[1]) && !p[2] && is_plain_letter(p[3]))))
		return "UTF-16";
	return NULL;
}
