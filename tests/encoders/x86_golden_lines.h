/* tests/encoders/x86_golden_lines.h - the lines of the x86 goldens. */
#ifndef TESTS_ENCODERS_X86_GOLDEN_LINES_H
#define TESTS_ENCODERS_X86_GOLDEN_LINES_H

#include <stdio.h>

#include "encoders/x86_form.h"

struct golden {
	FILE *list;     /* sections and instruction texts, in order */
	FILE *assembly; /* the instructions alone, for the assembler */
	const struct x86_row *row;
	unsigned index; /* of the row */
	bool evex;
	unsigned w, l;    /* the widths tried now */
	unsigned counter; /* counts up, so that immediates and memory operands alternate */
};

extern bool golden_seen[X86_F_REL + 1][2]; /* forms whose memory operands have all been tried */
/* Every row but the branches, which need a program around them. */
void golden_all_rows(struct golden *g);
/* Branches and RIP-relative operands with labels before and behind them, far enough apart for 32-bit distances. */
void golden_labels(FILE *out);

#endif
