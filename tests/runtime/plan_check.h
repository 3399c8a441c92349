/* tests/runtime/plan_check.h - whether a plan would compute what it should, judged from the launches alone.
 *
 * Owns: a walk over a built plan that keeps, for every byte of every buffer, what lies there: which value of the model,
 * of which tokens, laid out how. It shares nothing with runtime/plan/plan.c: which bytes a kernel reads and writes
 * follows from its key and arguments by its signature (kernels-templates/signature.h, which t_signature holds against
 * kernels that run), how a matmul wants its inputs laid out from the templates. Which value of the model must lie in
 * each argument is said here, and that for every argument.
 *
 * A launch must find all it reads, as its key says, written before the stage it is in; launches of one stage must not
 * touch what one of them writes, but for the steps of a chain; every layer's keys and values, and the logits, must be
 * there in the end.
 */
#ifndef TESTS_PLAN_CHECK_H
#define TESTS_PLAN_CHECK_H

#include "tests/runtime/plan_space.h"

struct plan_check_report {
	char text[512];
};

/* Both orders that devices keep: stages, and barriers alone, as cards do. False: what is wrong first. */
bool plan_check(const struct plan *p, const struct plan_space *s, const struct plan_options *opt,
                struct plan_check_report *why);

/* plan_spoil_tests.c: that the walk misses nothing; how many tests failed. */
int plan_spoil_tests(void);

#endif
