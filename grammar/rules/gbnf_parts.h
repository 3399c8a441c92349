/* grammar/rules/gbnf_parts.h - what the files that read GBNF share. */
#ifndef GRAMMAR_GBNF_PARTS_H
#define GRAMMAR_GBNF_PARTS_H

#include "grammar/regex/automaton_parts.h"
#include "grammar/rules/gbnf.h"
#include "grammar/rules/gbnf_left.h"

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

struct gbnf_source {
	const char *text;
	size_t n;
	const struct machine_tokens *tokens;
	bool is_lark; /* lark.h */
};
/* gbnf_nfa.c: the NFA states of all rules; *entry: where a text begins. left: those that can begin with
 * themselves. False: err says what is wrong. */
bool gbnf_nfa(struct nfa *p, struct left *left, uint32_t *entry, const struct gbnf_source *of, struct error *err);

#endif
