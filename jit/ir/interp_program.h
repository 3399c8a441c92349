/* jit/ir/interp_program.h - a kernel as the interpreter runs it. */
#ifndef JIT_IR_INTERP_PROGRAM_H
#define JIT_IR_INTERP_PROGRAM_H

#include <string.h>

#include "jit/ir/interp.h"

/* One decoded instruction. dst, a, b, c are byte offsets into the frame. */
struct interp_ins {
	uint16_t row;                /* enum ir_op */
	uint16_t lanes;              /* x rows: lanes touched; t rows: the step */
	uint32_t dst, a, b, c, mask; /* mask 0: none */
	uint32_t stride;
	int64_t imm; /* or: the displacement; the offset of a local; the instruction a branch goes to */
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
	enum interp_end end;              /* why it stopped there; INTERP_DONE: it goes on, or has ended */
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

/* Memory is read and written a byte-exact element at a time: no alignment is assumed. */
static inline uint64_t interp_get64(const char *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}
static inline uint32_t interp_get32(const char *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
static inline uint16_t interp_get16(const char *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return v;
}
static inline void interp_put32(char *p, uint32_t v) { memcpy(p, &v, 4); }
static inline void interp_put16(char *p, uint16_t v) { memcpy(p, &v, 2); }

/* Of an instruction `in`, within `frame`. */
#define INTERP_REG(offset) ((void *)(frame + (offset)))
#define INTERP_SCALAR(offset) (*(int64_t *)(void *)(frame + (offset)))
#define INTERP_POINTER(offset) ((void *)(intptr_t)INTERP_SCALAR(offset))
#define INTERP_ADDRESS(offset) ((char *)INTERP_POINTER(offset) + in->imm)

/* --- interp_matrix.c */

void interp_matrix_row(const struct interp_ins *in, char *frame);

/* --- interp_index.c */

/* False: two lanes of a scatter have the same element. */
bool interp_index_row(const struct interp_ins *in, char *frame, unsigned lanes);

/* --- interp_decode.c */

bool interp_lay_out(struct interp_layout *l, const struct ir *ir);
void interp_decode(struct interp_program *p, const struct ir *ir, const struct interp_layout *l);

#endif
