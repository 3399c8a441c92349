/* tests/graph/random_graph.h - graphs of random operations on random shapes, and inputs for them. */
#ifndef TESTS_GRAPH_RANDOM_GRAPH_H
#define TESTS_GRAPH_RANDOM_GRAPH_H

#include "graph/graph.h"

/* The same seed gives the same graph: some inputs, `nodes` operations or a few more, and outputs. */
void random_graph(struct tensor_graph *g, uint64_t seed, unsigned nodes);
/* Numbers of all kinds for a tensor: small ones, and now and then infinities, NaN, -0 and the ends of integers. */
void random_tensor(struct tensor *t, int type, const struct shape *s, uint64_t seed);

/* Operations that have derivatives, on inputs and values of f64 whose numbers stay small: up to `nodes` operations, or
 * a few more. Constants and inputs are numbers between -2 and 2. loops: some of them are loops. */
void smooth_graph(struct tensor_graph *g, uint64_t seed, unsigned nodes, bool loops);
/* Floats between -2 and 2, none of them equal; integers from -1 to 4, or 0 to 5. */
void smooth_tensor(struct tensor *t, int type, const struct shape *s, uint64_t seed);

#endif
