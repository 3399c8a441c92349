/* grammar/rules/gbnf_nfa.c - the rules of a grammar become states (automaton_parts.h), which call each other. */
#include <stdlib.h>

#include "grammar/machine/effort.h"
#include "grammar/rules/gbnf_parts.h"
#include "grammar/rules/lark.h"

static bool add_rules(const struct gbnf *g, struct nfa *p, uint32_t *entry, uint32_t *end, const char *text,
                      struct error *err)
{
	for (size_t i = 0; i < g->n_rules; i++) {
		end[i] = (uint32_t)p->n;
		if (!nfa_add(p, &g->x, g->rule[i].node, &entry[i]))
			return gbnf_fail(err, ERROR_UNSUPPORTED, text, g->rule[i].at,
			                 "with this rule the grammar is too large, or there is no memory for it");
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->nfa_state[i].kind == NFA_RULE)
			p->nfa_state[i].other = entry[p->nfa_state[i].other];
	nfa_mark(p);
	return !p->failed || error_set(err, ERROR_UNSUPPORTED, "the grammar is too large, or there is no memory");
}

bool gbnf_nfa(struct nfa *p, struct left *left, uint32_t *entry, const struct gbnf_source *of, struct error *err)
{
	struct gbnf g = { 0 };
	uint32_t *entries = NULL, *end = NULL;
	bool ok = of->is_lark ? lark_read(&g, of->text, of->n, err) : gbnf_read(&g, of->text, of->n, of->tokens, err);

	if (ok &&
	    (!(entries = effort_calloc(g.n_rules, sizeof *entries)) || !(end = effort_calloc(g.n_rules, sizeof *end))))
		ok = error_set(err, ERROR_MEMORY, "no memory for a grammar");
	ok = ok && add_rules(&g, p, entries, end, of->text, err);
	if (ok) {
		*entry = entries[g.root];
		ok = left_find(left, p, entries, end, g.n_rules) ||
		     error_set(err, ERROR_MEMORY, "no memory for a grammar");
		end = NULL;
	}
	free(entries);
	free(end);
	gbnf_clear(&g);
	return ok;
}
