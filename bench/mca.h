/* bench/mca.h - what llvm-mca says of the inner loops of a plan's kernels, where it and llvm-objdump are installed.
 *
 * Owns: running both and reading their output. It is a second opinion beside a prediction: llvm-mca knows the order of
 * instructions, and nothing of the other waves.
 */
#ifndef BENCH_MCA_H
#define BENCH_MCA_H

#include <stdio.h>

#include "base/error.h"
#include "jit/target.h"
#include "runtime/plan/plan.h"

/* A table of every innermost loop; one line that says so when the programs are not there. */
bool loops_print(FILE *out, const struct plan *p, const struct target *target, struct error *err);

#endif
