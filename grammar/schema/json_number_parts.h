/* grammar/schema/json_number_parts.h - looking for numbers: what the files that do it share. */
#ifndef GRAMMAR_JSON_NUMBER_PARTS_H
#define GRAMMAR_JSON_NUMBER_PARTS_H

#include "grammar/schema/json_parts.h"

enum { TRIES_MAX = 4000, POINTS_MAX = 400, DIVISORS_MAX = 16 };

struct number_finder {
	struct json_machine *m;
	const struct group *g;
	const uint32_t *failed; /* nodes, before anything is known of the number */
	const char *text;       /* the beginning */
	size_t n;
	char found[SPELLED_MAX + 1];
	size_t n_found;
	unsigned tries;
	bool exponents; /* integers may have one, where they are too large for digits */
	const struct decimal *spoken[POINTS_MAX];
	unsigned n_spoken;
	const struct decimal *divisor[DIVISORS_MAX];
	unsigned n_divisors;
	size_t n_listed; /* values of "enum" and "const" */
};

/* json_number_trying.c: whether the search is over. */
static inline bool number_over(const struct number_finder *d)
{
	return d->n_found || d->tries > TRIES_MAX || effort_over();
}
/* What the nodes speak of. */
void number_collect(struct number_finder *d);
/* Whether any number is spelled so that it begins as the text does. */
bool number_may_begin(const struct number_finder *d);
/* Takes the text, n bytes, if it goes on like the beginning and is right. */
void number_try(struct number_finder *d, const char *text, size_t n);
/* All that "enum" and "const" list. */
void number_try_listed(struct number_finder *d);
void number_try_decimal(struct number_finder *d, const struct decimal *of);

#endif
