/* jit/ir/print.c - a kernel as text.
 *
 * Owns: the text form. parse.c reads it back; what one writes the other must read, and the round trip loses nothing
 * that a kernel means.
 *
 *   lanes 8
 *   waves 8                             only when the group has more than one
 *   var %12:F                           one line per variable, first
 *   %12:F = ffma %3 %4 %12              result with its type, row, operands in the row's order
 *   %5:I = ishl %4 #3                   # an integer
 *   %6:F = fconst #0x3f800000 ; 1       or the bits of an f32
 *   fstore_s %2 %6 @-16/5*64            @ displacement, /lanes (absent: all) or /step of matrices, *stride
 *
 *   fstore %2 %6 @0 ?%9                 ? mask
 *
 * Bodies of loops and parts of ifs are indented. A semicolon opens a comment.
 */
#include "jit/ir/ir.h"

#include <inttypes.h>

#include "jit/ir/lanes.h"

static void print_immediate(const struct ir_ins *in, FILE *out)
{
	switch (ir_facts_of(in)->imm) {
	case IR_IMM_i: fprintf(out, " #%" PRId64, in->imm); break;
	case IR_IMM_f:
		fprintf(out, " #0x%08" PRIx64 " ; %.9g", (uint64_t)in->imm, (double)bits_f32((uint32_t)in->imm));
		break;
	case IR_IMM_d: fprintf(out, " @%" PRId64, in->imm); break;
	case IR_IMM_x:
	case IR_IMM_t:
		fprintf(out, " @%" PRId32, ir_x_disp(in->imm));
		if (ir_x_lanes(in->imm, 0))
			fprintf(out, "/%u", ir_x_lanes(in->imm, 0));
		if (ir_x_stride(in->imm))
			fprintf(out, "*%u", ir_x_stride(in->imm));
		break;
	default: break;
	}
}

void ir_print(const struct ir *ir, FILE *out)
{
	unsigned depth = 0;

	fprintf(out, "lanes %u\n", ir->lanes);
	if (ir->waves != 1)
		fprintf(out, "waves %u\n", ir->waves);
	if (ir->error)
		fprintf(out, "; the builder refused: %s\n", ir->error);
	for (size_t r = 1; r < ir->n_regs; r++)
		if (ir->is_var[r])
			fprintf(out, "var %%%zu:%c\n", r, ir_types[ir->type[r]].letter);
	for (size_t n = 0; n < ir->n_ins; n++) {
		const struct ir_ins *in = &ir->ins[n];
		const struct ir_facts *facts = ir_facts_of(in);

		if ((in->op == IR_endloop || in->op == IR_else || in->op == IR_endif) && depth)
			depth--;
		fprintf(out, "%*s", (int)depth * 2, "");
		if (facts->dst != IR_TYPE__)
			fprintf(out, "%%%u:%c = ", in->dst, ir_types[facts->dst].letter);
		fputs(facts->name, out);
		if (facts->a != IR_TYPE__)
			fprintf(out, " %%%u", in->a);
		if (facts->b != IR_TYPE__)
			fprintf(out, " %%%u", in->b);
		if (facts->c != IR_TYPE__)
			fprintf(out, " %%%u", in->c);
		print_immediate(in, out);
		if (in->mask)
			fprintf(out, " ?%%%u", in->mask);
		putc('\n', out);
		if (in->op == IR_loop || in->op == IR_if || in->op == IR_else)
			depth++;
	}
}
