/* tests/graph/swept_cases.h - graphs of sort, gather_nd, scatters, remainders of floats and loops, swept over types
 * and sizes: 0, 1, primes, and just above a lane width; and products in large tiles. */
#ifndef TESTS_GRAPH_SWEPT_CASES_H
#define TESTS_GRAPH_SWEPT_CASES_H

#include <stdbool.h>

/* Gives each text to `each`; number counts them. few: some of them alone. */
void swept_cases(void (*each)(const char *text, unsigned number), bool quick);

#endif
