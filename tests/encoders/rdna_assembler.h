/* tests/encoders/rdna_assembler.h - asks an installed llvm-mc for the bytes of RDNA instructions.
 *
 * Owns: running it and reading what it says, line by line. The rule: it shares nothing with encoders/.
 */
#ifndef TESTS_RDNA_ASSEMBLER_H
#define TESTS_RDNA_ASSEMBLER_H

#include <stdbool.h>

/* Lines of assembly and what became of each: its bytes in hex, or "-" where the assembler refused it. */
struct rdna_sheet {
	char **text, **hex;
	unsigned n, capacity;
};

/* The name of an llvm-mc of version 19 or later that can be run, or NULL. */
const char *rdna_assembler(void);

void rdna_sheet_add(struct rdna_sheet *s, const char *text);
void rdna_sheet_clear(struct rdna_sheet *s);
/* Fills hex. false and a sentence when the assembler cannot be run. */
bool rdna_sheet_assemble(struct rdna_sheet *s, const char *assembler, const char *target, char *why, unsigned cap);

#endif
