/* grammar/rules/gbnf_machine.c - the machine of a grammar of rules: all stacks that the bytes so far can have led to,
 * side by side.
 *
 * States are sets of stacks (gbnf_stacks.h), made as they are reached. The top of a state has the NFA states of its
 * stacks alone, with BELOW_UNKNOWN beneath.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/regex/automaton_parts.h"
#include "grammar/machine/effort.h"
#include "grammar/rules/gbnf_stacks.h"

/* Bytes of all states, after which the machine fails. */
enum { BYTES_MAX = 64 << 20 };
enum { NOT_MADE = UINT32_MAX - 1, NO_ROW = UINT32_MAX };

static struct gbnf_machine *of(struct machine *m) { return (struct gbnf_machine *)m; }

static int ascending(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	if (x->nfa_state != y->nfa_state)
		return x->nfa_state < y->nfa_state ? -1 : 1;
	return x->below < y->below ? -1 : x->below > y->below;
}

static size_t memory(const struct gbnf_machine *m)
{
	return interner_bytes(&m->stacks) + interner_bytes(&m->states) + m->room * sizeof *m->state +
	       m->next_room * sizeof *m->next + m->found_room * sizeof *m->found + m->slots * sizeof *m->seen;
}

/* Keeps those stacks that wait for a byte or a token, or are finished. */
static size_t sort_out(struct gbnf_machine *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n_found; i++) {
		const struct stack s = m->found[i];
		enum nfa_kind kind = m->nfa.nfa_state[s.nfa_state].kind;
		if (kind == NFA_BYTES || kind == NFA_TOKEN ||
		    (kind == NFA_MATCH && (s.below == BELOW_NOTHING || s.below == BELOW_UNKNOWN)))
			m->found[kept++] = s;
	}
	qsort(m->found, kept, sizeof *m->found, ascending);
	return kept;
}

/* The state of the first n stacks found, whose top is still 0 if it is new. */
static uint32_t state_of_found(struct gbnf_machine *m, size_t n)
{
	void *all = m->state;
	int made = 0;

	_Static_assert(sizeof(struct stack) == 2 * sizeof(uint32_t), "stacks are words");
	uint32_t number = interner_add(&m->states, (const uint32_t *)m->found, 2 * n, &made);
	if (!number || !effort_array(&all, &m->room, m->n + 1, sizeof *m->state))
		return stacks_fail(m);
	m->state = all;
	if (!made)
		return number;
	struct state s = { .row = NO_ROW };
	for (size_t i = 0; i < n; i++) {
		bool finished = m->nfa.nfa_state[m->found[i].nfa_state].kind == NFA_MATCH;
		s.ends |= finished && m->found[i].below == BELOW_NOTHING;
		s.unknown |= finished && m->found[i].below == BELOW_UNKNOWN;
	}
	m->state[m->n++] = s;
	return number;
}

/* The same NFA states without duplicates, each on an unknown stack; those on the empty stack stay. The order is kept.
 */
static size_t cut_below(struct gbnf_machine *m, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct stack s = m->found[i];
		if (s.below != BELOW_NOTHING)
			s.below = BELOW_UNKNOWN;
		if (!kept || ascending(&m->found[kept - 1], &s) != 0)
			m->found[kept++] = s;
	}
	return kept;
}

/* The state of all that the stacks found lead to. */
static uint32_t settle(struct gbnf_machine *m)
{
	bool ok = (stacks_follow(m) && memory(m) <= BYTES_MAX && effort_take(10 + 4 * m->n_found + m->slots / 16)) ||
	          stacks_fail(m);
	size_t n = sort_out(m);

	/* The table's indices hold no longer. */
	memset(m->seen, 0, m->slots * sizeof *m->seen);
	m->n_found = 0;
	uint32_t state = ok && n ? state_of_found(m, n) : MACHINE_DEAD;
	if (state != MACHINE_DEAD && m->state[state - 1].top == 0) {
		uint32_t top = state_of_found(m, cut_below(m, n));
		if (top == MACHINE_DEAD)
			return MACHINE_DEAD;
		m->state[state - 1].top = top;
		m->state[top - 1].top = top;
	}
	return state;
}

static uint32_t make_step(struct gbnf_machine *m, uint32_t state, uint8_t byte)
{
	size_t n;
	const struct stack *s = (const struct stack *)interner_get(&m->states, state, &n);
	bool ok = effort_take(2 + n / 4) || stacks_fail(m);

	for (size_t i = 0; i < n / 2 && ok; i++) {
		const struct nfa_state *p = &m->nfa.nfa_state[s[i].nfa_state];
		if (p->kind == NFA_BYTES && byte >= p->low && byte <= p->high)
			ok = stacks_find(m, p->out, s[i].below);
	}
	return m->n_found ? settle(m) : MACHINE_DEAD;
}

static bool make_row(struct gbnf_machine *m, struct state *s)
{
	void *all = m->next;

	if (s->row != NO_ROW)
		return true;
	if (!effort_array(&all, &m->next_room, (m->rows + 1) * m->classes, sizeof *m->next))
		return stacks_fail(m);
	m->next = all;
	s->row = (uint32_t)m->rows++;
	for (unsigned c = 0; c < m->classes; c++)
		m->next[(size_t)s->row * m->classes + c] = NOT_MADE;
	return true;
}

static uint32_t step(struct machine *machine, uint32_t state, uint8_t byte)
{
	struct gbnf_machine *m = of(machine);

	if (state == MACHINE_DEAD || machine->failed)
		return MACHINE_DEAD;
	struct state *s = &m->state[state - 1];
	if (s->unknown)
		return MACHINE_BELOW;
	if (!make_row(m, s))
		return MACHINE_DEAD;
	size_t at = (size_t)s->row * m->classes + m->class_of[byte];
	if (m->next[at] == NOT_MADE) {
		struct effort *before = machine_begin(machine);
		uint32_t to = make_step(m, state, byte);
		effort_end(before);
		if (machine->failed)
			return MACHINE_DEAD;
		m->next[at] = to;
	}
	return m->next[at];
}

static bool ends(struct machine *m, uint32_t state) { return state != MACHINE_DEAD && of(m)->state[state - 1].ends; }
static uint32_t top(const struct machine *m, uint32_t state)
{
	return ((const struct gbnf_machine *)m)->state[state - 1].top;
}
static uint32_t alone(struct machine *m, uint32_t state)
{
	(void)m;
	return state;
}
static uint32_t easy(struct machine *m, uint32_t state, enum easy class)
{
	(void)m;
	(void)state;
	(void)class;
	return 0;
}
static size_t bytes(const struct machine *m) { return memory((const struct gbnf_machine *)m); }

static void close_machine(struct machine *machine)
{
	struct gbnf_machine *m = of(machine);

	free(m->nfa.nfa_state);
	left_clear(&m->left);
	interner_clear(&m->stacks);
	interner_clear(&m->states);
	free(m->state);
	free(m->next);
	free(m->found);
	free(m->seen);
	free(m);
}

/* ---- whole tokens */

static uint32_t step_whole(struct machine *machine, uint32_t state, uint32_t id)
{
	struct gbnf_machine *m = of(machine);
	bool ok = state != MACHINE_DEAD && !machine->failed;
	size_t n = 0;
	const struct stack *s = ok ? (const struct stack *)interner_get(&m->states, state, &n) : NULL;

	for (size_t i = 0; i < n / 2 && ok; i++) {
		const struct nfa_state *p = &m->nfa.nfa_state[s[i].nfa_state];
		if (p->kind == NFA_TOKEN && (p->other == id) != (p->low != 0))
			ok = stacks_find(m, p->out, s[i].below);
	}
	return ok && m->n_found ? settle(m) : MACHINE_DEAD;
}

static uint32_t both(struct machine *machine, uint32_t a, uint32_t b)
{
	const uint32_t states[] = { a, b };
	struct gbnf_machine *m = of(machine);
	bool ok = !machine->failed;

	for (int k = 0; k < 2; k++) {
		size_t n = 0;
		const struct stack *s =
			states[k] != MACHINE_DEAD ? (const struct stack *)interner_get(&m->states, states[k], &n)
						  : NULL;
		for (size_t i = 0; i < n / 2 && ok; i++)
			ok = stacks_find(m, s[i].nfa_state, s[i].below);
	}
	return ok && m->n_found ? settle(m) : MACHINE_DEAD;
}

static bool test(struct machine *machine, uint32_t state, size_t i, uint32_t *id, bool *without)
{
	struct gbnf_machine *m = of(machine);
	size_t n;
	const struct stack *s = (const struct stack *)interner_get(&m->states, state, &n);

	if (!effort_take(2 + i / 4))
		return false;
	for (size_t k = 0; k < n / 2; k++) {
		const struct nfa_state *p = &m->nfa.nfa_state[s[k].nfa_state];
		if (p->kind == NFA_TOKEN && i-- == 0) {
			*id = p->other;
			*without = p->low != 0;
			return true;
		}
	}
	return false;
}

static const struct machine_whole gbnf_whole = { step_whole, both, test };
/* A top can have several stacks below it. */
static bool many(const struct machine *m, uint32_t state)
{
	(void)m;
	(void)state;
	return true;
}

static const struct machine_kind gbnf_kind = { step, ends, top, alone, easy, bytes, close_machine, many };

static struct machine *no_machine(struct gbnf_machine *m, struct error *err, enum error_code code, const char *why)
{
	error_set(err, code, "%s", why);
	if (m)
		close_machine(&m->machine);
	return NULL;
}

static struct machine *make(const void *source, struct error *err)
{
	const struct gbnf_source *of = source;
	static const char no_memory[] = "no memory for a grammar";
	struct gbnf_machine *m = effort_calloc(1, sizeof *m);
	uint32_t entry;

	if (!m)
		return no_machine(m, err, ERROR_MEMORY, no_memory);
	m->machine.kind = &gbnf_kind;
	if (!gbnf_nfa(&m->nfa, &m->left, &entry, of, err))
		return no_machine(m, err, ERROR_MEMORY, no_memory);
	for (size_t i = 0; i < m->nfa.n; i++)
		if (m->nfa.nfa_state[i].kind == NFA_TOKEN)
			m->machine.whole = &gbnf_whole;
	m->classes = nfa_classes(&m->nfa, m->class_of);
	if (!m->nfa.nfa_state[entry].live)
		return no_machine(m, err, ERROR_ARGUMENT, "the grammar is one that no text is right by");
	m->machine.start = stacks_begin(m, entry, BELOW_NOTHING) ? settle(m) : MACHINE_DEAD;
	if (m->machine.failed || m->machine.start == MACHINE_DEAD)
		return no_machine(m, err, ERROR_UNSUPPORTED,
		                  "the grammar has too many ways to begin a text, or there is no memory for it");
	return &m->machine;
}

struct machine *machine_of_gbnf(const char *text, size_t n, const struct machine_tokens *tokens, struct error *err)
{
	return machine_make(make, &(struct gbnf_source){ .text = text, .n = n, .tokens = tokens }, err);
}

struct machine *machine_of_lark(const char *text, size_t n, struct error *err)
{
	return machine_make(make, &(struct gbnf_source){ .text = text, .n = n, .is_lark = true }, err);
}
