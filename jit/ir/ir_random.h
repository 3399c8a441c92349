/* jit/ir/ir_random.h - random numbers by counter: sequences of instructions that a kernel may have in place of a state.
 *
 * Owns: Philox 4x32-10 and splitmix64. Their numbers are integers, so that no target and no order of lanes can show.
 */
#ifndef JIT_IR_RANDOM_H
#define JIT_IR_RANDOM_H

#include "jit/ir/ir_build_numbers.h"

/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3): four words of a counter of
 * four and a key of two. */
struct ir_philox {
	ir_i word[4];
};
static inline struct ir_philox ir_philox(struct ir *b, struct ir_philox counter, ir_i key0, ir_i key1)
{
	enum { ROUNDS = 10 };
	const ir_i by0 = ir_iconst(b, 0xd2511f53), by1 = ir_iconst(b, 0xcd9e8d57), step0 = ir_iconst(b, 0x9e3779b9),
		   step1 = ir_iconst(b, 0xbb67ae85);
	struct ir_philox c = counter;

	for (unsigned n = 0; n < ROUNDS; n++) {
		const ir_i high0 = ir_umulh(b, c.word[0], by0), low0 = ir_imul(b, c.word[0], by0),
			   high1 = ir_umulh(b, c.word[2], by1), low1 = ir_imul(b, c.word[2], by1);
		c.word[0] = ir_ixor(b, ir_ixor(b, high1, c.word[1]), key0);
		c.word[2] = ir_ixor(b, ir_ixor(b, high0, c.word[3]), key1);
		c.word[1] = low1;
		c.word[3] = low0;
		if (n + 1 < ROUNDS) {
			key0 = ir_iadd(b, key0, step0);
			key1 = ir_iadd(b, key1, step1);
		}
	}
	return c;
}

/* The number that splitmix64 gives next when x is its state: of x, the x-th number of a sequence of its own. */
static inline ir_l ir_splitmix64(struct ir *b, ir_l x)
{
	ir_l z = ir_ladd(b, x, ir_lconst(b, (int64_t)UINT64_C(0x9e3779b97f4a7c15)));

	z = ir_lmul(b, ir_lxor(b, z, ir_lshr(b, z, 30)), ir_lconst(b, (int64_t)UINT64_C(0xbf58476d1ce4e5b9)));
	z = ir_lmul(b, ir_lxor(b, z, ir_lshr(b, z, 27)), ir_lconst(b, (int64_t)UINT64_C(0x94d049bb133111eb)));
	return ir_lxor(b, z, ir_lshr(b, z, 31));
}

#endif
