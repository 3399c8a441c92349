/* jit/ptx/copy.c - copies from global memory to a wave's local bytes, which lie in shared memory, while the wave goes
 * on.
 *
 * Owns: the rows copy, copy_at, copies and copied. Lanes copy vectors of 16 bytes, side by side, and each row of copy
 * is a group of copies, as is what stands in front of a row of copies. The lanes meet behind the wait, for one may read
 * what another has copied, and in front of copies, for one may still read what was there.
 */
#include "jit/ptx/ptx.h"

typedef struct ptx_operand op;

enum { VECTOR = 16, ROUND = 32 * VECTOR };

/* Weights, keys and values go through the L2 cache once a launch. What stays there beside them, the kernels' code above
 * all, is to be there when the next layer needs it. */
static op policy(struct ptx_emitter *e)
{
	struct ptx_buffer *to = e->w.to;

	if (e->once.class != PTX_B64) {
		e->once = ptx_new(&e->w, PTX_B64);
		e->w.to = &e->w.entry;
		PTX_PUT(&e->w, POLICY_ONCE, e->once);
		e->w.to = to;
	}
	return e->once;
}

static void copy(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;
	const uint32_t bytes = (uint32_t)i->imm;
	op to = ptx_address(e, i->a, 0, VECTOR), from = ptx_address(e, i->b, 0, VECTOR), once = policy(e);

	ptx_meet_readers(e, true);
	for (uint32_t at = 0; at < bytes; at += ROUND) {
		if (bytes - at < ROUND)
			w->guard = ptx_first_lanes(e, (bytes - at) / VECTOR);
		PTX_PUT(w, COPY_VECTOR_ONCE, ptx_at(to, to.value + at), ptx_at(from, from.value + at), ptx_imm(VECTOR),
		        once);
	}
	PTX_PUT0(w, COPIES_GROUP);
}

/* What a tile needs is read by several blocks of the launch, so the L2 cache may keep it. */
static void copy_at(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;
	op wide = ptx_new(w, PTX_B64), sum = ptx_new(w, PTX_B64), to = ptx_address(e, i->a, 0, (uint64_t)i->imm);
	int64_t disp = 0;
	uint16_t root = ptx_root(&e->scan, i->b, &disp);

	ptx_meet_readers(e, true);
	PTX_PUT(w, CVT_U64_U32, wide, ptx_reg(e, i->c));
	PTX_PUT(w, ADD_S64, sum, ptx_reg(e, root), wide);
	ptx_put(w, i->imm == VECTOR ? PTX_COPY_VECTOR : PTX_COPY_LATER,
	        (const op[]){ to, ptx_at(sum, disp), ptx_imm(i->imm) }, 3);
}

bool ptx_copy_row(struct ptx_emitter *e, const struct ir_ins *i)
{
	if (i->op == IR_copy)
		copy(e, i);
	if (i->op == IR_copy_at)
		copy_at(e, i);
	if (i->op == IR_copies)
		PTX_PUT0(&e->w, COPIES_GROUP);
	if (i->op == IR_copied) {
		PTX_PUT(&e->w, COPIES_WAIT, ptx_imm(i->imm));
		PTX_PUT(&e->w, BAR_WARP_SYNC, ptx_imm(0xffffffff));
		e->stored[1] = false;
	}
	return ir_does(i->op, IR_COPIES);
}
