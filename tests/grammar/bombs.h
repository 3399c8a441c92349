/* tests/grammar/bombs.h - grammars that ask for far more work, or memory, than they are long: what a client may send.
 */
#ifndef TESTS_GRAMMAR_BOMBS_H
#define TESTS_GRAMMAR_BOMBS_H

#include <stddef.h>

#include "grammar/grammar.h"

struct bomb {
	const char *name;
	enum grammar_kind kind;
	char *text;
};

/* The i-th; its text is the caller's to free. NULL name: there are fewer. */
struct bomb bomb_make(size_t i);

#endif
