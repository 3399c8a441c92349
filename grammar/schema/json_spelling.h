/* grammar/schema/json_spelling.h - how a model is to write numbers: the one spelling that all readers take, or few of
 * them.
 *
 * Owns: that spelling. Digits as they are, at most 21 before the point, 17 that count and 6 zeros in a row behind it;
 * an exponent only for what is as large as 1e21 or smaller than 1e-6, behind one digit and its fraction; no -0.
 */
#ifndef GRAMMAR_JSON_SPELLING_H
#define GRAMMAR_JSON_SPELLING_H

#include "grammar/schema/decimal.h"

#define SPELLED_INTEGER "9223372036854775807" /* the largest size of one, where it has no bounds that are larger */
enum { SPELLED_MAX = 40 /* bytes of a number */, SPELLED_WHOLE = 21, SPELLED_EXPONENT = 307 };

/* Behind the beginning of a number; all 0: before its first byte. */
struct spelling {
	uint8_t phase, whole, counted, zeros; /* digits before the point; those from the first one that is not 0; 0s */
	uint16_t exponent;
	uint8_t negative, below; /* below: of the exponent */
};

/* False: no number is spelled so. */
bool spelling_step(struct spelling *s, uint8_t byte);
/* Whether the number may end here. */
bool spelling_ends(const struct spelling *s);
/* The shortest spelling of a number, and its bytes; 0: it would have more than SPELLED_MAX. */
size_t spelling_of(const struct decimal *d, char out[SPELLED_MAX + 1]);

#endif
