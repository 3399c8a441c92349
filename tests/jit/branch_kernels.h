/* tests/jit/branch_kernels.h - kernels of ifs, breaks and masks, with what they mean written once more in plain C.
 *
 * Owns: builders on an ir that the caller has begun, at its width, and their expected results. Kernels read and write
 * random_ir.h's buffers, or others laid out alike.
 */
#ifndef TESTS_BRANCH_KERNELS_H
#define TESTS_BRANCH_KERNELS_H

#include "jit/ir/ir_build_numbers.h"
#include "tests/jit/random_ir.h"

/* Nested loops, ifs and breaks that go by four numbers at in; results at out: vectors of 32-bit words. */
enum { BRANCH_NUMBERS = 4, BRANCH_VECTORS = 5 };
void branch_build(struct ir *b);
void branch_expect(const int64_t in[BRANCH_NUMBERS], unsigned lanes, uint32_t *out);

/* Waves of a group that go different ways between barriers, some of which stand inside ifs. in: words. Each wave stores
 * a vector to out. */
void branch_build_waves(struct ir *b);
void branch_expect_waves(const uint32_t *in, unsigned waves, unsigned lanes, uint32_t *out);

/* Stores by a mask, then by the opposite that its register has become; loads of neighbouring words by a mask. */
void branch_build_changed_mask(struct ir *b);
void branch_expect_changed_mask(const uint8_t *in, unsigned lanes, uint8_t *out);

/* Awaits in a part of an if, which is run when begin, t, is 1, and behind it. */
void branch_build_awaits(struct ir *b);
void branch_expect_awaits(const uint8_t *in, unsigned lanes, int64_t t, uint8_t *out);

/* One maskable row, of n lanes (0: all), with a mask that goes by begin, t. Lanes that take part touch memory from its
 * first byte on, or up to its last one; the others of them would touch what is outside, or what lies between.
 *
 * BEFORE: the mask is set for lanes above t, and lane t + 1 is at the first byte of what pointer[0] (loads) or out
 * points to; BEHIND: for lanes up to t, and lane t at the last one before pointer[7] (loads), or before out + 8192;
 * NOWHERE: for none, at an address BRANCH_WILD bytes away; BETWEEN: for every lane whose bit is set in t. */
enum branch_mask { BRANCH_BEFORE, BRANCH_BEHIND, BRANCH_NOWHERE, BRANCH_BETWEEN, BRANCH_MASKS };
enum { BRANCH_WILD = 1 << 26, BRANCH_STORED = 8192, BRANCH_STRIDE = 12 };
void branch_build_masked(struct ir *b, enum ir_op op, enum branch_mask which, unsigned n);
/* What a load gives, or what a store leaves of the BRANCH_STORED bytes at out. */
void branch_expect_masked(const struct random_ir_buffers *x, enum ir_op op, enum branch_mask which, unsigned n,
                          unsigned lanes, int64_t t, uint8_t *out);
/* The rows that may have a mask, and how many lane counts each is tried with. */
void branch_each_masked(unsigned lanes, void (*fn)(void *user, enum ir_op op, enum branch_mask which, unsigned n),
                        void *user);

#endif
