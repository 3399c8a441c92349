/* grammar/gbnf_parts.h - what the files that read GBNF share. */
#ifndef GRAMMAR_GBNF_PARTS_H
#define GRAMMAR_GBNF_PARTS_H

#include "grammar/automaton_parts.h"
#include "grammar/gbnf.h"

struct gbnf_reader {
	struct gbnf *g;
	const char *text;
	size_t n, at;
	unsigned depth;
	const struct machine_tokens *tokens; /* NULL: they cannot be named */
	struct error *err;
};

bool gbnf_wrong(struct gbnf_reader *r, const char *why); /* at the present byte; false */
bool gbnf_take(struct gbnf_reader *r, char what);
/* gbnf_text.c: at a quote, a bracket: the node, and whether it can stand for the empty text only. */
bool gbnf_literal(struct gbnf_reader *r, uint32_t *node, bool *nothing);
bool gbnf_set(struct gbnf_reader *r, uint32_t *node, bool *nothing);
uint32_t gbnf_any(struct gbnf_reader *r);
/* At < or !. */
bool gbnf_token(struct gbnf_reader *r, uint32_t *node);

/* gbnf_places.c: the places of all rules; *entry: where a text begins. False: err says what is wrong. */
bool gbnf_places(struct places *p, uint32_t *entry, const char *text, size_t n, const struct machine_tokens *tokens,
                 struct error *err);

#endif
