/* grammar/regex/expression.h - expressions for sets of texts: characters, one after another, alternatives, repetitions.
 *
 * Owns: the tree that readers of patterns build (regex.h), and whose automaton automaton.h makes. Nodes are numbers;
 * a tree lives as long as its `struct expression` and never shrinks.
 */
#ifndef GRAMMAR_EXPRESSION_H
#define GRAMMAR_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Nodes and ranges of characters that a tree may have: a pattern of 20 000 bytes needs fewer. */
enum { EXPRESSION_MAX = 1 << 18 };
enum { CODE_POINT_MAX = 0x10ffff };

enum expression_kind {
	EXPRESSION_EMPTY,  /* the empty text */
	EXPRESSION_SET,    /* one character out of ranges; none at all where there is no range */
	EXPRESSION_JOIN,   /* first, then rest */
	EXPRESSION_EITHER, /* first, or rest */
	EXPRESSION_REPEAT, /* first, min to max times */
	EXPRESSION_BEGIN,  /* the empty text at the beginning */
	EXPRESSION_END,    /* the empty text at the end */
	EXPRESSION_BYTE,   /* one byte out of first..rest */
	EXPRESSION_TOKEN,  /* the token `first`, or with `min` any other one (gbnf.h) */
	EXPRESSION_RULE,   /* a text of the rule whose number is `first` (gbnf.h) */
	EXPRESSION_AHEAD,  /* the empty text where a text of `first` follows, or with `min` where none does */
};
enum { REPEAT_ANY = UINT32_MAX }; /* as `max`: there is no bound */

struct character_range {
	uint32_t low, high;
};
struct expression_node {
	enum expression_kind kind;
	uint32_t first, rest; /* nodes; of a set: its ranges are first..first + rest - 1 */
	uint32_t min, max;    /* of a repetition, whose `rest` is 1 where Lark wants as few as possible (lark_lazy.c) */
};
struct expression {
	struct expression_node *node;
	size_t n, capacity;
	struct character_range *range;
	size_t n_ranges, range_capacity;
	bool failed; /* no memory, or too many: what was built since is not to be used */
};

/* Each returns the new node; 0, which is the empty text, once the tree has failed. */
uint32_t expression_empty(struct expression *x);
uint32_t expression_set(struct expression *x, const struct character_range *r, size_t n);
uint32_t expression_character(struct expression *x, uint32_t code);
/* Bytes of UTF-8, one character after another; false bytes stand for the replacement character. */
uint32_t expression_text(struct expression *x, const char *text, size_t n);
uint32_t expression_join(struct expression *x, uint32_t first, uint32_t rest);
uint32_t expression_either(struct expression *x, uint32_t first, uint32_t rest);
uint32_t expression_repeat(struct expression *x, uint32_t node, uint32_t min, uint32_t max);
uint32_t expression_byte(struct expression *x, uint8_t low, uint8_t high);
uint32_t expression_edge(struct expression *x, enum expression_kind begin_or_end);
uint32_t expression_rule(struct expression *x, uint32_t number);
uint32_t expression_token(struct expression *x, uint32_t id, bool without);
uint32_t expression_ahead(struct expression *x, uint32_t node, bool without);
void expression_clear(struct expression *x);

#endif
