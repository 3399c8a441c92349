#include "grammar/schema/json_spelling.h"

#include <stdio.h>

enum { COUNTED_MAX = 17, ZEROS_MAX = 6, LARGE = 21, SMALL = 7 };
enum phase { BEGIN, SIGN, ZERO, DIGITS, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, EXPONENT_DIGITS };

static bool whole_step(struct spelling *s, uint8_t byte)
{
	if (byte == '.' && s->counted < COUNTED_MAX) {
		s->phase = POINT;
		return true;
	}
	if (byte == 'e' && s->phase == DIGITS && s->whole == 1) {
		s->phase = EXPONENT;
		return true;
	}
	if (s->phase == ZERO || byte < '0' || byte > '9' || s->whole == SPELLED_WHOLE)
		return false;
	s->whole++;
	s->counted++;
	return true;
}

/* `whole` is 0 for a number that begins with 0. */
static bool fraction_step(struct spelling *s, uint8_t byte)
{
	if (byte == 'e' && s->phase == FRACTION && s->whole == 1 && s->zeros == 0) {
		s->phase = EXPONENT;
		return true;
	}
	if (byte < '0' || byte > '9' || (byte == '0' && s->zeros == ZEROS_MAX))
		return false;
	s->zeros = byte == '0' ? s->zeros + 1 : 0;
	s->phase = FRACTION;
	if (!s->counted && byte == '0')
		return true;
	return s->counted < COUNTED_MAX && ++s->counted;
}

/* Whether an exponent that begins with these digits, or has them all, can be large enough, or small. */
static bool exponent_fits(const struct spelling *s, bool all)
{
	const unsigned min = s->below ? SMALL : LARGE;
	unsigned low = s->exponent, high = s->exponent;

	for (; !all && high < min; low *= 10)
		high = 10 * high + 9;
	return all ? low >= min && low <= SPELLED_EXPONENT : low <= SPELLED_EXPONENT;
}

bool spelling_step(struct spelling *s, uint8_t byte)
{
	const bool digit = byte >= '0' && byte <= '9';

	switch ((enum phase)s->phase) {
	case BEGIN:
		if (byte == '-') {
			s->phase = SIGN;
			s->negative = 1;
			return true;
		} /* fall through */
	case SIGN:
		s->phase = byte == '0' ? ZERO : DIGITS;
		s->whole = s->counted = byte != '0';
		return digit;
	case ZERO:
	case DIGITS: return whole_step(s, byte);
	case POINT:
	case FRACTION: return fraction_step(s, byte);
	case EXPONENT:
		if (byte == '-') {
			s->phase = EXPONENT_SIGN;
			s->below = 1;
			return true;
		} /* fall through */
	case EXPONENT_SIGN:
	case EXPONENT_DIGITS:
		if (!digit || (s->exponent == 0 && byte == '0'))
			return false;
		s->phase = EXPONENT_DIGITS;
		s->exponent = (uint16_t)(10 * s->exponent + (byte - '0'));
		return exponent_fits(s, false);
	}
	return false;
}

bool spelling_ends(const struct spelling *s)
{
	switch ((enum phase)s->phase) {
	case ZERO:
	case FRACTION: return !s->negative || s->counted;
	case DIGITS: return true;
	case EXPONENT_DIGITS: return exponent_fits(s, true);
	default: return false;
	}
}

static size_t put_digits(const struct decimal *d, int32_t from, int32_t to, char *out)
{
	for (int32_t i = from; i < to; i++)
		*out++ = (char)('0' + (i >= 0 && i < d->n ? d->digit[i] : 0));
	return (size_t)(to - from);
}

size_t spelling_of(const struct decimal *d, char out[SPELLED_MAX + 1])
{
	const int32_t power = d->exponent - 1; /* of the first digit */
	const bool scientific = d->n && (power >= LARGE || power <= -SMALL);
	const int32_t digits = d->n, point = d->n == 0 ? 1 : scientific ? 1 : d->exponent;
	size_t n = 0;

	if (digits > SPELLED_MAX - 12)
		return 0;
	if (d->negative)
		out[n++] = '-';
	if (point <= 0)
		out[n++] = '0';
	n += put_digits(d, 0, point > 0 ? point : 0, out + n);
	if (digits > point) {
		out[n++] = '.';
		n += put_digits(d, point, digits, out + n);
	}
	if (scientific)
		n += (size_t)snprintf(out + n, SPELLED_MAX + 1 - n, "e%d", (int)power);
	out[n] = 0;
	return n;
}
