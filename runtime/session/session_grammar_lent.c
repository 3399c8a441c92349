/* runtime/session/session_grammar_lent.c - a session's grammar while another thread looks for what it allows next. */
#include "runtime/session/session_grammar_parts.h"
#include "runtime/session/session_share.h"

void session_grammar_share(unsigned n) { grammar_share(n); }

void session_grammar_defer(jit_session *s)
{
	if (s->grammar)
		grammar_close_drafts(s->grammar->grammar, s->speculate.mode != SPECULATE_OFF);
}

/* Whether the next choice is made among what the grammar allows. */
static bool holds_next(const struct session_grammar *g) { return !g->lead || lead_has_grammar(g->lead); }

bool session_grammar_is_due(const jit_session *s)
{
	const struct session_grammar *g = s->grammar;

	return g && holds_next(g) && g->why.code == ERROR_NONE &&
	       (!grammar_is_found(g->grammar) || grammar_wants_drafts(g->grammar));
}

uint64_t session_grammar_cost(const jit_session *s) { return s->grammar ? grammar_cost(s->grammar->grammar) : 0; }

struct session_grammar *session_grammar_lend(jit_session *s)
{
	struct session_grammar *g = s->grammar;

	s->grammar = NULL;
	s->speculate.rules = NULL;
	g->session = NULL;
	return g;
}

void session_grammar_find(struct session_grammar *g, bool (*gone)(void *user), void *user)
{
	bool (*before)(void *) = g->gone;
	void *before_user = g->user;
	bool ends;

	g->gone = gone;
	g->user = user;
	if (!grammar_allowed(g->grammar, &ends, &g->why) && g->why.code == ERROR_NONE)
		error_set(&g->why, ERROR_MEMORY, "no memory for a grammar");
	if (g->why.code == ERROR_NONE && grammar_wants_drafts(g->grammar))
		grammar_open_drafts(g->grammar);
	g->gone = before;
	g->user = before_user;
}
