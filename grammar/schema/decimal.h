/* grammar/schema/decimal.h - numbers as JSON writes them, exactly: no binary fraction comes between.
 *
 * Owns: their comparison, and whether one is a whole multiple of another.
 */
#ifndef GRAMMAR_DECIMAL_H
#define GRAMMAR_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DECIMAL_DIGITS = 128 };

/* 0.DIGITS times ten to the exponent; no zero begins or ends the digits; 0 has none. */
struct decimal {
	uint8_t negative, n;
	int32_t exponent;
	uint8_t digit[DECIMAL_DIGITS];
};

/* A JSON number, or the beginning of one that is one. False: too many digits, or an exponent beyond 100 000. */
bool decimal_read(struct decimal *d, const char *text, size_t n);
bool decimal_from_real(struct decimal *d, double value);
int decimal_compare(const struct decimal *a, const struct decimal *b); /* less than 0, 0, more */
bool decimal_is_whole(const struct decimal *d);
/* Digits behind the point. */
static inline int32_t decimal_places(const struct decimal *d)
{
	return (int32_t)d->n > d->exponent ? (int32_t)d->n - d->exponent : 0;
}
/* Whether d = k * of for a whole k; `of` is more than 0 and has at most 18 digits. Else false. */
bool decimal_is_multiple(const struct decimal *d, const struct decimal *of);
/* The same number with one more in the last of `places` digits behind the point; places may be negative. */
void decimal_next(struct decimal *d, int32_t places);

#endif
