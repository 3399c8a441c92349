/* tests/jit/random_ir.h - random kernels that verify and have exactly one meaning.
 *
 * random_ir() appends about `size` instructions that use every op of ops.def but those on matrices, loops (nested, also
 * with zero and negative counts), variables, locals, masks and every kind of memory access. The same seed gives the
 * same kernel. What ops.def leaves undefined never happens: f2i operands lie in its range, dot4's second operand has no
 * byte -128, scalars do not overflow, locals are written before they are read. NaNs and infinities do arise, but every
 * float is clamped (fmax, fmin against constants) before its bits can be seen, so a NaN's payload never reaches memory.
 * Addresses are never stored. The kernel reads and writes only the buffers below, so after
 *
 *   random_ir(&ir, lanes, seed, 200);  random_ir_fill(&x, seed);  random_ir_fill(&y, seed);
 *   ir_interp(&ir, x.arg, begin, end);  native(y.arg, begin, end);
 *
 * x.out and y.out must agree in every byte. begin and end may be anything within 32 bits.
 */
#ifndef TESTS_RANDOM_IR_H
#define TESTS_RANDOM_IR_H

#include "jit/ir/ir.h"

enum { RANDOM_IR_IN_BYTES = 4096, RANDOM_IR_OUT_BYTES = 16384, RANDOM_IR_POINTERS = 8 };

struct random_ir_buffers {
	_Alignas(64) uint8_t in[RANDOM_IR_IN_BYTES]; /* f32, f16, words, bytes; read only */
	uint8_t out[RANDOM_IR_OUT_BYTES];            /* read and written */
	uint64_t pointer[RANDOM_IR_POINTERS];        /* pointer[k] = in + 64*k, for aload */
	uint64_t arg[4];                             /* in, out, pointer, a number */
};

void random_ir_fill(struct random_ir_buffers *b, uint64_t seed);
/* Filled; the caller frees them. */
struct random_ir_buffers *random_ir_buffers_new(uint64_t seed);

/* Initialises ir; the caller frees it. */
void random_ir(struct ir *ir, unsigned lanes, uint64_t seed, unsigned size);

#endif
