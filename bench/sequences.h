/* bench/sequences.h - the test of a batch: several sequences, each of them generated token by token, all together.
 *
 * Owns: what is timed: tokens of all sequences in a second. A pass reads all weights for one token of each, so the
 * limit is the bandwidth, and the bytes of a token are those of a pass, shared.
 */
#ifndef BENCH_SEQUENCES_H
#define BENCH_SEQUENCES_H

#include "bench/throughput.h"
#include "include/jitrun_batch.h"

/* n tokens of each of so many sequences; depth: tokens that each has before. t->session is not used. */
bool sequences_run(const struct test_machine *t, const jit_batch_options *options, long sequences, long n, long depth,
                   struct row *out, jit_error *err);

#endif
