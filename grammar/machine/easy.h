/* grammar/machine/easy.h - characters that can stand between the quotes of JSON as they are: no quote, backslash or
 * control. In classes, each of which is a part of the one before, so that a grammar that takes any character of a class
 * for a while takes all tokens of the class at once.
 */
#ifndef GRAMMAR_EASY_H
#define GRAMMAR_EASY_H

#include <stdbool.h>
#include <stdint.h>

/* Any; of ASCII; of these all but the space; letters, digits and _; small letters and digits. */
enum easy { EASY_NOT, EASY_ANY, EASY_ASCII, EASY_SOLID, EASY_WORD, EASY_LOWER, EASY_CLASSES };

static inline bool easy_in(uint32_t code, uint32_t low, uint32_t high) { return code >= low && code <= high; }

/* The narrowest class that has the character. */
static inline enum easy easy_of(uint32_t code)
{
	if (code < ' ' || code == '"' || code == '\\')
		return EASY_NOT;
	if (code > '~')
		return EASY_ANY;
	if (easy_in(code, 'a', 'z') || easy_in(code, '0', '9'))
		return EASY_LOWER;
	if (easy_in(code, 'A', 'Z') || code == '_')
		return EASY_WORD;
	return code == ' ' ? EASY_ASCII : EASY_SOLID;
}

#endif
