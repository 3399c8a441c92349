/* grammar/grammar_drafts.c - what can be said of the next tokens before they are chosen. */
#include "grammar/grammar_parts.h"
#include "grammar/machine/effort.h"

/* For drafts, a machine of their own: what they try must not spare the other one work, or an answer that comes near the
 * end of its account would depend on them. It is small, and where it is not enough there are no drafts. */
enum { ASIDE_TO_OPEN = 4000000, ASIDE_OF_CALL = 300000, ASIDE_OF_TOKEN = 20000, ASIDE_BYTES = 32 << 20 };

static void aside_close(struct aside *a)
{
	machine_close(a->machine);
	a->machine = NULL;
	a->off = true;
}

static bool aside_open(struct grammar *g)
{
	struct aside *a = &g->aside;
	struct error ignored = { 0 };

	if (a->off || a->machine || a->closed)
		return !a->off && a->machine;
	effort_give(&a->effort, ASIDE_TO_OPEN);
	a->effort.bytes = ASIDE_BYTES;
	struct effort *before = effort_begin(&a->effort);
	a->machine = g->opened < ASIDE_TO_OPEN ? grammar_machine(g, &ignored) : NULL;
	effort_end(before);
	if (!a->machine || effort_over_of(&a->effort))
		aside_close(a);
	return !a->off;
}

void grammar_close_drafts(struct grammar *g, bool wanted)
{
	g->aside.closed = true;
	g->aside.off = g->aside.off || !wanted;
}

bool grammar_wants_drafts(const struct grammar *g) { return g->aside.closed && !g->aside.off && !g->aside.machine; }

void grammar_open_drafts(struct grammar *g)
{
	g->aside.closed = false;
	aside_open(g);
	g->aside.closed = true;
}

/* The state of its machine behind the tokens taken; MACHINE_DEAD: there are no drafts. *before: for aside_end(). */
static uint32_t aside_begin(struct grammar *g, struct effort **before)
{
	struct aside *a = &g->aside;

	*before = effort_of_thread;
	if (!aside_open(g))
		return MACHINE_DEAD;
	a->effort.stop = g->effort.stop;
	a->effort.user = g->effort.user;
	a->effort.left = a->effort.ask_at = a->effort.told = ASIDE_OF_CALL + ASIDE_OF_TOKEN * (uint64_t)(g->n - a->n);
	effort_begin(&a->effort);
	uint32_t state = a->n ? g->taken[a->n - 1].aside : a->machine->start;
	for (; a->n < g->n && state != MACHINE_DEAD; a->n++) {
		const struct grammar_token t = grammar_token_at(g, a->n);
		g->taken[a->n].aside = state = grammar_walk(g, a->machine, state, &t);
	}
	return state;
}

static bool aside_end(struct grammar *g, struct effort *before)
{
	struct aside *a = &g->aside;

	effort_end(before);
	if (a->machine && (a->machine->failed || effort_over_of(&a->effort)))
		aside_close(a);
	return !a->off;
}

/* The byte that alone leads on from a state; -1: no byte or several lead on. */
static int only_byte(struct machine *m, uint32_t state)
{
	int only = -1;

	for (int b = 0; b < 256; b++) {
		bool other = b == '\\' || b == ' ' || b == '\t' || b == '\n' || b == '\r';
		if (other || machine_step(m, state, (uint8_t)b) == MACHINE_DEAD)
			continue;
		if (only >= 0)
			return -1;
		only = b;
	}
	return only;
}

static size_t forced(struct machine *m, uint32_t state, char *out, size_t max)
{
	size_t n = 0;

	while (n < max && state != MACHINE_DEAD && !machine_ends(m, state)) {
		uint32_t id;
		bool without;
		if (m->whole && m->whole->test(m, state, 0, &id, &without))
			break;
		int byte = only_byte(m, state);
		if (byte < 0)
			break;
		out[n++] = (char)byte;
		state = machine_step(m, state, (uint8_t)byte);
	}
	return n;
}

size_t grammar_forced(struct grammar *g, char *out, size_t max)
{
	struct effort *before;
	const uint32_t state = aside_begin(g, &before);
	const size_t n = state == MACHINE_DEAD ? 0 : forced(g->aside.machine, state, out, max);

	return aside_end(g, before) ? n : 0;
}

size_t grammar_fitting(struct grammar *g, const struct grammar_token *token, size_t n)
{
	struct effort *before;
	uint32_t state = aside_begin(g, &before);
	size_t i = 0;

	for (; i < n && state != MACHINE_DEAD; i++)
		if ((state = grammar_walk(g, g->aside.machine, state, &token[i])) == MACHINE_DEAD)
			break;
	return aside_end(g, before) ? i : 0;
}
