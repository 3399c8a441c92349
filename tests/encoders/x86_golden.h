/* tests/encoders/x86_golden.h - the list of instructions that the x86 encoder is judged on, and their bytes from
 * llvm-mc.
 *
 * Owns: which combinations of row, registers, memory operands and masks are tried. The bytes come from an assembler
 * that shares nothing with encoders/. The rule: the same table gives the same file, byte for byte.
 */
#ifndef TESTS_X86_GOLDEN_H
#define TESTS_X86_GOLDEN_H

#include <stdbool.h>
#include <stdio.h>

/* The name of an llvm-mc that can be run (with objcopy beside it), or NULL. */
const char *x86_golden_assembler(void);

/* Writes the golden file. false and a sentence in why[] when the assembler refuses a line or cannot be run. */
bool x86_golden_write(FILE *out, const char *assembler, char *why, unsigned cap);

#endif
