/* tests/fuzz/fuzz_grammar.c - schemas and expressions that nobody has checked, and texts against them. */
#include <stdlib.h>
#include <string.h>

#include "grammar/machine.h"
#include "tests/fuzz/fuzz.h"

/* A schema or an expression up to a zero byte, then a text: what the machine takes must lead somewhere, and what it
 * refuses must stay refused. */
static void walk(struct machine *m, const uint8_t *text, size_t n)
{
	uint32_t state = m->start;

	for (size_t i = 0; i < n && i < 200 && state != MACHINE_DEAD; i++) {
		machine_ends(m, state);
		state = machine_step(m, state, text[i]);
	}
}

static void run(const uint8_t *p, size_t n, bool expression)
{
	const uint8_t *end = memchr(p, 0, n);
	size_t source = end ? (size_t)(end - p) : n;
	struct error err = { 0 };
	struct machine *m = expression ? machine_of_regex((const char *)p, source, &err)
	                               : machine_of_schema((const char *)p, source, true, &err);

	if (m && end)
		walk(m, end + 1, n - source - 1);
	if ((m != NULL) != (err.code == ERROR_NONE))
		abort();
	machine_close(m);
}

void fuzz_schema(const uint8_t *p, size_t n) { run(p, n, false); }
void fuzz_expression(const uint8_t *p, size_t n) { run(p, n, true); }
