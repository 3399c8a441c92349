/* tests/encoders/rdna_golden.h - the list of instructions that the RDNA encoder is judged on, and their bytes from
 * llvm-mc.
 *
 * Owns: which combinations of row, operands and modifiers are tried in each generation, and their spelling. The bytes
 * come from an assembler that shares nothing with encoders/. The rule: the same table gives the same file, byte for
 * byte.
 *
 * File format: lines "target;text;hex", in the order of rdna_golden_each; hex is "-" where the target lacks the
 * instruction.
 */
#ifndef TESTS_RDNA_GOLDEN_H
#define TESTS_RDNA_GOLDEN_H

#include <stdbool.h>
#include <stdio.h>

#include "encoders/rdna.h"

struct rdna_case {
	enum rdna_gen gen;
	bool absent; /* x's row does not exist here: both assemblers must refuse */
	bool dual;   /* x and y are halves */
	bool branches;
	int branch; /* words between the branch's end and its target */
	struct rdna_ins x, y;
};

extern const char *const rdna_golden_target[RDNA_GEN_COUNT]; /* the target that stands for each generation */

void rdna_golden_each(void (*f)(void *ctx, const struct rdna_case *c), void *ctx);
void rdna_golden_text(const struct rdna_case *c, char out[400]);

/* Writes the golden file. false and a sentence in why[] when the assembler refuses a line that it should take, takes
 * one that it should refuse, disagrees between targets of one generation, or cannot be run. */
bool rdna_golden_write(FILE *out, const char *assembler, char *why, unsigned cap);

#endif
