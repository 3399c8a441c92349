/* jit/ir/interp_decode.c - a kernel, decoded for the interpreter: where registers lie in its frame, operands as
 * offsets. */
#include <assert.h>
#include <stdlib.h>

#include "jit/ir/interp_program.h"

bool interp_lay_out(struct interp_layout *l, const struct ir *ir)
{
	const size_t vector = ir->lanes * 4;
	size_t at = vector; /* register 0's own slot */

	l->offset = calloc(ir->n_regs, sizeof *l->offset);
	if (!l->offset)
		return false;
	for (size_t r = 1; r < ir->n_regs; r++)
		if (ir->type[r] == IR_TYPE_f32 || ir->type[r] == IR_TYPE_i32 || ir->type[r] == IR_TYPE_m) {
			l->offset[r] = (uint32_t)at;
			at += vector;
		}
	for (size_t r = 1; r < ir->n_regs; r++)
		if (ir->type[r] == IR_TYPE_t || ir->type[r] == IR_TYPE_o) {
			l->offset[r] = (uint32_t)at;
			at += ir->type[r] == IR_TYPE_t ? IR_TILE * IR_TILE * 4 : IR_TILE * IR_STRIP_BYTES;
		}
	for (size_t r = 1; r < ir->n_regs; r++)
		if (ir->type[r] == IR_TYPE_s || ir->type[r] == IR_TYPE_a) {
			l->offset[r] = (uint32_t)at;
			at += 8;
		}
	l->locals = (at + vector + 63) & ~(size_t)63;
	l->bytes = l->locals + ir->local_bytes;
	return true;
}

void interp_decode(struct interp_program *p, const struct ir *ir, const struct interp_layout *l)
{
	size_t open[IR_MAX_LOOP_DEPTH], depth = 0;
	uint32_t local = 0, shared = 0;

	for (size_t n = 0; n < ir->n_ins; n++) {
		const struct ir_ins *in = &ir->ins[n];
		struct interp_ins *out = &p->ins[n];

		*out = (struct interp_ins){ .row = (uint16_t)ir_row(in),
			                    .dst = l->offset[in->dst],
			                    .a = l->offset[in->a],
			                    .b = l->offset[in->b],
			                    .c = l->offset[in->c],
			                    .imm = in->imm };
		if (ir_facts_of(in)->imm == IR_IMM_x) {
			out->lanes = (uint16_t)ir_x_lanes(in->imm, ir->lanes);
			out->stride = ir_x_stride(in->imm);
			out->imm = ir_x_disp(in->imm);
		} else if (ir_facts_of(in)->imm == IR_IMM_t) {
			out->lanes = (uint16_t)ir_t_step(in->imm);
			out->stride = ir_x_stride(in->imm);
			out->imm = ir_x_disp(in->imm);
		} else if (in->op == IR_local) {
			out->imm = local;
			local += ir_local_size(in->imm);
		} else if (in->op == IR_shared) {
			out->imm = shared;
			shared += ir_local_size(in->imm);
		} else if (in->op == IR_loop) {
			assert(depth < IR_MAX_LOOP_DEPTH);
			out->c = (uint32_t)depth;
			open[depth++] = n;
		} else if (in->op == IR_endloop) {
			assert(depth > 0);
			p->ins[open[--depth]].imm = (int64_t)n + 1;
			out->dst = p->ins[open[depth]].dst;
			out->c = (uint32_t)depth;
			out->imm = (int64_t)open[depth] + 1;
		}
	}
	assert(depth == 0);
}
