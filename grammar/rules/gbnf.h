/* grammar/rules/gbnf.h - grammars of rules as llama.cpp writes them (GBNF), read into an expression for each rule.
 *
 * Owns: their syntax. A rule is `name ::= ` and alternatives of literals, sets of characters, `.`, names of rules and
 * groups, each of which may be repeated by ? * + {m} {m,} {m,n}. The text begins with the rule "root". Where a name
 * stands in a rule, the tree has an EXPRESSION_RULE. <[7]>, <text> and !<...> are tokens and have an EXPRESSION_TOKEN.
 * The character 0 is in no set, for no answer has it.
 */
#ifndef GRAMMAR_GBNF_H
#define GRAMMAR_GBNF_H

#include "grammar/regex/expression.h"
#include "grammar/schema/interner.h"
#include "grammar/machine/machine.h"

enum { GBNF_RULES_MAX = 1 << 13 };

struct gbnf_rule {
	uint32_t node;
	size_t at;       /* the byte where its name stands: in its definition, before that where it is used */
	bool is_defined; /* of several definitions the last one holds */
};
struct gbnf {
	struct expression x;
	struct interner names; /* a rule's number is that of its name, less one */
	struct gbnf_rule *rule;
	size_t n_rules, room;
	uint32_t root;
};

/* False: err says what stands in which line and column. */
bool gbnf_read(struct gbnf *g, const char *text, size_t n, const struct machine_tokens *tokens, struct error *err);
void gbnf_clear(struct gbnf *g);
/* Sets err to "the grammar, line L, column C: why"; false. */
bool gbnf_fail(struct error *err, enum error_code code, const char *text, size_t at, const char *why);

#endif
