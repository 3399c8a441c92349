/* tests/kernels/watched.c - see watched.h. The interpreter once more, with a look at each instruction. */
#include "tests/kernels/watched.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/interp_program.h"

static unsigned watched_row(const struct interp_ins *in, const char *frame, unsigned lanes);
#define INTERP_ROW(in, frame, lanes) ((enum ir_op)watched_row(in, frame, lanes))
#include "jit/ir/interp.c"

/* What is being run, one kernel at a time. */
static struct {
	watched_see *see;
	void *context;
	uintptr_t own, own_end; /* frames and shared bytes */
	jmp_buf stop;
} run;

static void touch(uint64_t at, uint64_t bytes, bool write, bool dataflow)
{
	const struct watched_access a = { at, bytes, write, dataflow };

	if (at >= run.own && at + bytes <= run.own_end)
		return;
	if (!run.see(run.context, &a))
		longjmp(run.stop, 1);
}

static uint64_t scalar(const char *frame, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, frame + offset, 8);
	return v;
}

static int32_t lane_of(const char *frame, uint32_t offset, unsigned lane)
{
	int32_t v;

	memcpy(&v, frame + offset + lane * 4, 4);
	return v;
}

/* n elements of so many bytes, `stride` apart. */
static void touch_each(uint64_t at, unsigned n, uint64_t stride, uint64_t bytes, bool write, bool dataflow)
{
	for (unsigned i = 0; i < n; i++)
		touch(at + i * stride, bytes, write, dataflow);
}

/* Elements of so many bytes, `stride` apart, of the lanes that take part. */
static void touch_some(const struct interp_ins *in, const char *frame, uint64_t at, uint64_t stride, uint64_t bytes,
                       bool write)
{
	if (!in->mask && stride == bytes) {
		touch(at, in->lanes * bytes, write, false);
		return;
	}
	for (unsigned l = 0; l < in->lanes; l++)
		if (!in->mask || lane_of(frame, in->mask, l))
			touch(at + l * stride, bytes, write, false);
}

static void touch_lanes(const struct interp_ins *in, const char *frame, unsigned lanes)
{
	const uint64_t at = scalar(frame, in->a) + (uint64_t)in->imm;

	switch ((enum ir_op)in->row) {
	case IR_fload:
	case IR_iload: touch_some(in, frame, at, 4, 4, false); break;
	case IR_fload_h:
	case IR_iload_u16: touch_some(in, frame, at, 2, 2, false); break;
	case IR_iload_u8:
	case IR_iload_s8: touch_some(in, frame, at, 1, 1, false); break;
	case IR_iload_s: touch_some(in, frame, at, in->stride, 4, false); break;
	case IR_fawait: touch_each(at, in->lanes, in->stride, 4, false, true); break;
	case IR_fbcast:
	case IR_ibcast:
	case IR_sload32: touch(at, 4, false, false); break;
	case IR_fbcast_h: touch(at, 2, false, false); break;
	case IR_sload64:
	case IR_aload: touch(at, 8, false, false); break;
	case IR_igather:
	case IR_fawait_at:
		for (unsigned l = 0; l < lanes; l++)
			if (!in->mask || lane_of(frame, in->mask, l))
				touch(at + (uint64_t)(int64_t)lane_of(frame, in->b, l), 4, false,
				      in->row == IR_fawait_at);
		break;
	case IR_fgive: touch(at, in->lanes * 4, true, true); break;
	case IR_fstore: touch_some(in, frame, at, 4, 4, true); break;
	case IR_fstore_h: touch_some(in, frame, at, 2, 2, true); break;
	case IR_istore_8: touch_some(in, frame, at, 1, 1, true); break;
	case IR_fstore_s: touch_some(in, frame, at, in->stride, 4, true); break;
	case IR_fstore_hs: touch_some(in, frame, at, in->stride, 2, true); break;
	case IR_fstore1: touch(at, 4, true, false); break;
	default: break;
	}
}

/* Strips, or rows of a tile: those of the first half alone, where the row is one of half a tile. */
static unsigned strips(unsigned row)
{
	return row == IR_tload_top || row == IR_tstore_top || row == IR_oload_top ? 8 : 16;
}

static void touch_matrices(const struct interp_ins *in, const char *frame)
{
	const uint64_t at = scalar(frame, in->a) + (uint64_t)in->imm;
	const bool write = in->row == IR_tstore || in->row == IR_tstore_top || in->row == IR_ostore;

	switch ((enum ir_op)in->row) {
	case IR_tload:
	case IR_tload_top:
	case IR_tload_h:
	case IR_tstore:
	case IR_tstore_top:
		for (unsigned r = 0; r < strips(in->row); r++)
			touch_each(at + r * in->stride, 16, in->lanes, in->row == IR_tload_h ? 2 : 4, write, false);
		break;
	case IR_oload:
	case IR_oload_top:
	case IR_ostore:
		for (unsigned r = 0; r < strips(in->row); r++)
			touch_each(at + r * in->stride, 2, in->lanes * 16u, 16, write, false);
		break;
	case IR_oload_swizzled: touch(at, 16 * 128, false, false); break;
	default: break;
	}
}

static void touch_copies(const struct interp_ins *in, const char *frame, unsigned lanes)
{
	const uint64_t from = scalar(frame, in->b), to = scalar(frame, in->a);

	switch ((enum ir_op)in->row) {
	case IR_copy:
		touch(from, (uint64_t)in->imm, false, false);
		touch(to, (uint64_t)in->imm, true, false);
		break;
	case IR_copy_at:
		for (unsigned l = 0; l < lanes; l++)
			touch(from + (uint64_t)(int64_t)lane_of(frame, in->c, l), (uint64_t)in->imm, false, false);
		touch(to, lanes * (uint64_t)in->imm, true, false);
		break;
	case IR_idots:
		touch(from, in->lanes * 32u, false, false);
		touch(scalar(frame, in->c), 32 * 32, false, false);
		touch(to + (uint64_t)in->imm, in->lanes * 128u, true, false);
		break;
	default: break;
	}
}

static unsigned watched_row(const struct interp_ins *in, const char *frame, unsigned lanes)
{
	if (in->row == IR_copy || in->row == IR_copy_at || in->row == IR_idots)
		touch_copies(in, frame, lanes);
	else if (ir_facts[in->row].imm == IR_IMM_t)
		touch_matrices(in, frame);
	else
		touch_lanes(in, frame, lanes);
	return in->row;
}

bool watched_run(const struct ir *ir, const uint64_t *arg, int64_t begin, int64_t end, watched_see *see, void *context)
{
	struct interp_program *p = interp_compile(ir);
	const size_t bytes = p ? (interp_frame_bytes(p) + 63) & ~(size_t)63 : 0;
	char *frame = p ? aligned_alloc(64, bytes) : NULL;
	bool done = false;

	if (!p || !frame)
		abort();
	run.see = see;
	run.context = context;
	run.own = (uintptr_t)frame;
	run.own_end = run.own + bytes;
	if (!setjmp(run.stop))
		done = interp_run(p, frame, arg, begin, end) == INTERP_DONE;
	free(frame);
	interp_free(p);
	return done;
}
