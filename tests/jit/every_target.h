/* tests/jit/every_target.h - one kernel on every kind of target, against the interpreter.
 *
 * x86 runs here as far as this machine can, with all registers and with few; cards of every generation are simulated.
 */
#ifndef TESTS_JIT_EVERY_TARGET_H
#define TESTS_JIT_EVERY_TARGET_H

#include "jit/ir/ir_build_numbers.h"
#include "tests/jit/random_ir.h"

/* What may differ in the output: nothing; which NaN a word of 4 or of 8 bytes is. */
enum every_nans { EVERY_EXACT, EVERY_NANS_OF_4, EVERY_NANS_OF_8 };

void every_target_open(void);
void every_target_close(void);
/* build() appends to a kernel that reads at argument 0 (in, and what random_ir_buffers_new(seed) has behind it) and
 * writes at argument 1; end is its argument of that name. */
void every_target_check(void (*build)(struct ir *b, const void *user), const void *user, const void *in,
                        size_t in_bytes, int64_t end, enum every_nans nans, const char *what);
/* What simulated cards refuse to go on with, in a sentence that has these words. */
void every_card_refuses(void (*build)(struct ir *b), const char *why);

#endif
