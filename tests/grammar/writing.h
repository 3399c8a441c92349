/* tests/grammar/writing.h - texts that a model of random choices writes by a JSON Schema.
 *
 * Owns: the walks over allowed tokens of a vocabulary of the usual size, and what is asked of each text that ended: it
 * is right by a judge that knows nothing of grammar/, and spelled as grammar/schema/json_spelling.h says.
 */
#ifndef TESTS_GRAMMAR_WRITING_H
#define TESTS_GRAMMAR_WRITING_H

#include <stdbool.h>
#include <stdint.h>

struct counts {
	unsigned ended, stuck /* no token may follow, and the text may not end */, longer, limited, refused, wrong;
	uint64_t steps; /* of the token that took most (grammar/machine/effort.h) */
	char last[100]; /* the beginning of the text that ended last */
};

extern uint64_t writing_seed;
extern bool writing_prints; /* each text that ended, behind its schema: for another judge */
/* So many texts by a schema, how: as grammar_open() has it beside a kind; says on standard output what is wrong. */
void writing_try(const char *schema, unsigned how, unsigned texts, struct counts *c);
/* What of a text's spelling is wrong; NULL: nothing. */
const char *writing_fault(const char *text);

#endif
