/* tests/jit/op_kernels.h - kernels of one operation or a few, and what goes into them, for the tests of every backend.
 *
 * Owns: edge values, and builders on an ir that the caller has begun, at its width. A kernel reads in (argument 0) and
 * writes out (argument 1) of random_ir.h's buffers. Whether NaNs must agree in their bits is the caller's to say.
 */
#ifndef TESTS_OP_KERNELS_H
#define TESTS_OP_KERNELS_H

#include "jit/ir/ir_build.h"
#include "tests/jit/random_ir.h"

/* No NaN but one payload, so that which of two NaNs comes through cannot show. */
enum { OP_EDGES = 32 };
extern const uint32_t op_edges[OP_EDGES];
bool op_is_nan(uint32_t u);

/* Operand vectors, in three thirds, one per operand. Floats hold one NaN; integers for dot4 hold no byte -128. */
enum { OP_WORDS = 960, OP_THIRD = OP_WORDS / 3 };
void op_fill(uint32_t in[OP_WORDS], enum ir_op op);

/* Every operation on vectors, with every kind of immediate it takes at this width. */
void op_each_vector(unsigned lanes, void (*fn)(enum ir_op op, int64_t imm));

/* How an operand comes: lane by lane, one word for all lanes, a constant. */
enum op_form { OP_LANES, OP_UNIFORM, OP_CONSTANT };
/* One operation on all of `words`, which are what in will hold. dst_on: 0 a fresh register, 1..3 a variable that is
 * operand a, b or c; false where the operation cannot have that (masks are left fresh). forms: 2
 * bits an operand. */
bool op_build_vector(struct ir *b, enum ir_op op, int64_t imm, unsigned dst_on, unsigned forms, const uint32_t *words);

/* v's two words at out + *at, which moves on. */
void op_store_scalar(struct ir *b, ir_a out, ir_s v, int32_t *at);
/* Every operation on scalars, comparisons included, operands of every kind, the destination on each; begin starts a
 * kernel, check may take its ways by turn. */
void op_each_scalar(void (*begin)(struct ir *b),
                    void (*check)(const struct ir *b, const void *in, size_t in_bytes, unsigned round));
/* Quotients of 64 numbers by d; the numbers, which lie near the quotient's steps. */
enum { OP_DIVIDENDS = 64 };
void op_build_division(struct ir *b, int64_t d, uint64_t in[OP_DIVIDENDS]);

/* Loads and stores of all kinds of n lanes (0: all), locals included. */
void op_build_lane_counts(struct ir *b, unsigned n);
/* What is awaited of n lanes and in all other ways, in and out of loops, and given: words that in holds. */
void op_build_awaits(struct ir *b, unsigned n);
/* Names of a variable (casts, sums of addresses), which must mean its value of then. */
void op_build_names(struct ir *b);
/* Three nested loops whose counts come from the arguments; the index read or not. */
void op_build_loops(struct ir *b, bool use_index);

#endif
