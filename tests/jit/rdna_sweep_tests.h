/* tests/jit/rdna_sweep_tests.h - sweeps over the values of operations on simulated cards. */
#ifndef TESTS_JIT_RDNA_SWEEP_TESTS_H
#define TESTS_JIT_RDNA_SWEEP_TESTS_H

#include <stddef.h>
#include <stdint.h>

#include "jit/compile.h"
#include "tests/jit/op_kernels.h"
#include "tests/jit/rdna_call.h"

enum { V = 128 /* bytes of a vector */, WAVES = 8 };

/* Whether NaNs of different bits count as the same: their signs and payloads are the hardware's business where
 * arithmetic makes them. */
enum nans { NANS_EXACT, NANS_ALIKE };

static const struct sim_options modes[] = {
	{ .memory = SIM_MEMORY_NOW },
	{ .memory = SIM_MEMORY_AT_WAIT, .perturb = 1 },
	{ .memory = SIM_MEMORY_RANDOM, .seed = 1, .perturb = 77 },
};
enum { MODES = sizeof modes / sizeof *modes };

/* The generation under test: every test runs once for each. */
extern enum rdna_gen card_gen;
bool compile_card(struct object *o, const struct ir *ir, const struct compile_options *opt, struct error *err);
/* Interpreter and generated code on the same buffers, in modes first..last-1. */
void check_modes(const struct ir *ir, const struct compile_options *opt, const void *in, size_t in_bytes, uint64_t seed,
                 int64_t begin, int64_t end, enum nans nans, unsigned first, unsigned last);
void begin_ir(struct ir *b);

/* The tests of the other files of the program: the number that failed. */
int rdna_sweep_tests(void);

#endif
