/* tests/graph/loop_checks.h - tests of operations that have witnesses of their own. */
#ifndef TESTS_GRAPH_LOOP_CHECKS_H
#define TESTS_GRAPH_LOOP_CHECKS_H

/* scan beside the same iterations, written one behind the other, bit for bit. */
void check_loops(void **state);
/* solve beside LAPACK's gesv, which has another order of sums. */
void check_all_equations(void **state);

#endif
