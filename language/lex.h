/* language/lex.h - a text as tokens.
 *
 * Owns: which characters make a token, and the table of names, by which two spellings of one name are one address.
 */
#ifndef LANGUAGE_LEX_H
#define LANGUAGE_LEX_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "language/jk.h"

struct symbol;
struct arena;

/* A name of the text; symbol is what it means where the parser stands. */
struct name {
	struct name *next; /* of the same hash */
	struct symbol *symbol;
	uint32_t length, keyword; /* enum token_kind, or 0 */
	char text[];
};

enum token_kind {
	TOKEN_END,
	TOKEN_NAME,
	TOKEN_WHOLE, /* a number without point or exponent */
	TOKEN_REAL,
	TOKEN_MARK, /* operators and brackets: enum mark */
#define KEYWORD(word) TOKEN_##word,
#include "language/keywords.def"
#undef KEYWORD
	TOKEN_KINDS
};

enum mark {
	MARK_NONE,
#define MARK(name, text) MARK_##name,
#include "language/marks.def"
#undef MARK
	MARKS
};

struct token {
	uint8_t kind, mark;
	uint32_t line, column, start, length;
	struct name *name; /* of names and keywords */
};

struct tokens {
	struct token *token;
	size_t n, capacity; /* n counts TOKEN_END, which is the last one */
	struct name **bucket;
	size_t buckets;
};

/* False: memory ran out. What is no token gets a message, and is left out. */
bool jk_lex_text(struct tokens *t, struct arena *arena, const char *text, size_t bytes, struct jk_messages *m);
void jk_lex_free(struct tokens *t);
struct name *jk_lex_name(struct tokens *t, struct arena *arena, const char *text, size_t length);
const char *jk_mark_text(unsigned mark);

#endif
