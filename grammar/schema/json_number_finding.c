/* grammar/schema/json_number_finding.c - a number that begins as the text so far, is right by all schemas that look at
 * it, and is spelled as a model is to write it (json_spelling.h).
 *
 * Numbers are looked for near all that the schemas speak of: bounds, values, multiples, each with more digits before
 * and behind the point, and with an exponent. Where many would have to be tried, there is taken to be none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/schema/json_number_parts.h"

typedef __int128 wide;

/* ---- digits, with a point or without */

/* x in units of the last of `places` digits. */
static void try_digits(struct number_finder *d, bool negative, wide x, int32_t places)
{
	char digits[SPELLED_MAX + 8], text[SPELLED_MAX + 12];
	int32_t n = 0;
	size_t bytes = 0;

	if (x < 0)
		return;
	for (; x || n <= places; x /= 10) {
		if (n == SPELLED_MAX)
			return;
		digits[n++] = (char)('0' + (int)(x % 10));
	}
	if (negative)
		text[bytes++] = '-';
	while (n) {
		if (n == places)
			text[bytes++] = '.';
		text[bytes++] = digits[--n];
	}
	number_try(d, text, bytes);
}

/* The size of a number in units of the last of so many digits, rounded down; -1: it is far too large. */
static wide scaled(const struct decimal *d, int32_t places)
{
	const int32_t digits = d->exponent + places;
	wide v = 0;

	if (digits > 30)
		return -1;
	for (int32_t i = 0; i < digits; i++)
		v = 10 * v + (i < d->n ? d->digit[i] : 0);
	return v;
}

static wide common(wide a, wide b)
{
	while (b) {
		wide rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* What is a multiple of a number, in the same units, is one of this; 0: nobody knows. */
static wide units_of(const struct decimal *d, int32_t places)
{
	const int32_t more = decimal_places(d) - places;
	wide v = scaled(d, more > 0 ? decimal_places(d) : places);

	if (d->n == 0 || v <= 0 || v >> 80)
		return 0;
	/* Without what it has in common with ten to the power of `more`, which may be far larger than a word. */
	for (int32_t i = 0; i < more && v % 2 == 0; i++)
		v /= 2;
	for (int32_t i = 0; i < more && v % 5 == 0; i++)
		v /= 5;
	return v;
}

struct stretch {
	bool negative;
	wide low, high;
	int32_t places;
	wide unit[DIVISORS_MAX + 1]; /* multiples are looked for */
	unsigned n_units;
};

static void find_units(const struct number_finder *d, struct stretch *s)
{
	wide all = 1;

	s->n_units = 0;
	for (unsigned i = 0; i < d->n_divisors; i++) {
		wide unit = units_of(d->divisor[i], s->places);
		if (unit <= 1)
			continue;
		s->unit[s->n_units++] = unit;
		wide times = unit / common(all, unit);
		all = all >> 50 || times >> 50 ? 0 : all * times;
		if (!all)
			break;
	}
	if (s->n_units > 1 && all)
		s->unit[s->n_units++] = all;
}

static void try_unit(struct number_finder *d, const struct stretch *s, wide x)
{
	if (x >= s->low && x <= s->high)
		try_digits(d, s->negative, x, s->places);
}

static void try_point(struct number_finder *d, const struct stretch *s, wide x)
{
	enum { BESIDE = 2, MULTIPLES = 3 };

	for (int k = -BESIDE; k <= BESIDE; k++)
		try_unit(d, s, x + k);
	for (unsigned i = 0; i < s->n_units && !number_over(d); i++) {
		const wide first = x - x % s->unit[i];
		for (int k = -1; k <= MULTIPLES; k++)
			try_unit(d, s, first + k * s->unit[i]);
	}
}

static void try_stretch(struct number_finder *d, struct stretch *s)
{
	find_units(d, s);
	try_point(d, s, s->low);
	for (unsigned i = 0; i < d->n_spoken && !number_over(d); i++) {
		const wide at = d->spoken[i]->negative == s->negative || !d->spoken[i]->n
		                        ? scaled(d->spoken[i], s->places)
		                        : -1;
		if (at >= s->low - 1 && at <= s->high)
			try_point(d, s, at);
	}
	try_point(d, s, s->high);
}

/* False: the product is larger than anything that is looked for, and far enough from the largest to add to it. */
static bool multiply(wide *v, wide by) { return !__builtin_mul_overflow(*v, by, v) && *v >> 120 == 0; }

/* Those with so many more digits than the text has, each worth `unit`; digits < 0: none so far. False: too large. */
static bool set_stretch(struct stretch *s, wide digits, wide unit, bool first)
{
	s->low = digits < 0 ? 1 : digits;
	s->high = digits < 0 ? 10 : digits + 1;
	if (!multiply(&s->low, unit) || !multiply(&s->high, unit))
		return false;
	if (digits < 0 && first)
		s->low = 0;
	s->high--;
	return true;
}

/* Numbers with so many places whose digits begin with those of the text. */
static void try_places(struct number_finder *d, bool negative, int32_t places, wide digits, bool point)
{
	struct stretch s = { .negative = negative, .places = places };
	wide unit = 1, farthest = 0;

	for (unsigned i = 0; i < d->n_spoken; i++) {
		const wide at = scaled(d->spoken[i], places);
		farthest = at > farthest ? at : farthest;
	}
	for (unsigned i = 0; i < d->n_divisors; i++) {
		const wide one = units_of(d->divisor[i], places);
		farthest = farthest > 100 * one ? farthest : 100 * one;
	}
	for (int32_t i = 0; i < places && !point; i++)
		unit *= 10;
	for (int32_t k = 0; k <= SPELLED_WHOLE && !number_over(d); k++) {
		if (!set_stretch(&s, digits, unit, k == 0))
			break;
		try_stretch(d, &s);
		if (point || digits == 0 || s.low > farthest || !multiply(&unit, 10))
			break;
	}
}

/* ---- exponents */

static void try_power(struct number_finder *d, const char *mantissa, size_t n, int32_t power)
{
	char text[SPELLED_MAX + 16];

	if (n > SPELLED_MAX)
		return;
	memcpy(text, mantissa, n);
	number_try(d, text, n + (size_t)snprintf(text + n, 16, "e%d", (int)power));
}

static void try_powers(struct number_finder *d, const char *mantissa, size_t n)
{
	static const int usual[] = { 21, 22, 30, SPELLED_EXPONENT, -7, -8, -SPELLED_EXPONENT };

	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		try_power(d, mantissa, n, usual[i]);
	for (unsigned i = 0; i < d->n_spoken && !number_over(d); i++)
		for (int32_t k = -2; k <= 1 && d->spoken[i]->n; k++)
			try_power(d, mantissa, n, d->spoken[i]->exponent + k);
}

/* Before the exponent: the digits of what is spoken of, and a little more than them. */
static void try_mantissas(struct number_finder *d, bool negative)
{
	char text[2 * SPELLED_MAX];

	for (unsigned i = 0; i < d->n_spoken && !number_over(d); i++) {
		const struct decimal *of = d->spoken[i];
		size_t n = 0;
		if (of->n == 0 || of->n > 20)
			continue;
		if (negative)
			text[n++] = '-';
		for (uint8_t k = 0; k < of->n; k++) {
			if (k == 1)
				text[n++] = '.';
			text[n++] = (char)('0' + of->digit[k]);
		}
		try_powers(d, text, n);
		text[n - 1]++;
		if (text[n - 1] <= '9')
			try_powers(d, text, n);
		text[n - 1]--;
		if (of->n == 1)
			text[n++] = '.';
		text[n++] = '5';
		try_powers(d, text, n);
	}
}

static void try_exponents(struct number_finder *d)
{
	const char *e = memchr(d->text, 'e', d->n);
	char text[SPELLED_MAX + 16];

	memcpy(text, d->text, d->n);
	if (e) {
		number_try(d, d->text, d->n);
		for (unsigned minus = 0; minus <= (e + 1 == d->text + d->n) && !number_over(d); minus++)
			for (unsigned v = 0; v < 1110 && !number_over(d); v++) {
				const int digits = v < 10 ? 1 : v < 110 ? 2 : 3;
				const unsigned from = v < 10 ? 0 : v < 110 ? 10 : 110;
				const size_t n =
					(size_t)snprintf(text + d->n, 16, "%s%0*u", minus ? "-" : "", digits, v - from);
				if (d->n + n <= SPELLED_MAX)
					number_try(d, text, d->n + n);
			}
		return;
	}
	for (unsigned negative = 0; negative < 2; negative++)
		try_mantissas(d, negative);
	if (d->n && d->text[d->n - 1] != '-' && d->text[d->n - 1] != '.')
		try_powers(d, d->text, d->n);
	for (char digit = '1'; digit <= '9' && !number_over(d); digit++) {
		text[d->n] = digit;
		try_powers(d, text, d->n + 1);
	}
}

/* ---- all */

/* Whether a number can be right that has a point or an exponent, or with `unlisted` is none of those that are listed.
 */
static bool takes_others(const struct number_finder *d, bool unlisted)
{
	uint32_t failed[GROUP_NODES / 32];

	memcpy(failed, d->failed, bits_words(d->g->n) * sizeof *failed);
	for (uint32_t i = 0; i < d->g->n; i++) {
		const struct schema_node *n = &d->m->schema->node[d->g->node[i]];
		const uint32_t of = n->multiple_of;
		if (unlisted ? n->numbers.n > 0
		             : n->whole || (of != SCHEMA_NONE && decimal_places(&d->m->schema->decimal[of]) == 0))
			set_bit(failed, i);
	}
	return group_alive(d->m, d->g, &(struct facts){ .failed = failed });
}

static void try_signed(struct number_finder *d, bool negative, bool fractions)
{
	enum { MORE_PLACES = 2 };
	const char *from = d->text + (d->n && d->text[0] == '-'), *end = d->text + d->n;
	const char *point = memchr(from, '.', (size_t)(end - from));
	const int32_t had = point ? (int32_t)(end - point) - 1 : 0;
	int32_t max = 0;
	wide digits = from == end ? -1 : 0;

	for (const char *p = from; p < end; p++) {
		if (*p == '.')
			continue;
		if (!multiply(&digits, 10))
			return;
		digits += *p - '0';
	}
	for (unsigned i = 0; i < d->n_spoken; i++)
		max = decimal_places(d->spoken[i]) > max ? decimal_places(d->spoken[i]) : max;
	for (unsigned i = 0; i < d->n_divisors; i++)
		max = decimal_places(d->divisor[i]) > max ? decimal_places(d->divisor[i]) : max;
	max = !fractions ? 0 : (max > had ? max : had) + MORE_PLACES;
	for (int32_t places = had; places <= max && places <= SPELLED_WHOLE && !number_over(d); places++) {
		try_places(d, negative, places, digits, point != NULL);
		if (point && !multiply(&digits, 10))
			return;
	}
}

/* A number that the text begins; false: none was found. */
static bool find(struct number_finder *d)
{
	const bool power = memchr(d->text, 'e', d->n) != NULL;

	number_collect(d);
	effort_take(100 + 2 * d->n_spoken);
	if (!number_may_begin(d))
		return false;
	for (unsigned i = 0; i < d->n_spoken && !number_over(d); i++)
		number_try_decimal(d, d->spoken[i]);
	number_try_listed(d);
	if (number_over(d) || !takes_others(d, true))
		return d->n_found > 0;
	const bool fractions = takes_others(d, false);
	if (!power && (fractions || !memchr(d->text, '.', d->n)))
		for (unsigned negative = d->n && d->text[0] == '-'; negative <= (d->n == 0 || d->text[0] == '-');
		     negative++)
			try_signed(d, negative, fractions);
	if (fractions || d->exponents)
		try_exponents(d);
	return d->n_found > 0;
}

static struct number_finder *finder_of(const struct number_sought *sought)
{
	struct number_finder *d = effort_calloc(1, sizeof *d);

	if (d) {
		d->m = sought->m;
		d->g = sought->g;
		d->failed = sought->failed;
		d->text = sought->text;
		d->n = sought->n;
	}
	return d;
}

size_t number_find(const struct number_sought *sought, char found[SPELLED_MAX + 1])
{
	struct number_finder *d = finder_of(sought);
	const size_t n = d && find(d) ? d->n_found : 0;

	sought->m->machine.failed |= d == NULL;
	if (n)
		memcpy(found, d->found, n + 1);
	free(d);
	return n;
}

bool number_is_found(const struct number_sought *sought)
{
	struct number_finder *d = finder_of(sought);

	if (!d) {
		sought->m->machine.failed = true;
		return false;
	}
	number_collect(d);
	number_try(d, d->text, d->n);
	const bool is = d->n_found > 0;
	free(d);
	return is;
}
