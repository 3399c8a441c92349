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
		if (ir->type[r] == IR_TYPE_f64 || ir->type[r] == IR_TYPE_i64) {
			l->offset[r] = (uint32_t)at;
			at += 2 * vector;
		}
	for (size_t r = 1; r < ir->n_regs; r++)
		if (ir->type[r] == IR_TYPE_t || ir->type[r] == IR_TYPE_o) {
			l->offset[r] = (uint32_t)at;
			at += ir->type[r] == IR_TYPE_t ? IR_TILE * IR_TILE * 4 : IR_TILE * IR_STRIP_BYTES;
		}
	for (size_t r = 1; r < ir->n_regs; r++)
		if (ir->type[r] == IR_TYPE_s || ir->type[r] == IR_TYPE_a || ir->type[r] == IR_TYPE_c) {
			l->offset[r] = (uint32_t)at;
			at += 8;
		}
	l->locals = (at + vector + 63) & ~(size_t)63;
	l->bytes = l->locals + ir->local_bytes;
	return true;
}

/* The loops and ifs that are open. breaks: the last of a loop's, plus 1; each names the one before it until the loop
 * ends. */
struct open_blocks {
	struct {
		size_t at, breaks;
	} block[IR_MAX_DEPTH];
	struct ir_blocks kinds;
};

static size_t innermost_loop(const struct open_blocks *o)
{
	size_t d = o->kinds.depth - 1u;

	while (o->kinds.kind[d] != IR_IN_LOOP)
		d--;
	return d;
}

static void end_loop(struct interp_program *p, struct open_blocks *o, size_t n, unsigned loops)
{
	const size_t begin = o->block[o->kinds.depth].at;
	struct interp_ins *end = &p->ins[n];

	p->ins[begin].imm = (int64_t)n + 1;
	end->dst = p->ins[begin].dst;
	end->c = loops;
	end->imm = (int64_t)begin + 1;
	for (size_t at = o->block[o->kinds.depth].breaks, before; at; at = before) {
		before = (size_t)p->ins[at - 1].imm;
		p->ins[at - 1].imm = (int64_t)n + 1;
	}
}

/* Where branches go, once it is known. */
static void decode_branch(struct interp_program *p, struct open_blocks *o, unsigned op, size_t n)
{
	const enum ir_misplaced why = ir_blocks_step(&o->kinds, op);
	const size_t depth = o->kinds.depth;

	assert(why == IR_PLACED);
	(void)why;
	switch (op) {
	case IR_loop: p->ins[n].c = o->kinds.loops - 1u; /* fall through */
	case IR_if:
		o->block[depth - 1].at = n;
		o->block[depth - 1].breaks = 0;
		break;
	case IR_endloop: end_loop(p, o, n, o->kinds.loops); break;
	case IR_else:
		p->ins[o->block[depth - 1].at].imm = (int64_t)n + 1;
		o->block[depth - 1].at = n;
		break;
	case IR_endif: p->ins[o->block[depth].at].imm = (int64_t)n + 1; break;
	case IR_break: {
		size_t *breaks = &o->block[innermost_loop(o)].breaks;
		p->ins[n].imm = (int64_t)*breaks;
		*breaks = n + 1;
		break;
	}
	default: break;
	}
}

void interp_decode(struct interp_program *p, const struct ir *ir, const struct interp_layout *l)
{
	struct open_blocks open = { 0 };
	uint32_t local = 0, shared = 0;

	for (size_t n = 0; n < ir->n_ins; n++) {
		const struct ir_ins *in = &ir->ins[n];
		struct interp_ins *out = &p->ins[n];

		*out = (struct interp_ins){
			.row = (uint16_t)ir_row(in),
			.dst = l->offset[in->dst],
			.a = l->offset[in->a],
			.b = l->offset[in->b],
			.c = l->offset[in->c],
			.mask = l->offset[in->mask],
			.lanes = (uint16_t)ir->lanes,
			.imm = in->imm
		};
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
		} else if (ir_does(in->op, IR_BRANCHES)) {
			decode_branch(p, &open, in->op, n);
		}
	}
	assert(open.kinds.depth == 0);
}
