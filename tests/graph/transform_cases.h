/* tests/graph/transform_cases.h - a graph for each operation, in f64, with a size n that is 0, 1 or a prime. */
#ifndef TESTS_GRAPH_TRANSFORM_CASES_H
#define TESTS_GRAPH_TRANSFORM_CASES_H

#include <stdbool.h>
#include <stddef.h>

struct transform_case {
	const char *text;
	bool only_vmap; /* it has no derivative, or none that differences show */
	unsigned min;   /* of n: 1, where there must be an element */
};
extern const struct transform_case transform_cases[];
extern const size_t n_transform_cases;

#endif
