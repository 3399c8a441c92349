/* base/json_scan.c - see json_scan.h. Rule: every read of s->p[] is behind a comparison with s->end. */
#include "base/json_scan.h"

#include <string.h>

struct json_scan json_scan_of(const void *p, uint64_t n) { return (struct json_scan){ .p = p, .end = n }; }

bool json_scan_fail(struct json_scan *s, const char *problem)
{
	if (!s->problem)
		s->problem = problem;
	return false;
}

char json_scan_peek(struct json_scan *s)
{
	if (s->problem)
		return 0;
	while (s->at < s->end &&
	       (s->p[s->at] == ' ' || s->p[s->at] == '\t' || s->p[s->at] == '\n' || s->p[s->at] == '\r'))
		s->at++;
	return s->at < s->end ? s->p[s->at] : 0;
}

static const char *expected(char c)
{
	switch (c) {
	case '{': return "expected an object";
	case '[': return "expected an array";
	case ':': return "expected ':'";
	case '}': return "expected ',' or '}'";
	default: return "expected ',' or ']'";
	}
}

bool json_scan_take(struct json_scan *s, char c)
{
	if (json_scan_peek(s) != c || s->problem)
		return json_scan_fail(s, expected(c));
	s->at++;
	return true;
}

bool json_scan_more(struct json_scan *s, char close)
{
	if (json_scan_peek(s) == ',') {
		s->at++;
		return true;
	}
	json_scan_take(s, close);
	return false;
}

bool json_scan_open(struct json_scan *s, char open, char close)
{
	if (!json_scan_take(s, open))
		return false;
	if (json_scan_peek(s) != close)
		return true;
	s->at++;
	return false;
}

/* Length of the UTF-8 character at p, 0 if it is none. */
static unsigned utf8_length(const unsigned char *p, uint64_t left)
{
	static const uint32_t min[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned n = p[0] < 0x80             ? 1
	             : (p[0] & 0xe0) == 0xc0 ? 2
	             : (p[0] & 0xf0) == 0xe0 ? 3
	             : (p[0] & 0xf8) == 0xf0 ? 4
	                                     : 0;

	if (n == 1)
		return 1;
	if (n == 0 || n > left)
		return 0;
	uint32_t c = p[0] & (0x7f >> n);
	for (unsigned i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	return c < min[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const char *p, uint64_t left)
{
	int32_t v = 0;

	if (left < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(p[i]);
		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* The escape at p (p[0] is the backslash): its length, 0 if it is none; the character it stands for in *c.
 * Half a surrogate pair is an escape only when `lone` is set. */
static unsigned escape(const char *p, uint64_t left, bool lone, uint32_t *c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (left < 2)
		return 0;
	if (p[1] != 'u') {
		const char *f = p[1] ? strchr(from, p[1]) : NULL;
		if (!f)
			return 0;
		*c = (unsigned char)to[f - from];
		return 2;
	}
	int32_t high = hex4(p + 2, left - 2);
	if (high < 0)
		return 0;
	*c = (uint32_t)high;
	if (high < 0xd800 || high >= 0xe000)
		return 6;
	int32_t low = high < 0xdc00 && left >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, left - 8) : -1;
	if (low < 0xdc00 || low >= 0xe000)
		return lone ? 6 : 0;
	*c = 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
	return 12;
}

bool json_scan_string(struct json_scan *s, struct json_scan_text *out)
{
	uint32_t c;

	*out = (struct json_scan_text){ "", 0, false };
	if (json_scan_peek(s) != '"' || s->problem)
		return json_scan_fail(s, "expected a string");
	uint64_t start = ++s->at;
	while (s->at < s->end && s->p[s->at] != '"') {
		unsigned char b = (unsigned char)s->p[s->at];
		unsigned n = b == '\\'  ? escape(s->p + s->at, s->end - s->at, s->lone_surrogates, &c)
		             : b < 0x20 ? 0
		                        : utf8_length((const unsigned char *)s->p + s->at, s->end - s->at);
		if (n == 0)
			return json_scan_fail(s, b == '\\'  ? "bad escape in a string"
			                         : b < 0x20 ? "control character in a string"
			                                    : "invalid UTF-8 in a string");
		out->escaped |= b == '\\';
		s->at += n;
	}
	if (s->at >= s->end)
		return json_scan_fail(s, "string without an end");
	out->p = s->p + start;
	out->n = s->at - start;
	s->at++;
	return true;
}

bool json_scan_member(struct json_scan *s, struct json_scan_text *out)
{
	return json_scan_string(s, out) && json_scan_take(s, ':');
}

static bool is_digit(const struct json_scan *s) { return s->at < s->end && s->p[s->at] >= '0' && s->p[s->at] <= '9'; }

bool json_scan_u64(struct json_scan *s, uint64_t *out)
{
	uint64_t v = 0;

	json_scan_peek(s);
	if (s->problem || !is_digit(s))
		return json_scan_fail(s, "expected a non-negative integer");
	bool zero = s->p[s->at] == '0';
	for (uint64_t start = s->at; is_digit(s); s->at++) {
		if (zero && s->at > start)
			return json_scan_fail(s, "a number begins with 0");
		if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(s->p[s->at] - '0'), &v))
			return json_scan_fail(s, "an integer does not fit 64 bits");
	}
	if (s->at < s->end && (s->p[s->at] == '.' || s->p[s->at] == 'e' || s->p[s->at] == 'E'))
		return json_scan_fail(s, "expected an integer without fraction or exponent");
	*out = v;
	return true;
}

static bool digits(struct json_scan *s)
{
	if (!is_digit(s))
		return json_scan_fail(s, "bad number");
	while (is_digit(s))
		s->at++;
	return true;
}

static bool skip_number(struct json_scan *s)
{
	if (s->p[s->at] == '-')
		s->at++;
	bool zero = s->at < s->end && s->p[s->at] == '0';
	if (zero)
		s->at++;
	else if (!digits(s))
		return false;
	if (zero && is_digit(s))
		return json_scan_fail(s, "a number begins with 0");
	if (s->at < s->end && s->p[s->at] == '.') {
		s->at++;
		if (!digits(s))
			return false;
	}
	if (s->at < s->end && (s->p[s->at] == 'e' || s->p[s->at] == 'E')) {
		s->at++;
		if (s->at < s->end && (s->p[s->at] == '+' || s->p[s->at] == '-'))
			s->at++;
		return digits(s);
	}
	return true;
}

bool json_scan_number(struct json_scan *s, struct json_scan_text *out)
{
	char c = json_scan_peek(s);
	uint64_t start = s->at;

	*out = (struct json_scan_text){ "", 0, false };
	if (c != '-' && (c < '0' || c > '9'))
		return json_scan_fail(s, "expected a number");
	if (!skip_number(s))
		return false;
	*out = (struct json_scan_text){ s->p + start, s->at - start, false };
	return true;
}

bool json_scan_word(struct json_scan *s, const char *word)
{
	size_t n = strlen(word);

	json_scan_peek(s);
	if (s->problem || n > s->end - s->at || memcmp(s->p + s->at, word, n) != 0)
		return json_scan_fail(s, "expected a value");
	s->at += n;
	return true;
}

static bool skip_value(struct json_scan *s, unsigned depth)
{
	struct json_scan_text text;
	char c = json_scan_peek(s);

	if (depth == 0)
		return json_scan_fail(s, "nested too deep");
	switch (c) {
	case '"': return json_scan_string(s, &text);
	case 't': return json_scan_word(s, "true");
	case 'f': return json_scan_word(s, "false");
	case 'n': return json_scan_word(s, "null");
	case '{':
		for (bool more = json_scan_open(s, '{', '}'); more; more = json_scan_more(s, '}'))
			if (!json_scan_member(s, &text) || !skip_value(s, depth - 1))
				return false;
		return !s->problem;
	case '[':
		for (bool more = json_scan_open(s, '[', ']'); more; more = json_scan_more(s, ']'))
			if (!skip_value(s, depth - 1))
				return false;
		return !s->problem;
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return skip_number(s);
		return json_scan_fail(s, "expected a value");
	}
}

bool json_scan_skip(struct json_scan *s) { return skip_value(s, JSON_MAX_DEPTH); }

bool json_scan_finish(struct json_scan *s)
{
	json_scan_peek(s);
	if (!s->problem && s->at < s->end)
		json_scan_fail(s, "expected nothing more");
	return !s->problem;
}

static unsigned put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	unsigned n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (unsigned i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[n] | c);
	return n;
}

uint64_t json_scan_unescape(const struct json_scan_text *t, char *out)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->n;) {
		uint32_t c = 0;
		if (t->p[i] != '\\') {
			out[n++] = t->p[i++];
			continue;
		}
		i += escape(t->p + i, t->n - i, true, &c);
		n += put_utf8(out + n, c);
	}
	return n;
}

bool json_scan_is(const struct json_scan_text *t, const char *word)
{
	char plain[128];
	size_t n = strlen(word);

	if (!t->escaped)
		return t->n == n && memcmp(t->p, word, n) == 0;
	return t->n <= sizeof plain && json_scan_unescape(t, plain) == n && memcmp(plain, word, n) == 0;
}
