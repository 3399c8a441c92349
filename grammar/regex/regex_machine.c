/* grammar/regex/regex_machine.c - the machine of a regular expression: its automaton, without a stack. */
#include <stdlib.h>

#include "grammar/machine/effort.h"
#include "grammar/machine/machine.h"
#include "grammar/regex/regex.h"

struct regex_machine {
	struct machine machine;
	struct automaton *automaton;
};

static struct automaton *automaton_of(const struct machine *m) { return ((const struct regex_machine *)m)->automaton; }

static uint32_t step(struct machine *m, uint32_t state, uint8_t byte)
{
	struct effort *before = machine_begin(m);
	uint32_t next = automaton_step(automaton_of(m), state, byte);

	effort_end(before);
	m->failed |= automaton_failed(automaton_of(m));
	return next;
}

static bool ends(struct machine *m, uint32_t state) { return automaton_accepts(automaton_of(m), state); }
static uint32_t top(const struct machine *m, uint32_t state)
{
	(void)m;
	return state;
}
static uint32_t alone(struct machine *m, uint32_t state) { return top(m, state); }
static uint32_t easy(struct machine *m, uint32_t state, enum easy class)
{
	return automaton_reach(automaton_of(m), state, class);
}
static size_t bytes(const struct machine *m) { return automaton_bytes(automaton_of(m)); }

static void close_machine(struct machine *m)
{
	automaton_close(automaton_of(m));
	free(m);
}

static const struct machine_kind regex_kind = { step, ends, top, alone, easy, bytes, close_machine, NULL };

struct source {
	const char *text;
	size_t n;
};

static struct machine *make(const void *source, struct error *err)
{
	const struct source *of = source;
	struct regex_machine *m = effort_calloc(1, sizeof *m);

	if (!m) {
		error_set(err, ERROR_MEMORY, "no memory for an expression");
		return NULL;
	}
	m->machine = (struct machine){ .kind = &regex_kind, .start = AUTOMATON_START };
	m->automaton = regex_automaton(of->text, of->n, false, err);
	if (m->automaton && !automaton_is_live(m->automaton)) {
		error_set(err, ERROR_ARGUMENT, "the expression is one that no text is right by");
		automaton_close(m->automaton);
		m->automaton = NULL;
	}
	if (m->automaton)
		return &m->machine;
	free(m);
	return NULL;
}

struct machine *machine_of_regex(const char *text, size_t n, struct error *err)
{
	return machine_make(make, &(struct source){ text, n }, err);
}
