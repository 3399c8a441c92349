/* jit/ir/interp_program.h - a kernel as the interpreter runs it. */
#ifndef JIT_IR_INTERP_PROGRAM_H
#define JIT_IR_INTERP_PROGRAM_H

#include "jit/ir/interp.h"

/* One decoded instruction. dst, a, b, c are byte offsets into the frame. */
struct interp_ins {
	uint16_t op;
	uint16_t lanes; /* x rows: lanes touched; t rows: the step */
	uint32_t dst, a, b, c;
	uint32_t stride;
	int64_t imm; /* or: the displacement; the offset of a local; the instruction a loop or endloop goes to */
};

struct interp_call {
	const uint64_t *arg;
	int64_t begin, end;
	unsigned wave;
	char *shared;
};

/* Where a wave goes on: in is NULL when it has ended. */
struct interp_wave {
	const struct interp_ins *in;
	bool unwritten;                   /* it awaited a word that nobody has given */
	int64_t count[IR_MAX_LOOP_DEPTH]; /* of every open loop, read once at its entry */
};

struct interp_program {
	void (*go)(const struct interp_program *p, char *frame, const struct interp_call *call,
	           struct interp_wave *wave);
	size_t n_ins;
	unsigned lanes, waves; /* waves: that run together, 1 unless the kernel is cooperative */
	size_t frame_bytes, shared_bytes;
	uint32_t locals; /* where they begin in the frame */
	struct interp_ins ins[];
};

/* The frame: the vector registers, the tiles and operands, then the scalars, then room for a whole vector (an absent
 * operand reads somewhere), then the locals. */
struct interp_layout {
	uint32_t *offset;
	size_t locals, bytes;
};

/* --- interp_decode.c */

bool interp_lay_out(struct interp_layout *l, const struct ir *ir);
void interp_decode(struct interp_program *p, const struct ir *ir, const struct interp_layout *l);

#endif
