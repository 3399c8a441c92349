/* bench/throughput.h - the tests of an open session: prompts, generation, small batches.
 *
 * Owns: what is timed, and which limit it is compared with. A prompt reads each weight once for many tokens and is
 * compared with the arithmetic peak. Generation and small batches read all weights each time and are compared with the
 * bandwidth. The test sets the tokens, not the sampler, so that every run computes the same.
 */
#ifndef BENCH_THROUGHPUT_H
#define BENCH_THROUGHPUT_H

#include <stdio.h>

#include "bench/limits.h"
#include "bench/measurement.h"
#include "include/jitrun.h"

enum test_kind { TEST_PROMPT, TEST_GENERATE, TEST_SMALL };

struct test_machine {
	jit_model *model;
	jit_session *session;
	const struct limits *limits;
	long repetitions;
	double noise; /* as row_fill's limit */
};

/* n tokens at positions depth and on. The session has room for depth + n + 1. */
bool test_run(const struct test_machine *t, enum test_kind kind, long n, long depth, struct row *out, jit_error *err);

/* The same test once more, in a session of these options that takes times: a table of its kernels. */
bool test_profile(const struct test_machine *t, const jit_session_options *options, enum test_kind kind, long n,
                  long depth, FILE *out, jit_error *err);

/* Facts about the model that the tests and the printer use. */
double test_parameters(const jit_model *m);
enum peak_operands test_operands(const jit_model *m);

#endif
