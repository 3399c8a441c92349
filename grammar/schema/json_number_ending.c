/* grammar/schema/json_number_ending.c - whether a number that was begun can become one that all schemas together
 * accept: each by itself may be satisfiable, and all together not.
 *
 * Some number that goes on like the text is looked for, and tried: near the bounds, with few more digits, with many
 * zeros or nines, multiples of what is asked for, with an exponent. Where more must be tried than is worth it, there is
 * taken to be one.
 */
#include <stdio.h>
#include <string.h>

#include "grammar/schema/json_parts.h"

enum { TRIES_MAX = 4000, MULTIPLES = 4, DIVISOR_DIGITS = 9 };

typedef unsigned __int128 large;

struct finder {
	struct json_machine *m;
	const struct frame *f;
	const char *text; /* the beginning */
	size_t n;
	unsigned tries;
	bool found, unsure;
};

static bool done(const struct finder *d) { return d->found || d->unsure || effort_over(); }

static void try_text(struct finder *d, const char *text, size_t n)
{
	const struct group *g = frame_group(d->m, d->f);
	uint32_t failed[GROUP_NODES / 32];
	struct decimal value;

	if (done(d) || n > NUMBER_MAX || n < d->n || memcmp(text, d->text, d->n) != 0 || !number_is_complete(text, n) ||
	    !number_may_have_exponent(text, n))
		return;
	d->unsure = ++d->tries > TRIES_MAX;
	effort_take(20);
	memcpy(failed, d->f->w + FRAME_HEAD, bits_words(g->n) * sizeof *failed);
	if (!decimal_read(&value, text, n))
		return;
	for (uint32_t i = 0; i < g->n; i++)
		if (!bit(failed, i) && !number_fits(d->m->schema, &d->m->schema->node[g->node[i]], &value))
			set_bit(failed, i);
	d->found = group_alive(d->m, g, &(struct facts){ .failed = failed, .final = true });
}

/* The text, something behind it, and up to `digits` digits, all there are. */
static void try_digits(struct finder *d, const char *behind, unsigned digits)
{
	char text[NUMBER_MAX + 32];
	size_t n = d->n + strlen(behind);

	if (n > NUMBER_MAX)
		return;
	digits = digits < NUMBER_MAX - n ? digits : (unsigned)(NUMBER_MAX - n);
	memcpy(text, d->text, d->n);
	memcpy(text + d->n, behind, strlen(behind));
	unsigned values = 1;
	for (unsigned k = 0; k <= digits; k++, values *= 10)
		for (unsigned v = 0; v < values && !done(d); v++) {
			for (unsigned i = k, left = v; i-- > 0; left /= 10)
				text[n + i] = (char)('0' + left % 10);
			try_text(d, text, n + k);
		}
}

/* Long numbers: the same digit to the end. */
static void try_long(struct finder *d, char digit)
{
	char text[NUMBER_MAX];

	memcpy(text, d->text, d->n);
	memset(text + d->n, digit, sizeof text - d->n);
	for (size_t n = d->n + 1; n <= d->n + 40 && n <= sizeof text; n++)
		try_text(d, text, n);
}

/* A number as it stands, and a little more than it. */
static void try_decimal(struct finder *d, const struct decimal *of)
{
	char text[2 * DECIMAL_DIGITS + 8];
	size_t n = 0;

	if (of->exponent > DECIMAL_DIGITS || of->exponent < -DECIMAL_DIGITS)
		return;
	if (of->negative)
		text[n++] = '-';
	if (of->exponent <= 0)
		text[n++] = '0';
	for (int32_t i = 0; i < of->exponent; i++)
		text[n++] = (char)('0' + (i < of->n ? of->digit[i] : 0));
	bool point = of->exponent < (int32_t)of->n;
	if (point)
		text[n++] = '.';
	for (int32_t i = of->exponent; i < (int32_t)of->n; i++)
		text[n++] = (char)('0' + (i >= 0 ? of->digit[i] : 0));
	try_text(d, text, n);
	for (const char *more = "15"; *more; more++)
		try_text(d, text, n + (size_t)snprintf(text + n, 4, "%s%c", point ? "" : ".", *more));
}

static void try_bounds(struct finder *d)
{
	const struct schema *s = d->m->schema;
	const struct group *g = frame_group(d->m, d->f);

	for (uint32_t i = 0; i < g->n && !done(d); i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		for (unsigned k = 0; k < 2; k++) {
			uint32_t bound = k ? n->maximum : n->minimum;
			if (bound == SCHEMA_NONE)
				continue;
			struct decimal next = s->decimal[bound];
			try_decimal(d, &next);
			decimal_next(&next, 0); /* by one, away from 0 */
			try_decimal(d, &next);
		}
		for (uint32_t k = 0; k < n->numbers.n; k++)
			try_decimal(d, &s->decimal[s->list[n->numbers.at + k]]);
	}
}

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* What the nodes ask numbers to be multiples of, each, and a number that is one of all. */
static unsigned divisors(struct finder *d, uint64_t divisor[GROUP_NODES + 1])
{
	const struct schema *s = d->m->schema;
	const struct group *g = frame_group(d->m, d->f);
	unsigned n = 0;
	uint64_t all = 1;

	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t of = s->node[g->node[i]].multiple_of;
		if (of == SCHEMA_NONE)
			continue;
		const struct decimal *m = &s->decimal[of];
		if (!decimal_is_whole(m) || m->exponent > DIVISOR_DIGITS) {
			d->unsure |= m->n > 2 || m->exponent > DIVISOR_DIGITS;
			continue;
		}
		uint64_t v = 0;
		for (int32_t k = 0; k < m->exponent; k++)
			v = 10 * v + (k < m->n ? m->digit[k] : 0);
		divisor[n++] = v;
		large next = (large)all * (v / common(all, v));
		d->unsure |= next >> 60 != 0;
		all = (uint64_t)next;
	}
	if (n > 1 && !d->unsure)
		divisor[n++] = all;
	return n;
}

/* Multiples of a whole number whose digits begin with those of the text, up to 18 more. */
static void try_multiples(struct finder *d, uint64_t divisor)
{
	enum { DIGITS = 18 };
	char text[NUMBER_MAX + DIGITS];
	uint64_t rest = 0, span = 1;

	memcpy(text, d->text, d->n);
	for (size_t i = d->n && d->text[0] == '-'; i < d->n; i++)
		rest = (uint64_t)(((large)rest * 10 + (large)(d->text[i] - '0')) % divisor);
	for (unsigned k = 0; k <= DIGITS && !done(d); k++, span *= 10) {
		uint64_t behind = rest ? divisor - rest : 0;
		for (unsigned i = 0; i < MULTIPLES && behind < span; i++, behind += divisor) {
			uint64_t left = behind;
			for (unsigned at = k; at-- > 0; left /= 10)
				text[d->n + at] = (char)('0' + left % 10);
			try_text(d, text, d->n + k);
		}
		rest = (uint64_t)((large)rest * 10 % divisor);
	}
}

static void try_exponents(struct finder *d)
{
	char behind[8];

	for (unsigned k = 0; k <= 40 && !done(d); k++)
		for (unsigned minus = 0; minus < 2; minus++) {
			snprintf(behind, sizeof behind, "e%s%u", minus ? "-" : "", k);
			try_digits(d, behind, 0);
		}
}

bool number_can_succeed(struct json_machine *m, const struct frame *f, const char *text, size_t n)
{
	struct finder d = { .m = m, .f = f, .text = text, .n = n };
	uint64_t divisor[GROUP_NODES + 1];
	bool whole = !memchr(text, '.', n) && !memchr(text, 'e', n) && !memchr(text, 'E', n);
	bool power = memchr(text, 'e', n) || memchr(text, 'E', n);

	unsigned n_divisors = divisors(&d, divisor);
	try_digits(&d, "", power ? 3 : 2);
	if (power && (text[n - 1] | 0x20) == 'e')
		try_digits(&d, "-", 3);
	if (power)
		return done(&d);
	try_bounds(&d);
	for (unsigned i = n_divisors; i-- > 0 && whole;)
		try_multiples(&d, divisor[i]);
	try_long(&d, '0');
	try_long(&d, '9');
	if (whole && !done(&d))
		try_digits(&d, n && text[n - 1] != '-' ? "." : "0.", 2);
	try_exponents(&d);
	return done(&d);
}
