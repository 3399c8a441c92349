/* tests/fuzz/fuzz_grammar.c - schemas, expressions and rules that nobody has checked, and texts against them. */
#include <stdlib.h>
#include <string.h>

#include "grammar/grammar.h"
#include "grammar/machine/machine.h"
#include "tests/fuzz/fuzz.h"

/* A schema, an expression or rules up to a zero byte, then a text: what the machine takes must lead somewhere, and what
 * it refuses must stay refused. */
static void walk(struct machine *m, const uint8_t *text, size_t n)
{
	uint32_t state = m->start;

	for (size_t i = 0; i < n && i < 200 && state != MACHINE_DEAD; i++) {
		machine_ends(m, state);
		state = machine_step(m, state, text[i]);
	}
}

static void run(const uint8_t *p, size_t n, enum grammar_kind kind)
{
	const uint8_t *end = memchr(p, 0, n);
	size_t source = end ? (size_t)(end - p) : n;
	struct error err = { 0 };
	const char *text = (const char *)p;
	struct machine *m = kind == GRAMMAR_REGEX  ? machine_of_regex(text, source, &err)
	                    : kind == GRAMMAR_GBNF ? machine_of_gbnf(text, source, NULL, &err)
	                    : kind == GRAMMAR_LARK ? machine_of_lark(text, source, &err)
	                                           : machine_of_schema(text, source, true, &err);

	if (m && end)
		walk(m, end + 1, n - source - 1);
	if ((m != NULL) != (err.code == ERROR_NONE))
		abort();
	machine_close(m);
}

/* Judged, and written: what is written is a part of what is right. */
static void write_schema(const uint8_t *p, size_t n)
{
	const uint8_t *end = memchr(p, 0, n);
	const size_t source = end ? (size_t)(end - p) : n;
	struct error err = { 0 };
	struct machine *m = machine_to_write_schema((const char *)p, source, 0, &err);

	if (m && end)
		walk(m, end + 1, n - source - 1);
	if ((m != NULL) != (err.code == ERROR_NONE))
		abort();
	machine_close(m);
}

void fuzz_schema(const uint8_t *p, size_t n)
{
	run(p, n, GRAMMAR_SCHEMA);
	write_schema(p, n);
}
void fuzz_expression(const uint8_t *p, size_t n) { run(p, n, GRAMMAR_REGEX); }
void fuzz_rules(const uint8_t *p, size_t n) { run(p, n, GRAMMAR_GBNF); }
void fuzz_lark(const uint8_t *p, size_t n) { run(p, n, GRAMMAR_LARK); }
