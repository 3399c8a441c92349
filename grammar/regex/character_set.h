/* grammar/regex/character_set.h - sets of characters while they are read: ranges in any order, which may overlap. */
#ifndef GRAMMAR_CHARACTER_SET_H
#define GRAMMAR_CHARACTER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grammar/regex/expression.h"

struct character_set {
	struct character_range *range;
	size_t n, capacity;
	bool failed; /* no memory, or too many */
};

void set_add(struct character_set *s, uint32_t low, uint32_t high);
void set_add_all(struct character_set *s, const struct character_set *other);
/* All characters that it does not have. */
void set_invert(struct character_set *s);
/* All characters of these general categories of Unicode, a bit for each by the numbers of utf8proc. */
void set_add_categories(struct character_set *s, uint32_t categories);
/* All that Python takes for one of its letters without regard to case. */
void set_add_cases(struct character_set *s);
/* In ascending order, each character once. */
void set_sort(struct character_set *s);

#endif
