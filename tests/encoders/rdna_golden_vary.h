/* tests/encoders/rdna_golden_vary.h - one instruction tried with varying operands: what the files of the goldens share.
 */
#ifndef TESTS_ENCODERS_RDNA_GOLDEN_VARY_H
#define TESTS_ENCODERS_RDNA_GOLDEN_VARY_H

#include "tests/encoders/rdna_golden.h"

#include "encoders/rdna_form.h"

struct each {
	void (*f)(void *ctx, const struct rdna_case *c);
	void *ctx;
	struct rdna_case c;
	struct rdna_match m;
	unsigned counter; /* counts up, so that the rows of a kind meet different values */
	bool full;        /* the first row of its kind: everything */
};

void rdna_tell(struct each *e);
unsigned rdna_candidates(const struct each *e, bool source, char letter, struct rdna_operand o[40]);
void rdna_base(struct each *e);
void rdna_vary_memory(struct each *e);
void rdna_vary_modifiers(struct each *e);
struct rdna_ins rdna_half(enum rdna_op op, unsigned d, struct rdna_operand a, unsigned b);

#endif
