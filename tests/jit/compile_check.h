/* tests/jit/compile_check.h - x86 kernels compiled and run beside the interpreter. */
#ifndef TESTS_JIT_COMPILE_CHECK_H
#define TESTS_JIT_COMPILE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "jit/compile.h"
#include "tests/jit/op_kernels.h"

typedef void (*kernel_fn)(const uint64_t *arg, int64_t begin, int64_t end);

/* The target under test: every test runs once for each. */
extern const struct target *compile_isa;

/* The register files of the tests, and scrambled choices from some of them. */
static const struct compile_options files[] = {
	{ 0 },
	{ .max_vector_regs = 8, .max_gprs = 8, .max_mask_regs = 3 },
	{ .max_vector_regs = 6, .max_gprs = 5, .max_mask_regs = 2 },
	{ .max_vector_regs = 4, .max_gprs = 4, .max_mask_regs = 2 },
	{ .seed = 12345 },
	{ .max_vector_regs = 8, .max_gprs = 6, .max_mask_regs = 3, .seed = 99 },
	{ .max_vector_regs = 4, .max_gprs = 4, .max_mask_regs = 2, .seed = 7 },
};
enum { FILES = sizeof files / sizeof *files };

void compile_x86(struct object *o, const struct ir *ir, const struct compile_options *opt, struct compile_stats *stats);
/* Interpreter and generated code on the same buffers; the output must agree in every byte. */
void check_native(const struct ir *ir, const struct compile_options *opt, const void *in, size_t in_bytes,
                  uint64_t seed, int64_t begin, int64_t end);

/* The tests of the other files of the program: the number that failed. */
int compile_listing_tests(void);

#endif
