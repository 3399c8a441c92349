/* grammar/regex/regex_parts.h - what the files that read regular expressions share. */
#ifndef GRAMMAR_REGEX_PARTS_H
#define GRAMMAR_REGEX_PARTS_H

#include "grammar/regex/expression.h"

struct regex {
	struct expression *x;
	const char *text;
	size_t n, at;
	unsigned depth;
	unsigned looks; /* groups around this position that look ahead for what must not follow */
	struct error *err;
};

bool regex_fail(struct regex *r, const char *why); /* false */
bool regex_take(struct regex *r, const char *what);
uint32_t regex_character(struct regex *r);
/* At a "[" or a "\": the set of characters, or the one, that it stands for. */
bool regex_class(struct regex *r, uint32_t *node);

#endif
