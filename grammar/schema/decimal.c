#include "grammar/schema/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPONENT_MAX = 100000 };

static void normalise(struct decimal *d)
{
	size_t zeros = 0;

	while (zeros < d->n && d->digit[zeros] == 0)
		zeros++;
	memmove(d->digit, d->digit + zeros, d->n - zeros);
	d->n = (uint8_t)(d->n - zeros);
	d->exponent -= (int32_t)zeros;
	while (d->n && d->digit[d->n - 1] == 0)
		d->n--;
	if (d->n == 0) {
		d->exponent = 0;
		d->negative = 0;
	}
}

bool decimal_read(struct decimal *d, const char *text, size_t n)
{
	size_t at = 0;
	bool behind = false, minus = false;
	int32_t exponent = 0;

	*d = (struct decimal){ .negative = n && text[0] == '-' };
	for (at = d->negative; at < n && ((text[at] >= '0' && text[at] <= '9') || text[at] == '.'); at++) {
		if (text[at] == '.') {
			behind = true;
			continue;
		}
		d->exponent += !behind;
		if (d->n == 0 && text[at] == '0') { /* it would only be taken away again */
			d->exponent--;
			continue;
		}
		if (d->n == DECIMAL_DIGITS - 1)
			return false;
		d->digit[d->n++] = (uint8_t)(text[at] - '0');
	}
	if (at < n && (text[at] | 0x20) == 'e') {
		at++;
		minus = at < n && text[at] == '-';
		at += at < n && (text[at] == '-' || text[at] == '+');
		for (; at < n; at++)
			if ((exponent = 10 * exponent + (text[at] - '0')) > EXPONENT_MAX)
				return false;
	}
	d->exponent += minus ? -exponent : exponent;
	normalise(d);
	return true;
}

bool decimal_from_real(struct decimal *d, double value)
{
	char text[64];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*e", digits - 1, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return isfinite(value) && decimal_read(d, text, strlen(text));
}

static int compare_size(const struct decimal *a, const struct decimal *b)
{
	if (!a->n || !b->n)
		return (a->n > 0) - (b->n > 0);
	if (a->exponent != b->exponent)
		return a->exponent < b->exponent ? -1 : 1;
	for (size_t i = 0; i < a->n || i < b->n; i++) {
		int x = i < a->n ? a->digit[i] : 0, y = i < b->n ? b->digit[i] : 0;
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
	if (a->negative != b->negative)
		return a->negative ? -1 : 1;
	return a->negative ? -compare_size(a, b) : compare_size(a, b);
}

bool decimal_is_whole(const struct decimal *d) { return d->exponent >= (int32_t)d->n; }

bool decimal_is_multiple(const struct decimal *d, const struct decimal *of)
{
	uint64_t divisor = 0, rest = 0;
	/* Both times ten to the same power, so that `of` is whole: its digits. */
	int64_t zeros = (int64_t)(d->exponent - (int32_t)d->n) - (of->exponent - (int32_t)of->n);

	if (of->n == 0 || of->n > 18 || zeros > EXPONENT_MAX)
		return false;
	if (d->n == 0)
		return true;
	if (zeros < 0)
		return false; /* a digit of d is finer than all of `of` */
	for (size_t i = 0; i < of->n; i++)
		divisor = 10 * divisor + of->digit[i];
	for (int64_t i = 0; i < (int64_t)d->n + zeros; i++)
		rest = (uint64_t)(((unsigned __int128)rest * 10 + (i < d->n ? d->digit[i] : 0)) % divisor);
	return rest == 0;
}

void decimal_next(struct decimal *d, int32_t places)
{
	/* The index of the digit with that weight: digit i weighs ten to the (exponent - 1 - i). */
	int32_t at = d->exponent - 1 + places;

	if (d->n == 0) {
		d->exponent = 1 - places;
		d->digit[d->n++] = 1;
		return;
	}
	for (; at < 0; at++) { /* the weight is more than the first digit's */
		memmove(d->digit + 1, d->digit, d->n < DECIMAL_DIGITS - 1 ? d->n : DECIMAL_DIGITS - 1);
		d->digit[0] = 0;
		d->n = (uint8_t)(d->n < DECIMAL_DIGITS - 1 ? d->n + 1 : DECIMAL_DIGITS - 1);
		d->exponent++;
	}
	while (d->n <= at && d->n < DECIMAL_DIGITS - 1)
		d->digit[d->n++] = 0;
	for (at = at < d->n ? at : d->n - 1; at >= 0 && ++d->digit[at] == 10; at--)
		d->digit[at] = 0;
	if (at < 0) {
		memmove(d->digit + 1, d->digit, d->n);
		d->digit[0] = 1;
		d->n = (uint8_t)(d->n < DECIMAL_DIGITS - 1 ? d->n + 1 : d->n);
		d->exponent++;
	}
	normalise(d);
}
