#include "grammar/regex/automaton.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/regex/automaton_parts.h"
#include "grammar/machine/effort.h"
#include "grammar/machine/machine.h"
#include "grammar/regex/reach.h"

/* States, and steps between them, of one automaton: both end what a hostile pattern could make of it. */
enum { STATES_MAX = 1 << 15, MEMBERS_MAX = 1 << 22, TRAIL_MAX = 2000, NOT_MADE = UINT32_MAX };

/* The states of the nondeterministic automaton that bytes may have led to, in ascending order; of one that looks
 * ahead, its threads (automaton_parts.h), of which nobody sees whether they can end. */
enum hope { HOPE_UNKNOWN, HOPE_YES, HOPE_NO };
struct subset {
	uint32_t at, n;
	bool accepts;
	uint8_t hope;
};

struct automaton {
	struct machine *machine; /* all that follows is of those without */
	struct nfa nfa;
	uint8_t class_of[256]; /* bytes that no NFA state tells apart are a class */
	unsigned classes;
	struct subset *state;
	size_t n, capacity;
	uint32_t *member; /* of all subsets */
	size_t n_members, member_capacity;
	uint32_t *next; /* [state][class] */
	size_t next_capacity;
	uint32_t *slot; /* a hash table of subsets: their numbers */
	size_t slots;
	uint32_t *gathered, *stack; /* the subset being made */
	size_t n_gathered;
	uint64_t *seen; /* a bit for each NFA state */
	struct threads threads;
	bool failed;
};

static bool was_seen(struct automaton *a, uint32_t nfa_state)
{
	uint64_t bit = 1ull << (nfa_state & 63), was = a->seen[nfa_state >> 6];

	a->seen[nfa_state >> 6] = was | bit;
	return (was & bit) != 0;
}

/* Everything that an NFA state leads to without a byte. */
static void gather(struct automaton *a, uint32_t from, bool beginning)
{
	size_t depth = 0;

	if (was_seen(a, from))
		return;
	a->stack[depth++] = from;
	while (depth) {
		uint32_t at = a->stack[--depth];
		const struct nfa_state *p = &a->nfa.nfa_state[at];
		uint32_t to[2] = { at, at };
		bool leads = p->kind == NFA_SPLIT || p->kind == NFA_BEGIN;
		if (!p->live && !(beginning && leads))
			continue;
		if (p->kind == NFA_SPLIT || (p->kind == NFA_BEGIN && beginning)) {
			to[0] = p->out;
			to[1] = p->kind == NFA_SPLIT ? p->other : p->out;
		} else if (p->kind != NFA_BEGIN) {
			a->gathered[a->n_gathered++] = at;
		}
		for (unsigned k = 0; k < 2; k++)
			if (to[k] != at && !was_seen(a, to[k]))
				a->stack[depth++] = to[k];
	}
}

/* What was gathered, in ascending order, and nothing is seen any more: by the bits of what was seen, as to sort it
 * would take several times as long as all the rest of a step. */
static void order_gathered(struct automaton *a)
{
	size_t n = 0;

	for (size_t i = 0; i <= a->nfa.n / 64; i++) {
		for (uint64_t bits = a->seen[i]; bits; bits &= bits - 1) {
			const uint32_t at = (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(bits);
			const struct nfa_state *p = &a->nfa.nfa_state[at];
			if (p->live && p->kind != NFA_SPLIT && p->kind != NFA_BEGIN)
				a->gathered[n++] = at;
		}
		a->seen[i] = 0;
	}
	assert(n == a->n_gathered);
}

static uint64_t hash_of(const uint32_t *member, size_t n)
{
	uint64_t h = 0xcbf29ce484222325 ^ n;

	for (size_t i = 0; i < n; i++)
		h = (h ^ member[i]) * 0x9e3779b97f4a7c15;
	return h ^ h >> 29;
}

static size_t find_slot(const struct automaton *a, const uint32_t *member, size_t n)
{
	size_t at = hash_of(member, n) & (a->slots - 1);

	for (; a->slot[at]; at = (at + 1) & (a->slots - 1)) {
		const struct subset *s = &a->state[a->slot[at]];
		if (s->n == n && memcmp(a->member + s->at, member, n * sizeof *member) == 0)
			break;
	}
	return at;
}

static bool rehash(struct automaton *a)
{
	size_t was = a->slots;
	uint32_t *old = a->slot, *table;

	if (a->n + 1 < was / 2)
		return true;
	table = effort_calloc(was ? 2 * was : 64, sizeof *table);
	if (!table)
		return false;
	a->slot = table;
	a->slots = was ? 2 * was : 64;
	for (size_t i = 2; i < a->n; i++) /* the dead and the first state are not looked for */
		a->slot[find_slot(a, a->member + a->state[i].at, a->state[i].n)] = (uint32_t)i;
	free(old);
	return true;
}

/* A new state with the subset that was gathered. */
static uint32_t add_state(struct automaton *a)
{
	void *states = a->state, *members = a->member, *next = a->next;
	size_t n = a->n_gathered;
	const size_t bytes = automaton_bytes(a);

	if (a->n >= STATES_MAX || a->n_members + n > MEMBERS_MAX) {
		effort_refuse();
		return 0;
	}
	if (!effort_take(10 + 2 * n + a->classes) || !rehash(a) ||
	    !effort_array(&states, &a->capacity, a->n + 1, sizeof *a->state))
		return 0;
	a->state = states;
	if (!effort_array(&members, &a->member_capacity, a->n_members + n, sizeof *a->member))
		return 0;
	a->member = members;
	if (!effort_array(&next, &a->next_capacity, (a->n + 1) * a->classes, sizeof *a->next))
		return 0;
	a->next = next;
	struct subset *s = &a->state[a->n];
	*s = (struct subset){ .at = (uint32_t)a->n_members, .n = (uint32_t)n };
	if (n)
		memcpy(a->member + a->n_members, a->gathered, n * sizeof *a->member);
	for (size_t i = 0; i < n && !a->nfa.looks; i++)
		s->accepts |= a->nfa.nfa_state[a->gathered[i]].ends;
	if (a->nfa.looks)
		s->accepts = threads_accept(&a->nfa, a->gathered, n);
	a->n_members += n;
	for (unsigned c = 0; c < a->classes; c++)
		a->next[a->n * a->classes + c] = NOT_MADE;
	a->n++;
	return effort_grow(bytes, automaton_bytes(a)) ? (uint32_t)a->n - 1 : 0;
}

/* The state of the subset that was gathered, made if there is none yet. */
static uint32_t state_of_gathered(struct automaton *a)
{
	size_t n = a->n_gathered;

	if (!a->nfa.looks)
		order_gathered(a);
	if (n == 0)
		return AUTOMATON_DEAD;
	size_t slot = find_slot(a, a->gathered, n);
	if (a->slot[slot])
		return a->slot[slot];
	uint32_t state = add_state(a);
	if (!state)
		a->failed = true;
	else
		a->slot[find_slot(a, a->gathered, n)] = state;
	return state;
}

static uint32_t fail(struct automaton *a)
{
	a->failed = true;
	effort_refuse();
	return AUTOMATON_DEAD;
}

static uint32_t look_step(struct automaton *a, uint32_t state, uint8_t byte)
{
	const struct subset s = a->state[state];

	threads_step(&a->nfa, a->member + s.at, s.n, byte, &a->threads);
	a->gathered = a->threads.word;
	a->n_gathered = a->threads.n;
	return a->failed || a->threads.failed ? fail(a) : state_of_gathered(a);
}

static uint32_t make_step(struct automaton *a, uint32_t state, uint8_t byte)
{
	const struct subset s = a->state[state];

	if (!effort_take(5 + 2 * s.n + a->nfa.n / 64))
		return fail(a);
	if (a->nfa.looks)
		return look_step(a, state, byte);
	a->n_gathered = 0;
	for (uint32_t i = 0; i < s.n; i++) {
		const struct nfa_state *p = &a->nfa.nfa_state[a->member[s.at + i]];
		if (p->kind == NFA_BYTES && byte >= p->low && byte <= p->high)
			gather(a, p->out, false);
	}
	return state_of_gathered(a);
}

static uint32_t next_of(struct automaton *a, uint32_t state, uint8_t byte)
{
	size_t at = (size_t)state * a->classes + a->class_of[byte];

	if (a->next[at] == NOT_MADE) {
		uint32_t to = make_step(a, state, byte);
		if (a->failed)
			return AUTOMATON_DEAD;
		a->next[at] = to;
	}
	return a->next[at];
}

/* States on the way to one that is looked for, each with the one before it. */
struct trail {
	uint32_t *state, *from;
	size_t n, room, from_room;
};

static bool trail_add(struct automaton *a, struct trail *t, uint32_t state, uint32_t from)
{
	void *states = t->state, *froms = t->from;

	a->failed |= !effort_take(1 + t->n / 8);
	for (size_t i = 0; i < t->n; i++)
		if (t->state[i] == state)
			return true;
	if (!effort_array(&states, &t->room, t->n + 1, sizeof *t->state)) {
		a->failed = true;
		return false;
	}
	t->state = states;
	if (!effort_array(&froms, &t->from_room, t->n + 1, sizeof *t->from)) {
		a->failed = true;
		return false;
	}
	t->from = froms;
	t->state[t->n] = state;
	t->from[t->n++] = from;
	return true;
}

/* Looks for a state in which the text may end, breadth first; what is found out holds for all states on the way. Where
 * that takes long, there will be one. */
static bool find_hope(struct automaton *a, uint32_t state, struct trail *t)
{
	trail_add(a, t, state, 0);
	for (size_t i = 0; i < t->n && !a->failed; i++) {
		uint32_t at = t->state[i];
		if (a->state[at].accepts || a->state[at].hope == HOPE_YES || t->n > TRAIL_MAX) {
			for (; a->state[at].hope = HOPE_YES, i; at = t->state[i])
				i = t->from[i];
			a->state[state].hope = HOPE_YES;
			return true;
		}
		int last = -1;
		for (unsigned byte = 0; byte < 256 && !a->failed; byte++) {
			uint32_t to = a->class_of[byte] == last || a->state[at].hope == HOPE_NO
			                      ? AUTOMATON_DEAD
			                      : next_of(a, at, (uint8_t)byte);
			last = a->class_of[byte];
			if (to != AUTOMATON_DEAD)
				trail_add(a, t, to, (uint32_t)i);
		}
	}
	for (size_t i = 0; i < t->n && !a->failed; i++)
		a->state[t->state[i]].hope = HOPE_NO;
	return false;
}

static bool has_hope(struct automaton *a, uint32_t state)
{
	struct trail t = { 0 };

	if (!a->nfa.looks || state == AUTOMATON_DEAD)
		return state != AUTOMATON_DEAD;
	if (a->state[state].hope == HOPE_UNKNOWN)
		find_hope(a, state, &t);
	free(t.state);
	free(t.from);
	return !a->failed && a->state[state].hope == HOPE_YES;
}

/* The machine's states, one more than their numbers, but for the first one. */
static uint32_t machine_state(const struct automaton *a, uint32_t state)
{
	return state == AUTOMATON_START ? a->machine->start : state - 1;
}

static uint32_t step_machine(struct automaton *a, uint32_t state, uint8_t byte)
{
	const uint32_t to = machine_step(a->machine, machine_state(a, state), byte);

	a->failed |= a->machine->failed;
	return a->failed || to == MACHINE_DEAD ? AUTOMATON_DEAD : to == a->machine->start ? AUTOMATON_START : to + 1;
}

uint32_t automaton_step(struct automaton *a, uint32_t state, uint8_t byte)
{
	if (state == AUTOMATON_DEAD || a->failed)
		return AUTOMATON_DEAD;
	if (a->machine)
		return step_machine(a, state, byte);
	uint32_t to = next_of(a, state, byte);
	return has_hope(a, to) ? to : AUTOMATON_DEAD;
}

static uint32_t reach_step(void *a, uint32_t state, uint8_t byte) { return automaton_step(a, state, byte); }

uint32_t automaton_reach(struct automaton *a, uint32_t state, enum easy class)
{
	struct reach r = { .step = reach_step, .user = a, .class_of = a->class_of };

	if (a->machine)
		return 0;
	return reach_from(&r, state, class);
}

void automaton_borders(const struct automaton *a, bool border[256])
{
	for (unsigned b = 1; b < 256; b++)
		border[b] |= a->machine || a->class_of[b] != a->class_of[b - 1];
}

bool automaton_accepts(const struct automaton *a, uint32_t state)
{
	if (a->machine)
		return state != AUTOMATON_DEAD && machine_ends(a->machine, machine_state(a, state));
	return state != AUTOMATON_DEAD && a->state[state].accepts;
}

bool automaton_failed(const struct automaton *a) { return a->failed; }

bool automaton_is_live(struct automaton *a)
{
	return a->machine || (a->state[AUTOMATON_START].n > 0 && has_hope(a, AUTOMATON_START));
}

size_t automaton_bytes(const struct automaton *a)
{
	return (a->machine ? machine_bytes(a->machine) : 0) + a->capacity * sizeof *a->state +
	       a->member_capacity * sizeof *a->member + a->next_capacity * sizeof *a->next + a->slots * sizeof *a->slot;
}

/* What it has from its beginning to its end, which is most of a large one of which few states were made. */
static size_t own_bytes(const struct automaton *a)
{
	const size_t nfa_states = a->nfa.n + 1;

	return sizeof *a + a->nfa.capacity * sizeof *a->nfa.nfa_state +
	       nfa_states * (sizeof *a->gathered + sizeof *a->stack) + nfa_states / 8;
}

static bool make_first_states(struct automaton *a)
{
	size_t n = a->nfa.n + 1;

	if (!effort_grow(0, own_bytes(a)))
		return false;
	a->gathered = a->nfa.looks ? NULL : effort_malloc(n * sizeof *a->gathered);
	a->stack = effort_malloc(n * sizeof *a->stack);
	a->seen = effort_calloc(n / 64 + 1, sizeof *a->seen);
	if ((!a->gathered && !a->nfa.looks) || !a->stack || !a->seen)
		return false;
	add_state(a); /* the dead one */
	if (a->n != 1)
		return false;
	if (a->nfa.looks) {
		threads_begin(&a->nfa, &a->threads);
		if (a->threads.failed)
			return false;
		a->gathered = a->threads.word;
		a->n_gathered = a->threads.n;
	} else {
		gather(a, a->nfa.entry, true);
		order_gathered(a);
	}
	add_state(a);
	return a->n == 2 && !a->threads.failed;
}

struct automaton *automaton_open(const struct expression *x, uint32_t node, bool anywhere, struct error *err)
{
	struct automaton *a = effort_calloc(1, sizeof *a);

	if (!a || x->failed || !nfa_make(&a->nfa, x, node, anywhere)) {
		error_set(err, ERROR_UNSUPPORTED, "an expression is too large");
		automaton_close(a);
		return NULL;
	}
	a->classes = nfa_classes(&a->nfa, a->class_of);
	if (!make_first_states(a)) {
		error_set(err, ERROR_UNSUPPORTED, "an expression has too many ways to begin");
		automaton_close(a);
		return NULL;
	}
	return a;
}

struct automaton *automaton_of_machine(struct machine *m, struct error *err)
{
	struct automaton *a = effort_calloc(1, sizeof *a);

	if (!a) {
		machine_close(m);
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
		return NULL;
	}
	a->machine = m;
	return a;
}

void automaton_close(struct automaton *a)
{
	if (!a)
		return;
	machine_close(a->machine);
	free(a->nfa.nfa_state);
	free(a->state);
	free(a->member);
	free(a->next);
	free(a->slot);
	free(a->nfa.looks ? a->threads.word : a->gathered);
	free(a->stack);
	free(a->seen);
	free(a);
}
