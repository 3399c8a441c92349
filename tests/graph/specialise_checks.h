/* tests/graph/specialise_checks.h - graphs whose sizes change, as a program uses them. */
#ifndef TESTS_SPECIALISE_CHECKS_H
#define TESTS_SPECIALISE_CHECKS_H

/* Sets of sizes asked for, made ahead, waited for by several threads, and refused. */
void test_changing_sizes(void **state);

#endif
