/* grammar/rules/gbnf_left.h - rules that can begin with themselves.
 *
 * What such a rule has begun has no end, so nothing is put on the stack for a rule that another begins with. A set of
 * rules that can begin with each other is begun at once at all NFA states where a byte is waited for, and with the rule
 * that is wanted below. Where one of its rules is done, those go on that may have begun with it.
 */
#ifndef GRAMMAR_GBNF_LEFT_H
#define GRAMMAR_GBNF_LEFT_H

#include "grammar/regex/automaton_parts.h"

struct left_site {
	uint32_t rule, out; /* where another of the set goes on behind this rule */
};
/* Rules that can begin with each other, and those beside them that may be empty before one. */
struct left_set {
	uint32_t *begin; /* NFA states that wait for a byte, a token, or another rule */
	struct left_site *site;
	size_t n_begin, begin_room, n_sites, site_room;
};
struct left {
	uint32_t *set_of;            /* [rule]: one more than its set; 0: it cannot begin with itself */
	uint32_t *rule_at, *ends_at; /* [NFA state]: one more than the rule that begins, or ends here */
	uint32_t *end;               /* [rule]: its last NFA state */
	struct left_set *set;
	size_t n;
};

/* entry and end: of each rule, in NFA states that are marked; end is taken over. False: no memory. */
bool left_find(struct left *l, const struct nfa *p, const uint32_t *entry, uint32_t *end, size_t n_rules);
void left_clear(struct left *l);

#endif
