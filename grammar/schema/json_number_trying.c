/* grammar/schema/json_number_trying.c - whether a number is right by all schemas that look at it, and spelled as they
 * want it.
 */
#include <string.h>

#include "grammar/schema/json_number_parts.h"

enum { HUGE_EXPONENT = 18 };

static void speak(struct number_finder *d, uint32_t number, bool counts)
{
	const struct decimal *of = number == SCHEMA_NONE ? NULL : &d->m->schema->decimal[number];

	if (!of)
		return;
	if (d->n_spoken < POINTS_MAX)
		d->spoken[d->n_spoken++] = of;
	d->exponents |= counts && of->exponent > HUGE_EXPONENT;
}

void number_collect(struct number_finder *d)
{
	const struct schema *s = d->m->schema;
	static const struct decimal zero;

	for (uint32_t i = 0; i < d->g->n; i++) {
		const struct schema_node *n = &s->node[d->g->node[i]];
		if (bit(d->failed, i))
			continue;
		const bool low = n->minimum != SCHEMA_NONE && s->decimal[n->minimum].negative,
			   high = n->maximum != SCHEMA_NONE && !s->decimal[n->maximum].negative;
		speak(d, n->minimum, d->g->mixed || !low);
		speak(d, n->maximum, d->g->mixed || !high);
		for (uint32_t k = 0; k < n->unlike.n; k++)
			speak(d, s->list[n->unlike.at + k], false);
		for (uint32_t k = 0; k < n->numbers.n; k++)
			d->exponents |= s->decimal[s->list[n->numbers.at + k]].exponent > HUGE_EXPONENT;
		d->n_listed += n->numbers.n;
		if (n->multiple_of != SCHEMA_NONE) {
			d->exponents |= s->decimal[n->multiple_of].exponent > HUGE_EXPONENT;
			if (d->n_divisors < DIVISORS_MAX)
				d->divisor[d->n_divisors++] = &s->decimal[n->multiple_of];
		}
	}
	if (d->n_spoken < POINTS_MAX)
		d->spoken[d->n_spoken++] = &zero;
}

static bool is_spelling_of(const struct decimal *d, const char *text, size_t n)
{
	char own[SPELLED_MAX + 1];
	const size_t bytes = spelling_of(d, own);

	return bytes == n && memcmp(own, text, n) == 0;
}

static bool begins_spelling_of(const struct number_finder *d, const struct decimal *of)
{
	char own[SPELLED_MAX + 1];

	return spelling_of(of, own) >= d->n && memcmp(own, d->text, d->n) == 0;
}

bool number_may_begin(const struct number_finder *d)
{
	const struct schema *s = d->m->schema;
	struct spelling any = { 0 };
	size_t i = 0;

	while (i < d->n && spelling_step(&any, (uint8_t)d->text[i]))
		i++;
	bool ok = i == d->n;
	for (unsigned k = 0; k < d->n_spoken && !ok && effort_take(8); k++)
		ok = begins_spelling_of(d, d->spoken[k]);
	for (uint32_t n = 0; n < d->g->n; n++) {
		const struct part p = s->node[d->g->node[n]].numbers;
		for (uint32_t k = 0; k < p.n && !ok && effort_take(8); k++)
			ok = begins_spelling_of(d, &s->decimal[s->list[p.at + k]]);
	}
	return ok;
}

/* Integers are digits, as many as 64 bits hold. */
static bool is_integer(const struct number_finder *d, const char *text, size_t n)
{
	static const char max[] = SPELLED_INTEGER;
	const size_t minus = text[0] == '-', digits = n - minus;
	const bool power = memchr(text, 'e', n) != NULL;

	if (d->exponents)
		return power || !memchr(text, '.', n);
	return strspn(text + minus, "0123456789") >= digits &&
	       (digits < sizeof max - 1 || (digits == sizeof max - 1 && memcmp(text + minus, max, digits) <= 0));
}

/* Whether a node wants the number otherwise. */
static bool unspelled(const struct number_finder *d, const struct schema_node *node, const char *text, size_t n)
{
	const struct schema *s = d->m->schema;
	const int32_t places =
		node->multiple_of == SCHEMA_NONE ? INT32_MAX : decimal_places(&s->decimal[node->multiple_of]);
	const char *point = memchr(text, '.', n);
	bool known = node->numbers.n == 0;

	if ((node->whole || places == 0) && !is_integer(d, text, n))
		return true;
	if (point && !memchr(text, 'e', n) && (int32_t)(text + n - point) - 1 > places)
		return true;
	for (uint32_t k = 0; k < node->numbers.n && !known; k++)
		known = is_spelling_of(&s->decimal[s->list[node->numbers.at + k]], text, n);
	return !known;
}

static bool is_listed(const struct number_finder *d, const char *text, size_t n)
{
	const struct schema *s = d->m->schema;

	for (uint32_t i = 0; i < d->g->n; i++) {
		const struct part p = s->node[d->g->node[i]].numbers;
		for (uint32_t k = 0; k < p.n && effort_take(8); k++)
			if (is_spelling_of(&s->decimal[s->list[p.at + k]], text, n))
				return true;
	}
	return false;
}

/* In the spelling for all numbers, or that of one which is spoken of. */
static bool is_spelled(const struct number_finder *d, const char *text, size_t n)
{
	struct spelling s = { 0 };
	size_t i = 0;

	while (i < n && spelling_step(&s, (uint8_t)text[i]))
		i++;
	bool ok = i == n && spelling_ends(&s);
	effort_take(ok ? 4 : 4 + 10 * d->n_spoken);
	for (unsigned k = 0; k < d->n_spoken && !ok; k++)
		ok = is_spelling_of(d->spoken[k], text, n);
	return ok || is_listed(d, text, n);
}

/* Right by the schemas, and spelled as they want it; text ends in 0. */
static bool is_right(const struct number_finder *d, const char *text, size_t n)
{
	uint32_t failed[GROUP_NODES / 32];
	struct decimal value;

	if (!decimal_read(&value, text, n))
		return false;
	memcpy(failed, d->failed, bits_words(d->g->n) * sizeof *failed);
	effort_take(4 * (d->n_listed + d->n_spoken));
	for (uint32_t i = 0; i < d->g->n; i++)
		if (!bit(failed, i) && !number_fits(d->m->schema, &d->m->schema->node[d->g->node[i]], &value))
			set_bit(failed, i);
	const struct facts facts = { .failed = failed, .final = true };
	if (!group_alive(d->m, d->g, &facts))
		return false;
	for (uint32_t i = 0; i < d->g->n; i++)
		if (!bit(failed, i) && unspelled(d, &d->m->schema->node[d->g->node[i]], text, n))
			set_bit(failed, i);
	return group_alive(d->m, d->g, &facts);
}

void number_try(struct number_finder *d, const char *text, size_t n)
{
	char copy[SPELLED_MAX + 1];

	effort_take(6);
	if (number_over(d) || n > SPELLED_MAX || n < d->n || memcmp(text, d->text, d->n) != 0 ||
	    !is_spelled(d, text, n))
		return;
	d->tries++;
	memcpy(copy, text, n);
	copy[n] = 0;
	if (is_right(d, copy, n)) {
		memcpy(d->found, copy, n + 1);
		d->n_found = n;
	}
}

void number_try_decimal(struct number_finder *d, const struct decimal *of)
{
	char text[SPELLED_MAX + 1];

	number_try(d, text, spelling_of(of, text));
}

void number_try_listed(struct number_finder *d)
{
	const struct schema *s = d->m->schema;

	for (uint32_t i = 0; i < d->g->n; i++) {
		const struct part p = s->node[d->g->node[i]].numbers;
		for (uint32_t k = 0; k < p.n && !bit(d->failed, i) && !number_over(d); k++)
			number_try_decimal(d, &s->decimal[s->list[p.at + k]]);
	}
}
